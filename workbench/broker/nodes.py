"""The nodes of a broker: queues, exchanges and bindings, and whose they are.

A queue is made by whoever runs the broker, by a client through the management node, or by an
address of version 1. It goes when it is deleted, when its last consumer leaves it (auto-delete), or
when the connection ends that it belongs to (exclusive). Whoever has a link to it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.queues import Origin, QueueArguments

from .publication import Publication, Settled, SinglePublication
from .queue_process import QueueProcess
from .routing import ALTERNATE, DEFAULT, Binding, Exchange, Routing, RoutingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a queue was declared, beside what it does with messages.

    Attributes:
        owner: the connection that alone may use it (exclusive); None: everybody.
        arguments: by RabbitMQ's names, as they were given.
    """

    durable: bool = True
    auto_delete: bool = False
    owner: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


PLAIN = Terms()


def _nothing(_: int) -> None:
    pass


class Nodes:
    """Every node of a broker.

    Args:
        make: makes a queue of a name.
        deleted: told of a queue that is no more, to end the links to it.

    Attributes:
        queues: by name, in order of declaration.
        terms: how they were declared, by name.
        routing: exchanges and bindings.
    """

    def __init__(
        self,
        make: Callable[[str, QueueArguments], QueueProcess],
        deleted: Callable[[QueueProcess], None],
    ) -> None:
        self.queues: dict[str, QueueProcess] = {}
        self.terms: dict[str, Terms] = {}
        self.routing = Routing()
        self._make = make
        self._tell_deleted = deleted
        self._generated = 0
        # Messages that a queue has not confirmed yet, for when it is deleted.
        self._waiting: dict[QueueProcess, dict[Publication | SinglePublication, None]] = {}

    # -- queues -------------------------------------------------------------------------------

    def declare(
        self, name: str, arguments: QueueArguments | None = None, terms: Terms | None = None
    ) -> QueueProcess:
        """The queue of that name; made if there is none.

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
            queue = self.queues[name] = self._make(name, arguments)
            self.terms[name] = terms or Terms(
                arguments={"x-queue-type": arguments.queue_type, **arguments.to_x()}
            )
        return queue

    def generated_name(self, prefix: str) -> str:
        """A name that no queue has, for one that nobody named."""
        while f"{prefix}{self._generated}" in self.queues:
            self._generated += 1
        return f"{prefix}{self._generated}"

    def delete(self, name: str) -> int:
        """Delete a queue with its messages, bindings and links; returns how many were ready.

        Raises:
            KeyError: there is none.
        """
        queue = self.queues.pop(name)
        del self.terms[name]
        self.routing.queue_gone(name)
        ready = queue.queue.ready
        queue.end()
        for publication in list(self._waiting.pop(queue, ())):
            publication.queue_gone(queue)
        self._tell_deleted(queue)
        return ready

    def purge(self, name: str, done: Callable[[int], None] = _nothing) -> None:
        """Drop a queue's ready messages; `done` is told how many they were.

        Raises:
            KeyError: there is none.
            QueueError: it is a stream.
        """
        self.queues[name].purge(done)

    def locked(self, name: str, connection: str) -> bool:
        """Whether a queue belongs to another connection."""
        owner = self.terms.get(name, PLAIN).owner
        return owner is not None and owner != connection

    def consumer_left(self, queue: QueueProcess) -> None:
        """A consumer has left: an auto-delete queue goes with its last."""
        name = queue.name
        if self.queues.get(name) is not queue or not self.terms[name].auto_delete:
            return
        if not queue.queue.consumers():
            self.delete(name)

    def expired(self, queue: QueueProcess) -> None:
        """Nobody has used a queue for as long as it was declared to wait."""
        if self.queues.get(queue.name) is queue:
            self.delete(queue.name)

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
        self,
        exchange: str,
        routing_keys: Iterable[str],
        headers: Callable[[], Mapping[str, Any]] | None = None,
    ) -> list[QueueProcess]:
        """The queues that a message goes to, each once.

        Where nothing matches, the exchange's alternate one is tried, if it has one.

        Args:
            exchange: to which it is published.
            routing_keys: with which keys.
            headers: gives the application-properties, if an exchange asks for them.

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
                found.update(dict.fromkeys(self.routing.route(name, key, _Headers(headers))))
            queues = [self.queues[queue] for queue in found if queue in self.queues]
            if queues:
                return queues
            name = self.routing.exchanges[name].arguments.get(ALTERNATE)
        return []

    def publish(
        self,
        queues: list[QueueProcess],
        payload: bytes,
        message_format: int,
        origin: Origin,
        done: Settled,
    ) -> None:
        """Hand a message to queues; `done` is told what has become of it.

        With no queue at all it is released at once: it cannot be routed.
        """
        if len(queues) == 1:
            self.publish_to_one(queues[0], payload, message_format, origin, done)
            return
        publication = Publication(queues, done, self._no_more)
        for queue in queues:
            self._waiting.setdefault(queue, {})[publication] = None
        for queue in queues:
            queue.publish(
                payload,
                message_format,
                confirmed=lambda queue=queue: publication.confirmed(queue),  # type: ignore[misc]
                rejected=lambda reason, queue=queue: publication.rejected(queue, reason),  # type: ignore[misc]
                origin=origin,
            )

    def publish_to_one(
        self,
        queue: QueueProcess,
        payload: bytes,
        message_format: int,
        origin: Origin,
        done: Settled,
    ) -> None:
        """The same for one queue."""
        waiting = self._waiting.get(queue)
        if waiting is None:
            waiting = self._waiting[queue] = {}
        single = SinglePublication(queue.name, done, waiting)
        waiting[single] = None
        queue.publish(
            payload,
            message_format,
            single.confirmed,
            rejected=single.rejected,
            origin=origin,
        )

    def _no_more(self, publication: Publication, queue: QueueProcess) -> None:
        waiting = self._waiting.get(queue)
        if waiting is not None:
            waiting.pop(publication, None)

    def bind(self, exchange: str, queue: str, key: str = "", **arguments: Any) -> None:
        """Bind a queue to an exchange.

        Raises:
            RoutingError: the exchange is not there, or is the default one.
        """
        pairs = tuple(sorted(arguments.items()))
        self.routing.bind(Binding(exchange, queue, key=key, arguments=pairs))


class _Headers(Mapping[str, Any]):
    """Application-properties that are read when an exchange looks at them, and not before."""

    def __init__(self, read: Callable[[], Mapping[str, Any]] | None) -> None:
        self._read = read
        self._known: Mapping[str, Any] | None = None

    def _all(self) -> Mapping[str, Any]:
        if self._known is None:
            self._known = {} if self._read is None else self._read()
        return self._known

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __iter__(self) -> Any:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
