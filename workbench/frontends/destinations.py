"""Where the messages of one publisher go: a queue, an exchange, or what each message says.

The spec preset knows queues alone. RabbitMQ sends everything through an exchange; `/queues/q` is
the default exchange with the key `q` (`rabbit_amqp_session.erl:lookup_target`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from workbench.amqp10.errors import DecodeError, ErrorCondition
from workbench.amqp10.messaging import (
    MessageAnnotations,
    Properties,
    Section,
    decode_head,
)
from workbench.amqp10.performatives import Error
from workbench.amqp10.receiver import IncomingDelivery
from workbench.amqp10.value_text import value_text
from workbench.broker.queue_process import QueueProcess
from workbench.broker.routing import DEFAULT, RoutingError
from workbench.broker.unconfirmed import Settled
from workbench.broker.virtual_host import VirtualHost
from workbench.queues import Message, Origin

from .addresses import AddressError, Where, target
from .annotations import routed
from .message_sections import user_of
from .payload import message_of

CC = "x-cc"
_CC = CC.encode()


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

    def __init__(
        self, condition: ErrorCondition, text: str, *, by_message: bool, forbidden: bool = False
    ) -> None:
        super().__init__(text)
        self.error = Error(condition=condition, description=text)
        self.by_message = by_message
        self.forbidden = forbidden


@dataclass(frozen=True, slots=True)
class RoutingTerms:
    """What a publisher's messages are asked before they are routed.

    Attributes:
        durable: what a message without a header is.
        copies: whether the annotation x-cc has further routing keys.
        user: who has logged in; a message that says who has sent it has to say the same.
    """

    durable: bool
    copies: bool
    user: str


class QueueDestination:
    """One queue, without exchanges."""

    def __init__(self, queue: QueueProcess) -> None:
        self.name = queue.name
        self.queue = queue

    def publish(self, delivery: IncomingDelivery, done: Settled) -> None:
        """Into the queue."""
        message = message_of(delivery.payload, delivery.message_format or 0)
        self.queue.publish(message, lambda _queue, outcome: done(outcome))

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
        vhost: of the broker.
        terms: what else a message is asked.
    """

    def __init__(self, vhost: VirtualHost, terms: RoutingTerms) -> None:
        self._vhost = vhost
        self._terms = terms
        self._reached: set[QueueProcess] = set()

    def gone(self, queue: QueueProcess) -> bool:
        """Whether a message has gone there."""
        known = queue in self._reached
        self._reached.discard(queue)
        return known

    def _message(self, delivery: IncomingDelivery, exchange: str, key: str) -> Message:
        """A delivery as it is kept when it is routed so; its message-format is not looked at."""
        return message_of(routed(delivery.payload, exchange, key, durable=self._terms.durable))

    def _check_user(self, payload: bytes, *, by_message: bool) -> None:
        """Nobody sends in another's name (`rabbit_access_control.erl:check_user_id`).

        Raises:
            UndeliverableError: somebody does.
        """
        claimed, user = user_of(payload), self._terms.user
        if claimed not in (None, user):
            raise UndeliverableError(
                ErrorCondition.UNAUTHORIZED_ACCESS,
                f"user_id property set to '{claimed}' but authenticated user was '{user}'",
                by_message=by_message,
                forbidden=True,
            )

    def _publish(
        self,
        exchange: str,
        key: str | None,
        delivery: IncomingDelivery,
        sections: _Sections,
        done: Settled,
        *,
        by_message: bool,
    ) -> None:
        vhost = self._vhost
        if key is None:
            key = sections.properties.subject or ""
        keys = (key, *(sections.more_keys(by_message=by_message) if self._terms.copies else ()))
        message = self._message(delivery, exchange, key)
        try:
            queues = vhost.route(exchange, keys, message)
            if vhost.exchange(exchange).internal:
                raise UndeliverableError(
                    ErrorCondition.UNAUTHORIZED_ACCESS,
                    f"forbidden to publish to internal exchange {exchange!r}",
                    by_message=by_message,
                    forbidden=True,
                )
        except RoutingError as error:
            raise UndeliverableError(
                ErrorCondition.NOT_FOUND, str(error), by_message=by_message
            ) from None
        self._check_user(sections.payload, by_message=by_message)
        self._reached.update(queues)
        vhost.publish(queues, message, Origin(exchange=exchange, routing_keys=keys), done)


class ExchangeDestination(_Routed):
    """An exchange, with the routing key of the address or of the message's subject."""

    def __init__(
        self,
        vhost: VirtualHost,
        where: Where,
        queue: QueueProcess | None,
        terms: RoutingTerms,
    ) -> None:
        super().__init__(vhost, terms)
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
        self._kept: Message | None = None
        self._origin = Origin(exchange=self._exchange, routing_keys=(self._key or "",))

    def publish(self, delivery: IncomingDelivery, done: Settled) -> None:
        """To every queue that it leads to."""
        key, payload = self._key, delivery.payload
        same = payload is self._came
        plain = same or not self._terms.copies or payload.find(_CC) < 0
        if key is not None and self._straight and plain:
            queue = self._vhost.queues.get(key)
            if queue is not None:
                message = self._kept if same else None
                if message is None:
                    self._check_user(payload, by_message=False)
                    message = self._message(delivery, DEFAULT, key)
                    self._came, self._kept = payload, message
                self._reached.add(queue)
                self._vhost.publish([queue], message, self._origin, done)
                return
        self._publish(self._exchange, key, delivery, _Sections(payload), done, by_message=False)

    def ends_with(self, queue: QueueProcess) -> bool:
        """With the queue that the address names, if it names one."""
        return queue is self.queue


class AnonymousDestination(_Routed):
    """Whatever the message's `to` says [AMQP Anonymous Terminus for Message Routing 1.0]."""

    name = "anonymous"
    queue = None

    def publish(self, delivery: IncomingDelivery, done: Settled) -> None:
        """To the address in the message's properties."""
        sections = _Sections(delivery.payload)
        to = sections.properties.to
        if not isinstance(to, str):
            raise _undeliverable("anonymous terminus requires 'to' address to be set")
        try:
            where = target(to, version_1=False)
        except AddressError as error:
            raise _undeliverable(f"bad 'to' address string: {error}") from None
        assert where.exchange is not None
        exchange, key = where.exchange, where.routing_key
        self._publish(exchange, key, delivery, sections, done, by_message=True)

    def ends_with(self, queue: QueueProcess) -> bool:
        """With none."""
        return False


class _Sections:
    """A message's sections, read when they are asked for."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self._read: list[Section] | None = None

    def _all(self) -> list[Section]:
        if self._read is None:
            try:
                self._read = list(decode_head(self.payload))
            except DecodeError:
                self._read = []
        return self._read

    def _section(self, kind: type[Any]) -> Any:
        return next((one for one in self._all() if isinstance(one, kind)), None)

    @property
    def properties(self) -> Properties:
        found = self._section(Properties)
        return found if isinstance(found, Properties) else Properties()

    def more_keys(self, *, by_message: bool) -> list[str]:
        """Further routing keys, which a publisher may put into the annotation x-cc.

        Raises:
            UndeliverableError: that is no list of strings.
        """
        if _CC not in self.payload:
            return []
        found = self._section(MessageAnnotations)
        value = found.value if found is not None and isinstance(found.value, dict) else {}
        keys = value.get(CC, [])
        if type(keys) is list and all(type(key) is str for key in keys):
            return keys
        raise UndeliverableError(
            ErrorCondition.INVALID_FIELD,
            f"bad value for 'x-cc' message-annotation: {value_text(keys)}; legal: a list of"
            " strings",
            by_message=by_message,
        )


def _undeliverable(text: str) -> UndeliverableError:
    return UndeliverableError(ErrorCondition.PRECONDITION_FAILED, text, by_message=True)
