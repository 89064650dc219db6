"""What an observer of the wire keeps: the counters of both ends at the place where it looks.

Three rules for this file. None means *cannot be known*, and stays None until a frame states the
value; nothing is guessed. Every number is the one that holds at the capture point: as if each end
had already seen every frame that has passed it. A window or a credit is kept as it was stated,
together with the count it was stated at, so that what is left of it is the spec's formula over
what has passed since.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from workbench import serial
from workbench.amqp10.flow import remote_incoming_window
from workbench.serial import link_credit_snd

__all__ = [
    "ObservedLink",
    "ObservedScope",
    "ObservedSession",
    "SessionEnd",
    "address_of",
    "delivery_ids",
    "unpaired_link",
]

Ledger = dict[str, int | bool]


@dataclass(slots=True, eq=False, kw_only=True)
class ObservedLink:
    """One link [AMQP 1.0, 2.6].

    Attributes:
        session: ordinal of its session.
        name: None when no attach of it was seen.
        sender_is_client: which peer sends messages over it; None until that is seen.
        attach_no: 1, 2, ... each time the name is attached again in this session and direction.
        delivery_count: the sender's count: deliveries begun, and credit given back by drain.
        initial_delivery_count: from the sender's attach.
        granted: link-credit of the receiver's last flow.
        granted_at: delivery-count of that flow; None means that the flow carried none, and then
            the sender's initial count counts [2.6.7].
        credit_known: `granted` and `granted_at` hold.
        drain: drain flag of the receiver's last flow; None when not known.
        available: the sender's last statement, less the deliveries since; None until stated.
        open_delivery: a delivery with `more` is under way; None when not known.
        in_message: the same by the last transfer that was seen, whatever was lost since.
        paired: both ends' handles are known to belong to this link. Without the attaches this
            is only supposed, by equal handle numbers, until the numbers of both ends agree.
        claim: delivery-count and link-credit of the last flow from the other end of a link that
            is known by its handle.
        contested: a flow has passed that may have changed the credit of this unpaired link.
        handle: by which the link is known; None where an attach of it was seen.
        least: where the count is not known: its sender has counted that far at the least, by what
            was known before, what the receiver says to have, and what was sent since.
        furthest: the furthest delivery-limit that the receiver has set.
        agreed: how often the receiver has then named just that number, each time a further one;
            where that was the limit it counts twice.
        in_step: `last_delivery_id` is of the last delivery in `delivery_count`.
        counted: a delivery-id and the delivery-count with it, from before frames of the sender were
            lost; None where the count may have moved by more than deliveries since.
        draining: the receiver has asked for a drain, and the sender's flow has not come.
        unsettled: deliveries begun and not settled; None when not known.
        sender_whole: no frames of the sender are missing since the link was first seen.
        deliveries: deliveries seen, each from the first transfer of it that there is.
        source: address of the source, of the first attach that has one.
        target: address of the target, likewise.
        attached_by: the ends whose attach was seen (`from_client`).
        detached: an end has detached it.
    """

    session: int | None
    name: str | None = None
    sender_is_client: bool | None = None
    attach_no: int | None = None
    delivery_count: int | None = None
    initial_delivery_count: int | None = None
    granted: int = 0
    granted_at: int | None = None
    credit_known: bool = True
    drain: bool | None = False
    available: int | None = None
    open_delivery: bool | None = False
    in_message: bool = False
    last_delivery_id: int | None = None
    paired: bool = True
    claim: tuple[int, int] | None = None
    contested: bool = False
    handle: int | None = None
    least: int | None = None
    furthest: int | None = None
    agreed: int = 0
    in_step: bool = False
    counted: tuple[int, int] | None = None
    draining: bool = False
    unsettled: int | None = 0
    sender_whole: bool = True
    deliveries: int = 0
    source: str | None = None
    target: str | None = None
    attached_by: set[bool] = field(default_factory=set)
    detached: bool = False

    @property
    def called(self) -> str:
        """Its name; of a link whose attach was not seen, its handle."""
        return f"handle {self.handle}" if self.name is None else self.name

    def is_named_by(self, from_client: bool) -> bool:
        """Whether it is known by which handle that end names it."""
        return self.paired and (self.handle is not None or from_client in self.attached_by)

    def forget_sender(self) -> None:
        """Frames of the sender were lost: its count is not known until it states it."""
        self.sender_whole = False
        if self.delivery_count is not None:
            self.least, self.counted = self.delivery_count, None
            if self.in_step and self.last_delivery_id is not None and not self.draining:
                self.counted = self.last_delivery_id, self.delivery_count
        self.in_step = False
        self.delivery_count = None
        self.open_delivery = None
        self.available = None
        self.unsettled = None

    def forget_receiver(self) -> None:
        """Frames of the receiver were lost: one of them may have granted credit."""
        self.credit_known = False
        self.drain = None
        self.unsettled = None

    def credit(self) -> int | None:
        """The sender's entitlement, floored at 0 [2.6.7]; None when not known."""
        if not self.credit_known:
            return None
        at = self.initial_delivery_count if self.granted_at is None else self.granted_at
        if at is None or self.delivery_count is None:
            if self.granted and (self.initial_delivery_count is not None or not self.sender_whole):
                return None
            # Credit 0 is 0 whatever the count is, and what was granted before the sender's
            # attach is what it will begin with.
            return self.granted
        try:
            return link_credit_snd(at, self.granted, self.delivery_count)
        except serial.SerialError:
            return None

    def agrees(self, delivery_count: int, link_credit: int) -> bool:
        """Whether these numbers and `claim` state the same delivery-limit."""
        if self.claim is None:
            return False
        count, credit = self.claim
        return _since(delivery_count, count) == credit - link_credit

    def claimed(self, delivery_count: int, link_credit: int) -> None:
        """The other end of a link that is known by its handle says what it has, and grants.

        Numbers that keep in step with what was counted show that the two handles are one link's;
        all the more where the sender has stopped just at the limit.
        """
        before, self.claim = self.claim, (delivery_count, link_credit)
        if self.sender_is_client is None:
            return
        if self.least is None or serial.signed(delivery_count, self.least) > 0:
            self.least, self.agreed = delivery_count, 0
        elif self.least == delivery_count and before is not None and before[0] != delivery_count:
            self.agreed += 2 if serial.advanced(*before) == delivery_count else 1
            if not self.paired and self.agreed >= 2:
                self.paired = True
                self.grant(*before)
                self.find_count()

    def begin_delivery(self) -> None:
        """A delivery starts: one credit, one count, one less available."""
        if self.delivery_count is not None:
            self.delivery_count = serial.following(self.delivery_count)
        elif self.least is not None:
            self.least = serial.following(self.least)
            self.find_count()
        if self.available:
            self.available -= 1

    def count_by(self, number: int, count: int, delivery_id: int) -> None:
        """Only this link has sent since `counted`: each delivery-id was a delivery of it."""
        more = _since(delivery_id, number)
        if more is not None and more >= 0:
            self.delivery_count = serial.advanced(count, more)

    def find_count(self) -> None:
        """The least that can have been sent is all that was granted, so it is what was sent."""
        limit = self.limit()
        if self.delivery_count is None and self.paired and self.credit_known and limit is not None:
            used_up = self.least == limit == self.furthest
            self.delivery_count = self.least if used_up else None

    def limit(self) -> int | None:
        """The delivery-limit by the receiver's last flow; None when not known [2.6.7]."""
        at = self.initial_delivery_count if self.granted_at is None else self.granted_at
        return None if at is None else serial.advanced(at, self.granted)

    def grant(self, delivery_count: int | None, link_credit: int) -> None:
        """The receiver says how far it has heard the sender count, and grants [2.6.7]."""
        heard = None if self.sender_whole or self.delivery_count is not None else delivery_count
        if heard is not None and (self.least is None or serial.signed(heard, self.least) > 0):
            self.least = heard
        self.granted, self.granted_at, self.credit_known = link_credit, delivery_count, True
        limit = self.limit()
        if limit is not None and (self.furthest is None or serial.signed(limit, self.furthest) > 0):
            self.furthest = limit

    def ledger(self) -> tuple[Ledger, tuple[str, ...]]:
        """The counters that are known, and the names of those in scope that cannot be."""
        credit = self.credit()
        if (
            self.delivery_count is not None
            and credit is not None
            and self.drain is not None
            and self.unsettled is not None
            and self.available is None
        ):
            return {
                "delivery_count": self.delivery_count,
                "link_credit": credit,
                "drain": self.drain,
                "unsettled": self.unsettled,
            }, ()
        known: Ledger = {}
        unknown: list[str] = []
        if self.delivery_count is not None:
            known["delivery_count"] = self.delivery_count
        elif self.initial_delivery_count is not None or not (self.paired and self.sender_whole):
            unknown.append("delivery_count")
        if credit is not None:
            known["link_credit"] = credit
        elif self.delivery_count is not None or unknown or not self.credit_known:
            unknown.append("link_credit")
        if self.available is not None:
            known["available"] = self.available
        if self.drain is not None:
            known["drain"] = self.drain
        else:
            unknown.append("drain")
        if self.unsettled is not None:
            known["unsettled"] = self.unsettled
        else:
            unknown.append("unsettled")
        return known, tuple(unknown)


@dataclass(slots=True, eq=False, kw_only=True)
class SessionEnd:
    """One end of a session [2.5.6].

    Attributes:
        begun: its begin, or any frame of it, was seen.
        whole: its begin was seen, and nothing of it is missing since.
        next_outgoing_id: transfer-id of the next transfer frame it sends; None when not known.
        initial_outgoing_id: from its begin.
        window: incoming-window of its last begin or flow; None when not known.
        window_at: next-incoming-id of that flow; None means the peer's initial id.
        outgoing_window: of its last begin or flow; None when not known.
        outgoing_at: its next-outgoing-id then.
    """

    begun: bool = False
    whole: bool = False
    next_outgoing_id: int | None = None
    initial_outgoing_id: int | None = None
    window: int | None = None
    window_at: int | None = None
    outgoing_window: int | None = None
    outgoing_at: int | None = None

    def forget(self) -> None:
        """Frames of this end were lost: neither its ids nor its windows are known."""
        self.whole = False
        self.next_outgoing_id = None
        self.window = None
        self.outgoing_window = None

    def window_from(self, peer: SessionEnd) -> int | None:
        """remote-incoming-window of this end, floored at 0 [2.5.6]; None when not known."""
        if peer.window is None:
            return None
        if not self.begun:
            return peer.window
        at = self.initial_outgoing_id if peer.window_at is None else peer.window_at
        if at is None or self.next_outgoing_id is None:
            return None
        try:
            return remote_incoming_window(at, peer.window, self.next_outgoing_id)
        except serial.SerialError:
            return None

    def outgoing_left(self) -> int | None:
        """Of the outgoing-window it stated, what its transfers since have left."""
        if self.outgoing_window is None or self.outgoing_at is None:
            return None
        if self.next_outgoing_id is None:
            return None
        used = _since(self.next_outgoing_id, self.outgoing_at)
        return None if used is None else max(0, self.outgoing_window - used)


@dataclass(slots=True, eq=False, kw_only=True)
class ObservedSession:
    """One session [2.5]; end 1 is the client's, end 0 the broker's.

    Attributes:
        ordinal: 1, 2, ... on its connection.
        paired: both channels are known to belong to it (from the begins, or because the ids that
            both ends state agree).
        ends: indexed by ``from_client``.
        handles: links by handle, indexed by ``from_client``.
        links: the newest link per name and direction (``sender_is_client``).
        deliveries: links of unsettled deliveries by delivery-id, indexed by ``from_client``.
        unpaired_flow: a flow of that end named a handle that no attach explains.
    """

    ordinal: int
    paired: bool = True
    ends: tuple[SessionEnd, SessionEnd] = field(
        default_factory=lambda: (SessionEnd(), SessionEnd())
    )
    handles: tuple[dict[int, ObservedLink], dict[int, ObservedLink]] = field(
        default_factory=lambda: ({}, {})
    )
    links: dict[tuple[str, bool], ObservedLink] = field(default_factory=dict)
    deliveries: tuple[dict[int, ObservedLink], dict[int, ObservedLink]] = field(
        default_factory=lambda: ({}, {})
    )
    unpaired_flow: list[bool] = field(default_factory=lambda: [False, False])

    def ledger(self, end_is_client: bool) -> tuple[Ledger, tuple[str, ...]]:
        """The counters of one end that are known, and the names of those that cannot be."""
        me, peer = self.ends[end_is_client], self.ends[not end_is_client]
        paired = self.paired
        if paired and me.begun and peer.begun:
            whole: dict[str, int | None] = {
                "next_outgoing_id": me.next_outgoing_id,
                "outgoing_window": me.outgoing_window,
                "incoming_window": peer.window_from(me),
                "next_incoming_id": peer.next_outgoing_id,
                "remote_incoming_window": me.window_from(peer),
                "remote_outgoing_window": peer.outgoing_left(),
            }
            if None not in whole.values():
                return whole, ()  # type: ignore[return-value]
        values: list[tuple[str, int | None]] = []
        if me.begun:
            values.append(("next_outgoing_id", me.next_outgoing_id))
            # Whether an end lowers its own outgoing-window as it sends is its policy: this is the
            # last value that it stated.
            values.append(("outgoing_window", me.outgoing_window))
            values.append(("incoming_window", peer.window_from(me) if paired else None))
        if peer.begun:
            values.append(("next_incoming_id", peer.next_outgoing_id if paired else None))
            values.append(("remote_incoming_window", me.window_from(peer) if paired else None))
            values.append(("remote_outgoing_window", peer.outgoing_left() if paired else None))
        known: Ledger = {name: value for name, value in values if value is not None}
        if len(known) == len(values):
            return known, ()
        return known, tuple(name for name, value in values if value is None)


class ObservedScope(Struct):
    """What a frame concerns and the counters right after it passed.

    Attributes:
        session: ordinal of the session on its connection, from 1.
        link: the link's name; None where no single link is concerned or the name is not known.
        link_sender: which peer sends messages over the link, ``client`` or ``broker``.
        link_sender_is_local: the same seen from the end that is shadowed.
        attach_no: which attach of the link, from 1.
        called: its name, else its handle; None where no single link is concerned.
        link_ledger: known link counters, None where no link is concerned.
        session_ledger: known session counters, None where no session is concerned.
        unknown: counters in scope whose value cannot be known.
        in_message: the latest transfer of the link said that more of its message comes.
    """

    session: int | None = None
    link: str | None = None
    link_sender: str | None = None
    link_sender_is_local: bool | None = None
    attach_no: int | None = None
    called: str | None = None
    link_ledger: Ledger | None = None
    session_ledger: Ledger | None = None
    unknown: tuple[str, ...] = ()
    in_message: bool = False


def unpaired_link(
    session: ObservedSession, handle: int, sender_is_client: bool | None = None
) -> ObservedLink:
    """A link of which only a handle is known."""
    return ObservedLink(
        session=session.ordinal,
        handle=handle,
        sender_is_client=sender_is_client,
        credit_known=False,
        sender_whole=False,
        drain=None,
        open_delivery=None,
        paired=False,
        unsettled=None,
    )


def address_of(terminus: Any) -> str | None:
    """The address of a source or target, if it is text."""
    address = getattr(terminus, "address", None)
    return address if isinstance(address, str) else None


def delivery_ids(first: int, last: int | None, pending: dict[int, ObservedLink]) -> list[int]:
    """Delivery-ids of a disposition that are followed here; never more than there are."""
    if last is None or last == first:
        return [first]
    try:
        size = serial.diff(last, first) + 1
    except serial.SerialError:
        return []
    if size <= len(pending):
        return [serial.add(first, step) for step in range(size)]
    return [known for known in pending if _within(known, first, size)]


def _within(delivery_id: int, first: int, size: int) -> bool:
    try:
        return 0 <= serial.diff(delivery_id, first) < size
    except serial.SerialError:
        return False


def _since(now: int, then: int) -> int | None:
    """How far a serial number has moved on; None when the two are too far apart to compare."""
    try:
        return serial.diff(now, then)
    except serial.SerialError:
        return None
