"""The management links of one connection, and which two of them belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.amqp.errors import ErrorCondition
from workbench.amqp.link import Link
from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.sender import SenderLink
from workbench.amqp.session import Session
from workbench.queues import QueueArguments

from .management import Management, QueueConflictError, QueueInfo, QueueLockedError
from .management_link import ManagementError, Requests, Responses, check_paired
from .nodes import Nodes, Terms
from .routing import Routing
from .session_out import SessionOut

NODE_NAME = "rabbit@workbench"


class OwnNodes:
    """The broker's nodes as one connection may manage them: exclusive queues of others are locked.

    Args:
        nodes: of the broker.
        connection: who asks.
    """

    def __init__(self, nodes: Nodes, connection: str) -> None:
        self._nodes = nodes
        self._connection = connection

    @property
    def routing(self) -> Routing:
        """Exchanges and bindings."""
        return self._nodes.routing

    def queue_info(self, name: str) -> QueueInfo | None:
        """The queue, or None.

        Raises:
            QueueLockedError: it belongs to another connection.
        """
        queue = self._nodes.queues.get(name)
        if queue is None:
            return None
        self._check_lock(name)
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
            QueueLockedError: it belongs to another connection.
            QueueConflictError: another one was there.
            ValueError: the name or the arguments are not possible.
        """
        if name not in self._nodes.queues:
            if name.startswith("amq."):
                raise ValueError(f"queue name {name!r} begins with amq., which is reserved")
            terms = Terms(
                durable=durable,
                auto_delete=auto_delete,
                owner=self._connection if exclusive else None,
                arguments=dict(arguments),
            )
            self._nodes.declare(name, QueueArguments.from_x(arguments), terms)
            return True
        self._check_lock(name)
        there = self._nodes.terms[name]
        given = {"durable": durable, "auto_delete": auto_delete, "exclusive": exclusive}
        known = {
            "durable": there.durable,
            "auto_delete": there.auto_delete,
            "exclusive": there.owner is not None,
        }
        for what, wanted in given.items():
            _require_equal(name, what, known[what], wanted)
        asked = QueueArguments.from_x(arguments).to_x()
        present = self._nodes.queues[name].arguments.to_x()
        for what in dict.fromkeys((*present, *asked)):
            _require_equal(name, what, present.get(what), asked.get(what))
        return False

    def delete_queue(self, name: str) -> int:
        """Delete it and close its links; returns how many messages were ready."""
        self._check_lock(name)
        return self._nodes.delete(name)

    def purge_queue(self, name: str) -> int:
        """Delete its ready messages; returns how many."""
        self._check_lock(name)
        return self._nodes.purge(name)

    def _check_lock(self, name: str) -> None:
        if self._nodes.locked(name, self._connection):
            raise QueueLockedError(
                f"cannot obtain exclusive access to locked queue {name!r} in vhost '/': it belongs"
                " to another connection"
            )


def _require_equal(name: str, what: str, present: object, asked: object) -> None:
    if present != asked:
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
    """

    def __init__(self, nodes: Nodes, connection: str) -> None:
        self._management = Management(OwnNodes(nodes, connection))
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
            requests = Requests(link, self._management)
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
