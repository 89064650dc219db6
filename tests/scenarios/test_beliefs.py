"""Beliefs about credit and windows: each has a shortest counterexample, as the broker confirms."""

import pytest

from workbench.languages import ENGLISH, words_in
from workbench.scenarios.beliefs import (
    ALL,
    BELIEFS,
    BOUNDS,
    SHOWN,
    Belief,
    belief_named,
    counterexample,
)
from workbench.scenarios.link_model import LinkModel
from workbench.scenarios.rules import RULES
from workbench.scenarios.schedules import moved, play_model
from workbench.scenarios.window_beliefs import WINDOW_BELIEFS, WindowBelief
from workbench.sim.explorer import explore
from workbench.trace.explain import explain
from workbench.views.scene import parts_at

NAMES = tuple(BELIEFS)


@pytest.mark.parametrize("name", NAMES)
def test_the_broker_s_sender_has_the_actual_credit_and_not_the_believed_one(name):
    """At the last row of the played schedule the real link's counter is the truth of the model."""
    found = counterexample(name)
    played = found.run()
    ledgers = [
        row.ledger["link_credit"]
        for row in played.rows
        if row.vantage == "broker"
        and row.link == "receiver"
        and row.ledger
        and "link_credit" in row.ledger
    ]
    assert ledgers[-1] == found.actual
    assert found.actual != found.believed
    assert found.at(played) == played.rows[-1].seq
    assert str(found.believed) in found.text
    assert str(found.actual) in found.text


@pytest.mark.parametrize("name", WINDOW_BELIEFS)
def test_the_broker_s_session_has_the_actual_window_where_the_two_part(name):
    """The model's numbers are those of the real session, and of the picture, in the last move."""
    found = counterexample(name)
    played = found.run()
    at = parts_at(played, name)
    acts = [row.seq for row in played.rows if row.event == "action"]
    assert len(acts) == len(found.moves)
    assert at >= acts[-1]
    windows = [
        row.ledger["remote_incoming_window"]
        for row in played.rows[: at + 1]
        if (row.vantage, row.session) == ("broker", 1)
        if row.ledger and "remote_incoming_window" in row.ledger
    ]
    assert windows[-1] == found.actual != found.believed
    assert "remote-incoming-window" in found.text


@pytest.mark.parametrize("name", ALL)
def test_no_shorter_schedule_shows_it(name):
    """One move less, and belief and truth still agree: the explorer's promise."""
    found = counterexample(name)
    shorter = counterexample(name)
    assert len(shorter.moves) == len(found.moves)
    model = found.model
    frontier = {model.initial}
    for _ in range(len(found.moves) - 1):
        frontier |= {after for state in frontier for _, after in model.successors(state)}
    assert not any(model.bad(state) for state in frontier)


def over_granting(rule, grants=(3, 6)):
    """A link whose sender works by a wrong rule, and the search for where it may send too much."""
    model = LinkModel(messages=10, grants=grants, rule=RULES[rule].rule)
    return model, explore(model, BOUNDS, stop_at_bad=True)


@pytest.mark.parametrize("rule", ["add", "set"])
def test_a_sender_that_works_by_it_may_send_more_than_was_ever_granted(rule):
    """The over-granting schedule runs on the broker with that rule, and its credit shows it."""
    model, found = over_granting(rule)
    view = model.describe(found.bad_states[0])
    played = play_model(model, found.shortest, rule)
    assert view.snd_link_credit > max(0, view.allowed)
    assert played.rows[-1].ledger["link_credit"] == view.snd_link_credit
    assert found.shortest


def test_the_shortest_over_granting_schedules_are_the_known_ones():
    """As an independent search of the same link found them: four moves, and five."""
    send, land, transfer = "send-flow", "flow-arrives", "send-transfer"
    assert over_granting("add")[1].shortest == (send, send, land, land)
    assert over_granting("set")[1].shortest == (send, send, land, transfer, land)


def test_a_counterexample_is_of_a_sender_by_the_specification():
    """Whoever believes otherwise looks on."""
    for name in ("adds", "sets"):
        assert counterexample(name).run().parameters["rule"] == "spec"


@pytest.mark.parametrize("rule", ["add", "set"])
def test_the_over_granting_sender_really_sends_more_than_was_granted(rule):
    """Played on, the receiver's count passes the furthest limit that it ever granted."""
    model, found = over_granting(rule)
    view = model.describe(found.bad_states[0])
    believed, actual = view.snd_link_credit, max(0, view.allowed)
    played = play_model(model, found.shortest, rule)
    flows = [row.frame for row in played.rows if row.event == "sent" and row.kind == "flow"]
    flows = [frame for frame in flows if frame.get("link_credit") is not None]
    limit = max(frame["delivery_count"] + frame["link_credit"] for frame in flows)
    played = moved(played, ["send-transfer"] * believed)
    assert played.rows[-1].ledger["delivery_count"] == limit + believed - actual
    assert believed > actual


def test_with_one_grant_the_wrong_rules_break_no_limit():
    """No schedule exists then, and none is invented."""
    assert over_granting("add", grants=(3,))[1].shortest is None
    assert over_granting("set", grants=(3,))[1].shortest is None


def test_what_is_true_has_no_counterexample():
    """The truth, held as a belief, is not refuted."""
    assert counterexample(Belief(name="truth")) is None
    assert counterexample(WindowBelief(name="truth")) is None


def test_the_table_has_words_for_every_belief_and_rule_and_for_no_other():
    """They are found by the name alone."""
    table = words_in(ENGLISH, "beliefs")
    assert table["belief"].keys() == SHOWN.keys()
    assert table["rule"].keys() == RULES.keys()


def test_an_unknown_belief_is_refused_with_the_names():
    """The text lists them."""
    with pytest.raises(ValueError, match="drain is pause"):
        belief_named("everything is fine")


@pytest.mark.parametrize("name", ALL)
def test_the_last_row_can_be_explained(name):
    """The stepper opens there, so there is a sentence."""
    played = counterexample(name).run()
    assert list(explain(played.rows))[-1].sentence
