"""A virtual host: queues, exchanges and bindings, and to whom they belong.

A queue is declared by whoever runs the broker or by a client, over whatever protocol. It goes when
it is deleted, when its last consumer leaves it (auto-delete), when nobody has used it for as long
as it was declared to wait, or when the connection ends that it belongs to (exclusive). Whoever has
a link to it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from workbench.queues import Message, Origin, QueueArguments
from workbench.queues.arguments import CLASSIC, legal_names, told
from workbench.sim import Actor

from .equivalence import difference
from .queue_process import QueueProcess
from .routing import ALTERNATE, DEFAULT, Binding, Exchange, Routing, RoutingError
from .unconfirmed import UNROUTABLE, Settled, Unconfirmed, UnconfirmedMessage

SERVER_NAMED = "amq.gen-"
MAX_SEGMENT_OCTETS = 3_000_000_000
FILTER_OCTETS = range(16, 256)
QUEUE_MODES = ("default", "lazy")
"""Of classic queues, until RabbitMQ gave modes up and looked at none any more."""


class QueueConflictError(ValueError):
    """A queue that is there differs from what was declared; the text says in what."""


class QueuePropertyError(ValueError):
    """A queue of this type cannot be declared so; the text says what is legal."""


class QueueLockedError(ValueError):
    """A queue belongs to another connection."""


class QueueInUseError(ValueError):
    """A queue has a consumer that wants to be its only one, or another one beside that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a queue was declared, beside what it does with messages.

    Attributes:
        owner: the connection that alone may use it (exclusive), or the session; None: everybody.
        owner_keeps: as long as it has an owner it stays, even if it is auto_delete (Qpid).
        arguments: by RabbitMQ's names, as they were given.
    """

    durable: bool = True
    auto_delete: bool = False
    owner: str | None = None
    owner_keeps: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)


PLAIN = Terms()


class Declared(NamedTuple):
    """Answer to a declaration: the queue, and whether it was made now."""

    queue: QueueProcess
    created: bool


def _nothing(_: int) -> None:
    pass


class VirtualHost:
    """Every queue, exchange and binding of a broker.

    Args:
        make: makes a queue of a name; told whether it survives a restart.
        deleted: told of a queue that is no more, to end the links to it.
        deprecated: whether queues may be declared that RabbitMQ is giving up.

    Attributes:
        queues: by name, in order of declaration.
        terms: how they were declared, by name.
        routing: exchanges and bindings.
    """

    def __init__(
        self,
        make: Callable[[str, QueueArguments, bool], QueueProcess],
        deleted: Callable[[QueueProcess], None],
        *,
        deprecated: bool = True,
    ) -> None:
        self.queues: dict[str, QueueProcess] = {}
        self.terms: dict[str, Terms] = {}
        self.routing = Routing()
        self._make = make
        self._tell_deleted = deleted
        self._deprecated = deprecated
        self._exclusive: dict[QueueProcess, str] = {}  # consumers that want to be the only one
        self._generated = 0
        self._unconfirmed: Unconfirmed = {}

    # -- declaring --------------------------------------------------------------------------

    def declare(
        self, name: str, arguments: QueueArguments | None = None, terms: Terms | None = None
    ) -> QueueProcess:
        """The queue of that name; made if there is none, and not compared if there is one.

        Args:
            name: of the queue.
            arguments: what kind of queue it is.
            terms: how it was declared; None: durable, and with these arguments.
        """
        queue = self.queues.get(name)
        if queue is not None:
            queue.touch()
        else:
            arguments = arguments or QueueArguments()
            terms = terms or Terms(
                arguments={"x-queue-type": arguments.queue_type, **arguments.to_x()}
            )
            queue = self.queues[name] = self._make(name, arguments, terms.durable)
            self.terms[name] = terms
        return queue

    def declare_for(
        self,
        connection: str,
        name: str,
        *,
        durable: bool,
        auto_delete: bool,
        exclusive: bool,
        arguments: Mapping[str, Any],
    ) -> Declared:
        """A client declares a queue: it is made, or found to be as asked for.

        Args:
            connection: the client's.
            name: of the queue; empty: the server chooses one.
            durable: it survives a restart of the broker.
            auto_delete: it goes with its last consumer.
            exclusive: it belongs to the connection.
            arguments: by RabbitMQ's names.

        Raises:
            QueueLockedError: it belongs to another connection, or would.
            QueueConflictError: another one is there.
            QueueArgumentError: the arguments are not possible.
            QueuePropertyError: a queue of this type cannot be so.
            QueueError: a node that a quorum queue needs is down.
        """
        name = name or self.generated_name(SERVER_NAMED)
        owner = connection if exclusive else None
        there = self.terms.get(name)
        if there is None:
            read = QueueArguments.from_x(arguments)
            self._check_properties(read.queue_type, durable, auto_delete, exclusive, arguments)
            terms = Terms(
                durable=durable, auto_delete=auto_delete, owner=owner, arguments=dict(arguments)
            )
            return Declared(self.declare(name, read, terms), created=True)
        if there.owner != owner:
            raise QueueLockedError(_locked(name))
        queue = self.queues[name]
        _require_equal(name, "durable", there.durable, durable)
        _require_equal(name, "auto_delete", there.auto_delete, auto_delete)
        # The type that a queue has unless another is asked for need not be said.
        present, asked = ({"x-queue-type": CLASSIC, **one} for one in (there.arguments, arguments))
        for x_name in legal_names(queue.arguments.queue_type):
            _require_equal(name, x_name, present.get(x_name), asked.get(x_name))
        return Declared(queue, created=False)

    def generated_name(self, prefix: str) -> str:
        """Generates a unique queue name."""
        while f"{prefix}{self._generated}" in self.queues:
            self._generated += 1
        return f"{prefix}{self._generated}"

    def _check_properties(
        self,
        queue_type: str,
        durable: bool,
        auto_delete: bool,
        exclusive: bool,
        arguments: Mapping[str, Any],
    ) -> None:
        """See that a queue can be so [`rabbit_queue_type_util.erl`, `rabbit_*_queue.erl`].

        Raises:
            QueuePropertyError: it cannot.
        """
        transient = not (durable or exclusive)
        located = "x-queue-master-locator" in arguments
        mode = arguments.get("x-queue-mode", QUEUE_MODES[0])
        segment = arguments.get("x-stream-max-segment-size-bytes", 0)
        size = arguments.get("x-stream-filter-size-bytes", FILTER_OCTETS[0])
        classic, strict = queue_type == CLASSIC, not self._deprecated
        wrong = [
            (
                classic and strict and transient,
                "both transient and shared, which is deprecated; legal: durable or exclusive",
            ),
            (
                classic and strict and located,
                "declared with x-queue-master-locator, which is deprecated; legal: without",
            ),
            (
                classic and not strict and mode not in QUEUE_MODES,
                f"declared with x-queue-mode {told(mode)}; legal: {', '.join(QUEUE_MODES)}",
            ),
            (not classic and auto_delete, "auto_delete; legal: false"),
            (not classic and exclusive, "exclusive; legal: false"),
            (not classic and not durable, "transient; legal: durable"),
            (
                segment > MAX_SEGMENT_OCTETS,
                f"declared with segments of {segment} octets; legal: up to {MAX_SEGMENT_OCTETS}",
            ),
            (
                size not in FILTER_OCTETS,
                f"declared with a filter of {size} octets; legal: {FILTER_OCTETS[0]} to"
                f" {FILTER_OCTETS[-1]}",
            ),
        ]
        for is_so, what in wrong:
            if is_so:
                raise QueuePropertyError(f"a {queue_type} queue cannot be {what}")

    # -- exclusive queues, and how queues go --------------------------------------------------

    def check_access(self, name: str, connection: str) -> None:
        """See that a connection may use a queue, if there is one of that name.

        Raises:
            QueueLockedError: it belongs to another connection.
        """
        owner = self.terms.get(name, PLAIN).owner
        if owner not in (None, connection):
            raise QueueLockedError(_locked(name))

    def delete(self, name: str) -> int:
        """Delete a queue with its messages, bindings and links; returns how many were ready.

        Raises:
            KeyError: there is none.
        """
        queue = self.queues.pop(name)
        del self.terms[name]
        self._exclusive.pop(queue, None)
        self.routing.queue_gone(name)
        ready = queue.queue.ready
        queue.end()
        for message in list(self._unconfirmed.pop(queue, ())):
            message.answered(queue, UNROUTABLE)
        self._tell_deleted(queue)
        return ready

    def delete_for(self, connection: str, name: str) -> int:
        """A client deletes a queue; one that is not there has no messages.

        Raises:
            QueueLockedError: it belongs to another connection.
        """
        self.check_access(name, connection)
        return self.delete(name) if name in self.queues else 0

    def purge(self, name: str, done: Callable[[int], None] = _nothing) -> None:
        """Drop a queue's ready messages; `done` is told how many they were.

        Raises:
            KeyError: there is none.
            QueueError: it is a stream.
        """
        self.queues[name].purge(done)

    def claim(self, queue: QueueProcess, consumer: str, *, exclusive: bool) -> None:
        """A consumer is about to attach, perhaps as the only one of a classic queue.

        A quorum queue or stream heeds no such wish (`rabbit_quorum_queue.erl:consume`). A queue
        with a single active consumer chooses that itself, and takes nobody who wants to be it
        (`rabbit_amqqueue_process.erl`, basic_consume).

        Raises:
            QueueInUseError: another consumer is in the way, or the queue's own rule.
        """
        arguments = queue.arguments
        if arguments.queue_type != CLASSIC:
            return
        chooses = arguments.single_active_consumer
        if queue in self._exclusive or (exclusive and (chooses or queue.queue.consumers())):
            raise QueueInUseError(f"queue '{queue.name}' in vhost '/' in exclusive use")
        if exclusive:
            self._exclusive[queue] = consumer

    def consumer_left(self, queue: QueueProcess, consumer: str) -> None:
        """A consumer has left: an auto-delete queue goes with its last."""
        if self._exclusive.get(queue) == consumer:
            del self._exclusive[queue]
        if self.queues.get(queue.name) is queue:
            self._delete_unused(queue)

    def _delete_unused(self, queue: QueueProcess) -> None:
        terms = self.terms[queue.name]
        kept = terms.owner_keeps and terms.owner is not None
        if terms.auto_delete and not kept and not queue.queue.consumers():
            self.delete(queue.name)

    def expired(self, queue: QueueProcess) -> None:
        """Nobody has used a queue for as long as it was declared to wait."""
        if self.queues.get(queue.name) is queue:
            self.delete(queue.name)

    def own(self, name: str, owner: str) -> None:
        """A queue that is there becomes its owner's alone."""
        self.terms[name] = replace(self.terms[name], owner=owner)

    def release(self, owner: str) -> None:
        """An owner is gone: its queues are everybody's, and go if nobody uses them."""
        for name in [name for name, terms in self.terms.items() if terms.owner == owner]:
            self.terms[name] = replace(self.terms[name], owner=None)
            self._delete_unused(self.queues[name])

    def connection_over(self, connection: str) -> None:
        """A connection has ended: the queues that belong to it go."""
        for name in [name for name, terms in self.terms.items() if terms.owner == connection]:
            if name in self.queues:
                self.delete(name)

    # -- messages -----------------------------------------------------------------------------

    def exchange(self, name: str) -> Exchange:
        """An exchange.

        Raises:
            RoutingError: there is none of that name.
        """
        try:
            return self.routing.exchanges[name]
        except KeyError:
            raise RoutingError("not-found", f"no exchange {name!r} in vhost '/'") from None

    def route(
        self, exchange: str, routing_keys: Iterable[str], message: Message
    ) -> list[QueueProcess]:
        """The queues that a message goes to, each once.

        Where nothing matches, the exchange's alternate one is tried, if it has one.

        Args:
            exchange: to which it is published.
            routing_keys: with which keys.
            message: whose headers an exchange may ask for.

        Raises:
            RoutingError: the exchange is not there.
        """
        keys = tuple(routing_keys)
        if exchange == DEFAULT:
            return [self.queues[key] for key in dict.fromkeys(keys) if key in self.queues]
        tried = set()
        name: str | None = exchange
        self.exchange(exchange)
        while name is not None and name not in tried and name in self.routing.exchanges:
            tried.add(name)
            found: dict[str, None] = {}
            for key in keys:
                found.update(dict.fromkeys(self.routing.route(name, key, message)))
            queues = [self.queues[queue] for queue in found if queue in self.queues]
            if queues:
                return queues
            name = self.routing.exchanges[name].arguments.get(ALTERNATE)
        return []

    def publish(
        self,
        queues: list[QueueProcess],
        message: Message,
        origin: Origin,
        done: Settled,
        via: Actor[Any] | None = None,
        at_once: bool = False,
    ) -> None:
        """Hand a message to queues; `done` is told what has become of it.

        With no queue at all it is unroutable at once.

        Args:
            queues: to which it goes.
            message: to be taken in.
            origin: how it was published.
            done: told the outcome, once.
            via: the publisher's process, if it counts credit with queues: one for each queue.
            at_once: no queue is to keep it.
        """
        if not queues:
            done(UNROUTABLE)
            return
        unconfirmed = UnconfirmedMessage(len(queues), done, self._unconfirmed)
        for queue in queues:
            waiting = self._unconfirmed.get(queue)
            if waiting is None:
                waiting = self._unconfirmed[queue] = {}
            waiting[unconfirmed] = None
        answered = unconfirmed.answered
        for queue in queues:
            queue.publish(message, answered, origin=origin, via=via, at_once=at_once)

    def bind(self, exchange: str, queue: str, key: str = "", **arguments: Any) -> None:
        """Bind a queue to an exchange.

        Raises:
            RoutingError: the exchange is not there, or is the default one.
        """
        pairs = tuple(sorted(arguments.items()))
        self.routing.bind(Binding(exchange, queue, key=key, arguments=pairs))


def _locked(name: str) -> str:
    return (
        f"cannot obtain exclusive access to locked queue '{name}' in vhost '/'. It could be"
        " originally declared on another connection or the exclusive property value does not match"
        " that of the original declaration."
    )


def _require_equal(name: str, what: str, present: object, asked: object) -> None:
    wrong = difference(f"queue '{name}'", what, present, asked)
    if wrong is not None:
        raise QueueConflictError(wrong)
