"""Messages: the sections of a transfer's payload, in order [3.2].

header, delivery-annotations, message-annotations, properties, application-properties, a body
(one or more data, or one or more amqp-sequence, or one amqp-value), footer.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import ClassVar, TypeAlias
from uuid import UUID

from msgspec import Struct

from workbench.amqp10.composite import Composite, composite
from workbench.amqp10.constructor import codes_of, describe_code, describe_type
from workbench.amqp10.decoder import decode_value
from workbench.amqp10.encoder import encode_value, register
from workbench.amqp10.errors import DecodeError, LocalProtocolError
from workbench.amqp10.fields import optional, with_symbol_keys
from workbench.amqp10.outcome import (
    Accepted,
    DeliveryState,
    Error,
    Modified,
    Outcome,
    Received,
    Rejected,
    Released,
)
from workbench.amqp10.performatives import read_descriptor
from workbench.amqp10.restricted import (
    DistributionMode,
    TerminusDurability,
    TerminusExpiryPolicy,
)
from workbench.amqp10.terminus import (
    DeleteOnClose,
    DeleteOnNoLinks,
    DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages,
    LifetimePolicy,
    Source,
    Target,
)
from workbench.amqp10.value_text import descriptor_text
from workbench.amqp10.values import MapValue, Symbol

__all__ = [
    "Accepted",
    "AmqpSequence",
    "AmqpValue",
    "ApplicationProperties",
    "Data",
    "DeleteOnClose",
    "DeleteOnNoLinks",
    "DeleteOnNoLinksOrMessages",
    "DeleteOnNoMessages",
    "DeliveryAnnotations",
    "DeliveryState",
    "DistributionMode",
    "Error",
    "Footer",
    "Header",
    "LifetimePolicy",
    "MessageAnnotations",
    "Modified",
    "Outcome",
    "Properties",
    "Received",
    "Rejected",
    "Released",
    "Section",
    "Source",
    "Target",
    "TerminusDurability",
    "TerminusExpiryPolicy",
    "decode_message",
    "decode_section",
    "encode_message",
]

MessageId: TypeAlias = int | UUID | bytes | str


@composite("header", 0x70, provides=("section",))
class Header(Composite, frozen=True, gc=False):
    """How a message is to be handled [3.2.1].

    `delivery_count` here counts failed attempts; it is not the link's delivery-count.
    """

    durable: bool | None = optional("boolean", default=False)
    priority: int | None = optional("ubyte", default=4)
    ttl: int | None = optional("milliseconds")
    first_acquirer: bool | None = optional("boolean", default=False)
    delivery_count: int | None = optional("uint", default=0)


@composite("properties", 0x73, provides=("section",))
class Properties(Composite, frozen=True, gc=False):
    """The immutable properties of a message [3.2.4]; times are milliseconds since 1970."""

    message_id: MessageId | None = optional("*", requires="message-id")
    user_id: bytes | None = optional("binary")
    to: str | None = optional("*", requires="address")
    subject: str | None = optional("string")
    reply_to: str | None = optional("*", requires="address")
    correlation_id: MessageId | None = optional("*", requires="message-id")
    content_type: str | None = optional("symbol")
    content_encoding: str | None = optional("symbol")
    absolute_expiry_time: int | None = optional("timestamp")
    creation_time: int | None = optional("timestamp")
    group_id: str | None = optional("string")
    group_sequence: int | None = optional("sequence-no")
    reply_to_group_id: str | None = optional("string")


class _ValueSection(Struct, frozen=True, gc=False):
    """A section that is one described value rather than a list of fields.

    Attributes:
        NAME: the section's name.
        DESCRIPTOR: its descriptor's code.
        SYMBOL: its descriptor as a symbol.
        TYPE: the primitive type of its value, `*` for any.
    """

    NAME: ClassVar[str] = ""
    DESCRIPTOR: ClassVar[int] = 0
    SYMBOL: ClassVar[Symbol] = Symbol("")
    TYPE: ClassVar[str] = "*"
    SYMBOL_KEYS: ClassVar[bool] = False

    def _sent(self) -> object:
        value: object = self.value  # type: ignore[attr-defined]
        if self.SYMBOL_KEYS and isinstance(value, dict):
            return with_symbol_keys(value)
        return value

    def encode(self) -> bytes:
        """Descriptor and value.

        Raises:
            LocalProtocolError: the value is not of the section's type.
        """
        octets = encode_value(self._sent())
        if self.TYPE != "*" and octets[0] not in codes_of(self.TYPE):
            raise LocalProtocolError(f"the {self.NAME} section holds a {self.TYPE}")
        return bytes((0x00, 0x53, self.DESCRIPTOR)) + octets


class DeliveryAnnotations(_ValueSection, frozen=True, gc=False):
    """For the next hop only [3.2.2]."""

    value: MapValue
    NAME: ClassVar[str] = "delivery-annotations"
    DESCRIPTOR: ClassVar[int] = 0x71
    SYMBOL: ClassVar[Symbol] = Symbol("amqp:delivery-annotations:map")
    TYPE: ClassVar[str] = "map"
    SYMBOL_KEYS: ClassVar[bool] = True


class MessageAnnotations(_ValueSection, frozen=True, gc=False):
    """For the infrastructure, carried along [3.2.3]."""

    value: MapValue
    NAME: ClassVar[str] = "message-annotations"
    DESCRIPTOR: ClassVar[int] = 0x72
    SYMBOL: ClassVar[Symbol] = Symbol("amqp:message-annotations:map")
    TYPE: ClassVar[str] = "map"
    SYMBOL_KEYS: ClassVar[bool] = True


class ApplicationProperties(_ValueSection, frozen=True, gc=False):
    """The application's own: string keys, simple values [3.2.5]."""

    value: MapValue
    NAME: ClassVar[str] = "application-properties"
    DESCRIPTOR: ClassVar[int] = 0x74
    SYMBOL: ClassVar[Symbol] = Symbol("amqp:application-properties:map")
    TYPE: ClassVar[str] = "map"


class Data(_ValueSection, frozen=True, gc=False):
    """A body, or a part of one, of octets [3.2.6]."""

    value: bytes
    NAME: ClassVar[str] = "data"
    DESCRIPTOR: ClassVar[int] = 0x75
    SYMBOL: ClassVar[Symbol] = Symbol("amqp:data:binary")
    TYPE: ClassVar[str] = "binary"


class AmqpSequence(_ValueSection, frozen=True, gc=False):
    """A body, or a part of one, of values [3.2.7]."""

    value: list[object]
    NAME: ClassVar[str] = "amqp-sequence"
    DESCRIPTOR: ClassVar[int] = 0x76
    SYMBOL: ClassVar[Symbol] = Symbol("amqp:amqp-sequence:list")
    TYPE: ClassVar[str] = "list"


class AmqpValue(_ValueSection, frozen=True, gc=False):
    """A body of one value [3.2.8]."""

    value: object
    NAME: ClassVar[str] = "amqp-value"
    DESCRIPTOR: ClassVar[int] = 0x77
    SYMBOL: ClassVar[Symbol] = Symbol("amqp:amqp-value:*")


class Footer(_ValueSection, frozen=True, gc=False):
    """What can be known only behind the body, such as a checksum [3.2.9]."""

    value: MapValue
    NAME: ClassVar[str] = "footer"
    DESCRIPTOR: ClassVar[int] = 0x78
    SYMBOL: ClassVar[Symbol] = Symbol("amqp:footer:map")
    TYPE: ClassVar[str] = "map"
    SYMBOL_KEYS: ClassVar[bool] = True


Section: TypeAlias = (
    Header
    | DeliveryAnnotations
    | MessageAnnotations
    | Properties
    | ApplicationProperties
    | Data
    | AmqpSequence
    | AmqpValue
    | Footer
)

_SECTIONS: tuple[type[Section], ...] = (
    Header,
    DeliveryAnnotations,
    MessageAnnotations,
    Properties,
    ApplicationProperties,
    Data,
    AmqpSequence,
    AmqpValue,
    Footer,
)
SECTIONS: dict[object, type[Section]] = {
    descriptor: cls for cls in _SECTIONS for descriptor in (cls.DESCRIPTOR, cls.SYMBOL)
}
"""All sections, by descriptor code and by symbol."""

for _cls in _SECTIONS:
    register(_cls, _cls.encode)


def encode_message(sections: Iterable[Section]) -> bytes:
    """A message's octets, for the payload of a transfer.

    Args:
        sections: in the specification's order.

    Returns:
        The encoded sections, one behind the other.

    Raises:
        LocalProtocolError: the order is not legal, or a value does not fit.
    """
    listed = list(sections)
    fault = _order_fault(listed)
    if fault:
        raise LocalProtocolError(fault)
    return b"".join([section.encode() for section in listed])


def decode_section(data: bytes, start: int = 0) -> tuple[Section, int]:
    """Reads one section.

    Returns:
        The section and the offset behind it.

    Raises:
        DecodeError: the octets are no section.
    """
    if type(data) is not bytes:
        data = bytes(data)
    end = len(data)
    descriptor, at = read_descriptor(data, start, end, "a message section")
    cls = SECTIONS.get(descriptor)
    if cls is None:
        raise DecodeError(
            f"descriptor {descriptor_text(descriptor)} names no message section; legal are "
            "0x70 header to 0x78 footer",
            start + 1,
        )
    if issubclass(cls, Composite):
        return cls.decode_list(data, at, end)
    if at < end and cls.TYPE != "*" and data[at] not in codes_of(cls.TYPE):
        raise DecodeError(
            f"the {cls.NAME} section must be {describe_type(cls.TYPE)}; "
            f"found {describe_code(data[at])}",
            at,
        )
    value, at = decode_value(data, at, end)
    return cls(value), at  # type: ignore[arg-type]


def decode_head(data: bytes, start: int = 0) -> Iterator[Section]:
    """Reads the sections before a message's body, one by one; the body is not looked at.

    Raises:
        DecodeError: the octets are no section.
    """
    at = start
    while at < len(data):
        descriptor, _ = read_descriptor(data, at, len(data), "a message section")
        cls = SECTIONS.get(descriptor)
        if cls is not None and _PLACES[cls] >= _PLACES[AmqpValue]:
            return
        section, at = decode_section(data, at)
        yield section


def decode_message(data: bytes) -> list[Section]:
    """Reads the sections of a whole message.

    Args:
        data: the payloads of all its transfers, joined. An empty message has no section.

    Returns:
        The sections in order.

    Raises:
        DecodeError: the octets are no message, or its sections are out of order.
    """
    data = bytes(data)
    sections: list[Section] = []
    at = 0
    while at < len(data):
        begin = at
        section, at = decode_section(data, at)
        sections.append(section)
        fault = _order_fault(sections[-2:])
        if fault:
            raise DecodeError(fault, begin)
    return sections


_PLACES: dict[type, int] = {
    Header: 0,
    DeliveryAnnotations: 1,
    MessageAnnotations: 2,
    Properties: 3,
    ApplicationProperties: 4,
    Data: 5,
    AmqpSequence: 5,
    AmqpValue: 5,
    Footer: 6,
}


def _order_fault(sections: list[Section]) -> str | None:
    """What is wrong with the order of sections, or None [3.2]."""
    for before, after in pairwise(sections):
        if _PLACES[type(before)] < _PLACES[type(after)]:
            continue
        if type(before) is type(after) and isinstance(after, Data | AmqpSequence):
            continue
        return (
            f"section {after.NAME} cannot follow {before.NAME}; legal is header, "
            "delivery-annotations, message-annotations, properties, application-properties, "
            "a body of data, of amqp-sequence or of one amqp-value, footer"
        )
    return None
