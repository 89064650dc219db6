"""A consumer in a quorum queue's state, and which one is active."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from workbench import serial

from .base import Stored


@dataclass(slots=True, kw_only=True)
class QuorumConsumer:
    """One attached consumer.

    Attributes:
        client: behind which it is.
        delivery_count: moves with every message handed out, as the link's does.
        link_credit: how many more it may get; never below 0.
        prefetch: simple-prefetch with this many; None: credited.
        settled: messages are sent settled: its client settles them as they come. So one that is
            lost on the way to the client is not lost (`rabbit_fifo_client.erl:maybe_auto_ack`).
        waits: it is in the line of those to be served.
        quiescing: it was active and gets nothing more; a consumer with a higher priority takes over
            when it has settled all.
        handed: deliveries so far; the next one's number.
        unsettled: handed out and not yet settled, by the delivery's number. Settlements name that
            number, so one that is sent twice cannot touch a message that has come again meanwhile.
    """

    name: str
    client: str
    settled: bool
    delivery_count: int
    prefetch: int | None = None
    priority: int = 0
    link_credit: int = 0
    waits: bool = False
    quiescing: bool = False
    handed: int = 0
    unsettled: dict[int, Stored] = field(default_factory=dict)

    def hand(self, message: Stored) -> int:
        """Hand it a message; returns the delivery's number."""
        number = self.handed
        self.handed += 1
        self.delivery_count = serial.add(self.delivery_count, 1)
        self.link_credit -= 1
        self.unsettled[number] = message
        return number

    def take(self, numbers: Iterable[int]) -> list[Stored]:
        """Take deliveries off it; those that it does not hold are left out."""
        return [self.unsettled.pop(number) for number in numbers if number in self.unsettled]

    def give_credit_back(self) -> None:
        """Drain: delivery-count moves on by the unused credit, credit becomes 0 [2.6.7]."""
        credit, self.link_credit = self.link_credit, 0
        # In thirds: serial.add takes at most 2**31 - 1, a credit may be twice that and one more.
        third = credit // 3
        for part in (third, third, credit - 2 * third):
            self.delivery_count = serial.add(self.delivery_count, part)


def next_active(
    consumers: Mapping[str, QuorumConsumer], active: str | None
) -> tuple[QuorumConsumer | None, list[QuorumConsumer]]:
    """Who is to be the single active consumer, and whose `quiescing` has changed.

    Of those who wait the highest priority wins, then the most credit, then who attached first. An
    active consumer is not cut off: it is quiescing until it holds nothing any more, and waits then
    (`rabbit_fifo.erl:activate_next_consumer`, `sort_waiting`, since RabbitMQ 4.0).
    """
    now = consumers.get(active) if active is not None else None
    made_way = now is not None and now.quiescing and not now.unsettled
    changed = []
    if now is not None and made_way:
        now.quiescing = False
        changed = [now]
    waiting = [one for one in consumers.values() if made_way or one is not now]
    best = max(waiting, key=lambda one: (one.priority, one.link_credit), default=None)
    if now is None or made_way or best is None:
        return best or now, changed
    if best.priority <= now.priority:
        return now, []
    if now.unsettled:
        changed = [] if now.quiescing else [now]
        now.quiescing = True
        return now, changed
    return best, [now]
