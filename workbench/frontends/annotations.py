"""What RabbitMQ writes into messages: how they were routed, and what became of them since.

RabbitMQ keeps the bare message and its footer as they came. What stands before them it writes anew
for each delivery: a header with all that it knows, and message annotations with `x-exchange`,
`x-routing-key`, and what a queue adds; delivery annotations it drops (`mc_amqp.erl:protocol_state`,
`rabbit_fifo_client.erl:add_delivery_count_header`). Here a message is kept in the form in which it
goes out the first time, so that most go out without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from workbench.amqp10.errors import DecodeError
from workbench.amqp10.messaging import Header, MessageAnnotations, decode_section
from workbench.amqp10.values import Array, MapPairs, MapValue, Symbol, Timestamp, UInt, ULong
from workbench.queues import Death, Stored
from workbench.queues.arguments import QUORUM, STREAM
from workbench.queues.limits import US_PER_MS

from .keeping import keeps

EXCHANGE, ROUTING_KEY = Symbol("x-exchange"), Symbol("x-routing-key")
ACQUIRED_COUNT, DELIVERY_COUNT = Symbol("x-acquired-count"), Symbol("x-delivery-count")
HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS = 0x70, 0x71, 0x72
FRONT = (HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS)
BARE_DESCRIPTOR = b"\x00\x53"
EMPTY_LIST, SMALL, LARGE = 0x45, (0xC0, 0xC1), (0xD0, 0xD1)


class Front(NamedTuple):
    """What stands before the bare message.

    Attributes:
        header: its octets; empty if there is none.
        annotations: octets of the message annotations; empty if there are none.
        size: octets of both and of the delivery annotations: where the bare message begins.
    """

    header: bytes
    annotations: bytes
    size: int


def front_of(payload: bytes) -> Front | None:
    """The sections before the bare message, unread; None if the octets are no message."""
    header = annotations = b""
    place = 0
    while True:
        code, end = _next(payload, place)
        if code is None or end > len(payload):
            return None
        if code not in FRONT:
            return Front(header, annotations, place)
        if code == HEADER:
            header = payload[place:end]
        elif code == MESSAGE_ANNOTATIONS:
            annotations = payload[place:end]
        place = end


def routed(
    payload: bytes,
    exchange: str,
    routing_key: str,
    *,
    durable: bool = False,
) -> bytes:
    """The message as RabbitMQ keeps it when it has routed it.

    Args:
        payload: the message as it was published.
        exchange: through which it came; empty for the default exchange.
        routing_key: with which.
        durable: what a message without a header is.

    Returns:
        The message; as it came where it cannot be read.
    """
    front = front_of(payload)
    if front is None:
        return payload
    if front.annotations:
        annotations = with_annotations(
            front.annotations, {ROUTING_KEY: routing_key, EXCHANGE: exchange}
        )
    else:
        annotations = _route(routing_key, exchange)
    try:
        return _header(front.header, True, 0, durable, False) + annotations + payload[front.size :]
    except DecodeError:
        return payload


def attempts(message: Stored, *, tells_acquired: bool) -> dict[Symbol, int]:
    """How often a quorum queue says that it has handed out a message that comes again.

    Args:
        message: as the queue hands it out.
        tells_acquired: as for `delivered`.
    """
    before, failed = message.acquired_count - 1, message.delivery_count
    # One that died elsewhere brings its failures along, which count as acquired.
    told = {ACQUIRED_COUNT if tells_acquired else DELIVERY_COUNT: before or failed}
    if tells_acquired and failed:
        told[DELIVERY_COUNT] = failed
    return told


def delivered(
    message: Stored, queue_type: str, *, tells_acquired: bool = True, durable: bool = False
) -> bytes:
    """The message as RabbitMQ sends it to a consumer.

    The header tells whether it was handed out before, or has died in another queue, and how often
    it failed. A stream tells neither: it knows nothing of its readers.

    Args:
        message: as the queue hands it out, of message-format 0.
        queue_type: a quorum queue annotates what comes again; a stream leaves `durable` unsaid
            where the publisher's header does.
        tells_acquired: a quorum queue tells how often a message was handed out, and how often that
            failed; before 4.3 only the former, under the latter's name.
        durable: what a message is whose header does not say.
    """
    payload = as_published(message)
    stream = queue_type == STREAM
    before, failed = message.acquired_count - 1, message.delivery_count
    annotations = message.annotations
    if queue_type == QUORUM and (before > 0 or failed):
        annotations = {**annotations, **attempts(message, tells_acquired=tells_acquired)}
    first = stream or not (before > 0 or failed or message.origin.deaths)
    front = front_of(payload)
    if front is None:
        return payload
    try:
        header = _header(front.header, first, 0 if stream else failed, durable, not stream)
        told = with_annotations(front.annotations, annotations)
    except DecodeError:
        return payload
    changed = header + told
    if len(changed) == front.size and payload.startswith(changed):
        return payload  # the octets that the queue holds: most messages go out so
    return changed + payload[front.size :]


def as_published(message: Stored) -> bytes:
    """The payload as it came, or, of a dead letter, as it was published again.

    A dead letter is annotated with its deaths, and goes without its own ttl, lest it expires again.
    """
    payload, origin = message.payload, message.origin
    front = front_of(payload) if origin.deaths else None
    if front is None:
        return payload
    key = origin.routing_keys[0] if origin.routing_keys else ""
    told: dict[object, object] = {
        **dict(message.message.annotations),
        ROUTING_KEY: key,
        EXCHANGE: origin.exchange,
        **history(origin.deaths),
    }
    try:
        header = front.header
        if header:
            came = decode_section(header)[0]
            assert isinstance(came, Header)
            header = header if came.ttl is None else replace(came, ttl=None).encode()
        annotations = with_annotations(front.annotations, told)
    except DecodeError:
        return payload
    return header + annotations + payload[front.size :]


def history(deaths: Sequence[Death]) -> dict[object, object]:
    """What a receiver is told of them.

    Args:
        deaths: the latest first, at least one.
    """
    first, last = min(deaths, key=lambda one: one.first_us), deaths[0]
    told: dict[object, object] = {
        Symbol("x-opt-deaths"): Array("map", tuple(_told(death) for death in deaths))
    }
    for place, death in (("first", first), ("last", last)):
        for what in ("exchange", "queue", "reason"):
            told[Symbol(f"x-{place}-death-{what}")] = getattr(death, what)
    return told


def _told(death: Death) -> dict[object, object]:
    ttl_ms = death.ttl_ms
    ttl: dict[object, object] = {} if ttl_ms is None else {Symbol("ttl"): told_ttl(ttl_ms)}
    return {
        **ttl,
        Symbol("queue"): death.queue,
        Symbol("reason"): Symbol(death.reason),
        Symbol("count"): ULong(death.count),
        Symbol("exchange"): death.exchange,
        Symbol("routing-keys"): Array("string", death.routing_keys),
        Symbol("first-time"): Timestamp(death.first_us // US_PER_MS),
        Symbol("last-time"): Timestamp(death.last_us // US_PER_MS),
    }


def told_ttl(ms: int) -> UInt:
    """A ttl as AMQP 1.0 is told it: of one of AMQP 0-9-1 that is too long, the low 32 bits.

    So `amqp10_binary_generator.erl` writes it.
    """
    return UInt(ms & UInt.MAXIMUM)


def plain(annotations: object) -> dict[object, object]:
    """What a modified outcome asks to merge, as a quorum queue keeps it: simple types are lost.

    An integer of any size comes back as a long, a symbol as a string
    (`rabbit_amqp_session.erl:unwrap_simple_type`, `mc_util.erl:infer_type`).
    """
    pairs = annotations.items() if isinstance(annotations, Mapping | MapPairs) else ()
    kept: dict[object, object] = {}
    for name, value in pairs:
        if isinstance(value, int) and not isinstance(value, bool):
            kept[name] = int(value)
        else:
            kept[name] = str(value) if isinstance(value, str) else value
    return kept


def with_annotations(section: bytes, added: Mapping[object, object]) -> bytes:
    """The octets of message annotations with some more; those of the same name give way.

    Raises:
        DecodeError: the octets are no such section.
    """
    if not added:
        return section
    if not section:
        return MessageAnnotations(dict(added)).encode()
    own = decode_section(section)[0]
    assert isinstance(own, MessageAnnotations)
    return MessageAnnotations(merged_with(own.value, added)).encode()


def merged_with(annotations: MapValue, added: Mapping[object, object]) -> MapValue:
    """Annotations with some more; those of the same name give way."""
    if isinstance(annotations, MapPairs):
        names = [*added]  # a key need not be one that can be hashed
        kept = [pair for pair in annotations.pairs if pair[0] not in names]
        return MapPairs((*kept, *added.items()))
    return {**annotations, **added}


def _next(payload: bytes, place: int) -> tuple[int | None, int]:
    """The code of the section that begins here, and where it ends; None: there is none."""
    if payload[place : place + 2] == BARE_DESCRIPTOR and place + 4 <= len(payload):
        code, kind = payload[place + 2], payload[place + 3]
        if code not in FRONT:
            return code, place
        place += 4
        if kind in SMALL and place < len(payload):
            return code, place + 1 + payload[place]
        if kind in LARGE:
            return code, place + 4 + int.from_bytes(payload[place : place + 4], "big")
        if kind == EMPTY_LIST:
            return code, place
        return None, place
    try:
        section, end = decode_section(payload, place)
    except DecodeError:
        return None, place
    return section.DESCRIPTOR, end


@keeps
def _route(routing_key: str, exchange: str) -> bytes:
    """The annotations of a message without its own, the same for all messages of a route."""
    return with_annotations(b"", {ROUTING_KEY: routing_key, EXCHANGE: exchange})


@keeps
def _header(came: bytes, first: bool, failed: int, durable: bool, says_durable: bool) -> bytes:
    """The header to send for one that came.

    Args:
        came: its octets; empty if none came.
        first: nobody had the message before.
        failed: attempts to deliver it that failed.
        durable: what a message without a header is.
        says_durable: so is one whose header leaves it open.
    """
    header = Header(durable=durable) if not came else decode_section(came)[0]
    assert isinstance(header, Header)
    if says_durable and header.durable is None:
        header = replace(header, durable=durable)
    return replace(header, first_acquirer=first, delivery_count=failed).encode()
