"""A quorum queue as links see it: the same face as a classic queue's process, another inside.

Where a classic queue obeys at once, everything here is a command in a log: a message is confirmed,
and credit is answered, when a majority has the command on disk and the leader has applied it. So a
consumer's credit costs a round trip through the log too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from workbench.amqp.messaging import Header
from workbench.queues import (
    Command,
    Count,
    Credit,
    Credited,
    DeadLettered,
    Deliver,
    DetachConsumer,
    Drained,
    Dropped,
    Enqueue,
    Modify,
    Origin,
    Purge,
    QueueArguments,
    Reject,
    Release,
    Reply,
    Settle,
)
from workbench.queues.limits import EXPIRED, MAXLEN, PURGED, US_PER_MS
from workbench.queues.quorum_commands import (
    Active,
    Answered,
    Full,
    Handed,
    Logged,
    QuorumCheckout,
    QuorumEffect,
    QuorumReply,
)
from workbench.queues.quorum_fifo import QuorumFifo
from workbench.queues.quorum_terms import FAILED, QuorumTerms
from workbench.sim import NoTap, Tap, VirtualClock

from .payload import header_in
from .queue_mail import Consumer
from .queue_process import MESSAGE_OCTETS, QueueProcess
from .queue_timer import QueueTimer
from .quorum_port import QueuePort

if TYPE_CHECKING:
    from .quorum_group import QuorumGroup

NO_LIMIT = -1
NO_HEADER = Header()
DEFAULT_DELIVERY_LIMIT = 20  # rabbit_fifo.hrl: DEFAULT_DELIVERY_LIMIT


def terms_of(
    arguments: QueueArguments, limit_counts: str = FAILED, *, two_priorities: bool = False
) -> QuorumTerms:
    """What a declaration's arguments mean to a quorum queue."""
    limit = arguments.delivery_limit
    return QuorumTerms(
        single_active=arguments.single_active_consumer,
        max_length=arguments.max_length,
        max_length_bytes=arguments.max_length_bytes,
        message_ttl_ms=arguments.message_ttl_ms,
        overflow=arguments.overflow,
        delivery_limit=DEFAULT_DELIVERY_LIMIT if limit is None else None if limit < 0 else limit,
        limit_counts=limit_counts,
        two_priorities=two_priorities,
    )


@dataclass(slots=True)
class _Link:
    """A consumer's link, and what the queue has handed out that it could not take yet."""

    consumer: Consumer
    waiting: deque[Deliver | Credited] = field(default_factory=deque)
    active: bool = False  # as the queue has told


class QuorumProcess(QueueProcess):
    """One quorum queue, with its links.

    Args:
        clock, tap: of the run.
        group: the replicas.
        arguments: with which the queue was declared.
        place: node where the sessions are.
        soft_limit: pending commands at which the queue counts as slow.
    """

    def __init__(
        self,
        clock: VirtualClock,
        group: QuorumGroup,
        arguments: QueueArguments,
        *,
        place: str,
        soft_limit: int,
        tap: Tap,
    ) -> None:
        self.group = group
        self._arguments = arguments
        self._clock = clock
        self._tap = tap
        self._unseen = type(tap) is NoTap
        self._series = {}
        self._tell_confirm = tap.series(
            event="confirm",
            vantage=f"queue:{group.name}",
            queue=group.name,
            ledger=("queue_ready", "queue_unsettled", "mailbox"),
            extra=("message",),
        )
        self._links: dict[str, _Link] = {}
        self._told: dict[int, tuple[Callable[[], None] | None, Callable[[str], None] | None]] = {}
        self._leaving: dict[str, Callable[[], None]] = {}  # told when a consumer is gone
        self._purges: dict[int, Callable[[int], None]] = {}  # by number of the command
        self._full = False
        self._logged_octets = 0
        self._ended = False
        self.dead_letter = None
        self.gone: Callable[[], None] | None = None
        self._unused = QueueTimer(clock, self._nobody_came)
        self.touch()
        self.port = QueuePort(
            group, clock, f"session@{group.name}", place=place, owner=self, soft_limit=soft_limit
        )

    @property
    def queue(self) -> Any:  # type: ignore[override]
        """The copy that knows most; it may change with the leader."""
        return self.group.front()

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.group.name

    @property
    def arguments(self) -> QueueArguments:
        """How the queue was declared."""
        return self._arguments

    @property
    def mailbox(self) -> int:
        """Commands that wait for their answer."""
        return len(self.port.client.pending)

    @property
    def held_octets(self) -> int:
        """What its messages take of the memory, about: a log is kept whole, so all that ever came.

        Replicas share what is in their logs.
        """
        return self._logged_octets + MESSAGE_OCTETS * self.port.client.sent

    @property
    def links(self) -> tuple[Consumer, ...]:
        """The attached consumers' links, in order of attaching."""
        return tuple(link.consumer for link in self._links.values())

    @property
    def full(self) -> bool:
        """Publishers are refused, as far as is known here."""
        return self._full

    # -- from publishers --------------------------------------------------------------------

    def publish(
        self,
        payload: bytes,
        message_format: int = 0,
        confirmed: Callable[[], None] | None = None,
        *,
        rejected: Callable[[str], None] | None = None,
        origin: Origin | None = None,
    ) -> None:
        """Send a message to the leader; see `QueueProcess.publish`."""
        if self._full:
            self._log("drop", kind="publish", extra={"reason": MAXLEN})
            if rejected is not None:
                rejected(MAXLEN)
            elif confirmed is not None:
                confirmed()
            return
        came = origin or Origin(routing_keys=(self.name,))
        header = header_in(payload, message_format) or NO_HEADER
        # A dead letter does not die of the same age twice.
        ttl_ms = None if came.deaths else header.ttl
        seq = self.port.client.sent + 1
        self._told[seq] = (confirmed, rejected)
        self._logged_octets += len(payload)
        self.port.send(
            Enqueue(
                payload=payload,
                message_format=message_format,
                ttl_ms=ttl_ms,
                priority=header.priority,
                origin=came,
            )
        )

    def fill(self, payloads: Sequence[bytes]) -> None:
        """Put messages in before the run begins: no time passes, one row tells of all."""
        self.group.fill(
            [
                Enqueue(payload=payload, ttl_ms=header.ttl, priority=header.priority)
                for payload in payloads
                for header in [header_in(payload) or NO_HEADER]
            ]
        )
        self._logged_octets += sum(map(len, payloads))
        self._tell_available()
        if payloads:
            self._log("enqueue", extra={"count": len(payloads)})

    # -- from consumers ---------------------------------------------------------------------

    def attach(
        self,
        name: str,
        consumer: Consumer,
        *,
        delivery_count: int,
        settled: bool,
        priority: int = 0,
        start: object = None,
        selection: object = None,
    ) -> Credited:
        """Attach a consumer; the queue knows of it when the command is applied."""
        self._links[name] = _Link(consumer)
        self._unused.set(None)
        self.port.consume(name)
        self.port.send(
            QuorumCheckout(
                consumer=name, delivery_count=delivery_count, settled=settled, priority=priority
            )
        )
        return Credited(delivery_count=delivery_count, link_credit=0, available=self.queue.ready)

    def detach(
        self, name: str, *, failed: bool = False, done: Callable[[], None] | None = None
    ) -> int:
        """Detach a consumer; returns how many messages it holds, as far as is known here."""
        del self._links[name]
        self.port.forget(name)
        if self._ended:  # no replica is left that could let it go
            if done is not None:
                done()
            return 0
        machine: QuorumFifo = self.queue
        held = len(machine.unsettled_ids(name)) if name in machine.consumers() else 0
        if done is not None:
            self._leaving[name] = done
        self.port.send(DetachConsumer(consumer=name, delivery_failed=failed))
        self.touch()
        return held

    def purge(self, done: Callable[[int], None]) -> None:
        """Send a purge; `done` is told when it is applied."""
        self._purges[self.port.client.sent + 1] = done
        self.port.send(Purge())

    def command(self, command: Command) -> Reply:
        """Send credit or a settlement; the reply says how many messages are named."""
        self.port.send(command)
        if isinstance(command, Settle | Reject | Release | Modify):
            return Count(count=len(command.message_ids))
        return None

    def request(self, credit: Credit) -> None:
        """Send credit; the consumer hears when all that it brings was handed out."""
        self.port.send(credit)

    def touch(self) -> None:
        """Somebody has declared the queue again, or has left it: from now on it is unused."""
        expires_ms = self._arguments.expires_ms
        if expires_ms is not None and not self._links:
            self._unused.set(self._clock.now_us + expires_ms * US_PER_MS)

    def _nobody_came(self) -> None:
        self._log("note", kind="gone", extra={"reason": EXPIRED})
        if self.gone is not None:
            self.gone()

    def kick(self) -> None:
        """A consumer may be able to take a message again: look."""
        for name in tuple(self._links):
            self._flush(name)

    # -- from a person ----------------------------------------------------------------------

    def stall(self) -> None:
        """The leader's process takes no commands; what it has in its log goes on."""
        if not self.group.suspended:
            self.group.suspend()
            self._log("note", kind="stalled")

    def resume(self) -> None:
        """It goes on with what has come meanwhile."""
        if self.group.suspended:
            self._log("note", kind="resumed")
            self.group.resume()

    def end(self) -> None:
        """It is deleted, with all that waits in it: nothing comes of it any more."""
        self._log("note", kind="deleted")
        self._ended = True
        self._unused.stop()
        self.port.close()
        self._told.clear()
        for done in self._purges.values():
            done(0)
        self._purges.clear()
        self.group.end()
        for name in tuple(self._leaving):
            self._let_go(name)

    def overview(self) -> dict[str, int | str]:
        """Flat picture: the queue's own, its replicas', and how many commands are pending."""
        return {
            **self.queue.overview(),
            **self.group.overview(),
            "mailbox": self.mailbox,
            "slow": int(self.port.client.slow),
        }

    # -- told by the port ---------------------------------------------------------------------

    def replied(self, logged: Logged, reply: QuorumReply) -> None:
        """A command was applied: a message is confirmed with it, others may see a change."""
        if isinstance(logged.command, Enqueue):
            confirmed, _ = self._told.pop(logged.seq, (None, None))
            if not self._unseen:
                machine: QuorumFifo = self.queue
                self._tell_confirm(
                    self._clock.now_us,
                    machine.ready,
                    machine.unsettled,
                    self.mailbox,
                    logged.enqueue_seq,
                )
            if confirmed is not None:
                confirmed()
        if isinstance(logged.command, DetachConsumer):
            self._let_go(logged.command.consumer)
        purged = self._purges.pop(logged.seq, None)
        if purged is not None:
            purged(reply.count if isinstance(reply, Count) else 0)
        if not isinstance(logged.command, Settle | Credit):
            self._tell_available()
            for link in tuple(self._links.values()):
                link.consumer.noticed()

    def handed(self, effect: Handed) -> None:
        """A message for a link: it goes as soon as the link can take it."""
        for name in tuple(self._leaving):  # who left hears of it before others get what it had
            if name not in self.queue.consumers():
                self._let_go(name)
        # To the link a message is known by the delivery's number: settlements name that.
        deliver = replace(
            effect.deliver, message=replace(effect.deliver.message, message_id=effect.number)
        )
        self._tell_available()
        self._log("deliver", kind=deliver.consumer)
        self._links[deliver.consumer].waiting.append(deliver)
        self._flush(deliver.consumer)

    def told(self, effect: QuorumEffect) -> None:
        """Answers to credit, a new active consumer, a full queue, a message thrown away."""
        match effect:
            case Answered(consumer=name, credited=credited) if name in self._links:
                self._links[name].waiting.append(credited)
                self._flush(name)
            case Active(consumer=name, available=available, active=active) if name in self._links:
                link = self._links[name]
                if active or link.active:  # one that has always waited has nothing to learn
                    self._log("activate" if active else "deactivate", kind=name)
                    link.consumer.available(available)
                    link.consumer.activated(active)
                link.active = active
            case Full(full=full):
                self._full = full
            case Dropped(reason=reason):
                self._log("drop", extra={"reason": reason})
                self._send_on(effect)

    def _send_on(self, effect: Dropped) -> None:
        """A message that nobody deleted on purpose goes to the dead-letter exchange, once."""
        arguments, message = self._arguments, effect.message
        exchange, key = arguments.dead_letter_exchange, arguments.dead_letter_routing_key
        if self.dead_letter is None or exchange is None or effect.reason == PURGED:
            return
        keys = message.origin.routing_keys if key is None else (key,)
        self.dead_letter(
            DeadLettered(
                message=message, reason=effect.reason, exchange=exchange, routing_keys=keys
            )
        )

    def slowed(self, slow: bool, pending: int) -> None:
        """An AMQP 1.0 session does not heed it: its publishers are held by unconfirmed alone."""
        event = "block" if slow else "unblock"
        self._log(event, kind="soft-limit", extra={"pending": pending})

    # -- inside -----------------------------------------------------------------------------

    def _let_go(self, name: str) -> None:
        """The queue has back what a consumer held: tell whoever waits for it."""
        done = self._leaving.pop(name, None)
        if done is not None:
            done()

    def _flush(self, name: str) -> None:
        """Pass on, in order, what a link can take now."""
        link = self._links.get(name)
        while link is not None and link.waiting and self._links.get(name) is link:
            first = link.waiting[0]
            if isinstance(first, Credited):
                link.waiting.popleft()
                self._answer(name, link.consumer, first)
                continue
            if not link.consumer.can_take():
                return
            link.waiting.popleft()
            if link.consumer.too_large(first.message):
                link.consumer.refuse(first.message)
                return
            link.consumer.deliver(first)

    def _answer(self, name: str, consumer: Consumer, credited: Credited) -> None:
        if credited.drain:
            consumer.drained(
                Drained(consumer=name, delivery_count=credited.delivery_count, given_back=0)
            )
        consumer.credit_replied(credited)

    def _tell_available(self) -> None:
        if not self._links:
            return
        machine: QuorumFifo = self.queue
        for name, link in self._links.items():
            link.consumer.available(machine.available_to(name))
