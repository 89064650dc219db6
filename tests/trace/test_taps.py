"""The recorder: one row per event, with the counters of the end that logged it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from workbench.amqp10 import performatives
from workbench.amqp10.frame import Frame, encode_item
from workbench.sim import Wire
from workbench.sim.clock import VirtualClock
from workbench.trace import Recorder, frame_row
from workbench.trace.schema import LEDGER_FIELDS


@dataclass
class Concern:
    """What an end says about a frame."""

    session: int | None = 1
    link: str | None = "l"
    link_sender_is_local: bool | None = True
    attach_no: int | None = 1
    link_ledger: dict[str, Any] | None = None
    session_ledger: dict[str, Any] | None = None


@dataclass
class FakeEnd:
    """An end that counts what it applies and says so in its ledger."""

    vantage: str
    from_peer: str
    ledger_source: str = "own"
    applied: int = 0
    concern: Concern = field(default_factory=Concern)

    def apply(self, item: object) -> list[object]:
        self.applied += 1
        return []

    def react(self, events: object) -> None:
        """Nothing."""

    def scope(self, item: object, outgoing: bool) -> Concern:
        return self.concern


def flow(**fields: Any) -> Frame:
    given = {"incoming_window": 1, "next_outgoing_id": 0, "outgoing_window": 1} | fields
    return Frame(channel=0, performative=performatives.Flow(**given))


def transfer(body: bytes) -> Frame:
    return Frame(
        channel=0,
        performative=performatives.Transfer(handle=0, delivery_id=0, delivery_tag=b"0"),
        payload=body,
    )


@pytest.fixture
def world():
    clock = VirtualClock()
    recorder = Recorder("run", now=lambda: clock.now_us)
    client = FakeEnd("client:c", "client")
    broker = FakeEnd("broker", "broker")
    client.concern.link_sender_is_local = False
    wire = Wire(clock, client, broker, latency_us=(30, 50), tap=recorder)
    return clock, recorder, wire, client, broker


def test_a_frame_makes_a_sent_and_a_received_row_with_one_frame_id(world):
    """A frame is in flight while only its `sent` row exists."""
    clock, recorder, wire, client, _ = world
    wire.send(client, flow())
    assert [row.event for row in recorder.rows] == ["sent"]
    clock.run_until_rest()
    sent, received = recorder.rows
    assert (sent.event, received.event) == ("sent", "received")
    assert sent.frame_id == received.frame_id
    assert (sent.t_us, received.t_us) == (0, 30)
    assert (sent.vantage, received.vantage) == ("client:c", "broker")
    assert sent.from_peer == received.from_peer == "client"
    assert sent.link_sender == received.link_sender == "broker"


def test_seq_has_no_gaps_and_time_never_runs_back(world):
    """Rows are numbered from 0 in the order of events; internal events are among them."""
    clock, recorder, wire, client, broker = world
    wire.send(client, flow())
    wire.send(broker, transfer(b"x"))
    clock.run_until_rest()
    recorder.internal(t_us=3, event="enqueue", vantage="queue:q", ledger={"queue_ready": 1})
    assert [row.seq for row in recorder.rows] == list(range(5))
    times = [row.t_us for row in recorder.rows]
    assert times == sorted(times)


def test_a_held_frame_is_received_when_it_is_let_go(world):
    """The row has the time of the arrival, not of the arrival that was planned."""
    clock, recorder, wire, client, _ = world
    wire.hold_direction("c2b")
    wire.send(client, flow())
    clock.call_at(1000, wire.release_direction, "c2b")
    clock.run_until_rest()
    assert [(row.event, row.t_us) for row in recorder.rows] == [("sent", 0), ("received", 1000)]


def test_ledger_merges_link_and_session_and_says_whose_it_is(world):
    """A row carries the groups that its event touches."""
    _, recorder, wire, _, broker = world
    broker.ledger_source = "shadow"
    broker.concern.link_ledger = {"delivery_count": 1, "link_credit": 2, "available": 0}
    broker.concern.session_ledger = {"next_outgoing_id": 9, "remote_incoming_window": 4}
    wire.send(broker, transfer(b"abc"))
    row = recorder.rows[0]
    assert row.ledger == {
        "delivery_count": 1,
        "link_credit": 2,
        "available": 0,
        "next_outgoing_id": 9,
        "remote_incoming_window": 4,
    }
    assert row.ledger_source == "shadow"
    assert set(row.ledger) <= {field.name for field in LEDGER_FIELDS}


def test_brake_stands_on_the_senders_rows_only(world):
    """What holds the sender is said where the sender's own counters are."""
    clock, recorder, wire, client, broker = world
    broker.concern.link_ledger = {"delivery_count": 1, "link_credit": 0, "available": 3}
    client.concern.link_ledger = {"delivery_count": 1, "link_credit": 0, "available": 3}
    wire.send(broker, transfer(b"abc"))
    clock.run_until_rest()
    sent, received = recorder.rows
    assert (sent.brake, sent.brakes) == ("link-credit", ("link-credit",))
    assert (received.brake, received.brakes) == (None, ())


def test_sizes_are_those_of_the_encoded_frame(world):
    """`frame_bytes` is worked out without octets, and equals their number."""
    _, recorder, wire, _, broker = world
    frame = transfer(b"x" * 300)
    wire.send(broker, frame)
    row = recorder.rows[0]
    assert row.frame_bytes == len(encode_item(frame))
    assert row.body_bytes == 300
    assert row.raw == encode_item(frame)
    wire.send(broker, flow())
    assert recorder.rows[1].body_bytes is None


def test_a_frame_is_not_encoded_until_its_octets_are_asked_for(world, monkeypatch):
    """A run of 200,000 rows makes no octets that nobody looks at."""
    clock, recorder, wire, _, broker = world

    def refuse(item: object) -> bytes:
        raise AssertionError("encoded")

    monkeypatch.setattr("workbench.trace.wire_items.codec_of", refuse)
    wire.send(broker, transfer(b"x"))
    clock.run_until_rest()
    assert len(recorder.rows) == 2
    with pytest.raises(AssertionError, match="encoded"):
        _ = recorder.rows[0].raw


def test_an_end_that_fails_to_tell_its_counters_does_not_stop_the_record(world):
    """The frame passed all the same: the row is there, without a ledger, and it is told why."""
    _, recorder, wire, _, broker = world
    broker.concern = None
    wire.send(broker, flow())
    assert recorder.rows[0].ledger is None
    assert recorder.rows[0].session is None

    def fail(item: object, outgoing: bool) -> Concern:
        raise KeyError("no such handle")

    broker.scope = fail
    wire.send(broker, flow())
    assert recorder.rows[1].kind == "flow"
    assert "gives no counters" in recorder.problems[0]


def test_internal_events_keep_details_and_counters():
    """An action's arguments come back from the row."""
    recorder = Recorder("run")
    recorder.internal(
        t_us=5, event="action", vantage="client:c", kind="grant", extra={"link_credit": 3}
    )
    recorder.internal(t_us=4, event="enqueue", vantage="queue:q", queue="q", ledger={"mailbox": 1})
    action, enqueue = recorder.rows
    assert (action.protocol, action.kind, action.extra) == ("internal", "grant", {"link_credit": 3})
    assert (enqueue.t_us, enqueue.ledger, enqueue.ledger_source) == (5, {"mailbox": 1}, "own")


def test_what_is_not_in_the_schema_is_told_and_not_written():
    """An unknown event becomes a note; an unknown counter is left out."""
    recorder = Recorder("run")
    recorder.internal(t_us=0, event="explode", vantage="queue:q", ledger={"temperature": 3})
    row = recorder.rows[0]
    assert (row.event, row.kind, row.ledger) == ("note", "explode", None)
    assert len(recorder.problems) == 2


def test_an_alarm_names_itself_where_a_closed_window_holds_a_client():
    """An alarm works by closing windows; while it is on, the closed window is put down to it."""
    recorder = Recorder("run")
    about = {
        "vantage": "client:p",
        "connection": "c1",
        "session": 1,
        "link": "l",
        "link_sender": "client",
        "ledger": {"link_credit": 5, "available": 1, "remote_incoming_window": 0},
    }
    recorder.internal(t_us=0, event="publish", **about)
    recorder.internal(t_us=1, event="alarm-set", vantage="broker", kind="memory")
    recorder.internal(t_us=2, event="publish", **about)
    recorder.internal(t_us=3, event="alarm-clear", vantage="broker", kind="memory")
    recorder.internal(t_us=4, event="publish", **about)
    assert [row.brake for row in recorder.rows] == [
        "session-window",
        None,
        "alarm",
        None,
        "session-window",
    ]
    assert recorder.rows[2].brakes == ("alarm", "session-window")


def test_a_sink_takes_the_rows_instead_of_memory():
    """A long run goes to a file row by row."""
    taken = []
    recorder = Recorder("run", sink=taken.append, keep=False)
    for t_us in range(3):
        recorder.internal(t_us=t_us, event="note", vantage="broker")
    assert recorder.rows == []
    assert [row.seq for row in taken] == [0, 1, 2]


def test_an_observed_row_takes_sender_and_unknown_from_the_observer():
    """A capture's ledger is the sender's entitlement; what cannot be known is listed."""
    concern = Concern(link_ledger={"link_credit": 3}, session_ledger={})
    concern.link_sender = "client"
    concern.unknown = ("delivery_count",)
    row = frame_row(
        flow(handle=0, link_credit=3),
        run="r",
        seq=0,
        t_us=0,
        vantage="wire",
        event="observed",
        frame_id=0,
        from_peer="broker",
        connection="c1",
        scope=concern,
        ledger_source="observed",
        raw=b"octets",
    )
    assert (row.link_sender, row.unknown, row.raw) == ("client", ("delivery_count",), b"octets")
    assert row.brake == "none"
    assert row.clause == "2.6.7"
    assert row.frame_bytes == len(b"octets")  # as it was sent, not as we would have encoded it
