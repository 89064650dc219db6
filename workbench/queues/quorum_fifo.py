"""A quorum queue as a state machine: replicas that apply the same log come to the same state.

In settlements `message_ids` are the numbers of the consumer's deliveries, as `Handed` told them.

Rules, checked by a property test after every command (`rabbit_fifo.erl` is the source):

1. ready + unsettled + terminal == enqueued: a message is in exactly one of these places.
2. A client's commands are obeyed once each, in the order of their numbers. One that comes a second
   time, because its answer was lost, is only answered. (RabbitMQ numbers messages so, and no other
   command: purge and credit, sent again, would not be the same as sent once.)
3. What comes back is handed out before what was never handed out, in the order it came back; of
   the others the highest priority goes first. Of the consumers with credit, too.
4. A consumer gets no more than its credit. Deliveries that credit brings go out with the same
   command, then the answer; so consumer credit costs an entry in the log, hence an fsync.
5. More returns than the delivery limit drop a message; which returns count depends on the version.
6. No more is ready than the limits allow, save under `reject-publish` what was under way; nothing
   is handed out that is too old by the time that the log tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench import serial

from .base import (
    Checkout,
    Count,
    Credit,
    Credited,
    Deliver,
    DetachConsumer,
    Dropped,
    Enqueue,
    Expire,
    Modify,
    Purge,
    QueueError,
    Reject,
    Release,
    Settle,
    Stored,
)
from .limits import PURGED, REJECTED
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
from .quorum_consumer import QuorumConsumer
from .quorum_limits import QuorumLimits
from .quorum_line import QuorumLine
from .quorum_ready import QuorumReady
from .quorum_terms import REJECT_PUBLISH, QuorumTerms
from .raft_rules import RIGHT, RaftRules

DELIVERY_LIMIT = "delivery_limit"


class QuorumFifo:
    """One replica's copy of a queue.

    Args:
        name: of the queue.
        terms: what it was declared with.
        rules: that it keeps.

    Attributes:
        enqueued: messages ever taken in.
        terminal: messages that have left for good.
        now_us: the latest time that a command has told.
    """

    def __init__(
        self, name: str, terms: QuorumTerms | None = None, rules: RaftRules = RIGHT
    ) -> None:
        self.name = name
        self.terms = terms or QuorumTerms()
        self.enqueued = 0
        self.terminal = 0
        self.now_us = 0
        self._ready = QuorumReady(
            in_order=rules.returns_in_order, two_priorities=self.terms.two_priorities
        )
        self._limits = QuorumLimits(self.terms, self._ready)
        self._line = QuorumLine(single_active=self.terms.single_active)
        self._next_seq: dict[str, int] = {}
        self._unsettled = 0

    # -- reading ----------------------------------------------------------------------------

    @property
    def single_active(self) -> bool:
        """One consumer at a time gets messages."""
        return self.terms.single_active

    @property
    def active(self) -> str | None:
        """The single active consumer; None if there is none, or every one is active."""
        return self._line.active

    @property
    def full(self) -> bool:
        """Publishers are refused."""
        return self._limits.full

    @property
    def ready(self) -> int:
        """Messages that wait for a consumer."""
        return len(self._ready)

    @property
    def ready_octets(self) -> int:
        """Their sizes, added up."""
        return self._ready.octets

    @property
    def unsettled(self) -> int:
        """Messages handed out and not yet settled."""
        return self._unsettled

    def available_to(self, consumer: str) -> int:
        """Messages ready, as far as they are for this consumer: none if it waits behind another."""
        return self.ready if self._line.is_active(consumer) else 0

    def has_for(self, consumer: str) -> bool:
        """Whether a message is ready that this consumer could get."""
        return self.ready > 0 and self._line.may_have(consumer)

    def consumers(self) -> tuple[str, ...]:
        """Names of the attached consumers, in order of attaching."""
        return self._line.names()

    def consumer(self, name: str) -> Credited:
        """Counters of one consumer.

        Raises:
            QueueError: if it is not attached.
        """
        found = self._line.get(name)
        if found is None:
            attached = ", ".join(self._line.names()) or "none"
            raise QueueError(f"no consumer {name} on queue {self.name}; attached now: {attached}")
        return self._credited(found)

    def unsettled_ids(self, consumer: str) -> tuple[int, ...]:
        """Numbers of the deliveries that the consumer holds, in order; none if it is unknown."""
        found = self._line.get(consumer)
        return () if found is None else tuple(found.unsettled)

    def ready_messages(self) -> tuple[Stored, ...]:
        """What is ready, in the order in which it would be handed out."""
        return self._ready.listed()

    def deadline_us(self) -> int | None:
        """When the first message is too old, if nothing happens before; None is never."""
        return self._ready.head_expires_us() if self._limits.ages else None

    def overview(self) -> dict[str, int | str]:
        """Flat picture, with the names that a classic queue's has."""
        return {
            "name": self.name,
            "ready": self.ready,
            "unsettled": self._unsettled,
            "terminal": self.terminal,
            "enqueued": self.enqueued,
            "consumers": len(self._line),
            **({"active": self.active or ""} if self.single_active else {}),
        }

    def standing(self) -> list[QuorumEffect]:
        """What clients are told when it changes, as it is now: for those who may have missed it."""
        effects: list[QuorumEffect] = []
        if self.terms.overflow == REJECT_PUBLISH:
            effects.append(Full(self.full))
        if self.single_active:
            for consumer in self._line:
                name, active = consumer.name, self._line.is_active(consumer.name)
                effects.append(Active(consumer.client, name, self.available_to(name), active))
        return effects

    # -- commands ---------------------------------------------------------------------------

    def apply(self, logged: Logged) -> tuple[QuorumReply, list[QuorumEffect]]:
        """Obey one command of the log. It never fails: a command that cannot be is `Refused`."""
        effects: list[QuorumEffect] = []
        reply: QuorumReply = None
        if logged.t_us > self.now_us:  # what is sent again tells an earlier time
            self.now_us = logged.t_us
        if logged.seq:
            expected = self._next_seq.get(logged.client, 1)
            if logged.seq > expected:
                return OutOfOrder(expected), effects
            if logged.seq < expected:
                if isinstance(logged.command, Credit):
                    reply = self._answer(logged, logged.command, effects)
                return reply, effects
            self._next_seq[logged.client] = expected + 1
        match logged.command:
            case Enqueue() as command:
                self._enqueue(command, effects)
            case Settle() | Reject() as command:
                reply = self._finish(command, effects)
            case Release() | Modify() as command:
                reply = self._give_back(command, effects)
            case Credit() as command:
                reply = self._credit(logged, command, effects)
            case Checkout() as command:
                reply = self._checkout(logged.client, command, effects)
            case DetachConsumer(consumer=name, delivery_failed=failed):
                reply = self._detach(name, effects, failed=failed)
            case ClientDown():
                for consumer in self._line:
                    if consumer.client == logged.client:
                        self._detach(consumer.name, effects, failed=True)
            case Purge():
                reply = self._purge(effects)
            case Resume() as command:
                self._resume(logged.client, command, effects)
            case Expire():
                self._serve(effects)
            case _:  # a quorum queue hands out by itself, and keeps no time of its own
                pass
        return reply, effects

    def _enqueue(self, command: Enqueue, effects: list[QuorumEffect]) -> None:
        expires_us = self._limits.expires_us(self.now_us, command.ttl_ms)
        self._ready.append(self.enqueued, command, expires_us)
        self.enqueued += 1
        if self._line.turn or self._limits.ages or self._limits.bounded:
            self._serve(effects)

    def _checkout(self, client: str, command: Checkout, effects: list[QuorumEffect]) -> QuorumReply:
        prefetch = command.prefetch if isinstance(command, QuorumCheckout) else None
        consumer = self._line.get(command.consumer)
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
                priority=command.priority,
                link_credit=prefetch or 0,
            )
            effects += self._line.attach(consumer, self.ready)
            self._serve(effects)
        return self._credited(consumer)

    def _credit(self, logged: Logged, command: Credit, effects: list[QuorumEffect]) -> QuorumReply:
        consumer = self._line.get(command.consumer)
        if consumer is not None:
            ahead = serial.diff(consumer.delivery_count, command.delivery_count)
            consumer.link_credit = max(0, command.link_credit - ahead)
            self._line.place(consumer)
            self._serve(effects)
            if command.drain:
                consumer.give_credit_back()
                self._line.place(consumer)
        return self._answer(logged, command, effects)

    def _answer(self, logged: Logged, command: Credit, effects: list[QuorumEffect]) -> QuorumReply:
        """How a consumer's credit stands, to whoever has sent some."""
        consumer = self._line.get(command.consumer)
        if consumer is None:
            return Refused(f"no consumer {command.consumer} on queue {self.name}")
        credited = replace(self._credited(consumer), drain=command.drain)
        effects.append(
            Answered(logged.client, consumer.name, logged.seq, consumer.handed, credited)
        )
        return credited

    def _finish(self, command: Settle | Reject, effects: list[QuorumEffect]) -> QuorumReply:
        messages = self._from(command.consumer, command.message_ids)
        self.terminal += len(messages)
        if isinstance(command, Reject):
            effects += [
                Dropped(message=message.rejected(command), reason=REJECTED) for message in messages
            ]
        self._settled(command.consumer, len(messages), effects)
        return Count(count=len(messages))

    def _give_back(self, command: Release | Modify, effects: list[QuorumEffect]) -> QuorumReply:
        messages = self._from(command.consumer, command.message_ids)
        undeliverable = isinstance(command, Modify) and command.undeliverable_here
        for message in messages:
            if undeliverable:
                self._gone([Dropped(message=message, reason=REJECTED)], effects)
            else:
                failed = isinstance(command, Modify) and command.delivery_failed
                added = command.annotations if isinstance(command, Modify) else {}
                kept = {**message.annotations, **added} if added else message.annotations
                self._return(replace(message, annotations=kept), failed, effects)
        # RabbitMQ's `return` tells nobody that he has made way, its `complete` does.
        self._settled(command.consumer, len(messages), effects, told=undeliverable)
        return Count(count=len(messages))

    def _return(self, message: Stored, failed: bool, effects: list[QuorumEffect]) -> None:
        """A message comes back, unless it has done so too often."""
        if failed:
            message = message.failed()
        if self._limits.bears(message):
            self._ready.put_back(message)
        else:
            self._gone([Dropped(message=message, reason=DELIVERY_LIMIT)], effects)

    def _settled(
        self, name: str, count: int, effects: list[QuorumEffect], *, told: bool = True
    ) -> None:
        """After a settlement: credit of a prefetching consumer comes back, others may be served."""
        consumer = self._line.get(name)
        if consumer is not None:
            if consumer.prefetch is not None:
                consumer.link_credit += count
                self._line.place(consumer)
            if consumer.quiescing and not consumer.unsettled:
                effects += self._line.activate(self.ready, told=told)
        self._serve(effects)

    def _detach(self, name: str, effects: list[QuorumEffect], *, failed: bool) -> QuorumReply:
        consumer = self._line.detach(name)
        if consumer is None:
            return Count(count=0)
        self._unsettled -= len(consumer.unsettled)
        for message in consumer.unsettled.values():
            self._return(message, failed, effects)
        effects += self._line.activate(self.ready)
        self._serve(effects)
        return Count(count=len(consumer.unsettled))

    def _purge(self, effects: list[QuorumEffect]) -> QuorumReply:
        gone = [Dropped(message=message, reason=PURGED) for message in self._ready.clear()]
        self._gone(gone, effects)
        self._serve(effects)  # who was refused may be let again
        return Count(count=len(gone))

    def _resume(self, client: str, command: Resume, effects: list[QuorumEffect]) -> None:
        """What a consumer was handed by a leader that is gone, once more."""
        consumer = self._line.get(command.consumer)
        if consumer is None:
            return
        for number, message in consumer.unsettled.items():
            if number >= command.number:
                again = Deliver(consumer=consumer.name, message=message, settled=consumer.settled)
                effects.append(Handed(client, number, again))

    # -- inside -----------------------------------------------------------------------------

    def _serve(self, effects: list[QuorumEffect]) -> None:
        """Hand out while there is something and somebody to take it; then look at the limits."""
        line, ready, limits = self._line, self._ready, self._limits
        if limits.ages:
            self._gone(limits.expired(self.now_us), effects)
        while line.turn and len(ready):
            consumer = line.serve_next()
            message = ready.take().handed_out()
            number = consumer.hand(message)
            self._unsettled += 1
            deliver = Deliver(consumer=consumer.name, message=message, settled=consumer.settled)
            effects.append(Handed(consumer.client, number, deliver))
            line.place(consumer)
            if limits.ages:
                self._gone(limits.expired(self.now_us), effects)
        if limits.bounded:
            self._gone(limits.overflow(), effects)
            if limits.ages:  # what stood behind a younger one may be the first now
                self._gone(limits.expired(self.now_us), effects)

    def _gone(self, caused: Sequence[QuorumEffect], effects: list[QuorumEffect]) -> None:
        """Messages have left for good, and whatever else came of a limit."""
        self.terminal += sum(isinstance(effect, Dropped) for effect in caused)
        effects += caused

    def _from(self, name: str, numbers: tuple[int, ...]) -> list[Stored]:
        """Take deliveries off a consumer; those that it does not hold (any more) are left out."""
        consumer = self._line.get(name)
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
            active=self._line.is_active(consumer.name),
        )
