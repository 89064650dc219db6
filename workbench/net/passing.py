"""Cutting a stream into frames for somebody who must pass every octet on, readable or not.

The rules of this file:

* What comes out, put together again, is what came in, octet for octet.
* What can be read is given with what it says. What cannot be read is given with the reason, and
  goes on all the same.
* No more than one frame of `MOST_DECODED` octets is kept between two calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from workbench.amqp091 import frame as frame091
from workbench.amqp10.frame import (
    FRAME_HEADER_SIZE,
    MAGIC,
    PROTOCOL_HEADER_SIZE,
    ProtocolHeader,
    WireItem,
    decode_frame,
    unpack_frame_header,
)

from .protocols import AMQP_0_9_1, AMQP_1_0, WireProtocol

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


Passed: TypeAlias = WireItem | frame091.WireItem | Opaque
StreamSegment: TypeAlias = tuple[bytes, Passed]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameForm:
    """What a frame of a protocol looks like from outside.

    Attributes:
        protocol: how it is recorded and held.
        head: so many octets tell its size.
        size: that size, all octets counted; less than `head`: no later frame can be found.
        decode: a whole frame's value; raises the protocol's decode error.
    """

    protocol: WireProtocol
    head: int
    size: Callable[[bytes], int]
    decode: Callable[[bytes], Any]


FORM_1_0 = FrameForm(
    protocol=AMQP_1_0,
    head=FRAME_HEADER_SIZE,
    size=lambda head: unpack_frame_header(head)[0],
    decode=decode_frame,
)
FORM_0_9_1 = FrameForm(
    protocol=AMQP_0_9_1,
    head=frame091.EMPTY_FRAME_SIZE - 1,  # without frame-end
    size=lambda head: int.from_bytes(head[3:7], "big") + frame091.EMPTY_FRAME_SIZE,
    decode=lambda octets: frame091.read_frame(octets, 0, len(octets)),
)


class FrameSplitter:
    """One direction of a connection, cut at frames.

    Attributes:
        form: of its frames; the header of AMQP 0-9-1 changes it.
    """

    def __init__(self) -> None:
        self.form = FORM_1_0
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

    def answers(self, form: FrameForm) -> None:
        """The other direction has begun with a header, and this one need not."""
        self.form = form
        self._begun = True

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
        form = self.form
        if buffer[:4] == MAGIC:
            if len(buffer) < PROTOCOL_HEADER_SIZE:
                return None
            self._begun = True
            return self._header()
        if len(buffer) < form.head or not self._begun:
            return None
        size = form.size(bytes(buffer[: form.head]))
        if size < form.head:
            self._foreign = f"a frame's SIZE is {size}; the least is 8, so no later frame is found"
            return self._next()
        if size > MOST_DECODED:
            self._left = size
            return self._piece_of_large()
        if len(buffer) < size:
            return None
        octets = self._take(size)
        try:
            return octets, form.decode(octets)
        except form.protocol.undecodable as error:
            return octets, Opaque(size=size, why=str(error))

    def _header(self) -> StreamSegment:
        octets = self._take(PROTOCOL_HEADER_SIZE)
        if octets in AMQP_0_9_1.headers:
            self.form = FORM_0_9_1
            return octets, frame091.ProtocolHeader()
        header = ProtocolHeader(*octets[4:])
        if not header.supported:
            version = f"{header.major}-{header.minor}-{header.revision}"
            protocol = f"the protocol is {header.protocol_id} version {version}"
            self._foreign = f"{protocol}, neither AMQP 1.0 nor 0-9-1"
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
