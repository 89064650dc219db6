"""The sending end of a link.

The rules of this file:

* A delivery starts only with link-credit above 0, and costs one, however many frames it takes;
  `overruns` lets the owner break this rule.
* A transfer frame goes out only with remote-incoming-window above 0, and costs one.
* A delivery that stops at a closed window goes on with `pump`; until it is complete no other may
  start on this link. Other links may go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from workbench import serial
from workbench.amqp10.errors import ErrorCondition, LocalProtocolError
from workbench.amqp10.events import FlowReceived, ProtocolViolation
from workbench.amqp10.fields import MAX_DELIVERY_TAG
from workbench.amqp10.flow import SenderLinkFlow
from workbench.amqp10.frame import FRAME_HEADER_SIZE
from workbench.amqp10.link import Delivery, Link, LinkTerms
from workbench.amqp10.performatives import Flow, Role, SenderSettleMode, Transfer
from workbench.amqp10.scope import Ledger
from workbench.amqp10.settings import UINT_MAX, check_range
from workbench.amqp10.states import LinkState

if TYPE_CHECKING:
    from workbench.amqp10.session import Session

__all__ = ["OutgoingDelivery", "SenderLink"]

ATTACHED = LinkState.ATTACHED
SETTLED, MIXED = SenderSettleMode.SETTLED, SenderSettleMode.MIXED

LARGEST_FIELDS = 100  # octets; no transfer sent here has more before its payload


def tag_of(number: int) -> bytes:
    """A number as a delivery-tag, as short as it goes."""
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")


class OutgoingDelivery(Delivery, eq=False):
    """A delivery that this end sends.

    Attributes:
        link: over which it goes.
        remaining: octets not yet sent.
    """

    link: SenderLink
    remaining: bytes | memoryview = b""


class SenderLink(Link):
    """A link over which this end sends; made by `Session.attach_sender`, or by the peer's attach.

    Attributes:
        counters: link flow control as this end sees it.
        sending: the delivery of which frames are still to be sent, if any.
        tags: delivery-tags of the unsettled deliveries.
        tag_number: the number that the next delivery gets as its tag.
        credit_by_owner: the owner works out the credit after a flow, right after it was applied;
            the endpoint leaves it as it is.
        overruns: deliveries may start at link-credit 0, against 2.6.7. RabbitMQ does so after a
            cut with what its session has already taken from the queue.
    """

    ROLE = Role.SENDER

    def __init__(self, session: Session, name: str, attach_no: int) -> None:
        super().__init__(session, name, attach_no)
        self.counters = SenderLinkFlow()
        self.sending: OutgoingDelivery | None = None
        self.tags: set[bytes] = set()
        self.tag_number = 0
        self.credit_by_owner = False
        self.overruns = False

    # -- counters -------------------------------------------------------------------------------

    @property
    def credit(self) -> int:
        """link-credit: how many deliveries may still start."""
        return self.counters.link_credit

    @property
    def delivery_count(self) -> int:
        """delivery-count: this end's own."""
        return self.counters.delivery_count

    @property
    def drain(self) -> bool:
        """The receiver's last word: use the credit up or give it back."""
        return self.counters.drain

    @property
    def available(self) -> int:
        """How many messages this end could send; told in its flows, one less per delivery."""
        return self.counters.available

    @available.setter
    def available(self, count: int) -> None:
        self.counters.available = check_range("available", count, 0, UINT_MAX)

    # -- attaching ------------------------------------------------------------------------------

    def accept(self, *, handle: int | None = None, **terms: Any) -> None:
        """Answers the attach of a peer that wants to receive.

        Args:
            handle: this end's number for the link; None takes the lowest free one.
            **terms: fields of `LinkTerms`; source, target and settle modes echo the peer's where
                they are not given.

        Raises:
            LocalProtocolError: the link is not waiting for this end's attach.
        """
        self.send_attach(self._mirrored(terms), handle)

    def _attach_sent(self, terms: LinkTerms) -> None:
        # What is available may be known, and set, before the attach.
        available = self.counters.available
        self.counters = SenderLinkFlow.starting_at(terms.initial_delivery_count)
        self.counters.available = available

    # -- sending --------------------------------------------------------------------------------

    @property
    def in_message(self) -> bool:
        """Frames of a message that was begun are still to be sent."""
        return self.sending is not None

    @property
    def obstacle(self) -> str | None:
        """Why no delivery can start now, with what would be legal; None if one can."""
        if self.state is not ATTACHED:
            return f"link {self.name} is in state {self.state.value}; legal now: wait for ATTACHED"
        if self.counters.link_credit == 0 and not self.overruns:
            return (
                f"link {self.name} has link-credit 0 at delivery-count "
                f"{self.counters.delivery_count}; legal now: wait for a flow of the receiver"
            )
        if self.sending is not None:
            return (
                f"delivery {self.sending.delivery_id} on link {self.name} is not complete "
                f"({len(self.sending.remaining)} octets to go), and deliveries of one link may not "
                "interleave; legal now: pump, abort, or another link"
            )
        if not self.session.counters.remote_incoming_window:
            return (
                "remote-incoming-window is 0 at next-outgoing-id "
                f"{self.session.counters.next_outgoing_id}; legal now: wait for a flow of the peer"
            )
        return None

    @property
    def can_send(self) -> bool:
        """Whether `send` would be legal; `obstacle` says why not."""
        return (
            self.state is ATTACHED
            and (self.counters.link_credit > 0 or self.overruns)
            and self.sending is None
            and bool(self.session.counters.remote_incoming_window)
        )

    def send(
        self,
        payload: bytes,
        *,
        settled: bool | None = None,
        delivery_tag: bytes | None = None,
        message_format: int | None = 0,
    ) -> OutgoingDelivery:
        """Starts a delivery and sends as many of its frames as the window lets out.

        Args:
            payload: the encoded message.
            settled: sent settled, so that nobody hears of it again; None: as the link's
                snd-settle-mode wants it, unsettled if it leaves the choice.
            delivery_tag: up to 32 octets, unique among the link's unsettled; None: a number.
            message_format: 0 is AMQP's own.

        Returns:
            The delivery; `complete` tells whether all its frames are sent.

        Raises:
            LocalProtocolError: it is not legal now; nothing was sent and nothing changed.
        """
        if not self.can_send:
            self.check_can_emit()
            raise LocalProtocolError(f"a delivery cannot start: {self.obstacle}")
        mode = self.snd_settle_mode
        if settled is None:
            settled = mode is SETTLED
        elif mode is not MIXED and settled is not (mode is SETTLED):
            raise self._wrong_mode(settled)
        peer = self.remote_attach
        if peer is not None and peer.max_message_size and len(payload) > peer.max_message_size:
            raise self._too_large(len(payload), peer.max_message_size)
        session = self.session
        delivery_id = session.next_delivery_id
        if delivery_tag is None:
            tag = tag_of(self.tag_number)
            while tag in self.tags:
                self.tag_number += 1
                tag = tag_of(self.tag_number)
            self.tag_number += 1
        else:
            tag = self._checked_tag(delivery_tag)
        delivery = OutgoingDelivery(
            self, delivery_id, tag, message_format, settled, settled, remaining=payload
        )
        session.next_delivery_id = serial.following(delivery_id)
        self.counters.begin_delivery()
        if not settled:
            self.tags.add(tag)
            self.unsettled[delivery_id] = delivery
            session.outgoing[delivery_id] = delivery
        self.sending = delivery
        self._send_next(delivery)
        if not delivery.complete:
            self.pump()
        return delivery

    def pump(self) -> None:
        """Sends more frames of the delivery that has stopped, as far as the window goes."""
        delivery = self.sending
        while delivery is not None and self.session.counters.remote_incoming_window:
            self.check_can_emit()
            self._send_next(delivery)
            delivery = self.sending

    def abort(self) -> None:
        """Takes back the delivery of which frames are still to be sent.

        The frame that says so, and settles the delivery, is a transfer: with the window closed it
        waits for `pump`.

        Raises:
            LocalProtocolError: no delivery is under way.
        """
        self.check_can_emit()
        delivery = self.sending
        if delivery is None:
            raise LocalProtocolError(
                f"no delivery is under way on link {self.name}; legal now: abort while one waits "
                "for the session window"
            )
        delivery.aborted = True
        delivery.remaining = b""
        self.pump()

    def _send_next(self, delivery: OutgoingDelivery) -> None:
        """Sends the next frame of a delivery; the session's window lets it out."""
        session = self.session
        settings = session.settings
        payload = delivery.remaining
        more = False if settings.write_more else None
        assert self.handle is not None
        if delivery.frames and not settings.full_transfers:
            frame = Transfer(self.handle, more=more)
        else:
            frame = Transfer(
                self.handle,
                delivery.delivery_id,
                delivery.delivery_tag,
                delivery.message_format,
                True if delivery.settled else False if settings.full_transfers else None,
                more,
            )
        if delivery.aborted:
            frame = replace(frame, more=None, aborted=True)
            self._forget(delivery)
            self.sending = None
        else:
            room = session.connection.remote_max_frame_size - FRAME_HEADER_SIZE
            room -= settings.transfer_reserve
            if len(payload) + LARGEST_FIELDS <= room or len(payload) + frame.size() <= room:
                delivery.remaining = b""
                delivery.complete = True
                self.sending = None
            else:
                frame = replace(frame, more=True)
                room -= frame.size()
                # A view: to copy the rest for each frame takes time as the square of the size.
                rest = memoryview(payload)
                payload, delivery.remaining = rest[:room], rest[room:]
        delivery.frames += 1
        session.counters.send_transfer()
        session.emit(frame, payload if type(payload) is bytes else bytes(payload), self)

    def _wrong_mode(self, settled: bool) -> LocalProtocolError:
        return LocalProtocolError(
            f"link {self.name} has snd-settle-mode {self.snd_settle_mode.name.lower()}; legal now: "
            f"settled={not settled}"
        )

    def _too_large(self, size: int, limit: int) -> LocalProtocolError:
        return LocalProtocolError(
            f"the message has {size} octets, the receiver's max-message-size is {limit}; "
            f"legal now: up to {limit}"
        )

    def _checked_tag(self, tag: bytes) -> bytes:
        if len(tag) > MAX_DELIVERY_TAG:
            raise LocalProtocolError(
                f"delivery-tag has {len(tag)} octets; legal is up to {MAX_DELIVERY_TAG} [2.8.7]"
            )
        if tag in self.tags:
            raise LocalProtocolError(
                f"delivery-tag {tag.hex()} is in use on link {self.name} by an unsettled delivery; "
                "legal now: any other"
            )
        return tag

    # -- flow -----------------------------------------------------------------------------------

    def flow(self, *, echo: bool = False, properties: Mapping[Any, Any] | None = None) -> None:
        """Tells the receiver this end's count, credit, available and drain [2.7.4].

        Raises:
            LocalProtocolError: the link is not attached here.
        """
        available = self.counters.available
        self._tell(self.counters, available=available, echo=echo, properties=properties)

    def drained(self) -> int:
        """Gives back the credit that cannot be used, as drain asks: count to the limit, credit 0.

        Returns:
            How much credit was given back.

        Raises:
            LocalProtocolError: the receiver has not asked to drain.
        """
        self.check_can_emit()
        if not self.counters.drain:
            raise LocalProtocolError(
                f"the receiver has not asked link {self.name} to drain: its credit of "
                f"{self.counters.link_credit} stays; legal now: send, or wait"
            )
        given_back = self.counters.advance()
        self.flow()
        return given_back

    def answer_drain(self) -> bool:
        """Gives credit back if that is asked and nothing is there to send; whether it did."""
        counters = self.counters
        if not self.attached or not counters.drain or not counters.link_credit:
            return False
        if counters.available > 0:
            return False
        self.drained()
        return True

    def flow_received(self, frame: Flow) -> FlowReceived | ProtocolViolation:
        """Takes in a flow of the receiver [2.6.7]."""
        counters = self.counters
        if frame.link_credit is not None:
            try:
                credit = counters.credit_after(frame.delivery_count, frame.link_credit)
            except serial.SerialError as error:
                return self.violated(ErrorCondition.INVALID_FIELD, f"delivery-count: {error}")
            if not self.credit_by_owner:
                counters.link_credit = credit
        counters.drain = bool(frame.drain)
        return FlowReceived(session=self.session, link=self, frame=frame)

    # -- settlement -----------------------------------------------------------------------------

    def settle(self, first: int, last: int | None = None, *, state: object = None) -> None:
        """Settles deliveries: this end forgets them and says so [2.6.12].

        Args:
            first: delivery-id.
            last: delivery-id, `first` if None.
            state: the outcome to state; None states none.

        Raises:
            LocalProtocolError: no unsettled delivery of this link is in the range, or one of
                another link is.
        """
        self.check_can_emit()
        end = first if last is None else last
        chosen = self._chosen(first, end, self.session.outgoing)
        for delivery in chosen:
            delivery.local_state = state
            self._forget(delivery)
        self.session.emit_disposition(self, Role.SENDER, first, end, settled=True, state=state)

    def _forget(self, delivery: OutgoingDelivery) -> None:
        delivery.settled = True
        self.tags.discard(delivery.delivery_tag)
        self.unsettled.pop(delivery.delivery_id, None)
        self.session.outgoing.pop(delivery.delivery_id, None)

    # -- for session and tap --------------------------------------------------------------------

    def stop(self) -> None:
        """Drops what is not sent of a delivery under way."""
        self.sending = None

    def ledger(self) -> Ledger:
        """The link's counters at this end; what its attach has still to choose is left out."""
        counters = self.counters
        ledger: Ledger = {
            "link_credit": counters.link_credit,
            "drain": counters.drain,
            "unsettled": len(self.unsettled),
        }
        if self.terms is not None:
            ledger["delivery_count"] = counters.delivery_count
            ledger["available"] = counters.available
        return ledger
