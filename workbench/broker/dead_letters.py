"""Dead letters: messages that leave a queue undelivered and go to its dead-letter exchange.

Such a message is published again with the history of its deaths, of which a front end tells its
receivers. It may come back to a queue that it has died in; it is dropped there if it went round
without anybody rejecting it, for then nothing would ever end its travels
(`rabbit_dead_letter.erl:detect_cycles`, `mc.erl:record_death`, `is_death_cycle`, `mc_amqp.erl`).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from workbench.queues import DeadLettered, Death, Origin, Stored
from workbench.sim import Clock, Tap

from .routing import RoutingError
from .virtual_host import VirtualHost

REJECTED = "rejected"


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


def _told_keys(dead: Stored) -> tuple[str, ...]:
    """The keys with which a message came, each blind one taken off once."""
    keys = list(dead.origin.routing_keys)
    for blind in dead.message.blind_keys:
        if blind in keys:
            keys.remove(blind)
    return tuple(keys)


class DeadLetters:
    """Publishes dead letters; at most once, as RabbitMQ does for classic queues.

    Args:
        vhost: where they are published.
        clock: the run's clock.
        tap: observer; what is dropped is told there.
    """

    def __init__(self, vhost: VirtualHost, clock: Clock, tap: Tap) -> None:
        self._vhost = vhost
        self._clock = clock
        self._notes = tap.bind(clock, vantage="broker")

    def publish(self, queue: str, letter: DeadLettered) -> None:
        """Send a message that has died in a queue where the queue wants it.

        It does not die of the same age twice, so it goes on without a time to live.
        """
        dead = letter.message
        now_us = self._clock.epoch_us + self._clock.now_us
        deaths = recorded(
            dead.origin.deaths,
            Death(
                queue=queue,
                reason=letter.reason,
                exchange=dead.origin.exchange,
                routing_keys=_told_keys(dead),
                first_us=now_us,
                last_us=now_us,
                ttl_ms=dead.message.ttl_ms,
            ),
        )
        message = replace(
            dead.message,
            ttl_ms=None,
            annotations=tuple((dict(dead.message.annotations) | dict(dead.annotations)).items()),
        )
        try:
            targets = self._vhost.route(letter.exchange, letter.routing_keys, message)
        except RoutingError:
            self._dropped(queue, "no-exchange")
            return
        origin = Origin(
            exchange=letter.exchange,
            routing_keys=letter.routing_keys,
            deaths=deaths,
            delivery_count=dead.delivery_count,
        )
        if not targets:
            self._dropped(queue, "unroutable")
        for target in targets:
            if letter.reason != REJECTED and is_cycle(target.name, deaths):
                self._dropped(queue, "cycle")
                continue
            target.publish(message, origin=origin)

    def _dropped(self, queue: str, reason: str) -> None:
        self._notes.note("drop", "dead-letter", queue=queue, extra={"reason": reason})
