"""A classic queue: one ordered store of ready messages, consumers served in turn.

Rules, checked by a property test after every command:

1. ready + unsettled + terminal == enqueued: a message is in exactly one of these places.
2. Messages are handed out in the order they came, or by priority if the queue was declared so;
   what comes back goes to its old place.
3. A consumer gets no more than its credit, and credit is absolute [AMQP 1.0, 2.6.7].
4. No more is ready than the limits allow, and nothing is handed out that is too old.
5. Of the consumers that can take a message, one of the highest priority gets it.

With a single active consumer another: only the active one gets messages. The others wait with their
credit, and nothing is available to them. When the active one leaves, what it held goes back to its
place first, and then the next one is active (`rabbit_queue_consumers.erl`).

Here taking a message in and handing one out are two commands; in RabbitMQ's process they are one
turn. So that a limit does not hit a message for which somebody waits with credit, `Enqueue` hands
messages out before it drops or refuses one.
"""

from __future__ import annotations

from .arguments import NO_ARGUMENTS, QueueArguments
from .base import (
    Cancel,
    Checkout,
    Command,
    Confirm,
    Count,
    Credit,
    CreditReply,
    Deliver,
    DetachConsumer,
    Dispatch,
    Effect,
    Enqueue,
    Expire,
    Gone,
    Meta,
    Modify,
    Purge,
    QueueError,
    Reject,
    Rejected,
    Release,
    Reply,
    Requeued,
    Settle,
    SetWatermarks,
    Stored,
    Touch,
)
from .consumers import Consumer, Consumers
from .limits import EXPIRED, MAXLEN, PURGED, REJECTED, US_PER_MS, Limits
from .ready import Ready, ReadyByPriority

NO_META = Meta()


class ClassicQueue:
    """Commands in, effects out; see `workbench.queues.base` for both.

    Args:
        name: of the queue.
        arguments: how it was declared.
        created_us: when.
    """

    def __init__(
        self,
        name: str,
        arguments: QueueArguments = NO_ARGUMENTS,
        created_us: int = 0,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.single_active = arguments.single_active_consumer
        highest = arguments.max_priority
        self._ready: Ready | ReadyByPriority = (
            Ready() if highest is None else ReadyByPriority(highest)
        )
        self._limits = Limits(arguments)
        self._consumers = Consumers(name, single_active=self.single_active)
        self._enqueued = 0
        self._unsettled = 0
        self._ages = False  # a message has come that may get too old
        self._unused_since: int | None = created_us

    # -- reading ----------------------------------------------------------------------------

    @property
    def ready(self) -> int:
        """Messages that wait for a consumer."""
        return len(self._ready)

    @property
    def ready_octets(self) -> int:
        """Their sizes, added up."""
        return self._ready.octets

    def ready_messages(self) -> tuple[Stored, ...]:
        """The messages that wait, the next one first."""
        return tuple(self._ready.listed())

    @property
    def unsettled(self) -> int:
        """Messages handed out and not yet settled."""
        return self._unsettled

    @property
    def octets(self) -> int:
        """Sizes of the messages that it holds, ready or unsettled, added up."""
        return self._ready.octets + self._consumers.octets

    @property
    def enqueued(self) -> int:
        """Messages ever taken in."""
        return self._enqueued

    @property
    def terminal(self) -> int:
        """Messages that have left for good, however."""
        return self._limits.left.total()

    @property
    def left(self) -> dict[str, int]:
        """The same by how they left: `settled`, `dead_lettered`, `dropped`, `expired`, `purged`."""
        return dict(self._limits.left)

    @property
    def refused(self) -> int:
        """Messages that were not taken in."""
        return self._limits.refused

    @property
    def active(self) -> str | None:
        """The single active consumer; None if there is none, or every one is active."""
        return self._consumers.active

    def available_to(self, consumer: str) -> int:
        """Ready messages that a consumer could get: none if it waits behind the active one."""
        return self.ready if self._consumers.may_have(consumer) else 0

    def consumers(self) -> tuple[str, ...]:
        """Names of the attached consumers, in order of attaching."""
        return self._consumers.names()

    def consumer(self, name: str) -> CreditReply:
        """Counters of one consumer."""
        return self._credited(self._consumers.known(name))

    def knows(self, consumer: str) -> bool:
        """Whether it is attached, or holds messages although it was cancelled."""
        return consumer in self._consumers

    def unsettled_ids(self, consumer: str) -> tuple[int, ...]:
        """Message ids that the consumer holds, in order of delivery."""
        return tuple(self._consumers.known(consumer).unsettled)

    def has_for(self, consumer: str) -> bool:
        """Whether a message is ready that this consumer could get."""
        return self._oldest(consumer) is not None

    def next_out(self, unable: frozenset[str] = frozenset()) -> tuple[str, Stored] | None:
        """The consumer to whom a `Dispatch` would hand a message, and the message as it would go.

        Args:
            unable: consumers that cannot take one now, as in `Dispatch`.
        """
        for consumer in self._consumers.in_turn():
            if consumer.link_credit == 0 or consumer.name in unable:
                continue
            message = self._oldest(consumer.name)
            if message is not None:
                return consumer.name, message.handed_out()
        return None

    def deliverable(self, unable: frozenset[str] = frozenset()) -> bool:
        """True if a `Dispatch` would hand out a message or give credit back."""
        for consumer in self._consumers:
            if consumer.link_credit > 0 and (
                (consumer.name not in unable and self.has_for(consumer.name))
                or (consumer.drain and not self.has_for(consumer.name))
            ):
                return True
        return False

    def deadline_us(self) -> int | None:
        """When the oldest message, or the queue itself, is too old; None is never."""
        head = self._ready.head() if self._ages else None
        found = None if head is None else head.expires_us
        if self.arguments.expires_ms is None or self._unused_since is None:
            return found
        ends = self._unused_since + self.arguments.expires_ms * US_PER_MS
        return ends if found is None else min(ends, found)

    def overview(self) -> dict[str, int | str]:
        """Flat picture: `name`, `ready`, `unsettled`, `terminal`, `enqueued`, `consumers`."""
        return {
            "name": self.name,
            "ready": self.ready,
            "unsettled": self._unsettled,
            "terminal": self.terminal,
            "enqueued": self._enqueued,
            "consumers": len(self._consumers),
            **({"active": self.active or ""} if self.single_active else {}),
            **self._limits.overview(),
        }

    # -- commands ---------------------------------------------------------------------------

    def apply(self, command: Command, meta: Meta = NO_META) -> tuple[Reply, list[Effect]]:
        """Obey one command.

        Returns:
            The reply to whoever commanded, and the effects to be carried out in order.

        Raises:
            QueueError: if the command cannot be obeyed; the queue is as it was.
        """
        reply, effects = self._obey(command, meta.t_us)
        if self._ages:
            late = self._drop_expired(meta.t_us)
            if late:
                effects += [*late, *self._drained()]
        return reply, effects

    def _obey(self, command: Command, now_us: int) -> tuple[Reply, list[Effect]]:
        match command:
            case Enqueue():
                return None, self._enqueue(command, now_us)
            case Dispatch():
                return None, self._hand_out(command.unable, now_us) or self._drained()
            case Credit():
                return self._credit(command)
            case Settle() | Reject():
                return self._finish(command)
            case Release() | Modify():
                return self._give_back(command)
            case Checkout():
                return self._checkout(command)
            case Cancel():
                return self._cancel(command, now_us)
            case DetachConsumer():
                return self._detach(command, now_us)
            case Purge():
                return self._purge()
            case Expire():
                return None, self._expire(now_us)
            case Touch():
                self._unused_since = None if len(self._consumers) else now_us
                return None, []
            case SetWatermarks():
                raise QueueError(f"queue {self.name} has no watermarks; legal: a queue of Qpid's")

    def _enqueue(self, command: Enqueue, now_us: int) -> list[Effect]:
        expires_us = self._limits.expires_us(now_us, command.message.ttl_ms)
        message = command.stored(self._enqueued, now_us, expires_us)
        effects: list[Effect] = []
        if self._limits.rejects:
            while self._limits.over(self._ready, message) and (
                handed := self._hand_out(command.unable, now_us)
            ):
                effects += handed
            if self._limits.over(self._ready, message):
                effects += self._limits.refuse(message)
                return [*effects, Rejected(publish=command.publish, reason=MAXLEN)]
        self._ready.append(message)
        self._enqueued += 1
        effects.append(Confirm(publish=command.publish))
        at_once = message.expires_us is not None and message.expires_us <= now_us
        self._ages = self._ages or message.expires_us is not None
        while (at_once or (self._limits.drops and self._limits.over(self._ready))) and (
            handed := self._hand_out(command.unable, now_us, spared=message)
        ):
            effects += handed
        return effects + self._drop_heads()

    def _checkout(self, command: Checkout) -> tuple[Reply, list[Effect]]:
        consumer = self._consumers.attach(command)
        self._unused_since = None
        return self._credited(consumer), [*self._consumers.activate()]

    def _credit(self, command: Credit) -> tuple[Reply, list[Effect]]:
        consumer = self._consumers.known(command.consumer)
        consumer.grant(command)
        effects: list[Effect] = []
        if consumer.drain and not self.has_for(consumer.name):
            effects += consumer.give_back()
        return self._credited(consumer), effects

    def _hand_out(
        self, unable: frozenset[str], now_us: int, spared: Stored | None = None
    ) -> list[Effect]:
        """One message to whose turn it is, and credit back to whom nothing is left; or nothing.

        What is too old goes before; `spared` has come just now and may be handed out at any age.
        """
        late = self._drop_expired(now_us, spared) if self._ages else []
        found = self.next_out(unable)
        if found is None:
            return late + self._drained() if late else []
        name, message = found
        consumer = self._consumers.known(name)
        self._consumers.served(consumer)
        self._ready.take(message)
        consumer.count_delivery()
        if consumer.settled:
            self._limits.left["settled"] += 1
        else:
            consumer.unsettled[message.message_id] = message
            self._unsettled += 1
        handed = Deliver(consumer=name, message=message, settled=consumer.settled)
        return [*late, handed, *self._drained()]

    def _drained(self) -> list[Effect]:
        effects: list[Effect] = []
        for consumer in self._consumers:
            if consumer.drain and consumer.link_credit > 0 and not self.has_for(consumer.name):
                effects += consumer.give_back()
        return effects

    def _finish(self, command: Settle | Reject) -> tuple[Reply, list[Effect]]:
        messages = self._taken_back(command.consumer, command.message_ids)
        if isinstance(command, Settle):
            self._limits.left["settled"] += len(messages)
            return Count(count=len(messages)), []
        return Count(count=len(messages)), [
            self._limits.leave(message.rejected(command), REJECTED) for message in messages
        ]

    def _give_back(self, command: Release | Modify) -> tuple[Reply, list[Effect]]:
        messages = self._taken_back(command.consumer, command.message_ids)
        for message in messages:
            changed = message.modified(command) if isinstance(command, Modify) else message
            self._ready.put_back(changed)
        return Count(count=len(messages)), [*self._drop_heads(), *self._drained()]

    def _cancel(self, command: Cancel, now_us: int) -> tuple[Reply, list[Effect]]:
        self._consumers.cancel(command.consumer)
        if not len(self._consumers):
            self._unused_since = now_us
        return None, [*self._consumers.activate(), *self._drained()]

    def _detach(self, command: DetachConsumer, now_us: int) -> tuple[Reply, list[Effect]]:
        consumer = self._consumers.detach(command.consumer)
        count = len(consumer.unsettled)
        self._unsettled -= count
        for message in consumer.unsettled.values():
            self._ready.put_back(message.failed() if command.delivery_failed else message)
        if not len(self._consumers):
            self._unused_since = now_us
        effects: list[Effect] = [Requeued(consumer=consumer.name, count=count)] if count else []
        effects += self._drop_heads()
        effects += self._consumers.activate()
        return Count(count=count), effects + self._drained()

    def _purge(self) -> tuple[Reply, list[Effect]]:
        gone = self._ready.clear()
        dropped: list[Effect] = [self._limits.leave(message, PURGED) for message in gone]
        return Count(count=len(gone)), dropped + self._drained()

    def _expire(self, now_us: int) -> list[Effect]:
        """The queue itself; messages are looked at after every command."""
        expires_ms, since = self.arguments.expires_ms, self._unused_since
        if expires_ms is None or since is None or now_us < since + expires_ms * US_PER_MS:
            return []
        return [Gone(reason=EXPIRED)]

    # -- inside -----------------------------------------------------------------------------

    def _drop_heads(self) -> list[Effect]:
        """Too much is ready: the oldest go, if the queue was declared so."""
        effects: list[Effect] = []
        while self._limits.drops and self._limits.over(self._ready):
            effects.append(self._leave_head(MAXLEN))
        return effects

    def _drop_expired(self, now_us: int, spared: Stored | None = None) -> list[Effect]:
        """What is too old goes, from the head: behind a younger message an old one stays."""
        effects: list[Effect] = []
        while (head := self._ready.head()) is not None and head is not spared:
            if not head.is_too_old(now_us):
                break
            effects.append(self._leave_head(EXPIRED))
        return effects

    def _leave_head(self, reason: str) -> Effect:
        head = self._ready.head()
        assert head is not None
        self._ready.take(head)
        return self._limits.leave(head, reason)

    def _credited(self, consumer: Consumer) -> CreditReply:
        return CreditReply(
            delivery_count=consumer.delivery_count,
            link_credit=consumer.link_credit,
            available=self.ready,  # RabbitMQ's answer: also to who waits behind the active one
            drain=consumer.drain,
        )

    def _taken_back(self, name: str, message_ids: tuple[int, ...]) -> list[Stored]:
        """What a consumer held and holds no longer."""
        consumer = self._consumers.known(name)
        messages = consumer.held(message_ids)
        for number in message_ids:
            del consumer.unsettled[number]
        consumer.count_settled(len(messages))
        self._consumers.settled(consumer)
        self._unsettled -= len(messages)
        return messages

    def _oldest(self, consumer: str) -> Stored | None:
        """The oldest ready message that the consumer may have; not those it has barred."""
        return self._ready.oldest_for(consumer) if self._consumers.may_have(consumer) else None
