"""From a row back to a frame of AMQP 0-9-1: for traces that were stored without octets.

A number of a table gets the narrowest usual letter and a body is zeros, for a row keeps neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.amqp091.errors import ReplyCode
from workbench.amqp091.frame import (
    ContentHeader,
    Frame,
    Payload,
    ProtocolHeader,
    Undecodable,
    WireItem,
)
from workbench.amqp091.methods import METHODS, Method, Properties
from workbench.trace.flatten import revived
from workbench.trace.schema import Row

__all__ = ["item_091"]

_BY_NAME: dict[str, type[Method]] = {kind.NAME: kind for kind in METHODS.values()}


def item_091(row: Row) -> WireItem:
    """The frame that a row of AMQP 0-9-1 tells of.

    Raises:
        KeyError: a field is missing, or there is no such method.
        TypeError: a field does not fit its method.
        ValueError: octets are no hex.
    """
    fields = {**(row.frame_091 or {}), **row.extra}
    if row.kind == "protocol-header":
        return ProtocolHeader(*(fields[name] for name in ProtocolHeader.__struct_fields__))
    return Frame(fields["channel"], _payload(row, fields))


def _payload(row: Row, fields: Mapping[str, Any]) -> Payload:
    if row.kind == "heartbeat":
        return None
    if row.kind == "content-body":
        return bytes(row.body_bytes or 0)
    if row.kind == "content-header":
        told = {name: revived(value) for name, value in fields.get("properties", {}).items()}
        return ContentHeader(
            body_size=fields["body_size"],
            class_id=fields["class_id"],
            properties=Properties(**told),
        )
    if row.kind == "undecodable":
        return Undecodable(
            1, revived(fields["body"]), ReplyCode(fields["reply_code"]), fields["fault"]
        )
    kind = _BY_NAME[row.kind or ""]
    usual = kind()
    values: dict[str, Any] = {}
    for name in kind.__struct_fields__:
        value = revived(fields.get(name.rstrip("_")))
        if value is not None:
            longstr = isinstance(getattr(usual, name), bytes) and isinstance(value, str)
            values[name] = value.encode() if longstr else value
        else:
            values[name] = type(getattr(usual, name))() if name != "arguments" else {}
    return kind(**values)
