"""One channel of AMQP 0-9-1 as the broker has it: a process with a mailbox (`rabbit_channel.erl`).

Methods of the client come through the reader, which spends credit on messages alone. What is
published goes on to each queue, for credit of that hop. What queues hand out comes into the same
mailbox; confirms are gathered, and told as ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias

from msgspec.structs import replace

from workbench.amqp091.channel import Channel
from workbench.amqp091.counters import MADE_UP
from workbench.amqp091.errors import ReplyCode, Scope
from workbench.amqp091.events import MessageReceived, MethodReceived, ProtocolViolation
from workbench.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicGet,
    BasicGetEmpty,
    BasicNack,
    BasicPublish,
    BasicQos,
    BasicQosOk,
    BasicRecover,
    BasicRecoverAsync,
    BasicRecoverOk,
    BasicReject,
    BasicReturn,
    ChannelClose,
    ChannelFlow,
    ChannelFlowOk,
    ChannelOpen,
    ConfirmSelect,
    ConfirmSelectOk,
    Method,
    TxCommit,
    TxCommitOk,
    TxRollback,
    TxRollbackOk,
    TxSelect,
    TxSelectOk,
)
from workbench.broker import UNROUTABLE, Broker, Outcome, QueueProcess, Refused
from workbench.broker.hops import Hops
from workbench.broker.routing import RoutingError
from workbench.broker.virtual_host import QueueInUseError, Terms
from workbench.presets import Preset
from workbench.queues import (
    Command,
    Credit,
    Credited,
    Deliver,
    Modify,
    Origin,
    Prefetch,
    Reject,
    Release,
    Settle,
    Start,
)
from workbench.queues.arguments import QUORUM, STREAM
from workbench.sim import Actor

from .confirms import Confirms
from .consumer_arguments import read_arguments
from .consumers import Getter, QueueConsumer
from .content import Amqp091Message, ContentError, as_amqp091, published
from .declarations import REPLY_TO, Declarations
from .faults import RefusedError, no_exchange, no_queue, unimplemented
from .publisher_flow import PublisherFlow

Task = Callable[[], None]
Received: TypeAlias = MessageReceived | MethodReceived
NO_LIMIT = 2**31 - 1
QUORUM_PREFETCH = 2_000  # rabbit_quorum_queue.erl: simple_prefetch, 0


class Owner(Protocol):
    """The connection, as its channels see it."""

    name: str
    user: str

    @property
    def tells_cancels(self) -> bool:
        """Whether the client wants to hear of consumers that the broker has cancelled."""

    def work(self, work: Callable[..., None], *args: Any) -> None:
        """Do a piece of a channel's work."""

    def sends_at_once(self) -> bool:
        """Whether nothing waits for the transport."""

    def unsent(self, channel: Channel, queue: str) -> int:
        """Deliveries of a queue on a channel that wait for the transport."""

    def delivering(self, channel: Channel, queue: str) -> None:
        """What is sent next is a delivery of this queue."""

    def channel_closed(self, channel: Channel, event: MethodReceived) -> None:
        """A channel that the client closes has worked off what was there: answer."""

    def forget(self, channel: Channel) -> None:
        """A channel is closed at both ends."""

    def violated(self, event: ProtocolViolation) -> None:
        """A rule of the connection is broken: it ends, with all its channels."""


@dataclass(slots=True)
class Entry:
    """A delivery that is not acknowledged."""

    queue: QueueProcess
    consumer: str
    message_id: int
    counts: bool  # against the shared prefetch


@dataclass(slots=True)
class Transaction:
    """What waits for a commit."""

    messages: list[Callable[[Callable[[Outcome], None]], None]] = field(default_factory=list)
    settled: dict[int, Entry] = field(default_factory=dict)
    commands: list[tuple[Callable[[str, tuple[int, ...]], Command], list[Entry]]] = field(
        default_factory=list
    )
    left: int = 0  # messages of a commit that no queue has answered
    failed: bool = False
    committing: bool = False


class ChannelProcess:
    """One channel.

    Args:
        owner: the connection.
        broker: that serves it.
        channel: the endpoint's.

    Attributes:
        process: its mailbox.
        held_octets: of messages that wait in it.
    """

    def __init__(self, owner: Owner, broker: Broker, channel: Channel) -> None:
        self.held_octets = 0
        self._owner = owner
        self._broker = broker
        self._channel = channel
        self._preset = preset = broker.preset
        self.name = f"{owner.name}/{channel.ordinal}"
        vantage = f"channel:{self.name}"
        columns = {"connection": owner.name, "session": channel.ordinal}
        hops = Hops(broker.tap, broker.clock, vantage, connection=owner.name)
        self.process: Actor[Task] = Actor(
            broker.clock,
            vantage,
            service_us=_service(preset),
            handle=self._handle,
            flow=broker.process_flow(),
            penalty_ns=preset.penalty_ns,
            blocking=hops.blocking,
            watch=hops,
        )
        self._notes = broker.tap.bind(
            broker.clock,
            vantage=vantage,
            ledger=lambda: {"mailbox": self.process.depth},
            **columns,
        )
        self._declarations = Declarations(
            broker.vhost,
            owner.name,
            ReplyCode(preset.unknown_exchange_type),
            limits=preset.queue_limits,
            strips=preset.strips_names,
            names_classic_only=preset.names_classic_only,
            keeps_exclusive=preset.keeps_exclusive,
        )
        self._flow_asked = PublisherFlow(
            broker.clock, preset, self._send, lambda refused: self._refuse(refused, None)
        )
        self._prefetch = 0
        self._shared = 0
        self._consumers: dict[str, QueueConsumer] = {}
        self._replies: QueueProcess | None = None  # where replies to what it publishes come
        self._leaving: dict[str, QueueConsumer] = {}  # cancelled, and not answered yet; by name
        self._called: tuple[QueueProcess, Task] | None = None  # whose answer it waits for
        self._getting: Getter | None = None  # for what it waits then, if for a message
        self._unacked: dict[int, Entry] = {}
        self._counted = 0  # of them, against the shared prefetch
        self._confirms = Confirms(self._send, broker.soon)
        self._reached: dict[QueueProcess, None] = {}
        self._tags = 0
        self._gets = 0
        self._tx: Transaction | None = None
        self._over = False
        self._left = False
        self._ending: list[Task] = []  # what is owed to those who wait for its end

    # -- the mailbox ------------------------------------------------------------------------

    def message_came(self, reader: Actor[Any], event: MessageReceived) -> None:
        """The reader has read a message: for credit."""
        self.held_octets += len(event.body)
        reader.send(self.process, _WithContent(partial(self._take, event)))
        self._notes.note("note", "mailbox")

    def _take(self, event: MessageReceived) -> None:
        self.held_octets -= len(event.body)
        self._obey(event, self._publish)

    def method_came(self, event: MethodReceived) -> None:
        """The reader has read another method: that costs nothing."""
        if isinstance(event.method, ChannelClose):
            self.finish(partial(self._owner.channel_closed, self._channel, event))
        elif isinstance(event.method, ChannelOpen):
            self.post(partial(self._open, event))
        elif event.pending:
            self.post(partial(self._judge, event))
        else:
            self.post(partial(self._obey, event, self._method))

    def violated(self, event: ProtocolViolation) -> None:
        """The client has broken a rule of the channel, which finds it when its turn has come.

        One that is about to close has no turn any more.
        """
        if self._ending:
            self._end_by(event)
        else:
            self.post(lambda: self._end_by(event))

    def _end_by(self, event: ProtocolViolation) -> None:
        if event.scope is Scope.CHANNEL:
            self.end(partial(self._channel.connection.answer, event))
        else:
            self._owner.violated(event)

    def _judge(self, event: MethodReceived) -> None:
        """A get before it has been answered by now: whether it is right can be said."""
        judged = self._channel.judge(event)
        if isinstance(judged, ProtocolViolation):
            self._end_by(judged)
        else:
            self._obey(judged, self._method)

    def finish(self, done: Task) -> None:
        """The channel or its connection closes: work off what is there, and tell.

        That is owed however the channel ends: an error that comes first empties its mailbox.
        """
        if self._over:
            done()
        else:
            self._ending.append(done)
            self.post(self.end)

    def left(self) -> None:
        """The client has closed it, and closed it for good, before it was answered.

        Then it ends without an answer to that close, unless by an error (`rabbit_channel.erl`,
        `closing`: the close asks the reader first, and close-ok stops the process).
        """
        self._left = True

    def post(self, task: Task) -> None:
        """Let the channel do something when its turn comes."""
        self.process.post(task)
        self._notes.note("note", "mailbox")

    def _handle(self, task: Task) -> None:
        self._notes.note("note", "mailbox")
        self._owner.work(task)

    def _obey(self, event: Received, obey: Callable[[Any], None]) -> None:
        """Obey a method, unless the channel has ended; refuse it where it cannot be obeyed."""
        if self._over:
            return
        method = event.method
        try:
            committing = self._tx is not None and self._tx.committing
            if committing and not isinstance(method, ChannelFlowOk):  # that answers the broker
                raise RefusedError(
                    ReplyCode.CHANNEL_ERROR, "unexpected command while processing 'tx.commit'"
                )
            obey(event)
        except RefusedError as refused:
            self._refuse(refused, method)

    def _open(self, event: MethodReceived) -> None:
        self._flow_asked.opens(
            lambda: self._channel.connection.answer(event), bool(self._broker.alarms)
        )

    def alarm(self, on: bool) -> None:
        """An alarm has begun, or is over: it jumps the queue of what waits in the mailbox."""
        if not self._over:
            self._flow_asked.alarm(on)

    def _refuse(self, refused: RefusedError, method: Method | None) -> None:
        self._end_by(self._channel.violated(refused.code, str(refused), method))

    def _send(self, method: Method) -> None:
        """Answer, unless the channel is over."""
        if self._channel.can_send and not self._over:
            self._channel.send(method)

    # -- publishing -------------------------------------------------------------------------

    def _publish(self, event: MessageReceived) -> None:
        method = event.method
        assert isinstance(method, BasicPublish)
        self._flow_asked.publishing()
        if method.immediate and not self._preset.immediate:
            raise RefusedError(ReplyCode.NOT_IMPLEMENTED, "immediate=true")
        vhost = self._broker.vhost
        try:
            exchange = vhost.exchange(method.exchange)
        except RoutingError:
            raise no_exchange(method.exchange) from None
        if exchange.internal:
            raise RefusedError(
                ReplyCode.ACCESS_REFUSED,
                f"cannot publish to internal exchange '{method.exchange}' in vhost '/'",
            )
        user = event.properties.user_id
        if user is not None and user != self._owner.user:
            raise RefusedError(
                ReplyCode.PRECONDITION_FAILED,
                f"user_id property set to '{user}' but authenticated user was '{self._owner.user}'",
            )
        properties = event.properties
        if properties.reply_to == REPLY_TO:
            if self._replies is None:
                text = "fast reply consumer does not exist"
                raise RefusedError(ReplyCode.PRECONDITION_FAILED, text)
            properties = replace(properties, reply_to=self._replies.name)
        try:
            message, more = published(properties, event.body, limits=self._preset.queue_limits)
        except ContentError as error:
            raise RefusedError(ReplyCode.PRECONDITION_FAILED, str(error)) from None
        keys = (method.routing_key, *more)
        if self._tx is not None:
            self._tx.messages.append(lambda done: self._route(method, event, message, keys, done))
            return
        number = event.number
        if number is not None:
            self._confirms.published(number)
        self._route(method, event, message, keys, partial(self._outcome, number))

    def _route(
        self,
        method: BasicPublish,
        event: MessageReceived,
        message: Amqp091Message,
        keys: tuple[str, ...],
        done: Callable[[Outcome], None],
    ) -> None:
        """Hand a message to its queues, each for one credit; back to the client if it must be."""
        vhost = self._broker.vhost
        try:
            queues = vhost.route(method.exchange, keys, message)
        except RoutingError:  # deleted before the commit
            queues = []
        if not queues and method.mandatory:
            self._return(ReplyCode.NO_ROUTE, method, event, message)
        elif method.immediate:
            done = partial(self._immediate, method, event, message, done)
        self._reached |= dict.fromkeys(queues)
        origin = Origin(exchange=method.exchange, routing_keys=keys)
        at_once = method.immediate
        vhost.publish(queues, message, origin, done, via=self.process, at_once=at_once)
        if not queues:  # no queue's word is waited for
            self._confirms.tell()

    def _immediate(
        self,
        method: BasicPublish,
        event: MessageReceived,
        message: Amqp091Message,
        done: Callable[[Outcome], None],
        outcome: Outcome,
    ) -> None:
        """What has become of a message for which no queue was to keep: it comes back."""
        if outcome is UNROUTABLE:
            self._return(ReplyCode.NO_CONSUMERS, method, event, message)
        done(outcome)

    def _return(
        self,
        code: ReplyCode,
        method: BasicPublish,
        event: MessageReceived,
        message: Amqp091Message,
    ) -> None:
        if self._channel.can_send and not self._over:
            returned = BasicReturn(
                reply_code=code,
                reply_text=code.name,
                exchange=method.exchange,
                routing_key=method.routing_key,
            )
            self._channel.send_content(returned, event.body, message.properties)

    def _outcome(self, number: int | None, outcome: Outcome) -> None:
        """What has become of a message."""
        if number is not None and not self._over:
            self._confirms.settled(number, outcome)

    # -- methods ----------------------------------------------------------------------------

    def _method(self, event: MethodReceived) -> None:
        method = event.method
        queue = self._declarations.called(method)
        leaving = self._leaving_as(method.consumer_tag) if type(method) is BasicConsume else None
        if queue is not None:
            self._call(queue, partial(self._obey, event, self._do))
            queue.reached(self._go_on)
        elif leaving is not None:
            self._call(leaving.queue, partial(self._obey, event, self._do))
            leaving.freed = self._go_on
        else:
            self._do(event)

    def _leaving_as(self, tag: str) -> QueueConsumer | None:
        """The consumer that has the tag until its queue has answered a cancel."""
        every = self._leaving.values()
        return next((one for one in every if one.tag == tag and one.freed is not None), None)

    def _call(self, queue: QueueProcess, then: Task) -> None:
        """The channel does nothing else until a queue has answered (`gen_server2:call`)."""
        self._called = queue, then
        self.process.stall()

    def _go_on(self) -> None:
        """It has."""
        if self._called is None or self._over:
            return
        (_, then), self._called = self._called, None
        self._owner.work(then)
        if self._called is None and not self._over:
            self.process.resume()

    def _do(self, event: MethodReceived) -> None:
        method = event.method
        if self._declarations.obey(method, self._send):
            return
        match method:
            case BasicConsume():
                self._consume(method)
            case BasicCancel():
                self._cancel(method)
            case BasicAck():
                self._settle(event.tags, lambda who, ids: Settle(consumer=who, message_ids=ids))
            case BasicNack() | BasicReject():
                self._settle(event.tags, self._giving_back(method, event.tags))
            case BasicRecover() | BasicRecoverAsync():
                self._recover(event, method)
            case BasicGet():
                self._get(method)
            case BasicQos():
                self._qos(method)
            case ConfirmSelect():
                if not method.nowait:
                    self._send(ConfirmSelectOk())
            case TxSelect():
                self._tx = self._tx or Transaction()
                self._send(TxSelectOk())
            case TxCommit():
                self._commit()
            case TxRollback():
                self._rollback()
            case ChannelFlow():
                self._flow(method)
            case ChannelFlowOk():
                self._flow_asked.answered(method)
            case BasicCancelOk():
                self._cancel_answered(method)
            case _:
                self._channel.connection.answer(event)

    def _flow(self, method: ChannelFlow) -> None:
        rule = self._preset.client_flow
        if rule == "refused" and not method.active:
            raise RefusedError(ReplyCode.NOT_IMPLEMENTED, "active=false")
        if rule == "ignored":
            self._channel.counters.delivering = True
        self._send(ChannelFlowOk(active=method.active or rule == "ignored"))
        if method.active:
            self.kick()

    def _qos(self, method: BasicQos) -> None:
        rule, counters = self._preset.qos, self._channel.counters
        if rule == "ignored":
            counters.prefetch_shared = counters.prefetch_count = 0
            self._send(BasicQosOk())
            return
        if rule == "channel" and method.global_:
            raise RefusedError(ReplyCode.NOT_IMPLEMENTED, "global=true")
        if method.prefetch_size:
            raise RefusedError(
                ReplyCode.NOT_IMPLEMENTED, f"prefetch_size!=0 ({method.prefetch_size})"
            )
        if rule == "channel" or (method.global_ and self._preset.shared_prefetch):
            if not self._shared:  # what a get holds counts too, and is never taken off
                self._counted = len(self._unacked)
            self._shared = counters.prefetch_shared = method.prefetch_count
        else:
            if self._preset.qos_ends_shared:
                self._shared = 0
            self._prefetch = counters.prefetch_count = method.prefetch_count
            counters.prefetch_shared = self._shared
        self._send(BasicQosOk())
        self.kick()

    # -- consuming --------------------------------------------------------------------------

    def _consume(self, method: BasicConsume) -> None:
        tag = method.consumer_tag
        if tag in self._consumers:
            raise RefusedError(ReplyCode.NOT_ALLOWED, f"attempt to reuse consumer tag '{tag}'")
        if method.queue == REPLY_TO:
            self._attach(method, self._reply_queue(method))
            return
        queue = self._declarations.queue(method.queue)
        kind = queue.arguments.queue_type
        priority, filters = read_arguments(method.arguments, queue, self._preset)
        if self._shared and kind != "classic":
            raise RefusedError(
                ReplyCode.NOT_IMPLEMENTED,
                f"queue '{queue.name}' in vhost '/' does not support global qos",
            )
        if kind == STREAM and (method.no_ack or not self._prefetch):
            wrong = "no_ack" if method.no_ack else "consumer prefetch count is not set"
            code = ReplyCode.NOT_IMPLEMENTED if method.no_ack else ReplyCode.PRECONDITION_FAILED
            raise RefusedError(code, f"{wrong} for stream queue '{queue.name}' in vhost '/'")
        start = filters.start(self._broker.clock.epoch_us) if kind == STREAM else None
        self._attach(method, queue, priority=priority, start=start)

    def _reply_queue(self, method: BasicConsume) -> QueueProcess:
        """What brings the channel the replies to what it publishes: a queue of its own.

        RabbitMQ's is none that holds anything (`maybe_set_fast_reply_to`, `rabbit_volatile_queue`).
        """
        if not method.no_ack:
            text = "reply consumer cannot acknowledge"
            raise RefusedError(ReplyCode.PRECONDITION_FAILED, text)
        if self._replies is not None:
            raise RefusedError(ReplyCode.PRECONDITION_FAILED, "reply consumer already set")
        name, terms = f"{REPLY_TO}.{self.name}-{self._tags}", Terms(durable=False, auto_delete=True)
        self._replies = self._broker.vhost.declare(name, terms=terms)
        return self._replies

    def _attach(
        self,
        method: BasicConsume,
        queue: QueueProcess,
        *,
        priority: int = 0,
        start: Start | None = None,
    ) -> None:
        tag = method.consumer_tag
        if not tag:
            self._tags += 1
            tag = f"{MADE_UP}{self.name}-{self._tags}"
            if method.nowait:
                self._channel.counters.named(tag)
        self._tags += 1
        name = f"{self.name}/{tag}/{self._tags}"
        try:
            self._broker.vhost.claim(queue, name, exclusive=method.exclusive)
        except QueueInUseError as error:
            raise RefusedError(ReplyCode.ACCESS_REFUSED, str(error)) from None
        if not method.nowait:
            told = partial(self._send, BasicConsumeOk(consumer_tag=tag))
            if any(one.tag == tag for one in self._leaving.values()):
                self.post(told)  # behind its cancel-ok
            else:
                told()
        consumer = QueueConsumer(self, name, tag, queue, no_ack=method.no_ack)
        self._consumers[tag] = consumer
        self._reached[queue] = None
        unlimited = QUORUM_PREFETCH if queue.arguments.queue_type == QUORUM else NO_LIMIT
        limit = 0 if method.no_ack else self._prefetch
        queue.attach(
            name,
            consumer,
            mode=Prefetch(limit or unlimited),
            settled=method.no_ack,
            priority=priority,
            start=start,
            via=self.process,
        )
        queue.kick()

    def _cancel(self, method: BasicCancel) -> None:
        """Nothing more comes; what was delivered stays the channel's."""
        tag = method.consumer_tag
        consumer = self._consumers.pop(tag, None)
        if consumer is not None and consumer.queue is self._replies:
            self._replies = None

        def done() -> None:
            if not method.nowait:
                self._send(BasicCancelOk(consumer_tag=tag))
            if consumer is not None:
                del self._leaving[consumer.name]
                self._broker.vhost.consumer_left(consumer.queue, consumer.name)

        if consumer is None:
            done()
        else:
            self._leaving[consumer.name] = consumer
            consumer.freed = _nothing
            consumer.queue.cancel(consumer.name, partial(self._cancelled, consumer, done))

    def _cancelled(self, consumer: QueueConsumer, done: Task) -> None:
        """A queue has answered a cancel: that is told behind what it has handed out before."""
        self.post(done)
        freed, consumer.freed = consumer.freed, None
        assert freed is not None
        freed()

    def _cancel_answered(self, method: BasicCancelOk) -> None:
        """The client says that a consumer is cancelled, though the broker asks for no answer."""
        if not self._preset.takes_cancel_ok:
            raise unimplemented()
        self._cancel(BasicCancel(consumer_tag=method.consumer_tag, nowait=True))

    def takes(self, consumer: QueueConsumer) -> bool:
        """Whether a message can be delivered to a consumer now."""
        queue = consumer.queue.name
        if not self._channel.counters.delivering:
            return False
        if not self._owner.sends_at_once():
            unsent = consumer.coming + self._owner.unsent(self._channel, queue)
            if unsent >= self._preset.unsent_limit:
                return False
        if not self._shared or consumer.no_ack:
            return True
        every = (*self._consumers.values(), *self._leaving.values())
        coming = sum(one.coming for one in every if not one.no_ack)
        return self._counted + coming < self._shared

    def take(self, consumer: QueueConsumer, effect: Deliver) -> None:
        """A queue has handed a message out: deliver it when its turn comes."""
        consumer.coming += 1
        self.post(_WithContent(partial(self._deliver, consumer, effect)))

    def _deliver(self, consumer: QueueConsumer, effect: Deliver) -> None:
        consumer.coming -= 1
        if self._over or not self._channel.can_send:
            return  # it goes back with the consumer
        if consumer.tag not in self._channel.counters.consumers:
            if not effect.settled:  # it was cancelled with nowait
                self._command(
                    [Entry(consumer.queue, consumer.name, effect.message.message_id, False)],
                    lambda who, ids: Release(consumer=who, message_ids=ids),
                )
            return
        stored = effect.message
        properties, body = as_amqp091(stored, consumer.queue.arguments.queue_type, self._preset)
        origin = stored.origin
        self._owner.delivering(self._channel, consumer.queue.name)
        tag = self._channel.deliver(
            consumer.tag,
            origin.exchange,
            origin.routing_keys[0] if origin.routing_keys else "",
            body,
            properties,
            redelivered=stored.acquired_count > 1,
        )
        if not effect.settled:
            self._counted += 1
            self._unacked[tag] = Entry(
                consumer.queue, consumer.name, stored.message_id, counts=True
            )

    def _get(self, method: BasicGet) -> None:
        queue = self._declarations.queue(method.queue)
        kind = queue.arguments.queue_type
        if kind == STREAM:
            raise RefusedError(
                ReplyCode.NOT_IMPLEMENTED, f"basic.get not supported by stream '{queue.name}'"
            )
        if kind == QUORUM and queue.arguments.single_active_consumer:
            raise RefusedError(
                ReplyCode.RESOURCE_LOCKED,
                f"cannot obtain access to locked queue '{queue.name}' in vhost '/'. basic.get"
                " operations are not supported by quorum queues with single active consumer",
            )
        self._gets += 1
        name = f"{self.name}/get/{self._gets}"
        getter = self._getting = Getter(self, name, "", queue, no_ack=method.no_ack)
        self._reached[queue] = None
        self._call(queue, partial(self._got, method, getter))
        queue.attach(name, getter, mode=Credited(), settled=method.no_ack, via=self.process)
        queue.request(Credit(consumer=name, delivery_count=0, link_credit=1, drain=True))

    def answer_get(self, getter: Getter) -> None:
        """A basic.get has got what it could: a message, which it keeps until it is settled."""
        got, queue = getter.got, getter.queue
        if got is None or got.settled:
            self._broker.soon(partial(queue.detach, getter.name))
        else:
            queue.cancel(getter.name, _nothing)
        self._go_on()

    def _got(self, method: BasicGet, getter: Getter) -> None:
        self._getting = None
        got, queue = getter.got, getter.queue
        if not self._channel.can_send:
            return
        if not self._is_there(queue):
            self._refuse(no_queue(queue.name), method)
            return
        if got is None:
            self._send(BasicGetEmpty())
            return
        stored = got.message
        properties, body = as_amqp091(stored, queue.arguments.queue_type, self._preset, got=True)
        origin = stored.origin
        tag = self._channel.get_ok(
            origin.exchange,
            origin.routing_keys[0] if origin.routing_keys else "",
            queue.queue.ready,
            body,
            properties,
            redelivered=stored.acquired_count > 1,
        )
        if not got.settled:
            self._unacked[tag] = Entry(queue, getter.name, stored.message_id, counts=False)

    # -- settling ---------------------------------------------------------------------------

    def _giving_back(
        self, method: BasicNack | BasicReject, tags: Iterable[int]
    ) -> Callable[[str, tuple[int, ...]], Command]:
        """What nack and reject come to: since 4.3 a reject counts as a failed delivery."""
        if not self._preset.stream_nack:
            queues = (self._unacked[tag].queue for tag in tags if tag in self._unacked)
            stream = next((one for one in queues if one.arguments.queue_type == STREAM), None)
            if stream is not None:
                raise RefusedError(
                    ReplyCode.NOT_IMPLEMENTED,
                    "basic.nack and basic.reject not supported by stream queues"
                    f" queue '{stream.name}' in vhost '/'",
                )
        if not method.requeue:
            return lambda who, ids: Reject(consumer=who, message_ids=ids)
        if isinstance(method, BasicReject) and self._preset.counts_failures:
            return lambda who, ids: Modify(consumer=who, message_ids=ids, delivery_failed=True)
        return lambda who, ids: Release(consumer=who, message_ids=ids)

    def _settle(
        self, tags: Iterable[int], command: Callable[[str, tuple[int, ...]], Command]
    ) -> None:
        entries = {tag: self._unacked.pop(tag) for tag in tags if tag in self._unacked}
        if self._tx is not None:
            self._tx.settled |= entries
            self._tx.commands.append((command, list(entries.values())))
            return
        self._command(list(entries.values()), command)

    def _command(
        self, entries: list[Entry], command: Callable[[str, tuple[int, ...]], Command]
    ) -> None:
        """Tell the queues, each consumer's messages together; from now on they do not count."""
        self._counted -= sum(entry.counts for entry in entries)
        together: dict[tuple[QueueProcess, str], list[int]] = {}
        for entry in entries:
            together.setdefault((entry.queue, entry.consumer), []).append(entry.message_id)
        for (queue, consumer), numbers in together.items():
            if self._is_there(queue):
                queue.command(command(consumer, tuple(numbers)))
        if self._shared:
            self.kick()

    def _is_there(self, queue: QueueProcess) -> bool:
        return self._broker.queues.get(queue.name) is queue

    def _recover(self, event: MethodReceived, method: BasicRecover | BasicRecoverAsync) -> None:
        if not method.requeue:
            raise RefusedError(ReplyCode.NOT_IMPLEMENTED, "requeue=false")
        entries = [self._unacked.pop(tag) for tag in event.tags if tag in self._unacked]
        if isinstance(method, BasicRecover):
            self._send(BasicRecoverOk())
        self._command(entries, lambda who, ids: Release(consumer=who, message_ids=ids))

    # -- transactions -----------------------------------------------------------------------

    def _commit(self) -> None:
        """Publish and settle; answered when every queue has taken its messages.

        That is at once where there is none to take any (`rabbit_channel.erl:maybe_complete_tx`).
        """
        tx = self._tx
        assert tx is not None
        self._tx = Transaction(committing=True)
        waiting = self._tx
        waiting.left = 2 + len(tx.messages)  # what is settled, and that all is on its way

        def done(outcome: Outcome | None) -> None:
            waiting.left -= 1
            waiting.failed = waiting.failed or type(outcome) is Refused
            if not waiting.left:
                self.post(lambda: self._committed(waiting))

        for publish in tx.messages:
            publish(done)

        def settle() -> None:
            if self._over:  # its messages went back with it
                return
            for command, entries in tx.commands:
                self._command(entries, command)
            done(None)

        queues = {entry.queue for _, entries in tx.commands for entry in entries}
        turns = len(queues)

        def in_turn() -> None:
            nonlocal turns
            turns -= 1
            if not turns:
                settle()

        if self._preset.settles_in_turn and queues:
            for queue in queues:
                queue.reached(in_turn)
        else:
            settle()
        waiting.left -= 1
        if not waiting.left:
            self._committed(waiting)

    def _committed(self, waiting: Transaction) -> None:
        if self._over or not self._channel.can_send:
            return
        self._tx = Transaction()
        if waiting.failed:
            refused = RefusedError(ReplyCode.PRECONDITION_FAILED, "partial tx completion")
            self._refuse(refused, TxCommit())
        else:
            self._send(TxCommitOk())

    def _rollback(self) -> None:
        tx = self._tx
        assert tx is not None
        self._unacked = dict(sorted((self._unacked | tx.settled).items()))
        self._tx = Transaction()
        self._send(TxRollbackOk())

    # -- around -----------------------------------------------------------------------------

    def kick(self) -> None:
        """A consumer may be able to take a message again."""
        for queue in dict.fromkeys(one.queue for one in self._consumers.values()):
            if self._is_there(queue):
                queue.kick()

    def queue_deleted(self, queue: QueueProcess) -> None:
        """A queue is no more: its consumers are cancelled by the broker."""
        for tag, consumer in tuple(self._consumers.items()):
            if consumer.queue is queue:
                del self._consumers[tag]
                if self._owner.tells_cancels:
                    self._send(BasicCancel(consumer_tag=tag, nowait=True))
        if queue is self._replies:
            self._replies = None
        self._reached.pop(queue, None)
        if self._called is not None and self._called[0] is queue:
            self._broker.soon(self._go_on)

    def end(self, told: Task | None = None) -> None:
        """The channel is over: what it has not acknowledged goes back, and who waits is answered.

        Args:
            told: says first why it ends.
        """
        if self._over:
            return
        self._over = True
        self._flow_asked.end()
        held = [*self._unacked.values(), *(self._tx.settled.values() if self._tx else ())]
        every = (*self._consumers.values(), *self._leaving.values())
        live = {consumer.name: consumer.queue for consumer in every}
        owners = live | {entry.consumer: entry.queue for entry in held}
        if self._getting is not None:
            owners[self._getting.name] = self._getting.queue
        for name, queue in owners.items():
            if not self._is_there(queue):
                continue
            failed = self._preset.counts_failures or queue.arguments.queue_type == QUORUM
            queue.detach(name, failed=failed)
            if name in live:
                self._broker.vhost.consumer_left(queue, name)
        for queue in self._reached:
            if self._is_there(queue):
                queue.left(self.process)
        self.process.end()
        if told is not None:
            told()
        elif self._left:
            self._ending[0] = partial(self._owner.forget, self._channel)
        for done in self._ending:
            done()

    def overview(self) -> dict[str, int]:
        """Flat picture: what waits for it, and what it has delivered and published."""
        return {
            "mailbox": self.process.depth,
            "consumers": len(self._consumers),
            "unacknowledged": len(self._unacked),
            "unconfirmed": len(self._confirms),
        }


class _WithContent:
    """In the mailbox: a task about a message, which may take longer than others."""

    __slots__ = ("_task",)

    def __init__(self, task: Task) -> None:
        self._task = task

    def __call__(self) -> None:
        self._task()


def _service(preset: Preset) -> int | Callable[[Task], int]:
    """Service time of a channel's task."""
    plain, more = preset.channel_us, preset.channel_content_us
    return (lambda task: plain + more * (type(task) is _WithContent)) if more else plain


def _nothing() -> None:
    """Nobody waits for it."""
