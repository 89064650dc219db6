"""What a client meets first: a listener that waits for its first eight octets.

They name the protocol. Whoever serves it then takes the socket over, with what was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .buffered_socket import BufferedSocket
from .client import Client
from .loop_clock import US_PER_S, LoopTimer
from .protocols import HEADER_OCTETS

if TYPE_CHECKING:
    from .listener import Listener

Serve = Callable[["Greeting"], Any]
"""Makes the asyncio protocol that serves a client from its first octet on; it is a `Client` too."""


class Greeting(Client, asyncio.Protocol):
    """A client that has not said yet which protocol it speaks.

    Args:
        listener: whose client it is.
        protocols: who serves a client, by its first eight octets.
        otherwise: who answers a client whose first octets are none of these.

    Attributes:
        socket: its socket.
        connected_us: when it connected.
        octets: what it has said.
    """

    server: Listener

    def __init__(
        self, listener: Listener, protocols: Mapping[bytes, Serve], otherwise: Serve
    ) -> None:
        super().__init__(listener, "")
        self.socket = BufferedSocket(listener.loop, listener.limits)
        self.connected_us = listener.clock.now_us
        self._protocols = protocols
        self._otherwise = otherwise
        self.octets = b""
        self._patience: LoopTimer | None = None

    @property
    def vantage(self) -> str:
        """Who tells of it."""
        return f"client:{self.name}"

    @property
    def words(self) -> str:
        """Where it is."""
        return f"a client that has said nothing yet, from {self.socket.address}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected; it is turned away if there are too many."""
        if not self.server.admits(transport):
            self.lost = True
            return
        self.name = self.server.next_name()
        self.socket.take_transport(transport)
        limit_us = int(self.server.limits.handshake_s * US_PER_S)
        self._patience = self.server.clock.call_later(limit_us, self.drop)
        self.server.welcome(self)

    def data_received(self, data: bytes) -> None:
        """Octets of the client: enough to know its protocol, or to wait for more."""
        self.octets += data
        first = self.octets[:HEADER_OCTETS]
        if len(first) < HEADER_OCTETS and any(
            header.startswith(first) for header in self._protocols
        ):
            return
        self._stop_waiting()
        transport = self.socket.transport
        assert transport is not None
        serving = self._protocols.get(first, self._otherwise)(self)
        transport.set_protocol(serving)
        self.server.welcome(serving)
        serving.receive(self.octets)

    def connection_lost(self, error: Exception | None) -> None:
        """The client has gone without a word."""
        self._stop_waiting()
        if not self.lost:
            self.lost = True
            self.note("disconnect")
            self.server.news.append(f"{self.name} is gone without a close")
            self.server.forget(self)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()

    def farewell(self) -> None:
        """There is nothing to be said: close."""
        self.socket.close()

    def drop(self) -> None:
        """Cut it."""
        self.socket.abort()
