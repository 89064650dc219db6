"""Messages between AMQP 0-9-1 and 1.0, with the conversions that RabbitMQ makes (`mc_amqpl.erl`).

A queue keeps a message as it was published. Only who takes it over the other protocol sees another
form: properties become header, properties, application-properties and message annotations, and the
other way round. What one form has no place for is lost: a table in a header, a footer, `to`, a type
that the other has not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import quote, unquote
from uuid import UUID

from msgspec.structs import replace

from workbench.amqp091 import values as v091
from workbench.amqp091.errors import LocalProtocolError
from workbench.amqp091.methods import Properties
from workbench.amqp10 import messaging as v1
from workbench.amqp10.errors import DecodeError
from workbench.amqp10.values import (
    Array,
    Byte,
    Float32,
    Int,
    Long,
    MapPairs,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from workbench.frontends.annotations import as_published, attempts, routed, told_ttl
from workbench.frontends.payload import Amqp10Message, message_of
from workbench.presets import Preset
from workbench.queues import Death, Message, Stored
from workbench.queues.arguments import EXPIRY_LIMIT_MS, QUORUM, STREAM
from workbench.queues.stream import OFFSET

PERSISTENT = 2
AMQP_1_0_TYPE = "amqp-1.0"
CC, BCC = "CC", "BCC"
MOST_SHORT = 255
INTERNAL = ("x-basic-", "x-routing-key", "x-exchange", "x-death")
US_PER_S = 1_000_000


class ContentError(ValueError):
    """A message that cannot be published; the text says why, in RabbitMQ's words."""


class Amqp091Message(Message, frozen=True, gc=False, kw_only=True):
    """A message that came over AMQP 0-9-1.

    Attributes:
        properties: as they were published; without `BCC`.
    """

    properties: Properties

    @property
    def headers(self) -> Mapping[str, Any]:
        """The headers table; empty if there is none."""
        return self.properties.headers or {}


def published(
    properties: Properties, body: bytes, *, limits: bool = True
) -> tuple[Amqp091Message, tuple[str, ...]]:
    """A message as queues keep it, and with which keys it is routed beside its own.

    Args:
        properties: as published.
        body: as published.
        limits: it may grow too old.

    Raises:
        ContentError: its expiration is no number, or CC or BCC no list.
    """
    headers = properties.headers
    copies: list[str] = []
    blind: list[str] = []
    if headers:
        copies, blind = _keys(CC, headers.get(CC)), _keys(BCC, headers.get(BCC))
        if BCC in headers:
            rest = {name: value for name, value in headers.items() if name != BCC}
            properties = replace(properties, headers=rest)
    message = Amqp091Message(
        payload=body,
        ttl_ms=_ttl_ms(properties.expiration) if limits else None,
        priority=properties.priority,
        durable=properties.delivery_mode == PERSISTENT,
        blind_keys=tuple(blind),
        properties=properties,
    )
    return message, (*copies, *blind)


def _keys(name: str, value: object) -> list[str]:
    """The strings in it; what else is in the list is passed over."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise ContentError(f"invalid message: {name} header is no list")
    return [key for key in value if isinstance(key, str)]


def _ttl_ms(expiration: str | None) -> int | None:
    if expiration is None:
        return None
    digits = expiration.isascii() and expiration.isdigit()
    if not digits or int(expiration) > EXPIRY_LIMIT_MS:
        raise ContentError(
            f"invalid expiration {expiration!r}: legal is a number of milliseconds, 0 to"
            f" {EXPIRY_LIMIT_MS}"
        )
    return int(expiration)


# -- to consumers of AMQP 0-9-1 -----------------------------------------------------------------


def as_amqp091(
    stored: Stored, queue_type: str, preset: Preset, *, got: bool = False
) -> tuple[Properties, bytes]:
    """Properties and body with which a message goes to an AMQP 0-9-1 consumer.

    Args:
        stored: as the queue hands it out.
        queue_type: a quorum queue tells how often it was handed out before, a stream its offset.
        preset: what is told of a dead letter, and what of a quorum queue's attempts.
        got: by basic.get.
    """
    message = stored.message
    if isinstance(message, Amqp091Message):
        properties, body = message.properties, message.payload
    else:
        properties, body = _from_amqp10(as_published(stored))
    headers = dict(properties.headers or {})
    if stored.origin.deaths:
        headers |= _death_headers(stored.origin.deaths, last=preset.message_containers)
        if len(stored.origin.routing_keys) == 1 and not preset.message_containers:
            headers.pop(CC, None)  # the key of a queue's has taken the place of all
        properties = replace(properties, expiration=None)
    if queue_type == QUORUM and (stored.acquired_count > 1 or (got and preset.get_tells_none)):
        told = attempts(stored, tells_acquired=preset.counts_failures)
        headers |= {str(name): v091.Long(count) for name, count in told.items()}
    if queue_type == STREAM:
        headers[OFFSET] = v091.Long(stored.message_id)
    if headers != (properties.headers or {}):
        properties = replace(properties, headers=headers)
    return properties, body


def _death_headers(deaths: tuple[Death, ...], *, last: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"x-death": [_death_table(death) for death in deaths]}
    named = {"first": min(deaths, key=lambda one: one.first_us)}
    if last:
        named["last"] = deaths[0]
    for place, death in named.items():
        for what in ("exchange", "queue", "reason"):
            told[f"x-{place}-death-{what}"] = getattr(death, what)
    return told


def _death_table(death: Death) -> dict[str, Any]:
    original = {} if death.ttl_ms is None else {"original-expiration": str(death.ttl_ms)}
    return {
        **original,
        "count": v091.Long(death.count),
        "reason": death.reason,
        "queue": death.queue,
        "time": v091.Timestamp(death.first_us // US_PER_S),
        "exchange": death.exchange,
        "routing-keys": list(death.routing_keys),
    }


def _from_amqp10(payload: bytes) -> tuple[Properties, bytes]:
    try:
        sections = v1.decode_message(payload)
    except DecodeError:
        return Properties(delivery_mode=PERSISTENT), payload
    header, properties = v1.Header(), v1.Properties()
    annotations: dict[str, Any] = {}
    application: dict[str, Any] = {}
    data: list[bytes] = []
    encoded: list[bytes] = []
    for section in sections:
        match section:
            case v1.Header():
                header = section
            case v1.Properties():
                properties = section
            case v1.MessageAnnotations():
                annotations = dict(_pairs(section.value))
            case v1.ApplicationProperties():
                application = dict(_pairs(section.value))
            case v1.Data():
                data.append(section.value)
            case v1.AmqpSequence() | v1.AmqpValue():
                encoded.append(v1.encode_message([section]))
    headers: dict[str, Any] = {}
    for name, value in annotations.items():
        if name == "x-cc":
            headers[CC] = _to_091(value)
        elif name == "x-opt-rabbitmq-received-time" and isinstance(value, Timestamp):
            headers["timestamp_in_ms"] = v091.Long(value)
        elif name.startswith("x-") and not name.startswith(("x-opt-deaths", *INTERNAL)):
            headers[name] = _to_091(value)
    headers |= {name: _to_091(value) for name, value in application.items()}
    message_id = _message_id(properties.message_id, "x-message-id", headers)
    correlation_id = _message_id(properties.correlation_id, "x-correlation-id", headers)
    mode: Any = PERSISTENT if header.durable else 1
    if header.durable is None:
        mode = _octet(annotations.get("x-basic-delivery-mode", PERSISTENT))
    created = properties.creation_time
    return (
        Properties(
            content_type=_short(properties.content_type),
            content_encoding=_short(properties.content_encoding),
            headers=_fitting(headers) or None,
            delivery_mode=mode,
            priority=header.priority
            if header.priority is not None
            else _octet(annotations.get("x-basic-priority")),
            correlation_id=correlation_id,
            reply_to=_reply_to(properties.reply_to),
            expiration=str(header.ttl)
            if header.ttl is not None
            else _short(annotations.get("x-basic-expiration")),
            message_id=message_id,
            timestamp=None if created is None else _seconds(created),
            type=AMQP_1_0_TYPE if encoded else _short(annotations.get("x-basic-type")),
            user_id=_short(_text(properties.user_id)),
            app_id=_short(properties.group_id),
        ),
        b"".join(encoded or data),
    )


def _pairs(value: object) -> Iterator[tuple[str, Any]]:
    items = value.items() if isinstance(value, dict | MapPairs) else ()
    return ((str(name), one) for name, one in items if isinstance(name, str))


def _message_id(value: object, header: str, headers: dict[str, Any]) -> str | None:
    """A message-id or correlation-id; what is no short string goes into a header."""
    if isinstance(value, UUID):
        return value.urn
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, str) and _is_short(value):
        return str(value)
    if value is not None:
        headers[header] = value
    return None


def _reply_to(address: str | None) -> str | None:
    if address is not None and address.startswith("/queues/"):
        return _short(unquote(address.removeprefix("/queues/")))
    return _short(address)


def _text(octets: bytes | None) -> str | None:
    try:
        return None if octets is None else octets.decode()
    except UnicodeDecodeError:
        return None


def _is_short(text: str) -> bool:
    return len(text.encode()) <= MOST_SHORT


def _short(text: object) -> str | None:
    return text if isinstance(text, str) and _is_short(text) else None


def _octet(number: object) -> int | None:
    return number if isinstance(number, int) and 0 <= number <= UByte.MAXIMUM else None


def _fitting(headers: dict[str, Any]) -> dict[str, Any]:
    """Those headers that a table of AMQP 0-9-1 can hold: another one would end the consumer."""
    if _fits(headers):
        return headers
    return {name: value for name, value in headers.items() if _fits({name: value})}


def _fits(table: dict[str, Any]) -> bool:
    try:
        v091.write_table(table)
    except LocalProtocolError:
        return False
    return True


def _seconds(ms: int) -> int:
    """Of a time before 1970 the low 64 bits, as `rabbit_binary_generator.erl` writes them."""
    return (-(-ms // 1000) if ms < 0 else ms // 1000) % 2**64


_KINDS_091: dict[type, Callable[[Any], Any]] = {
    Byte: v091.Byte,
    UByte: v091.UnsignedByte,
    Short: v091.Short,
    UShort: v091.UnsignedShort,
    Int: int,
    UInt: v091.UnsignedInt,
    Long: v091.Long,
    ULong: lambda number: v091.Long(number - 2**64 if number >= 2**63 else number),
    Float32: v091.Float,
    Symbol: str,
}


def _to_091(value: Any) -> Any:
    """A value of a table for one of AMQP 1.0; simple types keep their size."""
    kind = _KINDS_091.get(type(value))
    if kind is not None:
        return kind(value)
    if isinstance(value, Timestamp):
        return v091.Timestamp(_seconds(value))
    if isinstance(value, bytes):
        return v091.LongString(value)
    if isinstance(value, UUID):
        return value.urn
    if isinstance(value, Array):
        return [_to_091(one) for one in value.items]
    if isinstance(value, list):
        return [_to_091(one) for one in value]
    if isinstance(value, dict | MapPairs):
        return {name: _to_091(one) for name, one in _pairs(value)}
    if type(value) is int:
        return v091.Long(value)
    return value


# -- to consumers of AMQP 1.0 -------------------------------------------------------------------


def as_amqp10(stored: Stored) -> Stored:
    """A message with the payload that it has for AMQP 1.0: as it is if it came over that."""
    message = stored.message
    if not isinstance(message, Amqp091Message):
        return stored
    key = stored.origin.routing_keys[0] if stored.origin.routing_keys else ""
    payload = routed(_sections(message), stored.origin.exchange, key)
    return replace(stored, message=_kept(message, payload))


def _kept(message: Amqp091Message, payload: bytes) -> Amqp10Message:
    return replace(message_of(payload), annotations=message.annotations)


def _sections(message: Amqp091Message) -> bytes:
    came = message.properties
    headers = came.headers or {}
    # The name of an annotation is a symbol, which is ASCII.
    noted = [name for name in headers if name.startswith("x-") and name.isascii()]
    annotations: dict[Any, Any] = {Symbol(name): to_10(headers[name]) for name in noted}
    if isinstance(headers.get(CC), list):
        annotations[Symbol("x-cc")] = to_10(headers[CC])
    encoded = came.type == AMQP_1_0_TYPE
    if came.type is not None and not encoded:
        annotations[Symbol("x-basic-type")] = came.type
    application: dict[Any, Any] = {
        name: to_10(value)
        for name, value in headers.items()
        if name not in noted and not isinstance(value, list | dict)
    }
    sections: list[v1.Section] = [
        v1.Header(
            durable=message.durable,
            priority=message.priority,
            ttl=None if message.ttl_ms is None else told_ttl(message.ttl_ms),
        )
    ]
    if annotations:
        sections.append(v1.MessageAnnotations(annotations))
    properties = v1.Properties(
        message_id=_uuid(came.message_id),
        user_id=None if came.user_id is None else came.user_id.encode(),
        reply_to=None if came.reply_to is None else f"/queues/{quote(came.reply_to, safe='')}",
        correlation_id=_uuid(came.correlation_id),
        content_type=_symbol(came.content_type),
        content_encoding=_symbol(came.content_encoding),
        creation_time=None if came.timestamp is None else _timestamp(came.timestamp),
        group_id=came.app_id,
    )
    if properties != v1.Properties():
        sections.append(properties)
    if application:
        sections.append(v1.ApplicationProperties(application))
    if not encoded:
        sections.append(v1.Data(message.payload))
    return v1.encode_message(sections) + (message.payload if encoded else b"")


def _symbol(text: str | None) -> str | None:
    """A text that is a symbol, too: one of ASCII alone."""
    return text if text is None or text.isascii() else None


def _uuid(text: str | None) -> str | UUID | None:
    if text is not None and text.startswith("urn:uuid:"):
        try:
            return UUID(text)
        except ValueError:
            return text
    return text


def asked_offset(arguments: Mapping[str, Any]) -> Any:
    """Where a consumer asks to begin in a stream, a time as AMQP 1.0 has it; None: it does not."""
    offset = arguments.get(OFFSET)
    return _timestamp(offset) if isinstance(offset, v091.Timestamp) else offset


def _timestamp(seconds: int) -> Timestamp:
    """In ms; what AMQP 1.0 cannot tell is its latest time."""
    return Timestamp(min(int(seconds) * 1000, Timestamp.MAXIMUM))


_KINDS_10: dict[type, type] = {
    v091.Byte: Byte,
    v091.UnsignedByte: UByte,
    v091.Short: Short,
    v091.UnsignedShort: UShort,
    v091.UnsignedInt: UInt,
    v091.Long: Long,
    v091.OtherLong: Long,
    v091.Float: Float32,
}


def to_10(value: Any) -> Any:
    """A value of AMQP 1.0 for one of a table; a decimal has no type there and goes as a text."""
    kind = _KINDS_10.get(type(value))
    if kind is not None:
        return kind(value)
    if isinstance(value, v091.Timestamp):
        return _timestamp(value)
    if type(value) is int:
        return Int(value) if -(2**31) <= value < 2**31 else Long(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, list):
        return [to_10(one) for one in value]
    if isinstance(value, dict):
        return {Symbol(name) if name.isascii() else name: to_10(one) for name, one in value.items()}
    return value
