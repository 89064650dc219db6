"""Frames and protocol headers: octets to values as they arrive, and back [4.2].

A frame is TYPE (1 method, 2 content header, 3 content body, 8 heartbeat), the channel (2 octets),
the payload's size (4 octets), the payload, and the octet CE. frame-max counts all of it.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, final

from msgspec import Struct

from workbench.amqp091.codec import (
    method_size,
    properties_size,
    read_method,
    read_properties,
    write_method,
    write_properties,
)
from workbench.amqp091.errors import DecodeError, LocalProtocolError, ReplyCode
from workbench.amqp091.methods import NO_PROPERTIES, ConnectionTuneOk, Method, Properties
from workbench.stream.cutter import StreamCutter

__all__ = [
    "BASIC", "CONTENT_PARTS", "EMPTY_FRAME_SIZE", "FRAME_MIN_SIZE", "ContentHeader", "Frame",
    "FrameReader", "Payload", "ProtocolHeader", "RawItem", "Undecodable", "WireItem", "body_parts",
    "encode_item", "item_size", "kind_of", "lower_limit", "read_frame",
]  # fmt: skip

FRAME_MIN_SIZE: Final = 4096
"""Every peer accepts frames of up to so many octets [4.2.3, `frame-min-size`]."""

EMPTY_FRAME_SIZE: Final = 8
"""What a frame has beside its payload."""

FUDGE: Final = EMPTY_FRAME_SIZE
"""So many octets above frame-max are let pass: clients count wrong [rabbit_reader.erl]."""

FRAME_END: Final = 0xCE
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
BASIC: Final = 60
"""The only class whose methods carry content."""

MAGIC = b"AMQP"

_frame_header = struct.Struct(">BHI")
_content_header = struct.Struct(">HHQ")


@final
class ProtocolHeader(Struct, frozen=True, gc=False):
    """What a client sends first; from a server: what it would speak [4.2.2].

    Attributes:
        protocol_id: 0.
        major: of the version: 0.
        minor: of the version: 9.
        revision: of the version: 1.
    """

    protocol_id: int = 0
    major: int = 0
    minor: int = 9
    revision: int = 1


class ContentHeader(Struct, frozen=True, gc=False, kw_only=True):
    """Size and properties of a message [4.2.6.1].

    Attributes:
        body_size: octets of the body frames that follow.
        properties: of the message; empty if the class is not basic.
        class_id: of the method before it.
        weight: 0.
    """

    body_size: int
    properties: Properties = NO_PROPERTIES
    class_id: int = BASIC
    weight: int = 0


class Undecodable(Struct, frozen=True, gc=False):
    """What a frame holds whose inside cannot be read; the frames around it can.

    Attributes:
        frame_type: 1 or 2.
        octets: the payload.
        code: why, as `DecodeError` has it.
        fault: why, in words.
    """

    frame_type: int
    octets: bytes
    code: ReplyCode
    fault: str

    @property
    def numbers(self) -> tuple[int, int]:
        """Class-id and method-id as far as they are there; else 0."""
        if self.frame_type != METHOD or len(self.octets) < 4:
            return 0, 0
        return int.from_bytes(self.octets[:2], "big"), int.from_bytes(self.octets[2:4], "big")


Payload: TypeAlias = Method | ContentHeader | bytes | Undecodable | None
"""A method, a content header, octets of a body, or nothing: a heartbeat."""


@final
class Frame(Struct, frozen=True, gc=False):
    """One frame.

    Attributes:
        channel: number of the channel; 0 is the connection.
        payload: what it holds.
    """

    channel: int
    payload: Payload = None


CONTENT_PARTS: Final = frozenset((ContentHeader, bytes))
"""Types of the payloads that carry a message behind its method."""

WireItem: TypeAlias = ProtocolHeader | Frame


class RawItem(Struct, frozen=True, gc=False):
    """A frame or protocol header with its octets.

    Attributes:
        offset: of its first octet in the stream.
        raw: its octets.
        item: what they say.
    """

    offset: int
    raw: bytes
    item: WireItem


def kind_of(item: WireItem) -> str:
    """The method's name, `content-header`, `content-body`, `heartbeat` and so on."""
    if type(item) is ProtocolHeader:
        return "protocol-header"
    payload = item.payload
    if isinstance(payload, Method):
        return payload.NAME
    if payload is None:
        return "heartbeat"
    if isinstance(payload, bytes):
        return "content-body"
    return "content-header" if isinstance(payload, ContentHeader) else "undecodable"


def _payload(payload: Payload) -> tuple[int, bytes]:
    """TYPE and octets of a payload."""
    if isinstance(payload, Method):
        return METHOD, write_method(payload)
    if isinstance(payload, bytes):
        return BODY, payload
    if payload is None:
        return HEARTBEAT, b""
    if isinstance(payload, Undecodable):
        return payload.frame_type, payload.octets
    try:
        fixed = _content_header.pack(payload.class_id, payload.weight, payload.body_size)
    except struct.error as fault:
        raise LocalProtocolError(f"{payload} does not fit: {fault}") from None
    return HEADER, fixed + write_properties(payload.properties)


def encode_item(item: WireItem) -> bytes:
    """A frame's or protocol header's octets.

    Raises:
        LocalProtocolError: a field does not fit.
    """
    if type(item) is ProtocolHeader:
        return MAGIC + bytes((item.protocol_id, item.major, item.minor, item.revision))
    frame_type, octets = _payload(item.payload)
    try:
        return _frame_header.pack(frame_type, item.channel, len(octets)) + octets + b"\xce"
    except struct.error:
        raise LocalProtocolError(
            f"channel {item.channel} does not fit: a channel is 0 to 65535"
        ) from None


def lower_limit(one: int, other: int) -> int:
    """The lower of two limits, of which 0 is none."""
    return min(one or other, other or one)


def item_size(item: WireItem) -> int:
    """The number of octets of `encode_item(item)`, where its fields fit."""
    if type(item) is ProtocolHeader:
        return 8
    payload = item.payload
    if isinstance(payload, Method):
        return EMPTY_FRAME_SIZE + method_size(payload)
    if isinstance(payload, bytes):
        return EMPTY_FRAME_SIZE + len(payload)
    if isinstance(payload, ContentHeader):
        fixed = EMPTY_FRAME_SIZE + _content_header.size
        return fixed + properties_size(payload.properties)
    return EMPTY_FRAME_SIZE + (0 if payload is None else len(payload.octets))


def body_parts(body: bytes, frame_max: int) -> Iterator[bytes]:
    """A message's body in pieces that fit into frames of at most `frame_max` octets; 0: any."""
    most = frame_max - EMPTY_FRAME_SIZE if frame_max else len(body)
    if len(body) <= most:
        if body:
            yield body
        return
    for at in range(0, len(body), most):
        yield body[at : at + most]


def read_frame(data: bytes, at: int, end: int) -> Frame:
    """Reads the frame that is `data[at:end]`, whose size is right.

    Raises:
        DecodeError: its frame-end or its TYPE is wrong; in RabbitMQ's words [rabbit_reader.erl].
    """
    frame_type, channel, _ = _frame_header.unpack_from(data, at)
    begin, stop = at + 7, end - 1
    fault = f"{{invalid_frame_end_marker,{data[stop]}}}"
    if data[stop] == FRAME_END:
        try:
            if frame_type == METHOD:
                return Frame(channel, read_method(data, begin, stop))
            if frame_type == BODY:
                return Frame(channel, data[begin:stop])
            if frame_type == HEADER:
                return Frame(channel, _read_content_header(data, begin, stop))
        except DecodeError as error:
            return Frame(channel, _undecodable(frame_type, data[begin:stop], error))
        if frame_type == HEARTBEAT and begin == stop:
            return Frame(channel)
        fault = "unknown_frame"
    text = f"type {frame_type}, {_snippet(data[begin:stop])}: {fault}"
    raise DecodeError(text, at, ReplyCode.FRAME_ERROR)


class FrameReader(StreamCutter[RawItem]):
    """Cuts a stream of octets, arriving in any pieces, into frames and protocol headers.

    Reads one direction of a connection. A protocol header stands at the beginning. Between calls no
    more than `frame_max` octets (and `FUDGE`) are kept. A frame of which only the inside cannot be
    read is given with `Undecodable` in it, and reading goes on behind it.

    Args:
        frame_max: the largest frame accepted, in octets; 0: any.
        first_frame_max: the same up to the peer's tune-ok and with it, however the octets arrive;
            from there on it is the lower of `frame_max` and what tune-ok says. None: no other.
        mid_stream: the stream may begin with a frame: a server's does.
        offset: what the first octet counts as in offsets.

    Attributes:
        frame_max: the largest frame accepted now; may be set between frames.
    """

    def __init__(
        self,
        frame_max: int = FRAME_MIN_SIZE,
        *,
        first_frame_max: int | None = None,
        mid_stream: bool = False,
        offset: int = 0,
    ) -> None:
        super().__init__(offset)
        self.frame_max = frame_max if first_frame_max is None else first_frame_max
        self._tuned_max = frame_max
        self._first = True
        self._mid_stream = mid_stream

    def _cut(self, data: bytes, items: list[RawItem]) -> int:
        """Appends the items of `data`; returns where an incomplete one begins."""
        at, end = 0, len(data)
        if self._first and end:
            at = self._cut_first(data, items)
            if self._first:
                return at
        item: WireItem
        while end - at >= 7:
            frame_type, _, size = _frame_header.unpack_from(data, at)
            whole = size + EMPTY_FRAME_SIZE
            if whole > self.frame_max + FUDGE > FUDGE:
                raise self._refused(
                    f"type {frame_type}, all octets = <<>>: "
                    f"{{frame_too_large,{size},{self.frame_max - EMPTY_FRAME_SIZE}}}"
                )
            if end - at < whole:
                self._needed = whole
                return at
            try:
                item = read_frame(data, at, at + whole)
            except DecodeError as error:
                raise error.moved(self.offset - at) from None
            if type(item.payload) is ConnectionTuneOk:
                self.frame_max = lower_limit(self._tuned_max, item.payload.frame_max)
            items.append(RawItem(self.offset, data[at : at + whole], item))
            at += whole
            self.offset += whole
        self._needed = 7
        return at

    def _cut_first(self, data: bytes, items: list[RawItem]) -> int:
        """A protocol header, if one begins the stream."""
        if not MAGIC.startswith(data[:4]):
            if not self._mid_stream:
                raise self._refused(
                    f"the stream begins with {data[:8].hex(' ')}; legal is the protocol header "
                    "41 4d 51 50 00 00 09 01"
                )
            self._first = False
            return 0
        self._needed = 4 if len(data) < 4 else 8
        if len(data) < 8:
            return 0
        self._first = False
        self.offset += 8
        items.append(RawItem(self.offset - 8, data[:8], ProtocolHeader(*data[4:8])))
        return 8

    def _refused(self, reason: str) -> DecodeError:
        """The error for octets that are no frame."""
        return DecodeError(reason, self.offset, ReplyCode.FRAME_ERROR)


def _read_content_header(data: bytes, begin: int, stop: int) -> ContentHeader:
    if stop - begin < _content_header.size:
        raise DecodeError(
            f"a content header has at least 14 octets; here are {stop - begin}", begin
        )
    class_id, weight, body_size = _content_header.unpack_from(data, begin)
    properties = NO_PROPERTIES
    if class_id == BASIC:
        properties = read_properties(data, begin + _content_header.size, stop)
    return ContentHeader(
        body_size=body_size, properties=properties, class_id=class_id, weight=weight
    )


def _undecodable(frame_type: int, octets: bytes, fault: DecodeError) -> Undecodable:
    """What cannot be read, with the words for these octets alone, whatever stands behind them."""
    read: Callable[[bytes, int, int], object]
    read = read_method if frame_type == METHOD else _read_content_header
    try:
        read(octets, 0, len(octets))
    except DecodeError as alone:
        fault = alone
    return Undecodable(frame_type, octets, fault.code, fault.reason)


def _snippet(octets: bytes) -> str:
    """The first octets as RabbitMQ's error text shows them."""
    most = 16
    few = octets[:most]
    text = few.decode("latin-1")
    shown = (
        f'"{text}"'
        if few and all(32 <= octet < 127 for octet in few)
        else (",".join(map(str, few)))
    )
    return f"{'all' if len(octets) <= most else f'first {most}'} octets = <<{shown}>>"
