"""What a session makes of a frame of the peer [2.5, 2.6].

One function per performative. Each works the frame into session and link and returns events; none
sends anything. A frame that breaks a rule is counted where both ends count it, and then gives a
`ProtocolViolation` instead of having its effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from workbench import serial
from workbench.amqp.errors import ErrorCondition, LocalProtocolError, Scope
from workbench.amqp.events import (
    DeliveriesUpdated,
    Event,
    FlowReceived,
    LinkAttached,
    LinkAttaching,
    LinkDetached,
    LinkStolen,
    ProtocolViolation,
)
from workbench.amqp.frame import Frame
from workbench.amqp.link import Link
from workbench.amqp.performatives import (
    Attach,
    Detach,
    Disposition,
    Flow,
    Role,
    Transfer,
)
from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.sender import SenderLink
from workbench.amqp.settlement import in_range
from workbench.amqp.states import LINK_TABLE, Input, LinkState, next_state

if TYPE_CHECKING:
    from workbench.amqp.session import Session

__all__ = ["Outcome", "receive"]

Outcome: TypeAlias = tuple[list[Event], Link | None]
"""Events, and the link that the frame concerns."""

STEALABLE = (LinkState.ATTACH_SENT, LinkState.ATTACH_RCVD, LinkState.ATTACHED)
"""States in which a link is lost if the peer attaches its name anew [2.6.1]."""


def receive(session: Session, frame: Frame) -> Outcome:
    """Takes in a frame of the session that is neither begin nor end."""
    return _HANDLERS[type(frame.performative)](session, frame.performative, frame.payload)


def _flow(session: Session, flow: Flow, payload: bytes) -> Outcome:
    counters = session.counters
    try:
        window = counters.window_after(flow.next_incoming_id, flow.incoming_window)
    except (ValueError, serial.SerialError) as error:
        return [session.violated(ErrorCondition.WINDOW_VIOLATION, str(error))], None
    counters.remote_incoming_window = window
    counters.next_incoming_id = flow.next_outgoing_id
    counters.remote_outgoing_window = flow.outgoing_window
    if flow.handle is None:
        stray = [
            name.replace("_", "-")
            for name in ("delivery_count", "link_credit", "available", "properties")
            if getattr(flow, name) is not None
        ]
        if flow.drain:  # false says no more than its absence does [1.4]
            stray.append("drain")
        if stray:
            text = f"a flow without handle has {', '.join(stray)}; these belong to a link [2.7.4]"
            return [session.violated(ErrorCondition.INVALID_FIELD, text)], None
        return [FlowReceived(session=session, link=None, frame=flow)], None
    link, fault = _link(session, flow.handle, "flow")
    if link is None:
        return fault, None
    if fault or link.state is LinkState.DETACH_SENT:
        return fault, link
    return [link.flow_received(flow)], link


def _transfer(session: Session, transfer: Transfer, payload: bytes) -> Outcome:
    counters = session.counters
    if counters.frames_in >= counters.frames_allowed:
        text = (
            f"transfer-id {counters.next_incoming_id} lies beyond every incoming-window that was "
            f"told: {counters.frames_allowed} transfer frames were allowed"
        )
        return [session.violated(ErrorCondition.WINDOW_VIOLATION, text)], None
    counters.take_transfer()
    link, fault = _link(session, transfer.handle, "transfer")
    if link is None:
        return fault, None
    if fault or link.state is LinkState.DETACH_SENT:
        return fault, link
    if not isinstance(link, ReceiverLink):
        text = "a transfer came from the link's receiver; only the sender sends messages"
        return [link.violated(ErrorCondition.NOT_ALLOWED, text)], link
    return [link.transfer_received(transfer, payload)], link


def _disposition(session: Session, frame: Disposition, payload: bytes) -> Outcome:
    last = frame.first if frame.last is None else frame.last
    known: Mapping[int, Any]
    deliveries: list[Any]
    known = session.outgoing if frame.role is Role.RECEIVER else session.incoming
    try:
        deliveries = in_range(known, frame.first, last)
    except LocalProtocolError as error:
        return [session.violated(ErrorCondition.INVALID_FIELD, error.message)], None
    settled = bool(frame.settled)
    for delivery in deliveries:
        delivery.link.updated(delivery, frame.state, settled)
    event = DeliveriesUpdated(
        session=session,
        role=frame.role,
        deliveries=tuple(deliveries),
        state=frame.state,
        settled=settled,
        frame=frame,
    )
    links = {delivery.link for delivery in deliveries}
    return [event], links.pop() if len(links) == 1 else None


def _attach(session: Session, attach: Attach, payload: bytes) -> Outcome:
    fault = _fault_of_attach(session, attach)
    if fault is not None:
        return [fault], None
    role = Role.SENDER if attach.role is Role.RECEIVER else Role.RECEIVER
    events: list[Event] = []
    link = _unanswered(session, attach.name, role)
    if link is not None:
        state = next_state(LINK_TABLE, link.state, Input.RECV_ATTACH)
        assert state is not None, f"the peer's attach is awaited in {link.state}"
        _note_attach(session, link, attach, state)
        if state is LinkState.ATTACHED:
            events.append(LinkAttached(link=link, frame=attach, refused=link.refused_by(attach)))
        return events, link
    link = session.connection.names.get((attach.name, role))
    steals = session.connection.settings.steals_links
    if steals and link is not None and link.state in STEALABLE:
        events.append(LinkStolen(link=link))
    link = session.new_link(attach.name, role)
    session.register(link)
    _note_attach(session, link, attach, LinkState.ATTACH_RCVD)
    events.append(LinkAttaching(link=link, frame=attach))
    return events, link


def _unanswered(session: Session, name: str, role: Role) -> SenderLink | ReceiverLink | None:
    """This end's attach on the session that the peer's attach answers, even if it came too late.

    It is looked for by session: on another one the same name is another attachment [2.6.1].
    """
    for link in session.links:
        if link.name == name and link.role is role and link.remote_attach is None:
            return link
    return None


def _note_attach(
    session: Session, link: SenderLink | ReceiverLink, attach: Attach, state: LinkState
) -> None:
    link.attach_received(attach)
    link.state = state
    session.remote_handles[attach.handle] = link


def _fault_of_attach(session: Session, attach: Attach) -> ProtocolViolation | None:
    fault = _handle_too_high(session, attach.handle)
    if fault is not None:
        return fault
    other = session.remote_handles.get(attach.handle)
    if other is not None:
        return session.violated(
            ErrorCondition.HANDLE_IN_USE,
            f"attach of {attach.name} reuses handle {attach.handle}, which belongs to {other.name}",
        )
    if attach.role is Role.SENDER and attach.initial_delivery_count is None:
        return session.violated(
            ErrorCondition.INVALID_FIELD,
            f"the sender's attach of {attach.name} has no initial-delivery-count [2.7.3]",
        )
    return None


def _detach(session: Session, detach: Detach, payload: bytes) -> Outcome:
    link = session.remote_handles.get(detach.handle)
    if link is None:
        return [_unattached(session, detach.handle, "detach")], None
    state = next_state(LINK_TABLE, link.state, Input.RECV_DETACH)
    assert state is not None, f"a link with the peer's handle can be detached in {link.state}"
    by_peer = state is LinkState.DETACH_RCVD
    closed = bool(detach.closed)
    link.state = state
    link.closed = link.closed or closed
    link.error = link.error or detach.error
    link.stop()
    del session.remote_handles[detach.handle]
    session.forget_link(link)
    event = LinkDetached(
        link=link, frame=detach, closed=closed, error=detach.error, by_peer=by_peer
    )
    return [event], link


def _link(
    session: Session, handle: int, kind: str
) -> tuple[SenderLink | ReceiverLink | None, list[Event]]:
    """The link that the peer names, or what is wrong with naming it."""
    link = session.remote_handles.get(handle)
    if link is None:
        fault = _handle_too_high(session, handle) or _unattached(session, handle, kind)
        return None, [fault]
    assert isinstance(link, SenderLink | ReceiverLink)
    if next_state(LINK_TABLE, link.state, Input.RECV_FRAME) is not None:
        return link, []
    # Only DETACH_FAILED is left: in every other state the peer's handle names an open link.
    if not session.settings.errant_link_ends_session:
        return None, []
    text = (
        f"a {kind} came for link {link.name}, which this end has detached with an error; only a "
        "detach may come [2.6.5]"
    )
    return link, [session.violated(ErrorCondition.ERRANT_LINK, text)]


def _unattached(session: Session, handle: int, kind: str) -> ProtocolViolation:
    attached = ", ".join(map(str, sorted(session.remote_handles))) or "none"
    return session.violated(
        ErrorCondition.UNATTACHED_HANDLE,
        f"{kind} names handle {handle}, which is not attached; attached are: {attached}",
    )


def _handle_too_high(session: Session, handle: int) -> ProtocolViolation | None:
    limit = session.settings.handle_max
    if handle <= limit:
        return None
    return ProtocolViolation(
        scope=Scope.CONNECTION,
        condition=ErrorCondition.FRAMING_ERROR,
        description=f"handle {handle} is above handle-max {limit}",
        session=session,
    )


_HANDLERS: dict[type | None, Callable[..., Outcome]] = {
    Attach: _attach,
    Flow: _flow,
    Transfer: _transfer,
    Disposition: _disposition,
    Detach: _detach,
}
