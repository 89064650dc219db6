"""From a row back to a frame: for traces that were stored without octets.

What the row's fields do not tell is filled in the plainest way: payload becomes one `data` section
of zeros of the same size, and text inside maps becomes string, because a trace does not keep
whether it was a symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.amqp010.frame import WireItem as WireItem010
from workbench.amqp091.frame import WireItem as WireItem091
from workbench.amqp10.composite import BY_DESCRIPTOR, Composite
from workbench.amqp10.errors import AmqpError
from workbench.amqp10.frame import Frame, ProtocolHeader, WireItem
from workbench.amqp10.performatives import Performative, Role, decode_performative
from workbench.amqp10.values import Described, MapPairs, Symbol, ULong
from workbench.trace.flatten import HEARTBEAT, PROTOCOL_HEADER
from workbench.trace.rebuild_010 import item_010
from workbench.trace.rebuild_091 import item_091
from workbench.trace.schema import AMQP_0_9_1, AMQP_0_10, Row

__all__ = ["RebuildError", "empty_body", "item_of", "performative_of"]

_DATA = 0x75
_BY_NAME: dict[str, type[Composite]] = {cls.NAME: cls for cls in BY_DESCRIPTOR.values()}


_OTHERS: dict[str, Callable[[Row], WireItem091 | WireItem010]] = {
    AMQP_0_9_1: item_091,
    AMQP_0_10: item_010,
}


class RebuildError(ValueError):
    """A row whose fields do not make a frame; the text is one line."""


def item_of(row: Row) -> WireItem | WireItem091 | WireItem010:
    """The frame that a row tells of.

    Raises:
        RebuildError: a mandatory field is not in the row, or the row is of another protocol.
    """
    try:
        return _OTHERS.get(row.protocol, _item_10)(row)
    except RebuildError as error:
        raise RebuildError(f"row {row.seq}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise RebuildError(f"row {row.seq}: no {row.kind} can be made: {error}") from None


def _item_10(row: Row) -> WireItem:
    fields = dict(row.frame or {})
    if row.kind == PROTOCOL_HEADER:
        return ProtocolHeader(*(fields[name] for name in ProtocolHeader.__struct_fields__))
    channel = fields.pop("channel", 0)
    if row.kind == HEARTBEAT:
        return Frame(channel)
    fields.pop("extra_json", None)
    performative = performative_of(row.kind or "", fields | dict(row.extra))
    return Frame(channel, performative, _payload(row.body_bytes))


def performative_of(name: str, fields: Mapping[str, Any]) -> Performative:
    """The performative of this name with these fields, values as `flatten.plain` makes them.

    Raises:
        RebuildError: there is no such performative, or the fields do not make one.
    """
    cls = _BY_NAME.get(name)
    if cls is None or not issubclass(cls, Performative):
        raise RebuildError(f"{name or 'nothing'} is no frame of AMQP 1.0")
    try:
        octets = _composite(cls, fields).encode()
        performative, _ = decode_performative(octets, 0, len(octets))  # what does not fit is found
    except (AmqpError, TypeError, ValueError, KeyError) as error:
        raise RebuildError(f"no {name} can be made of its fields: {error}") from None
    assert isinstance(performative, Performative)
    return performative


def _payload(size: int | None) -> bytes:
    if not size:
        return b""
    return empty_body(size) if size >= 5 else bytes(size)


def empty_body(size: int) -> bytes:
    """A body section of so many octets that says nothing."""
    if size < 5:
        # Only an amqp-value of one octet is as short; null is as long.
        return b"\x00\x53\x77\x40"
    if size <= 5 + 0xFF:
        return bytes((0x00, 0x53, _DATA, 0xA0, size - 5)) + bytes(size - 5)
    return bytes((0x00, 0x53, _DATA, 0xB0)) + (size - 8).to_bytes(4, "big") + bytes(size - 8)


def _composite(cls: type[Composite], fields: Mapping[str, Any]) -> Composite:
    values: dict[str, Any] = {}
    for spec in cls.FIELDS:
        value = fields.get(spec.name)
        if value is None:
            continue
        if spec.type == "role":
            value = Role.RECEIVER if value in ("receiver", True) else Role.SENDER
        elif spec.multiple:
            value = tuple(value) if isinstance(value, list) else (value,)
        else:
            value = _revive(value)
        values[spec.name] = value
    return cls(**values)


def _revive(value: Any) -> Any:
    """The AMQP value behind JSON that `flatten.plain` made."""
    if isinstance(value, list):
        return [_revive(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"binary"}:
        return bytes.fromhex(value["binary"])
    if set(value) == {"descriptor", "value"}:
        descriptor = value["descriptor"]
        kind = ULong if isinstance(descriptor, int) else Symbol
        return Described(kind(descriptor), _revive(value["value"]))
    if set(value) == {"map"}:
        return MapPairs(tuple((_revive(key), _revive(item)) for key, item in value["map"]))
    cls = _BY_NAME.get(str(value.get("type")))
    if cls is not None and set(value) - {"type"} <= {spec.name for spec in cls.FIELDS}:
        return _composite(cls, value)
    return {key: _revive(item) for key, item in value.items()}
