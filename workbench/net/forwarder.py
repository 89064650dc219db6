"""A listening socket in front of somebody else's broker: the gate as a proxy."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from .limits import Limits
from .proxy_client import ProxyClient
from .socket_server import ListenError, MakeTap, SocketServer

AMQP_PORT, AMQPS_PORT = 5672, 5671
CONNECT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The broker behind a proxy.

    Attributes:
        host: its name or address.
        port: its TCP port.
        tls: whether the way there is encrypted.
    """

    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        """The target as a client would write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'amqps' if self.tls else 'amqp'}://{host}:{self.port}"

    @classmethod
    def of(cls, text: str) -> Target:
        """The target meant by `host`, `host:port`, `amqp://host:port` or `amqps://...`.

        Raises:
            ListenError: if it is none of these.
        """
        scheme, found, rest = text.rpartition("://")
        wrong = ListenError(
            f"cannot forward to {text!r}; legal: host:port, amqp://host:port, amqps://host:port"
        )
        if found and scheme not in ("amqp", "amqps"):
            raise wrong
        rest = rest.rstrip("/")
        host, colon, port = rest.rpartition(":")
        if not colon or rest.endswith("]"):
            host, port = rest, ""
        tls = scheme == "amqps"
        number = port.isascii() and port.isdecimal() and len(port) < 6
        if port and not (number and 0 < int(port) < 65536):
            raise wrong
        host = host.removeprefix("[").removesuffix("]")
        try:
            host.encode("idna")  # as whoever looks it up does
        except UnicodeError:
            raise wrong from None
        if not host or "@" in host or "/" in host:
            raise wrong
        return cls(host=host, port=int(port or (AMQPS_PORT if tls else AMQP_PORT)), tls=tls)


class Forwarder(SocketServer):
    """Joins each client to the target, with a gate between.

    Args:
        loop: the asyncio loop.
        target: the broker behind.
        record: given the clock, makes the observer of every wire; None records nothing.
        limits: bounds.
        trust: for a target with TLS: whom to trust; None trusts as the system does.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        target: Target,
        *,
        record: MakeTap | None = None,
        limits: Limits | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(loop, record=record, limits=limits)
        self.target = target
        self._trust = trust
        if target.tls and trust is None:
            self._trust = ssl.create_default_context()

    def make(self) -> asyncio.Protocol:
        """A protocol for a connection that comes in."""
        return ProxyClient(self).client

    async def connect(self, make: Callable[[], asyncio.Protocol]) -> None:
        """Open a connection to the target.

        Raises:
            OSError: if it cannot be reached in time, or is not whom it should be.
        """
        await asyncio.wait_for(
            self.loop.create_connection(
                make,
                self.target.host,
                self.target.port,
                ssl=self._trust if self.target.tls else None,
                server_hostname=self.target.host if self.target.tls else None,
            ),
            CONNECT_S,
        )
