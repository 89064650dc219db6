"""A queue at work, as links and the broker see it, and the process of a classic queue or a stream.

`QueueProcess` is what any kind of queue answers; a quorum queue's is in `quorum_process`.
`LocalQueueProcess` is a state machine, a mailbox, and consumers that may or may not take a message.
One process serves the queue. Taking a message in and handing one out each cost a service time and
go through its mailbox, so that publishers and consumers compete for it. Everything else (credit,
settlement, attaching, detaching) is obeyed at once: it costs a real queue next to nothing, and a
queue that reads these first is what RabbitMQ's process priorities amount to.

One message is handed out per clock event. Between any two a person may act.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from workbench.queues import (
    Activated,
    Cancel,
    Checkout,
    ClassicQueue,
    Command,
    Confirm,
    Count,
    Credit,
    CreditMode,
    DeadLettered,
    Deliver,
    DetachConsumer,
    Dispatch,
    Drained,
    Dropped,
    Effect,
    Enqueue,
    Expire,
    FlowChanged,
    Gone,
    Held,
    Message,
    Meta,
    Modify,
    Origin,
    Prefetch,
    Purge,
    Queue,
    QueueArguments,
    QueueError,
    QueueState,
    Reject,
    Rejected,
    Release,
    Reply,
    Requeued,
    Selection,
    Settle,
    Start,
    Stored,
    Touch,
)
from workbench.queues.variable_queue import Pass, VariableQueue
from workbench.sim import Actor, Clock, CreditFlow, Tap

from .hops import Hops
from .message_store import QueueDisk, Stores
from .mirrors import Mirrors
from .queue_mail import HAND_OUT, Consumer, HandOut, Mail, Publish
from .queue_timer import QueueTimer
from .unconfirmed import CONFIRMED, UNROUTABLE, QueueAnswer, Refused

MESSAGE_OCTETS = 400
"""What a message takes besides its payload: 220 octets in a classic queue, 590 in the log of a
quorum queue with one replica, measured by tracemalloc."""
WORDS: dict[type, str] = {
    Settle: "settle",
    Reject: "settle",
    Release: "requeue",
    Modify: "requeue",
    Purge: "settle",
}
"""Commands as events of a trace."""
CHANGING = (Enqueue, Release, Modify, DetachConsumer, Purge, Expire)
"""Commands after which other consumers may get something."""

_NOBODY: frozenset[str] = frozenset()
MOST_HELD = 2**31 - 1
"""Messages that a consumer of `fill` may hold: any number."""
PLACES = ("q1", "q2", "delta", "q3", "q4", "ram_messages", "ram_acks", "disk_acks", "index_acks")
"""What a row tells of a queue that pages messages out: `Counts` of its book."""
Aim = Callable[[VariableQueue], bool]
"""Tells a queue how much may be in RAM; returns whether it has to page out."""


class QueueProcess(Protocol):
    """A queue of any kind at work.

    Attributes:
        dead_letter: publishes a dead letter to its exchange; None: it is gone.
        gone: deletes the queue, which nobody has used for so long; None: it stays.
    """

    dead_letter: Callable[[DeadLettered], None] | None
    gone: Callable[[], None] | None

    @property
    def name(self) -> str:
        """The queue's name."""

    @property
    def arguments(self) -> QueueArguments:
        """How the queue was declared."""

    @property
    def queue(self) -> QueueState:
        """What is in the queue."""

    @property
    def mailbox(self) -> int:
        """What waits for the process."""

    @property
    def held_octets(self) -> int:
        """What its messages take of the memory, about."""

    def publish(
        self,
        message: Message,
        answered: QueueAnswer | None = None,
        *,
        origin: Origin | None = None,
        via: Actor[Any] | None = None,
        at_once: bool = False,
    ) -> None:
        """Post a message to the queue.

        Args:
            message: to be taken in.
            answered: told, once, whether the queue has taken it.
            origin: how it came here; None: straight to the queue.
            via: the publisher's process, if it counts credit with queues.
            at_once: a classic queue takes it only if a consumer does when its turn comes, and
                answers as a queue that is not there otherwise.
        """

    def fill(self, messages: Iterable[Message]) -> None:
        """Put messages in before the run begins: no time passes, one row tells of all."""

    def attach(
        self,
        name: str,
        consumer: Consumer,
        *,
        mode: CreditMode,
        settled: bool,
        priority: int = 0,
        start: Start | None = None,
        selection: Selection | None = None,
        via: Actor[Any] | None = None,
    ) -> None:
        """Attach a consumer.

        Args:
            name: of the consumer.
            consumer: who it is.
            mode: how it gets credit.
            settled: its messages are settled as they leave.
            priority: higher ones are served first.
            start: where to begin in a stream.
            selection: what of a stream it wants.
            via: the consumer's process, if it counts credit with queues.
        """

    def detach(
        self, name: str, *, failed: bool = False, done: Callable[[], None] | None = None
    ) -> None:
        """Detach a consumer.

        Args:
            name: of the consumer.
            failed: that counts as a failed attempt to deliver them.
            done: called when they are back in the queue.
        """

    def cancel(self, name: str, done: Callable[[], None]) -> None:
        """Let a consumer get nothing more; it keeps what it has not settled, and may settle it.

        Args:
            name: of the consumer.
            done: called when nothing more comes.
        """

    def purge(self, done: Callable[[int], None]) -> None:
        """Drop what is ready; `done` is told how many messages went.

        Raises:
            QueueError: it is a stream, from which nobody takes anything.
        """

    def command(self, command: Command) -> Reply:
        """Obey credit or a settlement; a quorum queue's reply says how many it names."""

    def request(self, credit: Credit) -> None:
        """Obey credit; the consumer hears of it when all that it brings has been handed out."""

    def reached(self, task: Callable[[], None]) -> None:
        """Do something when the process has come to all that is in its mailbox now."""

    def left(self, via: Actor[Any]) -> None:
        """A process that counted credit with the queue is gone."""

    def touch(self) -> None:
        """Somebody has declared the queue again, or asked how it is."""

    def kick(self) -> None:
        """A consumer may be able to take a message again: look."""

    def stall(self) -> None:
        """Take nothing in and hand nothing out, as a process that hangs."""

    def resume(self) -> None:
        """Go on where it stopped."""

    def end(self) -> None:
        """It is deleted, with all that waits in it: nothing comes of it any more."""

    def overview(self) -> dict[str, int | str]:
        """Flat picture: the queue's own, and the depth of its mailbox."""


def counters(process: QueueProcess) -> dict[str, int | bool]:
    """What is in a queue and waits for it, for a row of the trace."""
    queue = process.queue
    return {
        "queue_ready": queue.ready,
        "queue_unsettled": queue.unsettled,
        "mailbox": process.mailbox,
    }


class LocalQueueProcess:
    """One classic queue or stream with its clock, its consumers and its observer.

    Args:
        clock: the run's clock.
        queue: the state machine.
        enqueue_us, deliver_us: service time of taking one message in, and of handing one out.
        tap: observer of what happens inside.
        flow: credit of publishers' processes that count any.
        stores: where its messages are kept; None: it keeps none on disk.
        hands_on: a message for which a consumer waits goes out in the turn in which it comes in;
            otherwise taking in and handing out are turns of their own.
        durable: it survives a restart, with its persistent messages.
        counts_credit: publishers' processes count credit with it (`mirroring_flow_control`).

    Attributes:
        mirrors: copies of the queue on other nodes; None until there is one.
        book: of what of its messages is in RAM and what on disk; None: it pages nothing out.
    """

    queue: Queue

    def __init__(
        self,
        clock: Clock,
        queue: Queue,
        *,
        enqueue_us: int,
        deliver_us: int,
        tap: Tap,
        flow: CreditFlow | None,
        stores: Stores | None = None,
        hands_on: bool = False,
        durable: bool = True,
        counts_credit: bool = True,
    ) -> None:
        self._hands_on = hands_on
        self.mirrors: Mirrors | None = None
        self._counts_credit = counts_credit
        self.dead_letter: Callable[[DeadLettered], None] | None = None
        self.gone: Callable[[], None] | None = None
        self._looks_first = queue.arguments.limits_what_waits
        self._straight = Origin(routing_keys=(queue.name,))
        self.queue = queue
        self.enqueue_us = enqueue_us
        self.deliver_us = deliver_us
        self._clock = clock
        vantage = f"queue:{queue.name}"
        self._log = tap.bind(
            clock, vantage=vantage, queue=queue.name, ledger=partial(counters, self)
        ).note
        hops = Hops(tap, clock, vantage)
        self._consumers: dict[str, Consumer] = {}
        self._handing_out = False  # a HAND_OUT is in the mailbox
        self._requests: list[Credit] = []  # that came while it was stalled
        self._owed: dict[str, None] = {}  # consumers whose request has not been answered
        self._want_room: list[Callable[[], None]] = []
        self._actor: Actor[Mail] = Actor(
            clock,
            vantage,
            service_us=self._service_us,
            handle=self._handle,
            flow=flow,
            blocking=hops.blocking,
            bumped=self._reduce,
            watch=hops,
        )
        self._disk: QueueDisk | None = None
        if stores is not None and (durable or stores.pages):
            self._disk = QueueDisk(
                clock, stores, self._actor, self._confirm, self._paged, durable=durable
            )
        self.book = None if self._disk is None else self._disk.book
        self._aims: list[Aim] = []  # that came while it was stalled
        self._told_target = False  # rows tell what is in RAM once the queue had a target
        self._timer = QueueTimer(clock, self._time_is_up)
        self._set_timer()

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.queue.name

    @property
    def arguments(self) -> QueueArguments:
        """How the queue was declared."""
        return self.queue.arguments

    @property
    def mailbox(self) -> int:
        """Messages and hand-outs that wait for the process."""
        return self._actor.depth

    @property
    def held_octets(self) -> int:
        """What its messages take of the memory, about: those in the queue and in its mailbox."""
        queue, waiting = self.queue, self._actor.waiting(Publish)
        octets, positions = queue.octets, queue.ready + queue.unsettled
        if self.book is not None:
            counts = self.book.counts()
            octets, positions = counts.ram_octets, counts.positions
        return (
            octets
            + sum(one.message.size for one in waiting)
            + MESSAGE_OCTETS * (positions + len(waiting))
        )

    @property
    def held(self) -> int:
        """Messages in the queue, ready or handed out."""
        return self.queue.ready + self.queue.unsettled

    @property
    def stalled(self) -> bool:
        """It takes nothing in and hands nothing out."""
        return self._actor.stalled

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
        """Post a message to the queue; see `QueueProcess.publish`."""
        if not self._counts_credit:
            via = None
        if self.mirrors is not None:
            self._publish_mirrored(message, answered, origin or self._straight, via)
            return
        publish = Publish(message, origin or self._straight, answered, at_once)
        if via is None:
            self._actor.post(publish)
        else:
            via.send(self._actor, publish)

    def _publish_mirrored(
        self,
        message: Message,
        answered: QueueAnswer | None,
        origin: Origin,
        via: Actor[Any] | None,
    ) -> None:
        assert self.mirrors is not None
        answered = self.mirrors.awaits(answered)
        there = tuple(self.mirrors.all.values())
        publish = Publish(message, origin, answered, via=via, mirrors=there)
        if via is None:
            self._actor.post(publish)
        else:
            via.send(self._actor, publish)
        self.mirrors.addressed(publish)

    def fill(
        self, messages: Iterable[Message], held: int = 0, by: tuple[str, Consumer] | None = None
    ) -> None:
        """Put messages in before the run begins: no time passes, one row tells of all.

        Args:
            messages: in order.
            held: of them so many were handed out already.
            by: name of the consumer that holds them, and the consumer.
        """
        count = 0
        for message in messages:
            count += 1
            command = Enqueue(message=message, origin=self._straight)
            for effect in self.queue.apply(command, self._meta())[1]:
                if not isinstance(effect, Confirm):
                    self._carry_out(effect)
                elif self._disk is not None:
                    self._disk.holds(self.queue.enqueued - 1, message)
        self._tell_available()
        self._log_count("enqueue", count)
        if by is not None:
            self._hold(held, *by)
        self._set_timer()

    def when_room(self, call: Callable[[], None]) -> None:
        """Call this, once, when the queue is below its low watermark again."""
        self._want_room.append(call)

    def _hold(self, count: int, name: str, consumer: Consumer) -> None:
        """Attach a consumer that has got so many messages and not settled them."""
        self._consumers[name] = consumer
        mode = Prefetch(MOST_HELD)
        self.queue.apply(Checkout(consumer=name, mode=mode, settled=False), self._meta())
        for _ in range(count):
            for effect in self.queue.apply(Dispatch(), self._meta())[1]:
                if isinstance(effect, Deliver) and self._disk is not None:
                    self._disk.handed_out(effect.message.message_id, settled=False)
        self._log_count("deliver", count)

    # -- from consumers ---------------------------------------------------------------------

    def attach(
        self,
        name: str,
        consumer: Consumer,
        *,
        mode: CreditMode,
        settled: bool,
        priority: int = 0,
        start: Start | None = None,
        selection: Selection | None = None,
        via: Actor[Any] | None = None,
    ) -> None:
        """Attach a consumer; see `QueueProcess.attach`."""
        # It is known before the queue is told: what comes of the command may concern it.
        self._consumers[name] = consumer
        self._command(
            Checkout(
                consumer=name,
                mode=mode,
                settled=settled,
                priority=priority,
                start=start,
                selection=selection,
            )
        )

    def detach(
        self, name: str, *, failed: bool = False, done: Callable[[], None] | None = None
    ) -> None:
        """Detach a consumer, cancelled or not; its messages go back into the queue at once."""
        self._consumers.pop(name, None)
        if self.queue.knows(name):  # else it was cancelled, and has settled all
            self._command(DetachConsumer(consumer=name, delivery_failed=failed))
        if done is not None:
            done()

    def cancel(self, name: str, done: Callable[[], None]) -> None:
        """Let a consumer get nothing more, at once."""
        del self._consumers[name]
        self._command(Cancel(consumer=name))
        done()

    def purge(self, done: Callable[[int], None]) -> None:
        """Drop what is ready; `done` is told how many messages went."""
        reply = self._command(Purge())
        assert isinstance(reply, Count)
        done(reply.count)

    def command(self, command: Command) -> Reply:
        """Obey credit or a settlement, at once."""
        reply = self._command(command)
        if self._disk is not None and isinstance(command, Settle | Reject):
            self._disk.gone(command.message_ids)
        if isinstance(reply, Count):
            self._log_count(WORDS.get(type(command), "note"), reply.count)
        return reply

    def request(self, credit: Credit) -> None:
        """Obey credit; the consumer hears of it when all that it brings has been handed out."""
        if self._actor.stalled:
            self._requests.append(credit)
            return
        self._owed[credit.consumer] = None
        self._command(credit)

    def reached(self, task: Callable[[], None]) -> None:
        """Do something in its turn: at once, if nothing waits."""
        if self._actor.depth:
            self._actor.post(task)
        else:
            task()

    def left(self, via: Actor[Any]) -> None:
        """A process is gone: it has told so itself, and its messages are taken in all the same."""

    def touch(self) -> None:
        """Somebody has declared the queue again, or asked how it is."""
        if self.arguments.expires_ms is not None:
            self._command(Touch())

    def kick(self) -> None:
        """A consumer may be able to take a message again: look."""
        if not self._handing_out and self.queue.deliverable(self._unable()):
            self._handing_out = True
            self._actor.post(HAND_OUT)

    # -- from a person ----------------------------------------------------------------------

    def stall(self) -> None:
        """Take nothing in and hand nothing out, as a process that hangs on its disk."""
        if not self._actor.stalled:
            self._actor.stall()
            self._log("note", kind="stalled")

    def resume(self) -> None:
        """Go on where it stopped."""
        copies = self.mirrors is not None and self.mirrors.synchronising
        if self._actor.stalled and not copies:
            self._actor.resume()
            self._log("note", kind="resumed")
            aims, self._aims = self._aims, []
            for aim in aims:
                self._aim(aim)
            self._time_is_up()
            requests, self._requests = self._requests, []
            for credit in requests:
                if credit.consumer in self._consumers:
                    self.request(credit)

    # -- memory -----------------------------------------------------------------------------

    def ram_duration(self) -> float | None:
        """For how many seconds of its traffic it has messages in RAM; None: it does not answer."""
        if self.book is None or self._actor.stalled:
            return None
        return self.book.duration(self._clock.now_us)

    def set_ram_duration(self, seconds: float) -> None:
        """Let messages for so many seconds of its traffic be in RAM, and page out the others."""
        self._aim(lambda book: book.set_duration(seconds))

    def set_ram_target(self, count: int | None) -> None:
        """Let so many messages be in RAM, and page out the others; None: any number.

        Raises:
            QueueError: for a negative number, or if the broker's classic queues page nothing.
        """
        if self.book is None:
            raise QueueError("no message is paged out here; legal: a preset from before RabbitMQ 4")
        if count is not None and count < 0:
            raise QueueError(f"target_ram_count is {count}; legal: 0 or more messages")
        self._aim(lambda book: book.set_target(count))

    def _aim(self, aim: Aim) -> None:
        if self.book is None:
            return
        if self._actor.stalled:
            self._aims.append(aim)
            return
        before = self.book.target
        due = aim(self.book)
        if self.book.target != before:
            self._log("note", kind="ram-target", extra=self._in_ram())
        if due:
            self._reduce()

    def _reduce(self) -> None:
        if self._disk is not None:
            self._disk.reduce()

    def _paged(self, made: Pass) -> None:
        """A go of paging is done: one row tells of it."""
        told = {
            "quota": made.quota,
            "left": made.left,
            "acks": made.acks,
            "messages": made.messages,
            "positions": made.positions,
            "first": "acks" if made.acks_first else "messages",
            "stopped": made.blocked,
        }
        self._log("note", kind="paged", extra={**told, **(self._in_ram() or {})})

    def _in_ram(self) -> dict[str, Any] | None:
        """Where messages are, for a row; nothing before the queue has a target."""
        book = self.book
        if book is None or (book.target is None and not self._told_target):
            return None
        self._told_target = True
        counts = book.counts()
        told = {name: getattr(counts, name) for name in PLACES}
        return {"ram": {"target": book.target, **told}}

    def end(self) -> None:
        """It is deleted, with all that waits in it: nothing comes of it any more."""
        self.dead_letter = self.gone = None
        self._timer.stop()
        self._actor.end()
        if self._disk is not None:
            self._disk.end()
        if self.mirrors is not None:
            self.mirrors.end()
        self._handing_out = True  # whoever leaves it wakes nobody up
        with suppress(QueueError):  # a stream is not purged, nobody reads it any more
            self.queue.apply(Purge(), self._meta())
        self._log("note", kind="deleted")
        waiting, self._want_room = self._want_room, []
        for call in waiting:
            call()

    def overview(self) -> dict[str, int | str]:
        """Flat picture: the queue's own, and the depth of its mailbox."""
        return {**self.queue.overview(), "mailbox": self.mailbox}

    # -- inside -----------------------------------------------------------------------------

    def _service_us(self, message: Mail) -> int:
        if isinstance(message, Publish):
            goes_on = self._hands_on and self._would_go()
            return self.enqueue_us + (self.deliver_us if goes_on else 0)
        return self.deliver_us if isinstance(message, HandOut) else 0

    def _handle(self, message: Mail) -> None:
        if isinstance(message, Publish):
            self._take_in(message)
            if self.mirrors is not None:
                self.mirrors.broadcast(message)
        elif not isinstance(message, HandOut):
            message()
        else:
            self._handing_out = False
            if not self._refuses():  # if so, somebody else is looked for when that one has left
                self._command(Dispatch(unable=self._unable()))
        if self._disk is not None:
            self._disk.look()

    def _take_in(self, message: Publish) -> None:
        if message.at_once and not self._would_go():
            self._log("drop", kind="publish", extra={"reason": "no-consumers"})
            if message.answered is not None:
                message.answered(self, UNROUTABLE)
            return
        unable = _NOBODY
        if self._looks_first or message.message.ttl_ms == 0:
            self._refuses()
            unable = self._unable()
        if not self._hands_on or self._handing_out:
            self._command(message.command(unable))
            return
        self._handing_out = True  # nobody else is to wake it up for that
        self._command(message.command(unable))
        self._handing_out = False
        self._command(Dispatch(unable=self._unable()))

    def _would_go(self) -> bool:
        """Whether a consumer takes one message more than is ready."""
        unable, ready = self._unable(), self.queue.ready
        able = (name for name in self._consumers if name not in unable)
        return sum(self.queue.consumer(name).link_credit for name in able) > ready

    def _command(self, command: Command) -> Reply:
        back = self._going_back(command) if self.book is not None else ()
        reply, effects = self.queue.apply(command, self._meta())
        if back:
            assert self._disk is not None
            self._disk.requeued(back)
        if self._consumers:
            self._tell_available()
        for effect in effects:
            self._carry_out(effect)
        if self._consumers:
            if isinstance(command, CHANGING):
                for consumer in tuple(self._consumers.values()):
                    consumer.noticed()
            self._answer_requests()
            self.kick()
        self._set_timer()
        return reply

    def _going_back(self, command: Command) -> tuple[int, ...]:
        """Numbers of the messages that a command puts back into the queue."""
        if isinstance(command, Release | Modify):
            return command.message_ids
        if isinstance(command, DetachConsumer):
            assert isinstance(self.queue, ClassicQueue)
            with suppress(QueueError):  # what `apply` is about to raise, it says itself
                return self.queue.unsettled_ids(command.consumer)
        return ()

    def _set_timer(self) -> None:
        deadline = self.queue.deadline_us()
        if deadline is not None or self._timer.armed:
            self._timer.set(deadline)

    def _time_is_up(self) -> None:
        if not self._actor.stalled:  # a process that hangs looks at no timer
            self._command(Expire())

    def _answer_requests(self) -> None:
        """Answer whoever has got all that its credit can bring now."""
        for name in tuple(self._owed):
            if name not in self._consumers or name not in self._owed:  # an answer ends others
                self._owed.pop(name, None)
                continue
            counters, consumer = self.queue.consumer(name), self._consumers[name]
            if counters.link_credit == 0 or not self.queue.has_for(name) or consumer.gives_up():
                del self._owed[name]
                consumer.credit_replied(counters)

    def _refuses(self) -> bool:
        """Whether the consumer whose turn it is takes no message of this size, and is gone now.

        Looked at before the message is handed out: afterwards a settled one would be lost.
        """
        if not any(consumer.limits_size() for consumer in self._consumers.values()):
            return False
        found = self.queue.next_out(self._unable())
        if found is None:
            return False
        name, message = found
        consumer = self._consumers[name]
        if not consumer.too_large(message):
            return False
        consumer.refuse(message)
        return True

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Held():
                self._log("enqueue", kind="held")
            case FlowChanged(stopped=stopped):
                self._log("block" if stopped else "unblock", kind="queue-flow")
                if not stopped:
                    waiting, self._want_room = self._want_room, []
                    for call in waiting:
                        call()
            case Confirm(publish=publish, held=held):
                disk, number = self._disk, self.queue.enqueued - 1
                if disk is not None and self.book is not None and isinstance(publish, Publish):
                    disk.holds(number, publish.message)
                self._log("confirm" if held else "enqueue", extra=self._in_ram())
                if isinstance(publish, Publish) and (
                    held or disk is None or disk.takes(number, publish)
                ):
                    self._confirm(publish)
            case Deliver(consumer=name):
                if self._disk is not None and self.book is not None:
                    self._disk.handed_out(effect.message.message_id, settled=effect.settled)
                self._log("deliver", kind=name, extra=self._in_ram())
                if effect.settled:
                    self._left(effect.message)
                self._consumers[name].deliver(effect)
            case Drained(consumer=name):
                self._consumers[name].drained(effect)
            case Rejected(publish=publish, reason=reason):
                self._log("drop", kind="publish", extra={"reason": reason})
                if isinstance(publish, Publish) and publish.answered is not None:
                    publish.answered(self, Refused(reason, self.name))
            case DeadLettered(reason=reason, exchange=exchange):
                self._log("drop", kind="dead-letter", extra={"reason": reason, "to": exchange})
                self._left(effect.message)
                if self.dead_letter is not None:
                    self.dead_letter(effect)
            case Dropped(reason=reason):
                self._log("drop", extra={"reason": reason})
                self._left(effect.message)
            case Requeued(count=count):
                self._log_count("requeue", count)
            case Gone(reason=reason):
                self._log("note", kind="gone", extra={"reason": reason})
                if self.gone is not None:
                    self.gone()
            case Activated(consumer=name):
                self._log("activate", kind=name)
                self._consumers[name].activated()

    def _confirm(self, publish: Publish) -> None:
        """The queue has taken responsibility for a message: its publisher hears of it."""
        if publish.answered is not None:
            publish.answered(self, CONFIRMED)

    def _left(self, message: Stored) -> None:
        """A message is no longer in the queue, however it went."""
        if self._disk is not None:
            self._disk.gone((message.message_id,))

    def _unable(self) -> frozenset[str]:
        return frozenset(
            name for name, consumer in self._consumers.items() if not consumer.can_take()
        )

    def _tell_available(self) -> None:
        for name, consumer in self._consumers.items():
            consumer.available(self.queue.available_to(name))

    def _meta(self) -> Meta:
        return Meta(t_us=self._clock.now_us, sender="broker")

    def _log_count(self, event: str, count: int) -> None:
        """One row for as many messages as one command concerned."""
        if count:
            self._log(event, extra={"count": count} if count > 1 else None)
