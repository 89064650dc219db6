"""Python values for the AMQP types that Python has no type of its own for.

| AMQP | Python |
|---|---|
| null, boolean, string, binary | `None`, `bool`, `str`, `bytes` |
| double, list, map | `float`, `list`, `dict` |
| uuid | `uuid.UUID` |
| integers | `UByte UShort UInt ULong Byte Short Int Long`, kinds of `int` |
| float | `Float32`, a kind of `float` already rounded to 32 bits |
| decimals | `Decimal32 Decimal64 Decimal128`, their octets unread |
| char, symbol | `Char`, `Symbol`, kinds of `str` |
| timestamp | `Timestamp`, a kind of `int`: milliseconds since 1970-01-01 UTC |
| array | `Array` |
| described | `Described` |
| a map whose keys a `dict` cannot hold apart | `MapPairs` |

An `int` in a list or map is sent as long, or as ulong where it is above 2^63 - 1. Wrapped
values compare equal to plain ones: `UInt(5) == 5`.
"""

import struct
from dataclasses import dataclass
from typing import ClassVar, Self, TypeAlias

from workbench.amqp10.constructor import TYPE_NAMES
from workbench.amqp10.errors import LocalProtocolError


class _Integer(int):
    """An `int` that remembers its AMQP type and keeps to that type's range."""

    __slots__ = ()
    MINIMUM: ClassVar[int]
    MAXIMUM: ClassVar[int]

    def __new__(cls, value: int = 0) -> Self:
        if not cls.MINIMUM <= value <= cls.MAXIMUM:
            raise LocalProtocolError(
                f"{cls.__name__.lower()} {value} is out of range: legal is "
                f"{cls.MINIMUM} to {cls.MAXIMUM}"
            )
        return int.__new__(cls, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int.__repr__(self)})"

    __str__ = int.__repr__


class UByte(_Integer):
    """ubyte: 0 to 255."""

    __slots__ = ()
    MINIMUM, MAXIMUM = 0, 0xFF


class UShort(_Integer):
    """ushort: 0 to 65535."""

    __slots__ = ()
    MINIMUM, MAXIMUM = 0, 0xFFFF


class UInt(_Integer):
    """uint: 0 to 4294967295."""

    __slots__ = ()
    MINIMUM, MAXIMUM = 0, 0xFFFFFFFF


class ULong(_Integer):
    """ulong: 0 to 2^64 - 1."""

    __slots__ = ()
    MINIMUM, MAXIMUM = 0, 0xFFFFFFFFFFFFFFFF


class Byte(_Integer):
    """byte: -128 to 127."""

    __slots__ = ()
    MINIMUM, MAXIMUM = -0x80, 0x7F


class Short(_Integer):
    """short: -32768 to 32767."""

    __slots__ = ()
    MINIMUM, MAXIMUM = -0x8000, 0x7FFF


class Int(_Integer):
    """int: -2^31 to 2^31 - 1."""

    __slots__ = ()
    MINIMUM, MAXIMUM = -0x80000000, 0x7FFFFFFF


class Long(_Integer):
    """long: -2^63 to 2^63 - 1."""

    __slots__ = ()
    MINIMUM, MAXIMUM = -0x8000000000000000, 0x7FFFFFFFFFFFFFFF


class Timestamp(_Integer):
    """timestamp: milliseconds since 1970-01-01 UTC, negative before it."""

    __slots__ = ()
    MINIMUM, MAXIMUM = -0x8000000000000000, 0x7FFFFFFFFFFFFFFF


class Float32(float):
    """float: a number that 32 bits of IEEE 754 can hold; the argument is rounded to one."""

    __slots__ = ()

    def __new__(cls, value: float = 0.0) -> Self:  # noqa: D102
        try:
            rounded = struct.unpack(">f", struct.pack(">f", value))[0]
        except OverflowError:
            raise LocalProtocolError(
                f"float {value!r} is out of range: 32 bits hold up to about 3.4e38; send a double"
            ) from None
        return float.__new__(cls, rounded)

    def __repr__(self) -> str:
        return f"Float32({float.__repr__(self)})"


class Symbol(str):
    """symbol: ASCII text from a constrained set, such as a capability or an error condition."""

    __slots__ = ()

    def __new__(cls, text: str = "") -> Self:  # noqa: D102
        if not text.isascii():
            raise LocalProtocolError(f"symbol {text!r} is not ASCII; legal is ASCII only [1.6.21]")
        return str.__new__(cls, text)

    def __repr__(self) -> str:
        return f"Symbol({str.__repr__(self)})"


class Char(str):
    """char: one Unicode character."""

    __slots__ = ()

    def __new__(cls, text: str = "\0") -> Self:  # noqa: D102
        if len(text) != 1 or 0xD800 <= ord(text) <= 0xDFFF:
            raise LocalProtocolError(f"char must be exactly one Unicode character, not {text!r}")
        return str.__new__(cls, text)

    def __repr__(self) -> str:
        return f"Char({str.__repr__(self)})"


@dataclass(frozen=True, slots=True)
class _Decimal:
    octets: bytes
    WIDTH: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if len(self.octets) != self.WIDTH:
            raise LocalProtocolError(
                f"{type(self).__name__.lower()} takes {self.WIDTH} octets, not {len(self.octets)}"
            )


@dataclass(frozen=True, slots=True)
class Decimal32(_Decimal):
    """decimal32: the 4 octets of an IEEE 754-2008 decimal, carried unread."""

    WIDTH: ClassVar[int] = 4


@dataclass(frozen=True, slots=True)
class Decimal64(_Decimal):
    """decimal64: the 8 octets of an IEEE 754-2008 decimal, carried unread."""

    WIDTH: ClassVar[int] = 8


@dataclass(frozen=True, slots=True)
class Decimal128(_Decimal):
    """decimal128: the 16 octets of an IEEE 754-2008 decimal, carried unread."""

    WIDTH: ClassVar[int] = 16


@dataclass(frozen=True, slots=True)
class Described:
    """A value with a descriptor, of a type that this package has no class for [1.1.2].

    Attributes:
        descriptor: usually a `ULong` or a `Symbol`.
        value: the described value.
    """

    descriptor: object
    value: object


@dataclass(frozen=True, slots=True)
class Array:
    """Values of one type that share one constructor [1.6.24].

    Attributes:
        type_name: the primitive type of the elements, for example `symbol`.
        items: the elements, as `decode` gives values of that type.
        descriptors: of the elements where they are described; the outermost first.
    """

    type_name: str
    items: tuple[object, ...] = ()
    descriptors: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        if self.type_name not in TYPE_NAMES:
            raise LocalProtocolError(
                f"an array cannot have elements of type {self.type_name!r}; legal are "
                + ", ".join(TYPE_NAMES)
            )


@dataclass(frozen=True, slots=True)
class MapPairs:
    """A map as a list of pairs, for the rare map that a `dict` cannot hold.

    AMQP tells `uint 1` from `long 1`, `true` and `double 1.0`, and lets a list be a key; a `dict`
    does not. `decode` gives `MapPairs` for such a map and a `dict` for all others.

    Attributes:
        pairs: key and value, in the order of the wire.
    """

    pairs: tuple[tuple[object, object], ...] = ()

    def items(self) -> tuple[tuple[object, object], ...]:
        """Its pairs, as a `dict` gives them."""
        return self.pairs


MapValue: TypeAlias = dict[object, object] | MapPairs
"""A map, whichever way Python can hold it."""
