"""Dead letters: messages that leave a queue undelivered and go to its dead-letter exchange.

Such a message is published again with the history of its deaths in its annotations. It may come
back to a queue that it has died in; it is dropped there if it went round without anybody rejecting
it, for then nothing would ever end its travels (`rabbit_dead_letter.erl:detect_cycles`,
`mc.erl:record_death`, `is_death_cycle`, `mc_amqp.erl`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.amqp.errors import DecodeError
from workbench.amqp.messaging import decode_message
from workbench.amqp.values import Array, Symbol, Timestamp, UInt, ULong
from workbench.queues import DeadLettered, Origin
from workbench.sim import Tap, VirtualClock

from .annotations import EXCHANGE, ROUTING_KEY, dead_letter
from .nodes import Nodes
from .payload import headers_in, time_to_live_ms
from .routing import RoutingError

REJECTED = "rejected"
US_PER_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """What is remembered of the deaths of one message in one queue for one reason.

    Attributes:
        reason: `expired`, `maxlen`, `rejected` or `delivery_limit`.
        count: how often.
        exchange, routing_keys: how it had come to the queue.
        first_us, last_us: the first and the last time, since 1970 where the clock knows.
        ttl_ms: of its own header, when it died the first time.
    """

    queue: str
    reason: str
    count: int = 1
    exchange: str
    routing_keys: tuple[str, ...]
    first_us: int
    last_us: int
    ttl_ms: int | None = None


def recorded(deaths: Sequence[Death], new: Death) -> tuple[Death, ...]:
    """Deaths with one more, the latest first; one that happened before is counted."""
    known = next(
        (one for one in deaths if (one.queue, one.reason) == (new.queue, new.reason)), None
    )
    if known is None:
        return (new, *deaths)
    again = replace(known, count=known.count + 1, last_us=new.last_us)
    return (again, *(one for one in deaths if one is not known))


def is_cycle(queue: str, deaths: Sequence[Death]) -> bool:
    """Whether a message with these deaths has come round to a queue, and nobody rejected it.

    Args:
        queue: that it is about to enter.
        deaths: the latest first.
    """
    round_trip: list[Death] = []
    for death in deaths:
        round_trip.append(death)
        if death.queue == queue:
            return all(one.reason != REJECTED for one in round_trip)
    return False


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
    ttl: dict[object, object] = {} if death.ttl_ms is None else {Symbol("ttl"): UInt(death.ttl_ms)}
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


class DeadLetters:
    """Publishes dead letters; at most once, as RabbitMQ does for classic queues.

    Args:
        nodes: of the broker.
        clock: the run's clock.
        tap: observer; what is dropped is told there.
    """

    def __init__(self, nodes: Nodes, clock: VirtualClock, tap: Tap) -> None:
        self._nodes = nodes
        self._clock = clock
        self._tap = tap

    def publish(self, queue: str, letter: DeadLettered) -> None:
        """Send a message that has died in a queue where the queue wants it."""
        message = letter.message
        now_us = self._clock.epoch_us + self._clock.now_us
        deaths = recorded(
            message.origin.deaths,
            Death(
                queue=queue,
                reason=letter.reason,
                exchange=message.origin.exchange,
                routing_keys=message.origin.routing_keys,
                first_us=now_us,
                last_us=now_us,
                ttl_ms=time_to_live_ms(message.payload, message.message_format),
            ),
        )
        routing_keys = letter.routing_keys or ("",)
        told: dict[object, object] = {ROUTING_KEY: routing_keys[0], EXCHANGE: letter.exchange}
        payload = dead_letter(message, {**told, **history(deaths)})

        def headers() -> Mapping[str, Any]:
            try:
                return headers_in(decode_message(payload))
            except DecodeError:
                return {}

        try:
            targets = self._nodes.route(letter.exchange, letter.routing_keys, headers)
        except RoutingError:
            self._dropped(queue, "no-exchange")
            return
        origin = Origin(
            exchange=letter.exchange,
            routing_keys=letter.routing_keys,
            deaths=deaths,
            delivery_count=message.delivery_count,
        )
        if not targets:
            self._dropped(queue, "unroutable")
        for target in targets:
            if letter.reason != REJECTED and is_cycle(target.name, deaths):
                self._dropped(queue, "cycle")
                continue
            target.publish(payload, message.message_format, origin=origin)

    def _dropped(self, queue: str, reason: str) -> None:
        self._tap.internal(
            t_us=self._clock.now_us,
            event="drop",
            kind="dead-letter",
            vantage="broker",
            queue=queue,
            extra={"reason": reason},
        )
