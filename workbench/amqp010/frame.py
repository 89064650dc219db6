"""Frames, and how a stream of octets is cut into them.

A frame's header has 12 octets: flags (8 first segment, 4 last segment, 2 first frame, 1 last
frame; the upper four bits, version and reserved, are 0), the type of the segment (0 control, 1
command, 2 header, 3 body), the size of the whole frame, a reserved octet, the track (0 for
controls, 1 for all others), the channel, and four reserved octets. A segment that fits is one
frame; the frame then has what it says as a value. Of a segment over several frames each has octets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import TypeAlias

from msgspec import Struct

from workbench.stream.cutter import StreamCutter

from . import commands, controls, structs  # noqa: F401 - fills the tables by code
from .composite import (
    Command,
    Composite,
    Control,
    UnknownStruct,
    decode_command,
    decode_control,
    decode_struct32,
    encode_struct32,
)
from .errors import DecodeError, LocalProtocolError

__all__ = [
    "FRAME_HEADER_SIZE",
    "LARGEST_FRAME_SIZE",
    "MIN_MAX_FRAME_SIZE",
    "Frame",
    "FrameReader",
    "Headers",
    "ProtocolHeader",
    "SegmentType",
    "WireItem",
    "control_frame",
    "decode_frame",
    "encode_item",
    "frames_of",
    "item_size",
    "octets_of",
]

FRAME_HEADER_SIZE = 12
MIN_MAX_FRAME_SIZE = 4096
"""Every peer takes frames of up to so many octets [MIN-MAX-FRAME-SIZE]."""

LARGEST_FRAME_SIZE = 65535
MAGIC = b"AMQP"

FIRST_SEGMENT, LAST_SEGMENT, FIRST_FRAME, LAST_FRAME = 8, 4, 2, 1

_header = struct.Struct(">BBHBBHI")


class SegmentType(IntEnum):
    """What a segment holds."""

    CONTROL = 0
    COMMAND = 1
    HEADER = 2
    BODY = 3


class ProtocolHeader(Struct, frozen=True, gc=False):
    """What each peer sends first: `AMQP`, class, instance, and the version.

    Attributes:
        protocol_class: 1 is AMQP over TCP.
        instance: 1.
        major: of the version.
        minor: of the version.
    """

    protocol_class: int = 1
    instance: int = 1
    major: int = 0
    minor: int = 10

    @property
    def supported(self) -> bool:
        """Whether it is that of AMQP 0-10."""
        return self == ProtocolHeader()


class Headers(Struct, frozen=True, gc=False, eq=False):
    """A header segment: the properties of a message.

    Attributes:
        structs: `DeliveryProperties`, `MessageProperties`, and what else there is, in order.
        octets: of each struct as it was read, since a value does not tell which type it had on
            the wire; empty if the segment was not read.
    """

    structs: tuple[Composite | UnknownStruct, ...] = ()
    octets: tuple[bytes, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Headers) and self.structs == other.structs

    def __hash__(self) -> int:
        return hash(self.structs)

    def encode(self) -> bytes:
        """Its segment's octets: as they were read, if they were."""
        return b"".join(self.octets or map(encode_struct32, self.structs))

    def beginning_with(self, first: Composite) -> Headers:
        """The same with this struct in place of the one of its kind, before all others."""
        octets = self.octets or map(encode_struct32, self.structs)
        rest = [
            pair
            for pair in zip(self.structs, octets, strict=True)
            if type(pair[0]) is not type(first)
        ]
        ones, kept = zip((first, encode_struct32(first)), *rest, strict=True)
        return Headers(ones, kept)


Content: TypeAlias = Control | Command | Headers | bytes


class Frame(Struct, frozen=True, gc=False):
    """One frame.

    Attributes:
        channel: on which session.
        segment_type: what its segment holds.
        content: what it says, if the whole segment is here and is no body; else octets.
        first_segment: its segment is the first of its control, command or message.
        last_segment: its segment is the last.
        first_frame: it is the first of its segment.
        last_frame: it is the last.
    """

    channel: int
    segment_type: int
    content: Control | Command | Headers | bytes
    first_segment: bool = True
    last_segment: bool = True
    first_frame: bool = True
    last_frame: bool = True

    @property
    def kind(self) -> str:
        """The word for it: `message.transfer`, `header`, `body`, or what it is a part of."""
        if isinstance(self.content, Composite):
            return self.content.NAME
        return SegmentType(self.segment_type).name.lower()


WireItem: TypeAlias = ProtocolHeader | Frame


def octets_of(content: Content) -> bytes:
    """A segment's octets."""
    return content if isinstance(content, bytes) else content.encode()


def encode_item(item: WireItem) -> bytes:
    """A frame's or protocol header's octets.

    Raises:
        LocalProtocolError: it does not fit.
    """
    if isinstance(item, ProtocolHeader):
        return MAGIC + bytes((item.protocol_class, item.instance, item.major, item.minor))
    octets = octets_of(item.content)
    flags = (
        FIRST_SEGMENT * item.first_segment
        | LAST_SEGMENT * item.last_segment
        | FIRST_FRAME * item.first_frame
        | LAST_FRAME * item.last_frame
    )
    kind, track = item.segment_type, int(item.segment_type != SegmentType.CONTROL)
    try:
        size = FRAME_HEADER_SIZE + len(octets)
        return _header.pack(flags, kind, size, 0, track, item.channel, 0) + octets
    except struct.error:
        raise LocalProtocolError(
            f"a frame of {len(octets)} octets on channel {item.channel} does not fit; legal:"
            f" {LARGEST_FRAME_SIZE - FRAME_HEADER_SIZE} octets, channels 0 to 65535"
        ) from None


def item_size(item: WireItem) -> int:
    """The number of octets of `encode_item(item)`."""
    if isinstance(item, ProtocolHeader):
        return 8
    return FRAME_HEADER_SIZE + len(octets_of(item.content))


def control_frame(channel: int, control: Control) -> Frame:
    """The frame of a control."""
    return Frame(channel, SegmentType.CONTROL, control)


def frames_of(
    channel: int,
    command: Command,
    headers: Headers | None = None,
    payload: bytes | None = None,
    *,
    max_frame_size: int = LARGEST_FRAME_SIZE,
) -> Iterator[Frame]:
    """The frames of a command: its segments, each cut where it is longer than a frame.

    Args:
        channel: on which session.
        command: what it says.
        headers: of a message.
        payload: of a message; None: it has no body segment.
        max_frame_size: octets that the peer takes in a frame.
    """
    segments: list[tuple[SegmentType, Content]] = [(SegmentType.COMMAND, command)]
    if headers is not None:
        segments.append((SegmentType.HEADER, headers))
    if payload is not None:
        segments.append((SegmentType.BODY, payload))
    room = max_frame_size - FRAME_HEADER_SIZE
    for place, (kind, content) in enumerate(segments, 1):
        octets = octets_of(content)
        for at in range(0, max(len(octets), 1), room):
            whole = len(octets) <= room
            yield Frame(
                channel,
                kind,
                content if whole else octets[at : at + room],
                first_segment=place == 1,
                last_segment=place == len(segments),
                first_frame=at == 0,
                last_frame=at + room >= len(octets),
            )


def decode_headers(data: bytes) -> Headers:
    """Reads a header segment.

    Raises:
        DecodeError: it cannot be read.
    """
    found, octets, at = [], [], 0
    while at < len(data):
        start = at
        one, at = decode_struct32(data, at, len(data))
        found.append(one)
        octets.append(data[start:at])
    return Headers(tuple(found), tuple(octets))


def decode_segment(kind: int, data: bytes) -> Content:
    """Reads what a whole segment says; a body stays what it is.

    Raises:
        DecodeError: it cannot be read.
    """
    if kind == SegmentType.CONTROL:
        return decode_control(data)
    if kind == SegmentType.COMMAND:
        return decode_command(data)
    return decode_headers(data) if kind == SegmentType.HEADER else data


def check_frame_header(data: bytes | bytearray, limit: int) -> int:
    """Refuses the header of a frame that cannot be; returns the frame's size.

    Raises:
        DecodeError: bits that are reserved are set, a size that cannot be, an unknown type.
    """
    flags, kind, size, reserved, track, _, more = _header.unpack_from(data)
    if flags >> 4:
        raise DecodeError(f"frame flags are {flags:#04x}; version and reserved bits are 0", 0)
    if kind > SegmentType.BODY:
        raise DecodeError(
            f"segment type is {kind}; legal: 0 control, 1 command, 2 header, 3 body", 1
        )
    if not FRAME_HEADER_SIZE <= size <= limit:
        raise DecodeError(f"frame size is {size}; legal: {FRAME_HEADER_SIZE} to {limit}", 2)
    if reserved or more:
        raise DecodeError("a reserved octet of the frame's header is not 0", 4)
    if track != int(kind != SegmentType.CONTROL):
        raise DecodeError(f"track is {track} with segment type {kind}; controls: 0, others: 1", 5)
    if kind in (SegmentType.CONTROL, SegmentType.COMMAND) and not flags & FIRST_SEGMENT:
        raise DecodeError("a control or command is a first segment; its flag is not set", 0)
    if kind in (SegmentType.HEADER, SegmentType.BODY) and flags & FIRST_SEGMENT:
        raise DecodeError("a first segment is a control or a command, not a header or body", 0)
    return int(size)


def decode_frame(raw: bytes, *, limit: int = LARGEST_FRAME_SIZE) -> Frame:
    """Reads one whole frame.

    Raises:
        DecodeError: the octets are no frame, or its segment cannot be read.
    """
    if len(raw) < FRAME_HEADER_SIZE:
        raise DecodeError(f"a frame has at least 12 octets; here are {len(raw)}", len(raw))
    size = check_frame_header(raw, limit)
    if size != len(raw):
        raise DecodeError(f"frame size is {size}; here are {len(raw)} octets", 2)
    return _decoded(raw)


def _decoded(raw: bytes) -> Frame:
    flags, kind, _, _, _, channel, _ = _header.unpack_from(raw)
    content: Content = raw[FRAME_HEADER_SIZE:]
    first_frame, last_frame = bool(flags & FIRST_FRAME), bool(flags & LAST_FRAME)
    if first_frame and last_frame:
        content = decode_segment(kind, raw[FRAME_HEADER_SIZE:])
    return Frame(
        channel,
        kind,
        content,
        bool(flags & FIRST_SEGMENT),
        bool(flags & LAST_SEGMENT),
        first_frame,
        last_frame,
    )


class RawItem(Struct, frozen=True, gc=False):
    """A frame or protocol header with its octets.

    Attributes:
        offset: of its first octet in the stream.
        raw: its octets.
        item: what they say.
    """

    offset: int
    raw: bytes
    item: ProtocolHeader | Frame


class FrameReader(StreamCutter[RawItem]):
    """Cuts a stream of octets, arriving in any pieces, into frames behind a protocol header.

    Reads one direction of a connection.

    Args:
        max_frame_size: the largest frame accepted, in octets.
        mid_stream: the stream may begin with a frame, its beginning not having been seen.

    Attributes:
        max_frame_size: may be set between frames.
    """

    def __init__(
        self, max_frame_size: int = LARGEST_FRAME_SIZE, *, mid_stream: bool = False
    ) -> None:
        super().__init__()
        self.max_frame_size = max_frame_size
        self._header_allowed = True
        self._frame_allowed = mid_stream

    def _cut(self, data: bytes, items: list[RawItem]) -> int:
        at = 0
        try:
            while len(data) - at >= (size := self._size(data[at : at + FRAME_HEADER_SIZE])):
                raw = data[at : at + size]
                item = ProtocolHeader(*raw[4:]) if raw[:4] == MAGIC else _decoded(raw)
                items.append(RawItem(self.offset, raw, item))
                at += size
                self.offset += size
                self._header_allowed, self._frame_allowed = False, True
        except DecodeError as error:
            raise error.moved(self.offset) from None
        self._needed = size
        return at

    def _size(self, begin: bytes) -> int:
        """The size of the item that begins so, as far as can be told."""
        if self._header_allowed and MAGIC.startswith(begin[:4]):
            return 8
        if not self._frame_allowed:
            raise DecodeError(
                f"the stream begins with {begin[:8].hex(' ')}; legal is the protocol"
                " header 41 4d 51 50 (AMQP), 01 01 00 0a",
                0,
            )
        if len(begin) < FRAME_HEADER_SIZE:
            return FRAME_HEADER_SIZE
        return check_frame_header(begin, self.max_frame_size)
