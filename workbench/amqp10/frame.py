"""Frames and protocol headers: what a connection's octets consist of [2.2, 2.3, 5.3.1].

A frame is SIZE (4 octets, itself included), DOFF (where the body begins, in words of 4 octets),
TYPE (0 AMQP, 1 SASL), 2 octets of TYPE (AMQP: the channel), and the body: a performative and,
behind a transfer, payload.
"""

import struct
from typing import TypeAlias, final

from msgspec import Struct

from workbench.amqp10.errors import DecodeError, ErrorCondition, LocalProtocolError
from workbench.amqp10.performatives import (
    AMQP_FRAME,
    READERS,
    SASL_FRAME,
    Performative,
    Transfer,
    decode_performative,
)

MIN_MAX_FRAME_SIZE = 512
"""Every peer accepts frames of up to so many octets, and none may be larger before both `open`
frames have been exchanged [2.8.19]."""

FRAME_HEADER_SIZE = 8
PROTOCOL_HEADER_SIZE = 8

MAGIC = b"AMQP"
"""The first octets of a protocol header. Read as the SIZE of a frame they are 1,095,586,128."""

LARGEST_FRAME_SIZE = int.from_bytes(MAGIC, "big") - 1
"""A `FrameReader` accepts no larger frame, whatever limit is set: so the octets `AMQP` where a
frame may begin can only be a protocol header."""

AMQP_PROTOCOL = 0
TLS_PROTOCOL = 2
SASL_PROTOCOL = 3

_pack_header = struct.Struct(">IBBH").pack

unpack_frame_header = struct.Struct(">IBBH").unpack_from


@final
class ProtocolHeader(Struct, frozen=True, gc=False):
    """What each peer sends first [2.2].

    Attributes:
        protocol_id: 0 AMQP, 2 TLS, 3 SASL.
        major: of the version.
        minor: of the version.
        revision: of the version.
    """

    protocol_id: int = AMQP_PROTOCOL
    major: int = 1
    minor: int = 0
    revision: int = 0

    @property
    def supported(self) -> bool:
        """Whether it is AMQP 1.0 itself or its SASL layer; 0-9-1 for one is neither."""
        return (self.major, self.minor, self.revision) == (1, 0, 0) and self.protocol_id in (
            AMQP_PROTOCOL,
            SASL_PROTOCOL,
        )


class Frame(Struct, frozen=True, gc=False):
    """One frame.

    Attributes:
        channel: of an AMQP frame; 0 in a SASL frame.
        performative: `None` in an empty frame, which only resets the idle timer [2.4.5].
        payload: behind a transfer; empty in all others.
    """

    channel: int
    performative: Performative | None = None
    payload: bytes = b""

    @property
    def frame_type(self) -> int:
        """The TYPE octet: 0 AMQP, 1 SASL."""
        return AMQP_FRAME if self.performative is None else self.performative.FRAME_TYPE


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


def encode_item(item: WireItem) -> bytes:
    """A frame's or protocol header's octets.

    Raises:
        LocalProtocolError: a field does not fit, or payload is given to another frame than a
            transfer.
    """
    if type(item) is ProtocolHeader:
        try:
            return MAGIC + bytes((item.protocol_id, item.major, item.minor, item.revision))
        except ValueError:
            raise LocalProtocolError(f"{item} does not fit: each part is 0 to 255") from None
    performative, payload = item.performative, item.payload
    if payload and type(performative) is not Transfer:
        name = "an empty frame" if performative is None else performative.NAME
        raise LocalProtocolError(f"{name} cannot carry payload: only a transfer can [2.7.5]")
    if performative is None:
        body, frame_type = b"", AMQP_FRAME
    else:
        body, frame_type = performative.encode(), performative.FRAME_TYPE
    try:
        size = FRAME_HEADER_SIZE + len(body) + len(payload)
        return _pack_header(size, 2, frame_type, item.channel) + body + payload
    except struct.error:
        raise LocalProtocolError(
            f"channel {item.channel} does not fit: a channel is 0 to 65535"
        ) from None


def item_size(item: WireItem) -> int:
    """The number of octets of `encode_item(item)`."""
    if isinstance(item, ProtocolHeader):
        return PROTOCOL_HEADER_SIZE
    body = 0 if item.performative is None else item.performative.size()
    return FRAME_HEADER_SIZE + body + len(item.payload)


def framing_error(reason: str, offset: int) -> DecodeError:
    """The error for octets that are no frame at all."""
    return DecodeError(reason, offset, ErrorCondition.FRAMING_ERROR)


def check_frame_header(size: int, doff: int, frame_type: int, offset: int, limit: int) -> None:
    """Refuses the header of a frame that cannot be read.

    Args:
        size: SIZE.
        doff: DOFF.
        frame_type: TYPE.
        offset: of the frame, for the error.
        limit: the largest SIZE accepted.

    Raises:
        DecodeError: with `amqp:connection:framing-error`.
    """
    if size < FRAME_HEADER_SIZE:
        raise framing_error(
            f"frame SIZE is {size}; it counts the header too, so the least is 8", offset
        )
    if size > limit:
        raise framing_error(
            f"frame SIZE is {size}; the max-frame-size accepted here is {limit}", offset
        )
    if doff < 2:
        raise framing_error(
            f"frame DOFF is {doff}; the body begins behind the header, so the least is 2",
            offset + 4,
        )
    if 4 * doff > size:
        raise framing_error(
            f"frame DOFF is {doff}: the body would begin at octet {4 * doff} of a frame of {size}",
            offset + 4,
        )
    if frame_type not in (AMQP_FRAME, SASL_FRAME):
        raise framing_error(
            f"frame TYPE is {frame_type}; legal are 0 (AMQP) and 1 (SASL)", offset + 5
        )


def decode_frame(raw: bytes, *, limit: int = LARGEST_FRAME_SIZE) -> Frame:
    """Reads one whole frame.

    Args:
        raw: its octets, no more and no less.
        limit: the largest SIZE accepted.

    Returns:
        The frame.

    Raises:
        DecodeError: the octets are no frame; offsets count from its first octet.
    """
    if len(raw) < FRAME_HEADER_SIZE:
        raise framing_error(f"a frame has at least 8 octets; here are {len(raw)}", len(raw))
    size, doff, frame_type, channel = unpack_frame_header(raw)
    check_frame_header(size, doff, frame_type, 0, limit)
    if size != len(raw):
        raise framing_error(f"frame SIZE is {size}; here are {len(raw)} octets", 0)
    return decode_checked(bytes(raw), 0, size, doff, frame_type, channel)


def decode_checked(
    data: bytes, start: int, end: int, doff: int, frame_type: int, channel: int
) -> Frame:
    """Reads the frame in `data[start:end]`, whose header has been read and found right."""
    if doff != 2:
        check_frame_header(end - start, doff, frame_type, start, LARGEST_FRAME_SIZE)
    body = start + 4 * doff
    if body == end:
        if frame_type == SASL_FRAME:
            raise framing_error("a SASL frame is empty; only AMQP frames may be [5.3.1]", body)
        return Frame(channel)
    read = READERS.get(data[body : body + 3])
    if read is None:
        performative, at = decode_performative(data, body, end)
    else:
        performative, at = read(data, body + 3, end)
    if type(performative) is Transfer and frame_type == AMQP_FRAME:
        return Frame(channel, performative, data[at:end])
    if frame_type != performative.FRAME_TYPE:
        kind = ("an AMQP", "a SASL")[frame_type]
        raise DecodeError(f"{performative.NAME} cannot stand in {kind} frame", body)
    if frame_type == SASL_FRAME:
        channel = 0  # these octets are to be ignored [5.3.1]
    if at != end:
        raise DecodeError(
            f"{end - at} octets follow the {performative.NAME}; only a transfer has payload", at
        )
    return Frame(channel, performative)
