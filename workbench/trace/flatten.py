"""A frame as flat fields, and what a row says that is none: `kind`, `frame` and `details`.

A value that is not scalar becomes JSON: a composite an object that begins with its `type`, octets
`{"binary": hex}`, a map with other keys than texts `{"map": [[key, value], ...]}`. No number in it
is NaN or infinite: those are texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from typing import Any

from msgspec.structs import asdict, astuple

from workbench.amqp10.composite import Composite
from workbench.amqp10.frame import Frame, ProtocolHeader

from .fields import DETAIL_FIELDS, EXTRA_JSON, FRAME_FIELDS

PROTOCOL_HEADER = "protocol-header"
HEARTBEAT = "heartbeat"

_TYPES = {field.name: field.type for field in FRAME_FIELDS}
_DETAIL_TYPES = {field.name: field.type for field in DETAIL_FIELDS if field.name != EXTRA_JSON}
_LIMITS = {"int64": 2**63, "int32": 2**31}
_EXACT = {"bool": bool, "string": str, "binary": bytes, "int64": int, "int32": int}
_WIDE = "ulong"
"""The one type of AMQP with numbers that a column may not take."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def frame_fields(item: Any) -> tuple[str, dict[str, Any]]:
    """What kind of frame it is, and its fields as they were on the wire.

    Args:
        item: a `Frame` or a `ProtocolHeader`.

    Returns:
        The performative's name (`flow`, `sasl-init`, ...), `protocol-header` or `heartbeat`; and
        the fields that are present, with the names of `FRAME_FIELDS`.
    """
    if isinstance(item, ProtocolHeader):
        return PROTOCOL_HEADER, asdict(item)
    if not isinstance(item, Frame):
        raise TypeError(f"a trace takes a Frame or a ProtocolHeader, not {type(item).__name__}")
    performative = item.performative
    if performative is None:
        return HEARTBEAT, {"channel": item.channel}
    kind = performative.NAME
    fields: dict[str, Any] = {} if kind.startswith("sasl-") else {"channel": item.channel}
    extra: dict[str, Any] = {}
    columns = _columns(type(performative))
    for (name, type_, exact), value in zip(columns, astuple(performative), strict=False):
        if value is None:
            continue
        told = value if type(value) is exact else scalar(type_, value)
        if told is not None:
            fields[name] = told
        elif name == "role":
            fields[name] = "receiver" if bool(getattr(value, "value", value)) else "sender"
        else:
            extra[name] = value
    if extra:
        fields[EXTRA_JSON] = extra_text(extra)
    return kind, fields


def details_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says that is no frame, as the fields of `DETAIL_FIELDS`."""
    return fields_of(told.items(), _DETAIL_TYPES)


def fields_of(told: Iterable[tuple[str, Any]], types: Mapping[str, str]) -> dict[str, Any]:
    """Values as a row's fields: those that their columns do not take as `extra_json`.

    Args:
        told: names and values.
        types: of the columns; where one is `string`, octets are text.
    """
    fields: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, value in told:
        type_ = types.get(name)
        if type(value) is bytes and type_ == "string":
            value = value.decode(errors="backslashreplace")
        known = scalar(type_, value)
        if known is None:
            others[name] = value
        else:
            fields[name] = known
    if others:
        fields[EXTRA_JSON] = extra_text(others)
    return fields


def extra_text(told: Mapping[str, Any]) -> str:
    """What has no column of its own, as `extra_json` has it: compact, in the order of the wire."""
    return _ENCODER.encode({name: plain(value) for name, value in told.items()})


@cache
def _columns(performative: type[Composite]) -> list[tuple[str, str | None, type | None]]:
    """Of each field the name, its column's type, and whose values the column takes as they are."""
    found: list[tuple[str, str | None, type | None]] = []
    for spec in performative.FIELDS:
        type_ = _TYPES.get(spec.name)
        found.append((spec.name, type_, None if spec.type == _WIDE else _EXACT.get(type_ or "")))
    return found


def scalar(type_: str | None, value: Any) -> Any:
    """The value as a column of this type takes it, or None if the column does not."""
    if value is True or value is False:
        return value if type_ == "bool" else None
    if isinstance(value, int):
        limit = _LIMITS.get(type_ or "", 0)
        return int(value) if -limit <= value < limit else None
    if isinstance(value, str):
        return str.__str__(value) if type_ == "string" else None
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value) if type_ == "binary" else None
    return None


_PLAIN = frozenset({bool, int, str})


def plain(value: Any) -> Any:
    """A decoded AMQP value as JSON can hold it."""
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"binary": bytes(value).hex()}
    if isinstance(value, Mapping):
        return _map(value.items())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return _composite(value)


def _composite(value: Any) -> Any:
    """A described list, an array, a described value, or whatever else the codec knows."""
    kind = type(value)
    if hasattr(kind, "FIELDS") and hasattr(kind, "NAME"):
        found = {"type": str(kind.NAME)}
        return found | {name: plain(inner) for name, inner in value.present().items()}
    if hasattr(value, "descriptor") and hasattr(value, "value"):
        return {"descriptor": plain(value.descriptor), "value": plain(value.value)}
    pairs, items = getattr(value, "pairs", None), getattr(value, "items", None)
    if pairs is not None:
        return _map(pairs)
    if isinstance(items, list | tuple):
        return [plain(item) for item in items]
    octets = getattr(value, "octets", None)
    if isinstance(octets, bytes):
        return {"binary": octets.hex()}
    return str(value)


def _map(pairs: Iterable[tuple[Any, Any]]) -> Any:
    found = [(key, plain(value)) for key, value in pairs]
    if all(isinstance(key, str) for key, _ in found):
        texts = {str.__str__(key): value for key, value in found}
        if len(texts) == len(found):
            return texts
    return {"map": [[plain(key), value] for key, value in found]}


def revived(value: Any) -> Any:
    """The value behind JSON that `plain` made."""
    if isinstance(value, dict):
        if set(value) == {"binary"}:
            return bytes.fromhex(value["binary"])
        return {name: revived(one) for name, one in value.items()}
    return [revived(one) for one in value] if isinstance(value, list) else value
