"""A classic queue: one ordered store of ready messages, consumers served in turn.

Three rules, checked by a property test after every command:

1. ready + unsettled + terminal == enqueued: a message is in exactly one of these places.
2. Messages are handed out in the order they came; what comes back goes to its old place.
3. A consumer gets no more than its credit, and credit is absolute [AMQP 1.0, 2.6.7].

With a single active consumer a fourth: only the consumer attached longest gets messages. The others
wait with their credit, and nothing is available to them. When the active one leaves, what it held
goes back to its place first, and then the next one is active (`rabbit_queue_consumers.erl`).
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field, replace

from workbench import serial

from .arguments import NO_ARGUMENTS, QueueArguments
from .base import (
    Activated,
    Checkout,
    Command,
    Confirm,
    Count,
    Credit,
    Credited,
    Deliver,
    DetachConsumer,
    Dispatch,
    Drained,
    Dropped,
    Effect,
    Enqueue,
    Meta,
    Modify,
    Purge,
    QueueError,
    Reject,
    Release,
    Reply,
    Requeued,
    Settle,
    Stored,
)

NO_META = Meta()


@dataclass(slots=True, kw_only=True)
class _Consumer:
    """One attached consumer.

    Attributes:
        delivery_count: moves with every message handed out, as the link's does.
        link_credit: how many more it may get; never below 0.
        drain: the receiver wants its credit used up or given back.
        settled: messages leave the queue as they are handed out.
        unsettled: handed out and not yet settled, by message id.
    """

    name: str
    delivery_count: int
    settled: bool
    link_credit: int = 0
    drain: bool = False
    unsettled: dict[int, Stored] = field(default_factory=dict)


class ClassicQueue:
    """Commands in, effects out; see `workbench.queues.base` for both.

    Args: its name, and how it was declared.
    """

    def __init__(self, name: str, arguments: QueueArguments = NO_ARGUMENTS) -> None:
        self.name = name
        self.arguments = arguments
        self.single_active = arguments.single_active_consumer
        self._active: str | None = None
        self._fresh: deque[Stored] = deque()  # never handed out, in order
        # What came back. Every fresh message is younger than any of these, because fresh ones are
        # handed out in order, so the oldest ready message is at the top here if there is one.
        self._returned: list[tuple[int, Stored]] = []
        self._consumers: dict[str, _Consumer] = {}
        self._turn: deque[str] = deque()  # whose turn it is to be served, first in line first
        self._enqueued = 0
        self._terminal = 0
        self._unsettled = 0

    # -- reading ----------------------------------------------------------------------------

    @property
    def ready(self) -> int:
        """Messages that wait for a consumer."""
        return len(self._fresh) + len(self._returned)

    @property
    def unsettled(self) -> int:
        """Messages handed out and not yet settled."""
        return self._unsettled

    @property
    def enqueued(self) -> int:
        """Messages ever taken in."""
        return self._enqueued

    @property
    def terminal(self) -> int:
        """Messages that have left for good: accepted, rejected, sent settled, purged."""
        return self._terminal

    @property
    def active(self) -> str | None:
        """The single active consumer; None if there is none, or every one is active."""
        return self._active

    def available_to(self, consumer: str) -> int:
        """Ready messages that a consumer could get: none if it waits behind the active one."""
        return self.ready if self._may_have(consumer) else 0

    def consumers(self) -> tuple[str, ...]:
        """Names of the attached consumers, in order of attaching."""
        return tuple(self._consumers)

    def consumer(self, name: str) -> Credited:
        """Counters of one consumer."""
        return self._credited(self._known(name))

    def unsettled_ids(self, consumer: str) -> tuple[int, ...]:
        """Message ids that the consumer holds, in order of delivery."""
        return tuple(self._known(consumer).unsettled)

    def has_for(self, consumer: str) -> bool:
        """Whether a message is ready that this consumer could get."""
        return self._oldest(consumer) is not None

    def next_out(self, unable: frozenset[str] = frozenset()) -> tuple[str, Stored] | None:
        """The consumer to whom a `Dispatch` would hand a message, and the message as it would go.

        Args:
            unable: consumers that cannot take one now, as in `Dispatch`.
        """
        for name in self._turn:
            if self._consumers[name].link_credit == 0 or name in unable:
                continue
            message = self._oldest(name)
            if message is not None:
                return name, replace(message, acquired_count=message.acquired_count + 1)
        return None

    def deliverable(self, unable: frozenset[str] = frozenset()) -> bool:
        """True if a `Dispatch` would hand out a message or give credit back."""
        for consumer in self._consumers.values():
            if consumer.link_credit > 0 and (
                (consumer.name not in unable and self.has_for(consumer.name))
                or (consumer.drain and not self.has_for(consumer.name))
            ):
                return True
        return False

    def overview(self) -> dict[str, int | str]:
        """Flat picture: `name`, `ready`, `unsettled`, `terminal`, `enqueued`, `consumers`."""
        return {
            "name": self.name,
            "ready": self.ready,
            "unsettled": self._unsettled,
            "terminal": self._terminal,
            "enqueued": self._enqueued,
            "consumers": len(self._consumers),
            **({"active": self._active or ""} if self.single_active else {}),
        }

    # -- commands ---------------------------------------------------------------------------

    def apply(self, command: Command, meta: Meta = NO_META) -> tuple[Reply, list[Effect]]:
        """Obey one command.

        Returns:
            The reply to whoever commanded, and the effects to be carried out in order.

        Raises:
            QueueError: if the command cannot be obeyed; the queue is as it was.
        """
        match command:
            case Enqueue():
                return self._enqueue(command)
            case Dispatch():
                return None, self._dispatch(command.unable)
            case Credit():
                return self._credit(command)
            case Settle() | Reject():
                return self._finish(command)
            case Release() | Modify():
                return self._give_back(command)
            case Checkout():
                return self._checkout(command)
            case DetachConsumer():
                return self._detach(command)
            case Purge():
                return self._purge()

    def _enqueue(self, command: Enqueue) -> tuple[Reply, list[Effect]]:
        self._fresh.append(
            Stored(
                message_id=self._enqueued,
                payload=command.payload,
                message_format=command.message_format,
            )
        )
        self._enqueued += 1
        return None, [Confirm(publish=command.publish)]

    def _checkout(self, command: Checkout) -> tuple[Reply, list[Effect]]:
        if command.consumer in self._consumers:
            raise QueueError(
                f"consumer {command.consumer} is attached to queue {self.name} already; legal now:"
                " detach it first, or attach another name"
            )
        consumer = _Consumer(
            name=command.consumer, delivery_count=command.delivery_count, settled=command.settled
        )
        self._consumers[consumer.name] = consumer
        self._turn.append(consumer.name)
        return self._credited(consumer), self._activate()

    def _credit(self, command: Credit) -> tuple[Reply, list[Effect]]:
        consumer = self._known(command.consumer)
        # delivery-count_rcv + link-credit_rcv - delivery-count_snd, with the small serial
        # difference taken first so that every 32-bit credit is legal.
        ahead = serial.diff(consumer.delivery_count, command.delivery_count)
        consumer.link_credit = max(0, command.link_credit - ahead)
        consumer.drain = command.drain
        effects: list[Effect] = []
        if consumer.drain and not self.has_for(consumer.name):
            effects += self._give_credit_back(consumer)
        return self._credited(consumer), effects

    def _dispatch(self, unable: frozenset[str]) -> list[Effect]:
        found = self.next_out(unable)
        if found is None:
            return self._drained()
        name, message = found
        self._turn.remove(name)
        self._turn.append(name)
        self._take(message.message_id)
        return [self._deliver(self._consumers[name], message), *self._drained()]

    def _deliver(self, consumer: _Consumer, message: Stored) -> Deliver:
        consumer.delivery_count = serial.add(consumer.delivery_count, 1)
        consumer.link_credit -= 1
        if consumer.settled:
            self._terminal += 1
        else:
            consumer.unsettled[message.message_id] = message
            self._unsettled += 1
        return Deliver(consumer=consumer.name, message=message, settled=consumer.settled)

    def _drained(self) -> list[Effect]:
        effects: list[Effect] = []
        for consumer in self._consumers.values():
            if consumer.drain and consumer.link_credit > 0 and not self.has_for(consumer.name):
                effects += self._give_credit_back(consumer)
        return effects

    def _give_credit_back(self, consumer: _Consumer) -> list[Effect]:
        """Drain: delivery-count moves on by the unused credit, credit becomes 0 [2.6.7]."""
        given_back, consumer.link_credit = consumer.link_credit, 0
        if not given_back:
            return []
        # In thirds: serial.add takes at most 2**31 - 1, a credit may be twice that and one more.
        third = given_back // 3
        moved = serial.add(serial.add(consumer.delivery_count, third), third)
        consumer.delivery_count = moved = serial.add(moved, given_back - 2 * third)
        return [Drained(consumer=consumer.name, delivery_count=moved, given_back=given_back)]

    def _finish(self, command: Settle | Reject) -> tuple[Reply, list[Effect]]:
        messages = self._held(command.consumer, command.message_ids)
        self._forget(command.consumer, command.message_ids)
        self._terminal += len(messages)
        effects: list[Effect] = []
        if isinstance(command, Reject):
            effects += [Dropped(message=message, reason="rejected") for message in messages]
        return Count(count=len(messages)), effects

    def _give_back(self, command: Release | Modify) -> tuple[Reply, list[Effect]]:
        messages = self._held(command.consumer, command.message_ids)
        self._forget(command.consumer, command.message_ids)
        for message in messages:
            if isinstance(command, Modify):
                message = _modified(message, command)
            self._put_back(message)
        return Count(count=len(messages)), self._drained()

    def _detach(self, command: DetachConsumer) -> tuple[Reply, list[Effect]]:
        consumer = self._known(command.consumer)
        del self._consumers[consumer.name]
        self._turn.remove(consumer.name)
        self._unsettled -= len(consumer.unsettled)
        for message in consumer.unsettled.values():
            self._put_back(message)
        if consumer.name == self._active:
            self._active = None
        effects: list[Effect] = []
        if consumer.unsettled:
            effects = [Requeued(consumer=consumer.name, count=len(consumer.unsettled))]
        effects += [*self._activate(), *self._drained()]
        return Count(count=len(consumer.unsettled)), effects

    def _purge(self) -> tuple[Reply, list[Effect]]:
        gone = [message for _, message in sorted(self._returned)] + list(self._fresh)
        self._returned.clear()
        self._fresh.clear()
        self._terminal += len(gone)
        dropped: list[Effect] = [Dropped(message=message, reason="purged") for message in gone]
        return Count(count=len(gone)), dropped + self._drained()

    # -- inside -----------------------------------------------------------------------------

    def _credited(self, consumer: _Consumer) -> Credited:
        return Credited(
            delivery_count=consumer.delivery_count,
            link_credit=consumer.link_credit,
            available=self.available_to(consumer.name),
            drain=consumer.drain,
        )

    def _known(self, name: str) -> _Consumer:
        try:
            return self._consumers[name]
        except KeyError:
            attached = ", ".join(self._consumers) or "none"
            raise QueueError(
                f"no consumer {name} on queue {self.name}; attached now: {attached}"
            ) from None

    def _held(self, consumer: str, message_ids: tuple[int, ...]) -> list[Stored]:
        unsettled = self._known(consumer).unsettled
        missing = [number for number in message_ids if number not in unsettled]
        if missing or len(set(message_ids)) != len(message_ids):
            listed = ", ".join(map(str, missing)) or "one of them twice"
            raise QueueError(
                f"{consumer} cannot settle {listed}: it holds {len(unsettled)} unsettled messages"
            )
        return [unsettled[number] for number in message_ids]

    def _forget(self, consumer: str, message_ids: tuple[int, ...]) -> None:
        unsettled = self._consumers[consumer].unsettled
        for number in message_ids:
            del unsettled[number]
        self._unsettled -= len(message_ids)

    def _put_back(self, message: Stored) -> None:
        heapq.heappush(self._returned, (message.message_id, message))

    def _may_have(self, consumer: str) -> bool:
        return not self.single_active or consumer == self._active

    def _activate(self) -> list[Effect]:
        """Make the consumer that waits longest the active one, if there is none."""
        if not self.single_active or self._active is not None or not self._consumers:
            return []
        self._active = next(iter(self._consumers))
        return [Activated(consumer=self._active)]

    def _oldest(self, consumer: str) -> Stored | None:
        """The oldest ready message that the consumer may have; not those it has barred."""
        if not self._may_have(consumer):
            return None
        if self._returned:
            oldest = self._returned[0][1]
            if consumer not in oldest.barred:
                return oldest
            rest = [entry for entry in self._returned if consumer not in entry[1].barred]
            if rest:
                return min(rest)[1]
        return self._fresh[0] if self._fresh else None

    def _take(self, message_id: int) -> None:
        """Take a ready message out: most often the oldest that came back, or the oldest of all."""
        if self._returned and self._returned[0][0] == message_id:
            heapq.heappop(self._returned)
        elif self._fresh and self._fresh[0].message_id == message_id:
            self._fresh.popleft()
        else:
            self._returned = [entry for entry in self._returned if entry[0] != message_id]
            heapq.heapify(self._returned)


def _modified(message: Stored, command: Modify) -> Stored:
    return replace(
        message,
        delivery_count=message.delivery_count + (1 if command.delivery_failed else 0),
        annotations={**message.annotations, **command.annotations},
        barred=message.barred | ({command.consumer} if command.undeliverable_here else frozenset()),
    )
