"""Something to send and a brake on: the same intervals by Spark and by a plain fold."""

from dataclasses import replace

import pytest

from tests.trace.rows import Hand, link
from workbench import folds
from workbench.analysis.chunks import Chunks
from workbench.analysis.stalls import stalls
from workbench.folds.counters import Counters
from workbench.folds.stalls import PROMPT_US
from workbench.folds.vantage import ends
from workbench.scenarios.big_trace import episodes

from .made import STOPPED, made_rows, told_apart
from .runs import SCENARIOS, all_rows, begun_late, capture_rows, scenario_rows


@pytest.fixture(scope="module")
def rows():
    """Every scenario, every capture, planted stalls, and 60 runs that are spoiled."""
    planted = [
        replace(row, run=f"planted {number}")
        for number, episode in enumerate(episodes())
        for row in episode.rows
    ]
    made = [*stated(), *second_late(), *ended_by_a_transfer(), *told_apart()]
    return [*all_rows(), *planted, *made, *made_rows(seed=11, runs=60)]


def stated():
    """A capture begun between a link's attaches, whose sender says that messages wait."""
    rows = [replace(row, run="stated") for row in begun_late() if row.run == "f_memory_alarm"]
    at = next(
        at for at, row in enumerate(rows) if row.kind == "transfer" and row.link == rows[0].link
    )
    fields = {"handle": rows[at].frame["handle"], "delivery_count": 0, "available": 3}
    rows[at] = replace(rows[at], kind="flow", frame=fields)
    return rows


def second_late():
    """A capture in which the second message behind each flow comes long after the first."""
    rows, behind, late_us = [], 0, 0
    for row in capture_rows():
        if not row.run.startswith(STOPPED):
            continue
        behind = 0 if row.kind == "flow" else behind + (row.kind == "transfer")
        late_us += 2 * PROMPT_US if (row.kind, behind) == ("transfer", 2) else 0
        rows.append(replace(row, run="second late", t_us=row.t_us + late_us))
    return rows


def ended_by_a_transfer():
    """The importer finds out with a transfer that its sender has credit; the next come at once."""
    hand = Hand(t_us=1_000)
    hand.observed("client", "flow", handle=0, delivery_count=0, link_credit=5)
    for count in (5, 1, 2, 3):
        hand.observed("broker", "transfer", link(count, 0), handle=0, delivery_id=count)
    return [replace(row, run="ended by a transfer", attach_no=None) for row in hand.rows]


def test_a_burst_ends_with_its_first_late_message():
    """However soon the first message came behind the grant."""
    found = {row.seq: row.messages_waiting for row in folds.stalls(second_late())}
    whole = [row for row in capture_rows() if row.run.startswith(STOPPED)]
    assert {row.seq for row in folds.stalls(whole)} == set(found)
    assert set(found.values()) == {1}
    assert {row.messages_waiting for row in folds.stalls(whole)} == {4, 7, 10}


def test_a_row_of_another_link_or_of_none_ends_no_stall_and_hides_none():
    """A window that is closed for the session and opened by a link; a detach behind a gap."""
    found = {
        (row.run, row.link, row.brake): row.end_us - row.start_us
        for row in folds.stalls(told_apart())
        if row.end_us - row.start_us > 1_000_000
    }
    assert found == {
        ("reopened by a link", "a", "alarm"): 3_000_000,
        ("detached behind a gap", "b", "link-credit"): 5_000_000,
    }


def test_what_follows_the_transfer_that_ends_a_hold_is_its_proof():
    """It was sent with the credit that came; those behind it had waited."""
    (found,) = folds.stalls(ended_by_a_transfer())
    assert (found.seq, found.end_us, found.messages_waiting) == (1, 2_000, 2)


def test_of_what_was_granted_before_the_capture_no_stall_is_known():
    """Grants may have gone by a handle that nobody knows; Spark is asked it among `rows`."""
    rows = stated()
    assert not [row for row in folds.stalls(rows) if row.link == rows[0].link]


@pytest.mark.parametrize(
    ("chunks", "min_us"),
    [
        pytest.param(Chunks(rows=37, tasks=3), 0, id="cut", marks=pytest.mark.slow),
        pytest.param(Chunks(tasks=3, whole=True), 1_000, id="whole", marks=pytest.mark.slow),
    ],
)
def test_a_plain_fold_finds_the_same_stalls(as_trace, rows, chunks, min_us):
    """Random starts, drains, links attached again or interleaved, lost beginnings, captures."""
    answer = stalls(min_us=min_us, chunks=chunks)(as_trace(rows)).collect()
    found = sorted(map(tuple, answer), key=lambda row: (row[0], row[6], str(row[:6])))
    assert found == list(map(tuple, folds.stalls(rows, min_us=min_us)))


def test_the_rows_hold_what_they_are_for(rows):
    """Each kind of evidence and each brake is among them, and runs that begin late or wrap."""
    found = folds.stalls(rows)
    assert {row.evidence for row in found} == {"internal", "available", "later-frames"}
    assert {row.brake for row in found} >= {
        "link-credit", "session-window", "alarm", "unconfirmed",
    }  # fmt: skip
    drawn = " ".join(row.run for row in found)
    for change in ("shifted", "begun_late", "holed", "again", "captured", "one_sided"):
        assert change in drawn, change


@pytest.mark.parametrize("name", SCENARIOS)
def test_brakes_from_the_wire_are_those_that_were_recorded(name):
    """At every row of a sender of ours, credit 0 and window 0 are what its ledger says."""
    rows = scenario_rows()[name]
    for end in ends(rows):
        for step in Counters(end).steps():
            ledger = step.row.ledger or {}
            if step.link is None or not end.own or "link_credit" not in ledger:
                continue
            assert step.link.credit == ledger["link_credit"], step.row
            if "remote_incoming_window" in ledger and step.session is not None:
                assert step.session.left == ledger["remote_incoming_window"], step.row


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_trace_without_its_recorded_brakes_has_the_same_stalls(name):
    """Of what was recorded only a sender's knowledge of its own messages is used."""
    rows = scenario_rows()[name]
    kept = (
        "available", "prefetch_count", "unacknowledged", "credit_messages", "credit_octets",
    )  # fmt: skip
    bare = [
        replace(
            row, brake=None, brakes=(), unknown=(),
            ledger=None if row.ledger is None
            else {key: value for key, value in row.ledger.items()
                  if key in kept or not row.is_frame},
        )
        for row in rows
    ]  # fmt: skip
    assert folds.stalls(bare) == folds.stalls(rows)


def test_a_capture_needs_no_ledger():
    """The importer's reckoning is left out, and the stalls are the same."""
    rows = capture_rows()
    bare = [replace(row, ledger=None, ledger_source=None, brake=None, brakes=()) for row in rows]
    assert folds.stalls(bare) == folds.stalls(rows)


def test_a_message_in_the_middle_is_held_by_the_window_alone():
    """Its credit was spent on its first frame: rmq43_e, a window of 3 frames, 0.4 s."""
    rows = [row for row in capture_rows() if "large_message" in row.run]
    stall = folds.stalls(rows)[-1]
    assert stall.brake == "session-window"
    assert (stall.messages_waiting, stall.evidence) == (1, "later-frames")
    assert 350_000 < stall.end_us - stall.start_us < 450_000


def test_a_slow_answer_is_no_proof():
    """What comes later than a prompt sender would answer may have come by itself."""
    rows = [row for row in capture_rows() if "rmq43_b" in row.run]
    prompt = folds.stalls(rows)
    assert {row.evidence for row in prompt} == {"later-frames"}
    assert folds.stalls(rows, prompt_us=0) == []


def test_short_stalls_can_be_left_out():
    """From a length on; those of that length stay."""
    rows = [row for row in capture_rows() if "rmq43_b" in row.run]
    every = folds.stalls(rows)
    shortest = min(row.end_us - row.start_us for row in every)
    assert folds.stalls(rows, min_us=shortest) == every
    assert len(folds.stalls(rows, min_us=shortest + 1)) == len(every) - 1
