"""A frame of AMQP 0-9-1 as flat fields; see `flatten` for what is no scalar."""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec.structs import asdict, astuple

from workbench.amqp091.frame import (
    ContentHeader,
    Frame,
    ProtocolHeader,
    Undecodable,
    WireItem,
    kind_of,
)
from workbench.amqp091.methods import Method

from .fields import EXTRA_JSON, FRAME_091_FIELDS
from .flatten import extra_text, fields_of

_TYPES = {field.name: field.type for field in FRAME_091_FIELDS}

RESERVED = frozenset(
    {"ticket", "capabilities", "insist", "known_hosts", "out_of_band", "channel_id", "cluster_id"}
)
"""Arguments that mean nothing any more: told only where they are set."""


def fields_091(item: WireItem) -> tuple[str, dict[str, Any]]:
    """What kind of frame it is, and its fields as they were on the wire.

    Args:
        item: a `Frame` or a `ProtocolHeader` of AMQP 0-9-1.

    Returns:
        The method's name, `content-header`, `content-body`, `heartbeat`, `protocol-header` or
        `undecodable`; and the fields with the names of `FRAME_091_FIELDS`.
    """
    kind = kind_of(item)
    if isinstance(item, ProtocolHeader):
        return kind, asdict(item)
    assert isinstance(item, Frame)
    fields: dict[str, Any] = {"channel": item.channel}
    payload = item.payload
    if isinstance(payload, Method):
        told = zip(_names(type(payload)), astuple(payload), strict=True)
        meant = [(name, value) for name, value in told if value or name not in RESERVED]
        fields |= fields_of(meant, _TYPES)
    elif isinstance(payload, ContentHeader):
        named = asdict(payload.properties)
        present = {name: value for name, value in named.items() if value is not None}
        more = [("properties", present)] if present else []
        numbers = [("class_id", payload.class_id), ("body_size", payload.body_size)]
        fields |= fields_of([*more, *numbers], _TYPES)
    elif isinstance(payload, Undecodable):
        fields["class_id"], fields["method_id"] = payload.numbers
        fields["reply_code"] = int(payload.code)
        fields[EXTRA_JSON] = extra_text({"fault": payload.fault, "body": payload.octets})
    return kind, fields


@cache
def _names(kind: type[Method]) -> tuple[str, ...]:
    return tuple(name.rstrip("_") for name in kind.__struct_fields__)
