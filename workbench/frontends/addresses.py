"""Addresses of RabbitMQ 4, both versions, as data.

Version 2 (4.0 and later): target `/exchanges/:exchange[/:routing-key]` or `/queues/:queue`, source
`/queues/:queue`; every segment is percent-encoded (RFC 3986). Version 1 (tolerated in 4.0 to 4.2,
refused by default in 4.3): `/exchange/:x[/:key]`, `/topic/:key`, `/amq/queue/:q`, `/queue/:q`,
`:q`, `/queue`; nothing in it is encoded, and `/queue/:q` and `:q` make the queue if there is none.
Sources: RabbitMQ's AMQP 1.0 documentation and `rabbit_amqp_session.erl`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, unquote_to_bytes

from workbench.broker.routing import DEFAULT

TOPIC_EXCHANGE = "amq.topic"
MANAGEMENT = "/management"
QUEUES_PREFIX = "/queues/"
_ENCODED = re.compile(r"(?:[A-Za-z0-9!$&'()*+,;=:@._~-]|%[0-9A-Fa-f]{2})+")
"""What a segment may hold (`cow_uri:urldecode`)."""


class AddressError(ValueError):
    """An address that names nothing here; the text says what would be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What an address names.

    Attributes:
        exchange: to which a message goes; None for a source.
        routing_key: with which; for a source with `exchange`, the binding key.
        queue: the queue named, if one is.
        declare: the queue is made if there is none (version 1).
        version: 1 or 2.
    """

    exchange: str | None = None
    routing_key: str = ""
    queue: str | None = None
    declare: bool = False
    version: int = 2


def queue_name(address: str) -> str:
    """The queue's name in an address: the address itself, or what follows `/queues/`, decoded."""
    if address.startswith(QUEUES_PREFIX):
        return unquote(address[len(QUEUES_PREFIX) :])
    return address


def target(address: str, *, version_1: bool) -> Where:
    """Where a publisher's messages go.

    Args:
        address: of the target.
        version_1: whether addresses of version 1 are tolerated.

    Raises:
        AddressError: if it is none.
    """
    segments = _segments(address)
    match segments:
        case ["queues", queue]:
            name = _decoded(queue, address)
            return Where(exchange=DEFAULT, routing_key=name, queue=name)
        case ["exchanges", exchange]:
            return Where(exchange=_exchange(exchange, address))
        case ["exchanges", exchange, key]:
            decoded = key and _decoded(key, address)
            return Where(exchange=_exchange(exchange, address), routing_key=decoded)
    if version_1 and (where := _target_1(address, segments)) is not None:
        return where
    raise AddressError(_not_one(address, "target", version_1))


def source(address: str, *, version_1: bool) -> Where:
    """Which queue a consumer reads.

    Raises:
        AddressError: if it is none.
    """
    segments = _segments(address)
    if len(segments) == 2 and segments[0] == "queues":
        return Where(queue=_decoded(segments[1], address))
    if version_1:
        match segments:
            case ["amq", "queue", name]:
                return Where(queue=name, version=1)
            case ["queue", name]:
                return Where(queue=name, declare=True, version=1)
            case ["exchange", exchange, key]:
                return Where(exchange=exchange, routing_key=key, declare=True, version=1)
            case ["topic", key]:
                return Where(exchange=TOPIC_EXCHANGE, routing_key=key, declare=True, version=1)
            case [] if address and not address.startswith("/"):
                return Where(queue=address, declare=True, version=1)
    raise AddressError(_not_one(address, "source", version_1))


def _target_1(address: str, segments: list[str]) -> Where | None:
    match segments:
        case ["exchange", exchange]:
            return Where(exchange=exchange, version=1)
        case ["exchange", exchange, key]:
            return Where(exchange=exchange, routing_key=key, version=1)
        case ["topic", key]:
            return Where(exchange=TOPIC_EXCHANGE, routing_key=key, version=1)
        case ["amq", "queue", name]:
            return Where(exchange=DEFAULT, routing_key=name, queue=name, version=1)
        case ["queue", name]:
            return Where(exchange=DEFAULT, routing_key=name, queue=name, declare=True, version=1)
        case ["queue"]:
            return Where(exchange=DEFAULT, version=1)
        case [] if address and not address.startswith("/"):
            return Where(
                exchange=DEFAULT,
                routing_key=address,
                queue=address,
                declare=True,
                version=1,
            )
    return None


def _segments(address: str) -> list[str]:
    """The segments of an address that begins with a slash; none of another."""
    return address[1:].split("/") if address.startswith("/") else []


def _decoded(segment: str, address: str) -> str:
    if not segment:
        raise AddressError(f"{address!r} has an empty name in it")
    legal = _ENCODED.match(segment)
    at = 0 if legal is None else legal.end()
    if at < len(segment):
        wrong = segment[at : at + 3] if segment[at] == "%" else segment[at]
        raise AddressError(
            f"{address!r}: {wrong!r} is not percent-encoded [RFC 3986]; a % in a name is written"
            " %25, a / is written %2F, a blank %20"
        )
    try:
        return unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        raise AddressError(f"{address!r}: {segment!r} is no UTF-8 once it is decoded") from None


def _exchange(segment: str, address: str) -> str:
    name = _decoded(segment, address)
    if name == "amq.default":
        raise AddressError(
            f"{address!r}: the default exchange is not addressed by name; legal: /queues/ and the"
            " queue's name"
        )
    return name


def _not_one(address: str, what: str, version_1: bool) -> str:
    legal = {
        "target": "/queues/:queue, /exchanges/:exchange or /exchanges/:exchange/:routing-key",
        "source": "/queues/:queue",
    }[what]
    older = "" if version_1 else "; addresses of version 1 are refused"
    return f"{address!r} is no {what} address; legal: {legal}, each part percent-encoded{older}"
