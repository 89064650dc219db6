"""What Qpid C++ does with a session's commands (`SessionAdapter.cpp`, `SemanticState.cpp`).

A transfer completes when every queue that took its message has confirmed it. So a queue above its
watermark holds the producer: not by refusing, but by not saying that it is done.

Under a preset of Broker-J's a transfer completes when its queues have taken it. A session that
publishes to a queue above its maximum is told to stop, by a subscriber's commands for the
destination "", and to go on when no queue holds it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.amqp010 import commands as c
from workbench.amqp010.composite import Command, Composite
from workbench.amqp010.errors import ErrorCode
from workbench.amqp010.events import CommandReceived, FlowReceived, FlushReceived
from workbench.amqp010.ranges import nearest
from workbench.amqp010.session import Session
from workbench.amqp010.structs import (
    Acquired,
    ExchangeBoundResult,
    ExchangeQueryResult,
    QueueQueryResult,
)
from workbench.amqp010.values import SequenceSet
from workbench.broker import Broker
from workbench.broker.queue_process import LocalQueueProcess, QueueProcess
from workbench.broker.routing import ALTERNATE, TYPES, Binding, RoutingError
from workbench.broker.unconfirmed import Outcome, Refused
from workbench.broker.virtual_host import QueueInUseError, QueueLockedError, Terms
from workbench.frontends.broker_j import overfull
from workbench.presets.qpid import BrokerJ, QpidCpp
from workbench.queues import (
    FlowThresholds,
    Modify,
    Origin,
    QpidQueueArguments,
    QueueArgumentError,
    Reject,
    Release,
    Settle,
    Settlement,
    SetWatermarks,
)

from .messages import message_of, routing_key
from .subscriber import Subscriber

if TYPE_CHECKING:
    from .connection import QpidConnection

DEFAULTS = QpidCpp()
PRODUCER = ""  # the destination by which Broker-J means whoever publishes on the session
RESERVED = ("amq.", "qpid.")
REASONS = {
    "not-found": ErrorCode.NOT_FOUND,
    "precondition-failed": ErrorCode.NOT_ALLOWED,
    "access-refused": ErrorCode.NOT_ALLOWED,
}


class CommandError(Exception):
    """A command that cannot be executed: it ends the session.

    Args:
        code: of the execution.exception.
        text: in words.
    """

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code


def thresholds_of(preset: Any, arguments: dict[str, Any]) -> FlowThresholds:
    """The limits of a queue that is declared so; a preset that is not Qpid's has its defaults."""
    if isinstance(preset, BrokerJ):
        return FlowThresholds.by_session(arguments, resume_percent=preset.flow_resume_limit)
    numbers = preset if isinstance(preset, QpidCpp) else DEFAULTS
    return FlowThresholds.declared(
        arguments,
        default_max_size=numbers.default_queue_limit,
        stop_percent=numbers.flow_stop_percent,
        resume_percent=numbers.flow_resume_percent,
    )


def declare_queue(
    broker: Broker, name: str, thresholds: FlowThresholds, terms: Terms | None = None
) -> QueueProcess:
    """Make a queue with these limits; a row tells its watermarks, if it has any."""
    made = broker.vhost.declare(name, QpidQueueArguments.of(thresholds), terms)
    _tell_watermarks(broker, name, thresholds)
    return made


def set_watermarks(broker: Broker, name: str, thresholds: FlowThresholds) -> None:
    """Change a queue's watermarks while it is at work.

    What the proposal of producer flow control wanted; Qpid C++ fixes them at declaration.
    """
    _tell_watermarks(broker, name, thresholds)
    broker.queues[name].command(
        SetWatermarks(
            stop_count=thresholds.stop_count,
            resume_count=thresholds.resume_count,
            stop_size=thresholds.stop_size,
            resume_size=thresholds.resume_size,
        )
    )


def _tell_watermarks(broker: Broker, name: str, thresholds: FlowThresholds) -> None:
    broker.tap.internal(
        t_us=broker.clock.now_us,
        event="note",
        vantage=f"queue:{name}",
        kind="watermarks",
        queue=name,
        extra=QpidQueueArguments.of(thresholds).to_x() or None,
    )


class QpidSession:
    """A session as the broker has it.

    Args:
        session: the protocol's.
        owner: the connection.

    Attributes:
        session: the protocol's.
        subscribers: by destination; a cancelled one is gone from here.
    """

    def __init__(self, session: Session, owner: QpidConnection) -> None:
        self.session = session
        self.subscribers: dict[str, Subscriber] = {}
        self._leaving: list[Subscriber] = []  # cancelled, with messages that are not accepted
        self._held_by: set[str] = set()  # queues above their maximum to which it has published
        self._owner = owner
        self._vhost = owner.broker.vhost
        self._made = 0
        self._token = f"{owner.name}/{session.ordinal}"  # the owner of its exclusive queues
        self._execute: dict[type[Command], Callable[[Any], Composite | None]] = {
            c.MessageSubscribe: self._subscribe,
            c.MessageCancel: self._cancel,
            c.MessageAccept: partial(self._settle, Settle),
            c.MessageReject: partial(self._settle, Reject),
            c.MessageRelease: self._release,
            c.MessageAcquire: self._acquire,
            c.QueueDeclare: self._declare_queue,
            c.QueueDelete: self._delete_queue,
            c.QueuePurge: self._purge,
            c.QueueQuery: self._query_queue,
            c.ExchangeDeclare: self._declare_exchange,
            c.ExchangeDelete: self._delete_exchange,
            c.ExchangeQuery: self._query_exchange,
            c.ExchangeBind: self._bind,
            c.ExchangeUnbind: self._unbind,
            c.ExchangeBound: self._bound,
        }

    # -- what the connection says ---------------------------------------------------------------

    def command(self, event: CommandReceived) -> None:
        """Execute a command; a message is complete when its queues say so.

        Raises:
            CommandError: it cannot be executed.
        """
        if isinstance(event.command, c.MessageTransfer):
            self._publish(event, event.command)
            return
        execute = self._execute.get(type(event.command))
        if execute is None:
            self.session.answer(event)
            return
        try:
            result = execute(event.command)
        except RoutingError as error:
            code = REASONS.get(error.reason, ErrorCode.INTERNAL_ERROR)
            raise CommandError(code, str(error)) from None
        except (QueueLockedError, QueueInUseError) as error:
            raise CommandError(ErrorCode.RESOURCE_LOCKED, str(error)) from None
        except QueueArgumentError as error:
            raise CommandError(ErrorCode.INVALID_ARGUMENT, str(error)) from None
        self.session.complete(event.command_id, result=result)

    def flow(self, event: FlowReceived) -> None:
        """A subscription's credit was changed."""
        self.session.answer(event)
        found = self.subscribers.get(event.subscription.destination)
        if found is not None:
            found.credit_changed()

    def flush(self, event: FlushReceived) -> None:
        """A subscription wants what is there."""
        found = self.subscribers.get(event.subscription.destination)
        if found is None:
            self.session.answer(event)
        else:
            found.flush(event)

    def completed(self) -> None:
        """The peer has completed transfers: windows may have moved."""
        for one in self.subscribers.values():
            if one.subscription.credit.window:
                one.credit_changed()

    def takes(self) -> bool:
        """Whether the transport takes a message."""
        return self._owner.writable and self.session.attached

    def kick(self) -> None:
        """The transport takes messages again."""
        for queue in dict.fromkeys(one.queue for one in self.subscribers.values()):
            queue.kick()

    def leave(self) -> None:
        """The session is over: every message that it holds goes back."""
        subscribers = [*self.subscribers.values(), *self._leaving]
        self.subscribers.clear()
        self._leaving.clear()
        for one in subscribers:
            if self._owner.broker.queues.get(one.queue.name) is one.queue:
                one.leave()
                self._vhost.consumer_left(one.queue, one.name)
        self._vhost.release(self._token)

    def left(self, subscriber: Subscriber) -> None:
        """A cancelled subscriber has let its last message go."""
        if subscriber in self._leaving:
            self._leaving.remove(subscriber)

    def queue_deleted(self, queue: QueueProcess) -> None:
        """The subscriptions to it get nothing more."""
        for destination, one in list(self.subscribers.items()):
            if one.queue is queue:
                one.end_flush()
                del self.subscribers[destination]
                self.session.subscriptions.pop(destination, None)
        self._leaving = [one for one in self._leaving if one.queue is not queue]

    # -- messages -------------------------------------------------------------------------------

    def _publish(self, event: CommandReceived, command: c.MessageTransfer) -> None:
        key, exchange = routing_key(event), command.destination or ""
        message = message_of(event, exchange, self._owner.broker.preset)
        try:
            queues = self._vhost.route(exchange, (key,), message)
        except RoutingError as error:
            raise CommandError(ErrorCode.NOT_FOUND, str(error)) from None
        # A client that leaves accept-mode out waits for no accept; Qpid's in Python cannot take it.
        accept = command.accept_mode == c.AcceptMode.EXPLICIT

        def settled(outcome: Outcome) -> None:
            if isinstance(outcome, Refused):
                name = outcome.queue
                why = f"Maximum depth exceeded on {name}: the queue takes no further message"
                self._owner.failed_command(
                    self.session.failed(
                        ErrorCode.RESOURCE_LIMIT_EXCEEDED, why, event.command_id, command
                    )
                )
            else:  # also where no queue is: an unroutable message is dropped
                self.session.complete(event.command_id, accept=accept)
                self._hold(queues)

        origin = Origin(exchange=exchange, routing_keys=(key,))
        self._vhost.publish(queues, message, origin, settled)

    def _hold(self, queues: Iterable[QueueProcess]) -> None:
        """Tell a producer to stop that has published to a queue above its maximum."""
        for queue in queues:
            if queue.name in self._held_by or not overfull(queue) or not self.session.attached:
                continue
            if not self._held_by:
                self.session.send(c.MessageSetFlowMode(PRODUCER, c.FlowMode.CREDIT))
                self.session.send(c.MessageStop(PRODUCER))
            self._held_by.add(queue.name)
            queue.when_room(partial(self._room, queue.name))

    def _room(self, queue: str) -> None:
        """A queue that has held the session goes on."""
        self._held_by.discard(queue)
        preset = self._owner.broker.preset
        if not self._held_by and self.session.attached and isinstance(preset, BrokerJ):
            self.session.send(c.MessageFlow(PRODUCER, c.CreditUnit.MESSAGE, preset.producer_credit))

    def _subscribe(self, command: c.MessageSubscribe) -> None:
        queue = self._own_queue(command.queue)
        subscription = self.session.subscriptions[command.destination or ""]
        if not subscription.acquires or not isinstance(queue, LocalQueueProcess):
            del self.session.subscriptions[subscription.destination]
            raise CommandError(
                ErrorCode.NOT_IMPLEMENTED, "browsing is not offered here; legal: acquire-mode 0"
            )
        self._made += 1
        name = f"{self._owner.name}/{self.session.channel}/{subscription.destination}/{self._made}"
        self._vhost.claim(queue, name, exclusive=command.exclusive)
        subscriber = Subscriber(name, subscription, queue, self)
        self.subscribers[subscription.destination] = subscriber

    def _cancel(self, command: c.MessageCancel) -> None:
        found = self.subscribers.pop(command.destination or "", None)
        if found is not None:
            self._leaving.append(found)
            found.cancel()
            self._vhost.consumer_left(found.queue, found.name)

    def _release(self, command: c.MessageRelease) -> None:
        self._settle(Modify if command.set_redelivered else Release, command)

    def _acquire(self, command: c.MessageAcquire) -> Composite:
        return Acquired(SequenceSet())  # nobody browses, so what was sent is acquired already

    def _settle(
        self,
        kind: type[Settlement],
        command: c.MessageAccept | c.MessageReject | c.MessageRelease,
    ) -> None:
        """The receiver's word; on what is not held it has no effect, as in Qpid C++."""
        for subscriber, numbers in self._held(command.transfers):
            subscriber.settle(kind, numbers)

    def _held(self, transfers: SequenceSet | None) -> list[tuple[Subscriber, list[int]]]:
        sent = self.session.sent
        ranges = [
            (nearest(first, sent), nearest(last, sent))
            for first, last in (transfers or SequenceSet()).ranges
        ]
        found = []
        for one in [*self.subscribers.values(), *self._leaving]:
            numbers = {number for first, last in ranges for number in _among(one.held, first, last)}
            if numbers:
                found.append((one, sorted(numbers)))
        return found

    # -- queues ---------------------------------------------------------------------------------

    def _queue(self, name: str | None) -> QueueProcess:
        if not name:
            raise CommandError(ErrorCode.ILLEGAL_ARGUMENT, "No queue name specified.")
        queue = self._vhost.queues.get(name)
        if queue is None:
            raise CommandError(ErrorCode.NOT_FOUND, f"Queue not found: {name}")
        return queue

    def _own_queue(self, name: str | None) -> QueueProcess:
        """A queue that is no other session's; the rest may be done with any queue."""
        queue = self._queue(name)
        self._vhost.check_access(queue.name, self._token)
        return queue

    def _no_alternate(self, name: str | None) -> None:
        if name:
            raise CommandError(
                ErrorCode.NOT_IMPLEMENTED, "alternate-exchange is not offered here; legal: none"
            )

    def _declare_queue(self, command: c.QueueDeclare) -> None:
        name = command.queue or ""  # a name like another, and then nothing is passive
        there = self._queue(name) if command.passive and name else self._vhost.queues.get(name)
        if there is not None:  # arguments are not compared, as in Qpid C++
            if command.exclusive:
                self._become_owner(there, passive=command.passive)
            return
        self._no_alternate(command.alternate_exchange)
        arguments = dict(command.arguments or {})
        terms = Terms(
            durable=command.durable,
            auto_delete=command.auto_delete,
            owner=self._token if command.exclusive else None,
            owner_keeps=True,
            arguments=arguments,
        )
        thresholds = thresholds_of(self._owner.broker.preset, arguments)
        declare_queue(self._owner.broker, name, thresholds, terms)

    def _become_owner(self, queue: QueueProcess, *, passive: bool) -> None:
        """Have a queue that is there for oneself, if nobody has it or consumes from it."""
        owner = self._vhost.terms[queue.name].owner
        if owner == self._token:
            return
        if passive or owner is not None or queue.queue.consumers():
            why = f"Cannot grant exclusive access to queue {queue.name}"
            raise CommandError(ErrorCode.RESOURCE_LOCKED, why)
        self._vhost.own(queue.name, self._token)

    def _delete_queue(self, command: c.QueueDelete) -> None:
        queue = self._own_queue(command.queue)
        if command.if_empty and queue.queue.ready:
            raise CommandError(ErrorCode.PRECONDITION_FAILED, f"{queue.name} is not empty")
        if command.if_unused and queue.queue.consumers():
            raise CommandError(ErrorCode.PRECONDITION_FAILED, f"{queue.name} is in use")
        self._vhost.delete(queue.name)

    def _purge(self, command: c.QueuePurge) -> None:
        self._vhost.purge(self._queue(command.queue).name)

    def _query_queue(self, command: c.QueueQuery) -> Composite:
        queue = self._vhost.queues.get(command.queue or "")
        if queue is None:
            return QueueQueryResult()
        terms = self._vhost.terms[queue.name]
        return QueueQueryResult(
            queue.name,
            durable=terms.durable,
            exclusive=terms.owner is not None,
            auto_delete=terms.auto_delete,
            arguments=dict(terms.arguments),
            message_count=queue.queue.ready,
            subscriber_count=len(queue.queue.consumers()),
        )

    # -- exchanges ------------------------------------------------------------------------------

    def _declare_exchange(self, command: c.ExchangeDeclare) -> None:
        name, kind = command.exchange or "", command.type or ""
        if not command.passive and name.startswith(RESERVED):
            raise CommandError(
                ErrorCode.NOT_ALLOWED,
                f"exchange names that begin with {' or '.join(RESERVED)} are reserved: {name}",
            )
        there = self._vhost.routing.exchanges.get(name)
        if there is not None and kind not in ("", there.type):
            raise CommandError(
                ErrorCode.NOT_ALLOWED, f"exchange {name} is of type {there.type}, not {kind}"
            )
        if there is not None or command.passive:
            self._vhost.exchange(name)  # all else is not compared, as in Qpid C++
            return
        self._no_alternate(command.alternate_exchange)
        if kind not in TYPES:
            raise CommandError(
                ErrorCode.NOT_FOUND, f"no exchange type {kind!r}; there are: {', '.join(TYPES)}"
            )
        self._vhost.routing.declare(
            name,
            kind,
            durable=command.durable,
            auto_delete=command.auto_delete,
            arguments={k: v for k, v in (command.arguments or {}).items() if k != ALTERNATE},
        )

    def _delete_exchange(self, command: c.ExchangeDelete) -> None:
        name = self._not_default(command.exchange)
        if name not in self._vhost.routing.exchanges:
            raise CommandError(ErrorCode.NOT_FOUND, f"Exchange not found: {name}")
        self._vhost.routing.delete(name)

    def _query_exchange(self, command: c.ExchangeQuery) -> Composite:
        found = self._vhost.routing.exchanges.get(command.name or "")
        if found is None:
            return ExchangeQueryResult(not_found=True)
        return ExchangeQueryResult(
            found.type, durable=found.durable, arguments=dict(found.arguments)
        )

    def _binding(self, command: c.ExchangeBind | c.ExchangeUnbind) -> Binding:
        arguments = command.arguments if isinstance(command, c.ExchangeBind) else None
        return Binding(
            self._vhost.exchange(self._not_default(command.exchange)).name,
            self._own_queue(command.queue).name,
            key=command.binding_key or "",
            arguments=tuple(sorted((arguments or {}).items())),
        )

    def _bind(self, command: c.ExchangeBind) -> None:
        self._vhost.routing.bind(self._binding(command))

    def _not_default(self, exchange: str | None) -> str:
        if not exchange:
            raise CommandError(
                ErrorCode.INVALID_ARGUMENT,
                "the default exchange is neither deleted nor bound; legal: another one's name",
            )
        return exchange

    def _unbind(self, command: c.ExchangeUnbind) -> None:
        named = self._binding(command)
        for one in self._vhost.routing.bindings(named.source, named.destination, key=named.key):
            self._vhost.routing.unbind(one)

    def _bound(self, command: c.ExchangeBound) -> Composite:
        exchange = self._vhost.routing.exchanges.get(command.exchange or "")
        queue, key = command.queue, command.binding_key
        lacking = bool(queue) and queue not in self._vhost.queues
        if exchange is None or lacking:
            return ExchangeBoundResult(exchange_not_found=exchange is None, queue_not_found=lacking)
        bindings = exchange.bindings
        wanted = sorted((command.arguments or {}).items())
        matches = [
            (
                not queue or one.destination == queue,
                not key or one.key == key,
                not wanted or list(one.arguments) == wanted,
            )
            for one in bindings
        ]
        if any(all(one) for one in matches):
            return ExchangeBoundResult()
        return ExchangeBoundResult(
            queue_not_matched=bool(queue) and not any(one[0] for one in matches),
            key_not_matched=bool(key) and not any(one[1] for one in matches),
            args_not_matched=bool(wanted) and not any(one[2] for one in matches),
        )


def _among(held: Mapping[int, int], first: int, last: int) -> Iterable[int]:
    """What of a range is held, in time by the smaller of both: a peer may name any range."""
    if last - first < len(held):
        return (number for number in range(first, last + 1) if number in held)
    return (number for number in held if first <= number <= last)
