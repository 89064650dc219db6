"""A short cut for writing the three frames that a busy connection consists of.

Transfer, flow and disposition go from numbers to the octets of a whole frame, without an object
between. A test proves that the octets are those of `encode_item`.
"""

import struct
from functools import cache

from workbench.amqp.errors import LocalProtocolError
from workbench.amqp.fields import MAX_DELIVERY_TAG
from workbench.amqp.outcome import Accepted
from workbench.amqp.restricted import Role
from workbench.amqp.scalar_encoder import NULL, SMALL_UINT, encode_uint

_pack_uint = struct.Struct(">BI").pack
_pack_prefix = struct.Struct(">IBBHHBBBB").pack
"""SIZE, DOFF, TYPE, channel, `00 53`, descriptor, `c0`, size and count of the list."""

_TAG_HEADERS = [bytes((0xA0, size)) for size in range(MAX_DELIVERY_TAG + 1)]
_ENCODED_BOOLEANS = {None: b"\x40", True: b"\x41", False: b"\x42"}
_ACCEPTED_OCTETS = Accepted().encode()


def encode_transfer_frame(
    channel: int,
    handle: int,
    delivery_id: int,
    delivery_tag: bytes,
    payload: bytes,
    *,
    message_format: int | None = 0,
    settled: bool | None = None,
    more: bool | None = None,
) -> bytes:
    """The octets of a whole transfer frame.

    Equal to `encode_item(Frame(channel, Transfer(...), payload))` with the same fields.

    Args:
        channel: 0 to 65535.
        handle: of the link.
        delivery_id: of the delivery.
        delivery_tag: of the delivery, at most 32 octets.
        payload: the message, or a part of it.
        message_format: `None` leaves it out.
        settled: `None` leaves it out.
        more: `None` leaves it out.

    Returns:
        The frame.
    """
    tag_size = len(delivery_tag)
    if tag_size > MAX_DELIVERY_TAG:
        raise LocalProtocolError(
            f"transfer.delivery-tag has {tag_size} octets; legal is up to {MAX_DELIVERY_TAG}"
        )
    try:
        fields = (
            (SMALL_UINT[handle] if 0 <= handle <= 0xFF else _pack_uint(0x70, handle))
            + (
                SMALL_UINT[delivery_id]
                if 0 <= delivery_id <= 0xFF
                else _pack_uint(0x70, delivery_id)
            )
            + _TAG_HEADERS[tag_size]
            + delivery_tag
            + _format_and_flags(message_format, settled, more)
        )
        count = (
            6
            if more is not None
            else 5
            if settled is not None
            else 3 + (message_format is not None)
        )
        size = len(fields)
        return (
            _pack_prefix(14 + size + len(payload), 2, 0, channel, 0x53, 0x14, 0xC0, size + 1, count)
            + fields
            + payload
        )
    except struct.error as error:
        raise LocalProtocolError(
            f"transfer on channel {channel}, handle {handle}, delivery-id {delivery_id}, "
            f"message-format {message_format} does not fit: {error}"
        ) from error


@cache
def _format_and_flags(message_format: int | None, settled: bool | None, more: bool | None) -> bytes:
    """The octets of three fields that hardly ever change, trailing absent ones left out."""
    parts = [
        NULL if message_format is None else encode_uint(message_format),
        _ENCODED_BOOLEANS[settled],
        _ENCODED_BOOLEANS[more],
    ]
    while parts and parts[-1] == NULL:
        del parts[-1]
    return b"".join(parts)


def encode_flow_frame(
    channel: int,
    *,
    next_incoming_id: int | None,
    incoming_window: int,
    next_outgoing_id: int,
    outgoing_window: int,
    handle: int | None = None,
    delivery_count: int | None = None,
    link_credit: int | None = None,
    available: int | None = None,
    drain: bool | None = None,
    echo: bool | None = None,
) -> bytes:
    """The octets of a whole flow frame without properties; arguments as in `Flow`.

    Equal to `encode_item(Frame(channel, Flow(...)))` with the same fields.
    """
    numbers = (
        next_incoming_id,
        incoming_window,
        next_outgoing_id,
        outgoing_window,
        handle,
        delivery_count,
        link_credit,
        available,
    )
    try:
        parts = [
            NULL
            if number is None
            else SMALL_UINT[number]
            if 0 <= number <= 0xFF
            else _pack_uint(0x70, number)
            for number in numbers
        ]
        parts.append(_ENCODED_BOOLEANS[drain])
        parts.append(_ENCODED_BOOLEANS[echo])
        while parts[-1] == NULL:
            del parts[-1]
        fields = b"".join(parts)
        size = len(fields)
        return (
            _pack_prefix(14 + size, 2, 0, channel, 0x53, 0x13, 0xC0, size + 1, len(parts)) + fields
        )
    except struct.error as error:
        raise LocalProtocolError(
            f"flow on channel {channel} with numbers {numbers} does not fit: {error}; "
            "legal is 0 to 4294967295"
        ) from error


def encode_disposition_frame(
    channel: int,
    role: Role,
    first: int,
    last: int | None = None,
    *,
    settled: bool | None = None,
    accepted: bool = False,
) -> bytes:
    """The octets of a whole disposition frame whose state is accepted or absent.

    Equal to `encode_item(Frame(channel, Disposition(...)))` with the same fields.
    """
    parts = [
        b"\x41" if role is Role.RECEIVER else b"\x42",
        _number(first),
        NULL if last is None else _number(last),
        _ENCODED_BOOLEANS[settled],
        _ACCEPTED_OCTETS if accepted else NULL,
    ]
    while parts[-1] == NULL:
        del parts[-1]
    fields = b"".join(parts)
    size = len(fields)
    try:
        prefix = _pack_prefix(14 + size, 2, 0, channel, 0x53, 0x15, 0xC0, size + 1, len(parts))
    except struct.error:
        raise LocalProtocolError(f"channel {channel} does not fit: 0 to 65535") from None
    return prefix + fields


def _number(value: int) -> bytes:
    if not 0 <= value <= 0xFFFFFFFF:
        raise LocalProtocolError(f"delivery-number {value} does not fit: 0 to 4294967295")
    return encode_uint(value)
