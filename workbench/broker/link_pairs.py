"""The management links of one connection, and which two of them belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.amqp.errors import ErrorCondition
from workbench.amqp.link import Link
from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.sender import SenderLink
from workbench.amqp.session import Session
from workbench.queues import QueueArguments
from workbench.queues.arguments import CLASSIC, legal_names

from .management import (
    Management,
    QueueConflictError,
    QueueInfo,
    QueueLockedError,
    QueuePropertyError,
)
from .management_link import ManagementError, Requests, Responses, Unanswered, check_paired
from .nodes import Nodes, Terms
from .routing import Routing
from .session_out import SessionOut

NODE_NAME = "rabbit@workbench"
MAX_SEGMENT_OCTETS = 3_000_000_000
FILTER_OCTETS = range(16, 256)


class OwnNodes:
    """The broker's nodes as one connection may manage them: exclusive queues of others are locked.

    Args:
        nodes: of the broker.
        connection: who asks.
        deprecated: whether queues may be declared that RabbitMQ is giving up.
    """

    def __init__(self, nodes: Nodes, connection: str, *, deprecated: bool) -> None:
        self._nodes = nodes
        self._connection = connection
        self._deprecated = deprecated

    @property
    def routing(self) -> Routing:
        """Exchanges and bindings."""
        return self._nodes.routing

    def queue_info(self, name: str) -> QueueInfo | None:
        """The queue, or None."""
        queue = self._nodes.queues.get(name)
        if queue is None:
            return None
        terms = self._nodes.terms[name]
        return QueueInfo(
            name=name,
            durable=terms.durable,
            auto_delete=terms.auto_delete,
            exclusive=terms.owner is not None,
            type=queue.arguments.queue_type,
            arguments=terms.arguments,
            message_count=queue.queue.ready,
            consumer_count=len(queue.queue.consumers()),
            leader=NODE_NAME,
            replicas=(NODE_NAME,),
        )

    def declare_queue(
        self,
        name: str,
        *,
        durable: bool,
        auto_delete: bool,
        exclusive: bool,
        arguments: Mapping[str, Any],
    ) -> bool:
        """Make a queue; False if an equal one was there.

        Raises:
            QueueLockedError: it belongs to another connection, or would.
            QueueConflictError: another one was there.
            QueueArgumentError: the arguments are not possible.
            QueuePropertyError: a queue of this type cannot be so.
        """
        owner = self._connection if exclusive else None
        there = self._nodes.terms.get(name)
        if there is None:
            read = QueueArguments.from_x(arguments)
            self._check_properties(read.queue_type, durable, auto_delete, exclusive, arguments)
            terms = Terms(
                durable=durable, auto_delete=auto_delete, owner=owner, arguments=dict(arguments)
            )
            self._nodes.declare(name, read, terms)
            return True
        if there.owner != owner:
            raise _locked(name)
        _require_equal(name, "durable", there.durable, durable)
        _require_equal(name, "auto_delete", there.auto_delete, auto_delete)
        for x_name in legal_names(self._nodes.queues[name].arguments.queue_type):
            _require_equal(name, x_name, there.arguments.get(x_name), arguments.get(x_name))
        return False

    def delete_queue(self, name: str) -> int:
        """Delete it and close its links; returns how many messages were ready."""
        self.check_access(name)
        return self._nodes.delete(name)

    def purge_queue(self, name: str, done: Callable[[int], None]) -> None:
        """Delete its ready messages; `done` is told how many."""
        self.check_access(name)
        self._nodes.purge(name, done)

    def check_access(self, name: str) -> None:
        """See that this connection may use a queue, if there is one.

        Raises:
            QueueLockedError: it belongs to another connection.
        """
        if self._nodes.locked(name, self._connection):
            raise _locked(name)

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
        wrong: dict[str, bool] = {
            "neither durable nor exclusive, which is deprecated; legal: durable or exclusive": (
                not (durable or exclusive or self._deprecated)
            )
        }
        if queue_type == CLASSIC:
            wrong["declared with x-queue-master-locator, which is deprecated; legal: without"] = (
                "x-queue-master-locator" in arguments and not self._deprecated
            )
        else:
            wrong |= {
                "auto_delete; legal: false": auto_delete,
                "exclusive; legal: false": exclusive,
                "not durable; legal: durable": not durable,
            }
        segment = arguments.get("x-stream-max-segment-size-bytes", 0)
        wrong[f"declared with segments of {segment} octets; legal: up to {MAX_SEGMENT_OCTETS}"] = (
            segment > MAX_SEGMENT_OCTETS
        )
        size = arguments.get("x-stream-filter-size-bytes", FILTER_OCTETS[0])
        wrong[
            f"declared with a filter of {size} octets; legal: {FILTER_OCTETS[0]} to"
            f" {FILTER_OCTETS[-1]}"
        ] = size not in FILTER_OCTETS
        for what, is_so in wrong.items():
            if is_so:
                raise QueuePropertyError(f"a {queue_type} queue cannot be {what}")


def _locked(name: str) -> QueueLockedError:
    return QueueLockedError(
        f"cannot obtain exclusive access to locked queue {name!r} in vhost '/': it belongs to"
        " another connection, or to all"
    )


def _require_equal(name: str, what: str, present: object, asked: object) -> None:
    if present != asked or isinstance(present, bool) != isinstance(asked, bool):
        raise QueueConflictError(
            f"inequivalent arg '{what}' for queue '{name}' in vhost '/': received {_plain(asked)}"
            f" but current is {_plain(present)}; legal: declare it with the same, or delete it"
            " before"
        )


def _plain(value: object) -> str:
    """A value as a person writes it: the AMQP type of a number is nobody's concern here."""
    number = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:d}" if number else repr(value)


class LinkPairs:
    """Pairs the management links of one connection by session and name.

    Args:
        nodes: of the broker.
        connection: whose links these are.
        unanswered: told of a request that cannot be answered, to end its session.
        deprecated: whether queues may be declared that RabbitMQ is giving up.
    """

    def __init__(
        self, nodes: Nodes, connection: str, unanswered: Unanswered, *, deprecated: bool
    ) -> None:
        self._unanswered = unanswered
        self._management = Management(OwnNodes(nodes, connection, deprecated=deprecated))
        self._requests: dict[tuple[Session, str], Requests] = {}
        self._responses: dict[tuple[Session, str], Responses] = {}

    def attach(self, link: SenderLink | ReceiverLink, out: SessionOut) -> Requests | Responses:
        """The host for a link that a client attaches.

        Args:
            link: of the two.
            out: the session's line.

        Raises:
            ManagementError: it is no half of a pair.
        """
        check_paired(link)
        key = (link.session, link.name)
        if isinstance(link, ReceiverLink):
            requests = Requests(link, self._management, self._unanswered)
            responses = self._responses.get(key)
            _check_same(link, requests, responses)
            requests.responses = responses
            self._requests[key] = requests
            return requests
        responses = Responses(link, out)
        other = self._requests.get(key)
        _check_same(link, responses, other)
        if other is not None:
            other.responses = responses
        self._responses[key] = responses
        return responses

    def forget(self, link: Link) -> None:
        """A link is over, if it was one of these."""
        key = (link.session, link.name)
        requests, responses = self._requests.get(key), self._responses.get(key)
        if requests is not None and requests.link is link:
            del self._requests[key]
        if responses is not None and responses.link is link:
            del self._responses[key]
            if requests is not None:
                requests.responses = None


def _check_same(link: Link, host: Requests | Responses, other: Requests | Responses | None) -> None:
    if other is not None and host.client_address != other.client_address:
        raise ManagementError(
            ErrorCondition.PRECONDITION_FAILED,
            f"management link {link.name} names the client's end {host.client_address!r}, its other"
            f" half {other.client_address!r}; legal: the same on both",
        )
