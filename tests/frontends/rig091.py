"""A broker on a virtual clock with AMQP 0-9-1 clients on wires, for tests."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from workbench import presets
from workbench.amqp091.connection import Connection
from workbench.amqp091.events import MessageReceived, MethodReceived
from workbench.amqp091.frame import item_size
from workbench.amqp091.methods import BasicAck, BasicNack, Properties
from workbench.amqp091.settings import CLIENT_CAPABILITIES, ConnectionSettings
from workbench.broker import Broker
from workbench.frontends import accept_091
from workbench.sim import VirtualClock, Wire
from workbench.trace.taps import Recorder

RMQ355, RMQ383, RMQ384, RMQ40, RMQ43 = (
    presets.get(name) for name in ("rmq3.5.5", "rmq3.8.3", "rmq3.8.4", "rmq4.0", "rmq4.3")
)
PERSISTENT = Properties(delivery_mode=2)


class Client091:
    """A client that does nothing by itself but open: a test drives its endpoint."""

    vantage = "client:raw"
    from_peer = "client"
    ledger_source = "own"

    def __init__(self, **settings: Any) -> None:
        self.wire: Wire | None = None
        self.writable = True
        self.waiting: list[Any] = []
        self.events: list[Any] = []
        self.amqp = Connection(
            is_client=True,
            emit=self._emit,
            settings=ConnectionSettings(
                **{"properties": {"capabilities": CLIENT_CAPABILITIES}, **settings}
            ),
        )

    def _emit(self, item: Any) -> None:
        assert self.wire is not None
        if self.writable:
            self.wire.send(self, item)
        else:
            self.waiting.append(item)

    def kick(self) -> None:
        assert self.wire is not None
        while self.writable and self.waiting:
            self.wire.send(self, self.waiting.pop(0))

    def connect(self, wire: Wire) -> None:
        self.wire = wire
        self.amqp.start()

    def apply(self, item: Any) -> list[Any]:
        return self.amqp.apply(item)

    def react(self, events: list[Any]) -> None:
        self.events += events
        for event in events:
            self.amqp.answer(event)

    def scope(self, item: Any, outgoing: bool) -> Any:
        return self.amqp.scope(item, outgoing)

    def methods(self, *kinds: type) -> list[Any]:
        """Methods of some kinds that came, in order."""
        return [
            event.method
            for event in self.events
            if isinstance(event, MethodReceived | MessageReceived)
            and isinstance(event.method, kinds)
        ]

    def messages(self) -> list[Any]:
        """Messages that came, in order."""
        return [event for event in self.events if isinstance(event, MessageReceived)]

    @property
    def bodies(self) -> list[bytes]:
        return [event.body for event in self.messages()]

    @property
    def confirms(self) -> list[tuple[str, int, bool]]:
        return [
            (method.NAME.partition(".")[2], method.delivery_tag, method.multiple)
            for method in self.methods(BasicAck, BasicNack)
        ]


class Rig091:
    """Clock, broker, recorder, and as many clients as a test connects."""

    def __init__(
        self,
        preset: presets.Preset = RMQ43,
        *,
        latency_us: int = 0,
        capacity: int | None = None,
        **numbers: Any,
    ) -> None:
        self.clock = VirtualClock()
        self.recorder = Recorder("test", now=lambda: self.clock.now_us)
        self.preset = replace(preset, **numbers)
        self.broker = Broker(self.clock, self.preset, self.recorder)
        self.ends: dict[str, Any] = {}
        self._latency_us = latency_us
        self._capacity = capacity
        self._ids = itertools.count()

    def connect(self, name: str = "c1", **settings: Any) -> Client091:
        """A client with an open connection."""
        client = Client091(**settings)
        end = self.ends[name] = accept_091(self.broker, name)
        wire = Wire(
            self.clock,
            client,
            end,
            latency_us=(self._latency_us, self._latency_us),
            connection=name,
            tap=self.recorder,
            next_frame_id=lambda: next(self._ids),
            capacity=self._capacity,
            size=item_size,
        )
        end.connect(wire)
        client.connect(wire)
        self.rest()
        return client

    def channel(self, name: str = "c1", **settings: Any) -> tuple[Client091, Any]:
        """A client with an open connection and an open channel."""
        client = self.connect(name, **settings)
        return client, self.open(client)

    def open(self, client: Client091) -> Any:
        """One channel more."""
        channel = client.amqp.open_channel()
        self.rest()
        assert channel.opened
        return channel

    def rest(self) -> None:
        """Let everything happen that is due."""
        self.clock.run_until_rest(500_000)
        assert self.recorder.problems == []

    def queue(self, name: str = "q") -> Any:
        """A queue's state machine."""
        return self.broker.queues[name].queue


def said(rig: Rig091) -> list[str]:
    """Methods that the broker has sent, with the code of a close."""
    sent = (row for row in rig.recorder.rows if row.event == "sent" and row.from_peer == "broker")
    codes = ((row.kind, (row.frame_091 or {}).get("reply_code", "")) for row in sent)
    return [f"{kind} {code}".strip() for kind, code in codes]
