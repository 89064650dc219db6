"""An AMQP 0-10 client of a run: a connection, and its senders and receivers, a session each.

A sender's window is that of Qpid's C++ messaging API (`amqp0_10/SenderImpl.cpp`): it counts
transfers that are not complete, as far as it has looked. Every quarter of the window it asks what
is complete, and looks. When the window is full it blocks until all that it has sent is complete: it
sends execution.sync, and the broker completes that last. A sender without a window never asks.
Whatever its window, a sender heeds message.stop and message.flow for the destination "", by which
Qpid's Java broker stops it and lets it go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from workbench.amqp010.commands import (
    UNLIMITED,
    AcceptMode,
    AcquireMode,
    CreditUnit,
    ExecutionSync,
    FlowMode,
    MessageAccept,
    MessageFlow,
    MessageFlush,
    MessageSetFlowMode,
    MessageStop,
    MessageSubscribe,
    MessageTransfer,
)
from workbench.amqp010.composite import Command
from workbench.amqp010.connection import Connection, ConnectionSettings
from workbench.amqp010.controls import ConnectionOpenOk
from workbench.amqp010.events import (
    CommandReceived,
    CommandsCompleted,
    ControlReceived,
    Event,
    ExceptionReceived,
)
from workbench.amqp010.frame import Headers, WireItem
from workbench.amqp010.ranges import on_wire
from workbench.amqp010.scope import ItemScope
from workbench.amqp010.session import Session
from workbench.amqp010.states import SessionState
from workbench.amqp010.structs import DeliveryProperties
from workbench.amqp010.values import SequenceSet
from workbench.sim import Clock, Wire

__all__ = ["CAPACITY", "Client010", "Receiver010", "Sender010", "Task010"]

QPID_WINDOW, LINK_CREDIT = "qpid-window", "link-credit"  # what blocks, by its name in a trace

CAPACITY = 50
"""Of a sender's window, in transfers (`SenderImpl::SenderImpl`)."""

Overview = dict[str, int | bool | str]


def _nothing(*given: object) -> None:
    """Does nothing: a callback that is not needed."""


class Task010:
    """What a client does on one of its sessions.

    Args:
        name: of the task, and of its session.

    Attributes:
        session: the session, once it is attached.
        error: code and text of the exception that has ended it; None: none has.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.session: Session | None = None
        self.error: tuple[int, str] | None = None
        self._client: Client010 | None = None

    def join(self, client: Client010) -> None:
        """Belongs to a client."""
        self._client = client

    @property
    def client(self) -> Client010:
        """Whose task it is."""
        assert self._client is not None, "the task belongs to no client yet"
        return self._client

    @property
    def open(self) -> Session:
        """The session; it was attached once."""
        assert self.session is not None, f"the session of {self.name} is not attached yet"
        return self.session

    @property
    def attached(self) -> bool:
        """Commands may be sent."""
        return self.session is not None and self.session.attached

    def begin(self) -> None:
        """The session may be used."""

    def handle(self, event: Event) -> None:
        """Something has come on the session."""

    def ledger(self) -> dict[str, int]:
        """Counters of its own, beside those of the session."""
        return {}

    def overview(self) -> Overview:
        """Flat picture of the task."""
        return {}


class Sender010(Task010):
    """Sends one message after the other, each in a clock event of its own.

    Args:
        name: of the task.
        exchange: to which it sends; the default one takes the name of a queue as key.
        capacity: of its window, in transfers; None: it has none, and never asks what is complete.
        body: of each message.
        pause_us: between two.
        on_blocked: told that it is blocked (True) or no more, and by what: `qpid-window`, its own
            window, or `link-credit`, a broker that has stopped it.

    Attributes:
        waiting: keys of the messages that are still to be sent, in order.
        sent: messages sent so far.
        outgoing: numbers of the transfers that its window counts, the oldest first.
        blocked: the window is full.
        credit: that a broker has given it, in messages; None: none has said anything.
    """

    def __init__(
        self,
        name: str,
        *,
        exchange: str = "",
        capacity: int | None = CAPACITY,
        body: bytes = b"some payload",
        pause_us: int = 0,
        on_blocked: Callable[[Sender010, bool, str], None] = _nothing,
    ) -> None:
        super().__init__(name)
        self.waiting: deque[str] = deque()
        self.outgoing: deque[int] = deque()
        self.sent = 0
        self.capacity = capacity
        self.credit: int | None = None
        self._exchange = exchange
        self._body = body
        self._pause_us = pause_us
        self._on_blocked = on_blocked
        self._scheduled = False
        self._flushed = False  # it has asked, and not looked since
        self._since_flush = 0
        self._sync: int | None = None  # the number of the sync that it waits for

    @property
    def blocked(self) -> bool:
        """The window is full, and something is to be sent; or the broker has stopped it."""
        return self._sync is not None or self.credit == 0

    def send(self, keys: Sequence[str]) -> None:
        """Has a message more for each key."""
        self.waiting.extend(keys)
        self._go_on()

    def begin(self) -> None:
        """Sends what was handed over before."""
        self._go_on()

    def handle(self, event: Event) -> None:
        """Completions let a sender go on that waits for them; an exception ends it."""
        if isinstance(event, ExceptionReceived):
            self.error = event.code, event.description
        elif isinstance(event, CommandReceived):
            self._heed(event.command)
        elif isinstance(event, CommandsCompleted) and self._synced:
            self._sync = None
            self._look(ask=False)
            self._on_blocked(self, False, QPID_WINDOW)
            self._go_on()

    def _heed(self, command: Command) -> None:
        """The broker stops the producer, or lets it go on."""
        if isinstance(command, MessageStop) and self.credit != 0:
            self.credit = 0
            self._on_blocked(self, True, LINK_CREDIT)
        elif isinstance(command, MessageFlow) and self.credit == 0:
            self.credit = command.value or 0
            self._on_blocked(self, False, LINK_CREDIT)
            self._go_on()

    def ledger(self) -> dict[str, int]:
        """What it has to send, and its window: 0 is none."""
        told = {"waiting_transfers": len(self.waiting)}
        if self.credit is not None:
            told["credit_messages"] = self.credit
        if self.capacity is None:
            return told
        return told | {
            "transfer_window": self.capacity,
            "incomplete_transfers": len(self.outgoing),
        }

    def overview(self) -> Overview:
        """Flat picture: what waits, what was sent, and what the window counts."""
        return {
            "waiting": len(self.waiting),
            "sent": self.sent,
            "outgoing": len(self.outgoing),
            "blocked": self.blocked,
            "error": int(self.error[0]) if self.error else 0,
        }

    # -- inside -------------------------------------------------------------------------------

    @property
    def _synced(self) -> bool:
        return self._sync is not None and self._sync not in self.open.sent_incomplete

    def _go_on(self) -> None:
        if not self._scheduled and not self.blocked and self.waiting and self.attached:
            self._scheduled = True
            self.client.clock.call_later(self._pause_us, self._next)

    def _next(self) -> None:
        self._scheduled = False
        if self.blocked or not self.attached:
            return
        if self._full():
            self._sync = self.open.sent
            self._on_blocked(self, True, QPID_WINDOW)
            self.open.send(ExecutionSync(sync=True))
            return
        self._ask_in_time()
        self.sent += 1
        headers = Headers((DeliveryProperties(routing_key=self.waiting.popleft()),))
        number = self.open.sent
        if self.capacity is not None:
            self.outgoing.append(number)
        self.open.send(
            MessageTransfer(self._exchange, accept_mode=AcceptMode.NONE), headers, self._body
        )
        self._go_on()

    def _full(self) -> bool:
        if self.capacity is None:
            return False
        if self._flushed:
            self._look(ask=False)
        return self.capacity <= len(self.outgoing)

    def _ask_in_time(self) -> None:
        if self.capacity is None:
            return
        self._since_flush += 1
        if self._since_flush > self.capacity // 4:
            self._look(ask=True)
            self._since_flush = 0

    def _look(self, *, ask: bool) -> None:
        """Takes complete transfers out of the window, up to the first that is not."""
        if ask:
            self.open.flush()
        self._flushed = ask
        incomplete = self.open.sent_incomplete
        while self.outgoing and self.outgoing[0] not in incomplete:
            self.outgoing.popleft()


class Receiver010(Task010):
    """Receives from a queue, and accepts each message when it is done with it.

    Args:
        name: of the task; the destination of its subscription.
        queue: from which.
        capacity: messages of its window; None: a hand gives credit.
        processing_us: how long it works on each message; None: it accepts as many as `work` says.

    Attributes:
        received: messages so far.
        unaccepted: numbers of the transfers that it has not accepted.
    """

    def __init__(
        self,
        name: str,
        queue: str,
        *,
        capacity: int | None = CAPACITY,
        processing_us: int | None = 0,
    ) -> None:
        super().__init__(name)
        self.queue = queue
        self.received = self.accepted = 0
        self.unaccepted: deque[int] = deque()
        self._capacity = capacity
        self._processing_us = processing_us or 0
        self._left = None if processing_us is not None else 0  # to be accepted; None: all
        self._busy = False

    def begin(self) -> None:
        """Subscribes; with a window, both kinds of credit are given at once."""
        self.open.send(
            MessageSubscribe(self.queue, self.name, AcceptMode.EXPLICIT, AcquireMode.PRE_ACQUIRED)
        )
        if self._capacity is not None:
            self.flow(CreditUnit.BYTE, UNLIMITED)
            self.flow(CreditUnit.MESSAGE, self._capacity)

    def handle(self, event: Event) -> None:
        """Works on a message, one after the other, and accepts it."""
        if isinstance(event, ExceptionReceived):
            self.error = event.code, event.description
        elif isinstance(event, CommandReceived) and isinstance(event.command, MessageTransfer):
            self.received += 1
            self.unaccepted.append(event.command_id)
            self._go_on()

    def work(self, count: int, processing_us: int = 0) -> None:
        """Accepts so many messages more, one after the other, each after so long."""
        self._left = None if self._left is None else self._left + count
        self._processing_us = processing_us
        self._go_on()

    def accept(self, number: int | None = None) -> None:
        """Accepts a message, the oldest if none is named, and completes its transfer."""
        if not self.unaccepted or not self.attached:
            return
        if number is None:
            number = self.unaccepted[0]
        self.unaccepted.remove(number)
        self.accepted += 1
        wire = on_wire(number)
        self.open.send(MessageAccept(SequenceSet(((wire, wire),))))
        self.open.complete(number)
        self.open.tell_completed()

    def flow(self, unit: CreditUnit, value: int) -> None:
        """Adds credit."""
        self.open.send(MessageFlow(self.name, unit, value))

    def set_mode(self, mode: FlowMode) -> None:
        """Has credit used up, or given back on completion."""
        self.open.send(MessageSetFlowMode(self.name, mode))

    def flush(self) -> None:
        """Wants what is there now; then its credit is 0."""
        self.open.send(MessageFlush(self.name, sync=True))

    def stop(self) -> None:
        """Wants nothing more."""
        self.open.send(MessageStop(self.name, sync=True))

    def overview(self) -> Overview:
        """Flat picture: what came, and what was accepted."""
        return {
            "received": self.received,
            "accepted": self.accepted,
            "unaccepted": len(self.unaccepted),
        }

    def _go_on(self) -> None:
        if not self._busy and self.unaccepted and self._left != 0 and self.attached:
            self._busy = True
            self.client.clock.call_later(self._processing_us, self._done)

    def _done(self) -> None:
        self._busy = False
        self._left = None if self._left is None else self._left - 1
        self.accept()
        self._go_on()


class Client010:
    """The client's end of a wire.

    Args:
        clock: the run's clock.
        tasks: what is done, each on a session of its own.
        name: of the client.
        on_open: called when every session is attached.

    Attributes:
        amqp: the protocol endpoint.
        tasks: by name.
        wire: over which it talks.
    """

    from_peer = "client"
    ledger_source = "own"

    def __init__(
        self,
        clock: Clock,
        tasks: Sequence[Task010],
        *,
        name: str = "app",
        on_open: Callable[[], None] = _nothing,
    ) -> None:
        self.clock = clock
        self.vantage = f"client:{name}"
        self.tasks = {task.name: task for task in tasks}
        self.wire: Wire | None = None
        self._on_open = on_open
        self._told_open = False
        self.amqp = Connection(
            is_client=True,
            emit=self._emit,
            settings=ConnectionSettings(properties={"product": name}),
        )
        for task in tasks:
            task.join(self)

    def close(self) -> None:
        """Closes the connection."""
        self.amqp.close()

    def overview(self) -> Overview:
        """Flat picture of the client and each of its tasks."""
        picture: Overview = {
            "vantage": self.vantage,
            "open": self.amqp.opened,
            "sessions": len(self.amqp.channels),
        }
        for name, task in self.tasks.items():
            picture |= {f"{name}.{key}": value for key, value in task.overview().items()}
        return picture

    # -- an end of a wire ---------------------------------------------------------------------

    def connect(self, wire: Wire) -> None:
        """Takes the wire and begins to talk."""
        self.wire = wire
        self.amqp.start()

    def apply(self, item: WireItem) -> list[Event]:
        """Works a frame into the state; nothing is sent."""
        events = self.amqp.apply(item)
        if not self._told_open and self.amqp.opened and not events:
            # A session is attached without an event: nobody has to answer.
            self.clock.call_soon(self._begin_if_attached)
        return events

    def react(self, events: Iterable[Event]) -> None:
        """Answers, and lets the tasks act."""
        for event in events:
            message = isinstance(event, CommandReceived) and isinstance(
                event.command, MessageTransfer
            )
            if not message:  # whether one is done with is its receiver's word
                self.amqp.answer(event)
            if isinstance(event, ControlReceived) and isinstance(event.control, ConnectionOpenOk):
                for task in self.tasks.values():
                    task.session = self.amqp.attach(task.name.encode())
            for task in self.tasks.values():
                if task.session is not None and getattr(event, "session", None) is task.session:
                    task.handle(event)

    def scope(self, item: WireItem, outgoing: bool) -> ItemScope:
        """What the frame concerns, with this client's counters."""
        found = self.amqp.scope(item, outgoing)
        for task in self.tasks.values():
            session = task.session
            if session is not None and session.ordinal == found.session:
                return found._replace(ledger=(found.ledger or {}) | task.ledger())
        return found

    # -- inside -------------------------------------------------------------------------------

    def _begin_if_attached(self) -> None:
        """Begins when every session is attached, the broker's word included."""
        sessions = [task.session for task in self.tasks.values()]
        if self._told_open or any(
            one is None or one.state is not SessionState.ATTACHED or one.received is None
            for one in sessions
        ):
            return
        self._told_open = True
        for task in self.tasks.values():
            task.begin()
        self._on_open()

    def _emit(self, item: WireItem) -> None:
        assert self.wire is not None, "connect the client to a wire first"
        self.wire.send(self, item)
