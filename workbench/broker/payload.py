"""What a broker may change in a message: the header's delivery-count and annotations."""

from __future__ import annotations

from dataclasses import replace

from workbench.amqp.errors import DecodeError
from workbench.amqp.messaging import (
    Header,
    MessageAnnotations,
    Section,
    decode_message,
    encode_message,
)
from workbench.queues import Stored


def redelivered(message: Stored) -> bytes:
    """The payload to send: as it came, unless earlier attempts have left something to tell.

    The header's delivery-count says how many attempts failed [3.2.1]; annotations that a modified
    outcome brought are merged into the message's [3.4.5]. A payload of another message format, or
    one that cannot be read, goes out as it came.
    """
    if not message.delivery_count and not message.annotations:
        return message.payload
    if message.message_format != 0:
        return message.payload
    try:
        sections = decode_message(message.payload)
    except DecodeError:
        return message.payload
    if message.delivery_count:
        sections = _with_delivery_count(sections, message.delivery_count)
    if message.annotations:
        sections = _with_annotations(sections, dict(message.annotations))
    return encode_message(sections)


def _with_delivery_count(sections: list[Section], count: int) -> list[Section]:
    if sections and isinstance(sections[0], Header):
        before = sections[0].delivery_count or 0
        return [replace(sections[0], delivery_count=before + count), *sections[1:]]
    return [Header(delivery_count=count), *sections]


def _with_annotations(sections: list[Section], added: dict[object, object]) -> list[Section]:
    for place, section in enumerate(sections):
        if isinstance(section, MessageAnnotations) and isinstance(section.value, dict):
            merged = MessageAnnotations({**section.value, **added})
            return [*sections[:place], merged, *sections[place + 1 :]]
    place = sum(1 for section in sections if section.NAME in ("header", "delivery-annotations"))
    return [*sections[:place], MessageAnnotations(added), *sections[place:]]
