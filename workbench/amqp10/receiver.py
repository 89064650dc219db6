"""The receiving end of a link.

The rules of this file:

* Credit is this end's to choose, at any time; a flow states it as an absolute number.
* Whatever arrives is counted first and judged after, so that both ends go on counting alike.
* Acknowledging never changes credit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import field

from workbench import serial
from workbench.amqp10.errors import ErrorCondition, LocalProtocolError
from workbench.amqp10.events import (
    DeliveryAborted,
    DeliveryReceived,
    Event,
    FlowReceived,
    PartReceived,
    ProtocolViolation,
)
from workbench.amqp10.flow import ReceiverLinkFlow
from workbench.amqp10.link import Delivery, Link, LinkTerms
from workbench.amqp10.messaging import Accepted
from workbench.amqp10.performatives import (
    Attach,
    Flow,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
    Transfer,
)
from workbench.amqp10.scope import Ledger
from workbench.amqp10.settings import UINT_MAX, CreditOverrun, check_range

if TYPE_CHECKING:
    from workbench.amqp10.session import Session

__all__ = ["IncomingDelivery", "ReceiverLink"]

MIXED = SenderSettleMode.MIXED


class IncomingDelivery(Delivery, eq=False):
    """A delivery that this end receives.

    Attributes:
        link: over which it comes.
        rcv_settle_mode: of this delivery, if the sender gave one that is not the link's.
        parts: payload per frame.
        size: octets that have arrived.
    """

    link: ReceiverLink
    rcv_settle_mode: ReceiverSettleMode | None = None
    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    @property
    def payload(self) -> bytes:
        """What has arrived of the encoded message."""
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)


class ReceiverLink(Link):
    """A link over which this end receives; made by `Session.attach_receiver` or a peer's attach.

    Attributes:
        counters: link flow control as this end sees it.
        credit_overrun: what becomes of a delivery that comes at credit 0.
        receiving: the delivery of which frames are still to come, if any.
        unconfirmed: deliveries that whoever takes them from this end has not taken yet; None where
            nobody counts them.
    """

    ROLE = Role.RECEIVER

    def __init__(self, session: Session, name: str, attach_no: int) -> None:
        super().__init__(session, name, attach_no)
        self.counters = ReceiverLinkFlow()
        self.credit_overrun = CreditOverrun.TAKE
        self.receiving: IncomingDelivery | None = None
        self.max_message_size = 0
        self.unconfirmed: int | None = None

    # -- counters -------------------------------------------------------------------------------

    @property
    def credit(self) -> int:
        """link-credit: how many more deliveries this end wants."""
        return self.counters.link_credit

    @property
    def delivery_count(self) -> int | None:
        """delivery-count: the last value known; None until the sender's attach has come."""
        return self.counters.delivery_count

    @property
    def available(self) -> int:
        """How many messages the sender last said it has, less what has come since."""
        return self.counters.available

    @property
    def drain(self) -> bool:
        """Whether this end has asked for its credit to be used up or given back."""
        return self.counters.drain

    # -- attaching ------------------------------------------------------------------------------

    def accept(
        self,
        *,
        handle: int | None = None,
        credit_overrun: CreditOverrun = CreditOverrun.TAKE,
        **terms: Any,
    ) -> None:
        """Answers the attach of a peer that wants to send.

        Args:
            handle: this end's number for the link; None takes the lowest free one.
            credit_overrun: what becomes of a delivery that comes at credit 0.
            **terms: fields of `LinkTerms`; source, target and settle modes echo the peer's where
                they are not given.

        Raises:
            LocalProtocolError: the link is not waiting for this end's attach.
        """
        agreed = self._mirrored(terms)
        self.send_attach(agreed, handle)
        self.credit_overrun = credit_overrun

    def _attach_sent(self, terms: LinkTerms) -> None:
        self.max_message_size = terms.max_message_size or 0

    def attach_received(self, frame: Attach) -> None:
        """Takes in the sender's attach and with it the initial delivery-count."""
        super().attach_received(frame)
        self.counters.delivery_count = frame.initial_delivery_count

    # -- granting -------------------------------------------------------------------------------

    def grant(
        self,
        link_credit: int,
        *,
        drain: bool = False,
        echo: bool = False,
        properties: Mapping[Any, Any] | None = None,
    ) -> None:
        """Sets the credit and tells the sender: an absolute number, not an increase [2.6.7].

        Args:
            link_credit: deliveries wanted from now on, 0 to 4294967295.
            drain: use it up now or give it back.
            echo: ask for the sender's state.
            properties: of the flow.

        Raises:
            LocalProtocolError: the credit is no legal number, or the link is not attached here.
        """
        check_range("link-credit", link_credit, 0, UINT_MAX)
        self.check_can_emit()
        self.counters.link_credit = link_credit
        self.counters.drain = drain
        self.flow(echo=echo, properties=properties)

    def flow(self, *, echo: bool = False, properties: Mapping[Any, Any] | None = None) -> None:
        """Tells the sender this end's count, credit and drain, unchanged [2.7.4].

        Raises:
            LocalProtocolError: the link is not attached here.
        """
        self._tell(self.counters, echo=echo, properties=properties)

    def flow_received(self, frame: Flow) -> FlowReceived | ProtocolViolation:
        """Takes in a flow of the sender: its count may have moved on by itself [2.6.7]."""
        counters = self.counters
        if frame.delivery_count is not None:
            try:
                counters.link_credit = counters.advanced_to(frame.delivery_count)
            except (serial.SerialError, ValueError) as error:
                return self.violated(ErrorCondition.INVALID_FIELD, str(error))
            counters.delivery_count = frame.delivery_count
        if frame.available is not None:
            counters.available = frame.available
        return FlowReceived(session=self.session, link=self, frame=frame)

    # -- receiving ------------------------------------------------------------------------------

    def transfer_received(self, frame: Transfer, payload: bytes) -> Event:
        """Takes in a transfer frame, which the session has already counted."""
        delivery = self.receiving
        if delivery is None:
            fault = self._fault_of_first(frame)
            if fault is not None:
                return fault
            delivery = self._begin(frame)
        else:
            fault = self._fault_of_next(frame, delivery)
            if fault is not None:
                return fault
            if frame.settled and not delivery.remote_settled:
                delivery.remote_settled = True
                self._forget(delivery)
        mixed = self.snd_settle_mode is MIXED
        fault = None if mixed else self._fault_of_settling(frame, delivery)
        if fault is not None:
            self._forget(delivery)
            self.receiving = None
            return fault
        if frame.state is not None:
            delivery.remote_state = frame.state
        delivery.frames += 1
        if frame.aborted:
            self.receiving = None
            delivery.aborted = delivery.remote_settled = True
            delivery.parts.clear()
            self._forget(delivery)
            return DeliveryAborted(link=self, delivery=delivery)
        delivery.size += len(payload)
        if self.max_message_size and delivery.size > self.max_message_size:
            self.receiving = None
            delivery.parts.clear()
            self._forget(delivery)
            return self.violated(
                ErrorCondition.MESSAGE_SIZE_EXCEEDED,
                f"delivery {delivery.delivery_id} has {delivery.size} octets so far, "
                f"max-message-size is {self.max_message_size}",
            )
        if payload or not delivery.parts:
            delivery.parts.append(payload)
        if frame.more:
            self.receiving = delivery
            return PartReceived(link=self, delivery=delivery)
        self.receiving = None
        delivery.complete = True
        return DeliveryReceived(self, delivery)

    def _begin(self, frame: Transfer) -> IncomingDelivery:
        assert frame.delivery_id is not None
        assert frame.delivery_tag is not None
        settled = frame.settled is True
        delivery = IncomingDelivery(
            self,
            frame.delivery_id,
            frame.delivery_tag,
            frame.message_format,
            settled,
            settled,
            rcv_settle_mode=frame.rcv_settle_mode,
        )
        self.counters.take_delivery()
        if not delivery.settled:
            self.unsettled[delivery.delivery_id] = delivery
            self.session.incoming[delivery.delivery_id] = delivery
        return delivery

    def _fault_of_first(self, frame: Transfer) -> ProtocolViolation | None:
        """What is wrong with the first frame of a delivery [2.7.5]."""
        if frame.delivery_id is None:
            return self.session.violated(
                ErrorCondition.INVALID_FIELD,
                f"the first transfer of a delivery on link {self.name} has no delivery-id",
            )
        if frame.delivery_id in self.session.incoming:
            return self.session.violated(
                ErrorCondition.INVALID_FIELD,
                f"delivery-id {frame.delivery_id} on link {self.name} is in use by an unsettled "
                "delivery",
            )
        if frame.delivery_tag is None:
            return self.violated(
                ErrorCondition.INVALID_FIELD,
                f"the first transfer of delivery {frame.delivery_id} has no delivery-tag",
            )
        if frame.resume:
            return self.violated(
                ErrorCondition.NOT_IMPLEMENTED, "deliveries of an earlier attach are not resumed"
            )
        if (
            frame.rcv_settle_mode is ReceiverSettleMode.SECOND
            and self.rcv_settle_mode is ReceiverSettleMode.FIRST
        ):
            return self.violated(
                ErrorCondition.INVALID_FIELD,
                f"delivery {frame.delivery_id} has rcv-settle-mode second; the link has first, "
                "which no transfer may change",
            )
        if self.counters.link_credit == 0 and self.credit_overrun is CreditOverrun.DETACH:
            return self.violated(
                ErrorCondition.TRANSFER_LIMIT_EXCEEDED,
                f"delivery {frame.delivery_id} came at link-credit 0, delivery-count "
                f"{self.counters.delivery_count}",
            )
        return None

    def _fault_of_settling(
        self, frame: Transfer, delivery: IncomingDelivery
    ) -> ProtocolViolation | None:
        """Whether the delivery is settled as the link's snd-settle-mode promises [2.7.5].

        A delivery that is aborted is free of the promise.
        """
        mode = self.snd_settle_mode
        if frame.aborted:
            return None
        if mode is SenderSettleMode.UNSETTLED and frame.settled:
            said = "is sent settled; the link has snd-settle-mode unsettled"
        elif mode is SenderSettleMode.SETTLED and not (frame.more or delivery.remote_settled):
            said = "ends unsettled; the link has snd-settle-mode settled"
        else:
            return None
        return self.violated(
            ErrorCondition.INVALID_FIELD, f"delivery {delivery.delivery_id} {said} [2.7.5]"
        )

    def _fault_of_next(
        self, frame: Transfer, delivery: IncomingDelivery
    ) -> ProtocolViolation | None:
        """What is wrong with a further frame of a delivery [2.6.14, 2.7.5]."""
        if frame.delivery_id is not None and frame.delivery_id != delivery.delivery_id:
            return self.violated(
                ErrorCondition.INVALID_FIELD,
                f"delivery {frame.delivery_id} begins while delivery {delivery.delivery_id} is not "
                "complete: deliveries of one link may not interleave",
            )
        if frame.delivery_tag is not None and frame.delivery_tag != delivery.delivery_tag:
            return self.violated(
                ErrorCondition.INVALID_FIELD,
                f"delivery {delivery.delivery_id} began with delivery-tag "
                f"{delivery.delivery_tag.hex()} and goes on with {frame.delivery_tag.hex()}",
            )
        if frame.message_format is not None and frame.message_format != delivery.message_format:
            return self.violated(
                ErrorCondition.INVALID_FIELD,
                f"delivery {delivery.delivery_id} began with message-format "
                f"{delivery.message_format} and goes on with {frame.message_format}",
            )
        return None

    # -- settlement -----------------------------------------------------------------------------

    def settle(
        self,
        first: int,
        last: int | None = None,
        state: object = Accepted(),
        *,
        settled: bool | None = None,
        batchable: bool | None = None,
    ) -> None:
        """States the outcome of deliveries, and settles them where that is this end's turn.

        Args:
            first: delivery-id.
            last: delivery-id, `first` if None.
            state: the outcome, or `Received`; None states none.
            settled: forget them now. None: as rcv-settle-mode wants it: in mode first at once, in
                mode second only after the sender has.
            batchable: the sender need not hurry with what it does about this.

        Raises:
            LocalProtocolError: no unsettled delivery of this link is in the range, one of another
                link is, or it is not this end's turn to settle.
        """
        self.check_can_emit()
        end = first if last is None else last
        chosen = self._chosen(first, end, self.session.incoming)
        early = None
        for delivery in chosen:
            if self.sender_first(delivery):
                early = delivery
                break
        if settled is None:
            settled = early is None
        elif settled and early is not None:
            raise LocalProtocolError(
                f"rcv-settle-mode is second: the sender settles delivery {early.delivery_id} "
                "first; legal now: settled=False with the outcome"
            )
        for delivery in chosen:
            if state is not None:
                delivery.local_state = state
            if settled:
                self._forget(delivery)
        self.session.emit_disposition(
            self, Role.RECEIVER, first, end, settled=settled, state=state, batchable=batchable
        )

    def sender_first(self, delivery: IncomingDelivery) -> bool:
        """Whether the sender settles before this end may: rcv-settle-mode second [2.7.3]."""
        mode = delivery.rcv_settle_mode
        if mode is None:
            mode = self.rcv_settle_mode
        return mode is ReceiverSettleMode.SECOND and not delivery.remote_settled

    def settled_here(self, delivery: IncomingDelivery, state: object) -> None:
        """This end settles a delivery; whoever calls tells the sender."""
        delivery.local_state = state
        self._forget(delivery)

    def _forget(self, delivery: IncomingDelivery) -> None:
        delivery.settled = True
        self.unsettled.pop(delivery.delivery_id, None)
        self.session.incoming.pop(delivery.delivery_id, None)

    # -- for session and tap --------------------------------------------------------------------

    def stop(self) -> None:
        """Drops what has come of a delivery that is not complete."""
        self.receiving = None

    def ledger(self) -> Ledger:
        """The link's counters at this end."""
        counters = self.counters
        ledger: Ledger = {
            "link_credit": counters.link_credit,
            "available": counters.available,
            "drain": counters.drain,
            "unsettled": len(self.unsettled),
        }
        if counters.delivery_count is not None:
            ledger["delivery_count"] = counters.delivery_count
        if self.unconfirmed is not None:
            ledger["unconfirmed"] = self.unconfirmed
        return ledger
