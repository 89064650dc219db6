"""A subscription to a queue: the broker's queue on one side, a session's credit on the other.

The queue is told of credit in messages, as of a link's; whether there are octets enough for the
message that is next is asked before it is handed out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.amqp010.commands import UNLIMITED
from workbench.amqp010.credit import Subscription
from workbench.amqp010.events import FlushReceived
from workbench.broker import PlainConsumer
from workbench.broker.queue_process import LocalQueueProcess
from workbench.queues import (
    Credit,
    Credited,
    CreditReply,
    Deliver,
    Modify,
    Settlement,
)
from workbench.serial import following

from .messages import sent_as

if TYPE_CHECKING:
    from .session import QpidSession


class Subscriber(PlainConsumer):
    """A consumer of a queue: credit in octets waits, and refuses nothing.

    Args:
        name: of the consumer, unique at the broker.
        subscription: of the session's.
        queue: whose messages.
        owner: the session.

    Attributes:
        held: messages that it has not accepted, by the number of their transfer.
        cancelled: it gets nothing more.
    """

    def __init__(
        self, name: str, subscription: Subscription, queue: LocalQueueProcess, owner: QpidSession
    ) -> None:
        self.name = name
        self.subscription = subscription
        self.queue = queue
        self.held: dict[int, int] = {}
        self.cancelled = False
        self._owner = owner
        self._delivery_count = 0
        self._flush: FlushReceived | None = None
        queue.attach(name, self, mode=Credited(), settled=not subscription.accepts)

    # -- what the session says ------------------------------------------------------------------

    def credit_changed(self) -> None:
        """Tell the queue how many messages the subscription may be sent."""
        self.queue.command(self._credit())

    def flush(self, event: FlushReceived) -> None:
        """Hand out what is there, as far as credit goes; then the flush is complete."""
        self._flush = event
        self.queue.request(self._credit())

    def end_flush(self) -> None:
        """The flush, if there is one, is complete."""
        event, self._flush = self._flush, None
        if event is not None:
            self._owner.session.flushed(event)
            self.credit_changed()

    def cancel(self) -> None:
        """Nothing more is sent; what is held may still be accepted."""
        self.end_flush()
        self.cancelled = True
        self.queue.cancel(self.name, self._leave_if_empty)

    def leave(self) -> None:
        """The session is gone: what is held goes back."""
        self.held.clear()
        self.queue.detach(self.name)

    def settle(self, kind: type[Settlement], numbers: list[int]) -> None:
        """The receiver's word on transfers; `Modify` counts as a failed attempt."""
        ids = tuple(self.held.pop(number) for number in numbers)
        if kind is Modify:
            command = Modify(consumer=self.name, message_ids=ids, delivery_failed=True)
            self.queue.command(command)
        else:
            self.queue.command(kind(consumer=self.name, message_ids=ids))
        self._leave_if_empty()

    # -- what the queue asks --------------------------------------------------------------------

    def can_take(self) -> bool:
        """Whether the next message could be sent now, by octets too."""
        credit = self.subscription.credit
        if not self._owner.takes():
            return False
        if credit.octets.unlimited:
            return True
        queue = self.queue.queue
        others = frozenset(name for name in queue.consumers() if name != self.name)
        found = queue.next_out(others)
        return found is None or credit.holds(sent_as(found[1])[1])

    def gives_up(self) -> bool:
        """A flush is over too when the octets do not suffice for what is next."""
        return self._owner.takes() and not self.can_take()

    def deliver(self, effect: Deliver) -> None:
        """Send the message; the subscription's credit pays for it."""
        headers, octets = sent_as(effect.message)
        self._delivery_count = following(self._delivery_count)
        payload = effect.message.payload
        number = self._owner.session.transfer(self.subscription, headers, payload, octets)
        if not effect.settled:
            self.held[number] = effect.message.message_id

    def credit_replied(self, reply: CreditReply) -> None:
        """All that the credit could bring has been sent."""
        self.end_flush()

    # -- inside ---------------------------------------------------------------------------------

    def _credit(self) -> Credit:
        credit = self.subscription.credit
        return Credit(
            consumer=self.name,
            delivery_count=self._delivery_count,
            link_credit=min(credit.messages.remaining, UNLIMITED),
        )

    def _leave_if_empty(self) -> None:
        if self.cancelled and not self.held:
            self._owner.left(self)
