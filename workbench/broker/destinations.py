"""Where the messages of one publisher go: a queue, an exchange, or what each message says.

The spec preset knows queues alone. RabbitMQ sends everything through an exchange; `/queues/q` is
the default exchange with the key `q` (`rabbit_amqp_session.erl:lookup_target`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from workbench.amqp.delivery import IncomingDelivery
from workbench.amqp.errors import DecodeError, ErrorCondition
from workbench.amqp.messaging import (
    Accepted,
    MessageAnnotations,
    Properties,
    Section,
    decode_message,
)
from workbench.amqp.performatives import Error
from workbench.queues import Origin

from .addresses import AddressError, Where, target
from .annotations import routed
from .nodes import Nodes
from .payload import headers_in
from .publication import Settled, rejection
from .queue_process import QueueProcess
from .routing import DEFAULT, RoutingError

CC = "x-cc"
_CC = CC.encode()
ACCEPTED = Accepted()


class Destination(Protocol):
    """What a publisher's link publishes to.

    Attributes:
        name: for people.
    """

    name: str

    @property
    def queue(self) -> QueueProcess | None:
        """The queue that the link's address names; None: it names none."""

    def publish(self, delivery: IncomingDelivery, done: Settled) -> None:
        """Pass a message on; `done` is told its outcome.

        Raises:
            UndeliverableError: it cannot be passed on to anything.
        """

    def ends_with(self, queue: QueueProcess) -> bool:
        """Whether the link ends when that queue is deleted, and its session knows the queue."""

    def gone(self, queue: QueueProcess) -> bool:
        """A queue is deleted: whether the session knows it by this link."""


class UndeliverableError(Exception):
    """A message for a place that is none.

    Attributes:
        error: what is wrong.
        by_message: the message named the place, not its link.
        forbidden: nobody may publish there.
    """

    def __init__(self, error: Error, *, by_message: bool, forbidden: bool = False) -> None:
        super().__init__(error.description)
        self.error = error
        self.by_message = by_message
        self.forbidden = forbidden


class QueueDestination:
    """One queue, without exchanges."""

    def __init__(self, queue: QueueProcess) -> None:
        self.name = queue.name
        self.queue = queue

    def publish(self, delivery: IncomingDelivery, done: Settled) -> None:
        """Into the queue."""
        self.queue.publish(
            delivery.payload,
            delivery.message_format or 0,
            confirmed=lambda: done(ACCEPTED),
            rejected=lambda reason: done(rejection(self.name, reason)),
        )

    def ends_with(self, queue: QueueProcess) -> bool:
        """With its own."""
        return queue is self.queue

    def gone(self, queue: QueueProcess) -> bool:
        """Its own is always known."""
        return queue is self.queue


class _Routed:
    """Publishes through exchanges, as RabbitMQ does.

    RabbitMQ's session watches a queue from the first message on that it sends there.

    Args:
        nodes: of the broker.
        durable: what a message without a header is.
    """

    def __init__(self, nodes: Nodes, durable: bool) -> None:
        self._nodes = nodes
        self._durable = durable
        self._reached: set[QueueProcess] = set()

    def gone(self, queue: QueueProcess) -> bool:
        """Whether a message has gone there."""
        known = queue in self._reached
        self._reached.discard(queue)
        return known

    def _publish(
        self, exchange: str, key: str | None, message: _Message, done: Settled, *, by_message: bool
    ) -> None:
        nodes = self._nodes
        if key is None:
            key = message.properties.subject or ""
        keys = (key, *message.more_keys())
        headers: Callable[[], Mapping[str, Any]] = message.headers
        try:
            queues = nodes.route(exchange, keys, headers)
            if nodes.exchange(exchange).internal:
                raise UndeliverableError(
                    Error(
                        condition=ErrorCondition.UNAUTHORIZED_ACCESS,
                        description=f"forbidden to publish to internal exchange {exchange!r}",
                    ),
                    by_message=by_message,
                    forbidden=True,
                )
        except RoutingError as error:
            raise UndeliverableError(
                Error(condition=ErrorCondition.NOT_FOUND, description=str(error)),
                by_message=by_message,
            ) from None
        origin = Origin(exchange=exchange, routing_keys=keys)
        payload = message.payload
        if queues:
            payload = routed(payload, message.message_format, exchange, key, durable=self._durable)
            self._reached.update(queues)
        nodes.publish(queues, payload, message.message_format, origin, done)


class ExchangeDestination(_Routed):
    """An exchange, with the routing key of the address or of the message's subject."""

    def __init__(
        self,
        nodes: Nodes,
        where: Where,
        queue: QueueProcess | None = None,
        *,
        durable: bool = False,
    ) -> None:
        super().__init__(nodes, durable)
        assert where.exchange is not None
        self.name = where.queue or where.exchange
        self._exchange = where.exchange
        self._key: str | None = where.routing_key
        if where.version == 1 and not where.routing_key:
            self._key = None  # the subject
        self.queue = queue
        # The default exchange with a key of the address leads to one queue, the same each time.
        self._straight = self._exchange == DEFAULT and bool(self._key)
        # Who publishes the same octets again, straight to a queue, need not have them read again.
        self._came: bytes | None = None
        self._goes = b""
        self._origin = Origin(exchange=self._exchange, routing_keys=(self._key or "",))

    def publish(self, delivery: IncomingDelivery, done: Settled) -> None:
        """To every queue that it leads to."""
        key, payload = self._key, delivery.payload
        if payload is self._came and not delivery.message_format:
            queue = self._nodes.queues.get(key)  # type: ignore[arg-type]
            if queue is not None:
                self._reached.add(queue)
                self._nodes.publish_to_one(queue, self._goes, 0, self._origin, done)
                return
        if self._straight and key is not None and payload.find(_CC) < 0:
            queue = self._nodes.queues.get(key)
            if queue is not None:
                message_format = delivery.message_format or 0
                goes = routed(payload, message_format, DEFAULT, key, durable=self._durable)
                if not message_format:
                    self._came, self._goes = payload, goes
                self._reached.add(queue)
                self._nodes.publish_to_one(queue, goes, message_format, self._origin, done)
                return
        self._publish(self._exchange, self._key, _Message(delivery), done, by_message=False)

    def ends_with(self, queue: QueueProcess) -> bool:
        """With the queue that the address names, if it names one."""
        return queue is self.queue


class AnonymousDestination(_Routed):
    """Whatever the message's `to` says [AMQP Anonymous Terminus for Message Routing 1.0]."""

    name = "anonymous"
    queue = None

    def __init__(self, nodes: Nodes, *, durable: bool = False) -> None:
        super().__init__(nodes, durable)

    def publish(self, delivery: IncomingDelivery, done: Settled) -> None:
        """To the address in the message's properties."""
        message = _Message(delivery)
        to = message.properties.to
        if not isinstance(to, str):
            raise _undeliverable("anonymous terminus requires 'to' address to be set")
        try:
            where = target(to, version_1=False)
        except AddressError as error:
            raise _undeliverable(f"bad 'to' address string: {error}") from None
        assert where.exchange is not None
        self._publish(where.exchange, where.routing_key, message, done, by_message=True)

    def ends_with(self, queue: QueueProcess) -> bool:
        """With none."""
        return False


class _Message:
    """A message whose sections are read when they are asked for."""

    def __init__(self, delivery: IncomingDelivery) -> None:
        self.payload = delivery.payload
        self.message_format = delivery.message_format or 0
        self._read: list[Section] | None = None

    def _sections(self) -> list[Section]:
        if self._read is None:
            try:
                self._read = decode_message(self.payload)
            except DecodeError:
                self._read = []
        return self._read

    def _section(self, kind: type[Any]) -> Any:
        return next((one for one in self._sections() if isinstance(one, kind)), None)

    @property
    def properties(self) -> Properties:
        found = self._section(Properties)
        return found if isinstance(found, Properties) else Properties()

    def headers(self) -> Mapping[str, Any]:
        return headers_in(self._sections())

    def more_keys(self) -> list[str]:
        """Further routing keys, which a publisher may put into the annotation x-cc."""
        if _CC not in self.payload:
            return []
        found = self._section(MessageAnnotations)
        value = found.value if found is not None and isinstance(found.value, dict) else {}
        keys = value.get(CC)
        return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


def _undeliverable(text: str) -> UndeliverableError:
    return UndeliverableError(
        Error(condition=ErrorCondition.PRECONDITION_FAILED, description=text), by_message=True
    )
