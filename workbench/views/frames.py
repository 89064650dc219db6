"""Frames in a few words, and the places of their fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.trace.octets import places
from workbench.trace.schema import Row
from workbench.trace.words import spec_name, value_text

# Characters kept of a field that is octets.
HEX_LIMIT = 34

# What a frame shows of itself while it is on the wire, in this order; the rest is in its fields.
_SHOWN = {
    "flow": ("delivery_count", "link_credit", "available", "drain", "echo"),
    "transfer": ("delivery_id", "settled", "more", "aborted"),
    "disposition": ("first", "last", "settled"),
    "attach": ("name", "handle", "initial_delivery_count"),
    "begin": ("next_outgoing_id", "incoming_window", "outgoing_window"),
    "open": ("container_id", "max_frame_size"),
    "detach": ("handle", "closed"),
    # AMQP 0-9-1
    "basic.qos": ("prefetch_count", "global"),
    "basic.publish": ("exchange", "routing_key", "mandatory"),
    "basic.deliver": ("delivery_tag", "redelivered"),
    "basic.get-ok": ("delivery_tag", "message_count"),
    "basic.ack": ("delivery_tag", "multiple"),
    "basic.nack": ("delivery_tag", "multiple", "requeue"),
    "basic.reject": ("delivery_tag", "requeue"),
    "basic.consume": ("queue", "consumer_tag", "no_ack"),
    "content-header": ("body_size",),
    "queue.declare": ("queue", "passive"),
    "connection.close": ("reply_code", "reply_text"),
    "channel.close": ("reply_code", "reply_text"),
    "connection.blocked": ("reason",),
}
_SESSION_FLOW = ("next_incoming_id", "incoming_window", "next_outgoing_id", "outgoing_window")


def summary(row: Row) -> str:
    """What the frame carries, in the fewest words: `link-credit 6 · delivery-count 20`."""
    frame = {**row.extra, **row.fields}
    names: Sequence[str] = _SHOWN.get(row.kind or "", ())
    if row.kind == "flow" and frame.get("handle") is None:
        names = _SESSION_FLOW
    parts = []
    for name in names:
        value = frame.get(name)
        if value is None or value is False:
            continue
        parts.append(spec_name(name) if value is True else f"{spec_name(name)} {value_text(value)}")
    if row.kind == "transfer" and row.body_bytes:
        parts.append(f"{row.body_bytes} B")
    return " · ".join(parts)


def fields_of(row: Row) -> list[list[Any]]:
    """Name, value, first octet, octet after the last, and depth of each field of a frame."""
    return [
        [spec_name(place.path), _short(place.text), place.start, place.end, place.path.count(".")]
        for place in places(row.raw or b"", row.protocol)
    ]


def _short(text: str) -> str:
    """Octets as a value: the first few, for they all stand in the bytes beside the field."""
    octets, bracket, length = text.partition(" (")
    if not text.startswith("0x") or len(octets) <= HEX_LIMIT:
        return text
    return f"{octets[:HEX_LIMIT]}…{bracket}{length}"
