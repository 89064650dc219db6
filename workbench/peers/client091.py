"""An AMQP 0-9-1 client of a run: a connection, its channels, and who publishes and consumes there.

Everything that the client sends goes into one socket, first in, first out: an acknowledgement waits
behind whatever was published before it, on whichever channel. While the socket takes nothing more,
what is sent waits in the client, and nobody publishes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from workbench.amqp091.channel import Channel
from workbench.amqp091.connection import Connection
from workbench.amqp091.events import Event, MessageReceived, MethodReceived
from workbench.amqp091.frame import WireItem
from workbench.amqp091.methods import (
    NO_PROPERTIES,
    BasicAck,
    BasicCancel,
    BasicConsume,
    BasicDeliver,
    BasicNack,
    BasicPublish,
    BasicQos,
    BasicReturn,
    ChannelFlow,
    ChannelOpenOk,
    ConfirmSelect,
    ConnectionBlocked,
    ConnectionOpenOk,
    ConnectionUnblocked,
    Properties,
)
from workbench.amqp091.scope import ItemScope
from workbench.amqp091.settings import CLIENT_CAPABILITIES, ConnectionSettings
from workbench.sim import Clock, Flight, Wire

from .writing091 import EachForItself, Sharing091

Overview = dict[str, int | bool | str]


ALARM = "alarm"


def _nothing() -> None:
    """Does nothing: a callback that is not needed."""


def _ignore(active: bool) -> None:
    """Does nothing about the broker's channel.flow."""


class Task091:
    """What a client does on one of its channels.

    Args:
        name: of the task.
        channel: on which: 1, 2, ...
        pause_us: which it needs before each message.

    Attributes:
        amqp: the channel, once it is open.
        publishes: what it writes are messages; otherwise acknowledgements.
        scheduled: its next one is.
    """

    publishes = False

    def __init__(self, name: str, channel: int = 1, pause_us: int = 0) -> None:
        self.name = name
        self.channel = channel
        self.amqp: Channel | None = None
        self.pause_us = pause_us
        self.scheduled = False
        self._client: Client091 | None = None

    def join(self, client: Client091) -> None:
        """Belongs to a client."""
        self._client = client

    @property
    def client(self) -> Client091:
        """Whose task it is."""
        assert self._client is not None, "the task belongs to no client yet"
        return self._client

    @property
    def open(self) -> Channel:
        """The channel; it is open."""
        assert self.amqp is not None, f"the channel of {self.name} is not open yet"
        return self.amqp

    def begin(self) -> None:
        """The channel is open."""

    def handle(self, event: Event) -> None:
        """Something has come on the channel."""

    @property
    def ready(self) -> bool:
        """It has something to write."""
        return False

    def write(self) -> None:
        """Writes one message or acknowledgement."""

    def go_on(self) -> None:
        """It may have something to write, or the socket takes something again."""
        if self.amqp is not None:
            self.client.sharing.go_on(self.client, self)

    def overview(self) -> Overview:
        """Flat picture of the task."""
        return {}


class Publisher091(Task091):
    """Publishes one message after the other.

    Args:
        name: of the task.
        queue: to which it publishes, over the default exchange.
        exchange: another one.
        channel: on which.
        body: of each message.
        properties: of each message.
        mandatory: each comes back if no queue is there for it.
        pause_us: between two, unless the client's tasks share a lock.
        most_unconfirmed: asks for confirms, and waits while so many are out; None: asks for none.
        batch: begins with so many messages, and has so many more whenever each is confirmed; it
            asks for confirms. 0: only `publish` gives it any.
        endless: it always has one more, until `stop`.
        heeds_blocked: stops while the broker says that it is blocked.
        heeds_flow: publishes nothing while the broker's channel.flow says so.
        immediate: each message is to come back if no consumer takes it at once.

    Attributes:
        left: messages that are still to be published.
        published: those that were.
        confirmed: those that the broker has confirmed.
        refused: those that it has refused.
        returned: reply codes of those that came back.
    """

    publishes = True

    def __init__(
        self,
        name: str,
        queue: str,
        *,
        exchange: str = "",
        channel: int = 1,
        body: bytes = b"some payload",
        properties: Properties = NO_PROPERTIES,
        mandatory: bool = False,
        pause_us: int = 0,
        most_unconfirmed: int | None = None,
        batch: int = 0,
        endless: bool = False,
        heeds_blocked: bool = False,
        heeds_flow: bool = True,
        immediate: bool = False,
    ) -> None:
        super().__init__(name, channel, pause_us)
        self.queue = queue
        self.returned: list[int] = []
        self._heeds_flow = heeds_flow
        self.left = batch
        self.published = self.confirmed = self.refused = 0
        self._method = BasicPublish(
            exchange=exchange, routing_key=queue, mandatory=mandatory, immediate=immediate
        )
        self._body = body
        self._properties = properties
        self._most = most_unconfirmed
        self._batch = batch
        self._endless = endless
        self._heeds = heeds_blocked

    def publish(self, count: int) -> None:
        """Has so many messages more."""
        self.left += count
        self.go_on()

    def stop(self) -> None:
        """Has no more messages, if there was no end of them."""
        if self._endless or self._batch:
            self._endless, self._batch, self.left = False, 0, 0

    def begin(self) -> None:
        """Asks for confirms, if it wants any, and begins."""
        if self._most is not None or self._batch:
            self.open.send(ConfirmSelect())
        self.go_on()

    def handle(self, event: Event) -> None:
        """Counts confirms; each makes room for more. Stops and goes on as the broker asks."""
        if isinstance(event, MethodReceived) and isinstance(event.method, ChannelFlow):
            if self._heeds_flow:
                self.client.note("unblock" if event.method.active else "block", ALARM, self.open)
                self.go_on()
        elif isinstance(event, MessageReceived) and isinstance(event.method, BasicReturn):
            self.returned.append(event.method.reply_code)
        elif isinstance(event, MethodReceived) and isinstance(event.method, BasicAck | BasicNack):
            if isinstance(event.method, BasicAck):
                self.confirmed += len(event.tags)
            else:
                self.refused += len(event.tags)
            if not self.left and self.confirmed + self.refused == self.published:
                self.left = self._batch
            self.go_on()

    @property
    def ready(self) -> bool:
        """Whether it has a message that may go now, as far as it is concerned."""
        if not (self.left or self._endless) or self.amqp is None or not self.amqp.usable:
            return False
        if self._heeds and self.client.amqp.blocked is not None:
            return False
        if self._heeds_flow and not self.amqp.counters.publishing:
            return False
        return self._most is None or len(self.amqp.counters.unconfirmed) < self._most

    def write(self) -> None:
        """Publishes the next message."""
        if not self._endless:
            self.left -= 1
        self.published += 1
        # Channel.publish would refuse what the broker has asked to stop.
        self.open.send_content(self._method, self.body(), self._properties)

    def body(self) -> bytes:
        """The next message's."""
        return self._body

    def overview(self) -> Overview:
        """Flat picture: what is left, what was published, and what came of it."""
        return {
            "left": self.left,
            "published": self.published,
            "confirmed": self.confirmed,
            "refused": self.refused,
        }


class Consumer091(Task091):
    """Consumes from a queue, and acknowledges each message when it is done with it.

    Args:
        name: of the task; its consumer-tag.
        queue: from which.
        channel: on which.
        prefetch: deliveries ahead of acknowledgement; 0: no limit.
        no_ack: it acknowledges nothing.
        processing_us: how long it works on one message; None: a hand acknowledges.

    Attributes:
        received: deliveries so far.
        acknowledged: those that it has acknowledged.
        unacknowledged: their tags, as long as they are not.
    """

    def __init__(
        self,
        name: str,
        queue: str,
        *,
        channel: int = 1,
        prefetch: int = 0,
        no_ack: bool = False,
        processing_us: int | None = 0,
    ) -> None:
        super().__init__(name, channel)
        self.queue = queue
        self.received = self.acknowledged = 0
        self.unacknowledged: list[int] = []
        self._prefetch = prefetch
        self._no_ack = no_ack
        self._processing_us = processing_us
        self._due = 0  # acknowledgements that it has not written yet

    def begin(self) -> None:
        """Says how much may be ahead, and consumes."""
        self.open.send(BasicQos(prefetch_count=self._prefetch))
        self.open.send(BasicConsume(queue=self.queue, consumer_tag=self.name, no_ack=self._no_ack))

    def handle(self, event: Event) -> None:
        """Works on a delivery, one after the other, and acknowledges it."""
        if not isinstance(event, MessageReceived):
            return
        method = event.method
        if isinstance(method, BasicDeliver) and method.consumer_tag == self.name:
            self.received += 1
            if self._no_ack:
                return
            self.unacknowledged.append(method.delivery_tag)
            if self._processing_us is not None and len(self.unacknowledged) == self._due + 1:
                self.client.clock.call_later(self._processing_us, self._done)

    def _done(self) -> None:
        self.acknowledge()
        if len(self.unacknowledged) > self._due and self._processing_us is not None:
            self.client.clock.call_later(self._processing_us, self._done)

    def acknowledge(self) -> None:
        """Acknowledges the oldest delivery that is not, once it may write; nothing if none is."""
        if len(self.unacknowledged) > self._due and self.open.opened:
            self._due += 1
            self.go_on()

    @property
    def ready(self) -> bool:
        """Whether an acknowledgement is due."""
        return self._due > 0 and self.open.opened

    def write(self) -> None:
        """Acknowledges the oldest delivery."""
        self._due -= 1
        self.acknowledged += 1
        self.open.send(BasicAck(delivery_tag=self.unacknowledged.pop(0)))

    def cancel(self) -> None:
        """Wants no more; what came stays to be acknowledged."""
        self.open.send(BasicCancel(consumer_tag=self.name))

    def overview(self) -> Overview:
        """Flat picture: what came, and what was acknowledged."""
        return {
            "received": self.received,
            "acknowledged": self.acknowledged,
            "unacknowledged": len(self.unacknowledged),
        }


class Client091:
    """The client's end of a wire.

    Args:
        clock: the run's clock.
        tasks: what is done, on which channels.
        name: of the client.
        settings: of its connection.
        sharing: how the tasks share the socket.
        on_open: called when every channel is open and every task has begun.
        answers_flow: answers the broker's channel.flow with flow-ok.
        on_flow: called with each channel.flow of the broker: whether it is active.

    Attributes:
        amqp: the protocol endpoint.
        tasks: by name.
        sharing: how they share the socket.
        wire: over which it talks.
        writable: False while the transport takes no more octets.
    """

    from_peer = "client"
    ledger_source = "own"

    def __init__(
        self,
        clock: Clock,
        tasks: Sequence[Task091],
        *,
        name: str = "app",
        settings: ConnectionSettings | None = None,
        sharing: Sharing091 | None = None,
        on_open: Callable[[], None] = _nothing,
        answers_flow: bool = True,
        on_flow: Callable[[bool], None] = _ignore,
    ) -> None:
        self.clock = clock
        self.vantage = f"client:{name}"
        self.tasks = {task.name: task for task in tasks}
        self.sharing = sharing or EachForItself()
        self.wire: Wire | None = None
        self.writable = True
        self._parked: deque[Flight] = deque()
        self._on_open: Callable[[], None] | None = on_open
        self._answers_flow = answers_flow
        self._on_flow = on_flow
        self.amqp = Connection(
            is_client=True,
            emit=self._emit,
            settings=settings
            or ConnectionSettings(
                properties={"product": name, "capabilities": CLIENT_CAPABILITIES}
            ),
        )
        for task in tasks:
            task.join(self)

    @property
    def sends_at_once(self) -> bool:
        """Whether the socket takes something, and nothing waits for it."""
        return self.writable and not self._parked

    @property
    def writers(self) -> Iterable[Task091]:
        """Its tasks, in order."""
        return self.tasks.values()

    def stop(self) -> None:
        """Ends every publisher that has no end of messages."""
        for task in self.tasks.values():
            if isinstance(task, Publisher091):
                task.stop()

    def close(self) -> None:
        """Closes the connection."""
        self.amqp.close()

    def lost(self) -> None:
        """The transport is gone, and every channel with it."""
        self._parked.clear()
        self.amqp.abandon()
        for task in self.tasks.values():
            task.amqp = None

    def add(self, task: Task091) -> None:
        """Does something more, on a channel that is opened for it."""
        task.channel = 1 + max((one.channel for one in self.tasks.values()), default=0)
        self.tasks[task.name] = task
        task.join(self)
        self.amqp.open_channel()

    def note(self, event: str, kind: str, channel: Channel) -> None:
        """A row about what this end does of its own."""
        assert self.wire is not None
        self.wire.tap.internal(
            t_us=self.clock.now_us,
            event=event,
            kind=kind,
            vantage=self.vantage,
            connection=self.wire.connection,
            session=channel.ordinal,
        )

    def overview(self) -> Overview:
        """Flat picture of the client and each of its tasks."""
        picture: Overview = {
            "vantage": self.vantage,
            "open": self.amqp.opened,
            "writable": self.writable,
            "waiting": len(self._parked),
            "blocked": self.amqp.blocked or "",
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
        return self.amqp.apply(item)

    def react(self, events: Iterable[Event]) -> None:
        """Answers, and lets the tasks act."""
        for event in events:
            flow = isinstance(event, MethodReceived) and isinstance(event.method, ChannelFlow)
            if self._answers_flow or not flow:
                self.amqp.answer(event)
            self._handle(event)

    def kick(self) -> None:
        """The transport takes octets again."""
        assert self.wire is not None
        while self._parked and self.writable:
            self.wire.depart(self._parked.popleft())
        if not self._parked:
            self._go_on()

    def scope(self, item: WireItem, outgoing: bool) -> ItemScope:
        """What the frame concerns, with this client's counters."""
        return self.amqp.scope(item, outgoing)

    # -- inside -------------------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        match event:
            case MethodReceived(method=ConnectionOpenOk()):
                for _ in range(max((task.channel for task in self.tasks.values()), default=0)):
                    self.amqp.open_channel()
            case MethodReceived(method=ChannelOpenOk(), channel=Channel() as channel):
                self._opened(channel)
            case MethodReceived(method=ConnectionBlocked() | ConnectionUnblocked()):
                self._go_on()
            case MethodReceived() | MessageReceived() if event.channel is not None:
                for task in tuple(self.tasks.values()):
                    if task.amqp is event.channel:
                        task.handle(event)
                if isinstance(event.method, ChannelFlow):
                    self._on_flow(event.method.active)

    def _opened(self, channel: Channel) -> None:
        for task in self.tasks.values():
            if task.channel == channel.ordinal:
                task.amqp = channel
                task.begin()
        opened = self._on_open
        if opened is not None and all(task.amqp is not None for task in self.tasks.values()):
            self._on_open = None
            opened()

    def _go_on(self) -> None:
        for task in self.tasks.values():
            task.go_on()

    def _emit(self, item: WireItem) -> None:
        assert self.wire is not None, "connect the client to a wire first"
        if self.sends_at_once:
            self.wire.send(self, item)
        else:
            self._parked.append(self.wire.park(self, item))
