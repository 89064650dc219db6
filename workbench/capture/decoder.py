"""What reads a protocol in a capture, and how protocols are told apart by their first octets.

A decoder follows one TCP connection: octets of both directions go in, in the order of the capture,
and frames come out; of each frame it then says what it concerns and the counters behind it. It
knows neither packets nor times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeAlias

from msgspec import Struct

from workbench.capture.report import ConnectionReport, protocol_name
from workbench.trace.schema import AMQP_0_9_1, AMQP_0_10, AMQP_1_0, BROKER, CLIENT
from workbench.trace.wire_items import codec_of
from workbench.trace.words import counted

__all__ = [
    "MAX_FRAME", "OTHER", "SYNC_FRAMES", "TLS", "DecodedFrame", "Decoder", "Found", "FrameRecord",
    "Unreadable", "protocol_of",
]  # fmt: skip

TLS, OTHER = "tls", "other"

SYNC_FRAMES = 3
"""Frames in a row that show the protocol of octets of unknown origin."""

MAX_FRAME = 16 * 1024 * 1024
"""Largest frame believed where the peer has set no smaller limit."""

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
        octets: how far it reaches from there, as far as that was seen.
        text: what is wrong, for a person.
        lost: how many are not in the capture; None if all are there and cannot be read.
        detail: more, which may quote the octets.
    """

    offset: int
    octets: int
    text: str
    lost: int | None
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


class Decoder:
    """Reads one connection.

    A `side` is a direction: 0 is the one whose packet the capture shows first, 1 the other.

    Args:
        first: the capture has the first octets of side 0.
        second: of side 1.
        known: the connection is known to speak the protocol.
        redact: secrets are to be taken out of octets and fields.

    Attributes:
        splitter: splits the octets of one direction into frames; its `offset` is where in the
            stream all octets are done with.
        observer: makes what follows the frames of both directions.
        client_kinds: kinds of frames that only a client sends.
        broker_kinds: kinds of frames that only a broker sends.
    """

    splitter: ClassVar[Callable[..., Any]]
    observer: ClassVar[type[Any]]
    client_kinds: ClassVar[frozenset[str]]
    broker_kinds: ClassVar[frozenset[str]]

    def __init__(
        self, first: bool, second: bool, *, known: bool = False, redact: bool = False
    ) -> None:
        make = self.splitter
        self._splitters = (make(first, trusted=known), make(second, trusted=known))
        self._observer = self.observer()
        self._redact = redact
        self._begun = [False, False]
        self._cut = [0, 0]  # frames of a message of which the capture has not all octets
        self._unknown: Counter[str] = Counter()
        self._synced_by = [0, 0]

    def feed(self, side: int, data: bytes) -> list[Found]:
        """Takes the next octets and gives the frames that they complete."""
        splitter = self._splitters[side]
        found: list[Found] = splitter.feed(data)
        if splitter.late:
            # What the other end said meanwhile came first here and did not come first there.
            splitter.late = False
            self.lost(True)
            self.lost(False)
        return found

    def gap(self, side: int, octets: int) -> list[Found]:
        """So many octets are lost here; gives what can be told of the frame they were in."""
        found: list[Found] = self._splitters[side].gap(octets)
        self._cut[side] += sum(type(each) is DecodedFrame for each in found)
        return found

    def finish(self, side: int) -> list[Found]:
        """The stream ends; gives what is left and names what is cut."""
        found: list[Found] = self._splitters[side].finish()
        return found

    def position(self, side: int) -> int:
        """Stream offset up to which all octets are done with."""
        return int(self._splitters[side].offset)

    def restarted(self, first: bool, second: bool) -> Self:
        """The same connection from its beginning; what showed its protocol is kept."""
        fresh = type(self)(first, second, known=True, redact=self._redact)
        fresh._synced_by = [splitter.synced_by for splitter in self._splitters]
        return fresh

    def kind(self, frame: DecodedFrame) -> str:
        """What kind of frame it is, as the schema names it."""
        return codec_of(frame.item).fields(frame.item)[0]

    def author(self, frame: DecodedFrame) -> str | None:
        """The peer that alone sends such a frame: `client` or `broker`; None if both do."""
        kind = self.kind(frame)
        if kind in self.client_kinds:
            return CLIENT
        return BROKER if kind in self.broker_kinds else None

    def observe(self, side: int, frame: DecodedFrame, from_client: bool) -> FrameRecord:
        """What a frame concerns, and the counters right behind it; frames in their order."""
        raise NotImplementedError

    def lost(self, from_client: bool) -> None:
        """Octets of a peer gave no frame: what they may have changed is unknown from here on."""
        self._observer.lost(from_client)

    def proof(self, side: int) -> str:
        """What shows its protocol where a side's beginning is not there; else empty."""
        frames = self._synced_by[side] or self._splitters[side].synced_by
        if not frames:
            return ""
        return counted(frames, "valid frame") + (" in a row" if frames > 1 else "")

    def untold(self, side: int) -> Iterator[str]:
        """What a side said, and the capture does not have."""
        splitter = self._splitters[side]
        if splitter.encrypted:
            yield f"from stream offset {splitter.offset} on it is {TLS}, encrypted"
        if self._cut[side]:
            frames = counted(self._cut[side], "frame")
            yield f"payload of {frames}, which the capture kept only in part"

    def explain(self, report: ConnectionReport, peers: tuple[str, str]) -> None:
        """Adds links, assumptions and what cannot be known.

        Args:
            report: of this connection.
            peers: `client` or `broker`, by side.
        """
        for peer in (CLIENT, BROKER):
            side = peers.index(peer)
            proof, skipped = self.proof(side), self._splitters[side].skipped
            if proof:
                name = protocol_name(report.protocol)
                passed = f"; {counted(skipped, 'octet')} before that are passed over"
                report.assumptions.append(
                    f"from {peer}: no protocol header; taken as {name} by {proof}"
                    + (passed if skipped else "")
                )
            report.unknown.extend(f"from {peer}: {what}" for what in self.untold(side))
        for name, count in sorted(self._unknown.items()):
            report.unknown.append(f"{name.replace('_', '-')} at {counted(count, 'frame')}")
        report.assumptions.extend(self._observer.assumptions)


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
