"""The recorder and the explanations on a pair of real endpoints joined by a wire."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.rows import state_after
from workbench.amqp10.connection import Connection
from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.events import LinkAttaching
from workbench.amqp10.messaging import Accepted
from workbench.amqp10.settings import SessionSettings
from workbench.sim import VirtualClock, Wire
from workbench.trace import Recorder, explain, files, trace_hash, transcript
from workbench.trace.schema import LEDGER_FIELDS


class ConnectionEnd:
    """An end of a wire: an endpoint that answers what must be answered."""

    ledger_source = "own"

    def __init__(self, vantage: str, peer: str, delivery_count: int) -> None:
        self.vantage, self.from_peer = vantage, peer
        self.wire: Wire | None = None
        self.initial = delivery_count
        self.connection = Connection(
            container_id=vantage,
            is_client=peer == "client",
            emit=self.emit,
            session_settings=SessionSettings(incoming_window=9, next_outgoing_id=delivery_count),
        )
        self.scope = self.connection.scope

    def emit(self, item: object) -> None:
        assert self.wire is not None
        self.wire.send(self, item)

    def apply(self, item: Any) -> Any:
        return self.connection.apply(item)

    def react(self, events: Any) -> None:
        for event in events:
            if isinstance(event, LinkAttaching):
                event.link.accept(initial_delivery_count=self.initial)
            else:
                self.connection.answer(event)


class Pair:
    """A client that receives and a broker that sends, up to the attached link."""

    def __init__(self, delivery_count: int = 0) -> None:
        clock = self.clock = VirtualClock()
        self.recorder = Recorder("pair", now=lambda: clock.now_us)
        client = ConnectionEnd("client:c", "client", delivery_count)
        broker = ConnectionEnd("broker", "broker", delivery_count)
        self.wire = Wire(clock, client, broker, latency_us=(100, 300), tap=self.recorder)
        client.wire = broker.wire = self.wire
        client.connection.start()
        clock.run_until_rest()
        session = client.connection.begin()
        clock.run_until_rest()
        self.receiver = session.attach_receiver("l", "q")
        clock.run_until_rest()
        self.session = session
        (self.sender,) = broker.connection.sessions[0].links

    def act(self, name: str, number: int = 0) -> None:
        """One move; what is not legal now is left undone."""
        try:
            match name:
                case "grant":
                    self.receiver.grant(number)
                case "drain":
                    self.receiver.grant(number, drain=True)
                case "echo":
                    self.receiver.grant(number, echo=True)
                case "send":
                    self.sender.send(b"x" * 40 * number, settled=number % 2 == 0)
                case "drained":
                    self.sender.drained()
                case "settle":
                    self.receiver.settle(self.initial_id + number, state=Accepted())
                case "window":
                    self.session.set_incoming_window(number)
                    self.session.flow()
                case "step":
                    for _ in range(number):
                        self.clock.step()
        except LocalProtocolError:
            pass

    initial_id = 0


MOVES = st.tuples(
    st.sampled_from(
        ["grant", "drain", "echo", "send", "send", "drained", "settle", "window", "step"]
    ),
    st.integers(0, 6),
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from([0, 2147483640, 4294967290]), st.lists(MOVES, max_size=30))
def test_formulas_agree_with_the_endpoints_on_any_schedule(initial, moves):
    """Numbers of the clause, worked out from the rows alone, are those that the endpoints log."""
    pair = Pair(initial)
    for name, number in moves:
        pair.act(name, number)
    pair.clock.run_until_rest()
    recorder = pair.recorder
    assert recorder.problems == []
    told = list(explain(recorder.rows))
    disagreeing = [
        (row.seq, row.kind, row.vantage, formula.numbers)
        for row, explanation in zip(recorder.rows, told, strict=True)
        for formula in explanation.formulas
        if formula.agrees is False
    ]
    assert disagreeing == []
    assert state_after(recorder.rows).in_flight == {}
    assert [row.seq for row in recorder.rows] == list(range(len(recorder.rows)))


def test_a_run_is_recorded_kept_and_told_the_same(tmp_path):
    """From endpoints to rows, to a file and back: same hash, same story."""
    pair = Pair()
    for name, number in [("grant", 3), ("step", 9), ("send", 1), ("send", 1), ("grant", 5)]:
        pair.act(name, number)
    pair.clock.run_until_rest()
    rows = pair.recorder.rows
    files.write(tmp_path / "t.parquet", rows)
    back = files.read(tmp_path / "t.parquet")
    assert back == rows
    assert trace_hash(back) == trace_hash(rows)
    assert list(transcript(back)) == list(transcript(rows))
    names = {field.name for field in LEDGER_FIELDS}
    assert all(set(row.ledger or {}) <= names for row in rows)
    texts = [told.formula for told in explain(rows) if told.formula is not None]
    assert "0 + 5 − 2 = 3" in texts
