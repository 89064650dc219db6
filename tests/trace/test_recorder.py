"""The recorder under whatever is told to it: rows that a file takes, and what holds a sender."""

from __future__ import annotations

import errno
import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.amqp10.pair import LinkPair
from workbench.amqp10.settings import SessionSettings
from workbench.scenarios.streaming import stream
from workbench.sim import Direction, Flight, NoTap, VirtualClock
from workbench.trace import files
from workbench.trace.files import TraceFileError, TraceWriter
from workbench.trace.taps import Recorder

WORD = st.sampled_from(["q", "c1", "broker", "queue:q"])
NUMBER = st.one_of(st.integers(-(2**62), 2**62), st.none(), st.just(7))
INTERNAL = st.fixed_dictionaries(
    {
        "event": st.sampled_from(["note", "enqueue", "block", "unblock", "alarm-set", "no-event"]),
        "vantage": st.sampled_from(["broker", "client:a", "queue:q"]),
    },
    optional={
        "kind": st.sampled_from(["unconfirmed", "tcp", "mailbox"]),
        "connection": WORD,
        "session": st.integers(1, 3),
        "link": WORD,
        "link_sender": st.sampled_from(["client", "broker"]),
        "attach_no": st.integers(1, 2),
        "queue": WORD,
        "ledger": st.fixed_dictionaries(
            {},
            optional={
                "drain": st.one_of(st.booleans(), st.none()),
                "mailbox": NUMBER,
                "link_credit": NUMBER,
                "available": NUMBER,
                "nonsense": NUMBER,
            },
        ),
        "extra": st.dictionaries(
            WORD, st.one_of(NUMBER, st.booleans(), st.text(max_size=3)), max_size=2
        ),
    },
)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(told=st.lists(INTERNAL, min_size=1, max_size=12))
def test_whatever_is_told_becomes_a_row_that_a_file_takes(told):
    """Odd events, unknown counters, absent values, brakes; what is left out is a problem told."""
    recorder = Recorder("r")
    for t_us, columns in enumerate(told):
        recorder.internal(t_us=t_us, **columns)
    rows = recorder.rows
    assert files.from_table(files.to_table(rows)) == rows
    left_out = 0
    for row, columns in zip(rows, told, strict=True):
        counters = {k: v for k, v in columns.get("ledger", {}).items() if v is not None}
        left_out += (columns["event"] == "no-event") + ("nonsense" in counters)
        counters.pop("nonsense", None)
        assert row.ledger == (counters or None)
        assert row.extra == columns.get("extra", {})
        for name in ("vantage", "connection", "session", "link", "link_sender", "queue"):
            assert getattr(row, name) == columns.get(name)
    assert len(recorder.problems) == left_out


BOUND = st.fixed_dictionaries(
    {
        "vantage": st.sampled_from(["broker", "queue:q"]),
        "names": st.sampled_from([(), ("mailbox",), ("link_credit", "available"), ("nonsense",)]),
    },
    optional={"link": WORD, "link_sender": st.just("broker")},
)
NOTED = st.fixed_dictionaries(
    {
        "event": st.sampled_from(["note", "confirm", "alarm-set", "no-event"]),
        "kind": st.sampled_from([None, "k"]),
        "extra": st.sampled_from([None, {"message": 3}, {"first": 1, "last": 2}, {"why": "so"}]),
    },
    optional={"queue": WORD},
)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    bound=st.lists(BOUND, min_size=1, max_size=3),
    told=st.lists(st.tuples(st.integers(0, 2), st.integers(-(2**62), 2**62), NOTED), max_size=12),
)
def test_bound_notes_make_the_rows_that_are_told_one_by_one(bound, told):
    """The same trace as from a tap that is told everything."""
    plain, one = Recorder("r"), Recorder("r")
    clock, now = VirtualClock(), [0]

    def ledger(names):
        return dict(zip(names, (now[0], now[0] // 2), strict=False))

    def notes(*, names, **place):
        return one.bind(clock, ledger=lambda: ledger(names), **place)

    bindings = [notes(**place) for place in bound]
    for which, number, row in told:
        which, now[0] = which % len(bound), number
        bindings[which].note(**row)
        place = dict(bound[which])
        plain.internal(t_us=0, ledger=ledger(place.pop("names")), **place, **row)
    assert one.rows == plain.rows
    assert one.problems == plain.problems


def test_nobody_is_asked_for_counters_without_a_tap():
    """Notes of no tap do nothing."""
    notes = NoTap().bind(VirtualClock(), vantage="broker", ledger=lambda: 1 // 0)
    notes.note("note", "k", extra={"a": 1}, queue="q")


class Seen:
    """One side of a pair of endpoints as a tap sees it."""

    ledger_source = "own"

    def __init__(self, side, peer):
        self.amqp = side.connection
        self.from_peer = peer
        self.vantage = f"client:{side.name}" if peer == "client" else "broker"

    def scope(self, item, outgoing):
        """The counters of the side."""
        return self.amqp.scope(item, outgoing)


UNCONFIRMED = {
    "kind": "unconfirmed", "vantage": "broker", "session": 1, "link": "l", "attach_no": 1,
    "link_sender": "client",
}  # fmt: skip
HOLDING = st.sampled_from(
    [
        {"event": "alarm-set", "kind": "memory", "vantage": "broker"},
        {"event": "alarm-clear", "kind": "memory", "vantage": "broker"},
        {"event": "block", "kind": "tcp", "vantage": "client:client"},
        {"event": "unblock", "kind": "tcp", "vantage": "client:client"},
        {"event": "block", **UNCONFIRMED},
        {"event": "unblock", **UNCONFIRMED},
        {"event": "send"},
        {"event": "send"},
        {"event": "grant"},
    ]
)


@settings(max_examples=120, deadline=None, derandomize=True)
@example(
    steps=[
        {"event": "send"},
        {"event": "grant"},
        {"event": "alarm-set", "kind": "memory", "vantage": "broker"},
        {"event": "send"},
    ],
    window=1,
    available=3,
)
@example(
    steps=[
        {"event": "block", **UNCONFIRMED},
        {"event": "send"},
        {"event": "send"},
        {"event": "unblock", **UNCONFIRMED},
        {"event": "grant"},
        {"event": "send"},
        {"event": "send"},
    ],
    window=4,
    available=3,
)
@given(steps=st.lists(HOLDING, max_size=14), window=st.integers(1, 4), available=st.integers(0, 3))
def test_what_holds_a_sender_is_named_on_its_rows(steps, window, available):
    """Credit, window, alarm, TCP, no message, unconfirmed: in every mix, on every row."""
    recorder = Recorder("r", now=lambda: 1)
    pair = LinkPair(server_sends=False, server_session=SessionSettings(incoming_window=window))
    client, server = Seen(pair.client, "client"), Seen(pair.server, "broker")
    flights = iter(range(1_000))
    pair.sender.counters.available = available
    pair.receiver.unconfirmed = 3
    on, wanted = set(), []
    for step in [{"event": "grant"}, *steps]:
        if step["event"] == "grant":
            pair.receiver.grant(2)
            pair.server_session.set_incoming_window(window)
            pair.server_session.flow()
            pair.pump()
        elif step["event"] != "send":
            recorder.internal(t_us=1, connection="c1", **step)
            begins = step["event"] in ("block", "alarm-set")
            on = on | {step["kind"]} if begins else on - {step["kind"]}
        elif pair.sender.can_send:
            pair.sender.send(b"m", settled=True)
            item = pair.client.flying[-1]
            flight = Flight(frame_id=next(flights), item=item, sent_us=1, arrives_us=1,
                            direction=Direction.CLIENT_TO_BROKER, connection="c1")  # fmt: skip
            recorder.sent(client, flight)
            pair.deliver(pair.client)
            recorder.received(server, flight)
            counters = pair.sender.counters
            closed = pair.client_session.counters.remote_incoming_window == 0
            holds = {
                "no-message": counters.available == 0,
                "unconfirmed": "unconfirmed" in on and counters.link_credit == 0,
                "link-credit": counters.link_credit == 0,
                "alarm": "memory" in on and closed,
                "session-window": closed,
                "tcp": "tcp" in on,
            }
            wanted.append(tuple(brake for brake, held in holds.items() if held))
    rows = [row for row in recorder.rows if row.is_frame]
    assert [row.brakes for row in rows if row.event == "sent"] == wanted
    assert {row.brakes for row in rows if row.event == "received"} <= {()}


def test_a_disk_that_is_full_is_told_and_nothing_is_left(tmp_path):
    """Amid a long run as at its end: one line, and no half a file."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def written():
        with TraceWriter(tmp_path / "t.parquet", raw=False) as writer:

            def refuse(table, row_group_size):
                del table, row_group_size
                raise full

            writer._writer.write_table = refuse
            stream("two_senders", "blog2024", {"run_ms": 1}, take=writer.write)

    with pytest.raises(TraceFileError, match=r"t\.parquet: cannot write there: No space left"):
        written()
    assert list(tmp_path.iterdir()) == []
