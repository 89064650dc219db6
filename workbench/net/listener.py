"""A listening socket in front of a broker, on one asyncio loop."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable
from typing import Any

from workbench import presets
from workbench.broker import Broker
from workbench.broker.memory import MemoryMonitor
from workbench.machine import total_memory
from workbench.presets import RABBITMQ, Preset

from .client import Client
from .greeting import Greeting
from .limits import Limits
from .live_connection import LiveConnection
from .live_connection_010 import LiveConnection010
from .live_connection_091 import LiveConnection091
from .protocols import AMQP_0_9_1, AMQP_0_10, AMQP_1_0
from .socket_server import MakeTap, SocketServer

IDLE_MS = 60_000
"""Of a broker whose preset says nothing of it."""

UNTOLD_MEMORY = 1 << 30
"""Taken where the system does not tell, as RabbitMQ does (`vm_memory_monitor.erl`)."""

PROTOCOLS = {
    header: serve
    for protocol, serve in (
        (AMQP_1_0, LiveConnection),
        (AMQP_0_9_1, LiveConnection091),
        (AMQP_0_10, LiveConnection010),
    )
    for header in protocol.headers
}
"""Who serves a client, by the first eight octets that it sends."""

OF_0_9 = AMQP_0_9_1.headers[0][:6]


class Listener(SocketServer):
    """A broker that real clients can connect to.

    Args:
        loop: the asyncio loop.
        preset: every default number of the broker; its service times are not slept away, see
            `service`.
        record: given the clock, makes the observer of every wire and of the broker's inside; None
            records nothing.
        limits: bounds.
        users: who may log in, name to password, and then nobody else may; None lets ANONYMOUS in.
        service: keep the preset's service times as real pauses; without it work takes as long as
            it takes.
        queues: names of queues that are there from the beginning.

    Attributes:
        broker: the broker.
        memory: sets the memory alarm while more is held than the preset's watermark allows.
        read_buffer: octets just read, of whichever connection; they are copied at once.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        preset: Preset,
        *,
        record: MakeTap | None = None,
        limits: Limits | None = None,
        users: dict[str, str] | None = None,
        service: bool = False,
        queues: Iterable[str] = (),
    ) -> None:
        super().__init__(loop, record=record, limits=limits)
        self.read_buffer = memoryview(bytearray(self.limits.read_octets))
        if not service:
            preset = dataclasses.replace(preset, queue_enqueue_us=0, queue_deliver_us=0)
        preset = dataclasses.replace(preset, idle_time_out_ms=_idle_ms(preset, self.limits))
        more: dict[str, Any] = {} if users is None else {"users": users, "anonymous": False}
        self.broker = Broker(self.clock, preset, self.tap, **more)
        mark = preset.memory_high_watermark
        limit = int(mark if mark > 1 else mark * (total_memory() or UNTOLD_MEMORY))
        self.memory = MemoryMonitor(self.broker, self._held_octets, limit, self.tap)
        self.memory.on_change = self._tell_memory
        self.broker.watch_paging(self._held_octets, limit)
        for name in queues:
            self.broker.declare(name)

    def make(self) -> asyncio.BaseProtocol:
        """What a client that connects meets first: it tells the protocols apart."""
        served = PROTOCOLS
        if not self._speaks_1_0:
            served = {header: serve for header, serve in served.items() if serve != LiveConnection}
        return Greeting(self, served, self._refuse)

    @property
    def _speaks_1_0(self) -> bool:
        """RabbitMQ 3 had a plugin for it."""
        preset = self.broker.preset
        return preset.conduct != RABBITMQ or presets.AMQP_1_0 in preset.protocols

    def _refuse(self, greeting: Greeting) -> LiveConnection:
        """Whoever begins otherwise is told which header would do: that of AMQP 1.0 with SASL.

        RabbitMQ 3 tells that of 0-9-1, and RabbitMQ 4 does so to a client that wants a later
        version of it [rabbit_reader.erl: version_negotiation, refuse_connection].
        """
        rabbit = self.broker.preset.conduct == RABBITMQ
        later = greeting.octets[:6] == OF_0_9 and greeting.octets[6:7] >= b"\x09"
        if not self._speaks_1_0 or (rabbit and later):
            return LiveConnection091(greeting)
        return LiveConnection(greeting)

    def forget(self, client: Client) -> None:
        """A connection is over."""
        self.broker.connections.pop(client.name, None)
        super().forget(client)

    def overview(self) -> dict[str, Any]:
        """Flat picture of the listener and its broker."""
        memory = {"memory.held": self._held_octets(), "memory.limit": self.memory.limit}
        return super().overview() | self.broker.overview() | memory

    def _held_octets(self) -> int:
        """What waits in the broker, at the gates and in the sockets, about."""
        waiting: int = sum(connection.held_octets for connection in self.connections.values())
        return self.broker.held_octets + waiting

    def _tell_memory(self, on: bool) -> None:
        held, limit = self._held_octets(), self.memory.limit
        self.news.append(
            f"memory alarm: {held:,} octets are held, the limit is {limit:,}:"
            " publishers of AMQP 1.0 and 0-9-1 are held until messages have left"
            if on
            else f"memory alarm over: {held:,} octets are held, the limit is {limit:,}"
        )


def _idle_ms(preset: Preset, limits: Limits) -> int:
    """The idle-time-out of the broker's open; RabbitMQ's presets have one, also where it is 0."""
    if limits.idle_s is not None:
        return int(limits.idle_s * 1000)
    return preset.idle_time_out_ms if preset.conduct == RABBITMQ else IDLE_MS
