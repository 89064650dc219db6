"""The receiving end of a link.

The rules of this file:

* Credit is this end's to choose, at any time; a flow states it as an absolute number.
* Whatever arrives is counted first and judged after, so that both ends go on counting alike.
* Acknowledging never changes credit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench import serial
from workbench.amqp.composite import draft_of
from workbench.amqp.delivery import IncomingDelivery
from workbench.amqp.errors import ErrorCondition, LocalProtocolError
from workbench.amqp.events import (
    DeliveryAborted,
    DeliveryReceived,
    Event,
    FlowReceived,
    PartReceived,
    ProtocolViolation,
)
from workbench.amqp.flow import ReceiverLinkFlow
from workbench.amqp.link import Link, LinkTerms
from workbench.amqp.messaging import Accepted
from workbench.amqp.performatives import (
    Attach,
    Flow,
    ReceiverSettleMode,
    Role,
    Transfer,
)
from workbench.amqp.scope import Ledger
from workbench.amqp.settings import UINT_MAX, CreditOverrun, check_range
from workbench.amqp.states import Input
from workbench.amqp.transfer_rules import fault_of_first, fault_of_next, fault_of_settling

if TYPE_CHECKING:
    from workbench.amqp.session import Session

__all__ = ["ReceiverLink"]

_delivery_received = draft_of(DeliveryReceived)


def delivery_received(link: ReceiverLink, delivery: IncomingDelivery) -> DeliveryReceived:
    """The event, made quickly: there is one for each message."""
    event = _delivery_received(link, delivery)
    event.__class__ = DeliveryReceived
    return event  # type: ignore[no-any-return]


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
        self._send_attach(agreed, handle)
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
        self.require(Input.SEND_FRAME)
        self.counters.link_credit = link_credit
        self.counters.drain = drain
        self.flow(echo=echo, properties=properties)

    def stop_sender(self) -> None:
        """Asks the sender to stop: credit 0 and echo; its answer is the last word [2.6.10]."""
        self.grant(0, echo=True)

    def flow(self, *, echo: bool = False, properties: Mapping[Any, Any] | None = None) -> None:
        """Tells the sender this end's count, credit and drain, unchanged [2.7.4].

        Raises:
            LocalProtocolError: the link is not attached here.
        """
        self.require(Input.SEND_FRAME)
        counters = self.counters
        self.session.emit_flow(
            self,
            handle=self.handle,
            delivery_count=counters.delivery_count,
            link_credit=counters.link_credit,
            drain=counters.drain or None,
            echo=echo or None,
            properties=None if properties is None else dict(properties),
        )

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
            fault = fault_of_first(self, frame)
            if fault is not None:
                return fault
            delivery = self._begin(frame)
        else:
            fault = fault_of_next(self, frame, delivery)
            if fault is not None:
                return fault
            if frame.settled and not delivery.remote_settled:
                delivery.remote_settled = True
                self._forget(delivery)
        fault = fault_of_settling(self, frame, delivery)
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
        return delivery_received(self, delivery)

    def _begin(self, frame: Transfer) -> IncomingDelivery:
        assert frame.delivery_id is not None
        assert frame.delivery_tag is not None
        delivery = IncomingDelivery(
            self,
            frame.delivery_id,
            frame.delivery_tag,
            frame.message_format,
            bool(frame.settled),
            frame.rcv_settle_mode,
        )
        self.counters.take_delivery()
        if not delivery.settled:
            self.unsettled[delivery.delivery_id] = delivery
            self.session.incoming[delivery.delivery_id] = delivery
        return delivery

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
        self.require(Input.SEND_FRAME)
        end = first if last is None else last
        chosen = self._chosen(first, end, self.session.incoming)
        early = next((d for d in chosen if self.sender_first(d)), None)
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

    def updated(self, delivery: IncomingDelivery, state: object, settled: bool) -> None:
        """Takes in what the sender says of a delivery."""
        if state is not None:
            delivery.remote_state = state
        if settled:
            delivery.remote_settled = True
            self._forget(delivery)

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
