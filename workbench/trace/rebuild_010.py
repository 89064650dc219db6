"""From a row back to a frame of AMQP 0-10: for traces that were stored without octets.

A value of a map gets the usual type of AMQP 0-10 for it and a body is zeros, for a row keeps
neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from workbench.amqp010.composite import (
    COMMANDS,
    CONTROLS,
    STRUCTS,
    Composite,
    UnknownCommand,
    UnknownStruct,
)
from workbench.amqp010.frame import Frame, Headers, ProtocolHeader, SegmentType, WireItem
from workbench.amqp010.structs import ReplyTo
from workbench.amqp010.values import SequenceSet
from workbench.trace.flatten import revived
from workbench.trace.schema import Row

__all__ = ["item_010"]

_ALL: tuple[type[Composite], ...] = (*CONTROLS.values(), *COMMANDS.values())
_METHODS = {kind.NAME: kind for kind in _ALL}
_STRUCT_KINDS: tuple[type[Composite], ...] = (*STRUCTS.values(), ReplyTo)
_STRUCTS = {kind.NAME: kind for kind in _STRUCT_KINDS}
_FLAGS = ("first_segment", "last_segment", "first_frame", "last_frame")


def item_010(row: Row) -> WireItem:
    """The frame that a row of AMQP 0-10 tells of.

    Raises:
        KeyError: a field is missing, or there is no such control or command.
        TypeError: a field does not fit.
        ValueError: octets are no hex.
    """
    fields = {**(row.frame_010 or {}), **row.extra}
    if row.kind == "protocol-header":
        return ProtocolHeader(*(fields[name] for name in ProtocolHeader.__struct_fields__))
    flags = [fields[name] for name in _FLAGS]
    return Frame(fields["channel"], fields["segment_type"], _content(row, fields), *flags)


def _content(row: Row, fields: Mapping[str, Any]) -> Any:
    if fields["segment_type"] == SegmentType.BODY:
        return bytes(row.body_bytes or 0)
    if row.kind == UnknownCommand.NAME:
        octets = revived(fields["octets"])
        return UnknownCommand(code=fields["code"], octets=octets, sync=fields["sync"])
    if "octets" in fields:
        return revived(fields["octets"])
    if fields["segment_type"] == SegmentType.HEADER:
        return Headers(tuple(_struct(one) for one in fields.get("structs", ())))
    kind = _METHODS[row.kind or ""]
    more = {"sync": fields["sync"]} if fields["segment_type"] == SegmentType.COMMAND else {}
    return kind(**_values(kind, fields), **more)


def _values(kind: type[Composite], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(type_, fields[name]) for name, type_ in kind.FIELDS if name in fields}


def _value(type_: str, told: Any) -> Any:
    value = revived(told)
    if type_ == "sequence-set":
        return SequenceSet(tuple((first, last) for first, last in value))
    if type_ in ("struct32", "reply-to"):
        return _struct(told)
    if type_ == "byte-ranges":
        return tuple((first, last) for first, last in value)
    if type_ in ("array", "str16-array"):
        return tuple(value)
    if type_ == "uuid":
        return UUID(value)
    return value.encode() if type_.startswith("vbin") and isinstance(value, str) else value


def _struct(told: Mapping[str, Any]) -> Any:
    if isinstance(told["struct"], int):
        return UnknownStruct(told["struct"], revived(told["octets"]))
    kind = _STRUCTS[told["struct"]]
    return kind(**_values(kind, told))
