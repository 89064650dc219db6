"""A frame of AMQP 0-9-1 as flat fields; see `flatten` for what is no scalar."""

from __future__ import annotations

from typing import Any

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
from .flatten import extra_text, scalar

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
        names = ("protocol_id", "major", "minor", "revision")
        return kind, {name: getattr(item, name) for name in names}
    assert isinstance(item, Frame)
    fields: dict[str, Any] = {"channel": item.channel}
    payload = item.payload
    if isinstance(payload, Method):
        _add(fields, payload)
    elif isinstance(payload, ContentHeader):
        fields["class_id"] = payload.class_id
        told = payload.properties
        named = {name: getattr(told, name) for name in told.__struct_fields__}
        present = {name: value for name, value in named.items() if value is not None}
        extra: dict[str, Any] = {"properties": present} if present else {}
        if payload.body_size < 2**63:
            fields["body_size"] = payload.body_size
        else:
            extra["body_size"] = payload.body_size
        if extra:
            fields[EXTRA_JSON] = extra_text(extra)
    elif isinstance(payload, Undecodable):
        fields["class_id"], fields["method_id"] = payload.numbers
        fields["reply_code"] = int(payload.code)
        fields[EXTRA_JSON] = extra_text({"fault": payload.fault, "body": payload.octets})
    return kind, fields


def _add(fields: dict[str, Any], method: Method) -> None:
    """A method's arguments."""
    extra: dict[str, Any] = {}
    for name in method.__struct_fields__:
        value = getattr(method, name)
        name = name.rstrip("_")
        if name in RESERVED and not value:
            continue
        kind = _TYPES.get(name)
        if isinstance(value, bytes) and kind == "string":
            value = value.decode(errors="backslashreplace")
        told = scalar(kind, value)
        if told is None:
            extra[name] = value
        else:
            fields[name] = told
    if extra:
        fields[EXTRA_JSON] = extra_text(extra)
