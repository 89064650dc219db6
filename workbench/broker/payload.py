"""What a broker reads of a message, and what the specification lets it change in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from workbench.amqp.errors import DecodeError
from workbench.amqp.messaging import (
    ApplicationProperties,
    Header,
    MessageAnnotations,
    Section,
    decode_message,
    decode_section,
    encode_message,
)
from workbench.queues import Stored

HEADER_BEGINS = b"\x00\x53\x70"
SHORT_LIST, LONG_LIST = 0xC0, 0xD0  # format codes; a size comes after them
SHORTEST = 5
KEPT = 1_024


def header_in(payload: bytes, message_format: int = 0) -> Header | None:
    """The message's header [3.2.1]; None if it has none, or cannot be read."""
    if message_format != 0 or not payload.startswith(HEADER_BEGINS) or len(payload) < SHORTEST:
        return None
    kind = payload[3]
    if kind == SHORT_LIST:
        return _header(payload[: SHORTEST + payload[4]])
    if kind == LONG_LIST:
        return _header(payload[: 8 + int.from_bytes(payload[4:8], "big")])
    return _header(payload[:4])


def time_to_live_ms(payload: bytes, message_format: int = 0) -> int | None:
    """The header's ttl [3.2.1]; None if it has none, or cannot be read."""
    header = header_in(payload, message_format)
    return None if header is None else header.ttl


@lru_cache(maxsize=KEPT)
def _header(octets: bytes) -> Header | None:
    try:
        header, _ = decode_section(octets)
    except DecodeError:
        return None
    return header if isinstance(header, Header) else None


def priority_in(message: Stored) -> int:
    """The header's priority [3.2.1]; 0 without one, as in RabbitMQ's classic queues."""
    payload = message.payload
    if message.message_format != 0 or not payload.startswith(HEADER_BEGINS):
        return 0
    try:
        header, _ = decode_section(payload)
    except DecodeError:
        return 0
    return (header.priority or 0) if isinstance(header, Header) else 0


def headers_in(sections: Iterable[Section]) -> Mapping[str, Any]:
    """The application-properties, which headers exchanges look at; empty if there are none."""
    found = next((one for one in sections if isinstance(one, ApplicationProperties)), None)
    value = None if found is None else found.value
    return {str(name): one for name, one in value.items()} if isinstance(value, dict) else {}


def redelivered(message: Stored) -> bytes:
    """The payload to send: as it came, unless earlier attempts have left something to tell.

    The header's first-acquirer is false for a message that was handed out before, so a receiver can
    tell that it may be a second copy; its delivery-count says how many attempts failed, which a
    detach is not [3.2.1]. Annotations that a modified outcome brought are merged into the message's
    [3.4.5]. A payload of another message format, or one that cannot be read, goes out as it came.
    """
    again = message.acquired_count > 1
    if not again and not message.delivery_count and not message.annotations:
        return message.payload
    if message.message_format != 0:
        return message.payload
    try:
        sections = decode_message(message.payload)
    except DecodeError:
        return message.payload
    if again or message.delivery_count:
        sections = _with_header(sections, again, message.delivery_count)
    if message.annotations:
        sections = _with_annotations(sections, dict(message.annotations))
    return encode_message(sections)


def _with_header(sections: list[Section], again: bool, failed: int) -> list[Section]:
    header, rest = Header(), sections
    if sections and isinstance(sections[0], Header):
        header, rest = sections[0], sections[1:]
    if again:
        header = replace(header, first_acquirer=False)
    if failed:
        header = replace(header, delivery_count=(header.delivery_count or 0) + failed)
    return [header, *rest]


def _with_annotations(sections: list[Section], added: dict[object, object]) -> list[Section]:
    for place, section in enumerate(sections):
        if isinstance(section, MessageAnnotations) and isinstance(section.value, dict):
            merged = MessageAnnotations({**section.value, **added})
            return [*sections[:place], merged, *sections[place + 1 :]]
    place = sum(1 for section in sections if section.NAME in ("header", "delivery-annotations"))
    return [*sections[:place], MessageAnnotations(added), *sections[place:]]
