"""A quorum queue as a state machine: replicas that apply the same log come to the same state.

In settlements `message_ids` are the numbers of the consumer's deliveries, as `Handed` told them.

Rules, checked by a property test after every command (`rabbit_fifo.erl` is the source):

1. ready + unsettled + terminal == enqueued: a message is in exactly one of these places.
2. A message that comes a second time from the same publisher is not taken in again.
3. What comes back is handed out before what was never handed out, in the order it came back.
4. A consumer gets no more than its credit. Deliveries that credit brings go out with the same
   command, then the answer; so consumer credit costs an entry in the log, hence an fsync.
5. More returns than the delivery limit drop a message; which returns count depends on the version.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from workbench import serial

from .base import (
    Checkout,
    Count,
    Credit,
    Credited,
    Deliver,
    DetachConsumer,
    Dispatch,
    Dropped,
    Enqueue,
    Modify,
    Purge,
    QueueError,
    Reject,
    Release,
    Settle,
    Stored,
)
from .quorum_commands import (
    Active,
    Answered,
    ClientDown,
    Full,
    Handed,
    Logged,
    OutOfOrder,
    QuorumCheckout,
    QuorumEffect,
    QuorumReply,
    Refused,
    Resume,
)
from .quorum_consumer import QuorumConsumer, next_active
from .quorum_terms import ACQUIRED, REJECT_PUBLISH, QuorumTerms


class QuorumFifo:
    """One replica's copy of a queue.

    Args:
        name: of the queue.
        terms: what it was declared with.

    Attributes:
        active: the single active consumer; None if there is none, or every one is active.
        full: publishers are refused.
        enqueued: messages ever taken in.
        terminal: messages that have left for good.
    """

    def __init__(self, name: str, terms: QuorumTerms | None = None) -> None:
        self.name = name
        self.terms = terms or QuorumTerms()
        self.active: str | None = None
        self.full = False
        self._fresh: deque[tuple[int, Enqueue]] = deque()
        self._returns: deque[Stored] = deque()
        self._consumers: dict[str, QuorumConsumer] = {}
        self._turn: deque[str] = deque()
        self._next_enqueue: dict[str, int] = {}
        self.enqueued = 0
        self.terminal = 0
        self._unsettled = 0

    # -- reading ----------------------------------------------------------------------------

    @property
    def single_active(self) -> bool:
        """One consumer at a time gets messages."""
        return self.terms.single_active

    @property
    def ready(self) -> int:
        """Messages that wait for a consumer."""
        return len(self._fresh) + len(self._returns)

    @property
    def unsettled(self) -> int:
        """Messages handed out and not yet settled."""
        return self._unsettled

    def available_to(self, consumer: str) -> int:
        """Ready messages that a consumer could get: none if it waits behind the active one."""
        return self.ready if self._may_have(consumer) else 0

    def has_for(self, consumer: str) -> bool:
        """Whether a message is ready that this consumer could get."""
        return self.available_to(consumer) > 0

    def consumers(self) -> tuple[str, ...]:
        """Names of the attached consumers, in order of attaching."""
        return tuple(self._consumers)

    def consumer(self, name: str) -> Credited:
        """Counters of one consumer.

        Raises:
            QueueError: if it is not attached.
        """
        found = self._consumers.get(name)
        if found is None:
            attached = ", ".join(self._consumers) or "none"
            raise QueueError(f"no consumer {name} on queue {self.name}; attached now: {attached}")
        return self._credited(found)

    def unsettled_ids(self, consumer: str) -> tuple[int, ...]:
        """Numbers of the deliveries that the consumer holds, in order."""
        return tuple(self._consumers[consumer].unsettled)

    def ready_messages(self) -> tuple[Stored, ...]:
        """What is ready, in the order in which it would be handed out."""
        fresh = (_stored(number, command) for number, command in self._fresh)
        return (*self._returns, *fresh)

    def overview(self) -> dict[str, int | str]:
        """Flat picture, with the names that a classic queue's has."""
        return {
            "name": self.name,
            "ready": self.ready,
            "unsettled": self._unsettled,
            "terminal": self.terminal,
            "enqueued": self.enqueued,
            "consumers": len(self._consumers),
            **({"active": self.active or ""} if self.single_active else {}),
        }

    # -- commands ---------------------------------------------------------------------------

    def apply(self, logged: Logged) -> tuple[QuorumReply, list[QuorumEffect]]:
        """Obey one command of the log. It never fails: a command that cannot be is `Refused`."""
        effects: list[QuorumEffect] = []
        reply: QuorumReply = None
        match logged.command:
            case Enqueue() as command:
                reply = self._enqueue(logged, command, effects)
            case Settle() | Reject() as command:
                reply = self._finish(command, effects)
            case Release() | Modify() as command:
                reply = self._give_back(command, effects)
            case Credit() as command:
                reply = self._credit(logged.client, command, effects)
            case Checkout() as command:
                reply = self._checkout(logged.client, command, effects)
            case DetachConsumer(consumer=name):
                reply = self._detach(name, effects, failed=False)
            case ClientDown():
                for name, consumer in tuple(self._consumers.items()):
                    if consumer.client == logged.client:
                        self._detach(name, effects, failed=True)
            case Purge():
                reply = self._purge(effects)
            case Resume() as command:
                self._resume(logged.client, command, effects)
            case Dispatch():  # a quorum queue hands out by itself
                pass
        return reply, effects

    def _enqueue(
        self, logged: Logged, command: Enqueue, effects: list[QuorumEffect]
    ) -> QuorumReply:
        expected = self._next_enqueue.get(logged.client, 1)
        if logged.enqueue_seq != expected:
            # Taken in before: confirmed once more. From the future: something before it is lost.
            return None if logged.enqueue_seq < expected else OutOfOrder(expected)
        self._next_enqueue[logged.client] = expected + 1
        self._fresh.append((self.enqueued, command))
        self.enqueued += 1
        if self._turn:
            self._serve(effects)
        if self.terms.max_length is not None:
            self._overflow(effects)
        return None

    def _overflow(self, effects: list[QuorumEffect]) -> None:
        most = self.terms.max_length
        if most is None:
            return
        if self.terms.overflow == REJECT_PUBLISH:
            if not self.full and self.ready > most:
                self.full = True
                effects.append(Full(True))
            elif self.full and self.ready * 10 < most * 8:
                self.full = False
                effects.append(Full(False))
            return
        while self.ready > most:
            self.terminal += 1
            effects.append(Dropped(message=self._take(), reason="maxlen"))

    def _checkout(self, client: str, command: Checkout, effects: list[QuorumEffect]) -> QuorumReply:
        prefetch = command.prefetch if isinstance(command, QuorumCheckout) else None
        consumer = self._consumers.get(command.consumer)
        if consumer is not None and consumer.client != client:
            return Refused(
                f"consumer {command.consumer} is attached to queue {self.name} already; legal now:"
                " detach it first, or attach another name"
            )
        if consumer is None:
            consumer = QuorumConsumer(
                name=command.consumer,
                client=client,
                settled=command.settled,
                delivery_count=command.delivery_count,
                prefetch=prefetch,
                priority=command.priority if isinstance(command, QuorumCheckout) else 0,
                link_credit=prefetch or 0,
            )
            self._consumers[consumer.name] = consumer
            self._activate(effects)
            self._in_line(consumer)
            self._serve(effects)
        return self._credited(consumer)

    def _credit(self, client: str, command: Credit, effects: list[QuorumEffect]) -> QuorumReply:
        consumer = self._consumers.get(command.consumer)
        if consumer is None:
            return Refused(f"no consumer {command.consumer} on queue {self.name}")
        ahead = serial.diff(consumer.delivery_count, command.delivery_count)
        consumer.link_credit = max(0, command.link_credit - ahead)
        self._in_line(consumer)
        self._serve(effects)
        if command.drain:
            consumer.give_credit_back()
            self._in_line(consumer)
        credited = replace(self._credited(consumer), drain=command.drain)
        effects.append(Answered(client, consumer.name, credited))
        return credited

    def _finish(self, command: Settle | Reject, effects: list[QuorumEffect]) -> QuorumReply:
        messages = self._from(command.consumer, command.message_ids)
        self.terminal += len(messages)
        if isinstance(command, Reject):
            effects += [Dropped(message=message, reason="rejected") for message in messages]
        self._settled(command.consumer, len(messages), effects)
        return Count(count=len(messages))

    def _give_back(self, command: Release | Modify, effects: list[QuorumEffect]) -> QuorumReply:
        messages = self._from(command.consumer, command.message_ids)
        undeliverable = isinstance(command, Modify) and command.undeliverable_here
        for message in messages:
            if undeliverable:
                self.terminal += 1
                effects.append(Dropped(message=message, reason="rejected"))
            else:
                failed = isinstance(command, Modify) and command.delivery_failed
                added = command.annotations if isinstance(command, Modify) else {}
                kept = {**message.annotations, **added} if added else message.annotations
                self._return(replace(message, annotations=kept), failed, effects)
        self._settled(command.consumer, len(messages), effects)
        return Count(count=len(messages))

    def _return(self, message: Stored, failed: bool, effects: list[QuorumEffect]) -> None:
        """A message comes back, unless it has done so too often."""
        if failed:
            message = replace(message, delivery_count=message.delivery_count + 1)
        limit = self.terms.delivery_limit
        acquired = self.terms.limit_counts == ACQUIRED
        count = message.acquired_count if acquired else message.delivery_count
        if limit is not None and count > limit:
            self.terminal += 1
            effects.append(Dropped(message=message, reason="delivery_limit"))
        else:
            self._returns.append(message)

    def _settled(self, name: str, count: int, effects: list[QuorumEffect]) -> None:
        """After a settlement: credit of a prefetching consumer comes back, others may be served."""
        consumer = self._consumers.get(name)
        if consumer is not None:
            if consumer.prefetch is not None:
                consumer.link_credit += count
                self._in_line(consumer)
            if consumer.quiescing and not consumer.unsettled:
                self._activate(effects)
        self._serve(effects)
        self._overflow(effects)

    def _detach(self, name: str, effects: list[QuorumEffect], *, failed: bool) -> QuorumReply:
        consumer = self._consumers.pop(name, None)
        if consumer is None:
            return Count(count=0)
        if consumer.waits:
            self._turn.remove(name)
        self._unsettled -= len(consumer.unsettled)
        for message in consumer.unsettled.values():
            self._return(message, failed, effects)
        if name == self.active:
            self.active = None
        self._activate(effects)
        self._serve(effects)
        return Count(count=len(consumer.unsettled))

    def _purge(self, effects: list[QuorumEffect]) -> QuorumReply:
        gone = self.ready_messages()
        self._returns.clear()
        self._fresh.clear()
        self.terminal += len(gone)
        effects += [Dropped(message=message, reason="purged") for message in gone]
        self._overflow(effects)
        return Count(count=len(gone))

    def _resume(self, client: str, command: Resume, effects: list[QuorumEffect]) -> None:
        """What a consumer was handed by a leader that is gone, once more."""
        consumer = self._consumers.get(command.consumer)
        if consumer is None:
            return
        for number, message in consumer.unsettled.items():
            if number >= command.number:
                again = Deliver(consumer=consumer.name, message=message, settled=False)
                effects.append(Handed(client, number, again))

    # -- inside -----------------------------------------------------------------------------

    def _serve(self, effects: list[QuorumEffect]) -> None:
        """Hand out while there is something to hand out and somebody to take it."""
        turn = self._turn
        while turn and (self._fresh or self._returns):
            consumer = self._consumers[turn.popleft()]
            consumer.waits = False
            message = self._take()
            message = replace(message, acquired_count=message.acquired_count + 1)
            number = consumer.hand(message)
            if consumer.settled:
                self.terminal += 1
            else:
                self._unsettled += 1
            deliver = Deliver(consumer=consumer.name, message=message, settled=consumer.settled)
            effects.append(Handed(consumer.client, number, deliver))
            self._in_line(consumer)

    def _in_line(self, consumer: QuorumConsumer) -> None:
        """Put a consumer in the line of those to be served, if it may have a message now."""
        may = consumer.link_credit > 0 and self._may_have(consumer.name)
        if may and not consumer.waits:
            consumer.waits = True
            self._turn.append(consumer.name)
        elif consumer.waits and not may:
            consumer.waits = False
            self._turn.remove(consumer.name)

    def _may_have(self, consumer: str) -> bool:
        if not self.single_active:
            return True
        return consumer == self.active and not self._consumers[consumer].quiescing

    def _activate(self, effects: list[QuorumEffect]) -> None:
        """Choose the single active consumer: one with a higher priority takes over."""
        if not self.single_active:
            return
        chosen, changed = next_active(self._consumers, self.active)
        for consumer in changed:
            self._in_line(consumer)  # it is quiescing now: nothing new for it
        if chosen is not None and chosen.name != self.active:
            self.active = chosen.name
            effects.append(Active(chosen.client, chosen.name, self.ready))
            self._in_line(chosen)

    def _take(self) -> Stored:
        if self._returns:
            return self._returns.popleft()
        return _stored(*self._fresh.popleft())

    def _from(self, name: str, numbers: tuple[int, ...]) -> list[Stored]:
        """Take deliveries off a consumer; those that it does not hold (any more) are left out."""
        consumer = self._consumers.get(name)
        if consumer is None:
            return []
        messages = consumer.take(numbers)
        self._unsettled -= len(messages)
        return messages

    def _credited(self, consumer: QuorumConsumer) -> Credited:
        return Credited(
            delivery_count=consumer.delivery_count,
            link_credit=consumer.link_credit,
            available=self.available_to(consumer.name),
        )


def _stored(message_id: int, command: Enqueue) -> Stored:
    return Stored(
        message_id=message_id,
        payload=command.payload,
        message_format=command.message_format,
        origin=command.origin,
    )
