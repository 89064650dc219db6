"""Values to octets, always in the shortest encoding [1.6]; `encode_value` looks at the type."""

import struct
import uuid
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from workbench.amqp10.decoder import MAX_DEPTH, MAX_EMPTY_ELEMENTS
from workbench.amqp10.errors import ErrorCondition, LocalProtocolError
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

ValueEncoder: TypeAlias = Callable[..., bytes]

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


def encode_ulong(value: int) -> bytes:
    """Encodes as 44, 53 or 80."""
    return SMALL_ULONG[value] if 0 <= value <= 0xFF else _pack_ulong(0x80, value)


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


def _char(value: str) -> bytes:
    return _pack_uint(0x73, ord(value))


def _uuid(value: uuid.UUID) -> bytes:
    return b"\x98" + value.bytes


def _decimal(code: int) -> Callable[[Decimal32 | Decimal64 | Decimal128], bytes]:
    return lambda value: bytes((code,)) + value.octets


SCALARS: dict[str, ValueEncoder] = {
    "null": lambda value: NULL,
    "boolean": encode_boolean,
    "ubyte": _packer(">BB", 0x50),
    "ushort": _packer(">BH", 0x60),
    "uint": encode_uint,
    "ulong": encode_ulong,
    "byte": _packer(">Bb", 0x51),
    "short": _packer(">Bh", 0x61),
    "int": encode_int,
    "long": encode_long,
    "float": _packer(">Bf", 0x72),
    "double": _packer(">Bd", 0x82),
    "decimal32": _decimal(0x74),
    "decimal64": _decimal(0x84),
    "decimal128": _decimal(0x94),
    "char": _char,
    "timestamp": _packer(">Bq", 0x83),
    "uuid": _uuid,
    "binary": encode_binary,
    "string": encode_string,
    "symbol": encode_symbol,
}
"""Type name to encoder, which takes the plain Python value."""


_pack_compound32 = struct.Struct(">BII").pack
_pack_sizes32 = struct.Struct(">II").pack


def encode_compound(code8: int, code32: int, count: int, body: bytes) -> bytes:
    """A list or map from its encoded elements, 8 bits wide where that fits."""
    if count <= 0xFF and len(body) < 0xFF:
        return bytes((code8, len(body) + 1, count)) + body
    return _pack_compound32(code32, len(body) + 4, count) + body


def encode_list_body(count: int, body: bytes) -> bytes:
    """A list from its encoded elements: list0, list8 or list32."""
    return encode_compound(0xC0, 0xD0, count, body) if count else b"\x45"


def _flatten(value: MapValue) -> Iterable[object]:
    return [part for pair in value.items() for part in pair]


def _list(value: list[object], depth: int) -> bytes:
    return encode_list_body(len(value), b"".join([encode_value(v, depth + 1) for v in value]))


def _map(value: MapValue, depth: int) -> bytes:
    parts = [encode_value(part, depth + 1) for part in _flatten(value)]
    return encode_compound(0xC1, 0xD1, len(parts), b"".join(parts))


def _described(value: Described, depth: int) -> bytes:
    inner = encode_value(value.value, depth + 1)
    return b"\x00" + encode_value(value.descriptor, depth + 1) + inner


# The elements of an array share one constructor, so the encoding is chosen for all of them:
# type -> (narrow code, its octets), (wide code, its octets), test for narrow.
_INTEGERS: dict[str, tuple[int, int, str, int, int]] = {
    "uint": (0x52, 0x70, ">I", 0, 0xFF),
    "ulong": (0x53, 0x80, ">Q", 0, 0xFF),
    "int": (0x54, 0x71, ">i", -128, 127),
    "long": (0x55, 0x81, ">q", -128, 127),
}
_SIZED: dict[str, tuple[int, int]] = {
    "binary": (0xA0, 0xB0),
    "string": (0xA1, 0xB1),
    "symbol": (0xA3, 0xB3),
    "list": (0xC0, 0xD0),
    "map": (0xC1, 0xD1),
    "array": (0xE0, 0xF0),
}


def _elements(value: Array, depth: int) -> tuple[int, list[bytes]]:
    """The constructor octet of an array's elements and their octets."""
    name, items = value.type_name, value.items
    if name in _INTEGERS:
        narrow, wide, layout, low, high = _INTEGERS[name]
        if all(low <= item <= high for item in items):  # type: ignore[operator]
            return narrow, [bytes((item & 0xFF,)) for item in items]  # type: ignore[operator]
        return wide, [struct.pack(layout, item) for item in items]
    if name == "boolean":
        return 0x56, [b"\x01" if encode_boolean(item) == b"\x41" else b"\x00" for item in items]  # type: ignore[arg-type]
    if name == "null":
        return 0x40, [b""] * len(items)
    if name in _SIZED:
        return _sized_elements(name, items, depth)
    encode_scalar = SCALARS[name]
    encoded = [encode_scalar(item) for item in items]
    return _CODES[name], [octets[1:] for octets in encoded]


def _sized_elements(name: str, items: tuple[object, ...], depth: int) -> tuple[int, list[bytes]]:
    narrow, wide = _SIZED[name]
    if name in SCALARS:
        bodies = [SCALARS[name](item) for item in items]
    else:
        bodies = [encode_value(item, depth) for item in items]
    if any(octets[0] not in (narrow, wide, 0x45) for octets in bodies):
        raise TypeError
    bodies = [b"\xc0\x01\x00" if octets == b"\x45" else octets for octets in bodies]
    if all(octets[0] == narrow for octets in bodies):
        return narrow, [octets[1:] for octets in bodies]
    return wide, [octets[1:] if octets[0] == wide else _widened(octets) for octets in bodies]


def _widened(octets: bytes) -> bytes:
    """The octets behind the constructor of a narrow value, with size and count made wide."""
    if octets[0] in (0xA0, 0xA1, 0xA3):
        return octets[1].to_bytes(4, "big") + octets[2:]
    return _pack_sizes32(octets[1] - 1 + 4, octets[2]) + octets[3:]


_CODES = {
    name: SCALARS[name](example)[0]
    for name, example in (
        ("ubyte", 0),
        ("ushort", 0),
        ("byte", 0),
        ("short", 0),
        ("float", 0.0),
        ("double", 0.0),
        ("decimal32", Decimal32(bytes(4))),
        ("decimal64", Decimal64(bytes(8))),
        ("decimal128", Decimal128(bytes(16))),
        ("char", "a"),
        ("timestamp", 0),
        ("uuid", uuid.UUID(int=0)),
    )
}


def _array(value: Array, depth: int) -> bytes:
    inner = depth + len(value.descriptors)
    if value.descriptors and inner >= MAX_DEPTH:
        raise _too_deep()
    try:
        code, elements = _elements(value, inner + 1)
    except (TypeError, ValueError, AttributeError, struct.error) as error:
        raise LocalProtocolError(
            f"an array of {value.type_name} holds an element of another type or out of its range: "
            f"{value_text(value.items)}"
        ) from error
    if code == 0x40 and len(elements) > MAX_EMPTY_ELEMENTS:
        raise LocalProtocolError(
            f"an array of {len(elements)} nulls; up to {MAX_EMPTY_ELEMENTS} are legal here"
        )
    constructor = b"".join(
        [
            b"\x00" + encode_value(descriptor, depth + 1 + level)
            for level, descriptor in enumerate(value.descriptors)
        ]
    )
    body = constructor + bytes((code,)) + b"".join(elements)
    return encode_compound(0xE0, 0xF0, len(elements), body)


def _integer(value: int) -> bytes:
    """A plain int: long where it fits, else ulong."""
    return encode_long(value) if value <= 0x7FFFFFFFFFFFFFFF else encode_ulong(value)


_SIMPLE_TYPES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    UByte: "ubyte",
    UShort: "ushort",
    UInt: "uint",
    ULong: "ulong",
    Byte: "byte",
    Short: "short",
    Int: "int",
    Long: "long",
    Float32: "float",
    float: "double",
    Decimal32: "decimal32",
    Decimal64: "decimal64",
    Decimal128: "decimal128",
    Char: "char",
    Timestamp: "timestamp",
    uuid.UUID: "uuid",
    bytes: "binary",
    bytearray: "binary",
    str: "string",
    Symbol: "symbol",
    ErrorCondition: "symbol",
}

_ENCODERS: dict[type, ValueEncoder] = {t: SCALARS[name] for t, name in _SIMPLE_TYPES.items()}
_ENCODERS[int] = _integer

_NESTED: dict[type, Callable[[Any, int], bytes]] = {
    list: _list,
    tuple: _list,
    dict: _map,
    MapPairs: _map,
    Described: _described,
    Array: _array,
}


def register(cls: type, encoder: ValueEncoder) -> None:
    """Teaches `encode` one more class of values, which encodes itself (the composite types)."""
    _ENCODERS[cls] = encoder


def _not_encodable(value: object) -> LocalProtocolError:
    return LocalProtocolError(
        f"{value!r:.80} of type {type(value).__name__} has no AMQP type; legal are None, bool, "
        "int, float, str, bytes, uuid.UUID, list, dict and the types of workbench.amqp10.values"
    )


def _too_deep() -> LocalProtocolError:
    return LocalProtocolError(f"values are nested deeper than {MAX_DEPTH}")


def encode_value(value: object, depth: int = 0) -> bytes:
    """Encodes a value, constructor included, that `depth` others enclose.

    Raises:
        LocalProtocolError: it has no AMQP type, is out of range, or is nested too deep.
    """
    cls = type(value)
    scalar = _ENCODERS.get(cls)
    if scalar is not None:
        try:
            return scalar(value)
        except (struct.error, UnicodeError) as error:
            raise LocalProtocolError(
                f"{value_text(value)} does not fit its AMQP type: {error}"
            ) from error
    nested = _NESTED.get(cls)
    if nested is None:
        base = _base_of(value)
        return encode_value(base, depth)
    if depth >= MAX_DEPTH:
        raise _too_deep()
    return nested(value, depth)


def _base_of(value: object) -> object:
    """The value as its AMQP base type: for an `IntEnum`, a `StrEnum` and the like."""
    for base in type(value).__mro__[1:]:
        if base in _SIMPLE_TYPES or base in (int, list, dict):
            return base(value)
    raise _not_encodable(value)


def encode(value: object) -> bytes:
    """Encodes one AMQP value in its shortest form.

    Args:
        value: `None`, `bool`, `int` (long, or ulong above 2^63 - 1), `float` (double), `str`
            (string), `bytes` (binary), `uuid.UUID`, `list` or `tuple` (list), `dict` (map), a
            type of `workbench.amqp10.values`, or a composite such as `Accepted()`.

    Returns:
        Constructor and octets.

    Raises:
        LocalProtocolError: it has no AMQP type, is out of range, or is nested too deep.
    """
    return encode_value(value)
