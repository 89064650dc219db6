"""The link as a model: what the explorer finds with the right rule and with wrong ones."""

import pytest

from workbench.amqp10 import flow
from workbench.frontends import outgoing_link
from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    MOVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
    LinkModel,
)
from workbench.scenarios.rules import RULES, rule_named
from workbench.sim.explorer import explore

STARTS = [0, 20, 2**31, 2**32 - 2]


def explored(messages, grants, rule, start=0):
    """Everything reachable."""
    return explore(
        LinkModel(
            messages=messages,
            grants=grants,
            rule=RULES[rule].rule,
            initial_delivery_count=start,
        )
    )


# Counted by a forty-line search of another author, before this model was written.
COUNTS = [
    (4, (2,), {"spec": (8, 0), "set": (8, 0), "add": (8, 0)}),
    (6, (3, 6), {"spec": (107, 0), "set": (233, 126), "add": (107, 64)}),
    (10, (3, 6), {"spec": (145, 0), "set": (383, 238), "add": (197, 136)}),
    (20, (5, 5, 5, 5), {"spec": (2861, 0), "set": (17456, 13755), "add": (5331, 4290)}),
]


@pytest.mark.parametrize(("messages", "grants", "counts"), COUNTS)
@pytest.mark.parametrize("rule", ["spec", "set", "add"])
def test_states_and_bad_states_are_those_of_an_independent_search(messages, grants, counts, rule):
    """The lattice is the one that another program counted (teaching note 3.0)."""
    found = explored(messages, grants, rule)
    assert (found.states, found.bad) == counts[rule]
    assert found.complete


def test_the_shortest_bad_schedules():
    """By *set* it takes five moves to be entitled to too much, by *add* four, by the rule none."""
    flows = (SEND_FLOW, SEND_FLOW, FLOW_ARRIVES)
    assert explored(10, (3, 6), "spec").shortest is None
    assert explored(10, (3, 6), "set").shortest == (*flows, SEND_TRANSFER, FLOW_ARRIVES)
    assert explored(10, (3, 6), "add").shortest == (*flows, FLOW_ARRIVES)


@pytest.mark.parametrize("rule", ["spec", "set", "add"])
def test_the_verdict_does_not_depend_on_the_first_delivery_count(rule):
    """Serial numbers: starts 0, 20, 2^31 and 2^32 - 2 give the same states, faults and schedule."""
    seen = {
        (found.states, found.bad, found.shortest)
        for found in (explored(10, (3, 6), rule, start) for start in STARTS)
    }
    assert len(seen) == 1


def test_a_subtraction_that_does_not_wrap_fails_where_counts_wrap_and_only_there():
    """The naive formula is right from 0 and wrong from 2^32 - 2 on [RFC 1982]."""
    right = explored(10, (3, 6), "spec")
    assert explored(10, (3, 6), "naive").states == right.states
    wrapped = explored(10, (3, 6), "naive", 2**32 - 2)
    assert (wrapped.states, wrapped.bad) != (right.states, right.bad)


def test_one_grant_only_and_every_rule_passes():
    """A test with one flow cannot tell a wrong rule from the right one."""
    found = [explored(10, (4,), rule) for rule in ("spec", "set", "add")]
    assert len({each.states for each in found}) == 1
    assert all(each.bad == 0 for each in found)


def test_a_receiver_that_lowers_its_credit_makes_no_state_bad():
    """Overrun of the last word is legitimate: the furthest word counts [2.6.7]."""
    assert explored(10, (6, 1), "spec").bad == 0


def test_the_right_rule_is_the_function_of_the_broker_s_links(monkeypatch):
    """Another `link_credit_snd` gives another lattice: model and broker call the same code."""
    before = explored(10, (3, 6), "spec")
    monkeypatch.setattr(outgoing_link, "link_credit_snd", lambda dc, credit, own: credit)
    after = explored(10, (3, 6), "spec")
    assert (after.states, after.bad) != (before.states, before.bad)
    assert flow.link_credit_snd(20, 6, 21) == 5


def test_legal_moves_are_the_successors_and_the_others_say_why():
    """`legal`, `after` and `successors` tell one story in every state."""
    model = LinkModel(messages=2, grants=(1, 2))
    for state in explore(model).ordered:
        possible = dict(model.successors(state))
        for move, why in model.legal(state).items():
            if why is None:
                assert model.after(state, move) == possible[move]
            else:
                assert move not in possible
                with pytest.raises(ValueError, match="not possible"):
                    model.after(state, move)
    assert set(model.legal(model.initial)) == set(MOVES)
    with pytest.raises(ValueError, match=TRANSFER_ARRIVES):
        model.after(model.initial, "fly")


@pytest.mark.slow
def test_the_largest_row_of_the_table_is_counted_whole():
    """Forty messages and six grants of ten by the specification's rule: no bound is met."""
    found = explored(40, (10,) * 6, "spec")
    assert (found.states, found.bad, found.complete) == (315_355, 0, True)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("rule", ["spec", "set", "add"])
def test_every_rule_starts_anywhere_with_the_same_depths(rule, start):
    """Not the totals alone: each depth has as many states as from 0."""
    assert explored(6, (3, 6), rule, start).levels() == explored(6, (3, 6), rule).levels()


def test_the_article_s_race_gives_five_in_both_orders():
    """Count 20, credit 3 at both ends: flow(20, 6) before or after one message, then 5 [2.6.7]."""
    model = LinkModel(messages=10, grants=(6,), initial_delivery_count=20, first_credit=3)
    for order in (
        (SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES, TRANSFER_ARRIVES),
        (SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER, TRANSFER_ARRIVES),
    ):
        state = model.initial
        for move in order:
            state = model.after(state, move)
        view = model.describe(state)
        assert (view.snd_delivery_count, view.snd_link_credit, view.allowed) == (21, 5, 5)


@pytest.mark.parametrize(
    "given",
    [
        {"messages": -1, "grants": (1,)},
        {"messages": 1, "grants": (-1,)},
        {"messages": 1, "grants": (2**31 - 1,)},
        {"messages": 2**31, "grants": ()},
        {"messages": 1, "grants": (), "initial_delivery_count": 2**32},
        {"messages": 1, "grants": (), "first_credit": -1},
    ],
)
def test_numbers_without_an_order_are_refused_when_the_model_is_made(given):
    """So that no schedule meets two counts half a circle apart; the text says what is legal."""
    with pytest.raises(ValueError, match="legal"):
        LinkModel(**given)


def test_the_greatest_numbers_that_are_legal_can_be_explored():
    """Just below half a circle, from a start just before the wrap."""
    for rule in RULES:
        found = explored(4, (1, 1, 2**31 - 5), rule, 2**32 - 2)
        assert found.complete


def test_an_unknown_rule_is_refused_with_the_names_there_are():
    """The text lists them."""
    with pytest.raises(ValueError, match="spec, set, add"):
        rule_named("guess")
