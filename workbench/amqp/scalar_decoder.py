"""Octets to scalar values: one reader per constructor octet [1.6].

Every reader takes `(data, start, end)` with `start` just behind the constructor, and returns the
value and the offset behind it. Nothing is read at or behind `end`.
"""

import struct
import uuid
from collections.abc import Callable
from typing import Any, TypeAlias

from workbench.amqp.constructor import FORMAT_CODES
from workbench.amqp.errors import DecodeError
from workbench.amqp.values import (
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Float32,
    Int,
    Long,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

Reader: TypeAlias = Callable[[bytes, int, int], tuple[object, int]]


def cut_short(what: str, need: int, have: int, offset: int) -> DecodeError:
    """The error for a value that goes on behind the end of what holds it."""
    octets = "octet" if need == 1 else "octets"
    return DecodeError(f"{what} takes {need} {octets}, only {have} remain", offset)


def _empty(value: object) -> Reader:
    return lambda data, start, end: (value, start)


def _octet(data: bytes, start: int, end: int) -> tuple[int, int]:
    if start >= end:
        raise cut_short("the value", 1, 0, start)
    return data[start], start + 1


def _fixed(code: int, layout: str) -> Reader:
    unpack = struct.Struct(layout).unpack_from
    known = FORMAT_CODES[code]

    def read(data: bytes, start: int, end: int) -> tuple[object, int]:
        stop = start + known.width
        if stop > end:
            raise cut_short(str(known), known.width, end - start, start)
        return unpack(data, start)[0], stop

    return read


def _boolean(data: bytes, start: int, end: int) -> tuple[bool, int]:
    value, stop = _octet(data, start, end)
    if value > 1:
        raise DecodeError(
            f"boolean 0x56 is followed by 0x{value:02x}; legal is 00 (false) or 01 (true)", start
        )
    return value == 1, stop


def _char(data: bytes, start: int, end: int) -> tuple[str, int]:
    if end - start < 4:
        raise cut_short("char 0x73", 4, end - start, start)
    point = int.from_bytes(data[start : start + 4], "big")
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        raise DecodeError(
            f"char 0x{point:x} is no Unicode character; legal is up to 0x10ffff without the "
            "surrogates 0xd800 to 0xdfff",
            start,
        )
    return chr(point), start + 4


def _uuid(data: bytes, start: int, end: int) -> tuple[uuid.UUID, int]:
    if end - start < 16:
        raise cut_short("uuid 0x98", 16, end - start, start)
    return uuid.UUID(bytes=data[start : start + 16]), start + 16


def _variable(code: int, make: Callable[[bytes, int], object]) -> Reader:
    known = FORMAT_CODES[code]
    width = known.width

    def read(data: bytes, start: int, end: int) -> tuple[object, int]:
        begin = start + width
        if begin > end:
            raise cut_short(f"the size of {known}", width, end - start, start)
        size = data[start] if width == 1 else int.from_bytes(data[start:begin], "big")
        stop = begin + size
        if stop > end:
            raise cut_short(f"{known} of size {size}", size, end - begin, begin)
        return make(data[begin:stop], begin), stop

    return read


def _binary(octets: bytes, start: int) -> bytes:
    return octets


def _string(octets: bytes, start: int) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(
            f"string is not UTF-8: octet 0x{octets[error.start]:02x}, {error.reason} [1.6.20]",
            start + error.start,
        ) from None


def _symbol(octets: bytes, start: int) -> Symbol:
    if not octets.isascii():
        bad = next(index for index, octet in enumerate(octets) if octet > 0x7F)
        raise DecodeError(
            f"symbol is not ASCII: octet 0x{octets[bad]:02x} is above 0x7f [1.6.21]", start + bad
        )
    return str.__new__(Symbol, octets, "ascii")


PLAIN_READERS: dict[int, Reader] = {
    0x40: _empty(None),
    0x41: _empty(True),
    0x42: _empty(False),
    0x56: _boolean,
    0x50: _octet,
    0x60: _fixed(0x60, ">H"),
    0x70: _fixed(0x70, ">I"),
    0x52: _octet,
    0x43: _empty(0),
    0x80: _fixed(0x80, ">Q"),
    0x53: _octet,
    0x44: _empty(0),
    0x51: _fixed(0x51, ">b"),
    0x61: _fixed(0x61, ">h"),
    0x71: _fixed(0x71, ">i"),
    0x54: _fixed(0x54, ">b"),
    0x81: _fixed(0x81, ">q"),
    0x55: _fixed(0x55, ">b"),
    0x72: _fixed(0x72, ">f"),
    0x82: _fixed(0x82, ">d"),
    0x74: _fixed(0x74, ">4s"),
    0x84: _fixed(0x84, ">8s"),
    0x94: _fixed(0x94, ">16s"),
    0x73: _char,
    0x83: _fixed(0x83, ">q"),
    0x98: _uuid,
    0xA0: _variable(0xA0, _binary),
    0xB0: _variable(0xB0, _binary),
    0xA1: _variable(0xA1, _string),
    0xB1: _variable(0xB1, _string),
    0xA3: _variable(0xA3, _symbol),
    0xB3: _variable(0xB3, _symbol),
}
"""Readers of all scalar encodings that give plain Python values: for fields of a known type."""

_WRAPPERS: dict[str, Callable[[Any], object]] = {
    "ubyte": lambda value: int.__new__(UByte, value),
    "ushort": lambda value: int.__new__(UShort, value),
    "uint": lambda value: int.__new__(UInt, value),
    "ulong": lambda value: int.__new__(ULong, value),
    "byte": lambda value: int.__new__(Byte, value),
    "short": lambda value: int.__new__(Short, value),
    "int": lambda value: int.__new__(Int, value),
    "long": lambda value: int.__new__(Long, value),
    "timestamp": lambda value: int.__new__(Timestamp, value),
    "float": lambda value: float.__new__(Float32, value),
    "char": lambda value: str.__new__(Char, value),
    "decimal32": Decimal32,
    "decimal64": Decimal64,
    "decimal128": Decimal128,
}


def wrapped(code: int, plain: Reader) -> Reader:
    """The reader of an encoding, its value wrapped where Python has no type of its own for it."""
    wrap = _WRAPPERS.get(FORMAT_CODES[code].type_name)
    if wrap is None:
        return plain

    def read(data: bytes, start: int, end: int) -> tuple[object, int]:
        value, stop = plain(data, start, end)
        return wrap(value), stop

    return read
