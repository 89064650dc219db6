"""Structs, controls and commands: a class declares its fields, the codec is made from them.

`None` is a field that is absent on the wire. A field of type bit has no octets: its packing flag
is its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, get_args, get_type_hints
from uuid import UUID

from msgspec import Struct

from .errors import DecodeError
from .generated import BIT, make_codec
from .values import ARRAY_OF_STR16, READERS, WRITERS, SequenceSet

__all__ = [
    "COMMANDS",
    "CONTROLS",
    "STRUCTS",
    "Array",
    "Bit",
    "ByteRanges",
    "Command",
    "Commands",
    "Composite",
    "Control",
    "DateTime",
    "Map",
    "SequenceNo",
    "Str8",
    "Str16",
    "Str16Array",
    "Struct32",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UnknownCommand",
    "UnknownStruct",
    "Uuid",
    "VBin16",
    "VBin32",
    "command",
    "control",
    "decode_command",
    "decode_control",
    "decode_struct32",
    "encode_struct32",
    "struct",
]

Bit: TypeAlias = Annotated[bool, BIT]
UInt8: TypeAlias = Annotated[int | None, "uint8"]
UInt16: TypeAlias = Annotated[int | None, "uint16"]
UInt32: TypeAlias = Annotated[int | None, "uint32"]
UInt64: TypeAlias = Annotated[int | None, "uint64"]
SequenceNo: TypeAlias = Annotated[int | None, "sequence-no"]
DateTime: TypeAlias = Annotated[int | None, "datetime"]
Str8: TypeAlias = Annotated[str | None, "str8"]
Str16: TypeAlias = Annotated[str | None, "str16"]
VBin16: TypeAlias = Annotated[bytes | None, "vbin16"]
VBin32: TypeAlias = Annotated[bytes | None, "vbin32"]
Uuid: TypeAlias = Annotated[UUID | None, "uuid"]
Commands: TypeAlias = Annotated[SequenceSet | None, "sequence-set"]
ByteRanges: TypeAlias = Annotated[tuple[tuple[int, int], ...] | None, "byte-ranges"]
Map: TypeAlias = Annotated[Mapping[Any, Any] | None, "map"]
Array: TypeAlias = Annotated[tuple[object, ...] | None, "array"]
Str16Array: TypeAlias = Annotated[tuple[str, ...] | None, ARRAY_OF_STR16]


class Composite(Struct, frozen=True, gc=False):
    """A list of fields behind packing flags.

    Attributes:
        NAME: `message.transfer`, `delivery-properties`, ...
        CODE: that of its class in the upper octet, its own in the lower one; 0: it has none.
        FIELDS: name and type of each field.
        SOURCE: the generated codec.
    """

    NAME: ClassVar[str]
    CODE: ClassVar[int]
    FIELDS: ClassVar[tuple[tuple[str, str], ...]]
    SOURCE: ClassVar[str]

    def encode_fields(self) -> bytes:
        """Packing flags and fields; made by `generated`.

        Raises:
            LocalProtocolError: a value does not fit its type.
        """
        raise NotImplementedError

    @classmethod
    def decode_fields(cls, data: bytes, at: int, stop: int, *sync: bool) -> tuple[Any, int]:
        """Reads packing flags and fields; made by `generated`.

        Raises:
            DecodeError: flags of fields that there are not, or a field that cannot be read.
        """
        raise NotImplementedError

    def present(self) -> dict[str, object]:
        """The fields that are on the wire, by name, in order."""
        found = {name: getattr(self, name) for name, _ in self.FIELDS}
        return {
            name: value for name, value in found.items() if value is not None and value is not False
        }


class UnknownStruct(Struct, frozen=True, gc=False):
    """A struct whose code is not known here.

    Attributes:
        code: of its class and its own.
        octets: packing flags and fields.
    """

    code: int
    octets: bytes


Struct32: TypeAlias = Annotated[Composite | UnknownStruct | None, "struct32"]


class Control(Composite, frozen=True, gc=False):
    """What concerns the connection or the session itself; not counted."""

    def encode(self) -> bytes:
        """Its segment's octets."""
        return self.CODE.to_bytes(2, "big") + self.encode_fields()


class Command(Composite, frozen=True, gc=False, kw_only=True):
    """What a session carries: numbered by the order of sending, completed by the receiver.

    Attributes:
        sync: its sender wants to be told at once when it is complete.
    """

    sync: bool = False

    def encode(self) -> bytes:
        """Its segment's octets: code, session header, fields."""
        return self.CODE.to_bytes(2, "big") + bytes((1, self.sync)) + self.encode_fields()


class UnknownCommand(Command, frozen=True, gc=False, kw_only=True):
    """A command whose code is not known here.

    Attributes:
        code: of its class and its own.
        octets: packing flags and fields.
    """

    NAME: ClassVar[str] = "unknown command"
    CODE: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[tuple[str, str], ...]] = ()

    code: int
    octets: bytes

    def encode(self) -> bytes:
        """Its segment's octets."""
        return self.code.to_bytes(2, "big") + bytes((1, self.sync)) + self.octets


CONTROLS: dict[int, type[Control]] = {}
COMMANDS: dict[int, type[Command]] = {}
STRUCTS: dict[int, type[Composite]] = {}
"""Structs that name themselves by a code."""

C = TypeVar("C", bound=Composite)


def _make(cls: Any, name: str, code: int) -> None:
    hints = get_type_hints(cls, include_extras=True)
    own = [field for field in cls.__struct_fields__ if field != "sync"]
    cls.NAME, cls.CODE = name, code
    cls.FIELDS = tuple((field, get_args(hints[field])[1]) for field in own)
    cls.SOURCE, decode, cls.encode_fields = make_codec(
        cls, name, cls.FIELDS, sync=issubclass(cls, Command)
    )
    cls.decode_fields = staticmethod(decode)


def control(name: str, code: int) -> Callable[[type[C]], type[C]]:
    """Makes a class a control; `code` has that of the class in its upper octet."""

    def decorate(cls: type[C]) -> type[C]:
        _make(cls, name, code)
        CONTROLS[code] = cls  # type: ignore[assignment]
        return cls

    return decorate


def command(name: str, code: int) -> Callable[[type[C]], type[C]]:
    """Makes a class a command; `code` has that of the class in its upper octet."""

    def decorate(cls: type[C]) -> type[C]:
        _make(cls, name, code)
        COMMANDS[code] = cls  # type: ignore[assignment]
        return cls

    return decorate


def struct(name: str, code: int = 0, *, size: int = 4) -> Callable[[type[C]], type[C]]:
    """Makes a class a struct.

    Args:
        name: the specification's.
        code: its class's and its own; 0: it stands only where its type is known.
        size: octets of the number of octets before it.
    """

    def decorate(cls: type[C]) -> type[C]:
        _make(cls, name, code)
        if code:
            STRUCTS[code] = cls
            return cls

        def read(data: bytes, at: int, stop: int) -> tuple[Any, int]:
            begin = at + size
            end = begin + int.from_bytes(data[at:begin], "big")
            if begin > stop or end > stop:
                raise DecodeError(f"{name} is longer than what encloses it", at)
            value, behind = cls.decode_fields(data, begin, end)
            return _whole(value, behind, end), end

        def write(value: Composite) -> bytes:
            body = value.encode_fields()
            return len(body).to_bytes(size, "big") + body

        READERS[name], WRITERS[name] = read, write
        return cls

    return decorate


def _whole(value: Composite, at: int, end: int) -> Any:
    if at != end:
        raise DecodeError(f"{value.NAME} ends at octet {at}, its size says {end}", at)
    return value


def decode_struct32(data: bytes, at: int, stop: int) -> tuple[Composite | UnknownStruct, int]:
    """Reads a struct that says what it is: size, code, fields.

    Raises:
        DecodeError: it cannot be read; one whose code is not known can.
    """
    begin = at + 4
    end = begin + int.from_bytes(data[at:begin], "big")
    if begin + 2 > end or end > stop:
        raise DecodeError(
            f"a struct of {end - begin} octets, {stop - begin} are here; legal: 2 or more", at
        )
    code = int.from_bytes(data[begin : begin + 2], "big")
    cls = STRUCTS.get(code)
    if cls is None:
        return UnknownStruct(code, data[begin + 2 : end]), end
    value, behind = cls.decode_fields(data, begin + 2, end)
    return _whole(value, behind, end), end


def encode_struct32(value: Composite | UnknownStruct) -> bytes:
    """Size, code and fields of a struct."""
    if isinstance(value, UnknownStruct):
        body = value.code.to_bytes(2, "big") + value.octets
    else:
        body = value.CODE.to_bytes(2, "big") + value.encode_fields()
    return len(body).to_bytes(4, "big") + body


READERS["struct32"], WRITERS["struct32"] = decode_struct32, encode_struct32


def _code(data: bytes, what: str) -> int:
    if len(data) < 2:
        raise DecodeError(f"a {what} of {len(data)} octets; it begins with a code of 2", 0)
    return int.from_bytes(data[:2], "big")


def decode_control(data: bytes) -> Control:
    """Reads the segment of a control.

    Raises:
        DecodeError: it cannot be read.
    """
    code = _code(data, "control")
    cls = CONTROLS.get(code)
    if cls is None:
        raise DecodeError(f"no control has the code {code:#06x}", 0)
    value, at = cls.decode_fields(data, 2, len(data))
    found: Control = _whole(value, at, len(data))
    return found


def decode_command(data: bytes) -> Command:
    """Reads the segment of a command; one whose code is not known is an `UnknownCommand`.

    Raises:
        DecodeError: it cannot be read.
    """
    code = _code(data, "command")
    if len(data) < 4 or data[2] != 1 or data[3] > 1:
        raise DecodeError(
            f"the session header of a command is {data[2:4].hex(' ')}; legal: 01 00 and 01 01", 2
        )
    cls = COMMANDS.get(code)
    if cls is None:
        return UnknownCommand(code=code, octets=data[4:], sync=data[3] == 1)
    value, at = cls.decode_fields(data, 4, len(data), data[3] == 1)
    found: Command = _whole(value, at, len(data))
    return found
