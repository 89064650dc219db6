"""Composite types: described lists of named fields, as frozen values [1.4].

A composite type is one dataclass whose fields carry the grammar's declaration. `composite` reads
it once and makes `FIELDS`, from which encoding, decoding, the checks for mandatory fields, the
field spans and the documentation all come.

`None` is a field that is absent on the wire; its default is never filled in, `get` gives it.
"""

from collections.abc import Callable
from dataclasses import fields, make_dataclass
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar

from workbench.amqp.constructor import describe_code
from workbench.amqp.decoder import check_count, check_end, read_compound_header
from workbench.amqp.encoder import encode_list_body, register, size_list_body
from workbench.amqp.errors import DecodeError, LocalProtocolError
from workbench.amqp.fields import (
    ENCODE_FAULTS,
    CompositeReader,
    FieldSpec,
    cannot_encode,
    field_codec,
)
from workbench.amqp.scalar_decoder import cut_short
from workbench.amqp.scalar_encoder import NULL
from workbench.amqp.values import Symbol


class Composite:
    """Base of the composite types.

    Attributes:
        NAME: the type's name, for example `flow`.
        DESCRIPTOR: the descriptor's code in domain 0, for example 0x13.
        SYMBOL: the descriptor as a symbol, for example `amqp:flow:list`.
        PROVIDES: what the type may stand for, for example `delivery-state`.
        FIELDS: the fields, in the order of the wire.
    """

    __slots__ = ()

    NAME: ClassVar[str] = ""
    DESCRIPTOR: ClassVar[int] = 0
    SYMBOL: ClassVar[Symbol] = Symbol("")
    PROVIDES: ClassVar[tuple[str, ...]] = ()
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = ()

    _prefix: ClassVar[bytes]
    _values: ClassVar[Callable[[Any], tuple[object, ...]]]
    _encoders: ClassVar[tuple[Callable[[Any], bytes], ...]]
    _sizes: ClassVar[tuple[Callable[[Any], int], ...]]
    _decoders: ClassVar[tuple[CompositeReader, ...]]
    _mandatory: ClassVar[tuple[int, ...]]
    _draft: ClassVar[type]

    def __post_init__(self) -> None:
        values = type(self)._values(self)
        for index in self._mandatory:
            if values[index] is None:
                spec = self.FIELDS[index]
                raise LocalProtocolError(
                    f"{self.NAME}.{spec.spec_name} is mandatory: give it a {spec.type}"
                )

    def get(self, name: str) -> Any:
        """A field's value, or the specification's default where it is absent.

        Raises:
            KeyError: there is no field of this name.
        """
        for spec in self.FIELDS:
            if spec.name == name:
                value = getattr(self, name)
                return spec.default if value is None else value
        raise KeyError(name)

    def present(self) -> dict[str, object]:
        """The fields that are on the wire, by name, in order."""
        values = type(self)._values(self)
        return {
            spec.name: value
            for spec, value in zip(self.FIELDS, values, strict=True)
            if value is not None
        }

    def encode(self) -> bytes:
        """Descriptor and list, trailing absent fields left out.

        Raises:
            LocalProtocolError: a field's value does not fit its type.
        """
        values = type(self)._values(self)
        try:
            parts = [
                NULL if value is None else encode(value)
                for value, encode in zip(values, self._encoders, strict=True)
            ]
        except (LocalProtocolError, *ENCODE_FAULTS):
            raise self._misfit(values) from None
        while parts and parts[-1] is NULL:
            del parts[-1]
        return self._prefix + encode_list_body(len(parts), b"".join(parts))

    def size(self) -> int:
        """The number of octets of `encode`, without building them.

        Raises:
            LocalProtocolError: a field's value does not fit its type.
        """
        total = last = count = 0
        values = type(self)._values(self)
        try:
            for index, value in enumerate(values, 1):
                if value is None:
                    total += 1
                else:
                    total += self._sizes[index - 1](value)
                    last, count = total, index
        except (LocalProtocolError, *ENCODE_FAULTS):
            raise self._misfit(values) from None
        return 3 + size_list_body(count, last)

    def _misfit(self, values: tuple[object, ...]) -> LocalProtocolError:
        for spec, value, encode in zip(self.FIELDS, values, self._encoders, strict=True):
            try:
                if value is not None:
                    encode(value)
            except LocalProtocolError as error:
                label = f"{self.NAME}.{spec.spec_name}"
                if error.message.startswith(label):
                    return error
                return LocalProtocolError(f"{label}: {error.message}")
            except ENCODE_FAULTS:
                return cannot_encode(self.NAME, spec, value)
        return LocalProtocolError(f"{self.NAME} cannot be encoded")

    @classmethod
    def from_wire(cls, values: tuple[object, ...] | list[object]) -> Self:
        """Makes a value from all its fields in order, unchecked: for decoders (see `draft_of`)."""
        draft = cls._draft(*values)
        draft.__class__ = cls
        return draft  # type: ignore[no-any-return]

    @classmethod
    def decode_list(cls, data: bytes, start: int, end: int) -> tuple[Self, int]:
        """Reads the list behind the descriptor.

        Args:
            data: the octets.
            start: offset of the list's constructor.
            end: where the enclosing value ends.

        Returns:
            The value and the offset behind it.

        Raises:
            DecodeError: no list, more fields than the type has, a field of another type, or a
                mandatory one absent.
        """
        if start >= end:
            raise cut_short(f"the list of {cls.NAME}", 1, 0, start)
        code = data[start]
        if code == 0xC0 or code == 0xD0:
            width = 1 if code == 0xC0 else 4
            count, at, stop = read_compound_header(data, start + 1, end, width, cls.NAME)
            check_count(cls.NAME, count, at, stop, start)
        elif code == 0x45:
            count, at, stop = 0, start + 1, start + 1
        else:
            raise DecodeError(
                f"{cls.NAME} must be a list (0xc0, 0xd0 or 0x45); found {describe_code(code)}",
                start,
            )
        decoders = cls._decoders
        if count > len(decoders):
            raise DecodeError(
                f"{cls.NAME} has {len(decoders)} fields, the list holds {count}", start
            )
        values: list[object] = []
        for decode in decoders[:count]:
            if at >= stop:
                raise cut_short(f"{cls.NAME}.{cls.FIELDS[len(values)].spec_name}", 1, 0, at)
            if data[at] == 0x40:
                values.append(None)
                at += 1
            else:
                value, at = decode(data, at, stop)
                values.append(value)
        check_end(cls.NAME, at, stop)
        values.extend([None] * (len(decoders) - count))
        for index in cls._mandatory:
            if values[index] is None:
                raise DecodeError(
                    f"{cls.NAME}.{cls.FIELDS[index].spec_name} is mandatory and is absent", start
                )
        return cls.from_wire(values), stop


BY_DESCRIPTOR: dict[object, type[Composite]] = {}
"""All composite types, by code and by symbol."""

_READERS: dict[object, CompositeReader] = {}
_PROVIDED: dict[str, dict[object, CompositeReader]] = {}


def provided(archetype: str) -> dict[object, CompositeReader]:
    """Readers of the types that provide `archetype`, by code and by symbol; grows as they come."""
    return _PROVIDED.setdefault(archetype, {})


C = TypeVar("C", bound=Composite)


def composite(
    name: str, code: int, *, provides: tuple[str, ...] = ()
) -> Callable[[type[C]], type[C]]:
    """Makes a dataclass a composite type.

    Args:
        name: the type's name in the grammar.
        code: its descriptor's code.
        provides: the archetypes for which it may stand.

    Returns:
        A decorator, to be put above `@dataclass(frozen=True, slots=True, kw_only=True)`.
    """

    def decorate(cls: type[C]) -> type[C]:
        specs = tuple(FieldSpec(name=f.name, **f.metadata) for f in fields(cls))  # type: ignore[arg-type]
        names = [spec.name for spec in specs]
        codecs = [field_codec(name, spec, provided, _READERS) for spec in specs]
        cls.NAME, cls.DESCRIPTOR, cls.PROVIDES, cls.FIELDS = name, code, provides, specs
        cls.SYMBOL = Symbol(f"amqp:{name}:list")
        cls._prefix = bytes((0x00, 0x53, code))
        cls._values = staticmethod(_values_of(names))
        cls._decoders = tuple(codec.decode for codec in codecs)
        cls._encoders = tuple(codec.encode for codec in codecs)
        cls._sizes = tuple(codec.size for codec in codecs)
        cls._mandatory = tuple(index for index, spec in enumerate(specs) if spec.mandatory)
        cls._draft = draft_of(cls)
        register(cls, cls.encode, cls.size)
        for descriptor in (code, cls.SYMBOL):
            BY_DESCRIPTOR[descriptor] = cls
            _READERS[descriptor] = cls.decode_list
            for archetype in (*provides, name):
                provided(archetype)[descriptor] = cls.decode_list
        return cls

    return decorate


def draft_of(cls: type) -> type[Any]:
    """A class with the slots of a frozen dataclass, but quick to fill.

    The `__init__` of a frozen dataclass takes five times as long as a plain one. A decoder fills
    a draft instead and then sets its `__class__` to `cls`: Python allows that because the layout
    of both is the same, and the result cannot be told from one made by `cls` itself.

    Args:
        cls: a frozen, slotted dataclass.

    Returns:
        A class that takes the fields by position and checks nothing.
    """
    names = [f.name for f in fields(cls)]
    draft = make_dataclass(f"_{cls.__name__}Draft", names, bases=cls.__bases__, slots=True)
    draft.__post_init__ = _unchecked  # type: ignore[attr-defined]
    return draft


def _unchecked(draft: object) -> None:
    """A draft's `__post_init__`: the decoder has checked already."""


def _values_of(names: list[str]) -> Callable[[Any], tuple[object, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    if names:
        only = attrgetter(names[0])
        return lambda value: (only(value),)
    return lambda value: ()
