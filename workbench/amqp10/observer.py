"""The counters of both ends, worked out from the frames that pass one place on the wire.

The rules of this file:

* Only wire fields are used, in the order in which the frames pass; there is no clock and no
  knowledge of what either end means to do.
* The link ledger is the *sender's entitlement* at this place [AMQP 1.0, 2.6.7].
* The session ledger is that of one end [2.5.6]: the link's sender where that is known
  (`link_sender`), else the end that did not send the frame, which is the one whose windows a begin
  or a flow sets.
* A capture may begin in the middle and may lose frames. What then cannot be known is listed in
  ``unknown`` until a frame states it.

Placed at one end and fed that end's frames in the order in which it sent and received them, the
same observer is a shadow of the end: it shows the counters that a foreign implementation hides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench import serial
from workbench.amqp10.observed import (
    ObservedLink,
    ObservedScope,
    ObservedSession,
    SessionEnd,
    address_of,
    delivery_ids,
    unpaired_link,
)

__all__ = ["ConnectionObserver", "ObservedScope"]

CLIENT, BROKER = "client", "broker"

MAX_TRACKED = 1 << 20
"""Unsettled deliveries followed per session end; beyond it `unsettled` becomes unknown."""


@dataclass(slots=True, eq=False)
class ConnectionObserver:
    """Follows one AMQP 1.0 connection.

    Args:
        from_start: the first frame seen is the connection's first. If not, sessions and links
            that were there before are followed as far as their frames tell.
        end: ``client`` or ``broker`` to shadow that end: session ledgers are then always its
            own. None observes the wire.

    Attributes:
        links: every link seen, in order of first appearance.
        assumptions: what was supposed about sessions and links begun before the capture.
    """

    from_start: bool = True
    end: str | None = None
    links: list[ObservedLink] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    _sessions: int = 0
    _partial: bool = False
    _channels: tuple[dict[int, ObservedSession], dict[int, ObservedSession]] = field(
        default_factory=lambda: ({}, {})
    )

    def __post_init__(self) -> None:
        self._partial = not self.from_start

    def see(self, item: Any, from_client: bool) -> ObservedScope:
        """Takes in one frame or protocol header and returns what it concerns.

        Args:
            item: a ``ProtocolHeader`` or ``Frame`` of ``amqp10.framing``.
            from_client: who sent it.
        """
        performative = getattr(item, "performative", None)
        if performative is None:
            return ObservedScope()
        handler = _HANDLERS.get(performative.NAME)
        if handler is None:
            return ObservedScope()
        scope: ObservedScope = handler(self, item.channel, performative, from_client)
        return scope

    def lost(self, from_client: bool) -> None:
        """Octets of this direction are missing here: what they may have changed is unknown."""
        self._partial = True
        for session in {id(s): s for m in self._channels for s in m.values()}.values():
            session.ends[from_client].forget()
            if not session.ends[from_client].begun:
                session.paired = False  # its begin may be among what is lost
            session.deliveries[0].clear()
            session.deliveries[1].clear()
            by_handle = (link for links in session.handles for link in links.values())
            for link in {id(link): link for link in (*session.links.values(), *by_handle)}.values():
                if link.sender_is_client in (from_client, None):
                    link.forget_sender()
                if link.sender_is_client is not from_client:
                    link.forget_receiver()

    # -- sessions

    def _session(self, channel: int, from_client: bool) -> ObservedSession | None:
        """The session of a frame that needs one; made up if it began before the capture."""
        session = self._channels[from_client].get(channel)
        if session is None and self._partial:
            other = self._channels[not from_client].get(channel)
            if other is not None and not other.ends[from_client].begun and not other.paired:
                session = other
            else:
                session = self._new_session(paired=False)
                self.assumptions.append(
                    f"session {session.ordinal} began before its first frame here: channel "
                    f"{channel} of both ends is taken as one session"
                )
            session.ends[from_client].begun = True
            self._channels[from_client][channel] = session
        return session

    def _new_session(self, *, paired: bool = True) -> ObservedSession:
        self._sessions += 1
        return ObservedSession(ordinal=self._sessions, paired=paired)

    def _begin(self, channel: int, frame: Any, from_client: bool) -> ObservedScope:
        remote = frame.remote_channel
        session = None
        if remote is not None:
            session = self._channels[not from_client].get(remote)
            if session is not None and session.ends[from_client].begun and session.paired:
                session = None
        if session is None:
            session = self._new_session()
            if remote is not None and self._partial:
                # It answers a begin that is not in the capture.
                self._channels[not from_client].setdefault(remote, session)
                session.ends[not from_client].begun = True
            session.paired = not self._partial
        else:
            session.paired = True
        self._channels[from_client][channel] = session
        me = session.ends[from_client]
        me.begun = me.whole = True
        me.next_outgoing_id = me.initial_outgoing_id = frame.next_outgoing_id
        me.window, me.window_at = frame.incoming_window, None
        me.outgoing_window, me.outgoing_at = frame.outgoing_window, frame.next_outgoing_id
        return self._scope(session, None, from_client)

    def _end(self, channel: int, frame: Any, from_client: bool) -> ObservedScope:
        session = self._session(channel, from_client)
        if session is None:
            return ObservedScope()
        self._channels[from_client].pop(channel, None)
        return self._scope(session, None, from_client)

    # -- links

    def _attach(self, channel: int, frame: Any, from_client: bool) -> ObservedScope:
        session = self._session(channel, from_client)
        if session is None:
            return ObservedScope()
        is_receiver = frame.role is not None and bool(frame.role.value)
        key = (frame.name, from_client != is_receiver)
        link = session.links.get(key)
        if link is None or from_client in link.attached_by:
            link = self._new_link(
                session, frame.name, key[1], 1 if link is None else (link.attach_no or 0) + 1
            )
            session.links[key] = link
        link.attached_by.add(from_client)
        session.handles[from_client][frame.handle] = link
        if is_receiver:
            if not link.credit_known:
                link.granted, link.granted_at, link.credit_known = 0, None, True
            link.drain = link.drain or False
        else:
            link.delivery_count = link.initial_delivery_count = frame.initial_delivery_count
            link.open_delivery, link.sender_whole = False, True
        if frame.unsettled:
            link.unsettled = None
        elif len(link.attached_by) == 2 and link.unsettled is None:
            link.unsettled = 0
        link.source = link.source or address_of(frame.source)
        link.target = link.target or address_of(frame.target)
        return self._scope(session, link, from_client)

    def _new_link(
        self, session: ObservedSession, name: str, sender_is_client: bool, attach_no: int
    ) -> ObservedLink:
        """A link that an attach names; if frames may be missing, the other end's may be too."""
        whole = not self._partial
        link = ObservedLink(
            session=session.ordinal,
            name=name,
            sender_is_client=sender_is_client,
            attach_no=attach_no,
            credit_known=whole,
            sender_whole=whole,
            drain=False if whole else None,
            open_delivery=False if whole else None,
            unsettled=0 if whole else None,
        )
        self.links.append(link)
        return link

    def _detach(self, channel: int, frame: Any, from_client: bool) -> ObservedScope:
        session = self._session(channel, from_client)
        if session is None:
            return ObservedScope()
        link = self._link(session, frame.handle, from_client)
        session.handles[from_client].pop(frame.handle, None)
        if link is not None and not link.paired and not link.detached:
            # By the same number the other end's answer is of this link, too.
            session.handles[not from_client].setdefault(frame.handle, link)
            link.detached = True
        return self._scope(session, link, from_client)

    def _link(
        self, session: ObservedSession, handle: int, from_client: bool
    ) -> ObservedLink | None:
        """The link of a handle; made up if it was attached before the capture."""
        link = session.handles[from_client].get(handle)
        if link is None and self._partial:
            link = session.handles[not from_client].get(handle)
            if link is None or link.paired:
                link = unpaired_link(session, handle)
                self.links.append(link)
                self.assumptions.append(
                    f"session {session.ordinal}: handle {handle} was attached before its first "
                    "frame here; the same handle number of both ends is taken as one link, and "
                    "its credit is left unknown until the numbers of both ends agree"
                )
            session.handles[from_client][handle] = link
        return link

    def _transfer(self, channel: int, frame: Any, from_client: bool) -> ObservedScope:
        session = self._session(channel, from_client)
        if session is None:
            return ObservedScope()
        me = session.ends[from_client]
        if me.next_outgoing_id is not None:
            me.next_outgoing_id = serial.following(me.next_outgoing_id)
        link = self._link(session, frame.handle, from_client)
        if link is None:
            return self._scope(session, None, from_client, sends=from_client)
        if link.sender_is_client is not from_client:
            link = self._claim_sender(session, link, frame.handle, from_client)
        another = frame.delivery_id not in (None, link.last_delivery_id)
        first = link.open_delivery is False
        link.deliveries += another or not link.in_message
        if link.open_delivery is None and frame.delivery_id is not None:
            # A first transfer must carry its delivery-id and a later one may: which of the two
            # this is cannot be told, so whether it counts cannot either.
            link.delivery_count = link.available = None
        if first:
            link.begin_delivery()
        if frame.delivery_id is not None:
            if link.delivery_count is None and link.counted is not None:
                if self._alone(session, link, from_client):
                    link.count_by(*link.counted, frame.delivery_id)
                else:
                    link.counted = None
            link.last_delivery_id = frame.delivery_id
            link.in_step = link.delivery_count is not None
        link.open_delivery = link.in_message = bool(frame.more) and not frame.aborted
        self._track(session, link, frame, first, from_client)
        return self._scope(session, link, from_client)

    def _alone(self, session: ObservedSession, link: ObservedLink, from_client: bool) -> bool:
        """No other link of the sender can have sent on the session.

        For that it needs credit, and the receiver, of which nothing is missing, has attached none.
        """
        there = session in self._channels[not from_client].values()
        senders = (
            one for one in self.links
            if one.session == link.session and one.sender_is_client in (from_client, None)
        )  # fmt: skip
        return there and session.ends[not from_client].whole and all(one is link for one in senders)

    def _claim_sender(
        self, session: ObservedSession, link: ObservedLink, handle: int, from_client: bool
    ) -> ObservedLink:
        """A transfer shows who sends over an unpaired link, or that it is two links."""
        if link.sender_is_client is None:
            link.sender_is_client = from_client
            link.contested = session.unpaired_flow[not from_client]
            return link
        if link.paired:
            return link  # A receiver that sends breaks the protocol; the count stays the sender's.
        del session.handles[from_client][handle]
        fresh = unpaired_link(session, handle, from_client)
        fresh.contested = session.unpaired_flow[not from_client]
        session.handles[from_client][handle] = fresh
        self.links.append(fresh)
        return fresh

    # -- settlement

    def _track(
        self,
        session: ObservedSession,
        link: ObservedLink,
        frame: Any,
        first: bool,
        from_client: bool,
    ) -> None:
        """Follows which deliveries are unsettled."""
        pending = session.deliveries[from_client]
        if first and not frame.settled:
            if len(pending) >= MAX_TRACKED:
                link.unsettled = None
            elif link.last_delivery_id is not None:
                pending[link.last_delivery_id] = link
                if link.unsettled is not None:
                    link.unsettled += 1
        elif not first and (frame.settled or frame.aborted):
            self._settle(pending, link.last_delivery_id)

    def _settle(self, pending: dict[int, ObservedLink], delivery_id: int | None) -> None:
        link = None if delivery_id is None else pending.pop(delivery_id, None)
        if link is not None and link.unsettled:
            link.unsettled -= 1

    def _disposition(self, channel: int, frame: Any, from_client: bool) -> ObservedScope:
        session = self._session(channel, from_client)
        if session is None:
            return ObservedScope()
        is_receiver = bool(frame.role.value)
        sender_is_client = from_client != is_receiver
        pending = session.deliveries[sender_is_client]
        concerned: dict[int, ObservedLink] = {}
        for delivery_id in delivery_ids(frame.first, frame.last, pending):
            link = pending.get(delivery_id)
            if link is not None:
                concerned[id(link)] = link
                if frame.settled:
                    self._settle(pending, delivery_id)
        if len(concerned) == 1:
            return self._scope(session, next(iter(concerned.values())), from_client)
        return self._scope(session, None, from_client)

    # -- flow

    def _flow(self, channel: int, frame: Any, from_client: bool) -> ObservedScope:
        session = self._session(channel, from_client)
        if session is None:
            return ObservedScope()
        me, peer = session.ends[from_client], session.ends[not from_client]
        self._session_flow(session, me, peer, frame)
        if frame.handle is None:
            return self._scope(session, None, from_client)
        link = self._link(session, frame.handle, from_client)
        if link is None:
            return self._scope(session, None, from_client)
        if link.sender_is_client is from_client:
            self._sender_flow(link, frame)
        else:
            if link.handle is not None and None not in (frame.delivery_count, frame.link_credit):
                link.claimed(frame.delivery_count, frame.link_credit)
            if link.paired:
                self._receiver_flow(link, frame)
            if not link.is_named_by(not from_client):
                self._unpaired_flow(session, from_client)
        return self._scope(session, link, from_client)

    def _session_flow(
        self, session: ObservedSession, me: SessionEnd, peer: SessionEnd, frame: Any
    ) -> None:
        if not session.paired and frame.next_incoming_id is not None:
            session.paired = frame.next_incoming_id == peer.next_outgoing_id
        me.next_outgoing_id = frame.next_outgoing_id
        me.outgoing_window, me.outgoing_at = frame.outgoing_window, frame.next_outgoing_id
        me.window, me.window_at = frame.incoming_window, frame.next_incoming_id

    def _sender_flow(self, link: ObservedLink, frame: Any) -> None:
        """The sender states its count; its credit is its own view and may lag behind a grant."""
        if frame.drain or not frame.link_credit:
            link.draining = False
        if frame.available is not None:
            link.available = frame.available
        if frame.delivery_count is None:
            return
        link.delivery_count = frame.delivery_count
        if link.credit_known or frame.link_credit is None:
            return
        if link.claim is not None and not link.paired:
            link.paired = link.agrees(frame.delivery_count, frame.link_credit)
        if link.paired or not link.contested:
            # No grant of the other end has been seen since the count was lost.
            link.granted, link.granted_at = frame.link_credit, frame.delivery_count
            link.credit_known = True
            if link.drain is None and frame.drain is not None:
                link.drain = frame.drain

    def _receiver_flow(self, link: ObservedLink, frame: Any) -> None:
        if frame.link_credit is not None:
            link.grant(frame.delivery_count, frame.link_credit)
        link.drain = bool(frame.drain)
        if frame.drain:
            link.draining, link.counted = True, None

    def _unpaired_flow(self, session: ObservedSession, from_client: bool) -> None:
        """It may be a grant for any link of the peer of which not both handles are known."""
        session.unpaired_flow[from_client] = True
        for other in session.handles[not from_client].values():
            if not other.is_named_by(from_client):
                other.contested = True
                other.credit_known = False
                other.drain = None

    def _scope(
        self,
        session: ObservedSession,
        link: ObservedLink | None,
        from_client: bool,
        *,
        sends: bool | None = None,
    ) -> ObservedScope:
        sender = sends if link is None else link.sender_is_client
        local = None if self.end is None else self.end == CLIENT
        end = local
        if end is None:
            end = (not from_client) if sender is None else sender
        ledger, unknown = session.ledger(end)
        link_sender = None if sender is None else CLIENT if sender else BROKER
        is_local = None if local is None or sender is None else sender == local
        if link is None:
            return ObservedScope(
                session.ordinal, None, link_sender, is_local, None, None, None, ledger, unknown
            )
        link_ledger, link_unknown = link.ledger()
        return ObservedScope(
            session.ordinal, link.name, link_sender, is_local, link.attach_no, link.called,
            link_ledger, ledger, link_unknown + unknown, link.open_delivery is True,
        )  # fmt: skip


_HANDLERS: dict[str, Any] = {
    "begin": ConnectionObserver._begin,
    "attach": ConnectionObserver._attach,
    "flow": ConnectionObserver._flow,
    "transfer": ConnectionObserver._transfer,
    "disposition": ConnectionObserver._disposition,
    "detach": ConnectionObserver._detach,
    "end": ConnectionObserver._end,
}
