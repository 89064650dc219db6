"""Consumers of a queue: their credit, whose turn it is, and who is the active one.

Credit is counted as on an AMQP 1.0 link, by delivery-count [2.6.7]. Of the consumers that have
credit those with the highest priority are served first, and among equals each in turn
(`rabbit_queue_consumers.erl`, which keeps them in a priority queue).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from workbench.serial import advanced, following, link_credit_snd

from .base import Activated, Checkout, Credit, CreditMode, Drained, Prefetch, QueueError, Stored


@dataclass(slots=True, kw_only=True)
class Consumer:
    """One attached consumer.

    Attributes:
        delivery_count: moves with every message handed out, as the link's does.
        settled: messages leave the queue as they are handed out.
        priority: a higher one is served first.
        returns_credit: each settlement gives credit back.
        link_credit: how many more it may get; never below 0.
        drain: the receiver wants its credit used up or given back.
        unsettled: handed out and not yet settled, by message id.
    """

    name: str
    settled: bool
    priority: int = 0
    delivery_count: int = 0
    returns_credit: bool = False
    link_credit: int = 0
    drain: bool = False
    unsettled: dict[int, Stored] = field(default_factory=dict)

    @property
    def octets(self) -> int:
        """Sizes of the messages that it has not settled, added up."""
        return sum(len(message.payload) for message in self.unsettled.values())

    def begin(self, mode: CreditMode) -> None:
        """Set the counters to what they are before anything is handed out."""
        if isinstance(mode, Prefetch):
            self.link_credit, self.returns_credit = mode.count, True
        else:
            self.delivery_count = mode.delivery_count

    def grant(self, command: Credit) -> None:
        """Work a receiver's word into the counters."""
        self.link_credit = link_credit_snd(
            command.delivery_count, command.link_credit, self.delivery_count
        )
        self.drain = command.drain

    def count_delivery(self) -> None:
        """A message is handed out."""
        self.delivery_count = following(self.delivery_count)
        self.link_credit -= 1

    def count_settled(self, count: int) -> None:
        """Messages are settled or went back: a prefetching consumer may get as many more."""
        if self.returns_credit:
            self.link_credit += count

    def give_back(self) -> list[Drained]:
        """Drain: delivery-count moves on by the unused credit, credit becomes 0 [2.6.7]."""
        given_back, self.link_credit = self.link_credit, 0
        if not given_back:
            return []
        self.delivery_count = moved = advanced(self.delivery_count, given_back)
        return [Drained(consumer=self.name, delivery_count=moved, given_back=given_back)]

    def held(self, message_ids: tuple[int, ...]) -> list[Stored]:
        """The unsettled messages with these numbers.

        Raises:
            QueueError: it does not hold one of them, or one is named twice.
        """
        missing = [number for number in message_ids if number not in self.unsettled]
        if missing or len(set(message_ids)) != len(message_ids):
            listed = ", ".join(map(str, missing)) or "one of them twice"
            raise QueueError(
                f"{self.name} cannot settle {listed}: it holds {len(self.unsettled)} unsettled"
                " messages"
            )
        return [self.unsettled[number] for number in message_ids]


class Consumers:
    """All consumers of one queue.

    Args:
        queue: its name, for texts.
        single_active: one consumer at a time gets messages.

    Attributes:
        active: the single active consumer; None if there is none, or every one is active.
    """

    def __init__(self, queue: str, *, single_active: bool = False) -> None:
        self.single_active = single_active
        self.active: str | None = None
        self._queue = queue
        self._all: dict[str, Consumer] = {}
        self._cancelled: dict[str, Consumer] = {}  # that have something to settle
        # Whose turn it is: priorities from the highest, and in each the first in line first.
        self._turns: dict[int, deque[str]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, name: str) -> bool:
        return name in self._all or name in self._cancelled

    def __iter__(self) -> Iterator[Consumer]:
        return iter(self._all.values())

    def names(self) -> tuple[str, ...]:
        """In order of attaching."""
        return tuple(self._all)

    def known(self, name: str) -> Consumer:
        """The consumer of that name.

        Raises:
            QueueError: there is none.
        """
        try:
            return self._all.get(name) or self._cancelled[name]
        except KeyError:
            attached = ", ".join(self._all) or "none"
            raise QueueError(
                f"no consumer {name} on queue {self._queue}; attached now: {attached}"
            ) from None

    def attach(self, command: Checkout) -> Consumer:
        """One more; its credit is what it prefetches, or none yet.

        Raises:
            QueueError: the name is taken.
        """
        if command.consumer in self._all:
            raise QueueError(
                f"consumer {command.consumer} is attached to queue {self._queue} already; legal"
                " now: detach it first, or attach another name"
            )
        consumer = Consumer(
            name=command.consumer,
            settled=command.settled,
            priority=command.priority,
        )
        consumer.begin(command.mode)
        self._all[consumer.name] = consumer
        if consumer.priority not in self._turns:
            self._turns[consumer.priority] = deque()
            self._turns = dict(sorted(self._turns.items(), reverse=True))
        self._turns[consumer.priority].append(consumer.name)
        return consumer

    @property
    def unsettled(self) -> int:
        """Messages that are not settled."""
        return sum(len(one.unsettled) for one in (*self._all.values(), *self._cancelled.values()))

    @property
    def octets(self) -> int:
        """Their sizes, added up."""
        return sum(one.octets for one in (*self._all.values(), *self._cancelled.values()))

    def cancel(self, name: str) -> None:
        """One gets nothing more, and can still settle; if it was the active one, nobody is now.

        Raises:
            QueueError: there is none of that name.
        """
        consumer = self.detach(name)
        consumer.link_credit, consumer.returns_credit = 0, False
        if consumer.unsettled:
            self._cancelled[name] = consumer

    def settled(self, consumer: Consumer) -> None:
        """It has settled messages: one that was cancelled goes with the last."""
        if not consumer.unsettled:
            self._cancelled.pop(consumer.name, None)

    def detach(self, name: str) -> Consumer:
        """One fewer; if it was the active one, nobody is now.

        Raises:
            QueueError: there is none of that name.
        """
        consumer = self.known(name)
        if self._cancelled.pop(name, None) is not None:
            return consumer
        del self._all[name]
        line = self._turns[consumer.priority]
        line.remove(name)
        if not line:
            del self._turns[consumer.priority]
        if name == self.active:
            self.active = None
        return consumer

    def in_turn(self) -> Iterator[Consumer]:
        """In the order in which they are to be served: by priority, among equals by turn."""
        for line in self._turns.values():
            for name in line:
                yield self._all[name]

    def served(self, consumer: Consumer) -> None:
        """It has had its turn: behind its equals."""
        line = self._turns[consumer.priority]
        line.remove(consumer.name)
        line.append(consumer.name)

    def may_have(self, name: str) -> bool:
        """Whether it is not one that waits behind the active one."""
        return not self.single_active or name == self.active

    def activate(self) -> list[Activated]:
        """Make one the active consumer if there is none: of the highest priority the oldest.

        A consumer of a higher priority that comes later does not take over: in RabbitMQ only a
        quorum queue knows that.
        """
        if not self.single_active or self.active is not None or not self._all:
            return []
        best = max(consumer.priority for consumer in self)
        self.active = next(one.name for one in self if one.priority == best)
        return [Activated(consumer=self.active)]
