"""The management links of one connection, and which two of them belong together."""

from __future__ import annotations

from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.link import Link
from workbench.amqp10.receiver import ReceiverLink
from workbench.amqp10.sender import SenderLink
from workbench.amqp10.session import Session
from workbench.amqp10.value_text import value_text
from workbench.broker.virtual_host import VirtualHost

from .management import Management
from .management_link import ManagementError, Requests, Responses, Unanswered, check_paired
from .outgoing_pending import OutgoingPending


class LinkPairs:
    """Pairs the management links of one connection by session and name.

    Args:
        vhost: of the broker.
        connection: whose links these are.
        unanswered: told of a request that cannot be answered, to end its session.
    """

    def __init__(self, vhost: VirtualHost, connection: str, unanswered: Unanswered) -> None:
        self._unanswered = unanswered
        self._management = Management(vhost, connection)
        self._requests: dict[tuple[Session, str], Requests] = {}
        self._responses: dict[tuple[Session, str], Responses] = {}

    def attach(self, link: SenderLink | ReceiverLink, out: OutgoingPending) -> Requests | Responses:
        """The host for a link that a client attaches.

        Args:
            link: of the two.
            out: the session's line.

        Raises:
            ManagementError: it is no half of a pair.
        """
        check_paired(link)
        key = (link.session, link.name)
        if key in (self._requests if isinstance(link, ReceiverLink) else self._responses):
            raise ManagementError(
                ErrorCondition.PRECONDITION_FAILED,
                f"management link {link.name} is attached in this direction already; legal: another"
                " name, or to detach it first",
            )
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
            f"management link {link.name} names the client's end "
            f"{value_text(host.client_address)}, its other half"
            f" {value_text(other.client_address)}; legal: the same on both",
        )
