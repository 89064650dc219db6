"""A frame of AMQP 0-10 as flat fields; see `flatten` for what is no scalar."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from workbench.amqp010.composite import Command, Composite, Control, UnknownCommand, UnknownStruct
from workbench.amqp010.frame import Headers, ProtocolHeader, SegmentType, WireItem
from workbench.amqp010.values import SequenceSet

from .fields import EXTRA_JSON, FRAME_010_FIELDS
from .flatten import PROTOCOL_HEADER, extra_text, fields_of

_TYPES = {field.name: field.type for field in FRAME_010_FIELDS}


def fields_010(item: WireItem) -> tuple[str, dict[str, Any]]:
    """What kind of frame it is, and its fields as they were on the wire.

    Args:
        item: a `Frame` or a `ProtocolHeader` of AMQP 0-10.

    Returns:
        The control's or command's name, `header`, `body`, `control` or `command` for part of one
        over several frames, or `protocol-header`; and the fields with the names of
        `FRAME_010_FIELDS`.
    """
    if isinstance(item, ProtocolHeader):
        return PROTOCOL_HEADER, {EXTRA_JSON: extra_text(asdict(item))}
    fields: dict[str, Any] = {
        "channel": item.channel,
        "track": int(item.segment_type != SegmentType.CONTROL),
        "segment_type": int(item.segment_type),
        "first_segment": item.first_segment,
        "last_segment": item.last_segment,
        "first_frame": item.first_frame,
        "last_frame": item.last_frame,
    }
    told: dict[str, Any] = {}
    content = item.content
    if isinstance(content, UnknownCommand):
        told = {"code": content.code, "octets": content.octets}
    elif isinstance(content, Control | Command):
        told = content.present()
    elif isinstance(content, Headers):
        told = {"structs": [_plain(one) for one in content.structs]}
    elif item.segment_type != SegmentType.BODY:
        told = {"octets": content}
    if isinstance(content, Command):
        fields["sync"] = content.sync
    plain = ((name, _plain(value)) for name, value in told.items())
    return item.kind, fields | fields_of(plain, _TYPES)


def _plain(value: Any) -> Any:
    """Ranges as pairs, structs as maps with their name."""
    if isinstance(value, SequenceSet):
        return value.ranges
    if isinstance(value, UnknownStruct):
        return {"struct": value.code, "octets": value.octets}
    if isinstance(value, Composite):
        told = {name: _plain(one) for name, one in value.present().items()}
        return {"struct": value.NAME, **told}
    return value
