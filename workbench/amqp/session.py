"""One end of a session: windows, handles, delivery-ids, and the links on it [2.5].

The two ends number a session with channels of their own. What comes from the peer is worked in by
`session_input`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.amqp.delivery import IncomingDelivery, OutgoingDelivery
from workbench.amqp.errors import ErrorCondition, LocalProtocolError, Scope
from workbench.amqp.events import ProtocolViolation
from workbench.amqp.flow import SessionFlow
from workbench.amqp.link import Link, LinkTerms, as_source, as_target
from workbench.amqp.messaging import Source, Target
from workbench.amqp.numbering import free_number
from workbench.amqp.performatives import (
    Begin,
    Disposition,
    End,
    Error,
    Flow,
    Performative,
    Role,
)
from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.scope import Ledger
from workbench.amqp.sender import SenderLink
from workbench.amqp.settings import UINT_MAX, CreditOverrun, SessionSettings, check_range
from workbench.amqp.states import SESSION_TABLE, Input, LinkState, SessionState, require

if TYPE_CHECKING:
    from workbench.amqp.connection import Connection
    from workbench.amqp.values import Described

__all__ = ["Session"]


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
        self.handles: dict[int, Link] = {}
        self.remote_handles: dict[int, Link] = {}
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
        self.connection.require(Input.SEND_FRAME)
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
        self.connection.require(Input.SEND_FRAME)
        assert self.channel is not None
        self.error = self.error or error
        self.state = state
        self.drop_links()
        del self.connection.channels[self.channel]
        self.connection.forget_session(self)
        self.emit(End(error=error))

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
        link._send_attach(agreed, handle)
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
        link._send_attach(agreed, handle)
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
        self.require(Input.SEND_FRAME)
        self.emit_flow(None, echo=echo or None)

    def set_incoming_window(self, incoming_window: int) -> None:
        """Sets how many transfer frames this end will take; the next flow tells the peer.

        Args:
            incoming_window: transfer frames, 0 to 4294967295.
        """
        check_range("incoming-window", incoming_window, 0, UINT_MAX)
        self.counters.incoming_window = incoming_window

    def set_outgoing_window(self, outgoing_window: int) -> None:
        """Sets how many transfer frames this end says it may send; the next flow tells the peer."""
        check_range("outgoing-window", outgoing_window, 0, UINT_MAX)
        self.counters.outgoing_window = outgoing_window

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

    # -- emitting -------------------------------------------------------------------------------

    def emit(
        self, performative: Performative, payload: bytes = b"", link: Link | None = None
    ) -> None:
        """Sends a frame on this end's channel; the state for it is already up to date."""
        assert self.channel is not None
        self.connection.emit_frame(self.channel, performative, payload, self, link)

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
        self, link: Link | None, role: Role, first: int, last: int, **fields: Any
    ) -> None:
        """Sends a disposition; `last` is left out where it is `first`, `settled` where false.

        Args:
            link: whose deliveries these are; None if they are of several links.
            role: of this end.
            first: delivery-id.
            last: delivery-id.
            **fields: of the frame, `settled` among them.
        """
        fields["settled"] = fields["settled"] or None
        self.emit(
            Disposition(role=role, first=first, last=None if last == first else last, **fields),
            link=link,
        )

    # -- for link, connection and tap -----------------------------------------------------------

    @property
    def _name(self) -> str:
        return f"session {self.ordinal}"

    def require(self, step: Input) -> None:
        """Asks the tables of session and connection whether this end may send a frame.

        Raises:
            LocalProtocolError: it may not.
        """
        if step not in SESSION_TABLE[self.state]:
            require(SESSION_TABLE, self.state, step, self._name)
        self.connection.require(step)

    def can_emit(self) -> bool:
        """Whether this end may send a frame of the session."""
        return (
            Input.SEND_FRAME in SESSION_TABLE[self.state]
            and self.channel is not None
            and self.connection.can_emit()
        )

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
