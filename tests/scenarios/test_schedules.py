"""A schedule of the model as a real run: the same counters after every move, at both ends."""

import importlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenarios.ledgers import standing
from tests.trace.rows import state_after
from workbench import serial
from workbench.scenarios import ActionError, get, names, run
from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    MOVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
    LinkModel,
)
from workbench.scenarios.race import ACT_OF_MOVE
from workbench.scenarios.rules import RULES
from workbench.scenarios.run import Run
from workbench.scenarios.schedules import moved, play, play_model, seq_of_move, states_along
from workbench.serial import link_credit_snd
from workbench.trace.explain import OTHER_RULE, explain
from workbench.trace.hash import trace_hash

STARTS = [0, 20, 2**31, 2**32 - 2]
CHOICES = st.lists(st.integers(0, 3), min_size=1, max_size=24)


def schedule(model, choices):
    """A walk through the model: each number chooses among the moves that are possible."""
    moves, state = [], model.initial
    for choice in choices:
        possible = list(model.successors(state))
        if not possible:
            break
        move, state = possible[choice % len(possible)]
        moves.append(move)
    return moves


def credit_of_receiver(model, moves):
    """The receiver's own credit after each move, counted apart from model and run [2.6.7]."""
    credit, grants, found = model.first_credit, iter(model.grants), []
    for move in moves:
        if move == SEND_FLOW:
            credit = next(grants)
        elif move == TRANSFER_ARRIVES:
            credit = max(0, credit - 1)
        found.append(credit)
    return found


@given(
    CHOICES,
    st.sampled_from(sorted(RULES)),
    st.sampled_from(STARTS),
    st.sampled_from([(3, 6), (2, 0, 4), (5, 5, 1), (1,)]),
    st.sampled_from([0, 3]),
)
@settings(derandomize=True, max_examples=250, deadline=None)
def test_the_model_counts_what_the_real_ends_count_after_every_move(
    choices, rule, start, grants, first
):
    """Random schedules under every rule: counters of both ends and frames in flight are equal."""
    model = LinkModel(
        messages=6,
        grants=grants,
        rule=RULES[rule].rule,
        initial_delivery_count=start,
        first_credit=first,
    )
    moves = schedule(model, choices)
    played = play_model(model, moves, rule)
    assert [action.name for action in played.actions] == [ACT_OF_MOVE[move] for move in moves]
    states = states_along(model, moves)[1:]
    credits = credit_of_receiver(model, moves)
    for number, (state, credit) in enumerate(zip(states, credits, strict=True)):
        view = model.describe(state)
        found = standing(played.rows[: seq_of_move(played, number) + 1])
        assert found.sender == (view.snd_delivery_count, view.snd_link_credit)
        assert found.receiver == (view.rcv_delivery_count, credit)
        assert found.transfers == view.transfers_in_flight
        assert found.flows == view.flows_in_flight
        assert found.transfers == serial.diff(found.sender[0], found.receiver[0])
        made = moves[: number + 1].count(SEND_TRANSFER)
        assert view.messages_left == model.messages - made


@given(CHOICES, st.sampled_from(sorted(RULES)), st.sampled_from(STARTS))
@settings(derandomize=True, max_examples=60, deadline=None)
def test_a_flow_is_marked_exactly_where_the_rule_of_2_6_7_gives_another_number(
    choices, rule, start
):
    """The words hold under every rule: what 2.6.7 gives, and whether this sender took it."""
    model = LinkModel(
        messages=6, grants=(3, 6, 1), rule=RULES[rule].rule, initial_delivery_count=start
    )
    moves = schedule(model, choices)
    played = play_model(model, moves, rule)
    told = list(explain(played.rows))
    before = model.initial
    for number, after in enumerate(states_along(model, moves)[1:]):
        if moves[number] == FLOW_ARRIVES:
            (count, credit), (own, taken) = before[7][0], after[:2]
            right = link_credit_snd(count, credit, own)
            explained = told[seq_of_move(played, number)]
            assert (OTHER_RULE in explained.reasons) is (taken != right)
            assert (explained.formulas[0].agrees is False) is (taken != right)
            assert ("it follows another rule" in explained.sentence) is (taken != right)
        before = after
    assert rule != "spec" or not any(OTHER_RULE in explained.reasons for explained in told)


@given(
    CHOICES,
    st.sampled_from(sorted(RULES)),
    st.sampled_from(STARTS),
    st.sampled_from([0, 1, 1000, 5000]),
)
@settings(derandomize=True, max_examples=60, deadline=None)
def test_all_moves_at_once_give_the_run_that_one_after_the_other_gives(
    choices, rule, start, latency
):
    """Playing is quicker than acting again and again, and gives the same run, row for row."""
    model = LinkModel(
        messages=4, grants=(2, 5), rule=RULES[rule].rule, initial_delivery_count=start
    )
    moves = schedule(model, choices)
    at_once = play(
        moves,
        messages=model.messages,
        grants=model.grants,
        rule=rule,
        initial_delivery_count=start,
        latency_us=latency,
    )
    parameters = {
        "messages": model.messages,
        "grants": "2,5",
        "rule": rule,
        "initial_delivery_count": start,
        "latency_us": latency,
    }
    single = run("race", parameters=parameters)
    for move in moves:
        single = single.act(single.rows[-1].seq, ACT_OF_MOVE[move])
    assert at_once.identity() == single.identity()
    assert trace_hash(at_once.rows) == trace_hash(single.rows)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "emergency_brake" else name
        for name in names()
        if get(name).actions
    ],
)
def test_acts_at_rest_are_the_same_at_once_and_one_by_one_in_every_scenario(name):
    """Any two acts that need no arguments: one run, or one refusal, whichever way."""
    begun = run(name)
    free = [
        act.name
        for act in begun.scenario.actions
        if not any(argument.required for argument in act.parameters)
    ]
    for pair in zip(free, [*free[1:], *free[:1]], strict=True):
        try:
            single = begun
            for act in pair:
                single = single.act(single.rows[-1].seq, act)
        except ActionError:
            with pytest.raises(ActionError):
                begun.act_each(pair)
        else:
            at_once = begun.act_each(pair)
            assert at_once.identity() == single.identity()
            assert trace_hash(at_once.rows) == trace_hash(single.rows)


def test_a_long_schedule_is_played_a_few_times_only(monkeypatch):
    """The number of plays does not grow with the number of moves."""
    plays = []
    execute = Run._execute

    def counted(self, *arguments, **keywords):
        plays.append(1)
        return execute(self, *arguments, **keywords)

    monkeypatch.setattr(Run, "_execute", counted)
    moves = [SEND_FLOW, FLOW_ARRIVES, *[SEND_TRANSFER, TRANSFER_ARRIVES] * 19]
    played = play(moves, messages=40, grants=(40,))
    assert len(played.actions) == len(moves) == 40
    assert len(plays) <= 3


def test_where_time_between_a_row_and_rest_matters_each_act_is_waited_for(monkeypatch):
    """If the quick way gives another order of rows, the schedule is played move by move."""
    module = importlib.import_module("workbench.scenarios.run")
    moves = [SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER]
    quick = play(moves, grants=(3,))
    seen = iter(range(10**6))
    monkeypatch.setattr(module, "_shape", lambda row: next(seen))  # nothing is ever alike
    assert trace_hash(play(moves, grants=(3,)).rows) == trace_hash(quick.rows)


def test_no_move_at_all_is_the_run_as_it_began():
    """An empty schedule."""
    assert play([]).actions == ()
    begun = run("race")
    assert moved(begun, []) is begun


def test_seq_of_a_move_is_the_last_row_that_it_caused():
    """The rows of the moves follow each other without a gap, to the end of the run."""
    moves = [SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER, TRANSFER_ARRIVES]
    played = play(moves, grants=(3,))
    ends = [seq_of_move(played, number) for number in range(len(moves))]
    starts = [row.seq for row in played.rows if row.event == "action"]
    assert starts == [played.start_seq + 1, *(end + 1 for end in ends[:-1])]
    assert ends[-1] == played.rows[-1].seq
    for outside in (-1, len(moves)):
        with pytest.raises(ValueError, match=re.escape(f"move {outside} was not made")):
            seq_of_move(played, outside)


def test_the_refusal_of_a_move_says_which_and_what_would_be_legal():
    """The second of three moves: nothing has arrived yet that gives credit."""
    with pytest.raises(
        ActionError, match=r"action 2, send_transfer: .*credit 0.*legal now: send next fl"
    ):
        play([SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES], grants=(3, 6))
    with pytest.raises(ActionError, match=f"no move 'jump'.*{MOVES[0]}"):
        play(["jump"])


def test_a_cursor_between_two_moves_shows_both_ledgers_as_they_were():
    """The rows up to a move, folded: what the stepper draws there."""
    moves = [SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER]
    played = play(moves, grants=(3,), initial_delivery_count=2**32 - 1)
    between = state_after(played.rows, upto=seq_of_move(played, 1))
    counters = {
        vantage: (between.ledgers[vantage, scope]["delivery_count"], ledger["link_credit"])
        for (vantage, scope), ledger in between.ledgers.items()
        if scope.group == "link"
    }
    assert counters == {"broker": (2**32 - 1, 3), "client:receiver": (2**32 - 1, 3)}
    assert standing(played.rows).sender == (0, 2)
