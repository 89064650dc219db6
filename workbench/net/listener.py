"""A listening socket in front of a broker, on one asyncio loop."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from workbench.broker import Broker
from workbench.presets import Preset
from workbench.sim import NoTap, Tap

from .limits import Limits
from .live_connection import LiveConnection
from .loop_clock import LoopClock

LOOPBACK = "127.0.0.1"
NEWS_KEPT = 1_000


class ListenError(Exception):
    """The listener cannot be started as asked; the text says why and what would do."""


class Listener:
    """A broker that real clients can connect to.

    Everything here runs on the loop's thread.

    Args:
        loop: the asyncio loop.
        preset: every default number of the broker; its service times are not slept away, see
            `service`.
        record: given the clock, makes the observer of every wire and of the broker's inside; None
            records nothing.
        limits: bounds.
        users: who may log in, name to password, and then nobody else may; None lets ANONYMOUS in.
        queues: that there are from the beginning, by name.
        service: keep the preset's service times as real pauses; without it work takes as long as
            it takes.

    Attributes:
        broker: the broker.
        clock: its clock.
        connections: live ones by name.
        freeze_new: both gates of a connection that is made from now on are closed at once.
        news: what happened to connections, in words, for whoever runs the broker.
        read_buffer: octets just read, of whichever connection; they are copied at once.
        turned_away: clients refused because there were too many.
        failures: exceptions that a connection's code let escape; each closed that connection.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        preset: Preset,
        *,
        record: Callable[[Callable[[], int]], Tap] | None = None,
        limits: Limits | None = None,
        users: dict[str, str] | None = None,
        queues: Iterable[str] = (),
        service: bool = False,
    ) -> None:
        if not service:
            preset = dataclasses.replace(preset, queue_enqueue_us=0, queue_deliver_us=0)
        self.loop = loop
        self.failures: list[BaseException] = []
        self.clock = LoopClock(loop, self.failures.append)
        self.tap: Tap = NoTap() if record is None else record(lambda: self.clock.now_us)
        self.recording = record is not None
        self.limits = limits or Limits()
        more = {} if users is None else {"users": users, "anonymous": False}
        self.broker = Broker(self.clock, preset, self.tap, **more)  # type: ignore[arg-type]
        for queue in queues:
            self.broker.declare(queue)
        self.connections: dict[str, LiveConnection] = {}
        self.read_buffer = memoryview(bytearray(self.limits.read_octets))
        self.freeze_new = False
        self.news: deque[str] = deque(maxlen=NEWS_KEPT)
        self.turned_away = 0
        self._names = itertools.count(1)
        self._frame_ids = itertools.count()
        self._server: asyncio.Server | None = None

    async def start(
        self, host: str = LOOPBACK, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> int:
        """Listen; returns the port.

        Raises:
            ListenError: if the address cannot be bound.
        """
        try:
            self._server = await self.loop.create_server(
                lambda: LiveConnection(self), host, port, ssl=tls
            )
        except OSError as error:
            raise ListenError(
                f"cannot listen on {host} port {port}: {error.strerror or error}; port 0 takes a"
                " free one"
            ) from error
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self.connections.values()):
            connection.drop()
        # The transports tell of their end in the loop's next turns.
        for _ in range(3):
            await asyncio.sleep(0)

    def next_name(self) -> str:
        """Name of the next connection."""
        return f"c{next(self._names)}"

    def next_frame_id(self) -> int:
        """Number of the next frame, over all connections."""
        return next(self._frame_ids)

    def forget(self, connection: LiveConnection) -> None:
        """A connection is over."""
        self.connections.pop(connection.name, None)
        self.broker.connections.pop(connection.name, None)

    def overview(self) -> dict[str, Any]:
        """Flat picture of the listener and its broker."""
        return {
            "connections": len(self.connections),
            "turned_away": self.turned_away,
            "failures": len(self.failures),
            **self.broker.overview(),
        }
