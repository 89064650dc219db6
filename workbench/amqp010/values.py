"""Values of fields: their octets, and back.

A reader takes `(data, at, stop)` and gives the value and the offset behind it; `stop` is where the
enclosing value ends. A writer takes a value and gives octets. A map or a list names the type of
each value by a code, whose upper four bits tell the width; so a value of a type that is not in
`BY_CODE` is read too, as its octets. All numbers are big-endian, except the packing flags of a
struct, whose first octet holds the first eight.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from msgspec import Struct

from .errors import DecodeError, LocalProtocolError

__all__ = [
    "ARRAY_OF_STR16",
    "READERS",
    "READ_FAULTS",
    "WRITERS",
    "WRITE_FAULTS",
    "Reader",
    "SequenceSet",
    "Writer",
    "read_coded",
    "read_map",
    "write_coded",
    "write_map",
]

Reader: TypeAlias = Callable[[bytes, int, int], tuple[Any, int]]
Writer: TypeAlias = Callable[[Any], bytes]

READ_FAULTS = (IndexError, struct.error, UnicodeDecodeError)
"""What reading beyond the end, or text that is none, raises."""

WRITE_FAULTS = (IndexError, struct.error, UnicodeEncodeError, AttributeError, TypeError, ValueError)
"""What a value that does not fit its type raises."""

MOST_NESTED = 32
"""Maps, lists and arrays within each other; a stack of any depth is cheap to send."""

STR16 = 0x95
ARRAY_OF_STR16 = "str16-array"


class SequenceSet(Struct, frozen=True, gc=False):
    """A set of command ids, as ranges.

    Attributes:
        ranges: first and last id of each, both of them in it; serial numbers.
    """

    ranges: tuple[tuple[int, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ranges)


def _fixed(form: str) -> tuple[Reader, Writer]:
    packing = struct.Struct(f">{form}")
    unpack, pack, width = packing.unpack_from, packing.pack, packing.size

    def read(data: bytes, at: int, stop: int) -> tuple[Any, int]:
        return unpack(data, at)[0], at + width

    return read, pack


def _sized(form: str, read_as: Callable[[bytes], Any], write_as: Callable[[Any], bytes]) -> Any:
    """Octets behind their number."""
    packing = struct.Struct(f">{form}")
    unpack, pack, width = packing.unpack_from, packing.pack, packing.size

    def read(data: bytes, at: int, stop: int) -> tuple[Any, int]:
        begin = at + width
        end = begin + unpack(data, at)[0]
        if end > stop:
            raise _beyond(end, stop, at)
        return read_as(data[begin:end]), end

    def write(value: Any) -> bytes:
        octets = write_as(value)
        return pack(len(octets)) + octets

    return read, write


def _beyond(end: int, stop: int, at: int) -> DecodeError:
    return DecodeError(f"a value ends {end - stop} octets behind what encloses it", at)


def _octets(value: bytes) -> bytes:
    return memoryview(value).tobytes()  # bytes(5) would be five octets


def _text(codec: str) -> tuple[Callable[[bytes], str], Callable[[str], bytes]]:
    return lambda octets: octets.decode(codec), lambda text: text.encode(codec)


# -- sequence sets and byte ranges ------------------------------------------------------------


def _ranges(form: str, name: str) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    pair = struct.Struct(f">{form}{form}")

    def read(octets: bytes) -> tuple[tuple[int, int], ...]:
        if len(octets) != len(octets) // pair.size * pair.size:
            raise DecodeError(
                f"a {name} of {len(octets)} octets; legal: a multiple of {pair.size}", 0
            )
        return tuple((first, last) for first, last in pair.iter_unpack(octets))

    def write(ranges: Sequence[tuple[int, int]]) -> bytes:
        return b"".join(pair.pack(*one) for one in ranges)

    return read, write


_read_ranges, _write_ranges = _ranges("I", "sequence-set")


# -- values with a type code --------------------------------------------------------------------

_WIDTHS = {0: 1, 1: 2, 2: 4, 3: 8, 4: 16, 5: 32, 6: 64, 7: 128, 0xC: 5, 0xD: 9, 0xF: 0}
_SIZES = {8: ("B", 1), 9: ("H", 2), 0xA: ("I", 4)}


def read_coded(data: bytes, at: int, stop: int, depth: int = 0) -> tuple[Any, int]:
    """Reads a value behind its type code."""
    return _read_as(data[at], data, at + 1, stop, depth)


def _read_as(code: int, data: bytes, at: int, stop: int, depth: int) -> tuple[Any, int]:
    nested = _NESTED.get(code)
    if nested is not None:
        if depth == MOST_NESTED:
            raise DecodeError(f"values are nested deeper than {MOST_NESTED}", at)
        return nested(data, at, stop, depth + 1)
    found = BY_CODE.get(code)
    if found is not None:
        return found[0](data, at, stop)
    width = _WIDTHS.get(code >> 4)
    if width is None:
        if code >> 4 not in _SIZES:
            raise DecodeError(f"type code {code:#04x} has no width", at - 1)
        form, more = _SIZES[code >> 4]
        (size,) = struct.unpack_from(f">{form}", data, at)
        at, width = at + more, size
    if at + width > stop:
        raise _beyond(at + width, stop, at)
    return data[at : at + width], at + width


def _compound(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """Where the content of a map, list or array begins and ends."""
    (size,) = struct.unpack_from(">I", data, at)
    end = at + 4 + size
    if end > stop:
        raise _beyond(end, stop, at)
    return at + 4, end


def _read_count(data: bytes, at: int, end: int, least: int, name: str) -> int:
    (count,) = struct.unpack_from(">I", data, at)
    if count * least > end - at - 4:
        raise DecodeError(f"a {name} of {count} elements in {end - at - 4} octets", at)
    return int(count)


def _ended(at: int, end: int, name: str) -> None:
    if at != end:
        raise DecodeError(f"a {name} ends at octet {at}, its size says {end}", at)


def read_map(data: bytes, at: int, stop: int, depth: int = 0) -> tuple[dict[str, Any], int]:
    """Reads a map: names of up to 255 octets, each with a value of its own type."""
    at, end = _compound(data, at, stop)
    found: dict[str, Any] = {}
    if at == end:
        return found, end
    count = _read_count(data, at, end, 2, "map")
    at += 4
    for _ in range(count):
        name, at = READERS["str8"](data, at, end)
        found[name], at = read_coded(data, at, end, depth)
    _ended(at, end, "map")
    return found, end


def _read_list(data: bytes, at: int, stop: int, depth: int = 0) -> tuple[list[Any], int]:
    at, end = _compound(data, at, stop)
    found: list[Any] = []
    if at == end:
        return found, end
    count = _read_count(data, at, end, 1, "list")
    at += 4
    for _ in range(count):
        value, at = read_coded(data, at, end, depth)
        found.append(value)
    _ended(at, end, "list")
    return found, end


def _read_array(data: bytes, at: int, stop: int, depth: int = 0) -> tuple[tuple[Any, ...], int]:
    at, end = _compound(data, at, stop)
    if at == end:
        return (), end
    code = data[at]
    # Elements without octets would be any number of them; so an array has none of these.
    count = _read_count(data, at + 1, end, 1, "array")
    at += 5
    found = []
    for _ in range(count):
        value, at = _read_as(code, data, at, end, depth)
        found.append(value)
    _ended(at, end, "array")
    return tuple(found), end


_NESTED: dict[int, Callable[[bytes, int, int, int], tuple[Any, int]]] = {
    0xA8: read_map,
    0xA9: _read_list,
    0xAA: _read_array,
}


def write_coded(value: Any) -> bytes:
    """A value behind the code of the type that fits it.

    Raises:
        LocalProtocolError: no type fits.
    """
    for kind, code in _CODE_OF:
        if isinstance(value, kind):
            if code == 0x31 and value > 2**63 - 1:
                code = 0x32
            elif code == 0x90 and len(value) > 65535:
                code = 0xA0
            return bytes((code,)) + BY_CODE[code][1](value)
    raise LocalProtocolError(
        f"{value!r} has no type of AMQP 0-10; legal: bool, int, float, str, bytes, None, UUID,"
        " a mapping, a list or a tuple"
    )


def _wrapped(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def write_map(value: Mapping[str, Any]) -> bytes:
    """A map's octets."""
    write_name = WRITERS["str8"]
    parts = [write_name(name) + write_coded(one) for name, one in value.items()]
    return _wrapped(struct.pack(">I", len(parts)) + b"".join(parts))


def _write_list(value: Sequence[Any]) -> bytes:
    return _wrapped(struct.pack(">I", len(value)) + b"".join(map(write_coded, value)))


def _write_array(value: Sequence[Any]) -> bytes:
    """Its elements have one type: that of the first."""
    parts = [write_coded(one) for one in value]
    code = parts[0][0] if parts else STR16
    if any(part[0] != code for part in parts):
        raise LocalProtocolError("the elements of an array have one type")
    return _wrapped(bytes((code,)) + struct.pack(">I", len(parts)) + b"".join(p[1:] for p in parts))


def _read_sequence_set(data: bytes, at: int, stop: int) -> tuple[SequenceSet, int]:
    ranges, end = _sequence_octets[0](data, at, stop)
    return SequenceSet(ranges), end


def _write_sequence_set(value: SequenceSet) -> bytes:
    octets: bytes = _sequence_octets[1](value.ranges)
    return octets


def _read_bool(data: bytes, at: int, stop: int) -> tuple[bool, int]:
    return data[at] != 0, at + 1


def _read_uuid(data: bytes, at: int, stop: int) -> tuple[UUID, int]:
    if at + 16 > stop:
        raise _beyond(at + 16, stop, at)
    return UUID(bytes=data[at : at + 16]), at + 16


def _void(data: bytes, at: int, stop: int) -> tuple[None, int]:
    return None, at


_sequence_octets = _sized("H", _read_ranges, _write_ranges)

_TYPES: dict[str, tuple[int | None, Reader, Writer]] = {
    "int8": (0x01, *_fixed("b")),
    "uint8": (0x02, *_fixed("B")),
    "boolean": (0x08, _read_bool, lambda value: b"\x01" if value else b"\x00"),
    "int16": (0x11, *_fixed("h")),
    "uint16": (0x12, *_fixed("H")),
    "int32": (0x21, *_fixed("i")),
    "uint32": (0x22, *_fixed("I")),
    "float": (0x23, *_fixed("f")),
    "sequence-no": (None, *_fixed("I")),
    "int64": (0x31, *_fixed("q")),
    "uint64": (0x32, *_fixed("Q")),
    "double": (0x33, *_fixed("d")),
    "datetime": (0x38, *_fixed("Q")),
    "uuid": (0x48, _read_uuid, lambda value: value.bytes),
    "vbin8": (0x80, *_sized("B", _octets, _octets)),
    "str8-latin": (0x84, *_sized("B", *_text("iso-8859-15"))),
    "str8": (0x85, *_sized("B", *_text("utf-8"))),
    "vbin16": (0x90, *_sized("H", _octets, _octets)),
    "str16-latin": (0x94, *_sized("H", *_text("iso-8859-15"))),
    "str16": (STR16, *_sized("H", *_text("utf-8"))),
    "vbin32": (0xA0, *_sized("I", _octets, _octets)),
    "sequence-set": (None, _read_sequence_set, _write_sequence_set),
    "byte-ranges": (None, *_sized("H", *_ranges("Q", "byte-ranges"))),
    "map": (0xA8, read_map, write_map),
    "list": (0xA9, _read_list, _write_list),
    "array": (0xAA, _read_array, _write_array),
    ARRAY_OF_STR16: (None, _read_array, _write_array),
    "void": (0xF0, _void, lambda value: b""),
}

READERS: dict[str, Reader] = {name: read for name, (_, read, _) in _TYPES.items()}
WRITERS: dict[str, Writer] = {name: write for name, (_, _, write) in _TYPES.items()}
BY_CODE: dict[int, tuple[Reader, Writer]] = {
    code: (read, write) for code, read, write in _TYPES.values() if code is not None
}
"""Reader and writer by type code. A struct32 in a map is read as its octets: nothing needs more."""

_CODE_OF: tuple[tuple[Any, int], ...] = (
    (bool, 0x08),
    (int, 0x31),
    (float, 0x33),
    (str, STR16),
    (bytes, 0x90),
    (type(None), 0xF0),
    (UUID, 0x48),
    (Mapping, 0xA8),
    (list, 0xA9),
    (tuple, 0xA9),
)
"""The type that is written for a value of Python."""
