"""A broker on a virtual clock with clients on wires, for tests."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from workbench import presets
from workbench.amqp10.connection import Connection
from workbench.amqp10.events import Event, OpenReceived, SessionBegun
from workbench.amqp10.messaging import Data, encode_message
from workbench.amqp10.sasl import SaslClient
from workbench.amqp10.settings import ConnectionSettings, SessionSettings
from workbench.broker import Broker
from workbench.frontends import accept, message_of
from workbench.peers import Client, Publisher
from workbench.sim import VirtualClock, Wire
from workbench.trace.taps import Recorder

SPEC, RMQ40, RMQ43 = (presets.get(name) for name in ("spec", "rmq4.0", "rmq4.3"))
every_preset = pytest.mark.parametrize("preset", [SPEC, RMQ40, RMQ43], ids=lambda one: one.name)
rabbit = pytest.mark.parametrize("preset", [RMQ40, RMQ43], ids=lambda one: one.name)


def data(octets: bytes) -> bytes:
    """A message of one data section, which RabbitMQ wants what a publisher sends to be."""
    return encode_message([Data(octets)])


class RawClient:
    """A client that does nothing by itself but open: a test drives its endpoint."""

    vantage = "client:raw"
    from_peer = "client"
    ledger_source = "own"

    def __init__(
        self,
        *,
        sasl: SaslClient | None = None,
        settings: ConnectionSettings | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.wire: Wire | None = None
        self.events: list[Event] = []
        self.received: list[Any] = []
        self.amqp = Connection(
            container_id="raw",
            is_client=True,
            emit=self._emit,
            settings=settings,
            session_settings=session_settings,
            sasl=sasl or SaslClient(),
        )

    def _emit(self, item: Any) -> None:
        assert self.wire is not None
        self.wire.send(self, item)

    def connect(self, wire: Wire) -> None:
        self.wire = wire
        self.amqp.start()

    def apply(self, item: Any) -> list[Event]:
        self.received.append(item)
        return self.amqp.apply(item)

    def react(self, events: list[Event]) -> None:
        self.events += events
        for event in events:
            self.amqp.answer(event)

    def scope(self, item: Any, outgoing: bool) -> Any:
        return self.amqp.scope(item, outgoing)

    def of(self, kind: type) -> list[Any]:
        """Events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def frames(self, kind: type) -> list[Any]:
        """Performatives of one kind that came, in order."""
        found = (getattr(item, "performative", None) for item in self.received)
        return [performative for performative in found if isinstance(performative, kind)]


class Rig:
    """Clock, broker, recorder, and as many clients as a test connects."""

    def __init__(
        self,
        preset: presets.Preset | None = None,
        latency_us: int = 1000,
        *,
        plain_names: bool = True,
    ) -> None:
        self.clock = VirtualClock()
        self.recorder = Recorder("test", now=lambda: self.clock.now_us)
        self.preset = preset or presets.get("spec")
        # Tests that are not about addresses write `q`, which RabbitMQ 4.3 takes if it is configured
        # so; it then makes the queue.
        permitted = replace(self.preset, addresses_v1=True) if plain_names else self.preset
        self.broker = Broker(self.clock, permitted, self.recorder)
        self.latency_us = latency_us
        self.wires: dict[str, Wire] = {}
        self._ids = itertools.count()

    def fill(self, queue: str, count: int) -> None:
        """Messages `m0`, `m1`, ... ready in a queue."""
        self.broker.declare(queue).fill(
            map(message_of, [b"m%d" % number for number in range(count)])
        )

    def connect(self, client: Any, name: str = "c1") -> Any:
        end = accept(self.broker, name)
        wire = Wire(
            self.clock,
            client,
            end,
            latency_us=(self.latency_us, self.latency_us),
            connection=name,
            tap=self.recorder,
            next_frame_id=lambda: next(self._ids),
        )
        self.wires[name] = wire
        end.connect(wire)
        client.connect(wire)
        return client

    def publisher(self, address: str, name: str = "c1", *, settled: bool = False) -> Publisher:
        """A publisher with a client of its own, named after its connection."""
        publisher = Publisher(address=address, settled=settled)
        self.connect(Client(self.clock, [publisher], name=name), name)
        return publisher

    def rest(self) -> None:
        """Let everything happen that is due."""
        self.clock.run_until_rest(100_000)
        assert self.clock.due == 0
        assert self.recorder.problems == []

    def raw(self, name: str = "c1", **options: Any) -> tuple[RawClient, Any]:
        """A raw client with one session begun."""
        client = self.connect(RawClient(**options), name)
        self.rest()
        assert client.of(OpenReceived)
        session = client.amqp.begin()
        self.rest()
        assert client.of(SessionBegun)
        return client, session

    def receiver(self, session: Any, address: str = "q", name: str = "r", **terms: Any) -> Any:
        """An attached receiving link of a raw client."""
        link = session.attach_receiver(name, address, **terms)
        self.rest()
        return link

    def sender(self, session: Any, address: str = "q", name: str = "s", **terms: Any) -> Any:
        """An attached sending link of a raw client."""
        link = session.attach_sender(name, target=address, **terms)
        self.rest()
        return link

    def queue(self, name: str = "q") -> Any:
        """A queue's state machine."""
        return self.broker.queues[name].queue


def consuming(preset: presets.Preset | None, ready: int, **terms: Any) -> tuple[Any, ...]:
    """Rig, client, session and link of a consumer without credit, and so many messages ready."""
    rig = Rig(preset)
    rig.fill("q", ready)
    client, session = rig.raw()
    return rig, client, session, rig.receiver(session, **terms)
