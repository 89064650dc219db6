"""A client of a socket server, from its first octet to its last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from workbench.sim import Direction

from .live_wire import LiveWire

if TYPE_CHECKING:
    from .socket_server import SocketServer


class Client(ABC):
    """A connection as its server sees it.

    Args:
        server: whose client it is.
        name: `c1`, `c2`, ... in order of opening.

    Attributes:
        wire: with the gates; None as long as it is not known which protocol the client speaks.
        lost: the client's socket is closed.
    """

    def __init__(self, server: SocketServer, name: str) -> None:
        self.server = server
        self.name = name
        self.wire: LiveWire | None = None
        self.lost = False

    @property
    @abstractmethod
    def words(self) -> str:
        """Who it is, in words."""

    @property
    @abstractmethod
    def vantage(self) -> str:
        """Who tells of its coming and going in a trace."""

    @property
    def held_octets(self) -> int:
        """Octets that wait at the gates, and for the client to read them."""
        return 0 if self.wire is None else sum(self.wire.octets_waiting.values())

    @abstractmethod
    def farewell(self) -> None:
        """Nothing more will be taken: say so, write what waits, and close."""

    @abstractmethod
    def drop(self) -> None:
        """Cut it without a word."""

    def open_wire(self, wire: LiveWire) -> None:
        """Takes the wire, whose gates are closed if those of new connections are to be."""
        self.wire = wire
        wire.on_change = self.server.changed
        if self.server.freeze_new:
            wire.freeze()

    def too_much(self, direction: Direction) -> bool:
        """Whether more waits at the gate that way than the limits allow."""
        wire, limits = self.wire, self.server.limits
        return wire is not None and (
            wire.waiting(direction) > limits.held_frames
            or wire.octets_waiting[direction] > limits.held_octets
        )

    def note(self, event: str, **extra: Any) -> None:
        """A row that tells of it."""
        self.server.tap.internal(
            t_us=self.server.clock.now_us,
            event=event,
            vantage=self.vantage,
            connection=self.name,
            extra=extra or None,
        )
