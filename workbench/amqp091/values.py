"""Values of field tables by their type letters [4.2.5.5, as RabbitMQ's errata have them].

A table is read into plain Python values and written back to the same octets. Where several letters
have one Python type, the usual one stands for itself and the others are subclasses of it: an `int`
is written as `I` or, too large for that, `l`; a `Byte(5)` is 5 and is written as `b`. pamqp's own
tables forget the letter and the order and sort by name, so a frame would not come back as it was.

| letter | value | letter | value |
|---|---|---|---|
| `t` | bool | `f` / `d` | `Float` / float |
| `b` `B` | `Byte`, `UnsignedByte` | `D` | decimal.Decimal |
| `s` `u` | `Short`, `UnsignedShort` | `S` | str; `LongString` (octets) if it is no UTF-8 |
| `I` `i` | int, `UnsignedInt` | `x` | bytes |
| `l` `L` | int or `Long`; `L` is read as `l` | `A` / `F` | list / dict |
| `T` | `Timestamp`, seconds | `V` | None |
"""

import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from workbench.amqp091.errors import DecodeError, LocalProtocolError

__all__ = [
    "MAX_DEPTH", "MOST_SHORT", "Byte", "Float", "Long", "LongString", "OtherLong", "Short",
    "Timestamp", "UnsignedByte", "UnsignedInt", "UnsignedShort", "read_table",
    "short_string", "write_table",
]  # fmt: skip

MOST_SHORT: Final = 255
"""Octets of a short string, whose length is one octet [4.2.5.3]."""

MAX_DEPTH: Final = 32
"""So deep may tables and arrays lie in each other. The specification sets no limit; messages in the
field nest 2 or 3 deep."""


class Byte(int):
    """8 bits, signed: letter `b`."""


class UnsignedByte(int):
    """8 bits: letter `B`."""


class Short(int):
    """16 bits, signed: letter `s`."""


class UnsignedShort(int):
    """16 bits: letter `u`."""


class UnsignedInt(int):
    """32 bits: letter `i`."""


class Long(int):
    """64 bits, signed: letter `l`, for a number that 32 bits would hold, too."""


class OtherLong(int):
    """64 bits, signed, by the letter `L`, which some clients write."""


class Timestamp(int):
    """Seconds since 1970, 64 bits: letter `T`."""


class Float(float):
    """32 bits: letter `f`."""


class LongString(bytes):
    """Octets by the letter `S` that are no UTF-8."""


_unpack_uint = struct.Struct(">I").unpack_from
_unpack_decimal = struct.Struct(">Bi").unpack_from
_pack_uint = struct.Struct(">I").pack
_OCTETS = [bytes((number,)) for number in range(256)]

_NUMBERS: dict[type, tuple[bytes, struct.Struct]] = {
    Byte: (b"b", struct.Struct(">b")),
    UnsignedByte: (b"B", struct.Struct(">B")),
    Short: (b"s", struct.Struct(">h")),
    UnsignedShort: (b"u", struct.Struct(">H")),
    UnsignedInt: (b"i", struct.Struct(">I")),
    Long: (b"l", struct.Struct(">q")),
    OtherLong: (b"L", struct.Struct(">q")),
    Timestamp: (b"T", struct.Struct(">Q")),
    Float: (b"f", struct.Struct(">f")),
    float: (b"d", struct.Struct(">d")),
    bool: (b"t", struct.Struct(">?")),
    int: (b"I", struct.Struct(">i")),
}
_BY_LETTER = {
    letter[0]: (kind, form.unpack_from, form.size) for kind, (letter, form) in _NUMBERS.items()
}
_SMALL = range(-(2**31), 2**31)


def short_string(text: str) -> bytes:
    """A short string's octets [4.2.5.3].

    Raises:
        LocalProtocolError: it has more than 255 octets.
    """
    octets = text.encode()
    if len(octets) > MOST_SHORT:
        raise LocalProtocolError(
            f"a short string has at most {MOST_SHORT} octets; {text[:20]!r}... has {len(octets)}"
        )
    return _OCTETS[len(octets)] + octets


def write_table(table: Mapping[str, Any]) -> bytes:
    """A field table's octets, its size before it.

    Raises:
        LocalProtocolError: a name or a value does not fit.
    """
    return _write_table(table, 1)


def _write_table(table: Mapping[str, Any], depth: int) -> bytes:
    if depth > MAX_DEPTH:
        raise LocalProtocolError(f"tables lie more than {MAX_DEPTH} deep in each other")
    octets = b"".join(
        short_string(name) + _write_value(value, depth) for name, value in table.items()
    )
    return _pack_uint(len(octets)) + octets


def _write_value(value: Any, depth: int) -> bytes:
    kind = type(value)
    if kind is str:
        octets: bytes = value.encode()
        return b"S" + _pack_uint(len(octets)) + octets
    try:
        if kind is int and value not in _SMALL:
            kind = Long
        number = _NUMBERS.get(kind)
        if number is not None:
            letter, form = number
            return letter + form.pack(value)
        if kind is Decimal:
            return _write_decimal(value)
    except (struct.error, OverflowError):
        raise LocalProtocolError(f"{value!r} does not fit into a {kind.__name__}") from None
    if value is None:
        return b"V"
    if isinstance(value, bytes | bytearray):
        return (b"S" if kind is LongString else b"x") + _pack_uint(len(value)) + bytes(value)
    if isinstance(value, Mapping):
        return b"F" + _write_table(value, depth + 1)
    if isinstance(value, list | tuple):
        if depth >= MAX_DEPTH:
            raise LocalProtocolError(f"arrays lie more than {MAX_DEPTH} deep in each other")
        octets = b"".join(_write_value(item, depth + 1) for item in value)
        return b"A" + _pack_uint(len(octets)) + octets
    raise LocalProtocolError(f"a table holds no {kind.__name__}: {value!r}")


def _write_decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise LocalProtocolError(f"a table holds no decimal {value}")
    number = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    return b"D" + struct.pack(">Bi", max(-exponent, 0), -number if sign else number)


def read_table(data: bytes, at: int, end: int) -> tuple[dict[str, Any], int]:
    """Reads a field table.

    Args:
        data: octets.
        at: where its size stands.
        end: where what it lies in ends.

    Returns:
        The table, and where it ends. Of a name that comes twice the last value counts.

    Raises:
        DecodeError: with `SYNTAX_ERROR`.
    """
    try:
        return _read_table(data, at, end, 1)
    except (IndexError, struct.error):
        raise DecodeError("a table's value is cut off", min(end, len(data))) from None


def _read_table(data: bytes, at: int, end: int, depth: int) -> tuple[dict[str, Any], int]:
    begin, stop = _inside(data, at, end, depth)
    table: dict[str, Any] = {}
    at = begin
    while at < stop:
        size = data[at]
        at += 1
        try:
            name = str(data[at : at + size], "utf-8")
        except UnicodeDecodeError:
            raise DecodeError("a table's name is no UTF-8", at) from None
        table[name], at = _read_value(data, at + size, stop, depth)
    return table, at


def _inside(data: bytes, at: int, end: int, depth: int) -> tuple[int, int]:
    """Where the inside of a table or array begins and ends."""
    if depth > MAX_DEPTH:
        raise DecodeError(f"tables lie more than {MAX_DEPTH} deep in each other", at)
    (size,) = _unpack_uint(data, at)
    stop: int = at + 4 + size
    if stop > end:
        raise DecodeError(f"a table of {size} octets stands where {end - at - 4} are left", at)
    return at + 4, stop


def _read_value(data: bytes, at: int, stop: int, depth: int) -> tuple[Any, int]:
    if at >= stop:
        raise DecodeError("a table's value is missing", at)
    letter = data[at]
    value: Any
    number = _BY_LETTER.get(letter)
    if number is not None:
        kind, unpack, size = number
        (value,) = unpack(data, at + 1)
        after = at + 1 + size
        if kind not in _PLAIN:
            value = value if kind is Long and value not in _SMALL else kind(value)
    else:
        reader = _READERS.get(letter)
        if reader is None:
            raise DecodeError(f"a table's value has the letter {chr(letter)!r}, which is none", at)
        value, after = reader(data, at + 1, stop, depth)
    if after > stop:
        raise DecodeError("a table's value runs past its end", at)
    return value, after


_PLAIN = (int, bool, float)


def _read_octets(data: bytes, at: int, stop: int, depth: int) -> tuple[bytes, int]:
    (size,) = _unpack_uint(data, at)
    after = at + 4 + size
    if after > stop:
        raise DecodeError(f"{size} octets are announced where {stop - at - 4} are left", at)
    return data[at + 4 : after], after


def _read_string(data: bytes, at: int, stop: int, depth: int) -> tuple[str | bytes, int]:
    octets, after = _read_octets(data, at, stop, depth)
    try:
        return str(octets, "utf-8"), after
    except UnicodeDecodeError:
        return LongString(octets), after


def _read_decimal(data: bytes, at: int, stop: int, depth: int) -> tuple[Decimal, int]:
    scale, number = _unpack_decimal(data, at)
    digits = tuple(map(int, str(abs(number))))
    return Decimal((int(number < 0), digits, -scale)), at + 5


def _read_array(data: bytes, at: int, end: int, depth: int) -> tuple[list[Any], int]:
    at, stop = _inside(data, at, end, depth + 1)
    values = []
    while at < stop:
        value, at = _read_value(data, at, stop, depth + 1)
        values.append(value)
    return values, at


_READERS: dict[int, Callable[[bytes, int, int, int], tuple[Any, int]]] = {
    ord("S"): _read_string,
    ord("x"): _read_octets,
    ord("D"): _read_decimal,
    ord("A"): _read_array,
    ord("F"): lambda data, at, stop, depth: _read_table(data, at, stop, depth + 1),
    ord("V"): lambda data, at, stop, depth: (None, at),
}
