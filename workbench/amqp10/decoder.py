"""Octets to values: every type and every legal encoding of AMQP 1.0 [1.2 to 1.6].

Rules of this file. The octets are not trusted: a size or a count is compared with the octets
that remain before anything is allocated, nesting ends at `MAX_DEPTH`, and elements that take no
octets at `MAX_EMPTY_ELEMENTS`; so memory stays in proportion to the input. Every reader takes
`(data, start, end)` with `start` just behind the constructor and returns the value and the offset
behind it; offsets in errors count from the start of `data`.
"""

import struct
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from workbench.amqp10.constructor import DESCRIBED, FORMAT_CODES, Category, describe_code
from workbench.amqp10.errors import DecodeError
from workbench.amqp10.value_text import value_text
from workbench.amqp10.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float32,
    Int,
    Long,
    MapPairs,
    MapValue,
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


CompoundReader: TypeAlias = Callable[[bytes, int, int, int], tuple[object, int]]

MAX_DEPTH = 32
"""Compound, array and described values inside one another. Messages in the field nest 3 or 4
deep; the limit only has to stop input that is made to exhaust the stack."""

MAX_EMPTY_ELEMENTS = 64
"""Elements of an array whose constructor takes no octets per element (null, true, uint0, list0
and the like): the one place where a count is not bounded by the octets that are there."""


_READERS = {code: wrapped(code, plain) for code, plain in PLAIN_READERS.items()}


def read_compound_header(
    data: bytes, start: int, end: int, width: int, what: str
) -> tuple[int, int, int]:
    """Reads size and count of a list, map or array.

    Args:
        data: the octets.
        start: offset of the size, just behind the constructor.
        end: where the enclosing value ends.
        width: octets of size and of count, 1 or 4.
        what: name for error texts.

    Returns:
        The count, the offset of the first element and the offset behind the last.

    Raises:
        DecodeError: the size goes beyond `end` or does not cover the count.
    """
    begin = start + 2 * width
    if begin > end:
        raise cut_short(f"size and count of {what}", 2 * width, end - start, start)
    if width == 1:
        size, count = data[start], data[start + 1]
    else:
        size = int.from_bytes(data[start : start + 4], "big")
        count = int.from_bytes(data[start + 4 : begin], "big")
    stop = start + width + size
    if stop > end:
        raise cut_short(f"{what} of size {size}", size, end - start - width, start)
    if stop < begin:
        raise DecodeError(
            f"{what} has size {size}, which does not even cover its count of {width} octets", start
        )
    return count, begin, stop


def check_count(what: str, count: int, begin: int, stop: int, offset: int) -> None:
    """Refuses a count that the octets cannot hold, each element taking at least one.

    Raises:
        DecodeError: it cannot.
    """
    if count > stop - begin:
        raise DecodeError(
            f"{what} claims {count} elements in {stop - begin} octets; each takes at least one",
            offset,
        )


def check_end(what: str, at: int, stop: int) -> None:
    """Refuses a compound value whose elements end elsewhere than its size says.

    Raises:
        DecodeError: they do.
    """
    if at != stop:
        raise DecodeError(
            f"the elements of {what} end at octet {at}, its size says octet {stop}", at
        )


def _list(code: int) -> CompoundReader:
    known = FORMAT_CODES[code]
    width, what = known.width, str(known)

    def read(data: bytes, start: int, end: int, depth: int) -> tuple[object, int]:
        count, at, stop = read_compound_header(data, start, end, width, what)
        check_count(what, count, at, stop, start)
        items = []
        for _ in range(count):
            item, at = decode_value(data, at, stop, depth)
            items.append(item)
        check_end(what, at, stop)
        return items, stop

    return read


def map_reader(code: int, read_value: CompoundReader) -> CompoundReader:
    """A reader of maps whose values are read by `read_value`: map8 (0xc1) or map32 (0xd1)."""
    known = FORMAT_CODES[code]
    width, what = known.width, str(known)

    def read(data: bytes, start: int, end: int, depth: int) -> tuple[object, int]:
        count, at, stop = read_compound_header(data, start, end, width, what)
        check_count(what, count, at, stop, start)
        if count % 2:
            raise DecodeError(
                f"{what} has count {count}; it counts keys and values, so it must be even", start
            )
        pairs = []
        for _ in range(count // 2):
            key, at = decode_value(data, at, stop, depth)
            value, at = read_value(data, at, stop, depth)
            pairs.append((key, value))
        check_end(what, at, stop)
        return _as_map(pairs, what, start), stop

    return read


_FEW = 64
_WELL_HASHED = (str, bytes, int, float)


def _as_map(pairs: list[tuple[object, object]], what: str, offset: int) -> MapValue:
    # Python gives UUIDs that are far apart the same hash, so a peer could choose some that a dict
    # has to tell apart one by one. No honest map has so many of them.
    if len(pairs) <= _FEW or all(isinstance(key, _WELL_HASHED) for key, _ in pairs):
        try:
            as_dict = dict(pairs)
        except TypeError:  # a key such as a list cannot be hashed
            as_dict = {}
        if len(as_dict) == len(pairs):
            return as_dict
    # Python cannot hold these keys apart. AMQP can, unless two have the same type and value.
    seen: set[str] = set()
    for key, _ in pairs:
        identity = repr(key)  # the wrappers' repr names type and value
        if identity in seen:
            raise DecodeError(f"{what} has the key {value_text(key)} twice [1.6.23]", offset)
        seen.add(identity)
    return MapPairs(tuple(pairs))


def read_element_constructor(
    data: bytes, start: int, end: int, depth: int
) -> tuple[tuple[object, ...], int, int]:
    """Reads the constructor that the elements of an array share.

    Returns:
        The descriptors, outermost first, the format code and the offset behind it.

    Raises:
        DecodeError: there is no constructor, or it is no known one.
    """
    descriptors: list[object] = []
    at = start
    while at < end and data[at] == DESCRIBED:
        if depth + len(descriptors) >= MAX_DEPTH:
            raise _too_deep(at)
        descriptor, at = decode_value(data, at + 1, end, depth + len(descriptors))
        descriptors.append(descriptor)
    if at >= end:
        raise cut_short("the element constructor of the array", 1, 0, at)
    code = data[at]
    if code not in FORMAT_CODES:
        raise DecodeError(f"the elements of the array are {describe_code(code)}", at)
    return tuple(descriptors), code, at + 1


def check_array_count(code: int, count: int, begin: int, stop: int, offset: int) -> None:
    """Refuses an array whose count its octets cannot hold.

    Raises:
        DecodeError: they cannot, or elements without octets are more than the limit.
    """
    known = FORMAT_CODES[code]
    least = known.width
    if known.category in (Category.COMPOUND, Category.ARRAY):
        least = 2 * known.width
    if least == 0:
        if count > MAX_EMPTY_ELEMENTS:
            raise DecodeError(
                f"the array claims {count} elements of {known}, which takes no octets; "
                f"legal here is up to {MAX_EMPTY_ELEMENTS}",
                offset,
            )
    elif count * least > stop - begin:
        raise DecodeError(
            f"the array claims {count} elements of {known}, at least {count * least} octets; "
            f"it has {stop - begin}",
            offset,
        )


def _array(code: int) -> CompoundReader:
    known = FORMAT_CODES[code]
    width, what = known.width, str(known)

    def read(data: bytes, start: int, end: int, depth: int) -> tuple[object, int]:
        count, at, stop = read_compound_header(data, start, end, width, what)
        descriptors, element, at = read_element_constructor(data, at, stop, depth)
        check_array_count(element, count, at, stop, start)
        # All elements are of one constructor: how it is read is looked up once.
        of_element = _READERS.get(element) or partial(
            read_bare, element, depth=depth + len(descriptors)
        )
        # What takes no octets is read once: the work follows what was sent, not what is claimed.
        size = FORMAT_CODES[element].width
        items = []
        for _ in range(count if size else min(count, 1)):
            item, at = of_element(data, at, stop)
            items.append(item)
        if not size:
            items *= count
        check_end(what, at, stop)
        return Array(FORMAT_CODES[element].type_name, tuple(items), descriptors), stop

    return read


def _any(data: bytes, start: int, end: int, depth: int) -> tuple[object, int]:
    return decode_value(data, start, end, depth)


_COMPOUND_READERS: dict[int, CompoundReader] = {
    0xC0: _list(0xC0),
    0xD0: _list(0xD0),
    0xC1: map_reader(0xC1, _any),
    0xD1: map_reader(0xD1, _any),
    0xE0: _array(0xE0),
    0xF0: _array(0xF0),
}


def _too_deep(offset: int) -> DecodeError:
    return DecodeError(
        f"values are nested deeper than {MAX_DEPTH}; this decoder reads up to that depth", offset
    )


def read_bare(code: int, data: bytes, start: int, end: int, depth: int) -> tuple[object, int]:
    """Reads a value whose constructor octet was read already.

    Args:
        code: the format code.
        data: the octets.
        start: offset behind the constructor.
        end: where the enclosing value ends.
        depth: how many values enclose this one.

    Returns:
        The value and the offset behind it.

    Raises:
        DecodeError: the octets are no such value.
    """
    reader = _READERS.get(code)
    if reader is not None:
        return reader(data, start, end)
    if code == 0x45:
        return [], start
    compound = _COMPOUND_READERS.get(code)
    if compound is None:
        raise DecodeError(f"a value begins with {describe_code(code)}", start - 1)
    if depth >= MAX_DEPTH:
        raise _too_deep(start - 1)
    return compound(data, start, end, depth + 1)


def decode_value(data: bytes, start: int, end: int, depth: int = 0) -> tuple[object, int]:
    """Reads one value, constructor included, from `data[start:end]`.

    Returns:
        The value and the offset behind it.

    Raises:
        DecodeError: the octets are no value, or it does not end before `end`.
    """
    if start >= end:
        raise cut_short("a value", 1, 0, start)
    code = data[start]
    if code != DESCRIBED:
        return read_bare(code, data, start + 1, end, depth)
    if depth >= MAX_DEPTH:
        raise _too_deep(start)
    descriptor, at = decode_value(data, start + 1, end, depth + 1)
    value, at = decode_value(data, at, end, depth + 1)
    return Described(descriptor, value), at


def decode(data: bytes, offset: int = 0) -> tuple[object, int]:
    """Reads one AMQP value.

    Args:
        data: octets that hold at least one value.
        offset: where it begins.

    Returns:
        The value (see `workbench.amqp10.values` for the types) and the offset behind it.

    Raises:
        DecodeError: with the offset of the offending octet.
    """
    return decode_value(bytes(data), offset, len(data))
