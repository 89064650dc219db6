"""What the two ends of a client's link are called, and what that means at this broker.

`PlainResolver` knows queues by their names. `RabbitResolver` knows RabbitMQ's addresses, and
refuses what it refuses (`rabbit_amqp_session.erl:validate_attach`, `ensure_target`,
`ensure_source`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.messaging import Source, Target
from workbench.amqp10.performatives import Error, ReceiverSettleMode, SenderSettleMode
from workbench.amqp10.receiver import ReceiverLink
from workbench.amqp10.sender import SenderLink
from workbench.amqp10.value_text import value_text
from workbench.amqp10.values import Described
from workbench.broker.queue_process import QueueProcess
from workbench.broker.routing import DEFAULT, RoutingError
from workbench.broker.virtual_host import SERVER_NAMED, QueueLockedError, Terms, VirtualHost
from workbench.presets import Preset

from .addresses import AddressError, Where, queue_name, source, target
from .destinations import (
    AnonymousDestination,
    Destination,
    ExchangeDestination,
    QueueDestination,
    RoutingTerms,
)

OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
TEMPORARY = "temporary-queue"
LONG_NAMES = 150
ANONYMOUS, GUEST = "anonymous", "guest"


class RefusedError(Exception):
    """A link that cannot be.

    Attributes:
        condition: why not.
        error: as the client is told.
    """

    def __init__(self, condition: ErrorCondition, text: str) -> None:
        super().__init__(text)
        self.condition = condition
        self.error = Error(condition=condition, description=text)


class CrashError(Exception):
    """An attach for which a session of RabbitMQ has no clause: it dies of it."""


class AddressResolver(Protocol):
    """Finds what a link is to be attached to."""

    def consumed(self, link: SenderLink) -> QueueProcess:
        """The queue that a consumer's source names.

        Raises:
            RefusedError: there is no such link.
        """

    def published(self, link: ReceiverLink) -> Destination:
        """Where a publisher's target leads.

        Raises:
            RefusedError: there is no such link.
            CrashError: nor is there a way to say so.
        """


class PlainResolver:
    """Queues by name, made at need if the preset says so.

    Args:
        vhost: of the broker.
        preset: whether queues are made.
    """

    def __init__(self, vhost: VirtualHost, preset: Preset) -> None:
        self._vhost = vhost
        self._preset = preset

    def consumed(self, link: SenderLink) -> QueueProcess:
        """The queue of that name."""
        return self._queue(link.source)

    def published(self, link: ReceiverLink) -> Destination:
        """The queue of that name."""
        return QueueDestination(self._queue(link.target))

    def _queue(self, terminus: object) -> QueueProcess:
        if not isinstance(terminus, Source | Target):
            raise RefusedError(
                ErrorCondition.NOT_IMPLEMENTED,
                "this terminus is not known here; legal: a source or target with the name of a"
                " queue as its address",
            )
        if terminus.dynamic or terminus.address is None:
            raise RefusedError(
                ErrorCondition.NOT_IMPLEMENTED,
                "the terminus has no address, and nodes are not made on demand; legal: the name of"
                " a queue",
            )
        name = queue_name(terminus.address)
        if name not in self._vhost.queues and not self._preset.auto_declare:
            there = ", ".join(self._vhost.queues) or "none"
            raise RefusedError(
                ErrorCondition.NOT_FOUND,
                f"no queue {value_text(terminus.address)}; there are: {there}",
            )
        return self._vhost.declare(name)


class RabbitResolver:
    """RabbitMQ's addresses.

    Args:
        vhost: of the broker.
        preset: whether addresses of version 1 are taken, and queues on demand made.
        connection: whose exclusive queues it may use.
    """

    def __init__(self, vhost: VirtualHost, preset: Preset, connection: str) -> None:
        self._vhost = vhost
        self._version_1 = preset.addresses_v1
        self._durable = preset.durable_unless_said
        self._makes_dynamic = self._copies = preset.refuses_links  # all three came after 4.0
        self._connection = connection

    def consumed(self, link: SenderLink) -> QueueProcess:
        """The queue that the source names; a dynamic one is made for this connection."""
        _validate(link)
        terminus = link.source
        if not isinstance(terminus, Source):
            raise RefusedError(ErrorCondition.INVALID_FIELD, f"{value_text(terminus)} is no source")
        if terminus.dynamic:
            return self._dynamic(link, terminus)
        where = self._parsed(source, terminus.address)
        queue = self._queue_of(where)
        try:
            self._vhost.check_access(queue.name, self._connection)
        except QueueLockedError as error:
            raise RefusedError(ErrorCondition.RESOURCE_LOCKED, str(error)) from None
        return queue

    def published(self, link: ReceiverLink) -> Destination:
        """An exchange, a queue, or what each message says."""
        _validate(link)
        terminus = link.target
        if isinstance(terminus, Described):
            raise RefusedError(ErrorCondition.NOT_IMPLEMENTED, "transactions not supported")
        if isinstance(terminus, Target) and terminus.dynamic:
            made = self._dynamic(link, terminus)
            where = Where(exchange=DEFAULT, routing_key=made.name, queue=made.name)
            return ExchangeDestination(self._vhost, where, made, self._terms(link))
        if not isinstance(terminus, Target):
            raise CrashError("the attach has no target; legal: a target, if without an address")
        if terminus.address is None:
            return AnonymousDestination(self._vhost, self._terms(link))
        where = self._parsed(target, terminus.address)
        queue = None if where.queue is None else self._queue_of(where)
        assert where.exchange is not None
        exchange = self._found(self._vhost.exchange, where.exchange)
        if exchange.internal:
            raise RefusedError(
                ErrorCondition.UNAUTHORIZED_ACCESS,
                f"forbidden to publish to internal exchange {where.exchange!r} in vhost '/'",
            )
        return ExchangeDestination(self._vhost, where, queue, self._terms(link))

    def _terms(self, link: ReceiverLink) -> RoutingTerms:
        """A client that has logged in with ANONYMOUS is guest [anonymous_login_user]."""
        user = link.session.connection.user
        return RoutingTerms(
            durable=self._durable,
            copies=self._copies,
            user=GUEST if user in (None, ANONYMOUS) else user,
        )

    def _parsed(self, read: Callable[..., Where], address: object) -> Where:
        try:
            if type(address) is not str:  # a symbol is none
                raise AddressError(f"bad address {value_text(address)}; legal: a string")
            return read(address, version_1=self._version_1)
        except AddressError as error:
            raise RefusedError(ErrorCondition.INVALID_FIELD, f"attach rejected: {error}") from None

    def _queue_of(self, where: Where) -> QueueProcess:
        if where.queue is None:  # a source of version 1 that names an exchange and a binding key
            assert where.exchange is not None
            self._found(self._vhost.exchange, where.exchange)
            queue = self._vhost.declare(self._vhost.generated_name(SERVER_NAMED))
            self._found(self._vhost.bind, where.exchange, queue.name, where.routing_key)
            return queue
        if where.declare:
            return self._vhost.declare(where.queue)
        if where.queue not in self._vhost.queues:
            raise RefusedError(ErrorCondition.NOT_FOUND, f"no queue {where.queue!r} in vhost '/'")
        return self._vhost.queues[where.queue]

    def _dynamic(self, link: SenderLink | ReceiverLink, terminus: Source | Target) -> QueueProcess:
        """A queue for this link alone, whose name tells of the client [3.5.4]."""
        wished = terminus.address is None and TEMPORARY in (terminus.capabilities or ())
        if not (self._makes_dynamic and wished):
            legal = f"; legal: no address and the capability {TEMPORARY}"
            raise RefusedError(
                ErrorCondition.NOT_IMPLEMENTED,
                "dynamic terminus not supported" + (legal if self._makes_dynamic else ""),
            )
        opened = link.session.connection.remote_open
        container = "" if opened is None else opened.container_id
        short = len(container) + len(link.name) < LONG_NAMES
        prefix = f"amq.dyn-{container}-{link.name}-" if short else "amq.dyn.gen-"
        name = self._vhost.generated_name(prefix)
        return self._vhost.declare(name, terms=Terms(owner=self._connection))

    @staticmethod
    def _found(find: Callable[..., Any], *arguments: str) -> Any:
        try:
            return find(*arguments)
        except RoutingError as error:
            raise RefusedError(ErrorCondition.NOT_FOUND, str(error)) from None


def _validate(link: SenderLink | ReceiverLink) -> None:
    """What no link may ask for."""
    attach = link.remote_attach
    assert attach is not None
    if attach.unsettled or attach.incomplete_unsettled:
        raise RefusedError(ErrorCondition.NOT_IMPLEMENTED, "link recovery not supported")
    if (
        attach.rcv_settle_mode is ReceiverSettleMode.SECOND
        and attach.snd_settle_mode is not SenderSettleMode.SETTLED
    ):
        raise RefusedError(ErrorCondition.NOT_IMPLEMENTED, "rcv-settle-mode second not supported")
    outcomes = link.source.outcomes if isinstance(link.source, Source) else None
    unknown = [name for name in outcomes or () if name not in OUTCOMES]
    if unknown:
        raise RefusedError(
            ErrorCondition.NOT_IMPLEMENTED,
            f"outcomes not supported: {', '.join(unknown)}; legal: {', '.join(OUTCOMES)}",
        )
