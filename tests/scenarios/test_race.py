"""The race on the real broker: a schedule of the model, move for move, with the same counters."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import serial
from workbench.scenarios import ActionError, ParameterError, run
from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
    LinkModel,
)
from workbench.scenarios.race import ACT_OF_MOVE, FlowPlan, plans_of
from workbench.scenarios.rules import RULES
from workbench.scenarios.schedules import play, play_model, seq_of_move, states_along
from workbench.trace.explain import explain

STARTS = [0, 20, 2**31, 2**32 - 2]
ARTICLE = {"grants": (6,), "first_credit": 3, "initial_delivery_count": 20}


def counters(played):
    """(delivery-count, link-credit) of sender and receiver at the end, and the frames in flight."""
    last = {}
    for row in played.rows:
        if row.link == "receiver" and row.ledger and "link_credit" in row.ledger:
            last[row.vantage] = (row.ledger.get("delivery_count"), row.ledger["link_credit"])
    flights = played.world.wires["c1"].in_flight()
    kinds = [flight.item.performative.NAME for flight in flights]
    flows = tuple(
        (flight.item.performative.delivery_count, flight.item.performative.link_credit)
        for flight in flights
        if flight.item.performative.NAME == "flow"
    )
    return last["broker"], last["client:receiver"], kinds.count("transfer"), flows


@pytest.mark.parametrize(
    "order",
    [
        (SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES, TRANSFER_ARRIVES),
        (SEND_FLOW, SEND_TRANSFER, TRANSFER_ARRIVES, FLOW_ARRIVES),
        (SEND_TRANSFER, SEND_FLOW, FLOW_ARRIVES, TRANSFER_ARRIVES),
        (SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER, TRANSFER_ARRIVES),
    ],
)
def test_the_article_s_race_ends_with_five_and_five_whoever_lands_first(order):
    """delivery-count 20, credit 3; flow(20, 6) crosses a transfer: 20 + 6 - 21 = 5 at both ends."""
    sender, receiver, transfers, flows = counters(play(order, **ARTICLE))
    assert sender == receiver == (21, 5)
    assert (transfers, flows) == (0, ())


@pytest.mark.parametrize(("rule", "credit"), [("set", 6), ("add", 8)])
def test_in_the_article_s_race_a_wrong_rule_leaves_the_sender_with_too_much(rule, credit):
    """The receiver counts 5, a sender that sets or adds has more."""
    order = (SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES, TRANSFER_ARRIVES)
    sender, receiver, _, _ = counters(play(order, rule=rule, **ARTICLE))
    assert sender == (21, credit)
    assert receiver == (21, 5)


SCHEDULES = st.lists(st.integers(0, 3), max_size=14)


@given(
    SCHEDULES,
    st.sampled_from(sorted(RULES)),
    st.sampled_from(STARTS),
    st.sampled_from([(3, 6), (2, 0, 4), (5, 5, 1)]),
)
@settings(derandomize=True, max_examples=60, deadline=None)
def test_the_model_counts_what_the_real_ends_count_after_every_move(choices, rule, start, grants):
    """Random schedules under every rule: counters of both ends and frames in flight are equal."""
    model = LinkModel(
        messages=4, grants=grants, rule=RULES[rule].rule, initial_delivery_count=start
    )
    moves, state = [], model.initial
    for choice in choices:
        possible = list(model.successors(state))
        if not possible:
            break
        move, state = possible[choice % len(possible)]
        moves.append(move)
    played = play_model(model, moves, rule)
    for number, reached in enumerate(states_along(model, moves)[1:]):
        at = seq_of_move(played, number)
        prefix = play_model(model, moves[: number + 1], rule)
        assert [row.kind for row in prefix.rows] == [row.kind for row in played.rows[: at + 1]]
        view = model.describe(reached)
        sender, receiver, transfers, flows = counters(prefix)
        assert sender[0] == view.snd_delivery_count
        assert sender[1] == view.snd_link_credit
        assert receiver[0] == view.rcv_delivery_count
        assert (transfers, flows) == (view.transfers_in_flight, view.flows_in_flight)


def test_in_flight_is_the_difference_of_the_delivery_counts():
    """delivery-count of the sender less that of the receiver is what is on the wire."""
    moves = [SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER, SEND_TRANSFER, TRANSFER_ARRIVES, SEND_TRANSFER]
    played = play(moves, grants=(5,), initial_delivery_count=2**32 - 2)
    (sent, _), (arrived, _), transfers, _ = counters(played)
    assert serial.diff(sent, arrived) == transfers == 2


def test_a_move_that_is_not_possible_says_why_and_what_is():
    """At credit 0 nothing can be sent; what never was sent cannot arrive."""
    link = run("race")
    for act, why in (
        ("send_transfer", "link-credit 0"),
        ("transfer_arrives", "no transfer is in flight"),
        ("flow_arrives", "no flow is in flight"),
        ("send_other", "no other link"),
    ):
        with pytest.raises(ActionError, match=f"{why}.*legal now: send_flow"):
            link.act(link.rows[-1].seq, act)
    done = play([SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER], messages=1, grants=(2,))
    for act, why in (("send_flow", "all of its 1 flows"), ("send_transfer", "no message left")):
        with pytest.raises(ActionError, match=why):
            done.act(done.rows[-1].seq, act)


def test_a_learner_s_rule_plays_and_is_no_part_of_the_run_s_identity():
    """Code cannot be put into a name or a code to share."""
    mine = play(
        [SEND_FLOW, FLOW_ARRIVES],
        grants=(3,),
        rule="yours",
        rule_function=lambda dc, credit, own, left: credit * 2,
    )
    assert counters(mine)[0] == (0, 6)
    other = play([], grants=(3,), rule="yours", rule_function=lambda dc, credit, own, left: 0)
    again = play([], grants=(3,), rule="yours", rule_function=lambda dc, credit, own, left: 1)
    assert other.name == again.name


def test_a_learner_s_mistake_ends_the_run_with_its_words():
    """A rule that raises is told in the run's note; nothing else breaks."""

    def broken(dc, credit, own, left):
        raise ValueError("no idea")

    played = play([SEND_FLOW, FLOW_ARRIVES], grants=(3,), rule="yours", rule_function=broken)
    assert played.note == "no idea"
    assert not played.rested


def test_yours_without_a_function_is_refused():
    """The text says how to give one."""
    with pytest.raises(ParameterError, match="code="):
        run("race", parameters={"rule": "yours"})


def test_flows_are_read_from_text_and_written_back():
    """`3, 6 drain, 3 echo`."""
    plans = (FlowPlan(3), FlowPlan(6, drain=True), FlowPlan(3, echo=True))
    assert plans_of("3, 6 drain, 3 echo") == plans
    assert plans_of(",".join(map(str, plans))) == plans
    assert plans_of("") == ()
    for bad in ("3,", "-1", "x", "4294967296", "3 4", "3 drian", ",".join(["1"] * 101)):
        with pytest.raises(ParameterError, match="grants has"):
            plans_of(bad)


def test_an_overrun_is_taken_or_ends_the_link_as_the_receiver_chooses():
    """Beyond its credit a receiver may take a message or detach with transfer-limit-exceeded."""
    schedule = [
        SEND_FLOW,
        SEND_FLOW,
        FLOW_ARRIVES,
        FLOW_ARRIVES,
        SEND_TRANSFER,
        TRANSFER_ARRIVES,
        SEND_TRANSFER,
        TRANSFER_ARRIVES,
    ]
    model = {"grants": (1, 1), "rule": "add"}
    taken = play(schedule, **model)
    assert counters(taken)[1][1] == 0
    refused = play(schedule, overrun="detach", **model)
    detaches = [row for row in refused.rows if row.kind == "detach" and row.event == "sent"]
    assert "transfer-limit-exceeded" in str(detaches[0].frame)
    assert detaches[0].vantage == "client:receiver"


def test_every_act_is_a_move():
    """The names differ only in their dashes."""
    assert ACT_OF_MOVE[SEND_FLOW] == "send_flow"


@pytest.mark.parametrize("rule", ["set", "add"])
def test_a_wrong_rule_s_row_tells_what_the_rule_would_have_given(rule):
    """The words stay true: the formula with its numbers, and what this sender made of it."""
    order = (SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES)
    played = play(order, rule=rule, **ARTICLE)
    told = list(explain(played.rows))[-1]
    assert "20 + 6 − 21 = 5" in told.formula
    assert str(counters(played)[0][1]) in told.sentence
