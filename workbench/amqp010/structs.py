"""Structs: properties of messages, and results of commands [errata of Qpid, 2008]."""

from typing import Annotated, TypeAlias

from .composite import (
    Bit,
    Commands,
    Composite,
    DateTime,
    Map,
    Str8,
    Str16,
    UInt8,
    UInt32,
    UInt64,
    Uuid,
    VBin16,
    struct,
)

__all__ = [
    "Acquired",
    "DeliveryProperties",
    "ExchangeBoundResult",
    "ExchangeQueryResult",
    "FragmentProperties",
    "MessageProperties",
    "QueueQueryResult",
    "ReplyTo",
]


@struct("reply-to", size=2)
class ReplyTo(Composite, frozen=True, gc=False):
    """Where answers to a message go."""

    exchange: Str8 = None
    routing_key: Str8 = None


_ReplyTo: TypeAlias = Annotated[ReplyTo | None, "reply-to"]


@struct("delivery-properties", 0x0401)
class DeliveryProperties(Composite, frozen=True, gc=False):
    """What those who carry a message look at; `ttl` is in milliseconds."""

    discard_unroutable: Bit = False
    immediate: Bit = False
    redelivered: Bit = False
    priority: UInt8 = None
    delivery_mode: UInt8 = None
    ttl: UInt64 = None
    timestamp: DateTime = None
    expiration: DateTime = None
    exchange: Str8 = None
    routing_key: Str8 = None
    resume_id: Str16 = None
    resume_ttl: UInt64 = None


@struct("fragment-properties", 0x0402)
class FragmentProperties(Composite, frozen=True, gc=False):
    """Which part of a message this is."""

    first: Bit = False
    last: Bit = False
    fragment_size: UInt64 = None


@struct("message-properties", 0x0403)
class MessageProperties(Composite, frozen=True, gc=False):
    """What the two applications tell each other about a message."""

    content_length: UInt64 = None
    message_id: Uuid = None
    correlation_id: VBin16 = None
    reply_to: _ReplyTo = None
    content_type: Str8 = None
    content_encoding: Str8 = None
    user_id: VBin16 = None
    app_id: VBin16 = None
    application_headers: Map = None


@struct("acquired", 0x0404)
class Acquired(Composite, frozen=True, gc=False):
    """Which transfers message.acquire got."""

    transfers: Commands = None


@struct("exchange-query-result", 0x0701)
class ExchangeQueryResult(Composite, frozen=True, gc=False):
    """What exchange.query found."""

    type: Str8 = None
    durable: Bit = False
    not_found: Bit = False
    arguments: Map = None


@struct("exchange-bound-result", 0x0702)
class ExchangeBoundResult(Composite, frozen=True, gc=False):
    """What exchange.bound found missing; with no bit set the binding is there."""

    exchange_not_found: Bit = False
    queue_not_found: Bit = False
    queue_not_matched: Bit = False
    key_not_matched: Bit = False
    args_not_matched: Bit = False


@struct("queue-query-result", 0x0801)
class QueueQueryResult(Composite, frozen=True, gc=False):
    """What queue.query found; without a name there is no such queue."""

    queue: Str8 = None
    alternate_exchange: Str8 = None
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    arguments: Map = None
    message_count: UInt32 = None
    subscriber_count: UInt32 = None
