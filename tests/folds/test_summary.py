"""One line per link, without Java: its numbers against those that a run is made to have."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.analysis.runs import (
    CAPTURES,
    capture_rows,
    cut_credit,
    lossy,
    lowered_credit,
    narrow_window,
    torn,
    without,
)
from workbench import folds, serial
from workbench.capture.importer import import_capture
from workbench.scenarios import run
from workbench.scenarios.big_trace import episodes
from workbench.trace.schema import Row
from workbench.trace.words import duration


def only(rows, **wanted):
    (row,) = [row for row in rows if all(getattr(row, key) == one for key, one in wanted.items())]
    return row


def test_counts_and_the_longest_stall_are_those_of_the_run():
    """28 of 40 messages go in three grants, and four stalls were planted."""
    episode = episodes()[0]
    link = only(folds.summarise(episode.rows), link_sender="broker")
    assert (link.messages, link.stalls, link.violations) == (28, len(episode.planted), 0)
    longest = max(folds.stalls(episode.rows), key=lambda row: row.end_us - row.start_us)
    assert link.longest_us == longest.end_us - longest.start_us
    assert (link.longest_brake, link.longest_seq) == (longest.brake, longest.seq)


def test_time_at_zero_credit_is_that_between_the_last_message_and_the_grant():
    """All of it in a run in which every message is granted alone."""
    rows = run("credit", parameters={"policy": "one-at-a-time", "n": 1, "messages": 20}).rows
    link = only(folds.summarise(rows), link_sender="broker")
    assert 0 < link.at_zero_us <= link.lasted_us
    mine = [row for row in folds.credit_rows(rows) if row.end == "sender" and row.link]
    times = {row.seq: row.t_us for row in rows}
    zero = sum(
        times[after.seq] - times[row.seq] for row, after in pairwise(mine) if row.link_credit == 0
    )
    assert link.at_zero_us == zero


@pytest.mark.parametrize("lost", [0, 3, 8])
def test_a_message_counts_once_whatever_the_trace_lacks_of_it(lost):
    """Its first frame, one in the middle or its last; after a gap nobody knows the count."""
    rows = torn(lost)
    (link,) = (one for one in folds.summarise(rows) if one.link_sender == "client")
    first = next(row.seq for row in rows if row.kind == "transfer")
    assert (link.messages, link.first_seq) == (1, first)


def test_messages_are_those_that_windows_counts():
    """Of every capture, and of what lacks frames: a link has as many by either question."""
    for rows in (capture_rows(), lossy(), torn(3)):
        told, counted = Counter(), Counter()
        for one in folds.summarise(rows):
            if one.link is not None:
                told[one.run, one.connection, one.session, one.link_sender] += one.messages
        for one in folds.windows(rows):
            counted[one["run"], one["connection"], one["session"], one["sender"]] += one["messages"]
        assert told == counted


@pytest.mark.parametrize(
    ("longest_us", "brake", "violations", "text"),
    [
        (0, None, 0, "Nothing that is known to have been ready had to wait."),
        (0, "alarm", 0, "Nothing that is known to have been ready had to wait."),
        (
            5_000, "link-credit", 0,
            "The broker waited 2 times; the longest wait, 5.0 ms, was for credit: the receiver"
            " grants too little, or too late. Let it grant more at a time, or before the last"
            " credit is used up. The link had no credit for 50% of its life.",
        ),
        (5_000, "alarm", 0, "the broker is short of memory or disk. Free some there"),
        (5_000, "unconfirmed", 0, "withholds it until its queues confirm. Look at the slowest"),
        (5_000, "session-window", 0, "Let it read faster, or announce a larger incoming-window"),
        (5_000, "tcp", 0, "the other end does not read its socket"),
        (5_000, "alarm", 3, "The broker began 3 deliveries without credit, which 2.6.7 forbids."),
        (5_000, "alarm", 3, " its credit. The broker waited 2 times; the longest wait, 5.0 ms"),
    ],
)  # fmt: skip
def test_the_advice_tells_who_waited_how_long_why_and_what_to_change(
    longest_us, brake, violations, text
):
    """In one line of words."""
    said = folds.advice(
        {
            "run": "r", "connection": "c1", "session": 1,
            "link": "l", "link_sender": "broker", "attach_no": 1, "stalls": 2,
            "longest_us": longest_us, "longest_brake": brake, "longest_seq": 9, "first_seq": 5,
            "at_zero_us": 10_000, "lasted_us": 20_000, "violations": violations,
            "beyond_window": 0,
        }
    )  # fmt: skip
    assert text in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("zero_us", "share"),
    [(74_960, "75%"), (74_490, "74%"), (99_999, "more than 99%"), (5, "less than 1%"),
     (100_000, "100%")],
)  # fmt: skip
def test_a_share_is_rounded_and_never_to_all_or_nothing(zero_us, share):
    """74.96 % is 75 %; what is less than all of it is not told as all."""
    said = folds.advice(
        {
            "link": "l", "link_sender": "broker", "attach_no": 1, "stalls": 2, "longest_us": 5,
            "longest_brake": "link-credit", "longest_seq": 9, "first_seq": 5,
            "at_zero_us": zero_us, "lasted_us": 100_000, "violations": 0, "beyond_window": 0,
        }
    )  # fmt: skip
    assert said.endswith(f" The link had no credit for {share} of its life.")


def test_no_share_is_told_of_a_link_that_was_attached_before_the_trace():
    """What lies before is not counted, and had no credit either, for all that is known."""
    rows = import_capture(CAPTURES / "rmq43_h_sac_handover.pcapng").rows
    (whole,) = (one for one in folds.summarise(rows) if one.link == "B")
    early = [replace(row, attach_no=None) if row.link == "B" else row for row in rows]
    (late,) = (one for one in folds.summarise(early) if one.link == "B")
    assert "of its life" in whole.advice
    assert "waited" in late.advice
    assert "of its life" not in late.advice


@pytest.mark.parametrize(
    ("capture", "words"),
    [
        ("rmq43_f_memory_alarm", "3.4 s for its first credit: a link has none until its receiver"),
        ("rmq43_b_consumer_credit", "802 ms, was for credit: the receiver grants too little"),
    ],
)
def test_who_waits_for_its_first_credit_is_not_told_that_it_gets_too_little(capture, words):
    """A link has no credit from the beginning, however much its receiver is going to grant."""
    rows = import_capture(CAPTURES / f"{capture}.pcapng").rows
    (link,) = (one for one in folds.summarise(rows) if one.stalls)
    assert words in link.advice
    assert ("first" in words) == (link.longest_seq < link.first_seq)


def test_a_wait_that_goes_on_after_the_last_frame_is_no_share_of_what_lies_before():
    """Of 25 ms without credit 15 are behind it: those up to it would say the opposite."""
    said = folds.advice(
        {
            "link": "l", "link_sender": "broker", "attach_no": 1, "stalls": 1,
            "longest_us": 25_000, "longest_brake": "link-credit", "longest_seq": 9, "first_seq": 5,
            "at_zero_us": 10_000, "lasted_us": 1_000_000, "violations": 0, "beyond_window": 0,
        }
    )  # fmt: skip
    assert said.startswith("The broker waited 25 ms for credit")
    assert "%" not in said


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (0, "0 µs"), (999, "999 µs"), (1_000, "1.0 ms"), (34_500, "34 ms"), (2_400_000, "2.4 s"),
        (119_000_000, "119 s"), (120_000_000, "2.0 min"), (36_000_000_000, "600 min"),
    ],
)  # fmt: skip
def test_a_time_in_words_has_the_unit_in_which_it_is_read_best(time_us, text):
    """Two figures or more."""
    assert duration(time_us) == text


def test_a_delivery_before_any_grant_breaks_the_rule():
    """A link begins with credit 0 [2.6.7]: in a capture whose grants are gone, too."""
    rows = [
        row for row in episodes()[0].rows
        if not (row.kind == "flow" and row.from_peer != row.link_sender)
    ]  # fmt: skip
    found = [row for row in folds.violations(rows) if row["what"] == "beyond-credit"]
    assert [row["by"] for row in found] == list(range(1, 29))
    assert all(row["certain"] for row in found)
    assert only(folds.summarise(rows), link_sender="broker").violations == 28


def test_behind_what_is_missing_nobody_is_accused():
    """The octets that a capture lacks may hold the attach, the grant and the messages."""
    rows = lossy()
    lost = next(row.seq for row in rows if row.event == "gap")
    found = folds.violations(rows)
    assert {one["what"] for one in found} >= {"handle-unknown", "delivery-id-order"}
    assert all(one["seq"] > lost for one in found)
    assert not any(one["certain"] for one in found)
    # The same frames without a word of what is missing are a peer's mistakes; and so are some that
    # nobody can judge before it is said again what a peer may send.
    told = folds.violations([row for row in rows if row.event != "gap"])
    assert any(one["certain"] for one in told)
    judged, all_of_them = ({(one["seq"], one["what"]) for one in its} for its in (found, told))
    assert judged < all_of_them
    assert {what for _, what in all_of_them - judged} <= {"beyond-credit", "id-never-sent"}


def test_an_answer_may_be_in_what_is_missing():
    """A flow that asks stands before the octets that may answer it."""
    rows = import_capture([CAPTURES / "rmq43_h_sac_handover.pcapng"]).rows
    answers = {row.seq for row in rows if row.kind == "flow" and row.from_peer == "broker"}
    told = folds.violations([row for row in rows if row.seq not in answers])
    found = folds.violations([without(row) if row.seq in answers else row for row in rows])
    assert {one["certain"] for one in told if one["what"] == "no-answer"} == {True}
    assert {one["certain"] for one in found if one["what"] == "no-answer"} == {False}
    assert min(one["seq"] for one in found) < max(answers)


def test_numbers_half_a_circle_apart_stop_no_question():
    """RFC 1982 leaves them without order; a trace may hold whatever a peer has sent."""
    rows = []
    for row in episodes()[1].rows:
        fields = dict(row.frame or {})
        for name in ("delivery_count", "next_incoming_id", "next_outgoing_id", "first", "last"):
            if row.kind in ("flow", "disposition") and fields.get(name) is not None:
                fields[name] = serial.steps(fields[name], serial.HALF)
        rows.append(replace(row, frame=fields) if row.frame is not None else row)
    for question in (
        folds.credit_rows, folds.stalls, folds.windows, folds.grants, folds.latency,
        folds.throughput, folds.violations, folds.summarise,
    ):  # fmt: skip
        question(rows)
    assert folds.violations(rows)


@pytest.mark.parametrize("captured", [False, True])
def test_who_ignores_a_closed_window_is_told_so(captured):
    """Of a window of 3 frames 17 of 20 are beyond; none is beyond the credit."""
    rows = narrow_window()
    if captured:
        rows = [
            replace(row, event="observed", t_raw_us=row.t_us) for row in rows if row.event == "sent"
        ]
    link = only(folds.summarise(rows), link_sender="client")
    assert (link.messages, link.violations, link.beyond_window) == (20, 0, 17)
    waited = (
        " The client waited 1.0 ms for its first credit: a link has none until its receiver grants"
        " some. Let it grant as soon as the link is attached; that takes a round trip at least. The"
        " link had no credit for 25% of its life."
    )
    assert link.advice == (
        "The client sent 17 frames beyond the session window, which 2.5.6 forbids. Correct how it"
        f" counts the window.{waited if captured else ''}"
    )


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (lambda t_us: None, "waited 1,000 frames for its first credit"),
        (lambda t_us: -10 * t_us, "waited an unknown time for its first credit"),
        (lambda t_us: 10_000 * t_us, "waited less than 500 ms for its first credit"),
    ],
    ids=["a log without times", "a clock that goes back", "a clock that counts half seconds"],
)
def test_a_wait_is_told_in_what_the_clock_of_the_trace_has(at, told):
    """And no share of time is told then."""
    rows = [
        replace(row, event="observed", t_raw_us=at(row.t_us))
        for row in narrow_window() if row.event == "sent"
    ]  # fmt: skip
    link = only(folds.summarise(rows), link_sender="client")
    assert told in link.advice
    assert "of its life" not in link.advice


def test_credit_lowered_while_messages_fly_accuses_nobody():
    """The sender had not heard of it: only what is beyond the furthest limit is certain."""
    rows = lowered_credit()
    beyond = [one for one in folds.violations(rows) if one["what"] == "beyond-credit"]
    assert beyond
    assert not any(one["certain"] for one in beyond)
    link = only(folds.summarise(rows), link_sender="broker")
    assert link.violations == 0
    assert link.advice == "Nothing that is known to have been ready had to wait."
    # The same with a furthest limit that the messages pass as well.
    less = [
        replace(row, frame={**row.frame, "link_credit": 2})
        if row.kind == "flow" and (row.frame or {}).get("link_credit") == 50 else row
        for row in rows
    ]  # fmt: skip
    link = only(folds.summarise(less), link_sender="broker")
    assert link.violations == link.messages - 2
    assert f"began {link.violations} deliveries without credit" in link.advice


@pytest.mark.parametrize("vantage", ["own", "broker's", "client's"])
def test_a_flow_that_rabbitmq_has_put_aside_accuses_nobody(vantage):
    """It heard of the lower credit, and heeds it when its queue has answered; no frame tells."""
    rows = cut_credit()
    if vantage != "own":
        wanted = {"broker's": {"client": "received", "broker": "sent"},
                  "client's": {"client": "sent", "broker": "received"}}[vantage]  # fmt: skip
        rows = [replace(row, event="observed") for row in rows
                if wanted.get(row.from_peer) == row.event]  # fmt: skip
    beyond = [one for one in folds.violations(rows) if one["what"] == "beyond-credit"]
    assert [one["by"] for one in beyond] == list(range(1, 9))
    assert not any(one["certain"] for one in beyond)
    link = only(folds.summarise(rows), link_sender="broker")
    assert (link.messages, link.violations) == (10, 0)
    assert "without credit, which" not in link.advice


def test_what_was_granted_before_the_trace_began_accuses_nobody():
    """A limit that is lowered in the first flow there is may have been higher before."""
    told = {"handle": 0, "delivery_count": 5, "incoming_window": 100}
    frames = (
        ("client", "flow", {**told, "next_outgoing_id": 5}),
        ("broker", "flow", {**told, "next_incoming_id": 5, "incoming_window": 0,
                            "link_credit": 0}),
        ("client", "transfer", {"handle": 0, "delivery_id": 5}),
    )  # fmt: skip
    rows = [
        Row(
            run="late", seq=seq, t_us=seq, vantage="wire", event="observed", protocol="amqp-1.0",
            frame_id=seq, from_peer=peer, connection="c1", session=1, link="l",
            link_sender="client", attach_no=1, kind=kind, frame=frame,
        )
        for seq, (peer, kind, frame) in enumerate(frames)
    ]  # fmt: skip
    found = {one["what"]: one["certain"] for one in folds.violations(rows)}
    assert found == {"beyond-credit": False, "beyond-window": False}
