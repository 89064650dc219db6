"""A link on which the broker sends: between a queue's consumer and a sender link.

Link credit is passed on to the queue as it stands, so the queue never hands out a message that the
link could not send; and it is asked to wait while the session window is closed. This is the plain
reading of the specification: nothing is buffered between queue and wire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.link import Link, is_terminal
from workbench.amqp10.messaging import Accepted, Modified, Rejected
from workbench.amqp10.performatives import Error, Flow
from workbench.amqp10.sender import OutgoingDelivery, SenderLink
from workbench.amqp10.session import Session
from workbench.broker.queue_process import QueueProcess
from workbench.queues import (
    Command,
    Credit,
    Credited,
    CreditReply,
    Deliver,
    Drained,
    Modify,
    Reject,
    Release,
    Settle,
    Stored,
)
from workbench.queues.arguments import STREAM
from workbench.serial import link_credit_snd
from workbench.sim import Notes

from .amqp091.content import as_amqp10
from .consumer_terms import Filters, priority_of
from .payload import format_of, redelivered

CreditRule = Callable[[int, int, int, int], int]
"""Delivery-count and link-credit of a flow, own delivery-count, own link-credit: the new credit."""


def spec_rule(flow_count: int, flow_credit: int, own_count: int, own_credit: int) -> int:
    """The specification's way to work credit out [2.6.7]."""
    return link_credit_snd(flow_count, flow_credit, own_count)


class Owner(Protocol):
    """What a consumer's link asks of its connection."""

    def takes(self, session: Session) -> bool:
        """Whether transport and writer take a message of this session."""

    def forget(self, link: Link) -> None:
        """The link is over: clean up at once."""


class OutgoingLink:
    """One consumer of a queue.

    Args:
        name: of the consumer, unique at the broker.
        link: over which it is served.
        queue: that serves it.
        owner: the connection that the link is on.
        notes: takes rows about the link that no frame makes.
        rule: another way than the specification's to work out credit from a flow, for showing what
            a wrong one leads to.
    """

    def __init__(
        self,
        name: str,
        link: SenderLink,
        queue: QueueProcess,
        owner: Owner,
        notes: Notes,
        rule: CreditRule | None = None,
    ) -> None:
        self.name = name
        self._rule = rule or spec_rule
        link.credit_by_owner = rule is not None
        self._owner = owner
        self._notes = notes
        self.link = link
        self.queue = queue
        self._messages: dict[int, int] = {}  # delivery-id to message id, while unsettled
        self._ready = 0
        self._flow_sent = False  # since the last flow of the receiver came

    def attach(self, settled: bool, filters: Filters, epoch_us: int) -> None:
        """Begin to consume; nothing comes before the receiver grants credit.

        Args:
            settled: messages are settled as they leave.
            filters: of the source.
            epoch_us: when the run's clock began, since 1970.
        """
        streams = self.queue.arguments.queue_type == STREAM
        self.queue.attach(
            self.name,
            self,
            mode=Credited(self.link.delivery_count),
            settled=settled,
            priority=priority_of(self.link),
            start=filters.start(epoch_us) if streams else None,
            selection=filters.selection() if streams else None,
        )
        self.available(self.queue.queue.available_to(self.name))

    def detach(self) -> None:
        """The link is gone: what it held goes back into the queue."""
        self._messages.clear()
        self.queue.detach(self.name)

    # -- what the receiver says ---------------------------------------------------------------

    def heed(self, frame: Flow) -> None:
        """Works the credit out from a flow that has just come, where the link leaves it to this."""
        if self.link.credit_by_owner and frame.link_credit is not None:
            self._work_out(frame)

    def _work_out(self, frame: Flow) -> None:
        counters = self.link.counters
        at = frame.delivery_count
        counters.link_credit = self._rule(
            counters.initial_delivery_count if at is None else at,
            frame.link_credit or 0,
            counters.delivery_count,
            counters.link_credit,
        )

    def flow_received(self, frame: Flow) -> None:
        """Pass credit on; answer a drain that finds nothing, and an echo [2.6.7]."""
        link = self.link
        self._flow_sent = False
        self.queue.command(
            Credit(
                consumer=self.name,
                delivery_count=link.delivery_count,
                link_credit=link.credit,
                drain=link.drain,
            )
        )
        if frame.echo and not self._flow_sent:
            link.flow()

    def updated(self, deliveries: Iterable[OutgoingDelivery], state: object, settled: bool) -> None:
        """The receiver's word on deliveries: an outcome takes effect once, at its first coming."""
        if not settled and not is_terminal(state):
            return
        messages = tuple(
            self._messages.pop(delivery.delivery_id)
            for delivery in deliveries
            if delivery.delivery_id in self._messages
        )
        if messages:
            self.queue.command(self._command(messages, state))

    def _command(self, messages: tuple[int, ...], state: object) -> Command:
        match state:
            case Accepted():
                return Settle(consumer=self.name, message_ids=messages)
            case Rejected():
                return Reject(consumer=self.name, message_ids=messages)
            case Modified():
                return Modify(
                    consumer=self.name,
                    message_ids=messages,
                    delivery_failed=bool(state.delivery_failed),
                    undeliverable_here=bool(state.undeliverable_here),
                    annotations=_annotations(state),
                )
            case _:
                # Settled without an outcome: the source's default-outcome, released [3.5.3].
                return Release(consumer=self.name, message_ids=messages)

    # -- what the queue asks ------------------------------------------------------------------

    def can_take(self) -> bool:
        """True if a message could be sent at once."""
        return self._owner.takes(self.link.session) and self.link.can_send

    def deliver(self, effect: Deliver) -> None:
        """Send the message; the link's credit pays for it."""
        link, message = self.link, effect.message
        link.available = self._ready + 1  # sending takes one off
        delivery = link.send(
            self.sent_as(message), settled=effect.settled, message_format=format_of(message)
        )
        if not effect.settled:
            self._messages[delivery.delivery_id] = message.message_id

    def sent_as(self, message: Stored) -> bytes:
        """The octets to send for a message."""
        return redelivered(as_amqp10(message))

    @property
    def size_limit(self) -> int:
        """The receiver's max-message-size [2.7.3]; 0: there is none."""
        peer = self.link.remote_attach
        return 0 if peer is None else peer.max_message_size or 0

    def gives_up(self) -> bool:
        """Never: a closed window opens again."""
        return False

    def limits_size(self) -> bool:
        """Whether the receiver's attach has a max-message-size."""
        return self.size_limit > 0

    def too_large(self, message: Stored) -> bool:
        """Whether the receiver's max-message-size is below what would be sent [2.7.3]."""
        return 0 < self.size_limit < len(self.sent_as(message))

    def refuse(self, message: Stored) -> None:
        """The receiver takes no message that large: the link cannot go on; the message stays."""
        size = len(self.sent_as(message))
        self.link.close(
            Error(
                condition=ErrorCondition.MESSAGE_SIZE_EXCEEDED,
                description=f"the next message has {size} octets, the receiver's max-message-size"
                f" is {self.size_limit}",
            )
        )
        self._owner.forget(self.link)

    def drained(self, effect: Drained) -> None:
        """Give the credit back that the queue could not use."""
        self.link.drained()
        self._flow_sent = True

    def credit_replied(self, reply: CreditReply) -> None:
        """Nothing to do: the queue obeys at once, and its answer is at hand."""

    def activated(self, active: bool = True) -> None:
        """Nothing to do: the specification has no word for it."""

    def available(self, count: int) -> None:
        """Note how many messages are ready; told to the receiver in the next flow."""
        self._ready = count
        if self.link.attached:
            self.link.available = count

    def noticed(self) -> None:
        """Without credit no transfer tells of the change, so say that there was one."""
        if self.link.attached and self.link.credit == 0:
            self._notes.note("note", "available")

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture: the link's own, and whom it serves."""
        return {**self.link.overview(), "queue": self.queue.name, "held": len(self._messages)}


def _annotations(state: Modified) -> dict[object, object]:
    """What is to be merged into the message, less what can name no annotation [3.2.10]."""
    given = state.message_annotations
    pairs = () if given is None else given.items()
    return {name: value for name, value in pairs if isinstance(name, str | int)}
