"""Cutting a stream into frames for somebody who must pass every octet on, readable or not.

The rules of this file:

* What comes out, put together again, is what came in, octet for octet.
* What can be read is given with what it says. What cannot be read is given with the reason, and
  goes on all the same.
* No more than one frame of `MOST_DECODED` octets is kept between two calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from workbench.amqp10.errors import DecodeError
from workbench.amqp10.frame import (
    FRAME_HEADER_SIZE,
    MAGIC,
    PROTOCOL_HEADER_SIZE,
    ProtocolHeader,
    WireItem,
    decode_frame,
    unpack_frame_header,
)

MOST_DECODED = 4_194_304
"""A larger frame is passed on in pieces and not read: it would have to be kept whole first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """Octets that are passed on unread.

    Attributes:
        size: how many.
        why: they cannot be read, in words.
        more: the next piece belongs to the same frame, so nothing may be put between them.
    """

    KIND: ClassVar[str] = "unreadable"

    size: int
    why: str
    more: bool = False


StreamSegment: TypeAlias = tuple[bytes, WireItem | Opaque]


class FrameSplitter:
    """One direction of a connection, cut at frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._foreign = ""  # why nothing more can be read; empty as long as it can
        self._left = 0  # octets still to come of a frame that is passed on in pieces
        self._begun = False

    def feed(self, data: bytes) -> list[StreamSegment]:
        """The pieces that these octets complete, in order."""
        self._buffer += data
        pieces: list[StreamSegment] = []
        while piece := self._next():
            pieces.append(piece)
        return pieces

    def rest(self) -> list[StreamSegment]:
        """What is left of a frame that will never be whole."""
        octets = bytes(self._buffer)
        self._buffer.clear()
        if not octets:
            return []
        return [(octets, Opaque(size=len(octets), why="the stream ended within a frame"))]

    def _next(self) -> StreamSegment | None:
        buffer = self._buffer
        if not buffer:
            return None
        if self._foreign:
            return self._unread(len(buffer), self._foreign, more=True)
        if self._left:
            return self._piece_of_large()
        if not self._begun and not MAGIC.startswith(bytes(buffer[:4])):
            self._foreign = "the stream does not begin with a protocol header"
            return self._next()
        if len(buffer) < FRAME_HEADER_SIZE:
            return None
        self._begun = True
        if buffer[:4] == MAGIC:
            return self._header()
        size = unpack_frame_header(bytes(buffer[:FRAME_HEADER_SIZE]))[0]
        if size < FRAME_HEADER_SIZE:
            self._foreign = f"a frame's SIZE is {size}; the least is 8, so no later frame is found"
            return self._next()
        if size > MOST_DECODED:
            self._left = size
            return self._piece_of_large()
        if len(buffer) < size:
            return None
        octets = self._take(size)
        try:
            return octets, decode_frame(octets)
        except DecodeError as error:
            return octets, Opaque(size=size, why=str(error))

    def _header(self) -> StreamSegment:
        octets = self._take(PROTOCOL_HEADER_SIZE)
        header = ProtocolHeader(*octets[4:])
        if not header.supported:
            version = f"{header.major}-{header.minor}-{header.revision}"
            self._foreign = f"the protocol is {header.protocol_id} version {version}, not AMQP 1.0"
        return octets, header

    def _piece_of_large(self) -> StreamSegment:
        size = min(self._left, len(self._buffer))
        self._left -= size
        why = f"a frame of more than {MOST_DECODED:,} octets"
        return self._unread(size, why, more=self._left > 0)

    def _unread(self, size: int, why: str, *, more: bool) -> StreamSegment:
        return self._take(size), Opaque(size=size, why=why, more=more)

    def _take(self, size: int) -> bytes:
        octets = bytes(self._buffer[:size])
        del self._buffer[:size]
        return octets
