"""The sending end of a link.

The rules of this file:

* A delivery starts only with link-credit above 0, and costs one, however many frames it takes;
  `overruns` lets the owner break this rule.
* A transfer frame goes out only with remote-incoming-window above 0, and costs one.
* A delivery that stops at a closed window goes on with `pump`; until it is complete no other may
  start on this link. Other links may go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench import serial
from workbench.amqp.delivery import OutgoingDelivery
from workbench.amqp.errors import ErrorCondition, LocalProtocolError
from workbench.amqp.events import FlowReceived, ProtocolViolation
from workbench.amqp.flow import SenderLinkFlow
from workbench.amqp.link import Link, LinkTerms
from workbench.amqp.performatives import Flow, Role, SenderSettleMode, Transfer
from workbench.amqp.scope import Ledger
from workbench.amqp.settings import UINT_MAX, check_range
from workbench.amqp.states import Input

if TYPE_CHECKING:
    from workbench.amqp.session import Session

__all__ = ["SenderLink"]

FRAME_HEADER_SIZE = 8
MAX_DELIVERY_TAG = 32
LARGEST_FIELDS = 100  # octets; no transfer sent here has more before its payload

# Places among the fields of a transfer.
NO_OTHER_FIELDS = (None,) * (len(Transfer.FIELDS) - 5)
MORE = [spec.name for spec in Transfer.FIELDS].index("more")
ABORTED = [spec.name for spec in Transfer.FIELDS].index("aborted")


def tag_of(number: int) -> bytes:
    """A number as a delivery-tag, as short as it goes."""
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")


class SenderLink(Link):
    """A link over which this end sends; made by `Session.attach_sender`, or by the peer's attach.

    Attributes:
        counters: link flow control as this end sees it.
        sending: the delivery of which frames are still to be sent, if any.
        tags: delivery-tags of the unsettled deliveries.
        tag_number: the number that the next delivery gets as its tag.
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
        self._send_attach(self._mirrored(terms), handle)

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
        if self.state.value != "ATTACHED":
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
        """Whether `send` would be legal."""
        return self.obstacle is None

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
        self.require(Input.SEND_FRAME)
        obstacle = self.obstacle
        if obstacle is not None:
            raise LocalProtocolError(f"a delivery cannot start: {obstacle}")
        settled = self._settles(settled)
        self._check_size(len(payload))
        tag = self._next_tag() if delivery_tag is None else self._checked_tag(delivery_tag)
        session = self.session
        delivery = OutgoingDelivery(
            self, session.next_delivery_id, tag, message_format, settled, payload
        )
        first = self._cut(delivery)
        self.note_begun(1, tags=delivery_tag is None)
        if not settled:
            self.tags.add(tag)
            self.unsettled[delivery.delivery_id] = delivery
            session.outgoing[delivery.delivery_id] = delivery
        self.sending = delivery
        self._send_frame(delivery, *first)
        self.pump()
        return delivery

    def send_settled_batch(self, payloads: Sequence[bytes]) -> int:
        """Sends settled messages until credit, window or messages run out.

        Does what `send(payload, settled=True)` in a loop does, and is quicker over bytes.

        Returns:
            How many were begun; the last of them may not be complete.

        Raises:
            LocalProtocolError: no message can be sent at all; nothing was sent.
        """
        self.require(Input.SEND_FRAME)
        self._settles(True)
        encode = self.session.connection.batch_encoder
        begun = 0 if encode is None else encode(self, payloads)
        while begun < len(payloads) and self.obstacle is None:
            self.send(payloads[begun], settled=True)
            begun += 1
        if begun == 0 and payloads:
            raise LocalProtocolError(f"a delivery cannot start: {self.obstacle}")
        return begun

    def note_begun(self, count: int, *, tags: bool) -> None:
        """Counts deliveries that begin now; `tags`: each has taken the next number as its tag."""
        session = self.session
        session.next_delivery_id = serial.add(session.next_delivery_id, count)
        self.counters.begin_delivery(count)
        if tags:
            self.tag_number += count

    def pump(self) -> None:
        """Sends more frames of the delivery that has stopped, as far as the window goes."""
        delivery = self.sending
        while delivery is not None and self.session.counters.remote_incoming_window:
            self.require(Input.SEND_FRAME)
            self._send_frame(delivery, *self._cut(delivery))
            delivery = self.sending

    def abort(self) -> None:
        """Takes back the delivery of which frames are still to be sent.

        The frame that says so, and settles the delivery, is a transfer: with the window closed it
        waits for `pump`.

        Raises:
            LocalProtocolError: no delivery is under way.
        """
        self.require(Input.SEND_FRAME)
        delivery = self.sending
        if delivery is None:
            raise LocalProtocolError(
                f"no delivery is under way on link {self.name}; legal now: abort while one waits "
                "for the session window"
            )
        delivery.aborted = True
        delivery.remaining = b""
        self.pump()

    def _cut(self, delivery: OutgoingDelivery) -> tuple[Transfer, bytes, bytes | memoryview]:
        """The next frame of a delivery, its payload, and what then remains; changes nothing."""
        settings = self.session.settings
        full = settings.full_transfers
        named = full or delivery.frames == 0
        fields: list[object] = [
            self.handle,
            delivery.delivery_id if named else None,
            delivery.delivery_tag if named else None,
            delivery.message_format if named else None,
            delivery.settled if full else True if named and delivery.settled else None,
            *NO_OTHER_FIELDS,
        ]
        if delivery.aborted:
            fields[ABORTED] = True
            return Transfer.from_wire(fields), b"", b""
        payload = delivery.remaining
        limit = self.session.connection.remote_max_frame_size - FRAME_HEADER_SIZE
        limit -= settings.transfer_reserve
        fields[MORE] = False if settings.write_more else None
        last = Transfer.from_wire(fields)
        if len(payload) + LARGEST_FIELDS <= limit or len(payload) + last.size() <= limit:
            return last, bytes(payload), b""
        fields[MORE] = True
        part = Transfer.from_wire(fields)
        room = limit - part.size()
        # A view: to copy the rest for every frame takes time as the square of the message's size.
        rest = memoryview(payload)
        return part, bytes(rest[:room]), rest[room:]

    def _send_frame(
        self,
        delivery: OutgoingDelivery,
        frame: Transfer,
        payload: bytes,
        remaining: bytes | memoryview,
    ) -> None:
        delivery.frames += 1
        delivery.remaining = remaining
        if not frame.more:
            delivery.complete = not delivery.aborted
            self.sending = None
        if frame.aborted:
            self._forget(delivery)
        self.session.counters.send_transfer()
        self.session.emit(frame, payload, self)

    def _settles(self, settled: bool | None) -> bool:
        mode = self.snd_settle_mode
        if settled is None:
            return mode is SenderSettleMode.SETTLED
        if settled is (mode is SenderSettleMode.SETTLED) or mode is SenderSettleMode.MIXED:
            return settled
        raise LocalProtocolError(
            f"link {self.name} has snd-settle-mode {mode.name.lower()}; legal now: "
            f"settled={not settled}"
        )

    def _check_size(self, size: int) -> None:
        peer = self.remote_attach
        limit = None if peer is None else peer.max_message_size
        if limit and size > limit:
            raise LocalProtocolError(
                f"the message has {size} octets, the receiver's max-message-size is {limit}; "
                f"legal now: up to {limit}"
            )

    def _next_tag(self) -> bytes:
        number = self.tag_number
        while (tag := tag_of(number)) in self.tags:
            number += 1
        return tag

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
        self.require(Input.SEND_FRAME)
        counters = self.counters
        self.session.emit_flow(
            self,
            handle=self.handle,
            delivery_count=counters.delivery_count,
            link_credit=counters.link_credit,
            available=counters.available,
            drain=counters.drain or None,
            echo=echo or None,
            properties=None if properties is None else dict(properties),
        )

    def drained(self) -> int:
        """Gives back the credit that cannot be used, as drain asks: count to the limit, credit 0.

        Returns:
            How much credit was given back.

        Raises:
            LocalProtocolError: the receiver has not asked to drain.
        """
        self.require(Input.SEND_FRAME)
        if not self.counters.drain:
            raise LocalProtocolError(
                f"the receiver has not asked link {self.name} to drain: its credit of "
                f"{self.counters.link_credit} stays; legal now: send, or wait"
            )
        given_back = self.counters.advance()
        self.flow()
        return given_back

    def flow_received(self, frame: Flow) -> FlowReceived | ProtocolViolation:
        """Takes in a flow of the receiver [2.6.7]."""
        counters = self.counters
        if frame.link_credit is not None:
            try:
                counters.link_credit = counters.credit_after(
                    frame.delivery_count, frame.link_credit
                )
            except serial.SerialError as error:
                return self.violated(ErrorCondition.INVALID_FIELD, f"delivery-count: {error}")
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
        self.require(Input.SEND_FRAME)
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

    def updated(self, delivery: OutgoingDelivery, state: object, settled: bool) -> None:
        """Takes in what the receiver says of a delivery."""
        if state is not None:
            delivery.remote_state = state
        if settled:
            delivery.remote_settled = True
            self._forget(delivery)

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
