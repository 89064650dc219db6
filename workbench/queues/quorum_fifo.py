"""A quorum queue as a state machine: replicas that apply the same log come to the same state.

A command in the log holds data alone: who sent it and with which number, and the time that its
sender's clock showed. The effects are the same on every replica too; the leader's alone are carried
out. In settlements `message_ids` are the numbers of the consumer's deliveries, as `Handed` told
them.

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

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from .arguments import QUORUM, REJECT_PUBLISH, QueueArguments
from .base import (
    Cancel,
    Checkout,
    Command,
    Count,
    Credit,
    CreditReply,
    DeadLettered,
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
    Reply,
    Settle,
    Stored,
)
from .consumers import Consumer
from .limits import DELIVERY_LIMIT, EXPIRED, MAXLEN, PURGED, REJECTED, Limits
from .raft import RIGHT, RaftRules
from .ready import FifoReady

PLAIN_QUORUM = QueueArguments(queue_type=QUORUM)
DEFAULT_DELIVERY_LIMIT = 20  # rabbit_quorum_queue.erl, since 4.0
ACQUIRED, FAILED = "acquired", "failed"

# -- commands -------------------------------------------------------------------------------


class Resume(Struct, frozen=True, gc=False, kw_only=True):
    """A consumer asks, under a new leader, for deliveries that may have been lost on the way.

    Attributes:
        number: of the first delivery that it has not seen.
    """

    consumer: str
    number: int


QuorumCommand = Command | Resume


class Logged(NamedTuple):
    """A command as it stands in the log.

    Attributes:
        client: who sent it.
        seq: its number among that client's commands, from 1; the answer names it, and a command
            that comes a second time is known by it. 0: it is never sent again.
        enqueue_seq: its number among that client's messages, from 1; 0 if it is no message.
        t_us: when it was sent.
    """

    client: str
    seq: int
    enqueue_seq: int
    command: QuorumCommand
    t_us: int = 0


# -- replies and effects --------------------------------------------------------------------


class OutOfOrder(NamedTuple):
    """An earlier command of this client is missing: this one was not obeyed; send all again."""

    expected: int


class NotObeyed(NamedTuple):
    """The command cannot be obeyed; the text says why, and what is legal."""

    reason: str


QuorumReply = Reply | OutOfOrder | NotObeyed


class Handed(NamedTuple):
    """A message goes to a consumer.

    Attributes:
        client: behind which the consumer is.
        number: of the delivery among this consumer's, from 0.
    """

    client: str
    number: int
    deliver: Deliver


class Answered(NamedTuple):
    """The answer to a consumer's credit; the deliveries that it brought went out before.

    Attributes:
        seq: of the command that granted the credit, or took it.
        number: of the next delivery: a client that has not seen those before it waits for them.
    """

    client: str
    consumer: str
    seq: int
    number: int
    credited: CreditReply


class Active(NamedTuple):
    """On a queue with a single active consumer this one is it from now on, or no longer.

    Attributes:
        available: messages ready for it then, before it was handed any.
        active: False: it has made way for one of a higher priority.
    """

    client: str
    consumer: str
    available: int
    active: bool = True


class Full(NamedTuple):
    """Overflow `reject-publish`: the queue is full, or no longer; told to every publisher."""

    full: bool


QuorumEffect = Handed | Answered | Active | Full | Dropped | DeadLettered

# -- consumers ------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class FifoConsumer(Consumer):
    """One attached consumer.

    If its messages are sent settled, its client settles them as they come, so that one that is lost
    on the way to the client is not lost (`rabbit_fifo_client.erl:maybe_auto_ack`). `unsettled` goes
    by the delivery's number: settlements name that, so one that is sent twice cannot touch a
    message that has come again meanwhile.

    Attributes:
        client: behind which it is.
        waits: it is in the line of those to be served.
        quiescing: it was active and gets nothing more; a consumer with a higher priority takes over
            when it has settled all.
        cancelled: it gets nothing more, and can still settle; then it is gone.
        handed: deliveries so far; the next one's number.
    """

    client: str
    cancelled: bool = False
    waits: bool = False
    quiescing: bool = False
    handed: int = 0

    def hand(self, message: Stored) -> Handed:
        """Hand it a message."""
        number, self.handed = self.handed, self.handed + 1
        self.count_delivery()
        self.unsettled[number] = message
        return self.delivery(number)

    def delivery(self, number: int) -> Handed:
        """A delivery that it has not settled."""
        message = self.unsettled[number]
        deliver = Deliver(consumer=self.name, message=message, settled=self.settled)
        return Handed(self.client, number, deliver)


class ServiceQueue:
    """The consumers of a queue, and the line of those that may have a message now.

    Args:
        single_active: one consumer at a time gets messages.

    Attributes:
        consumers: the attached ones by name, in order of attaching.
        active: the single active consumer; None if there is none, or every one is active.
        turn: names of those that may have a message, the next one first.
    """

    def __init__(self, *, single_active: bool) -> None:
        self.single_active = single_active
        self.consumers: dict[str, FifoConsumer] = {}
        self.active: str | None = None
        self.turn: deque[str] = deque()

    def attach(self, consumer: FifoConsumer, ready: int) -> list[QuorumEffect]:
        """A new consumer, while that many messages are ready."""
        self.consumers[consumer.name] = consumer
        effects = self.activate(ready)
        self.place(consumer)
        return effects

    def detach(self, name: str) -> FifoConsumer | None:
        """Take a consumer out; returns it, or None if it is not attached."""
        consumer = self.consumers.pop(name, None)
        if consumer is not None:
            if consumer.waits:
                self.turn.remove(name)
            if name == self.active:
                self.active = None
        return consumer

    def cancel(self, name: str) -> int:
        """A consumer gets nothing more; with something to settle it stays in the list.

        Returns:
            How many messages it has to settle.
        """
        consumer = self.consumers.get(name)
        if consumer is None or not consumer.unsettled:
            self.detach(name)
            return 0
        consumer.cancelled = True
        if name == self.active:
            self.active = None
        self.place(consumer)
        return len(consumer.unsettled)

    def serve_next(self) -> FifoConsumer:
        """Whose turn it is; it leaves the line."""
        consumer = self.consumers[self.turn.popleft()]
        consumer.waits = False
        return consumer

    def place(self, consumer: FifoConsumer) -> None:
        """Put a consumer in the line, or take it out, as it may have a message now or not.

        It joins behind those of its priority and of higher ones.
        """
        may = consumer.link_credit > 0 and self.may_have(consumer.name)
        if may and not consumer.waits:
            turn, at = self.turn, len(self.turn)
            while at and self.consumers[turn[at - 1]].priority < consumer.priority:
                at -= 1
            turn.insert(at, consumer.name)
        elif consumer.waits and not may:
            self.turn.remove(consumer.name)
        consumer.waits = may

    def is_active(self, consumer: str) -> bool:
        """Whether it does not wait behind the single active consumer."""
        return not self.single_active or consumer == self.active

    def may_have(self, consumer: str) -> bool:
        """Whether messages are for this consumer, and it takes new ones."""
        found = self.consumers[consumer]
        return self.is_active(consumer) and not (found.quiescing or found.cancelled)

    def activate(self, ready: int, *, told: bool = True) -> list[QuorumEffect]:
        """Choose the single active consumer: one with a higher priority takes over.

        Of those that wait the highest priority wins, then the most credit, then the first that
        attached. An active consumer is not cut off: it is quiescing until it holds nothing any
        more, and waits then (`rabbit_fifo.erl:activate_next_consumer`, `sort_waiting`, since
        RabbitMQ 4.0).

        Args:
            ready: that many messages are.
            told: one that makes way after it was quiescing is told.
        """
        if not self.single_active:
            return []
        now = self.consumers[self.active] if self.active is not None else None
        made_way = now is not None and now.quiescing and not now.unsettled
        best = max(
            (
                one
                for one in self.consumers.values()
                if (made_way or one is not now) and not one.cancelled
            ),
            key=lambda one: (one.priority, one.link_credit),
            default=None,
        )
        if best is None:
            return []
        if now is not None and not made_way:
            if best.priority <= now.priority:
                return []
            if now.unsettled:
                now.quiescing = True
                self.place(now)  # nothing new for it
                return []
        if now is not None:
            now.quiescing = False
        self.active = best.name
        self.place(best)
        effects: list[QuorumEffect] = []
        if best is not now:
            effects.append(Active(best.client, best.name, ready))
            if now is not None:
                self.place(now)
                if told or not made_way:
                    effects.append(Active(now.client, now.name, 0, active=False))
        return effects


# -- the machine ----------------------------------------------------------------------------


class QuorumFifo:
    """One replica's copy of a queue.

    Args:
        name: of the queue.
        arguments: how it was declared.
        delivery_limit: for want of one in the arguments; -1 is none.
        limit_counts: which returns the delivery limit counts: `acquired`, each (RabbitMQ 4.0 to
            4.2), or `failed`, only modified with delivery-failed and lost consumers (4.3).
        two_priorities: messages above the usual priority and the others (4.0 to 4.2); each of 32 is
            heeded otherwise (4.3).
        rules: that it keeps.

    Attributes:
        enqueued: messages ever taken in.
        full: publishers are refused.
        now_us: the latest time that a command has told.
    """

    def __init__(
        self,
        name: str,
        arguments: QueueArguments = PLAIN_QUORUM,
        *,
        delivery_limit: int = DEFAULT_DELIVERY_LIMIT,
        limit_counts: str = FAILED,
        two_priorities: bool = False,
        rules: RaftRules = RIGHT,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.enqueued = 0
        self.full = False
        self.now_us = 0
        limit = arguments.delivery_limit
        self._delivery_limit = delivery_limit if limit is None else limit
        self._limit_counts = limit_counts
        self._ready = FifoReady(two_priorities=two_priorities, in_order=rules.returns_in_order)
        self._limits = Limits(arguments)
        self._line = ServiceQueue(single_active=arguments.single_active_consumer)
        self._ages = False  # a message has come that may get too old
        self._next_seq: dict[str, int] = {}
        self._unsettled = 0

    # -- reading ----------------------------------------------------------------------------

    @property
    def single_active(self) -> bool:
        """One consumer at a time gets messages."""
        return self._line.single_active

    @property
    def active(self) -> str | None:
        """The single active consumer; None if there is none, or every one is active."""
        return self._line.active

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

    @property
    def terminal(self) -> int:
        """Messages that have left for good, however."""
        return self._limits.left.total()

    def available_to(self, consumer: str) -> int:
        """Messages ready, as far as they are for this consumer: none if it waits behind another."""
        return self.ready if self._line.is_active(consumer) else 0

    def has_for(self, consumer: str) -> bool:
        """Whether a message is ready that this consumer could get."""
        return self.ready > 0 and self._line.may_have(consumer)

    def consumers(self) -> tuple[str, ...]:
        """Names of the attached consumers, in order of attaching."""
        return tuple(self._line.consumers)

    def consumer(self, name: str) -> CreditReply:
        """Counters of one consumer.

        Raises:
            QueueError: if it is not attached.
        """
        found = self._line.consumers.get(name)
        if found is None:
            attached = ", ".join(self._line.consumers) or "none"
            raise QueueError(f"no consumer {name} on queue {self.name}; attached now: {attached}")
        return self._credited(found)

    def unsettled_ids(self, consumer: str) -> tuple[int, ...]:
        """Numbers of the deliveries that the consumer holds, in order; none if it is unknown."""
        found = self._line.consumers.get(consumer)
        return () if found is None else tuple(found.unsettled)

    def ready_messages(self) -> tuple[Stored, ...]:
        """What is ready: what came back, then by priority."""
        return self._ready.listed()

    def deadline_us(self) -> int | None:
        """When the first message is too old, if nothing happens before; None is never."""
        head = self._ready.head() if self._ages else None
        return None if head is None else head.expires_us

    def overview(self) -> dict[str, int | str]:
        """Flat picture, with the names that a classic queue's has."""
        return {
            "name": self.name,
            "ready": self.ready,
            "unsettled": self._unsettled,
            "terminal": self.terminal,
            "enqueued": self.enqueued,
            "consumers": len(self._line.consumers),
            **({"active": self.active or ""} if self.single_active else {}),
            **self._limits.overview(),
        }

    def standing(self) -> list[QuorumEffect]:
        """What clients are told when it changes, as it is now: some may have missed it."""
        effects: list[QuorumEffect] = []
        if self.arguments.overflow == REJECT_PUBLISH:
            effects.append(Full(self.full))
        if self.single_active:
            for name, consumer in self._line.consumers.items():
                active = self._line.is_active(name)
                effects.append(Active(consumer.client, name, self.available_to(name), active))
        return effects

    # -- commands ---------------------------------------------------------------------------

    def apply(self, logged: Logged) -> tuple[QuorumReply, list[QuorumEffect]]:
        """Obey one command of the log. It never fails: a command that cannot be is `NotObeyed`."""
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
            case Cancel(consumer=name):
                reply = Count(count=self._line.cancel(name))
                effects += self._line.activate(self.ready)
                self._serve(effects)
            case DetachConsumer(consumer=name, delivery_failed=failed):
                reply = self._detach(name, effects, failed=failed)
            case Purge():
                reply = self._purge(effects)
            case Resume(consumer=name, number=first):
                held = self._line.consumers.get(name)
                if held is not None:  # what a leader that is gone handed it, once more
                    effects += [held.delivery(at) for at in held.unsettled if at >= first]
            case Expire():
                self._serve(effects)
            case _:  # a quorum queue hands out by itself, and keeps no time of its own
                pass
        return reply, effects

    def _enqueue(self, command: Enqueue, effects: list[QuorumEffect]) -> None:
        expires_us = self._limits.expires_us(self.now_us, command.message.ttl_ms)
        self._ages = self._ages or expires_us is not None
        self._ready.append(command.stored(self.enqueued, expires_us=expires_us))
        self.enqueued += 1
        if self._line.turn or self._ages or self._limits.bounded:
            self._serve(effects)

    def _checkout(self, client: str, command: Checkout, effects: list[QuorumEffect]) -> QuorumReply:
        consumer = self._line.consumers.get(command.consumer)
        if consumer is not None and consumer.client != client:
            return NotObeyed(
                f"consumer {command.consumer} is attached to queue {self.name} already; legal now:"
                " detach it first, or attach another name"
            )
        if consumer is None:
            consumer = FifoConsumer(
                name=command.consumer,
                client=client,
                settled=command.settled,
                priority=command.priority,
            )
            consumer.begin(command.mode)
            effects += self._line.attach(consumer, self.ready)
            self._serve(effects)
        return self._credited(consumer)

    def _credit(self, logged: Logged, command: Credit, effects: list[QuorumEffect]) -> QuorumReply:
        consumer = self._line.consumers.get(command.consumer)
        if consumer is not None:
            consumer.grant(command)
            self._line.place(consumer)
            self._serve(effects)
            if command.drain:
                consumer.give_back()
                self._line.place(consumer)
        return self._answer(logged, command, effects)

    def _answer(self, logged: Logged, command: Credit, effects: list[QuorumEffect]) -> QuorumReply:
        """Tell a consumer's credit to the client that has sent the command."""
        consumer = self._line.consumers.get(command.consumer)
        if consumer is None:
            return NotObeyed(f"no consumer {command.consumer} on queue {self.name}")
        credited = replace(self._credited(consumer), drain=command.drain)
        effects.append(
            Answered(logged.client, consumer.name, logged.seq, consumer.handed, credited)
        )
        return credited

    def _finish(self, command: Settle | Reject, effects: list[QuorumEffect]) -> QuorumReply:
        messages = self._taken_back(command.consumer, command.message_ids)
        if isinstance(command, Settle):
            self._limits.left["settled"] += len(messages)
        else:
            effects += [
                self._limits.leave(message.rejected(command), REJECTED) for message in messages
            ]
        self._settled(command.consumer, len(messages), effects)
        return Count(count=len(messages))

    def _give_back(self, command: Release | Modify, effects: list[QuorumEffect]) -> QuorumReply:
        messages = self._taken_back(command.consumer, command.message_ids)
        undeliverable = isinstance(command, Modify) and command.undeliverable_here
        for message in messages:
            if undeliverable:
                effects.append(self._limits.leave(message, REJECTED))
            else:
                changed = message.modified(command) if isinstance(command, Modify) else message
                self._return(changed, effects)
        # In RabbitMQ a consumer that makes way is told so after `complete`, not after `return`.
        self._settled(command.consumer, len(messages), effects, told=undeliverable)
        return Count(count=len(messages))

    def _return(self, message: Stored, effects: list[QuorumEffect]) -> None:
        """A message comes back, unless it has done so too often [rabbit_fifo.erl:return_one]."""
        acquired = self._limit_counts == ACQUIRED
        count = message.acquired_count if acquired else message.delivery_count
        if 0 <= self._delivery_limit < count:
            effects.append(self._limits.leave(message, DELIVERY_LIMIT))
        else:
            self._ready.put_back(message)

    def _settled(
        self, name: str, count: int, effects: list[QuorumEffect], *, told: bool = True
    ) -> None:
        """After a settlement: credit of a prefetching consumer comes back, others may be served."""
        consumer = self._line.consumers.get(name)
        if consumer is not None:
            consumer.count_settled(count)
            self._line.place(consumer)
            if consumer.cancelled and not consumer.unsettled:
                self._line.detach(name)
            elif consumer.quiescing and not consumer.unsettled:
                effects += self._line.activate(self.ready, told=told)
        self._serve(effects)

    def _detach(self, name: str, effects: list[QuorumEffect], *, failed: bool) -> QuorumReply:
        consumer = self._line.detach(name)
        if consumer is None:
            return Count(count=0)
        self._unsettled -= len(consumer.unsettled)
        for message in consumer.unsettled.values():
            self._return(message.failed() if failed else message, effects)
        effects += self._line.activate(self.ready)
        self._serve(effects)
        return Count(count=len(consumer.unsettled))

    def _purge(self, effects: list[QuorumEffect]) -> QuorumReply:
        gone = self._ready.clear()
        effects += [self._limits.leave(message, PURGED) for message in gone]
        self._serve(effects)  # publishers that were refused may go on
        return Count(count=len(gone))

    # -- inside -----------------------------------------------------------------------------

    def _serve(self, effects: list[QuorumEffect]) -> None:
        """Hand out while a message is ready and a consumer may have it; then look at the limits."""
        line, ready, limits = self._line, self._ready, self._limits
        self._drop_expired(effects)
        while line.turn and len(ready):
            consumer = line.serve_next()
            effects.append(consumer.hand(ready.take().handed_out()))
            self._unsettled += 1
            line.place(consumer)
            self._drop_expired(effects)
        if limits.rejects:
            full = not limits.low(ready) if self.full else limits.over(ready)
            if full != self.full:
                self.full = full
                effects.append(Full(full))
        while limits.drops and limits.over(ready):
            effects.append(limits.leave(ready.take(), MAXLEN))
        self._drop_expired(effects)  # what stood behind a younger one may be the first now

    def _drop_expired(self, effects: list[QuorumEffect]) -> None:
        """What is too old goes, from the heads: behind a younger message an old one stays."""
        if self._ages:
            late = self._ready.take_expired(self.now_us)
            effects += [self._limits.leave(message, EXPIRED) for message in late]

    def _taken_back(self, name: str, numbers: tuple[int, ...]) -> list[Stored]:
        """Take deliveries off a consumer; those that it does not hold (any more) are left out."""
        consumer = self._line.consumers.get(name)
        if consumer is None:
            return []
        held = consumer.unsettled
        messages = [held.pop(number) for number in numbers if number in held]
        self._unsettled -= len(messages)
        return messages

    def _credited(self, consumer: FifoConsumer) -> CreditReply:
        return CreditReply(
            delivery_count=consumer.delivery_count,
            link_credit=consumer.link_credit,
            available=self.available_to(consumer.name),
            active=self._line.is_active(consumer.name),
        )
