"""Flow control: the counters of a link and of a session, and the formulas between the two ends.

The rules of this file:

* Each object is one end's view. Nothing here sends a frame or knows who the peer is.
* Credit counts *deliveries*, windows count *transfer frames*; a message in three frames costs one
  credit and three of the window.
* Acknowledging changes nothing here.
* Serial numbers are added and compared by `workbench.serial` alone. A difference is taken before
  a credit or window is added, for these may be as large as 4294967295 and a serial sum may not.
"""

from dataclasses import dataclass

from workbench import serial
from workbench.amqp10.scope import Ledger
from workbench.serial import link_credit_snd


def remote_incoming_window(
    next_incoming_id: int, incoming_window: int, next_outgoing_id: int
) -> int:
    """How many transfer frames may still be sent after a flow of the peer [AMQP 1.0, 2.5.6].

    ``remote-incoming-window := next-incoming-id(flow) + incoming-window(flow) -
    next-outgoing-id(own)``, floored at 0, because the peer may shrink its window while frames fly.

    Args:
        next_incoming_id: of the flow; if it has none, this end's *initial* outgoing id.
        incoming_window: of the flow, in transfer frames.
        next_outgoing_id: this end's own.

    Raises:
        SerialError: the two ids are half a circle apart.
    """
    return max(0, incoming_window - serial.diff(next_outgoing_id, next_incoming_id))


@dataclass(slots=True, kw_only=True)
class SenderLinkFlow:
    """A link as its sender sees it [2.6.7].

    Attributes:
        initial_delivery_count: chosen by this end, told once in its attach.
        delivery_count: owned by this end: one more per delivery begun. Told in this end's flows;
            the receiver follows it by counting deliveries. Wraps; never goes back.
        link_credit: worked out from the receiver's last flow, one less per delivery begun. Never
            negative here: a cut below what is in flight counts as 0.
        available: how many messages this end could send; chosen by the owner, told in this end's
            flows. Never negative; sending at 0 is legal.
        drain: the flag of the receiver's last flow.
    """

    initial_delivery_count: int = 0
    delivery_count: int = 0
    link_credit: int = 0
    available: int = 0
    drain: bool = False

    @classmethod
    def starting_at(cls, initial_delivery_count: int) -> "SenderLinkFlow":
        """A link at its beginning: no credit, and the count at any number the sender likes."""
        return cls(
            initial_delivery_count=initial_delivery_count, delivery_count=initial_delivery_count
        )

    def begin_delivery(self) -> None:
        """A delivery starts: count and credit move together, so their sum, the limit, stays.

        What an owner starts at credit 0, against the rule, moves the count alone.
        """
        self.delivery_count = serial.following(self.delivery_count)
        if self.link_credit:
            self.link_credit -= 1
        if self.available:
            self.available -= 1

    def credit_after(self, delivery_count: int | None, link_credit: int) -> int:
        """What a flow of the receiver makes of the credit; changes nothing.

        Args:
            delivery_count: of the flow; None (the receiver has not seen our attach) stands for
                the initial count.
            link_credit: of the flow.

        Raises:
            SerialError: the counts cannot be compared.
        """
        at = self.initial_delivery_count if delivery_count is None else delivery_count
        return link_credit_snd(at, link_credit, self.delivery_count)

    def advance(self) -> int:
        """Give back all credit: the count moves to the limit, which stays. Returns how much."""
        given_back = self.link_credit
        self.delivery_count = serial.advanced(self.delivery_count, given_back)
        self.link_credit = 0
        return given_back


@dataclass(slots=True, kw_only=True)
class ReceiverLinkFlow:
    """A link as its receiver sees it [2.6.7].

    Attributes:
        delivery_count: the last value known of the sender's count: from its attach, one more per
            delivery that arrives, and from its flows. None until its attach has come.
        link_credit: chosen by this end and told in its flows, one less per delivery that arrives.
            Never negative: what arrives beyond it (sent before a cut was seen) leaves it at 0.
        available: last heard from the sender, one less per delivery; never negative.
        drain: chosen by this end: with it the sender gives back the credit that it cannot use.
    """

    delivery_count: int | None = None
    link_credit: int = 0
    available: int = 0
    drain: bool = False

    def take_delivery(self) -> None:
        """A delivery has begun to arrive."""
        if self.delivery_count is not None:
            self.delivery_count = serial.following(self.delivery_count)
        if self.link_credit:
            self.link_credit -= 1
        if self.available:
            self.available -= 1

    def advanced_to(self, delivery_count: int) -> int:
        """The credit left if the sender's count moves to this value; changes nothing.

        Raises:
            SerialError: the counts cannot be compared.
            ValueError: the count would move back.
        """
        if self.delivery_count is None:
            return self.link_credit
        if self.link_credit >= serial.HALF:
            # So much credit given back takes the count more than half way round. Credit tells how
            # far it may move, so what looks like a step back is the long way forward.
            forward = serial.steps(delivery_count, self.delivery_count)
            if forward <= self.link_credit:
                return self.link_credit - forward
        moved = serial.diff(delivery_count, self.delivery_count)
        if moved < 0:
            raise ValueError(f"delivery-count {delivery_count} is behind {self.delivery_count}")
        return max(0, self.link_credit - moved)


@dataclass(slots=True, kw_only=True)
class SessionFlow:
    """A session as one of its ends sees it [2.5.6]. All windows count transfer frames.

    Attributes:
        initial_outgoing_id: chosen by this end, told in its begin.
        next_outgoing_id: owned by this end: transfer-id of the next transfer frame it sends. Such
            ids are never in a transfer; begin and flow tell the next one. Wraps.
        incoming_window: chosen by this end, told in its begin and flows, one less per transfer
            frame that arrives. Never negative.
        outgoing_window: chosen by this end, told in its begin and flows. Kept as it is while
            frames are sent: lowering it is left to the owner's policy.
        next_incoming_id: from the peer's begin, one more per transfer frame that arrives, and from
            the peer's flows. None until its begin has come.
        remote_incoming_window: from the peer's begin and flows, one less per transfer frame sent.
            Never negative; at 0 no transfer may be sent. None until the peer's begin has come.
        remote_outgoing_window: the peer's last word, one less per transfer frame that arrives,
            never negative. None until its begin has come.
        frames_in: transfer frames that arrived.
        frames_allowed: as many as any word of this end has allowed so far, or more if this end
            tolerates more. The peer may not have seen a later, smaller window, so only beyond this
            it is surely wrong.
    """

    initial_outgoing_id: int = 0
    next_outgoing_id: int = 0
    incoming_window: int = 0
    outgoing_window: int = 0
    next_incoming_id: int | None = None
    remote_incoming_window: int | None = None
    remote_outgoing_window: int | None = None
    frames_in: int = 0
    frames_allowed: int = 0

    @classmethod
    def starting_at(
        cls, next_outgoing_id: int, incoming_window: int, outgoing_window: int
    ) -> "SessionFlow":
        """A session at its beginning."""
        return cls(
            initial_outgoing_id=next_outgoing_id,
            next_outgoing_id=next_outgoing_id,
            incoming_window=incoming_window,
            outgoing_window=outgoing_window,
        )

    def begun(self, next_outgoing_id: int, incoming_window: int, outgoing_window: int) -> None:
        """The peer's begin has come; frames sent before are in flight and count."""
        self.next_incoming_id = next_outgoing_id
        self.remote_incoming_window = remote_incoming_window(
            self.initial_outgoing_id, incoming_window, self.next_outgoing_id
        )
        self.remote_outgoing_window = outgoing_window

    def window_after(self, next_incoming_id: int | None, incoming_window: int) -> int:
        """What a flow of the peer makes of remote-incoming-window; changes nothing.

        Args:
            next_incoming_id: of the flow; None (the peer has not seen our begin) stands for this
                end's initial outgoing id.
            incoming_window: of the flow.

        Raises:
            SerialError: the ids cannot be compared.
            ValueError: the peer counts frames that this end has not sent.
        """
        at = self.initial_outgoing_id if next_incoming_id is None else next_incoming_id
        if serial.diff(self.next_outgoing_id, at) < 0:
            raise ValueError(
                f"next-incoming-id {at} leads next-outgoing-id {self.next_outgoing_id}"
            )
        return remote_incoming_window(at, incoming_window, self.next_outgoing_id)

    def announce(self) -> None:
        """This end tells its incoming-window in a begin or flow."""
        self.frames_allowed = max(self.frames_allowed, self.frames_in + self.incoming_window)

    def tolerate(self, frames: int) -> None:
        """This end will take so many more transfer frames, whatever window it tells."""
        self.frames_allowed = max(self.frames_allowed, self.frames_in + frames)

    def send_transfer(self) -> None:
        """A transfer frame goes out."""
        self.next_outgoing_id = serial.following(self.next_outgoing_id)
        if self.remote_incoming_window:
            self.remote_incoming_window -= 1

    def take_transfer(self) -> None:
        """A transfer frame has arrived."""
        if self.next_incoming_id is not None:
            self.next_incoming_id = serial.following(self.next_incoming_id)
        self.frames_in += 1
        if self.incoming_window:
            self.incoming_window -= 1
        if self.remote_outgoing_window:
            self.remote_outgoing_window -= 1

    def ledger(self) -> Ledger:
        """The counters by name; what only the peer's begin can tell is left out until then."""
        ledger: Ledger = {
            "incoming_window": self.incoming_window,
            "next_outgoing_id": self.next_outgoing_id,
            "outgoing_window": self.outgoing_window,
        }
        if self.next_incoming_id is not None:
            ledger["next_incoming_id"] = self.next_incoming_id
        if self.remote_incoming_window is not None:
            ledger["remote_incoming_window"] = self.remote_incoming_window
        if self.remote_outgoing_window is not None:
            ledger["remote_outgoing_window"] = self.remote_outgoing_window
        return ledger
