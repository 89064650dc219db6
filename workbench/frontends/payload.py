"""What a broker reads of an AMQP 1.0 message, and what it may change in it [3.2]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from workbench.amqp10.errors import DecodeError
from workbench.amqp10.messaging import (
    ApplicationProperties,
    Header,
    MessageAnnotations,
    Section,
    decode_head,
    decode_message,
    decode_section,
    encode_message,
)
from workbench.presets import UINT_MAX
from workbench.queues import Message, Stored

from .annotations import as_published, merged_with
from .keeping import keeps

HEADER_BEGINS = b"\x00\x53\x70"
NO_HEADER = Header()
SHORT_LIST, LONG_LIST = 0xC0, 0xD0  # format codes; a size comes after them
SHORTEST = 5


class Amqp10Message(Message, frozen=True, gc=False, kw_only=True):
    """A message that came over AMQP 1.0.

    Attributes:
        message_format: how the payload is encoded [2.8.11]; of one that is not 0 nothing is read.
    """

    message_format: int = 0

    @property
    def headers(self) -> Mapping[str, Any]:
        """The application-properties; empty if there are none, or they cannot be read."""
        head = decode_head(self.payload)
        try:
            found = next((one for one in head if isinstance(one, ApplicationProperties)), None)
        except DecodeError:
            return {}
        value = None if found is None else found.value
        return {str(name): one for name, one in value.items()} if isinstance(value, dict) else {}


def message_of(payload: bytes, message_format: int = 0) -> Amqp10Message:
    """The message that a payload is, with what queues ask of its header [3.2.1]."""
    header = _header_in(payload, message_format)
    return Amqp10Message(
        payload=payload,
        ttl_ms=header.ttl,
        priority=header.priority,
        durable=bool(header.durable),
        message_format=message_format,
    )


def format_of(message: Stored) -> int:
    """The message-format to send a message with."""
    came = message.message
    return came.message_format if isinstance(came, Amqp10Message) else 0


def _header_in(payload: bytes, message_format: int) -> Header:
    """The message's header; `NO_HEADER` if it has none, or cannot be read."""
    if message_format != 0 or not payload.startswith(HEADER_BEGINS) or len(payload) < SHORTEST:
        return NO_HEADER
    kind = payload[3]
    if kind == SHORT_LIST:
        return _header(payload[: SHORTEST + payload[4]])
    if kind == LONG_LIST:
        return _header(payload[: 8 + int.from_bytes(payload[4:8], "big")])
    return _header(payload[:4])


@keeps
def _header(octets: bytes) -> Header:
    try:
        header, _ = decode_section(octets)
    except DecodeError:
        return NO_HEADER
    return header if isinstance(header, Header) else NO_HEADER


def redelivered(message: Stored) -> bytes:
    """The payload to send: as it came, unless earlier attempts have left something to tell.

    The header's first-acquirer is false for a message that was handed out before, so a receiver can
    tell that it may be a second copy; its delivery-count says how many attempts failed, which a
    detach is not [3.2.1]. Annotations that a modified outcome brought are merged into the message's
    [3.4.5]. A payload of another message format, or one that cannot be read, goes out as it came.
    """
    if format_of(message) != 0:
        return message.payload
    payload, again = as_published(message), message.acquired_count > 1
    if not again and not message.delivery_count and not message.annotations:
        return payload
    try:
        sections = decode_message(payload)
    except DecodeError:
        return payload
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
        told = min((header.delivery_count or 0) + failed, UINT_MAX)
        header = replace(header, delivery_count=told)
    return [header, *rest]


def _with_annotations(sections: list[Section], added: dict[object, object]) -> list[Section]:
    for place, section in enumerate(sections):
        if isinstance(section, MessageAnnotations):
            merged = MessageAnnotations(merged_with(section.value, added))
            return [*sections[:place], merged, *sections[place + 1 :]]
    place = sum(1 for section in sections if section.NAME in ("header", "delivery-annotations"))
    return [*sections[:place], MessageAnnotations(added), *sections[place:]]
