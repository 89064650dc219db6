"""A link on which the broker sends, as RabbitMQ's session has it: two credit loops in a row.

The client grants credit to the session, as much as it likes. The session grants to the queue, no
more than `max_queue_credit` at once, and again when those messages have been sent, so no more than
that many wait in the session. One request to the queue is under way at a time; what the client says
meanwhile is put aside, the latest word only, and takes effect when the queue has answered.

The session departs from the specification in one place: what it has taken from the queue it sends,
even if the client has cut its credit meanwhile (`rabbit_amqp_session.erl`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.flow import SenderLinkFlow
from workbench.amqp10.messaging import Modified, Rejected
from workbench.amqp10.performatives import Flow
from workbench.amqp10.sender import OutgoingDelivery, SenderLink
from workbench.amqp10.session import Session
from workbench.amqp10.values import Symbol
from workbench.broker.queue_process import QueueProcess
from workbench.presets import UINT_MAX, Preset
from workbench.queues import Command, Credit, CreditReply, Deliver, Drained, Modify, Reject, Stored
from workbench.queues.arguments import CLASSIC, QUORUM
from workbench.sim import Notes

from .amqp091.content import as_amqp10
from .annotations import delivered, plain
from .consumer_terms import Filters
from .outgoing_link import CreditRule, OutgoingLink, Owner
from .outgoing_pending import OutgoingPending
from .rabbit_faults import undefined_sum

TAG_SIZE, LONG_TAG_SIZE = 4, 8
ACTIVE = "rabbitmq:active"


class RabbitOwner(Owner, Protocol):
    """What such a link asks of its connection."""

    def crashed(
        self, session: Session, why: str, condition: ErrorCondition = ErrorCondition.INTERNAL_ERROR
    ) -> None:
        """The session's process dies, of what the client said or of what its queue hands it."""


class RabbitOutgoingLink(OutgoingLink):
    """One consumer of a queue, behind a session that buffers.

    Args:
        name: of the consumer, unique at the broker.
        link: over which it is served.
        queue: that serves it.
        owner: the connection that the link is on.
        notes: takes rows about the link that no frame makes.
        out: the line in which it waits.
        preset: batch size, largest credit, and what is written out.
        rule: how credit is worked out from a flow.
    """

    def __init__(
        self,
        name: str,
        link: SenderLink,
        queue: QueueProcess,
        owner: RabbitOwner,
        notes: Notes,
        out: OutgoingPending,
        preset: Preset,
        rule: CreditRule | None,
    ) -> None:
        super().__init__(name, link, queue, owner, notes, rule)
        link.credit_by_owner = True
        self._session = owner
        self._out = out
        self._batch = preset.max_queue_credit
        self._largest = preset.largest_grant
        self._kind = queue.arguments.queue_type
        self._quorum = self._kind == QUORUM
        self._counts_failures = preset.counts_failures
        self._durable = preset.durable_unless_said
        # A quorum queue alone tells it, and to every consumer (capture rmq43_c).
        self._tells_activity = preset.tells_activity and self._quorum
        self._echoes_late = not preset.tells_activity
        self._active_told: bool | None = None
        self._writes_defaults = preset.writes_defaults
        self._buffered = 0  # messages in the session's line
        self._loop = SenderLinkFlow()  # the loop to the queue
        self._in_flight = False  # a request to the queue has not been answered
        self._aside: Flow | None = None  # the client's latest word meanwhile
        self._heeded = False  # the flow that comes now has been worked into the counters
        self._echo = False
        self._drain = False
        self._drained_last = False  # the queue remembers that its latest credit was to be drained
        link.overruns = True

    def attach(self, settled: bool, filters: Filters, epoch_us: int) -> None:
        """Begin to consume; nothing comes before the receiver grants credit."""
        self._loop = SenderLinkFlow.starting_at(self.link.delivery_count)
        super().attach(settled, filters, epoch_us)

    def detach(self, done: Callable[[], None] | None = None) -> None:
        """The link is gone: what waits in the session goes back with what was not settled.

        Args:
            done: called when it is back.
        """
        self._out.forget(self)
        self._buffered = 0
        self._messages.clear()
        # A quorum queue takes the end of a session for a failure, a classic one every detach.
        over = not self.link.session.can_emit()
        failed = over if self._quorum else self._counts_failures
        self.queue.detach(self.name, failed=failed, done=done)

    # -- what the client says -------------------------------------------------------------------

    def heed(self, frame: Flow) -> None:
        """As for any consumer; a flow that is put aside makes nothing of the credit."""
        credit = frame.link_credit
        self._heeded = not self._in_flight and credit is not None and credit <= self._largest
        if self._heeded:
            super().heed(frame)

    def flow_received(self, frame: Flow) -> None:
        """Ask the queue, or put the client's word aside."""
        if self._in_flight:
            self._aside = frame
        else:
            self._begin(frame)

    def _begin(self, frame: Flow) -> None:
        """The client's word takes effect."""
        credit = frame.link_credit or 0
        if credit > self._largest:
            why = undefined_sum("link-credit", credit, "a delivery-count", self._largest)
            self._session.crashed(self.link.session, why)
            return
        if not self._heeded:
            self._work_out(frame)
        self._heeded = False
        self._echo, self._drain = bool(frame.echo), bool(frame.drain)
        self._ask()

    def _ask(self) -> None:
        """Grant the queue what it may have at once; its answer comes through the line."""
        self._in_flight = True
        self._loop.link_credit = min(self.link.credit, self._batch)
        self._notes.note(
            "grant",
            "queue-credit",
            vantage=self._out.name,
            ledger={"mailbox": self._buffered},
            extra={"credit": self._loop.link_credit},
        )
        self.queue.request(
            Credit(
                consumer=self.name,
                delivery_count=self._loop.delivery_count,
                link_credit=self._loop.link_credit,
                drain=self._drain,
            )
        )

    # -- what the queue says --------------------------------------------------------------------

    def can_take(self) -> bool:
        """The session takes what it has granted credit for, whatever the window is."""
        return True

    def deliver(self, effect: Deliver) -> None:
        """The message goes into the session's line."""
        self._buffered += 1
        self.available(self._ready)
        self._out.push(self, effect)

    def refuse(self, message: Stored) -> None:
        """The receiver takes no message that large: its session dies of it; the message stays."""
        self._session.crashed(
            self.link.session,
            f"message size ({len(self.sent_as(message))} bytes) > maximum message size"
            f" ({self.size_limit} bytes)",
            ErrorCondition.MESSAGE_SIZE_EXCEEDED,
        )

    def drained(self, effect: Drained) -> None:
        """The queue's answer will tell."""

    def credit_replied(self, reply: CreditReply) -> None:
        """The queue has answered; what it handed out before is in the line already."""
        self._out.push(self, lambda: self._answered(reply))

    def activated(self, active: bool = True) -> None:
        """It is the single active consumer from now on, or no longer; 4.3 tells it."""
        if self._tells_activity:
            available = self._ready  # as the queue has told it last

            def told() -> None:
                if self._active_told is not active:
                    self._tell(available, drain=self._drained_last, active=active)

            self._out.push(self, told)

    def available(self, count: int) -> None:
        """Messages ready in the queue, and those in the session."""
        super().available(count)
        if self.link.attached:
            self.link.available = count + self._buffered

    def sent_as(self, message: Stored) -> bytes:
        """The octets to send for a message: RabbitMQ's header and annotations, and the rest."""
        return delivered(
            as_amqp10(message),
            self._kind,
            tells_acquired=self._counts_failures,
            durable=self._durable,
        )

    # -- when its turn in the line has come -----------------------------------------------------

    def send(self, effect: Deliver) -> OutgoingDelivery:
        """Begin the delivery."""
        message = effect.message
        self.link.available = self._ready + self._buffered
        delivery = self.link.send(
            self.sent_as(message),
            settled=effect.settled,
            delivery_tag=self._tag(effect),
            message_format=0,
        )
        self._buffered -= 1
        if not effect.settled:
            self._messages[delivery.delivery_id] = message.message_id
        return delivery

    def _tag(self, effect: Deliver) -> bytes:
        """The queue's number for the message: where it came, or where it is in a stream."""
        if effect.settled and self._kind == CLASSIC:
            return b""
        number = effect.message.message_id
        return number.to_bytes(TAG_SIZE if number <= UINT_MAX else LONG_TAG_SIZE, "big")

    def sent(self) -> None:
        """A message has left: the next batch, if it was the last of this one."""
        self._loop.begin_delivery()
        if self._loop.link_credit == 0 and self.link.credit > 0 and not self._in_flight:
            self._ask()

    def _answered(self, reply: CreditReply) -> None:
        """The queue's answer: end of a request, or of one batch of it."""
        counters = self.link.counters
        self._drained_last = self._drain
        if self._drain:
            self._drain_answered(reply)
        elif self._aside is not None:
            if self._echo and self._echoes_late:  # 4.3 forgets an echo that was overtaken
                self._tell(reply.available)
            self._take_up()
        elif reply.link_credit == 0 and counters.link_credit > 0:
            self._ask()
        else:
            self._in_flight = False
            self._loop.link_credit = reply.link_credit
            changed = self._tells_activity and reply.active is not self._active_told
            if self._echo or changed:
                self._tell(reply.available, active=reply.active)

    def _drain_answered(self, reply: CreditReply) -> None:
        """Drain goes on batch by batch, whatever the client has said meanwhile."""
        counters = self.link.counters
        if reply.delivery_count == self._loop.delivery_count and counters.link_credit > 0:
            self._ask()
            return
        self._in_flight = self._drain = False
        self._loop.delivery_count = reply.delivery_count
        self._loop.link_credit = 0
        counters.advance()
        self._tell(reply.available, drain=True, active=reply.active)
        if self._aside is not None:
            self._take_up()

    def _take_up(self) -> None:
        """What the client said while a request was under way takes effect."""
        frame, self._aside = self._aside, None
        assert frame is not None
        self._in_flight = False
        self.heed(frame)
        self._notes.note("note", "taken-up")  # no frame shows the counters that it gives
        self._begin(frame)

    def _tell(self, available: int, *, drain: bool = False, active: bool | None = None) -> None:
        """Tell the client this end's counters; the only flows there are on such a link.

        Args:
            available: messages ready in the queue.
            drain: this ends a drain, or the latest credit was one.
            active: whether messages are for this consumer; told if the client was told otherwise.
        """
        counters = self.link.counters
        unless = False if self._writes_defaults else None
        properties = None
        if self._tells_activity and active is not None and self._active_told is not active:
            self._active_told = active
            properties = {Symbol(ACTIVE): active}
        self.link.session.emit_flow(
            self.link,
            handle=self.link.handle,
            delivery_count=counters.delivery_count,
            link_credit=counters.link_credit,
            available=available,
            drain=True if drain else unless,
            echo=unless,
            properties=properties,
        )

    # -- outcomes -------------------------------------------------------------------------------

    def _command(self, messages: tuple[int, ...], state: object) -> Command:
        name, counts = self.name, self._quorum or self._counts_failures
        if isinstance(state, Rejected):
            return Reject(consumer=name, message_ids=messages, delivery_failed=counts)
        if not isinstance(state, Modified):
            return super()._command(messages, state)
        failed = counts and bool(state.delivery_failed)
        # A classic queue keeps no annotations (`rabbit_amqqueue_process.erl:handle_cast`).
        told = plain(state.message_annotations) if self._quorum else {}
        kind = Reject if state.undeliverable_here else Modify
        return kind(consumer=name, message_ids=messages, delivery_failed=failed, annotations=told)

    def overview(self) -> dict[str, Any]:
        """Flat picture: the link's own, and both credit loops."""
        return {
            **super().overview(),
            "buffered": self._buffered,
            "queue_credit": self._loop.link_credit,
            "in_flight": self._in_flight,
        }
