"""One end of a session: windows, handles, delivery-ids, and the links on it [2.5].

The two ends number a session with channels of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from workbench import serial
from workbench.amqp10.errors import ErrorCondition, LocalProtocolError, Scope
from workbench.amqp10.events import (
    DeliveriesUpdated,
    Event,
    FlowReceived,
    LinkAttached,
    LinkAttaching,
    LinkDetached,
    LinkStolen,
    ProtocolViolation,
)
from workbench.amqp10.flow import SessionFlow
from workbench.amqp10.frame import Frame
from workbench.amqp10.link import (
    Link,
    LinkTerms,
    as_source,
    as_target,
    in_range,
    is_terminal,
    ranges,
    runs,
)
from workbench.amqp10.messaging import Source, Target
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Performative,
    Role,
    Transfer,
)
from workbench.amqp10.receiver import IncomingDelivery, ReceiverLink
from workbench.amqp10.scope import Ledger
from workbench.amqp10.sender import OutgoingDelivery, SenderLink
from workbench.amqp10.settings import UINT_MAX, CreditOverrun, SessionSettings, check_range
from workbench.amqp10.states import (
    LINK_TABLE,
    SESSION_TABLE,
    Input,
    LinkState,
    SessionState,
    require,
)

if TYPE_CHECKING:
    from workbench.amqp10.connection import Connection
    from workbench.amqp10.values import Described

__all__ = ["Session", "free_number"]

Taken: TypeAlias = tuple[list[Event], Link | None]
"""Events, and the link that the frame concerns."""

STEALABLE = (LinkState.ATTACH_SENT, LinkState.ATTACH_RCVD, LinkState.ATTACHED)
"""States in which a link is lost if the peer attaches its name anew [2.6.1]."""


def free_number(kind: str, taken: Mapping[int, object], wanted: int | None, highest: int) -> int:
    """A number that is not taken.

    Args:
        kind: `channel` or `handle`, for the error text.
        taken: what is in use.
        wanted: this one; None takes the lowest free one.
        highest: the peer accepts no higher one.

    Raises:
        LocalProtocolError: it is in use or too high.
    """
    number = wanted
    if number is None:
        number = next(n for n in range(len(taken) + 1) if n not in taken)
    if number in taken or not 0 <= number <= highest:
        raise LocalProtocolError(
            f"{kind} {number} cannot be used: {len(taken)} are in use, and the peer's {kind}-max "
            f"is {highest}; legal now: a free {kind} up to that, or give one back first"
        )
    return number


class Session:
    """A session, begun by `Connection.begin` or by the peer.

    Attributes:
        connection: on which it runs.
        ordinal: 1, 2, ... on its connection; channel numbers are reused, this is not.
        settings: of this end.
        state: of the session.
        counters: session flow control as this end sees it.
        channel: this end's number for it, None until its begin is sent.
        remote_channel: the peer's number for it, None until its begin has come.
        remote_handle_max: highest handle the peer accepts.
        handles: links by this end's handle.
        remote_handles: links by the peer's handle.
        links: every attachment there was, oldest first, that has not been left by both ends.
        next_delivery_id: of the next delivery this end begins.
        outgoing: unsettled deliveries this end has sent, by delivery-id.
        incoming: unsettled deliveries this end has received, by delivery-id.
        error: why it ended, by either end.
    """

    def __init__(self, connection: Connection, ordinal: int, settings: SessionSettings) -> None:
        self.connection = connection
        self.ordinal = ordinal
        self.settings = settings
        self.state = SessionState.UNMAPPED
        self.counters = SessionFlow.starting_at(
            settings.next_outgoing_id, settings.incoming_window, settings.outgoing_window
        )
        self.channel: int | None = None
        self.remote_channel: int | None = None
        self.remote_handle_max = UINT_MAX
        self.handles: dict[int, SenderLink | ReceiverLink] = {}
        self.remote_handles: dict[int, SenderLink | ReceiverLink] = {}
        self.links: list[SenderLink | ReceiverLink] = []
        self.next_delivery_id = settings.delivery_id
        self.outgoing: dict[int, OutgoingDelivery] = {}
        self.incoming: dict[int, IncomingDelivery] = {}
        self.error: Error | None = None
        self._attaches: dict[tuple[str, Role], int] = {}

    def __repr__(self) -> str:
        return f"<Session {self.ordinal} {self.state.value}>"

    # -- life -----------------------------------------------------------------------------------

    @property
    def mapped(self) -> bool:
        """Both begins were exchanged, and no end."""
        return self.state is SessionState.MAPPED

    def accept(
        self, settings: SessionSettings | None = None, *, channel: int | None = None
    ) -> None:
        """Answers the peer's begin.

        Args:
            settings: of this end; None keeps those of the connection.
            channel: this end's number; None takes the lowest free one.

        Raises:
            LocalProtocolError: the session is not waiting for this end's begin.
        """
        if self.remote_channel is None:
            raise LocalProtocolError("the peer has not begun this session: nothing to accept")
        self.send_begin(settings, channel)

    def send_begin(self, settings: SessionSettings | None, channel: int | None) -> None:
        """Sends this end's begin."""
        state = require(SESSION_TABLE, self.state, Input.SEND_BEGIN, self._name)
        self.connection.check_can_emit()
        number = self.connection.free_channel(channel)
        if settings is not None:
            self._choose(settings)
        chosen = self.settings
        counters = self.counters
        begin = Begin(
            remote_channel=self.remote_channel,
            next_outgoing_id=counters.next_outgoing_id,
            incoming_window=counters.incoming_window,
            outgoing_window=counters.outgoing_window,
            handle_max=None if chosen.handle_max == UINT_MAX else chosen.handle_max,
            properties=None if chosen.properties is None else dict(chosen.properties),
        )
        if self.state is SessionState.UNMAPPED:
            self.connection.register(self)
        self.state = state
        self.channel = number
        self.connection.channels[number] = self
        counters.announce()
        self.emit(begin)

    def _choose(self, settings: SessionSettings) -> None:
        """Takes other settings, before this end's begin; the peer's begin may have come."""
        old = self.counters
        new = SessionFlow.starting_at(
            settings.next_outgoing_id, settings.incoming_window, settings.outgoing_window
        )
        if old.next_incoming_id is not None:
            new.next_incoming_id = old.next_incoming_id
            new.remote_incoming_window = old.remote_incoming_window
            new.remote_outgoing_window = old.remote_outgoing_window
        self.settings, self.counters = settings, new
        self.next_delivery_id = settings.delivery_id

    def end(self, error: Error | None = None) -> None:
        """Ends the session and with it its links.

        With an error everything that still comes is dropped, up to the peer's end [2.5.5].

        Raises:
            LocalProtocolError: this end has not begun it, or has ended it.
        """
        step = Input.SEND_END if error is None else Input.SEND_ERROR_END
        state = require(SESSION_TABLE, self.state, step, self._name)
        self.connection.check_can_emit()
        channel = self._begun()
        self.error = self.error or error
        self.state = state
        self.drop_links()
        del self.connection.channels[channel]
        self.connection.forget_session(self)
        self.emit(self.connection.fitted(End(error=error)))

    def leave(self) -> None:
        """Forgets the session, which this end has ended, without waiting for the peer's end.

        The peer's channel is free at once, and what still comes on it is for no session. The
        specification wants the peer's end awaited [2.5.2]; a peer that does not can call this.
        """
        if self.remote_channel is not None:
            self.connection.remote_channels.pop(self.remote_channel, None)
        self.state = SessionState.UNMAPPED
        self.connection.forget_session(self)

    def drop(self) -> None:
        """The connection's end takes the session with it, whatever its state."""
        self.state = SessionState.UNMAPPED
        self.drop_links()

    def drop_links(self) -> None:
        """The session's end takes its links with it, whatever their states."""
        for link in self.links:
            link.state = LinkState.DETACHED
            link.stop()
            self.connection.forget_name(link)
        self.links.clear()
        self.handles.clear()
        self.remote_handles.clear()
        self.outgoing.clear()
        self.incoming.clear()

    # -- links ----------------------------------------------------------------------------------

    def attach_sender(
        self,
        name: str,
        source: Source | Described | str | None = None,
        target: Target | Described | str | None = None,
        *,
        handle: int | None = None,
        **terms: Any,
    ) -> SenderLink:
        """Attaches a link over which this end sends.

        Args:
            name: of the link.
            source: where the messages come from; a string is the address.
            target: where they go; a string is the address.
            handle: this end's number for the link; None takes the lowest free one.
            **terms: further fields of `LinkTerms`, for example `initial_delivery_count`.

        Raises:
            LocalProtocolError: the name is attached in this direction, or the session is not
                begun.
        """
        self._check_name(name, Role.SENDER)
        agreed = LinkTerms(
            source=Source() if source is None else as_source(source),
            target=as_target(target),
            **terms,
        )
        link = SenderLink(self, name, self._attaches.get((name, Role.SENDER), 0) + 1)
        link.send_attach(agreed, handle)
        return link

    def attach_receiver(
        self,
        name: str,
        source: Source | Described | str | None = None,
        target: Target | Described | str | None = None,
        *,
        handle: int | None = None,
        credit_overrun: CreditOverrun = CreditOverrun.TAKE,
        **terms: Any,
    ) -> ReceiverLink:
        """Attaches a link over which this end receives.

        Args:
            name: of the link.
            source: where the messages come from; a string is the address.
            target: where they go; a string is the address.
            handle: this end's number for the link; None takes the lowest free one.
            credit_overrun: what becomes of a delivery that comes at credit 0.
            **terms: further fields of `LinkTerms`, for example `max_message_size`.

        Raises:
            LocalProtocolError: the name is attached in this direction, or the session is not
                begun.
        """
        self._check_name(name, Role.RECEIVER)
        agreed = LinkTerms(
            source=as_source(source),
            target=Target() if target is None else as_target(target),
            **terms,
        )
        link = ReceiverLink(self, name, self._attaches.get((name, Role.RECEIVER), 0) + 1)
        link.credit_overrun = credit_overrun
        link.send_attach(agreed, handle)
        return link

    def _check_name(self, name: str, role: Role) -> None:
        live = self.connection.names.get((name, role))
        if live is not None:
            raise LocalProtocolError(
                f"link {name} is in use as {role.name.lower()} in state {live.state.value}; legal "
                "now: another name, or detach it first"
            )

    def register(self, link: SenderLink | ReceiverLink) -> None:
        """Notes a link that one end has attached."""
        self._attaches[link.name, link.role] = link.attach_no
        self.links.append(link)
        self.connection.names[link.name, link.role] = link

    def new_link(self, name: str, role: Role) -> SenderLink | ReceiverLink:
        """The link for a peer's attach, in this end's role."""
        attach_no = self._attaches.get((name, role), 0) + 1
        cls = SenderLink if role is Role.SENDER else ReceiverLink
        return cls(self, name, attach_no)

    def free_handle(self, wanted: int | None) -> int:
        """A handle for a link, not above what the peer accepts.

        Raises:
            LocalProtocolError: the wanted one, or every one, is in use.
        """
        return free_number("handle", self.handles, wanted, self.remote_handle_max)

    def leave_link(self, link: Link) -> None:
        """Forgets a link that this end has detached, without waiting for the peer's detach.

        The peer's handle is free at once, and what still comes for it is for no link. The
        specification wants the peer's detach awaited [2.6.5]; a peer that does not can call this.
        """
        if link.remote_handle is not None and self.remote_handles.get(link.remote_handle) is link:
            del self.remote_handles[link.remote_handle]
        link.state = LinkState.DETACHED
        self.forget_link(link)

    def forget_link(self, link: Link) -> None:
        """Forgets a link for which no more deliveries count; its own lists stay readable."""
        ours = self.outgoing if link.is_sender else self.incoming
        for delivery_id in link.unsettled:
            ours.pop(delivery_id, None)
        if link.state is LinkState.DETACHED:
            if link in self.links:
                self.links.remove(link)
            self.connection.forget_name(link)

    # -- flow -----------------------------------------------------------------------------------

    def flow(self, *, echo: bool = False) -> None:
        """Tells the peer this end's ids and windows, without naming a link [2.7.4].

        Args:
            echo: ask for the peer's.

        Raises:
            LocalProtocolError: the session is not begun here.
        """
        self.check_can_emit()
        self.emit_flow(None, echo=echo or None)

    def set_incoming_window(self, incoming_window: int) -> None:
        """Sets how many transfer frames this end will take; the next flow tells the peer.

        Args:
            incoming_window: transfer frames, 0 to 4294967295.
        """
        check_range("incoming-window", incoming_window, 0, UINT_MAX)
        self.counters.incoming_window = incoming_window

    def reopen(self) -> bool:
        """Opens the incoming-window again if `settings.regrant_at` says so; the next flow tells.

        Returns:
            Whether it did.
        """
        at = self.settings.regrant_at
        if at is None or self.counters.incoming_window > at or not self.can_emit():
            return False
        self.set_incoming_window(self.settings.incoming_window)
        return True

    def regrant(self) -> bool:
        """Opens the incoming-window again by `settings.regrant_at`, and tells; whether it did."""
        opened = self.reopen()
        if opened:
            self.flow()
        return opened

    def pump(self) -> None:
        """Sends on with deliveries that have stopped at a closed window."""
        for link in self.links:
            if isinstance(link, SenderLink) and link.sending is not None:
                link.pump()

    # -- settlement -----------------------------------------------------------------------------

    def settle_ranges(
        self, deliveries: Iterable[IncomingDelivery], state: object
    ) -> list[tuple[int, int]]:
        """Settles received deliveries, whatever links they came over, in as few frames as can be.

        A disposition speaks for the whole session [2.7.6], so a range may span links; its frame is
        then about none of them alone.

        Args:
            deliveries: of this session, unsettled.
            state: the outcome of all of them.

        Returns:
            The ranges that were told; none if the session can say nothing more.
        """
        chosen = {delivery.delivery_id: delivery for delivery in deliveries}
        if not chosen or not self.can_emit():
            return []
        told = ranges(chosen, next(iter(self.incoming)))
        for first, last in told:
            size = serial.diff(last, first) + 1
            inside = [chosen[serial.add(first, step)] for step in range(size)]
            links = {delivery.link for delivery in inside}
            for delivery in inside:
                delivery.link.settled_here(delivery, state)
            one = links.pop() if len(links) == 1 else None
            self.emit_disposition(one, Role.RECEIVER, first, last, settled=True, state=state)
        return told

    # -- what comes -----------------------------------------------------------------------------

    def take(self, frame: Frame) -> Taken:
        """Takes in a frame of the session that is neither begin nor end.

        It is worked into session and link, and nothing is sent. A frame that breaks a rule is
        counted where both ends count it, and then gives a `ProtocolViolation` instead of having
        its effect.

        Returns:
            Events, and the link that the frame concerns.
        """
        return _TAKE[type(frame.performative)](self, frame.performative, frame.payload)

    def _take_flow(self, flow: Flow, payload: bytes) -> Taken:
        counters = self.counters
        try:
            window = counters.window_after(flow.next_incoming_id, flow.incoming_window)
        except (ValueError, serial.SerialError) as error:
            return [self.violated(ErrorCondition.WINDOW_VIOLATION, str(error))], None
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
                text = (
                    f"a flow without handle has {', '.join(stray)}; these belong to a link [2.7.4]"
                )
                return [self.violated(ErrorCondition.INVALID_FIELD, text)], None
            return [FlowReceived(session=self, link=None, frame=flow)], None
        link = self.remote_handles.get(flow.handle)
        if link is None or not link.state.receives:
            return self._misnamed(link, flow.handle, "flow")
        if link.state.discards:
            return [], link
        return [link.flow_received(flow)], link

    def _take_transfer(self, transfer: Transfer, payload: bytes) -> Taken:
        counters = self.counters
        if counters.frames_in >= counters.frames_allowed:
            text = (
                f"transfer-id {counters.next_incoming_id} lies beyond every incoming-window that "
                f"was told: {counters.frames_allowed} transfer frames were allowed"
            )
            return [self.violated(ErrorCondition.WINDOW_VIOLATION, text)], None
        counters.take_transfer()
        link = self.remote_handles.get(transfer.handle)
        if link is None or not link.state.receives:
            return self._misnamed(link, transfer.handle, "transfer")
        if link.state.discards:
            return [], link
        if not isinstance(link, ReceiverLink):
            text = "a transfer came from the link's receiver; only the sender sends messages"
            return [link.violated(ErrorCondition.NOT_ALLOWED, text)], link
        return [link.transfer_received(transfer, payload)], link

    def _take_disposition(self, frame: Disposition, payload: bytes) -> Taken:
        role, first, last, state = frame.role, frame.first, frame.last, frame.state
        known: Mapping[int, Any] = self.outgoing if role is Role.RECEIVER else self.incoming
        try:
            deliveries = in_range(known, first, first if last is None else last)
        except LocalProtocolError as error:
            return [self.violated(ErrorCondition.INVALID_FIELD, error.message)], None
        settled = bool(frame.settled)
        links = set()
        for delivery in deliveries:
            link = delivery.link
            link.updated(delivery, state, settled)
            links.add(link)
        event = DeliveriesUpdated(self, role, tuple(deliveries), state, settled, frame)
        return [event], links.pop() if len(links) == 1 else None

    def _take_attach(self, attach: Attach, payload: bytes) -> Taken:
        fault = self._fault_of_attach(attach)
        if fault is not None:
            return [fault], None
        role = Role.SENDER if attach.role is Role.RECEIVER else Role.RECEIVER
        events: list[Event] = []
        link = self._unanswered(attach.name, role)
        if link is not None:
            state = LINK_TABLE[link.state][Input.RECV_ATTACH]  # where it is awaited it is legal
            self._note_attach(link, attach, state)
            if state is LinkState.ATTACHED:
                events.append(
                    LinkAttached(link=link, frame=attach, refused=link.refused_by(attach))
                )
            return events, link
        link = self.connection.names.get((attach.name, role))
        steals = self.connection.settings.steals_links
        in_use = len(self.handles)
        if steals and link is not None and link.state in STEALABLE:
            events.append(LinkStolen(link=link))
            in_use -= link in self.handles.values()  # it is detached before this one is answered
        if in_use > self.remote_handle_max:
            text = (
                f"attach of {attach.name} can have no handle: {in_use} are in use, and the peer's "
                f"handle-max is {self.remote_handle_max}"
            )
            return [self.violated(ErrorCondition.RESOURCE_LIMIT_EXCEEDED, text)], None
        link = self.new_link(attach.name, role)
        self.register(link)
        self._note_attach(link, attach, LinkState.ATTACH_RCVD)
        events.append(LinkAttaching(link=link, frame=attach))
        return events, link

    def _unanswered(self, name: str, role: Role) -> SenderLink | ReceiverLink | None:
        """This end's attach on the session that the peer's attach answers, even if too late.

        It is looked for by session: on another one the same name is another attachment [2.6.1].
        """
        for link in self.links:
            if link.name == name and link.role is role and link.remote_attach is None:
                return link
        return None

    def _note_attach(
        self, link: SenderLink | ReceiverLink, attach: Attach, state: LinkState
    ) -> None:
        link.attach_received(attach)
        link.state = state
        self.remote_handles[attach.handle] = link

    def _fault_of_attach(self, attach: Attach) -> ProtocolViolation | None:
        fault = self._handle_too_high(attach.handle)
        if fault is not None:
            return fault
        other = self.remote_handles.get(attach.handle)
        if other is not None:
            return self.violated(
                ErrorCondition.HANDLE_IN_USE,
                f"attach of {attach.name} reuses handle {attach.handle}, which belongs to "
                f"{other.name}",
            )
        if attach.role is Role.SENDER and attach.initial_delivery_count is None:
            return self.violated(
                ErrorCondition.INVALID_FIELD,
                f"the sender's attach of {attach.name} has no initial-delivery-count [2.7.3]",
            )
        return None

    def _take_detach(self, detach: Detach, payload: bytes) -> Taken:
        link = self.remote_handles.get(detach.handle)
        if link is None:
            return [self._unattached(detach.handle, "detach")], None
        state = LINK_TABLE[link.state][Input.RECV_DETACH]  # legal wherever a handle names a link
        by_peer = state is LinkState.DETACH_RCVD
        closed = bool(detach.closed)
        link.state = state
        link.closed = link.closed or closed
        link.error = link.error or detach.error
        link.stop()
        del self.remote_handles[detach.handle]
        self.forget_link(link)
        event = LinkDetached(
            link=link, frame=detach, closed=closed, error=detach.error, by_peer=by_peer
        )
        return [event], link

    def _misnamed(self, link: SenderLink | ReceiverLink | None, handle: int, kind: str) -> Taken:
        """What is wrong with a frame for a link that is not there, or for which none may come."""
        if link is None:
            return [self._handle_too_high(handle) or self._unattached(handle, kind)], None
        # Only DETACH_FAILED is left: in every other state the peer's handle names an open link.
        if not self.settings.errant_link_ends_session:
            return [], None
        text = (
            f"a {kind} came for link {link.name}, which this end has detached with an error; only "
            "a detach may come [2.6.5]"
        )
        return [self.violated(ErrorCondition.ERRANT_LINK, text)], link

    def _unattached(self, handle: int, kind: str) -> ProtocolViolation:
        attached = ", ".join(map(str, sorted(self.remote_handles))) or "none"
        return self.violated(
            ErrorCondition.UNATTACHED_HANDLE,
            f"{kind} names handle {handle}, which is not attached; attached are: {attached}",
        )

    def _handle_too_high(self, handle: int) -> ProtocolViolation | None:
        limit = self.settings.handle_max
        if handle <= limit:
            return None
        return ProtocolViolation(
            scope=Scope.CONNECTION,
            condition=ErrorCondition.FRAMING_ERROR,
            description=f"handle {handle} is above handle-max {limit}",
            session=self,
        )

    # -- answers, as far as they are still possible ----------------------------------------------

    def answer_begin(self) -> None:
        """The peer has begun the session: so does this end."""
        if Input.SEND_BEGIN in SESSION_TABLE[self.state] and self._live():
            self.accept()

    def finish(self, error: Error | None) -> None:
        """The peer has ended the session, or broken a rule of it: this end ends it."""
        if not self._live():
            return
        if Input.SEND_BEGIN in SESSION_TABLE[self.state] and self.channel is None:
            self.accept()
        if Input.SEND_END in SESSION_TABLE[self.state]:
            self.end(error)

    def _live(self) -> bool:
        return self in self.connection.sessions and self.connection.can_emit()

    def answer_flow(self, event: FlowReceived) -> None:
        """Deliveries go on, credit is given back that a drain asks for, an echo is answered."""
        if not self.can_emit():
            return
        link = event.link
        self.pump()
        told = isinstance(link, SenderLink) and link.answer_drain()
        if event.frame.echo and not told:
            if link is None:
                self.flow()
            elif link.state.sends:
                link.flow()

    def answer_disposition(self, event: DeliveriesUpdated) -> None:
        """Outcomes that the receiver has stated and not settled are settled [2.6.12]."""
        if event.role is not Role.RECEIVER or event.settled or not is_terminal(event.state):
            return
        if not self.can_emit():
            return
        waiting = [one for one in event.deliveries if not one.settled and one.link.attached]
        for first, last, link in runs(waiting):
            link.settle(first, last, state=event.state)

    # -- emitting -------------------------------------------------------------------------------

    def emit(
        self, performative: Performative, payload: bytes = b"", link: Link | None = None
    ) -> None:
        """Sends a frame on this end's channel; the state for it is already up to date."""
        assert self.channel is not None
        connection = self.connection
        frame = Frame(self.channel, performative, payload)
        connection.frames_out += 1
        connection.last_out = (frame, self, link)
        connection.emit(frame)

    def emit_flow(self, link: Link | None, **fields: Any) -> None:
        """Sends a flow with the session's ids and windows, and these fields of a link."""
        counters = self.counters
        counters.announce()
        self.emit(
            Flow(
                next_incoming_id=counters.next_incoming_id,
                incoming_window=counters.incoming_window,
                next_outgoing_id=counters.next_outgoing_id,
                outgoing_window=counters.outgoing_window,
                **fields,
            ),
            link=link,
        )

    def emit_disposition(
        self,
        link: Link | None,
        role: Role,
        first: int,
        last: int,
        *,
        settled: bool,
        state: Any,
        batchable: bool | None = None,
    ) -> None:
        """Sends a disposition; `last` is left out where it is `first`, `settled` where false.

        A sender's that settles goes without its state where the peer takes no frame of that size:
        that is what the peer has said.

        Args:
            link: whose deliveries these are; None if they are of several links.
            role: of this end.
            first: delivery-id.
            last: delivery-id.
            settled: this end settles them.
            state: the outcome, or None.
            batchable: of the frame.
        """
        end = None if last == first else last
        said = Disposition(role, first, end, settled or None, state, batchable)
        if role is Role.SENDER and settled and not self.connection.fits(said):
            said = Disposition(role, first, end, settled, None, batchable)
        self.emit(said, link=link)

    # -- for link, connection and tap -----------------------------------------------------------

    @property
    def _name(self) -> str:
        return f"session {self.ordinal}"

    def check_can_emit(self) -> None:
        """Raises an error unless this end may send a frame of the session.

        Raises:
            LocalProtocolError: it may not; the text says by which state, and what is legal.
        """
        require(SESSION_TABLE, self.state, Input.SEND_FRAME, self._name)
        self.connection.check_can_emit()
        self._begun()

    def _begun(self) -> int:
        """This end's channel: a peer may end a session before this end has begun it."""
        if self.channel is None:
            raise LocalProtocolError(f"{self._name} is not begun here; legal now: accept it first")
        return self.channel

    def can_emit(self) -> bool:
        """Whether this end may send a frame of the session."""
        return self.state.sends and self.channel is not None and self.connection.state.sends

    def violated(self, condition: ErrorCondition, description: str) -> ProtocolViolation:
        """The event for a rule of the session that the peer broke."""
        return ProtocolViolation(
            scope=Scope.SESSION, condition=condition, description=description, session=self
        )

    def ledger(self) -> Ledger:
        """The session's counters at this end."""
        return self.counters.ledger()

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the session and its links."""
        picture: dict[str, int | bool | str] = {
            "ordinal": self.ordinal,
            "state": self.state.value,
            "next_delivery_id": self.next_delivery_id,
            "unsettled_outgoing": len(self.outgoing),
            "unsettled_incoming": len(self.incoming),
            **self.ledger(),
        }
        if self.channel is not None:
            picture["channel"] = self.channel
        if self.remote_channel is not None:
            picture["remote_channel"] = self.remote_channel
        for link in self.links:
            for name, value in link.overview().items():
                picture[f"{link.name}/{link.role.name.lower()}.{name}"] = value
        return picture


_TAKE: dict[type | None, Callable[..., Taken]] = {
    Attach: Session._take_attach,
    Flow: Session._take_flow,
    Transfer: Session._take_transfer,
    Disposition: Session._take_disposition,
    Detach: Session._take_detach,
}
