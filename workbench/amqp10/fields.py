"""One field of a composite type: how it is declared, read and written.

A `FieldSpec` says what the specification's grammar says of a field. `field_codec` turns it into
two functions, once, when the class that holds the field is made.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias, TypeVar

from workbench.amqp10.constructor import DESCRIBED, codes_of, describe_code, describe_type
from workbench.amqp10.decoder import PLAIN_READERS, Reader, decode_value, map_reader
from workbench.amqp10.encoder import SCALARS, encode_value
from workbench.amqp10.errors import DecodeError, LocalProtocolError
from workbench.amqp10.restricted import CHOICES, primitive_of
from workbench.amqp10.value_text import descriptor_text, value_text
from workbench.amqp10.values import Array, MapPairs, MapValue, Symbol, ULong

MAX_DELIVERY_TAG = 32
"""A delivery-tag has at most so many octets [2.8.7]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """What the grammar says of a field.

    Attributes:
        name: the field's name in snake_case, as the Python attribute.
        type: the grammar's type, for example `transfer-number`; `*` for any that `requires` names.
        mandatory: it may not be absent.
        default: what its absence means; `None` where absence has a meaning of its own.
        multiple: it holds several values; a tuple in Python.
        requires: what a type must provide to stand here, where `type` is `*`.
    """

    name: str
    type: str
    mandatory: bool = False
    default: object = None
    multiple: bool = False
    requires: str = ""

    @property
    def spec_name(self) -> str:
        """The name as the specification writes it: `link-credit`."""
        return self.name.replace("_", "-")


class FieldTerms(NamedTuple):
    """What a class body says of a field: all of `FieldSpec` but the name."""

    type: str
    mandatory: bool = False
    default: object = None
    multiple: bool = False
    requires: str = ""


def required(type_: str, *, multiple: bool = False) -> Any:
    """Declares a mandatory field of a composite type."""
    return FieldTerms(type_, mandatory=True, multiple=multiple)


def optional(
    type_: str, *, default: object = None, multiple: bool = False, requires: str = ""
) -> Any:
    """Declares a field that may be absent (`None`); `default` is what absence then means."""
    return FieldTerms(type_, default=default, multiple=multiple, requires=requires)


class FieldCodec(NamedTuple):
    """The two functions of a field; `None` (absent) never reaches them."""

    decode: Reader
    encode: Callable[[Any], bytes]


CompositeReader: TypeAlias = Callable[[bytes, int, int], tuple[object, int]]
Providers: TypeAlias = Mapping[object, CompositeReader]
"""Descriptor (`int` or `Symbol`) to the reader of the described list's fields."""

T = TypeVar("T")


def _wrong(label: str, want: str, code: int, offset: int) -> DecodeError:
    return DecodeError(f"{label} must be {want}; found {describe_code(code)}", offset)


def _scalar(label: str, type_name: str) -> FieldCodec:
    primitive = primitive_of(type_name)
    readers = {code: PLAIN_READERS[code] for code in codes_of(primitive)}
    want = describe_type(primitive)

    def decode(data: bytes, start: int, end: int) -> tuple[object, int]:
        reader = readers.get(data[start])
        if reader is None:
            raise _wrong(label, want, data[start], start)
        return reader(data, start + 1, end)

    return FieldCodec(decode, SCALARS[primitive])


def _word(member: Enum) -> str:
    """The specification's word for a value of a restricted type."""
    return member.name.lower().replace("_", "-")


def _choice(label: str, type_name: str) -> FieldCodec:
    plain = _scalar(label, type_name)
    choices: Callable[[Any], Any] = CHOICES[type_name]
    members = {member.value: member for member in CHOICES[type_name]}
    legal = ", ".join(f"{v} {_word(m)}" for v, m in members.items())

    def decode(data: bytes, start: int, end: int) -> tuple[object, int]:
        value, stop = plain.decode(data, start, end)
        member = members.get(value)
        if member is None:
            raise DecodeError(f"{label} is {value}; legal are {legal}", start)
        return member, stop

    def encode(value: object) -> bytes:
        return plain.encode(choices(value).value)

    return FieldCodec(decode, encode)


def _delivery_tag(label: str) -> FieldCodec:
    plain = _scalar(label, "delivery-tag")

    def decode(data: bytes, start: int, end: int) -> tuple[object, int]:
        value, stop = plain.decode(data, start, end)
        if len(value) > MAX_DELIVERY_TAG:  # type: ignore[arg-type]
            raise DecodeError(_tag_too_long(label, value), start)
        return value, stop

    def encode(value: bytes) -> bytes:
        if len(value) > MAX_DELIVERY_TAG:
            raise LocalProtocolError(_tag_too_long(label, value))
        return plain.encode(value)

    return FieldCodec(decode, encode)


def _tag_too_long(label: str, value: object) -> str:
    return f"{label} has {len(value)} octets; legal is up to {MAX_DELIVERY_TAG} [2.8.7]"  # type: ignore[arg-type]


def _message_id(label: str) -> FieldCodec:
    kinds = ("ulong", "uuid", "binary", "string")
    legal = frozenset(code for kind in kinds for code in codes_of(kind))

    def decode(data: bytes, start: int, end: int) -> tuple[object, int]:
        if data[start] not in legal:
            raise _wrong(label, "ulong, uuid, binary or string", data[start], start)
        return decode_value(data, start, end)

    def as_sent(value: object) -> object:
        return ULong(value) if type(value) is int else value

    def encode(value: object) -> bytes:
        octets = encode_value(as_sent(value))
        if octets[0] not in legal:
            raise TypeError
        return octets

    return FieldCodec(decode, encode)


def with_symbol_keys(value: MapValue) -> object:
    """Plain text as a key of a `fields` map becomes a symbol, which the type demands [2.8.13]."""
    if isinstance(value, MapPairs):
        return value
    return {Symbol(key) if type(key) is str else key: item for key, item in value.items()}


def _map(label: str, type_name: str, values: Providers) -> FieldCodec:
    """A map; its values may be composites that `values` reads."""
    legal = codes_of("map")
    want = describe_type("map")
    symbol_keys = type_name != "map"

    def read_value(data: bytes, start: int, end: int, depth: int) -> tuple[object, int]:
        if values and start < end and data[start] == DESCRIBED:
            descriptor, at = decode_value(data, start + 1, end, depth)
            reader = _entry(values, descriptor)
            if reader is not None:
                return reader(data, at, end)
        return decode_value(data, start, end, depth)

    readers = {code: map_reader(code, read_value) for code in legal}

    def decode(data: bytes, start: int, end: int) -> tuple[object, int]:
        reader = readers.get(data[start])
        if reader is None:
            raise _wrong(label, want, data[start], start)
        return reader(data, start + 1, end, 1)

    def as_sent(value: object) -> object:
        if not isinstance(value, dict | MapPairs):
            raise TypeError
        return with_symbol_keys(value) if symbol_keys else value

    return FieldCodec(decode, lambda value: encode_value(as_sent(value)))


def _entry(table: Mapping[object, T], descriptor: object) -> T | None:
    """What a table has for a descriptor, which may be anything that was on the wire."""
    if isinstance(descriptor, ULong | Symbol):
        return table.get(descriptor)
    return None


def _composite(
    label: str, wanted: str, providers: Providers, known: Mapping[object, object]
) -> FieldCodec:
    """A described list of one of several types; others than `known` are kept as `Described`."""
    article = "an" if wanted[0] in "aeiou" else "a"

    def decode(data: bytes, start: int, end: int) -> tuple[object, int]:
        if data[start] != DESCRIBED:
            raise _wrong(label, f"a described {wanted} (0x00)", data[start], start)
        descriptor, at = decode_value(data, start + 1, end, 1)
        reader = _entry(providers, descriptor)
        if reader is not None:
            return reader(data, at, end)
        if wanted == "error" or _entry(known, descriptor) is not None:
            raise DecodeError(
                f"{label} must be {article} {wanted}; found descriptor "
                f"{descriptor_text(descriptor)}",
                start,
            )
        return decode_value(data, start, end)

    def encode(value: object) -> bytes:
        octets = encode_value(value)
        if octets[0] != DESCRIBED:
            raise TypeError
        return octets

    return FieldCodec(decode, encode)


def _multiple(label: str, type_name: str, one: FieldCodec) -> FieldCodec:
    """Null, one value or an array of them [1.4]; a tuple in Python."""
    primitive = primitive_of(type_name)
    arrays = codes_of("array")

    def decode(data: bytes, start: int, end: int) -> tuple[object, int]:
        if data[start] not in arrays:
            value, stop = one.decode(data, start, end)
            return (value,), stop
        array, stop = decode_value(data, start, end)
        assert isinstance(array, Array)
        if array.type_name != primitive or array.descriptors:
            kind = "described " * bool(array.descriptors) + array.type_name
            raise DecodeError(
                f"{label} must be {describe_type(primitive)} or an array of it; "
                f"found an array of {kind}",
                start,
            )
        return array.items, stop

    def as_array(value: object) -> object:
        items = (value,) if isinstance(value, str | bytes) else tuple(value)  # type: ignore[arg-type]
        return items[0] if len(items) == 1 else Array(primitive, items)

    def encode(value: object) -> bytes:
        sent = as_array(value)
        return encode_value(sent) if isinstance(sent, Array) else one.encode(sent)

    return FieldCodec(decode, encode)


def field_codec(
    owner: str,
    spec: FieldSpec,
    provided: Callable[[str], Providers],
    known: Mapping[object, object],
) -> FieldCodec:
    """Makes the functions of a field.

    Args:
        owner: the type that has the field, for error texts.
        spec: the field.
        provided: gives the readers of the types that provide an archetype such as `source`.
        known: all composite types, by descriptor.

    Returns:
        Its decoder and encoder.
    """
    label = f"{owner}.{spec.spec_name}"
    if spec.type == "*":
        if spec.requires == "message-id":
            return _message_id(label)
        if spec.requires == "address":
            return _scalar(label, "string")
        return _composite(label, spec.requires, provided(spec.requires), known)
    if spec.type == "error":
        return _composite(label, "error", provided("error"), known)
    if primitive_of(spec.type) == "map":
        archetype = {"unsettled": "delivery-state", "dynamic_node_properties": "lifetime-policy"}
        values = provided(archetype[spec.name]) if spec.name in archetype else {}
        return _map(label, spec.type, values)
    if spec.type == "delivery-tag":
        return _delivery_tag(label)
    one = _choice(label, spec.type) if spec.type in CHOICES else _scalar(label, spec.type)
    return _multiple(label, spec.type, one) if spec.multiple else one


ENCODE_FAULTS = (struct.error, TypeError, ValueError, AttributeError, IndexError, KeyError)
"""What an encoder of a field may raise for a value of another type or out of range."""


def cannot_encode(owner: str, spec: FieldSpec, value: object) -> LocalProtocolError:
    """The error for a field whose value does not fit its type."""
    want = spec.requires or spec.type
    if spec.type in CHOICES:
        want += " (" + ", ".join(map(_word, CHOICES[spec.type])) + ")"
    elif primitive_of(spec.type) != spec.type:
        want += f" ({primitive_of(spec.type)})"
    plural = "a tuple of " if spec.multiple else ""
    return LocalProtocolError(
        f"{owner}.{spec.spec_name} = {value_text(value)} does not fit; legal is {plural}{want}"
    )
