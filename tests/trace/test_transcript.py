"""The transcript tells the story of the pictures in lines of text."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.rows import Hand, any_row, race, state_after
from workbench.trace import Explainer, transcript
from workbench.trace.schema import EVENTS, Row
from workbench.trace.transcript import line as line_of
from workbench.trace.words import frame_text, visible


def test_race_reads_as_a_story():
    """Who did what, what it means, whose credit moved, with the formula's numbers."""
    lines = list(transcript(race()))
    assert lines[2] == (
        "row 2  t=0.200 ms  client:receiver sent flow(handle=0, delivery-count=20,"
        " link-credit=6): The receiver raises its credit from 3 to 6: the new number takes the"
        " place of the old one, so 6 messages may come, not 9. The sender does not know yet;"
        " receiver's credit 3 → 6  [20 + 6 = 26]"
    )
    assert lines[4] == (
        "row 4  t=0.400 ms  broker received flow(handle=0, delivery-count=20, link-credit=6):"
        " The grant reaches the sender: it may send 5 more messages, not 6, for it has sent 1"
        " that the flow does not count. 1 transfer frame is still on the way to the receiver, so"
        " the ends differ; sender's credit 2 → 5  [20 + 6 − 21 = 5]"
    )


def test_of_several_runs_each_is_read_for_itself():
    """What one run has said is not known in the next, though their connections have one name."""
    rows = race()
    again = [replace(row, run="again") for row in rows]
    assert list(transcript([*rows, *again])) == 2 * list(transcript(rows))


def test_a_slice_reads_as_it_does_in_the_whole():
    """With the state before it, the middle of a run tells the same."""
    rows = race()
    explainer = Explainer(state_after(rows, upto=2))
    told = [line_of(row, explainer.explain(row)) for row in rows[3:]]
    assert told == list(transcript(rows))[3:]


def test_a_lines_text_stays_one_line_whatever_peers_say():
    """Names of peers are text: no control character moves the cursor or turns the line around."""
    nasty = "\x1b[2J\n<img src=x onerror=alert(1)>\u202eevil\x00\u2028\ud800" + "x" * 500
    hand = Hand(link=nasty)
    hand.sent("client", "open", container_id=nasty, hostname=nasty)
    hand.sent("client", "attach", name=nasty, role="receiver", handle=0)
    hand.sent("client", "flow", {"link_credit": 1}, handle=0, link_credit=1)
    hand.sent("client", "close", extra_json='{"error":{"condition":"a\\u001b[0m","description":7}}')
    hand.sent("client", nasty)
    hand.internal("action", nasty, kind=nasty, details={"extra_json": '{"\\n":"\\r"}'})
    for line in transcript(hand.rows):
        assert line.isprintable()
        assert len(line) < 1000


def test_a_frame_of_a_log_without_times_is_told_without_one():
    """Its `t_us` counts frames; what a capture's clock has told is a time."""
    hand = Hand()
    hand.observed("client", "flow", {"link_credit": 1}, handle=0, link_credit=1)
    (row,) = hand.rows
    (logged,) = transcript([row])
    assert logged.startswith("row 0  t=?  wire observed flow(")
    (captured,) = transcript([replace(row, t_raw_us=5)])
    assert captured.startswith("row 0  t=0.000 ms  wire observed flow(")


def test_what_cannot_be_seen_is_written_out():
    """A reader sees what is there, not what a terminal makes of it."""
    assert visible("a\x1b[2Jb") == "a\\x1b[2Jb"
    assert visible("\u202e") == "\\u202e"
    assert visible("straße 日本") == "straße 日本"
    assert visible("x" * 100) == "x" * 80 + "… (100 characters)"
    for point in range(0x3000):
        shown = visible(chr(point))
        assert all(unicodedata.category(character)[0] != "C" for character in shown)


def test_secrets_of_sasl_are_counted_not_shown():
    """A transcript may be pasted anywhere."""
    hand = Hand()
    hand.sent("client", "sasl-init", mechanism="PLAIN", initial_response=b"\0guest\0secret")
    text = frame_text(hand.rows[0])
    assert text == "sasl-init(mechanism=PLAIN, initial-response=13 octets)"
    assert "secret" not in "".join(transcript(hand.rows))


STRANGE = [
    {"kind": "paged"},
    {"kind": "state", "vantage": "reader:c1"},
    {"kind": "ram-duration", "extra_json": '{"duration_ms": "x"}'},
    {"kind": "zz", "extra_json": '{"octets": "x", "count": [1], "frame_id": {}}'},
    {"event": "append", "vantage": "queue:q@n1"},
    {"event": "enqueue", "extra_json": '{"count": "x"}'},
    {"protocol": "amqp-0-10", "kind": "session.completed", "extra_json": '{"commands": [1, 2]}'},
    {"protocol": "amqp-0-9-1", "kind": "connection.tune", "extra_json": '{"frame_max": "x"}'},
]


@pytest.mark.parametrize("about", STRANGE, ids=lambda about: about.get("kind", about.get("event")))
def test_a_row_without_the_details_of_its_kind_is_told_plainly(about):
    """Somebody else has written it; `show` ended with a mistake of ours."""
    columns = {"run": "r", "seq": 0, "t_us": 0, "vantage": "broker", "protocol": "internal"}
    columns |= {"event": "note"} | about
    extra = columns.pop("extra_json", "{}")
    if "protocol" in about:
        place = {"amqp-0-10": "frame_010", "amqp-0-9-1": "frame_091"}[about["protocol"]]
        columns |= {"event": "observed", "from_peer": "broker", "frame_id": 0, "connection": "c1"}
    else:
        place = "details"
    (line,) = transcript([Row(**columns, **{place: {"extra_json": extra}})])
    said = line.partition(": ")[2]
    assert said[0].isupper()
    assert said.endswith(".")


KINDS = ["protocol-header", "heartbeat", "open", "begin", "attach", "flow", "transfer"]
KINDS += ["disposition", "detach", "end", "close", "sasl-mechanisms", "sasl-init"]
KINDS += ["sasl-challenge", "sasl-response", "sasl-outcome", "paged", "state", "ram-target"]
KINDS += ["session.completed", "message.transfer", "connection.tune", "basic.deliver"]
ROWS = any_row(
    event=st.sampled_from(EVENTS),
    kind=st.sampled_from(KINDS) | st.none() | st.text(max_size=5),
    vantage=st.sampled_from(["broker", "client:c", "wire", "reader:c1", "queue:q@n", "wal:n"])
    | st.text(max_size=5),
    protocol=st.sampled_from(["internal", "amqp-1.0", "amqp-0-9-1", "amqp-0-10"]),
    from_peer=st.sampled_from(["broker", "client", None, "x"]),
    link_sender=st.sampled_from(["broker", "client", None]),
    connection=st.just("c1"),
    session=st.just(1),
    link=st.sampled_from(["l", "m", None]),
    attach_no=st.just(1),
    frame_id=st.integers(0, 2),
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(ROWS, max_size=6))
def test_any_rows_that_a_file_can_hold_can_be_told(rows):
    """A trace may come from anybody: whatever it says, each row gives one sentence in one line."""
    for line in transcript(rows):
        assert "\n" not in line
        assert "\x1b" not in line
