"""A quorum queue as links see it: used as any queue's process is, and different inside.

Where a classic queue obeys at once, everything here is a command in a log: a message is confirmed,
and credit is answered, when a majority has the command on disk and the leader has applied it. So a
consumer's credit costs a round trip through the log too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from workbench.queues import (
    Checkout,
    Command,
    Count,
    Credit,
    CreditMode,
    CreditReply,
    DeadLettered,
    Deliver,
    DetachConsumer,
    Drained,
    Dropped,
    Enqueue,
    Message,
    Modify,
    Origin,
    Purge,
    QueueArguments,
    Reject,
    Release,
    Reply,
    Settle,
)
from workbench.queues.limits import EXPIRED, MAXLEN, US_PER_MS
from workbench.queues.quorum_fifo import (
    Active,
    Answered,
    Full,
    Handed,
    Logged,
    QuorumEffect,
    QuorumFifo,
    QuorumReply,
)
from workbench.sim import Clock, Tap

from .queue_mail import Consumer
from .queue_process import MESSAGE_OCTETS, counters
from .queue_timer import QueueTimer
from .quorum_client import FifoClient
from .raft_group import RaftGroup
from .unconfirmed import CONFIRMED, QueueAnswer, Refused


class Heeding(Protocol):
    """A publisher's process that grants nothing upstream while one of its queues is slow.

    A 0-9-1 channel does so [rabbit_channel.erl]; an AMQP 1.0 session does not.
    """

    def block(self, queue: str) -> None:
        """This queue is slow: more than the soft limit is pending."""

    def unblock(self, queue: str) -> None:
        """This queue is slow no longer."""


@dataclass(slots=True)
class _Link:
    """A consumer's link, and what the queue has handed out that it could not take yet."""

    consumer: Consumer
    waiting: deque[Deliver | CreditReply] = field(default_factory=deque)
    active: bool = False  # as the queue has told


class QuorumProcess:
    """One quorum queue, with its links.

    Args:
        clock, tap: of the run.
        group: the replicas.
        arguments: with which the queue was declared.
        place: node where the sessions are.
        soft_limit: pending commands at which the queue counts as slow.

    Attributes:
        client: through which the sessions' commands go.
        full: publishers are refused, as far as is known here.
        heeding: publishers' processes that are blocked while the queue is slow.
    """

    def __init__(
        self,
        clock: Clock,
        group: RaftGroup,
        arguments: QueueArguments,
        *,
        place: str,
        soft_limit: int,
        tap: Tap,
    ) -> None:
        self.group = group
        self.arguments = arguments
        self.full = False
        self.heeding: list[Heeding] = []
        self.dead_letter: Callable[[DeadLettered], None] | None = None
        self.gone: Callable[[], None] | None = None
        self._clock = clock
        self._log = tap.bind(
            clock, vantage=f"queue:{group.name}", queue=group.name, ledger=partial(counters, self)
        ).note
        self._links: dict[str, _Link] = {}
        self._told: dict[int, QueueAnswer] = {}  # by number of the command
        self._leaving: dict[str, Callable[[], None]] = {}  # told when a consumer is gone
        self._purges: dict[int, Callable[[int], None]] = {}  # by number of the command
        self._logged_octets = 0
        self._ended = False
        self._unused = QueueTimer(clock, self._expire)
        self.touch()
        self.client = FifoClient(
            group, clock, f"session@{group.name}", place=place, owner=self, soft_limit=soft_limit
        )

    @property
    def queue(self) -> QuorumFifo:
        """The copy that knows most; it may change with the leader."""
        return self.group.front()

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.group.name

    @property
    def mailbox(self) -> int:
        """Commands that wait for their answer."""
        return len(self.client.pending)

    @property
    def held_octets(self) -> int:
        """What its messages take of the memory, about: a log is kept whole, so all that ever came.

        Replicas share what is in their logs.
        """
        return self._logged_octets + MESSAGE_OCTETS * self.client.sent

    @property
    def links(self) -> tuple[Consumer, ...]:
        """The attached consumers' links, in order of attaching."""
        return tuple(link.consumer for link in self._links.values())

    # -- from publishers --------------------------------------------------------------------

    def publish(
        self, message: Message, answered: QueueAnswer | None = None, *, origin: Origin | None = None
    ) -> None:
        """Send a message to the leader; see `QueueProcess.publish`."""
        if self.full:
            self._log("drop", kind="publish", extra={"reason": MAXLEN})
            if answered is not None:
                answered(self, Refused(MAXLEN, self.name))
            return
        if answered is not None:
            self._told[self.client.sent + 1] = answered
        self._logged_octets += message.size
        came = origin or Origin(routing_keys=(self.name,))
        self.client.send(Enqueue(message=message, origin=came))

    def fill(self, messages: Iterable[Message]) -> None:
        """Put messages in before the run begins: no time passes, one row tells of all."""
        commands = [Enqueue(message=message) for message in messages]
        self.group.fill(commands)
        self._logged_octets += sum(one.message.size for one in commands)
        self._tell_available()
        if commands:
            self._log("enqueue", extra={"count": len(commands)})

    # -- from consumers ---------------------------------------------------------------------

    def attach(
        self,
        name: str,
        consumer: Consumer,
        *,
        mode: CreditMode,
        settled: bool,
        priority: int = 0,
        start: object = None,
        selection: object = None,
    ) -> None:
        """Attach a consumer; the queue knows of it when the command is applied."""
        self._links[name] = _Link(consumer)
        self._unused.set(None)
        self.client.consume(name)
        self.client.send(Checkout(consumer=name, mode=mode, settled=settled, priority=priority))

    def detach(
        self, name: str, *, failed: bool = False, done: Callable[[], None] | None = None
    ) -> None:
        """Detach a consumer; its messages go back when the command is applied."""
        del self._links[name]
        self.client.forget(name)
        if self._ended:  # no replica is left that could let it go
            if done is not None:
                done()
            return
        if done is not None:
            self._leaving[name] = done
        self.client.send(DetachConsumer(consumer=name, delivery_failed=failed))
        self.touch()

    def purge(self, done: Callable[[int], None]) -> None:
        """Send a purge; `done` is told when it is applied."""
        self._purges[self.client.sent + 1] = done
        self.client.send(Purge())

    def command(self, command: Command) -> Reply:
        """Send credit or a settlement; the reply says how many messages are named."""
        self.client.send(command)
        if isinstance(command, Settle | Reject | Release | Modify):
            return Count(count=len(command.message_ids))
        return None

    def request(self, credit: Credit) -> None:
        """Send credit; the consumer hears when all that it brings was handed out."""
        self.client.send(credit)

    def touch(self) -> None:
        """Somebody has declared the queue again, or has left it: from now on it is unused."""
        expires_ms = self.arguments.expires_ms
        if expires_ms is not None and not self._links:
            self._unused.set(self._clock.now_us + expires_ms * US_PER_MS)

    def _expire(self) -> None:
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
        self.client.close()
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
            "slow": int(self.client.slow),
        }

    # -- told by the client -------------------------------------------------------------------

    def replied(self, logged: Logged, reply: QuorumReply) -> None:
        """A command was applied: a message is confirmed with it, others may see a change."""
        if isinstance(logged.command, Enqueue):
            answered = self._told.pop(logged.seq, None)
            self._log("confirm", extra={"message": logged.enqueue_seq})
            if answered is not None:
                answered(self, CONFIRMED)
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
        for name in tuple(self._leaving):  # one that left hears of it before others get what it had
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
                self.full = full
            case Dropped(reason=reason) | DeadLettered(reason=reason):
                self._log("drop", extra={"reason": reason})
                if isinstance(effect, DeadLettered) and self.dead_letter is not None:
                    self.dead_letter(effect)

    def slowed(self, slow: bool, pending: int) -> None:
        """The soft limit is passed, or no longer: tell those that heed it."""
        event = "block" if slow else "unblock"
        self._log(event, kind="soft-limit", extra={"pending": pending})
        for process in tuple(self.heeding):
            if slow:
                process.block(self.name)
            else:
                process.unblock(self.name)

    # -- inside -----------------------------------------------------------------------------

    def _let_go(self, name: str) -> None:
        """The queue has back what a consumer held: tell whatever waits for it."""
        done = self._leaving.pop(name, None)
        if done is not None:
            done()

    def _flush(self, name: str) -> None:
        """Pass on, in order, what a link can take now."""
        link = self._links.get(name)
        while link is not None and link.waiting and self._links.get(name) is link:
            first, consumer = link.waiting[0], link.consumer
            if isinstance(first, CreditReply):
                link.waiting.popleft()
                if first.drain:
                    count = first.delivery_count
                    consumer.drained(Drained(consumer=name, delivery_count=count, given_back=0))
                consumer.credit_replied(first)
                continue
            if not consumer.can_take():
                return
            link.waiting.popleft()
            if consumer.too_large(first.message):
                consumer.refuse(first.message)
                return
            consumer.deliver(first)

    def _tell_available(self) -> None:
        if self._links:
            machine = self.queue
            for name, link in self._links.items():
                link.consumer.available(machine.available_to(name))
