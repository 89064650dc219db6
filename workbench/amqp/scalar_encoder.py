"""Scalar values to octets, in the shortest encoding [1.6], and their size without the octets.

Encoders are by type, for fields whose type is known, and take plain Python values. A value of
another type or out of range raises what Python raises; the callers make it a lesson.
"""

import struct
import uuid
from collections.abc import Callable
from typing import TypeAlias

from workbench.amqp.values import Decimal32, Decimal64, Decimal128

ValueEncoder: TypeAlias = Callable[..., bytes]
ValueSize: TypeAlias = Callable[..., int]

NULL = b"\x40"

_pack_uint = struct.Struct(">BI").pack
_pack_ulong = struct.Struct(">BQ").pack
_pack_int = struct.Struct(">Bi").pack
_pack_long = struct.Struct(">Bq").pack

SMALL_UINT = [b"\x43"] + [bytes((0x52, value)) for value in range(1, 256)]
"""The encodings of uint 0 to 255."""

SMALL_ULONG = [b"\x44"] + [bytes((0x53, value)) for value in range(1, 256)]
"""The encodings of ulong 0 to 255."""


def encode_boolean(value: bool) -> bytes:
    """Encodes as 41 or 42."""
    if value is True:
        return b"\x41"
    if value is False:
        return b"\x42"
    raise TypeError


def encode_uint(value: int) -> bytes:
    """Encodes as 43, 52 or 70."""
    return SMALL_UINT[value] if 0 <= value <= 0xFF else _pack_uint(0x70, value)


def size_uint(value: int) -> int:
    """1, 2 or 5."""
    return 1 if value == 0 else 2 if value <= 0xFF else 5


def encode_ulong(value: int) -> bytes:
    """Encodes as 44, 53 or 80."""
    return SMALL_ULONG[value] if 0 <= value <= 0xFF else _pack_ulong(0x80, value)


def size_ulong(value: int) -> int:
    """1, 2 or 9."""
    return 1 if value == 0 else 2 if value <= 0xFF else 9


def encode_int(value: int) -> bytes:
    """Encodes as 54 or 71."""
    return bytes((0x54, value & 0xFF)) if -128 <= value <= 127 else _pack_int(0x71, value)


def encode_long(value: int) -> bytes:
    """Encodes as 55 or 81."""
    return bytes((0x55, value & 0xFF)) if -128 <= value <= 127 else _pack_long(0x81, value)


def _packer(layout: str, code: int) -> Callable[[object], bytes]:
    pack = struct.Struct(layout).pack
    return lambda value: pack(code, value)


def _variable(code8: int, code32: int, octets: bytes) -> bytes:
    if len(octets) <= 0xFF:
        return bytes((code8, len(octets))) + octets
    return _pack_uint(code32, len(octets)) + octets


def encode_binary(value: bytes) -> bytes:
    """Encodes as a0 or b0."""
    return _variable(0xA0, 0xB0, value)


def encode_string(value: str) -> bytes:
    """Encodes as a1 or b1."""
    return _variable(0xA1, 0xB1, value.encode())


def encode_symbol(value: str) -> bytes:
    """Encodes as a3 or b3."""
    return _variable(0xA3, 0xB3, value.encode("ascii"))


def size_binary(value: bytes | str) -> int:
    """Size of binary and of ASCII text."""
    return len(value) + (2 if len(value) <= 0xFF else 5)


def size_string(value: str) -> int:
    """Size of a string in UTF-8."""
    return size_binary(value if value.isascii() else value.encode())


def _char(value: str) -> bytes:
    return _pack_uint(0x73, ord(value))


def _uuid(value: uuid.UUID) -> bytes:
    return b"\x98" + value.bytes


def _decimal(code: int) -> Callable[[Decimal32 | Decimal64 | Decimal128], bytes]:
    return lambda value: bytes((code,)) + value.octets


def _always(size: int) -> Callable[[object], int]:
    return lambda value: size


SCALARS: dict[str, tuple[ValueEncoder, ValueSize]] = {
    "null": (lambda value: NULL, _always(1)),
    "boolean": (encode_boolean, _always(1)),
    "ubyte": (_packer(">BB", 0x50), _always(2)),
    "ushort": (_packer(">BH", 0x60), _always(3)),
    "uint": (encode_uint, size_uint),
    "ulong": (encode_ulong, size_ulong),
    "byte": (_packer(">Bb", 0x51), _always(2)),
    "short": (_packer(">Bh", 0x61), _always(3)),
    "int": (encode_int, lambda value: 2 if -128 <= value <= 127 else 5),
    "long": (encode_long, lambda value: 2 if -128 <= value <= 127 else 9),
    "float": (_packer(">Bf", 0x72), _always(5)),
    "double": (_packer(">Bd", 0x82), _always(9)),
    "decimal32": (_decimal(0x74), _always(5)),
    "decimal64": (_decimal(0x84), _always(9)),
    "decimal128": (_decimal(0x94), _always(17)),
    "char": (_char, _always(5)),
    "timestamp": (_packer(">Bq", 0x83), _always(9)),
    "uuid": (_uuid, _always(17)),
    "binary": (encode_binary, size_binary),
    "string": (encode_string, size_string),
    "symbol": (encode_symbol, size_binary),
}
"""Type name to encoder and size; both take the plain Python value."""
