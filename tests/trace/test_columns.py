"""Rows that become columns as they are made: the recorder's rows, column for column."""

from __future__ import annotations

import errno
import os

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.amqp10.pair import LinkPair
from workbench import presets
from workbench.amqp10.settings import SessionSettings
from workbench.scenarios import World, registry
from workbench.scenarios.streaming import stream
from workbench.sim import Direction, Flight, NoTap, VirtualClock
from workbench.trace.columns import ColumnRecorder
from workbench.trace.files import TraceFileError, TraceWriter, to_table
from workbench.trace.schema import arrow_schema
from workbench.trace.taps import Recorder

RUNS = [
    ("two_senders", "blog2024", {"run_ms": 20}, None),
    ("two_senders", "rmq4.3", {"run_ms": 20, "message_bytes": 300}, None),
    ("credit", "spec", {"messages": 300, "policy": "top-up-at-half"}, None),
    ("credit", "rmq4.0", {"messages": 40, "policy": "one-at-a-time", "message_bytes": 9000}, None),
    ("publishers", "rmq4.3", {"queues": 3, "rate": 0}, ("publish", {"count": 300})),
    ("two_targets", "rmq4.3", {"settled": True}, ("publish", {"count": 300})),
    ("quorum", "rmq4.3", {"replicas": "3"}, ("publish", {"count": 50})),
    ("multicast", "blog2008", {"messages": 30}, None),
]


def both(name, preset, given, act, batch_rows=1_000):
    """The same run under both recorders: a table of columns, and the rows."""
    found = []
    for columns in (True, False):
        clock = VirtualClock()
        tables: list[pa.Table] = []
        recorder = (
            ColumnRecorder("r", now=lambda c=clock: c.now_us, sink=tables.append,
                           batch_rows=batch_rows)
            if columns
            else Recorder("r", now=lambda c=clock: c.now_us)
        )  # fmt: skip
        scenario = registry.get(name)
        standard = presets.get(preset)
        values = scenario.values(standard, given)
        world = World(
            preset=scenario.effective(standard, values),
            parameters=values,
            tap=recorder,
            clock=clock,
        )
        scenario.build(world)
        clock.run_until_rest()
        if act is not None:
            spec = scenario.action(act[0])
            spec.do(world, spec.arguments(act[1], standard))
            clock.run_until_rest()
        assert not clock.due
        if columns:
            recorder.flush()
            recorder.flush()  # nothing is left to hand on
            assert recorder.rows == []
            found.append((pa.concat_tables(tables), recorder.problems, recorder.count))
        else:
            found.append(
                (to_table(recorder.rows, raw=False), recorder.problems, len(recorder.rows))
            )
    return found


@pytest.mark.parametrize(("name", "preset", "given", "act"), RUNS)
def test_columns_hold_what_the_recorder_s_rows_hold(name, preset, given, act):
    """Every column of every row, in the same order, whatever the run."""
    (ours, problems, count), (plain, its_problems, rows) = both(name, preset, given, act)
    assert ours.schema.equals(arrow_schema(), check_metadata=True)
    assert count == rows == ours.num_rows == plain.num_rows > 100
    assert problems == its_problems == []
    for column in plain.column_names:
        assert ours.column(column).to_pylist() == plain.column(column).to_pylist(), column


@pytest.mark.slow
@settings(max_examples=8, deadline=None, derandomize=True)
@given(batch_rows=st.integers(1, 700))
def test_it_does_not_matter_where_a_batch_ends(batch_rows):
    """Batches of one row or of hundreds: the same trace."""
    (ours, *_), (plain, *_) = both("two_senders", "blog2024", {"run_ms": 1}, None, batch_rows)
    assert ours.to_pylist() == plain.to_pylist()


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
def test_whatever_is_told_becomes_the_same_row(told):
    """Odd events, unknown counters, absent values, brakes: the recorder's row, and its problems."""
    tables: list[pa.Table] = []
    ours = ColumnRecorder("r", now=lambda: 5, sink=tables.append, batch_rows=5)
    plain = Recorder("r", now=lambda: 5)
    for t_us, columns in enumerate(told * 2):
        ours.internal(t_us=t_us, **columns)
        plain.internal(t_us=t_us, **columns)
    ours.flush()
    assert pa.concat_tables(tables).to_pylist() == to_table(plain.rows, raw=False).to_pylist()
    assert ours.problems == plain.problems


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
    """By columns or by rows: the same trace as from a tap that is told everything."""
    tables: list[pa.Table] = []
    columns = ColumnRecorder("r", now=lambda: 5, sink=tables.append, batch_rows=5)
    plain, one = Recorder("r"), Recorder("r")
    clock, now = VirtualClock(), [0]

    def ledger(names):
        return dict(zip(names, (now[0], now[0] // 2), strict=False))

    def notes(tap, *, names, **place):
        return tap.bind(clock, ledger=lambda: ledger(names), **place)

    bindings = [[notes(tap, **place) for tap in (columns, one)] for place in bound]
    for which, number, row in told:
        which, now[0] = which % len(bound), number
        for each in bindings[which]:
            each.note(**row)
        place = dict(bound[which])
        plain.internal(t_us=0, ledger=ledger(place.pop("names")), **place, **row)
    columns.flush()
    wanted = to_table(plain.rows, raw=False).to_pylist()
    assert [row for table in tables for row in table.to_pylist()] == wanted
    assert one.problems == columns.problems == plain.problems
    assert to_table(one.rows, raw=False).to_pylist() == wanted


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


HOLDING = st.sampled_from(
    [
        {"event": "alarm-set", "kind": "memory", "vantage": "broker"},
        {"event": "alarm-clear", "kind": "memory", "vantage": "broker"},
        {"event": "block", "kind": "tcp", "vantage": "client:client"},
        {"event": "unblock", "kind": "tcp", "vantage": "client:client"},
        {"event": "block", "kind": "unconfirmed", "vantage": "broker", "session": 1, "link": "l",
         "attach_no": 1, "link_sender": "client"},
        {"event": "send"},
        {"event": "send"},
        {"event": "grant"},
    ]
)  # fmt: skip


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
@given(steps=st.lists(HOLDING, max_size=14), window=st.integers(1, 4), available=st.integers(0, 3))
def test_what_holds_a_sender_is_named_alike_in_both(steps, window, available):
    """Credit, window, alarm, TCP, no message, unconfirmed: in every mix, on every row."""
    tables: list[pa.Table] = []
    ours = ColumnRecorder("r", now=lambda: 1, sink=tables.append, batch_rows=4)
    plain = Recorder("r", now=lambda: 1)
    pair = LinkPair(server_sends=False, server_session=SessionSettings(incoming_window=window))
    client, server = Seen(pair.client, "client"), Seen(pair.server, "broker")
    flights = iter(range(1_000))
    pair.sender.counters.available = available
    pair.receiver.unconfirmed = 3
    for step in [{"event": "grant"}, *steps]:
        if step["event"] == "grant":
            pair.receiver.grant(2)
            pair.server_session.set_incoming_window(window)
            pair.server_session.flow()
            pair.pump()
        elif step["event"] != "send":
            for recorder in (ours, plain):
                recorder.internal(t_us=1, connection="c1", **step)
        elif pair.sender.can_send:
            pair.sender.send(b"m", settled=True)
            item = pair.client.flying[-1]
            flight = Flight(frame_id=next(flights), item=item, sent_us=1, arrives_us=1,
                            direction=Direction.CLIENT_TO_BROKER, connection="c1")  # fmt: skip
            for recorder in (ours, plain):
                recorder.sent(client, flight)
            pair.deliver(pair.client)
            for recorder in (ours, plain):
                recorder.received(server, flight)
    ours.flush()
    found = pa.concat_tables(tables).to_pylist() if tables else []
    assert found == to_table(plain.rows, raw=False).to_pylist()


def test_a_disk_that_is_full_is_told_and_nothing_is_left(tmp_path):
    """Amid a long run as at its end: one line, and no half a file."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def written():
        with TraceWriter(tmp_path / "t.parquet", raw=False) as writer:

            def refuse(table, row_group_size):
                del table, row_group_size
                raise full

            writer._writer.write_table = refuse
            stream("two_senders", "blog2024", {"run_ms": 1}, take=writer.write_table)

    with pytest.raises(TraceFileError, match=r"t\.parquet: cannot write there: No space left"):
        written()
    assert list(tmp_path.iterdir()) == []
