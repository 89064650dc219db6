"""Where a message came through: RabbitMQ writes it into each message that it hands out.

The annotations `x-exchange` and `x-routing-key` are put in as octets, without reading the message,
unless it has annotations of its own. Clients rely on there being some.
"""

from __future__ import annotations

from functools import lru_cache

from workbench.amqp.errors import DecodeError
from workbench.amqp.messaging import MessageAnnotations, decode_message, encode_message
from workbench.amqp.values import Symbol

EXCHANGE, ROUTING_KEY = Symbol("x-exchange"), Symbol("x-routing-key")
HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS = 0x70, 0x71, 0x72
BARE_DESCRIPTOR = b"\x00\x53"
EMPTY_LIST, SMALL, LARGE = 0x45, (0xC0, 0xC1), (0xD0, 0xD1)
ROUTES_KEPT = 1_024


def routed(payload: bytes, message_format: int, exchange: str, routing_key: str) -> bytes:
    """The message with the annotations that tell how it was routed.

    Args:
        payload: the message as it was published.
        message_format: one that is not 0 has sections that nobody here knows: left as it is.
        exchange: through which it came; empty for the default exchange.
        routing_key: with which.

    Returns:
        The message; as it came where it cannot be read.
    """
    if message_format != 0:
        return payload
    place = _behind_header(payload)
    if place is None or payload[place : place + 3] == BARE_DESCRIPTOR + bytes(
        (MESSAGE_ANNOTATIONS,)
    ):
        return _merged(payload, exchange, routing_key)
    return payload[:place] + _section(exchange, routing_key) + payload[place:]


def _behind_header(payload: bytes) -> int | None:
    """Where message annotations would begin; None if the octets before are not plain."""
    place = 0
    while payload[place : place + 2] == BARE_DESCRIPTOR and place + 4 <= len(payload):
        code, kind = payload[place + 2], payload[place + 3]
        if code not in (HEADER, DELIVERY_ANNOTATIONS):
            return place
        place += 4
        if kind in SMALL:
            place += 1 + payload[place] if place < len(payload) else 1
        elif kind in LARGE:
            place += 4 + int.from_bytes(payload[place : place + 4], "big")
        elif kind != EMPTY_LIST:
            return None
        if place > len(payload):
            return None
    return place if payload[place : place + 2] == BARE_DESCRIPTOR else None


@lru_cache(maxsize=ROUTES_KEPT)
def _section(exchange: str, routing_key: str) -> bytes:
    """The section's octets, which are the same for all messages of a route."""
    return encode_message([MessageAnnotations({ROUTING_KEY: routing_key, EXCHANGE: exchange})])


def _merged(payload: bytes, exchange: str, routing_key: str) -> bytes:
    try:
        sections = decode_message(payload)
    except DecodeError:
        return payload
    added: dict[object, object] = {ROUTING_KEY: routing_key, EXCHANGE: exchange}
    for number, section in enumerate(sections):
        if isinstance(section, MessageAnnotations) and isinstance(section.value, dict):
            sections[number] = MessageAnnotations({**section.value, **added})
            return encode_message(sections)
    front = sum(1 for one in sections if one.NAME in ("header", "delivery-annotations"))
    return encode_message([*sections[:front], MessageAnnotations(added), *sections[front:]])
