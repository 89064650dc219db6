"""Each step explained: what changed, and whether it is worth stopping at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trace.rows import Hand, last, link, race, state_after
from workbench.capture.importer import import_capture
from workbench.scenarios import run
from workbench.trace import explain, transcript


def extra(**fields: Any) -> str:
    return json.dumps(fields)


def test_interesting_steps_of_the_race():
    """Counters begin to differ, a grant arrives, counters agree again; the rest is passed over."""
    assert [next(iter(told.reasons), None) for told in explain(race())] == [
        None,
        None,
        "counters disagree",
        None,
        "grant arrives",
        "counters agree again",
    ]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("hold", "hold"), ("release", "release"), ("error", "error"), ("gap", "error"),
        ("alarm-set", "alarm"), ("alarm-clear", "alarm"), ("elect", "leader elected"),
    ],
)  # fmt: skip
def test_what_turns_a_run_is_interesting(event, reason):
    """A hand on the wire, something that went wrong, an alarm, a new leader."""
    hand = Hand()
    hand.internal(event, "broker")
    assert last(hand).reasons[0] == reason


@pytest.mark.parametrize(
    ("kind", "reason"), [("queue-flow", "queue stops or frees its senders"), ("q", None)]
)
def test_a_queue_that_stops_or_frees_its_senders_is_interesting(kind, reason):
    """But not each process that waits for the credit of another one: there are thousands."""
    hand = Hand()
    for event in ("block", "unblock"):
        hand.internal(event, "queue:q", kind=kind)
        assert next(iter(last(hand).reasons), None) == reason


def test_a_link_that_begins_without_credit_is_not_a_credit_that_ran_out():
    """Credit reaches 0 when it was above 0 before."""
    hand = Hand()
    hand.sent("broker", "attach", link(0, 0), name="l", role="sender", handle=0)
    assert not last(hand).reasons


def test_an_error_in_a_frame_is_interesting():
    """A detach, end or close with an error is where to look."""
    hand = Hand()
    hand.sent("client", "close", None, extra_json=extra(error={"condition": "amqp:x"}))
    assert last(hand).reasons[0] == "error"


def test_a_slice_is_explained_as_in_the_whole():
    """With the state just before it, changes, formulas and reasons of a slice are the same."""
    rows = race()
    whole = list(explain(rows))
    for cut in range(1, len(rows)):
        start = state_after(rows, upto=cut - 1)
        part = list(explain(rows[cut:], start))
        assert [told.formulas for told in part] == [told.formulas for told in whole[cut:]]
        assert [told.changes for told in part] == [told.changes for told in whole[cut:]]
        assert [told.reasons for told in part] == [told.reasons for told in whole[cut:]]


def test_changes_name_end_scope_and_both_values():
    """What this step moved, and at whose end."""
    there = list(explain(race()))[3]
    assert [
        (change.vantage, change.scope.group, change.field, change.before, change.after)
        for change in there.changes
    ] == [
        ("broker", "link", "delivery_count", 20, 21),
        ("broker", "link", "link_credit", 3, 2),
        ("broker", "link", "available", 9, 8),
        ("broker", "session", "next_outgoing_id", None, 8),
        ("broker", "session", "remote_incoming_window", None, 99),
    ]


CAPTURES = sorted((Path(__file__).parents[2] / "data" / "captures").glob("*.pcapng"))


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_formulas_give_the_observers_numbers_on_captures_of_a_real_broker(capture):
    """Two ways to one number: the clause's formula here, the observer's bookkeeping there."""
    rows = import_capture(capture).rows
    told = list(explain(rows))
    checked = [formula for explanation in told for formula in explanation.formulas]
    assert [formula.numbers for formula in checked if formula.agrees is False] == []
    assert sum(formula.agrees is True for formula in checked) > 10
    assert all(told.clause for told, row in zip(told, rows, strict=True) if row.is_frame)


@pytest.mark.parametrize("policy", ["manual", "one-at-a-time", "top-up-at-half"])
def test_formulas_give_the_endpoints_numbers_in_a_whole_run(policy):
    """A queue, a broker and a client: each number logged follows from the clause."""
    played = run("credit", parameters={"policy": policy, "messages": 30, "n": 8})
    if policy == "manual":
        played = played.act(len(played.rows) - 1, "grant", link_credit=3)
    told = list(explain(played.rows))
    checked = [formula for explanation in told for formula in explanation.formulas]
    assert [formula.numbers for formula in checked if formula.agrees is False] == []
    assert sum(formula.agrees is True for formula in checked) > 10
    reasons = {reason for explanation in told for reason in explanation.reasons}
    assert {"grant arrives", "counters disagree", "credit reaches 0"} <= reasons
    assert "The receiver grants" in " ".join(transcript(played.rows))
