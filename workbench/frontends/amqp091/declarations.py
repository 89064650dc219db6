"""Queues, exchanges and bindings by the methods of AMQP 0-9-1 (`rabbit_channel.erl`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from workbench.amqp091.errors import ReplyCode
from workbench.amqp091.methods import (
    BasicGet,
    ExchangeBind,
    ExchangeBindOk,
    ExchangeDeclare,
    ExchangeDeclareOk,
    ExchangeDelete,
    ExchangeDeleteOk,
    ExchangeUnbind,
    ExchangeUnbindOk,
    Method,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
    QueuePurge,
    QueuePurgeOk,
    QueueUnbind,
    QueueUnbindOk,
)
from workbench.broker import QueueProcess, VirtualHost
from workbench.broker.routing import TYPES, Binding, RoutingError, not_default
from workbench.broker.virtual_host import (
    QueueConflictError,
    QueueLockedError,
    QueuePropertyError,
)
from workbench.queues import QueueError
from workbench.queues.arguments import CLASSIC, QUORUM, STREAM, QueueArgumentError

from .faults import RefusedError, no_exchange, no_queue

REPLY_TO = "amq.rabbitmq.reply-to"
"""A channel's own queue of replies; the name of one that is there goes on behind that."""

Reply = Callable[[Method], None]
Named = TypeVar("Named", bound=Method)
_CODES = {
    "not-found": ReplyCode.NOT_FOUND,
    "access-refused": ReplyCode.ACCESS_REFUSED,
    "precondition-failed": ReplyCode.PRECONDITION_FAILED,
}


class Declarations:
    """What one channel declares.

    Args:
        vhost: where.
        connection: the client's, to which exclusive queues belong.
        unknown_type: answers an exchange's type that nobody has.
        limits: whether anybody looks at a queue's arguments.
        strips: whether line ends in a name are dropped where it is declared, deleted or bound.
        names_classic_only: whether a quorum queue or a stream needs a name of the client's.
        keeps_exclusive: whether an exclusive queue can be durable.
    """

    def __init__(
        self,
        vhost: VirtualHost,
        connection: str,
        unknown_type: ReplyCode,
        *,
        limits: bool = True,
        strips: bool = False,
        names_classic_only: bool = True,
        keeps_exclusive: bool = True,
    ) -> None:
        self._keeps_exclusive = keeps_exclusive
        self._names_classic_only = names_classic_only
        self._limits = limits
        self._strips = strips
        self._vhost = vhost
        self._unknown_type = unknown_type
        self._connection = connection
        self._last = ""  # the queue declared last

    def obey(self, method: Method, reply: Reply) -> bool:
        """Obey a method of class queue or exchange; False if it is none.

        Args:
            method: what the client has sent.
            reply: sends the answer, perhaps later.

        Raises:
            RefusedError: it cannot be.
        """
        handler = _HANDLERS.get(type(method))
        if handler is None:
            return False
        answer = _nobody if getattr(method, "nowait", False) else reply
        method = self._meant(method)
        try:
            handler(self, method, answer)
        except QueueLockedError as error:
            raise RefusedError(ReplyCode.RESOURCE_LOCKED, str(error)) from None
        except (QueueConflictError, QueuePropertyError, QueueArgumentError) as error:
            raise RefusedError(ReplyCode.PRECONDITION_FAILED, str(error)) from None
        except QueueError as error:  # rabbit_quorum_queue.erl:declare_queue_error
            raise RefusedError(ReplyCode.INTERNAL_ERROR, str(error)) from None
        except RoutingError as error:
            raise RefusedError(_CODES[error.reason], str(error)) from None
        return True

    def called(self, method: Method) -> QueueProcess | None:
        """The queue whose process a method calls, waiting for its answer; None: it calls none."""
        if not isinstance(method, QueueDeclare | QueuePurge | QueueDelete | BasicGet):
            return None
        return self._vhost.queues.get(self._meant(method).queue or self._last)

    def _meant(self, method: Named) -> Named:
        """The method with the names that it is taken for (`rabbit_channel.erl:strip_cr_lf`)."""
        names = _STRIPPED.get(type(method), ()) if self._strips else ()
        given = {name: getattr(method, name) for name in names}
        return replace(method, **{name: one.translate(_LINE_ENDS) for name, one in given.items()})

    def queue(self, name: str) -> QueueProcess:
        """The queue that a method names; the one declared last if it names none.

        Raises:
            RefusedError: it is not there, or belongs to another connection.
        """
        return self._there(self._named(name))

    def _there(self, name: str) -> QueueProcess:
        queue = self._vhost.queues.get(name)
        if queue is None:
            raise no_queue(name)
        try:
            self._vhost.check_access(name, self._connection)
        except QueueLockedError as error:
            raise RefusedError(ReplyCode.RESOURCE_LOCKED, str(error)) from None
        return queue

    def _named(self, name: str) -> str:
        if not name and not self._last:
            raise RefusedError(ReplyCode.NOT_FOUND, "no previously declared queue")
        return name or self._last

    # -- queues -----------------------------------------------------------------------------

    def _declare_queue(self, method: QueueDeclare, reply: Reply) -> None:
        name = method.queue
        if name.startswith(REPLY_TO):  # whether that is there is all that can be asked
            if name != REPLY_TO:
                self._there(name)
            self._last = name
            reply(QueueDeclareOk(queue=name, message_count=0, consumer_count=1))
            return
        if method.passive:
            queue = self._there(name)  # without a name it means none, not the last
        else:
            if name.startswith("amq.") and name not in self._vhost.queues:
                raise RefusedError(
                    ReplyCode.ACCESS_REFUSED,
                    f"queue name '{name}' contains reserved prefix 'amq.*'",
                )
            kind = method.arguments.get("x-queue-type", CLASSIC)
            if not name and self._names_classic_only and kind in (QUORUM, STREAM):
                raise RefusedError(
                    ReplyCode.PRECONDITION_FAILED,
                    f"Cannot declare a server-named queue for type rabbit_{kind}_queue",
                )
            queue = self._vhost.declare_for(
                self._connection,
                name,
                durable=method.durable and (self._keeps_exclusive or not method.exclusive),
                auto_delete=method.auto_delete,
                exclusive=method.exclusive,
                arguments=method.arguments if self._limits else {},
            ).queue
        if not method.nowait:  # for the answer it is asked how it is
            queue.touch()
        self._last = queue.name
        reply(
            QueueDeclareOk(
                queue=queue.name,
                message_count=queue.queue.ready,
                consumer_count=len(queue.queue.consumers()),
            )
        )

    def _delete_queue(self, method: QueueDelete, reply: Reply) -> None:
        name = self._named(method.queue)
        queue = self._vhost.queues.get(name)
        if queue is not None:
            self._vhost.check_access(name, self._connection)
            self._check_conditions(method, queue)
        reply(QueueDeleteOk(message_count=self._vhost.delete_for(self._connection, name)))

    def _check_conditions(self, method: QueueDelete, queue: QueueProcess) -> None:
        """See to if-unused and if-empty: a quorum queue knows neither, a stream reads over them.

        Raises:
            RefusedError: the queue is not to be deleted.
        """
        kind, what = queue.arguments.queue_type, f"queue '{queue.name}' in vhost '/'"
        for flag, asked, keeps, why in (
            ("if-unused", method.if_unused, queue.queue.consumers(), "in use"),
            ("if-empty", method.if_empty, queue.queue.ready, "not empty"),
        ):
            if asked and kind == QUORUM:
                raise RefusedError(
                    ReplyCode.NOT_IMPLEMENTED,
                    f"cannot delete {what}. queue.delete operations with {flag} flag set are not"
                    " supported by quorum queues",
                )
            if asked and keeps and kind != STREAM:
                raise RefusedError(ReplyCode.PRECONDITION_FAILED, f"{what} {why}")

    def _purge_queue(self, method: QueuePurge, reply: Reply) -> None:
        queue = self.queue(method.queue)
        try:
            self._vhost.purge(queue.name, lambda count: reply(QueuePurgeOk(message_count=count)))
        except QueueError as error:
            raise RefusedError(ReplyCode.NOT_IMPLEMENTED, str(error)) from None

    def _bind_queue(self, method: QueueBind, reply: Reply) -> None:
        binding = self._queue_binding(method)
        if binding.source not in self._vhost.routing.exchanges:  # that is told first
            raise no_exchange(binding.source)
        self.queue(binding.destination)
        self._vhost.routing.bind(binding)
        reply(QueueBindOk())

    def _unbind_queue(self, method: QueueUnbind, reply: Reply) -> None:
        self._unbind(self._queue_binding(method))
        reply(QueueUnbindOk())

    def _queue_binding(self, method: QueueBind | QueueUnbind) -> Binding:
        """The binding of a queue; without names it has that of the queue declared last, twice.

        Raises:
            RefusedError: none was.
        """
        queue = self._named(method.queue)
        if not (method.queue or method.routing_key):
            method = replace(method, routing_key=queue)
        return self._binding(method.exchange, queue, method)

    # -- exchanges --------------------------------------------------------------------------

    def _declare_exchange(self, method: ExchangeDeclare, reply: Reply) -> None:
        routing, name = self._vhost.routing, method.exchange
        not_default(name)
        if method.passive:
            if name not in routing.exchanges:
                raise no_exchange(name)
        else:
            if method.type not in TYPES:
                raise RefusedError(self._unknown_type, f"unknown exchange type '{method.type}'")
            routing.declare(
                name,
                method.type,
                durable=method.durable,
                auto_delete=method.auto_delete,
                internal=method.internal,
                arguments=method.arguments,
            )
        reply(ExchangeDeclareOk())

    def _delete_exchange(self, method: ExchangeDelete, reply: Reply) -> None:
        exchange = self._vhost.routing.exchanges.get(method.exchange)
        if exchange is not None and method.if_unused and exchange.bindings:
            raise RefusedError(
                ReplyCode.PRECONDITION_FAILED, f"exchange '{method.exchange}' in vhost '/' in use"
            )
        self._vhost.routing.delete(method.exchange)
        reply(ExchangeDeleteOk())

    def _bind_exchange(self, method: ExchangeBind, reply: Reply) -> None:
        binding = self._binding(method.source, method.destination, method, to_exchange=True)
        self._vhost.routing.bind(binding)
        reply(ExchangeBindOk())

    def _unbind_exchange(self, method: ExchangeUnbind, reply: Reply) -> None:
        self._unbind(self._binding(method.source, method.destination, method, to_exchange=True))
        reply(ExchangeUnbindOk())

    def _binding(
        self,
        source: str,
        destination: str,
        method: QueueBind | QueueUnbind | ExchangeBind | ExchangeUnbind,
        *,
        to_exchange: bool = False,
    ) -> Binding:
        """The binding that a method means, whether there can be one or not.

        Raises:
            RoutingError: it has to do with the default exchange.
        """
        binding = Binding(
            source=source,
            destination=destination,
            to_exchange=to_exchange,
            key=method.routing_key,
            arguments=_pairs(method.arguments),
        )
        not_default(*binding.exchanges)
        return binding

    def _unbind(self, binding: Binding) -> None:
        """Take a binding away; none is gone already, for want of what it needs or for others.

        RabbitMQ looks no further where there is no binding (`rabbit_binding.erl:remove`), not even
        whose the queue is.

        Raises:
            QueueLockedError: its queue belongs to another connection.
        """
        source = self._vhost.routing.exchanges.get(binding.source)
        if source is None or binding not in source.bindings:
            return
        if not binding.to_exchange:
            self._vhost.check_access(binding.destination, self._connection)
        self._vhost.routing.unbind(binding)


def _pairs(arguments: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(arguments.items()))


def _nobody(method: Method) -> None:
    """No answer is wanted."""


_LINE_ENDS = dict.fromkeys(map(ord, "\r\n"))
_STRIPPED: dict[type[Method], tuple[str, ...]] = {
    QueueDeclare: ("queue",),
    QueueDelete: ("queue",),
    QueueBind: ("queue", "exchange"),
    QueueUnbind: ("queue", "exchange"),
    ExchangeDeclare: ("exchange",),
    ExchangeDelete: ("exchange",),
    ExchangeBind: ("source", "destination"),
    ExchangeUnbind: ("source", "destination"),
}
"""The names that are; a purge, a get, a consumer and a publish take theirs as it stands."""

_HANDLERS: dict[type[Method], Callable[..., None]] = {
    QueueDeclare: Declarations._declare_queue,
    QueueDelete: Declarations._delete_queue,
    QueuePurge: Declarations._purge_queue,
    QueueBind: Declarations._bind_queue,
    QueueUnbind: Declarations._unbind_queue,
    ExchangeDeclare: Declarations._declare_exchange,
    ExchangeDelete: Declarations._delete_exchange,
    ExchangeBind: Declarations._bind_exchange,
    ExchangeUnbind: Declarations._unbind_exchange,
}
