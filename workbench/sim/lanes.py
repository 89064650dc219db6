"""What is on its way over a wire: frames in order, each direction a lane of its own."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from msgspec import Struct

from .clock import Timer


class WireError(Exception):
    """A wish that the wire cannot fulfil; the text says why and what would be possible."""


class Direction(Enum):
    """Which way a frame travels."""

    __hash__ = object.__hash__  # members are single, and the hash by name is slow

    CLIENT_TO_BROKER = "c2b"
    BROKER_TO_CLIENT = "b2c"

    @property
    def words(self) -> str:
        """The direction in words."""
        return "client to broker" if self is Direction.CLIENT_TO_BROKER else "broker to client"

    @classmethod
    def of(cls, value: Direction | str) -> Direction:
        """The direction meant by `c2b` or `b2c`.

        Raises:
            WireError: if it is neither.
        """
        try:
            return cls(value)
        except ValueError:
            raise WireError(
                f"no direction {value!r}: c2b is client to broker, b2c is broker to client"
            ) from None


class End(Protocol):
    """One end of a wire: a protocol endpoint, ours or a foreign one behind an adapter."""

    vantage: str
    from_peer: str  # "client" or "broker": what this end sends comes from that peer
    ledger_source: str  # "own", or "shadow" if the counters are an observer's

    def apply(self, item: Any) -> Any:
        """Bring the state up to date with an arriving frame; send nothing. Returns events."""

    def react(self, events: Any) -> None:
        """Do about those events what has to be done; here frames may be sent."""

    def scope(self, item: Any, outgoing: bool) -> Any:
        """The counters of the link and session that the frame concerns, as this end has them."""


class Flight(Struct, eq=False):
    """One frame on its way.

    Attributes:
        frame_id: the same in the `sent` and in the `received` row.
        item: the frame as a value.
        direction: which way it travels.
        connection: name of the wire's connection.
        sent_us: when it was sent.
        arrives_us: when it arrives if nobody holds it.
        octets: as a real peer wrote them; None where the frame never was octets.
        parked: its end has sent it, but has not written it to the socket yet.
        size: octets on a wire that counts them, once it is on it.
    """

    frame_id: int
    item: Any
    direction: Direction
    connection: str
    sent_us: int
    arrives_us: int
    octets: bytes | None = None
    parked: bool = False
    size: int = 0


@dataclass(slots=True, eq=False)
class Lane:
    """One direction: frames in order, and what keeps the first of them from arriving."""

    direction: Direction
    sender: End
    receiver: End
    latency_us: int
    flights: deque[Flight] = field(default_factory=deque)
    held: set[int] = field(default_factory=set)  # frame ids that wait for a hand
    closed: bool = False  # a gate: whatever comes waits
    passes: int = 0  # frames that a hand lets through the closed gate
    last_arrival_us: int = 0  # no later frame arrives before this
    timer: Timer | None = None  # arrival of the first frame
    octets: int = 0  # in flight
    full: bool = False  # the sender was told to wait
    intake: Any = None  # takes what has arrived, where it may have to wait for the receiver

    def __post_init__(self) -> None:
        self.intake = getattr(self.receiver, "intake", None)
