"""A listening socket and its connections, on one asyncio loop, whatever stands behind it."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any

from workbench.notebook import PlainError
from workbench.sim import Direction, NoTap, Tap
from workbench.trace.files import reason

from .client import Client
from .handshake import Handshake
from .limits import Limits
from .loop_clock import LoopClock

LOOPBACK = "127.0.0.1"
NEWS_KEPT = 1_000
MakeTap = Callable[[Callable[[], int]], Tap]


class ListenError(PlainError):
    """The listener cannot be started as asked; the text says why and what would do."""


class SocketServer:
    """Takes connections in, and keeps the list of them.

    Everything here runs on the loop's thread.

    Args:
        loop: the asyncio loop.
        record: given the clock, makes the observer of every wire; None records nothing.
        limits: bounds.

    Attributes:
        clock: its time.
        connections: live ones by name.
        handshakes: of clients whose TLS handshake is under way.
        freeze_new: both gates of a connection that is made from now on are closed at once.
        news: what happened to connections, in words, for whoever runs it.
        turned_away: clients refused because there were too many.
        failures: exceptions that a connection's code let escape; each closed that connection.
        on_change: called when there is something new to be seen: who is connected, what waits.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        record: MakeTap | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.loop = loop
        self.failures: list[BaseException] = []
        self.clock = LoopClock(loop, self.failures.append)
        self.tap: Tap = NoTap() if record is None else record(lambda: self.clock.now_us)
        self.recording = record is not None
        self.limits = limits or Limits()
        self.connections: dict[str, Client] = {}
        self.handshakes: dict[Handshake, asyncio.Task[None]] = {}
        self.freeze_new = False
        self.news: deque[str] = deque(maxlen=NEWS_KEPT)
        self.turned_away = 0
        self.on_change: Callable[[], None] = _nothing
        self._names = itertools.count(1)
        self._frame_ids = itertools.count()
        self._server: asyncio.Server | None = None

    def make(self) -> asyncio.BaseProtocol:
        """A protocol for a connection that comes in."""
        raise NotImplementedError

    async def start(
        self, host: str = LOOPBACK, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> int:
        """Listen; returns the port.

        Raises:
            ListenError: if the address cannot be bound.
        """
        if port not in range(65_536):
            raise ListenError(f"port {port!r}: legal: 0 to 65535, of which 0 takes a free one")
        make = self.make if tls is None else lambda: Handshake(self, tls)
        try:
            if host and port == 0:  # each address of a name would get a free port of its own
                found = await self.loop.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
                host = str(found[0][4][0])
            self._server = await self.loop.create_server(make, host, port)
        except OSError as error:
            # Since 3.13 asyncio skips an address that the machine has not got, and tells no number.
            why = reason(error) if error.errno else os.strerror(errno.EADDRNOTAVAIL)
            free = "; port 0 takes a free one" if error.errno == errno.EADDRINUSE else ""
            raise ListenError(f"cannot listen on {host} port {port}: {why}{free}") from error
        except UnicodeError:
            raise ListenError(f"cannot listen on {host!r:.60}: that can be no host") from None
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        """Stop listening, let go of what is held, say farewell, and then cut what is left."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for handshake in self.handshakes.values():
            handshake.cancel()
        for connection in list(self.connections.values()):
            if connection.wire is not None:
                connection.wire.breakpoints.clear()
                connection.wire.thaw()
        await self._until(lambda: not any(_waits(each) for each in self.connections.values()))
        for connection in list(self.connections.values()):
            connection.farewell()
        await self._until(lambda: not self.connections)
        for connection in list(self.connections.values()):
            connection.drop()
        # The transports tell of their end in the loop's next turns.
        for _ in range(3):
            await asyncio.sleep(0)

    async def _until(self, done: Callable[[], bool]) -> None:
        give_up = self.loop.time() + self.limits.farewell_s
        while not done() and self.loop.time() < give_up:
            await asyncio.sleep(0.005)

    def admits(self, transport: asyncio.BaseTransport) -> bool:
        """Whether there is room for one more; if not, it is turned away here."""
        if len(self.connections) + len(self.handshakes) < self.limits.connections:
            return True
        self.turned_away += 1
        self.news.append(
            f"a client is turned away: {self.limits.connections} are connected, the most"
        )
        assert isinstance(transport, asyncio.Transport)
        transport.abort()
        return False

    def welcome(self, client: Client) -> None:
        """A client is connected, or another object stands for it from now on."""
        if client.name not in self.connections:
            client.note("connect")
        self.connections[client.name] = client
        self.changed()

    def changed(self) -> None:
        """There is something new to be seen."""
        self.on_change()

    def next_name(self) -> str:
        """Name of the next connection."""
        return f"c{next(self._names)}"

    def next_frame_id(self) -> int:
        """Number of the next frame, over all connections."""
        return next(self._frame_ids)

    def forget(self, client: Client) -> None:
        """A connection is over."""
        self.connections.pop(client.name, None)
        self.changed()

    def overview(self) -> dict[str, Any]:
        """Flat picture of it."""
        return {
            "connections": len(self.connections),
            "turned_away": self.turned_away,
            "failures": len(self.failures),
        }


def _waits(client: Client) -> bool:
    wire = client.wire
    return wire is not None and any(wire.waiting(direction) for direction in Direction)


def _nothing() -> None:
    pass
