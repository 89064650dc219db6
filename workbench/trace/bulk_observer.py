"""Counts a busy connection from columns of numbers, on links of which all is known.

It works on the sessions and links of a `ConnectionObserver` and does to them what `see` does, of a
transfer, a flow or a disposition whose fields are given as numbers. Each method does all of it, or
nothing and says so: then something is not known or not usual, and `see` is to be asked. A test
plays both side by side.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

from workbench import serial
from workbench.amqp10.flow import remote_incoming_window
from workbench.amqp10.observed import ObservedLink, ObservedSession, delivery_ids
from workbench.amqp10.observer import BROKER, CLIENT, MAX_TRACKED, ConnectionObserver
from workbench.serial import link_credit_snd

__all__ = ["ABSENT", "COUNTED", "BulkObserver", "Place"]

ABSENT = -1
"""In place of a number that is not there."""

COUNTED: tuple[str, ...] = (
    "place", "drain",
    "delivery_count", "link_credit", "available", "unsettled",
    "next_outgoing_id", "outgoing_window", "incoming_window",
    "next_incoming_id", "remote_incoming_window", "remote_outgoing_window",
)  # fmt: skip
"""What is told of each frame: where in `places` its scope is, then the counters right after it."""

_NO_LINK = (0, ABSENT, ABSENT, ABSENT, ABSENT)

Windows = tuple[int, int, int, int, int, int]


class Place(NamedTuple):
    """What a frame concerns, as in `ObservedScope`."""

    connection: str
    from_client: bool
    session: int
    link: str | None
    link_sender: str | None
    attach_no: int | None
    in_message: bool


class BulkObserver:
    """Counts for one connection, beside its observer.

    Args:
        observer: of the wire; whose sessions and links are counted.
        connection: its name.
        places: to which each new scope is added.
        counts: to which the numbers of each frame are added, in the order of `COUNTED`.
    """

    def __init__(
        self,
        observer: ConnectionObserver,
        connection: str,
        places: list[Place],
        counts: array[int],
    ) -> None:
        self._observer = observer
        self._connection = connection
        self._places = places
        self._counts = counts
        self._known: dict[tuple[bool, ObservedSession, ObservedLink | None, bool], int] = {}
        self._sessions: dict[tuple[bool, int], ObservedSession | None] = {}
        self._whole: set[ObservedLink] = set()

    def forget(self) -> None:
        """The observer has seen a frame by itself: what was known of its sessions may be over."""
        self._sessions.clear()
        self._whole.clear()

    def transfer(
        self,
        from_client: bool,
        channel: int,
        handle: int,
        delivery_id: int,
        settled: int,
        more: int,
    ) -> bool:
        """Counts a transfer that is neither aborted nor resumed; numbers may be `ABSENT`."""
        session = self._session(from_client, channel)
        if session is None:
            return False
        link: Any = session.handles[from_client].get(handle)  # all of it is known
        pending = session.deliveries[from_client]
        if (
            link is None
            or (link not in self._whole and not self._is_whole(link))
            or link.sender_is_client is not from_client
            or len(pending) >= MAX_TRACKED
        ):
            return False
        me, peer = session.ends[from_client], session.ends[not from_client]
        count, available = link.delivery_count, link.available
        numbered = delivery_id != ABSENT
        first = not link.open_delivery or (numbered and delivery_id != link.last_delivery_id)
        mine: Any = me.next_outgoing_id
        next_id = serial.add(mine, 1)
        if first:
            count = serial.add(count, 1)
            if available:
                available -= 1
        at = link.initial_delivery_count if link.granted_at is None else link.granted_at
        try:
            credit = link_credit_snd(at, link.granted, count)
            windows = _windows(me, peer, next_id, peer.next_outgoing_id)
        except serial.SerialError:
            return False
        me.next_outgoing_id = next_id
        link.delivery_count, link.available = count, available
        link.deliveries += first
        if numbered:
            link.last_delivery_id = delivery_id
        link.open_delivery = more == 1
        last = link.last_delivery_id
        unsettled = link.unsettled
        if first:
            if settled != 1 and last is not None:
                pending[last] = link
                unsettled += 1
                link.unsettled = unsettled
        elif settled == 1:
            _settle(pending, last)
            unsettled = link.unsettled
        self._counts.fromlist([
            self._place(from_client, session, link), link.drain,
            count, credit, ABSENT if available is None else available, unsettled, *windows,
        ])  # fmt: skip
        return True

    def disposition(
        self, from_client: bool, channel: int, is_receiver: int, first: int, last: int, settled: int
    ) -> bool:
        """Counts a disposition; `last` and `settled` may be `ABSENT`."""
        session = self._session(from_client, channel)
        if session is None:
            return False
        pending = session.deliveries[from_client != bool(is_receiver)]
        ids = [first] if last == ABSENT else delivery_ids(first, last, pending)
        ids = [one for one in ids if one in pending]
        links = {pending[one] for one in ids}
        if any(link not in self._whole and not self._is_whole(link) for link in links):
            return False
        link: Any = links.pop() if len(links) == 1 else None
        end = (not from_client) if link is None else bool(link.sender_is_client)
        me, peer = session.ends[end], session.ends[not end]
        try:
            windows = _windows(me, peer, me.next_outgoing_id, peer.next_outgoing_id)
            credit = 0 if link is None else link.credit()
        except serial.SerialError:
            return False
        if settled == 1:
            for one in ids:
                _settle(pending, one)
        place = self._place(from_client, session, link)
        if link is None:
            self._counts.fromlist([place, *_NO_LINK, *windows])
        else:
            self._counts.fromlist([
                place, link.drain, link.delivery_count, credit,
                ABSENT if link.available is None else link.available, link.unsettled, *windows,
            ])  # fmt: skip
        return True

    def flow(
        self,
        from_client: bool,
        channel: int,
        next_incoming_id: int,
        incoming_window: int,
        next_outgoing_id: int,
        outgoing_window: int,
        handle: int,
        *of_link: int,
    ) -> bool:
        """Counts a flow.

        Args:
            from_client: who sent it.
            channel: of the frame.
            next_incoming_id: `ABSENT` if it has none.
            incoming_window: of the flow, as the next two.
            next_outgoing_id: see there.
            outgoing_window: see there.
            handle: `ABSENT` in a flow of the session alone.
            of_link: delivery-count, link-credit, available and drain, each perhaps `ABSENT`.
        """
        session = self._session(from_client, channel)
        if session is None or next_incoming_id == ABSENT:
            return False
        me = session.ends[from_client]
        link = None
        if handle != ABSENT:
            link = session.handles[from_client].get(handle)
            if link is None or (link not in self._whole and not self._is_whole(link)):
                return False
        before = (
            me.next_outgoing_id, me.outgoing_window, me.outgoing_at, me.window, me.window_at
        )  # fmt: skip
        me.next_outgoing_id = me.outgoing_at = next_outgoing_id
        me.outgoing_window = outgoing_window
        me.window, me.window_at = incoming_window, next_incoming_id
        end = (not from_client) if link is None else bool(link.sender_is_client)
        one, other = session.ends[end], session.ends[not end]
        try:
            windows = _windows(one, other, one.next_outgoing_id, other.next_outgoing_id)
            found = _NO_LINK if link is None else _flow_counts(link, from_client, of_link)
        except serial.SerialError:
            (
                me.next_outgoing_id, me.outgoing_window, me.outgoing_at, me.window, me.window_at,
            ) = before  # fmt: skip
            return False
        self._counts.fromlist([self._place(from_client, session, link), *found, *windows])
        return True

    def _session(self, from_client: bool, channel: int) -> ObservedSession | None:
        """The session of a channel if all is known of it."""
        key = (from_client, channel)
        if key not in self._sessions:
            session = self._observer.session_on(channel, from_client)
            if session is not None and not _is_known(session):
                session = None
            self._sessions[key] = session
        return self._sessions[key]

    def _is_whole(self, link: ObservedLink) -> bool:
        """Whether all is known of a link; what is done here does not change that."""
        whole = (
            link.paired
            and link.sender_is_client is not None
            and link.delivery_count is not None
            and (link.initial_delivery_count is not None or link.granted_at is not None)
            and link.credit_known
            and link.drain is not None
            and link.unsettled is not None
            and link.open_delivery is not None
            and link.credit() is not None
        )
        if whole:
            self._whole.add(link)
        return whole

    def _place(self, from_client: bool, session: ObservedSession, link: ObservedLink | None) -> int:
        in_message = link is not None and link.open_delivery is True
        key = (from_client, session, link, in_message)
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = len(self._places)
            scope: tuple[Any, Any, Any] = (None, None, None)
            if link is not None:
                sender = CLIENT if link.sender_is_client else BROKER
                scope = (link.name, sender, link.attach_no)
            self._places.append(
                Place(self._connection, from_client, session.ordinal, *scope, in_message)
            )
        return place


def _is_known(session: ObservedSession) -> bool:
    """Whether the counters of both of its ends can be told; flows and transfers keep it so."""
    first, second = session.ends
    return (
        session.paired
        and first.begun
        and second.begun
        and not session.ledger(True)[1]
        and not session.ledger(False)[1]
    )


def _windows(me: Any, peer: Any, mine: Any, theirs: Any) -> Windows:
    """Session counters of an end, if the next ids of both were these; see `ObservedSession`."""
    at = peer.initial_outgoing_id if me.window_at is None else me.window_at
    peer_at = me.initial_outgoing_id if peer.window_at is None else peer.window_at
    left = peer.outgoing_window - serial.diff(theirs, peer.outgoing_at)
    return (
        mine,
        me.outgoing_window,
        remote_incoming_window(at, me.window, theirs),
        theirs,
        remote_incoming_window(peer_at, peer.window, mine),
        max(0, left),
    )


def _flow_counts(
    link: Any, from_client: bool, numbers: tuple[int, ...]
) -> tuple[int, int, int, int, int]:
    """What a flow does to a link, and its counters then.

    Raises:
        SerialError: they cannot be told; nothing is done then.
    """
    count, credit, available, drain = numbers
    if link.sender_is_client is from_client:
        after = link.delivery_count if count == ABSENT else count
        at = link.initial_delivery_count if link.granted_at is None else link.granted_at
        left = link_credit_snd(at, link.granted, after)
        link.delivery_count = after
        if available != ABSENT:
            link.available = available
    else:
        granted, granted_at = link.granted, link.granted_at
        if credit != ABSENT:
            granted, granted_at = credit, (None if count == ABSENT else count)
        at = link.initial_delivery_count if granted_at is None else granted_at
        if at is None:
            raise serial.SerialError("it is not known where the sender began to count")
        left = link_credit_snd(at, granted, link.delivery_count)
        link.granted, link.granted_at = granted, granted_at
        link.drain = drain == 1
    return (
        int(bool(link.drain)),
        link.delivery_count,
        left,
        ABSENT if link.available is None else link.available,
        link.unsettled,
    )


def _settle(pending: dict[int, ObservedLink], delivery_id: int | None) -> None:
    link = None if delivery_id is None else pending.pop(delivery_id, None)
    if link is not None and link.unsettled:
        link.unsettled -= 1
