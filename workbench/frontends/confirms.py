"""What a session tells its publishers: outcomes, gathered into ranges of delivery-ids.

A queue confirms one message after the other. RabbitMQ's session does not write a frame for each: it
keeps what has come, works off its mailbox, and when nothing more waits there it writes one
disposition for each unbroken range of delivery-ids, whatever links they came over; then the flows
that the confirms made legal (`rabbit_amqp_session.erl:noreply_coalesce`,
`send_delivery_state_changes`). Until then the messages count as unconfirmed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from workbench.amqp10.messaging import Accepted
from workbench.amqp10.receiver import IncomingDelivery
from workbench.amqp10.session import Session

from .session_inbox import SessionInbox

if TYPE_CHECKING:
    from workbench.amqp10.receiver import ReceiverLink

Soon = Callable[[Callable[[], None]], object]
Confirm: TypeAlias = "tuple[Publisher, IncomingDelivery, object]"
"""Whose message, which, and its outcome."""


class Publisher(Protocol):
    """Whose messages are confirmed: a link from a publisher."""

    link: ReceiverLink

    def confirmed(self, deliveries: list[IncomingDelivery], *, told: bool) -> None:
        """These count no more; `told`: one frame on this link alone has said so."""

    def maybe_grant(self) -> None:
        """Grant again if that is legal now."""


class Confirms:
    """Gathers the confirms of one session.

    Args:
        session: whose publishers are told.
        soon: calls a function when the session has done what waits for it now.
        inbox: the session's mailbox, in which confirms wait their turn; None: it has none.
    """

    def __init__(self, session: Session, soon: Soon, inbox: SessionInbox | None = None) -> None:
        self._session = session
        self._soon = soon
        self._inbox = inbox
        self._waiting: list[Confirm] = []
        if inbox is not None:
            inbox.tell = self._tell

    def add(self, publisher: Publisher, delivery: IncomingDelivery, outcome: object) -> None:
        """The queues have decided on a message."""
        if self._inbox is not None:
            self._inbox.confirm((publisher, delivery, outcome))
            return
        if not self._waiting:
            self._soon(self.flush)
        self._waiting.append((publisher, delivery, outcome))

    def flush(self) -> None:
        """Tell all that was decided, now."""
        if self._inbox is not None:
            self._inbox.hear_all()
        waiting, self._waiting = self._waiting, []
        self._tell(waiting)

    def _tell(self, waiting: list[Confirm]) -> None:
        """Outcomes first, then credit."""
        if len(waiting) == 1 and waiting[0][1].settled:
            publisher, delivery, _ = waiting[0]
            if publisher.link.attached:
                publisher.confirmed([delivery], told=False)
                publisher.maybe_grant()
            return
        by_publisher: dict[Publisher, list[IncomingDelivery]] = {}
        for publisher, delivery, _ in waiting:
            by_publisher.setdefault(publisher, []).append(delivery)
        gone = [one for one in by_publisher if not one.link.attached]
        for publisher in gone:
            del by_publisher[publisher]
        alive = [item for item in waiting if item[0] in by_publisher] if gone else waiting
        alone = len(by_publisher) == 1
        for publisher, deliveries in by_publisher.items():
            told = alone and not any(delivery.settled for delivery in deliveries)
            publisher.confirmed(deliveries, told=told)
        for outcome, unsettled in _by_outcome(alive):
            late = [delivery for delivery in unsettled if delivery.link.sender_first(delivery)]
            self._session.settle_ranges([one for one in unsettled if one not in late], outcome)
            for delivery in late:
                delivery.link.settle(delivery.delivery_id, state=outcome)
        for publisher in by_publisher:
            publisher.maybe_grant()


def _by_outcome(
    told: list[Confirm],
) -> list[tuple[object, list[IncomingDelivery]]]:
    """Unsettled deliveries by outcome: what was refused is told before what was accepted."""
    found: list[tuple[object, list[IncomingDelivery]]] = []
    for _, delivery, outcome in told:
        if delivery.settled:
            continue
        known = next((deliveries for one, deliveries in found if one == outcome), None)
        if known is None:
            found.append((outcome, known := []))
        known.append(delivery)
    return sorted(found, key=lambda item: isinstance(item[0], Accepted))
