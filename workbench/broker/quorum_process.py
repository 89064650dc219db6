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
from typing import Any

from msgspec.structs import replace

from workbench.queues import (
    Cancel,
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
    Origin,
    Purge,
    QueueArguments,
    Release,
    Reply,
    Settle,
    Settlement,
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
from workbench.sim import Actor, Clock, Tap

from .queue_mail import Consumer
from .queue_process import MESSAGE_OCTETS, counters
from .queue_timer import QueueTimer
from .quorum_client import ClientOwner, FifoClient
from .raft_group import RaftGroup
from .unconfirmed import CONFIRMED, UNROUTABLE, QueueAnswer, Refused


class _Through:
    """A client of the queue, and whoever waits for its commands.

    AMQP 1.0 sessions have one together, and are not held by it. Each 0-9-1 channel has its own: it
    grants nothing upstream while that is slow (`rabbit_channel.erl`).

    Args:
        process: the queue's.
        make: makes the client, of a name, for this owner.
        via: the channel's process; None: sessions'.

    Attributes:
        client: sends commands to the leader.
        answers: by the number of a message's command, whom to tell that it is confirmed.
        purges: by the number of a purge, whom to tell how many messages went.
    """

    def __init__(
        self,
        process: QuorumProcess,
        make: Callable[[str, ClientOwner], FifoClient],
        via: Actor[Any] | None,
    ) -> None:
        self.answers: dict[int, QueueAnswer] = {}
        self.purges: dict[int, Callable[[int], None]] = {}
        self._process = process
        self._via = via
        who = "session" if via is None else via.name
        self.client = make(f"{who}@{process.name}", self)

    def replied(self, logged: Logged, reply: QuorumReply) -> None:
        """A command was applied."""
        self._process.replied(self, logged, reply)

    def handed(self, effect: Handed) -> None:
        """A message for one of its consumers."""
        self._process.handed(effect)

    def told(self, effect: QuorumEffect) -> None:
        """Any other effect."""
        self._process.told(effect)

    def slowed(self, slow: bool, pending: int) -> None:
        """The soft limit is passed, or no longer."""
        self._process.slowed(slow, pending)
        if self._via is not None:
            (self._via.block if slow else self._via.unblock)(f"queue:{self._process.name}")

    def end(self) -> None:
        """The queue is deleted: it holds nobody up."""
        self.client.close()
        self.answers.clear()
        purges, self.purges = self.purges, {}
        for done in purges.values():
            done(0)
        if self._via is not None:
            self._via.unblock(f"queue:{self._process.name}")


@dataclass(slots=True)
class _Link:
    """A consumer's link, and what the queue has handed out that it could not take yet."""

    consumer: Consumer
    client: FifoClient  # through which it attached
    waiting: deque[Deliver | CreditReply] = field(default_factory=deque)
    active: bool = False  # as the queue has told


@dataclass(slots=True)
class _Leftover:
    """Of a consumer that was cancelled: what it holds it may still settle."""

    client: FifoClient
    held: int = 0  # messages, as far as the queue has answered the cancel and what came behind it


class QuorumProcess:
    """One quorum queue, with its links.

    Args:
        clock, tap: of the run.
        group: the replicas.
        arguments: with which the queue was declared.
        place: node where the sessions are.
        soft_limit: pending commands at which the queue counts as slow.

    Attributes:
        full: publishers are refused, as far as is known here.
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
        self.dead_letter: Callable[[DeadLettered], None] | None = None
        self.gone: Callable[[], None] | None = None
        self._clock = clock
        self._log = tap.bind(
            clock, vantage=f"queue:{group.name}", queue=group.name, ledger=partial(counters, self)
        ).note
        self._links: dict[str, _Link] = {}
        self._cancelled: dict[str, _Leftover] = {}
        self._leaving: dict[str, Callable[[], None]] = {}  # told when a consumer is gone
        self._logged_octets = 0
        self._logged = 0  # commands of channels that are gone, and from before the run
        self._ended = False
        self._unused = QueueTimer(clock, self._expire)
        self._left_alone()

        def client(name: str, owner: ClientOwner) -> FifoClient:
            return FifoClient(group, clock, name, place=place, owner=owner, soft_limit=soft_limit)

        self._make_client = client
        self._sessions = _Through(self, client, None)
        self._channels: dict[Actor[Any], _Through] = {}

    @property
    def queue(self) -> QuorumFifo:
        """The copy that knows most; it may change with the leader."""
        return self.group.front()

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.group.name

    @property
    def client(self) -> FifoClient:
        """Through which the sessions' commands go."""
        return self._sessions.client

    @property
    def sent(self) -> int:
        """Commands that were ever sent, or put in before the run began."""
        return self._logged + sum(one.client.sent for one in self._clients())

    @property
    def mailbox(self) -> int:
        """Commands that wait for their answer."""
        return sum(len(one.client.pending) for one in self._clients())

    @property
    def held_octets(self) -> int:
        """What its messages take of the memory, about: a log is kept whole, so all that ever came.

        Replicas share what is in their logs.
        """
        return self._logged_octets + MESSAGE_OCTETS * self.sent

    @property
    def links(self) -> tuple[Consumer, ...]:
        """The attached consumers' links, in order of attaching."""
        return tuple(link.consumer for link in self._links.values())

    # -- from publishers --------------------------------------------------------------------

    def publish(
        self,
        message: Message,
        answered: QueueAnswer | None = None,
        *,
        origin: Origin | None = None,
        via: Actor[Any] | None = None,
        at_once: bool = False,
    ) -> None:
        """Send a message to the leader; see `QueueProcess.publish`."""
        if self.full:
            self._log("drop", kind="publish", extra={"reason": MAXLEN})
            if answered is not None:
                answered(self, Refused(MAXLEN, self.name))
            return
        through = self._through(via)
        if answered is not None:
            through.answers[through.client.sent + 1] = answered
        self._logged_octets += message.size
        came = origin or Origin(routing_keys=(self.name,))
        through.client.send(Enqueue(message=message, origin=came))

    def fill(self, messages: Iterable[Message]) -> None:
        """Put messages in before the run begins: no time passes, one row tells of all."""
        commands = [Enqueue(message=message) for message in messages]
        self.group.fill(commands)
        self._logged += len(commands)
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
        via: Actor[Any] | None = None,
    ) -> None:
        """Attach a consumer; the queue knows of it when the command is applied."""
        client = self._through(via).client
        self._links[name] = _Link(consumer, client)
        self._unused.set(None)
        client.consume(name)
        client.send(Checkout(consumer=name, mode=mode, settled=settled, priority=priority))

    def detach(
        self, name: str, *, failed: bool = False, done: Callable[[], None] | None = None
    ) -> None:
        """Detach a consumer; its messages go back when the command is applied."""
        left = self._cancelled.pop(name, None)
        found = self._links.pop(name, None) or left
        if found is not None:
            found.client.forget(name)
        if found is None or self._ended:  # it holds nothing, or no replica could let it go
            if done is not None:
                done()
            return
        if done is not None:
            self._leaving[name] = done
        found.client.send(DetachConsumer(consumer=name, delivery_failed=failed))
        self._left_alone()

    def cancel(self, name: str, done: Callable[[], None]) -> None:
        """Send a cancel; until it is applied messages come."""
        if self._ended:  # no replica could apply it
            self._links.pop(name, None)
            done()
            return
        client = self._links[name].client
        self._cancelled[name] = _Leftover(client)
        self._leaving[name] = done
        client.send(Cancel(consumer=name))

    def purge(self, done: Callable[[int], None]) -> None:
        """Send a purge; `done` is told when it is applied."""
        through = self._sessions
        through.purges[through.client.sent + 1] = done
        through.client.send(Purge())

    def command(self, command: Command) -> Reply:
        """Send credit or a settlement; the reply says how many messages are named."""
        name = getattr(command, "consumer", "")
        found = self._links.get(name) or self._cancelled.get(name)
        if found is not None:  # else it holds nothing, and gets nothing
            found.client.send(command)
        if isinstance(command, Settlement):
            return Count(count=len(command.message_ids))
        return None

    def request(self, credit: Credit) -> None:
        """Send credit; the consumer hears when all that it brings was handed out."""
        self._links[credit.consumer].client.send(credit)

    def reached(self, task: Callable[[], None]) -> None:
        """Do something at once: what is asked of a quorum queue is a command in its log, too."""
        task()

    def touch(self) -> None:
        """Counts for nothing here: `rabbit_fifo.erl` heeds who consumes or gets (`last_active`)."""

    def _left_alone(self) -> None:
        """Its last consumer has left: from now on it is unused."""
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
        for through in self._clients():
            through.end()
        self.group.end()
        for name in tuple(self._leaving):
            self._let_go(name)

    def overview(self) -> dict[str, int | str]:
        """Flat picture: the queue's own, its replicas', and how many commands are pending."""
        return {
            **self.queue.overview(),
            **self.group.overview(),
            "mailbox": self.mailbox,
            "slow": int(any(one.client.slow for one in self._clients())),
        }

    def left(self, via: Actor[Any]) -> None:
        """A channel is gone: nobody waits for what it has sent."""
        through = self._channels.pop(via, None)
        if through is not None:
            for answered in tuple(through.answers.values()):
                answered(self, UNROUTABLE)
            pending = [one.command for one in through.client.pending.values()]
            through.end()
            self._logged += through.client.sent
            # Whoever leads next must hear that these consumers are gone.
            for command in pending:
                if isinstance(command, DetachConsumer):
                    self._sessions.client.send(command)

    # -- told by clients ----------------------------------------------------------------------

    def replied(self, through: _Through, logged: Logged, reply: QuorumReply) -> None:
        """A command was applied: a message is confirmed with it, others may see a change."""
        if isinstance(logged.command, Enqueue):
            answered = through.answers.pop(logged.seq, None)
            self._log("confirm", extra={"message": logged.enqueue_seq})
            if answered is not None:
                answered(self, CONFIRMED)
        if isinstance(logged.command, Cancel):
            link = self._links.pop(logged.command.consumer, None)
            held = () if link is None else tuple(link.waiting)
            numbers = tuple(one.message.message_id for one in held if isinstance(one, Deliver))
            if numbers:  # that it could not take
                self.command(Release(consumer=logged.command.consumer, message_ids=numbers))
            self._left_alone()
        if isinstance(logged.command, Cancel | DetachConsumer):
            self._let_go(logged.command.consumer)
        if isinstance(logged.command, Cancel | Settlement):
            self._count_held(logged.command, reply)
        purged = through.purges.pop(logged.seq, None)
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
        name = deliver.consumer
        if name in self._links:
            self._links[name].waiting.append(deliver)
            self._flush(name)
        elif name in self._cancelled:  # a cut had kept it until the consumer was cancelled
            self.command(Release(consumer=name, message_ids=(effect.number,)))

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
        """A client has passed the soft limit, or no longer."""
        event = "block" if slow else "unblock"
        self._log(event, kind="soft-limit", extra={"pending": pending})

    # -- inside -----------------------------------------------------------------------------

    def _through(self, via: Actor[Any] | None) -> _Through:
        """The client of a channel, made with its first command; or that of all sessions."""
        if via is None:
            return self._sessions
        through = self._channels.get(via)
        if through is None:
            through = self._channels[via] = _Through(self, self._make_client, via)
        return through

    def _clients(self) -> tuple[_Through, ...]:
        return (self._sessions, *self._channels.values())

    def _count_held(self, command: Cancel | Settlement, reply: QuorumReply) -> None:
        """A cancelled consumer is forgotten when the queue has said that it holds nothing more."""
        name = command.consumer
        left = self._cancelled.get(name)
        if left is None or name in self._links or not isinstance(reply, Count):
            return
        left.held += reply.count if isinstance(command, Cancel) else -reply.count
        if not left.held:
            del self._cancelled[name]
            left.client.forget(name)

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
