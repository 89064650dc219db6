"""Composite types: described lists of named fields, as frozen values [1.4].

A composite type is one class whose fields carry the grammar's declaration. `composite` reads it
once and makes `FIELDS`, from which encoding, decoding, the checks for mandatory fields, the field
spans and the documentation all come.

`None` is a field that is absent on the wire; its default is never filled in, `get` gives it.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self, TypeVar

from msgspec import Struct, StructMeta, field

from workbench.amqp10.constructor import describe_code
from workbench.amqp10.decoder import check_count, check_end, cut_short, read_compound_header
from workbench.amqp10.encoder import register
from workbench.amqp10.errors import DecodeError, LocalProtocolError
from workbench.amqp10.fields import (
    ENCODE_FAULTS,
    CompositeReader,
    FieldSpec,
    FieldTerms,
    cannot_encode,
    field_codec,
)
from workbench.amqp10.generated import make_codec
from workbench.amqp10.values import Symbol


class _Missing:
    """The default of a mandatory field: asked for only if no value is given, which is an error."""

    def __init__(self, spec: FieldSpec) -> None:
        self.owner = ""
        self._spec = spec

    def __call__(self) -> NoReturn:
        raise _mandatory(self.owner, self._spec)


def _mandatory(owner: str, spec: FieldSpec) -> LocalProtocolError:
    return LocalProtocolError(
        f"{owner}.{spec.spec_name} is mandatory: give it a {spec.requires or spec.type}"
    )


class _CompositeMeta(StructMeta):
    """Makes fields of what `required` and `optional` say in the body of a class."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "_CompositeMeta":
        specs = [
            FieldSpec(name=key, **terms._asdict())
            for key, terms in namespace.items()
            if isinstance(terms, FieldTerms)
        ]
        missing = {spec.name: _Missing(spec) for spec in specs if spec.mandatory}
        namespace |= dict.fromkeys((spec.name for spec in specs), None)
        namespace |= {key: field(default_factory=one) for key, one in missing.items()}
        namespace |= {"FIELDS": tuple(specs), "_missing": tuple(missing.values())}
        return super().__new__(cls, name, bases, namespace, **options)


class Composite(Struct, metaclass=_CompositeMeta, frozen=True, gc=False):
    """Base of the composite types.

    Attributes:
        NAME: the type's name, for example `flow`.
        DESCRIPTOR: the descriptor's code in domain 0, for example 0x13.
        SYMBOL: the descriptor as a symbol, for example `amqp:flow:list`.
        PROVIDES: what the type may stand for, for example `delivery-state`.
        FIELDS: the fields, in the order of the wire.
        SOURCE: the code of `encode` and `decode_list`, which `generated` has written.
    """

    NAME: ClassVar[str] = ""
    DESCRIPTOR: ClassVar[int] = 0
    SYMBOL: ClassVar[Symbol] = Symbol("")
    PROVIDES: ClassVar[tuple[str, ...]] = ()
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = ()
    SOURCE: ClassVar[str] = ""

    _decoders: ClassVar[tuple[CompositeReader, ...]]
    _encoders: ClassVar[tuple[Callable[[Any], bytes], ...]]
    _missing: ClassVar[tuple[_Missing, ...]]

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
        found = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in found.items() if value is not None}

    def encode(self) -> bytes:
        """Descriptor and list, trailing absent fields left out; made by `generated`.

        Raises:
            LocalProtocolError: a field's value does not fit its type, or a mandatory one is None.
        """
        raise NotImplementedError

    def size(self) -> int:
        """The number of octets of `encode`."""
        return len(self.encode())

    def _misfit(self) -> LocalProtocolError:
        for spec, encode in zip(self.FIELDS, self._encoders, strict=True):
            value = getattr(self, spec.name)
            try:
                if value is not None:
                    encode(value)
                elif spec.mandatory:
                    return _mandatory(self.NAME, spec)
            except LocalProtocolError as error:
                label = f"{self.NAME}.{spec.spec_name}"
                if error.message.startswith(label):
                    return error
                return LocalProtocolError(f"{label}: {error.message}")
            except ENCODE_FAULTS:
                return cannot_encode(self.NAME, spec, value)
        return LocalProtocolError(f"{self.NAME} cannot be encoded")

    @classmethod
    def decode_list(cls, data: bytes, start: int, end: int) -> tuple[Self, int]:
        """Reads the list behind the descriptor; made by `generated`.

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
        raise NotImplementedError


def read_list(cls: type[Composite], data: bytes, start: int, end: int) -> tuple[Composite, int]:
    """Reads a list field by field: a wide one, or a faulty one, to say what is wrong with it."""
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
        raise DecodeError(f"{cls.NAME} has {len(decoders)} fields, the list holds {count}", start)
    values: dict[str, object] = {}
    for spec, decode in zip(cls.FIELDS, decoders[:count], strict=False):
        if at >= stop:
            raise cut_short(f"{cls.NAME}.{spec.spec_name}", 1, 0, at)
        if data[at] == 0x40:
            at += 1
        else:
            values[spec.name], at = decode(data, at, stop)
    check_end(cls.NAME, at, stop)
    for spec in cls.FIELDS:
        if spec.mandatory and spec.name not in values:
            raise DecodeError(f"{cls.NAME}.{spec.spec_name} is mandatory and is absent", start)
    return cls(**values), stop


BY_DESCRIPTOR: dict[object, type[Composite]] = {}
"""All composite types, by code and by symbol."""

_EMPTY: dict[bytes, Composite] = {}
"""Octets of outcomes without any field, and the value that stands for all such."""

_STATES: set[type] = set()
"""The delivery states."""

_PROVIDED: dict[str, dict[object, CompositeReader]] = {}


def provided(archetype: str) -> dict[object, CompositeReader]:
    """Readers of the types that provide `archetype`, by code and by symbol; grows as they come."""
    return _PROVIDED.setdefault(archetype, {})


C = TypeVar("C", bound=Composite)


def composite(
    name: str, code: int, *, provides: tuple[str, ...] = ()
) -> Callable[[type[C]], type[C]]:
    """Makes a class a composite type.

    Args:
        name: the type's name in the grammar.
        code: its descriptor's code.
        provides: the archetypes for which it may stand.

    Returns:
        A decorator, to be put above the class.
    """

    def decorate(cls: type[C]) -> type[C]:
        codecs = [field_codec(name, spec, provided, BY_DESCRIPTOR) for spec in cls.FIELDS]
        cls.NAME, cls.DESCRIPTOR, cls.PROVIDES = name, code, provides
        cls.SYMBOL = Symbol(f"amqp:{name}:list")
        cls._decoders = tuple(codec.decode for codec in codecs)
        cls._encoders = tuple(codec.encode for codec in codecs)
        for missing in cls._missing:
            missing.owner = name
        cls.SOURCE, decode_list, encode = make_codec(cls, codecs, read_list, _EMPTY, _STATES)
        cls.decode_list = staticmethod(decode_list)  # type: ignore[method-assign]
        cls.encode = encode  # type: ignore[method-assign]
        register(cls, cls.encode)
        if "delivery-state" in provides:
            _STATES.add(cls)
            if not cls._missing:
                _EMPTY[bytes((0x00, 0x53, code, 0x45))] = cls()
        for descriptor in (code, cls.SYMBOL):
            BY_DESCRIPTOR[descriptor] = cls
            for archetype in (*provides, name):
                provided(archetype)[descriptor] = cls.decode_list
        return cls

    return decorate
