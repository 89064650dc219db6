"""What reads a protocol in a capture, and how protocols are told apart by their first octets.

A decoder follows one TCP connection: octets of both directions go in, in the order of the capture,
and frames come out; of each frame it then says what it concerns and the counters behind it. It
knows neither packets nor times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from workbench.capture.report import ConnectionReport
from workbench.trace.schema import AMQP_0_9_1, AMQP_0_10, AMQP_1_0, BROKER, CLIENT
from workbench.trace.words import counted

__all__ = [
    "OTHER", "TLS", "BothDirections", "DecodedFrame", "Decoder", "Found", "FrameRecord",
    "Unreadable", "WithBodies", "protocol_of", "unknown_at", "without_header",
]  # fmt: skip

TLS, OTHER = "tls", "other"

_MAGIC = b"AMQP"


class DecodedFrame(Struct, frozen=True):
    """One frame or protocol header.

    Attributes:
        offset: of its first octet in the stream.
        raw: its octets; None if the capture does not have all of them.
        item: what they say, as the protocol's codec gives it.
        size: octets of the whole frame; None if that is not known.
        body_bytes: octets of its payload; None if that is not known.
    """

    offset: int
    raw: bytes | None
    item: Any
    size: int | None
    body_bytes: int | None


class Unreadable(Struct, frozen=True, gc=False):
    """Octets that gave no frame.

    Attributes:
        offset: where in the stream.
        octets: how many.
        text: what is wrong, for a person.
        lost: they are not in the capture (else they are there and cannot be read).
        detail: more, which may quote the octets.
    """

    offset: int
    octets: int
    text: str
    lost: bool
    detail: str = ""


Found: TypeAlias = DecodedFrame | Unreadable


class FrameRecord(Struct, frozen=True):
    """What a decoder says of a frame; the columns of its row, named and meant as in the schema.

    Attributes:
        frame: the fields as on the wire, for the column of the protocol (`frame`, `frame_091`).
        ledger: the counters that are known; None if none are in scope.
    """

    kind: str
    frame: Mapping[str, Any]
    session: int | None
    link: str | None
    link_sender: str | None
    attach_no: int | None
    ledger: Mapping[str, int | bool] | None
    unknown: tuple[str, ...]
    brake: str | None
    brakes: tuple[str, ...]
    body_bytes: int | None
    frame_bytes: int | None
    raw: bytes | None
    clause: str | None
    consumer: str | None = None


class Decoder(Protocol):
    """Reads one connection.

    A `side` is a direction: 0 is the one whose packet the capture shows first, 1 the other. A
    decoder is made with two truth values, whether the capture has the first octets of each side,
    and the keywords `known`, the connection is known to speak its protocol, and `redact`, secrets
    are to be taken out of octets and fields.

    Attributes:
        client_kinds: kinds of frames that only a client sends.
        broker_kinds: kinds of frames that only a broker sends.
    """

    client_kinds: frozenset[str]
    broker_kinds: frozenset[str]

    def feed(self, side: int, data: bytes) -> list[Found]:
        """Takes the next octets and gives what they complete."""

    def gap(self, side: int, octets: int) -> list[Found]:
        """So many octets are lost here; gives what can be told of the frame they were in."""

    def finish(self, side: int) -> list[Found]:
        """The stream ends; gives what is left and names what is cut."""

    def position(self, side: int) -> int:
        """Stream offset up to which all octets are done with."""

    def restarted(self, first: bool, second: bool) -> Decoder:
        """A fresh decoder of the same connection, which is known to speak its protocol now."""

    def kind(self, frame: DecodedFrame) -> str:
        """What kind of frame it is, as the schema names it."""

    def observe(self, side: int, frame: DecodedFrame, from_client: bool) -> FrameRecord:
        """What a frame concerns, and the counters right behind it; frames in their order."""

    def lost(self, from_client: bool) -> None:
        """Octets of a peer gave no frame: what they may have changed is unknown from here on."""

    def explain(self, report: ConnectionReport, peers: tuple[str, str]) -> None:
        """Adds links, assumptions and what cannot be known.

        Args:
            report: of this connection.
            peers: `client` or `broker`, by side.
        """


class Splitter(Protocol):
    """Splits the octets of one direction into frames.

    Attributes:
        offset: stream offset up to which all octets are done with.
    """

    offset: int

    def feed(self, data: bytes) -> list[Found]:
        """Takes the next octets and gives what they complete."""

    def gap(self, octets: int) -> list[Found]:
        """So many octets are lost here; gives what can be told of the frame they were in."""

    def finish(self) -> list[Found]:
        """The stream ends; gives what is left and names what is cut."""


SplitterT = TypeVar("SplitterT", bound=Splitter)


class BothDirections(Generic[SplitterT]):
    """The half of a decoder that is the same for all: a splitter for each side."""

    def __init__(self, first: SplitterT, second: SplitterT) -> None:
        self._splitters = (first, second)

    def feed(self, side: int, data: bytes) -> list[Found]:
        """The frames that these octets complete."""
        return self._splitters[side].feed(data)

    def gap(self, side: int, octets: int) -> list[Found]:
        """What can be told of the frame in which octets are lost."""
        return self._splitters[side].gap(octets)

    def finish(self, side: int) -> list[Found]:
        """What is left at the end of the stream."""
        return self._splitters[side].finish()

    def position(self, side: int) -> int:
        """Stream offset up to which all octets are done with."""
        return self._splitters[side].offset


class SyncedSplitter(Splitter, Protocol):
    """A splitter that finds the first frame of a stream whose beginning is not there.

    Attributes:
        synced: it did.
        skipped: octets before that frame.
    """

    synced: bool
    skipped: int


SyncedT = TypeVar("SyncedT", bound=SyncedSplitter)


class WithBodies(BothDirections[SyncedT]):
    """The half that is the same where a message's body has frames of its own: 0-9-1 and 0-10.

    Attributes:
        protocol: its name, in words.
    """

    protocol: ClassVar[str]

    def __init__(self, first: SyncedT, second: SyncedT, *, redact: bool) -> None:
        super().__init__(first, second)
        self._redact = redact
        self._without_body = [0, 0]
        self._unknown: Counter[str] = Counter()

    def explain(self, report: ConnectionReport, peers: tuple[str, str]) -> None:
        """Adds assumptions and what cannot be known."""
        for peer in (CLIENT, BROKER):
            side = peers.index(peer)
            splitter = self._splitters[side]
            if splitter.synced:
                report.assumptions.append(
                    without_header(peer, self.protocol, "valid frames", splitter.skipped)
                )
            if self._without_body[side]:
                frames = counted(self._without_body[side], "frame")
                report.unknown.append(
                    f"from {peer}: body of {frames}, which the capture kept only in part"
                )
        report.unknown.extend(unknown_at(self._unknown))


def without_header(peer: str, protocol: str, proof: str, skipped: int) -> str:
    """How it is known what a stream is whose beginning is not there.

    Args:
        peer: who sent it.
        protocol: its name, in words.
        proof: what shows that it is that.
        skipped: octets before the first frame.
    """
    passed = f"; {counted(skipped, 'octet')} before that are passed over" if skipped else ""
    return f"from {peer}: no protocol header; taken as {protocol} by {proof}{passed}"


def unknown_at(counts: Mapping[str, int]) -> Iterator[str]:
    """What cannot be known, by the counter's name in a ledger, and how often."""
    for name, count in sorted(counts.items()):
        yield f"{name.replace('_', '-')} at {counted(count, 'frame')}"


def protocol_of(data: bytes) -> str | None:
    """What protocol a stream speaks, by its first octets; None while they are too few."""
    if data[:4] == _MAGIC[: len(data)]:
        if len(data) < 8:
            return None
        if data[5:8] == b"\x01\x00\x00" and data[4] in (0, 2, 3):
            return AMQP_1_0
        if data[4:8] == b"\x01\x01\x00\x0a":
            return AMQP_0_10
        # 0-9-1 says 0 0 9 1; its predecessors 0-8 and 0-9 say 1 1 8 0 and 1 1 0 9.
        return AMQP_0_9_1
    if len(data) < 3:
        return None
    if 20 <= data[0] <= 23 and data[1] == 3 and data[2] <= 4:
        return TLS
    if len(data) >= 7 and data[0] in (1, 2, 3, 8):
        end = 7 + int.from_bytes(data[3:7], "big")
        if end < len(data) and data[end] == 0xCE:
            return AMQP_0_9_1
    return OTHER
