"""AMQP values as text for a human: short, safe to show, one line.

Text from the wire may hold anything: control characters and the like come out escaped, and long
values are cut, with their length told.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from typing import Any
from uuid import UUID

from workbench.amqp10.values import (
    Array,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    MapPairs,
    Symbol,
    Timestamp,
)

LONGEST = 120
"""Characters of a string, or octets of a binary, that are shown."""

_MOST_ITEMS = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def value_text(value: object) -> str:
    """A value as one line of text.

    Args:
        value: any AMQP value, composites included.

    Returns:
        For example `true`, `4294967295`, `'q1'`, `amqp:accepted:list`, `0x0001 (2 octets)`,
        `{product: 'RabbitMQ'}`, `source(address='/queues/q')`.
    """
    if value is None:
        return "null"
    if isinstance(value, Enum) and not isinstance(value, str):
        sent = str(value.value).lower()
        return f"{value.name.lower().replace('_', '-')} ({sent})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Timestamp):
        return _timestamp(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, Symbol | StrEnum):
        return _cut(repr(str(value))[1:-1])
    if isinstance(value, Char | str):
        return _cut(repr(str(value)))
    if isinstance(value, bytes):
        return bytes_text(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Decimal32 | Decimal64 | Decimal128):
        return f"{type(value).__name__.lower()} 0x{value.octets.hex()}"
    return _compound_text(value)


def descriptor_text(descriptor: object) -> str:
    """A descriptor as one line of text: `0x24`, `amqp:accepted:list`."""
    if isinstance(descriptor, int) and not isinstance(descriptor, bool):
        return f"0x{descriptor:02x}"
    return value_text(descriptor)


def _compound_text(value: object) -> str:
    composite: Any = value
    if hasattr(type(value), "present"):  # what defines composites imports this module
        named = composite.present().items()
        fields = (f"{name.replace('_', '-')}={value_text(item)}" for name, item in named)
        return f"{composite.NAME}({_joined(fields)})"
    if isinstance(value, Described):
        return f"{descriptor_text(value.descriptor)}({value_text(value.value)})"
    if isinstance(value, Array):
        return f"{value.type_name}[{_joined(map(value_text, value.items))}]"
    if isinstance(value, list | tuple):
        return f"[{_joined(map(value_text, value))}]"
    if isinstance(value, dict | MapPairs):
        texts = (f"{value_text(key)}: {value_text(item)}" for key, item in value.items())
        return f"{{{_joined(texts)}}}"
    return _cut(repr(value))


def _joined(texts: Iterable[str]) -> str:
    shown: list[str] = []
    for text in texts:
        if len(shown) == _MOST_ITEMS or sum(map(len, shown)) > 4 * LONGEST:
            shown.append("…")
            break
        shown.append(text)
    return ", ".join(shown)


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(text)} characters)"


def bytes_text(value: bytes) -> str:
    """Octets as text where short and readable, else in hexadecimal; and how many they are."""
    counted = f"({len(value)} octet{'' if len(value) == 1 else 's'})"
    if len(value) <= 32 and all(0x20 <= octet < 0x7F for octet in value):
        return f"{value.decode()!r} {counted}"
    if len(value) <= LONGEST:
        return f"0x{value.hex()} {counted}"
    return f"0x{value[:32].hex()}… ({len(value)} octets)"


def _timestamp(value: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=int(value))
    except OverflowError:
        return f"{int(value)} ms since 1970"
    utc = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{int(value)} ({utc}Z)"
