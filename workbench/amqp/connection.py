"""One end of a connection: header, open, close, channels, and the sessions on it [2.4].

The rules of this file:

* `apply` works a frame of the peer into the state and returns events. It sends nothing, so that an
  observer can read the counters between a frame and what it causes.
* Whatever this end sends goes through `emit`, once per frame, after the state for it is up to date.
* A call that is not legal now raises `LocalProtocolError` and changes nothing.
* There is no clock: time comes in as `now_us`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from workbench.amqp import connection_input
from workbench.amqp.answers import answer
from workbench.amqp.errors import ErrorCondition, LocalProtocolError, Scope
from workbench.amqp.events import Event, ProtocolViolation
from workbench.amqp.frame import (
    MIN_MAX_FRAME_SIZE,
    SASL_PROTOCOL,
    Frame,
    ProtocolHeader,
    WireItem,
    item_size,
)
from workbench.amqp.idle import IdleTimer
from workbench.amqp.numbering import free_number
from workbench.amqp.performatives import Close, Error, Open, Performative, Role
from workbench.amqp.sasl import SaslClient, SaslExchange, SaslServer
from workbench.amqp.scope import NOWHERE, ItemScope
from workbench.amqp.session import Session
from workbench.amqp.settings import USHORT_MAX, ConnectionSettings, SessionSettings
from workbench.amqp.states import (
    CONNECTION_TABLE,
    ConnectionState,
    Input,
    SessionState,
    require,
)

if TYPE_CHECKING:
    from workbench.amqp.link import Link
    from workbench.amqp.receiver import ReceiverLink
    from workbench.amqp.sender import SenderLink

__all__ = ["Connection"]


class Connection:
    """One end of an AMQP 1.0 connection, client or server alike.

    Args:
        container_id: of this end.
        is_client: this end speaks first.
        emit: called with each header or frame that this end sends.
        settings: of this end.
        session_settings: of the sessions that this end begins or accepts without others.
        sasl: how a client makes itself known, or whom a server lets in; None: no SASL.

    Attributes:
        state: of the connection.
        remote_open: the peer's open, None until it has come.
        remote_max_frame_size: the largest frame the peer accepts, in octets.
        channels: sessions by this end's channel.
        remote_channels: sessions by the peer's channel.
        sessions: those that have not been left by both ends, oldest first.
        names: attached links by name and this end's role.
        user: who the SASL exchange says the client is.
        error: why it was closed, by either end.
        frames_in: headers and frames received.
        frames_out: headers and frames sent.
        last_in: the last item received, and the session and link that it concerned.
        last_out: the same of the last item sent.
        batch_encoder: a way to send many settled messages as octets; see `fast`.
    """

    def __init__(
        self,
        *,
        container_id: str,
        is_client: bool,
        emit: Callable[[WireItem], None],
        settings: ConnectionSettings | None = None,
        session_settings: SessionSettings | None = None,
        sasl: SaslClient | SaslServer | None = None,
    ) -> None:
        if isinstance(sasl, SaslServer if is_client else SaslClient):
            raise LocalProtocolError("a client takes a SaslClient, a server a SaslServer")
        self.container_id = container_id
        self.is_client = is_client
        self.settings = settings or ConnectionSettings()
        self.session_settings = session_settings or SessionSettings()
        self.sasl = None if sasl is None else SaslExchange(sasl)
        self.sasl_header_sent = False
        self.sasl_header_received = False
        self.sasl_replies: list[Performative] = []
        self.state = ConnectionState.START
        self.failed = False  # this end has closed with an error: what comes is dropped
        self.remote_open: Open | None = None
        self.remote_max_frame_size = MIN_MAX_FRAME_SIZE
        self.remote_channel_max = USHORT_MAX
        self.channels: dict[int, Session] = {}
        self.remote_channels: dict[int, Session] = {}
        self.sessions: list[Session] = []
        self.names: dict[tuple[str, Role], SenderLink | ReceiverLink] = {}
        self.error: Error | None = None
        self.frames_in = 0
        self.frames_out = 0
        self.idle = IdleTimer()
        self.batch_encoder: Callable[[SenderLink, Sequence[bytes]], int] | None = None
        self._emit = emit
        self._ordinal = 0
        self.last_in: tuple[WireItem | None, Session | None, Link | None] = (None, None, None)
        self.last_out: tuple[WireItem | None, Session | None, Link | None] = (None, None, None)

    # -- life -----------------------------------------------------------------------------------

    @property
    def user(self) -> str | None:
        """Who the client is, by the SASL exchange; None without one."""
        return None if self.sasl is None else self.sasl.user

    @property
    def opened(self) -> bool:
        """Both opens were exchanged, and no close."""
        return self.state is ConnectionState.OPENED

    @property
    def ended(self) -> bool:
        """Nothing more will be sent or understood: the transport can be dropped."""
        return self.state is ConnectionState.END

    def start(self) -> None:
        """Begins: a client sends its first header; a server waits for the client's.

        With SASL the rest (AMQP header, open) follows in `answer`, when the server has let us in.

        Raises:
            LocalProtocolError: the connection has been started.
        """
        if not self.is_client:
            return
        if self.sasl is not None:
            if self.sasl_header_sent:
                raise LocalProtocolError("the connection was started; legal now: wait for an event")
            self.send_sasl_header()
        else:
            self.send_header()
            if self.settings.pipeline_open:
                self.send_open()

    def send_sasl_header(self) -> None:
        """Sends the SASL header and, as a server, the mechanisms."""
        assert self.sasl is not None
        self.sasl_header_sent = True
        self.emit_item(ProtocolHeader(SASL_PROTOCOL))
        first = self.sasl.first()
        if first is not None:
            self.emit_item(Frame(0, first))

    def send_header(self) -> None:
        """Sends the AMQP header.

        Raises:
            LocalProtocolError: it was sent, or the peer's is refused.
        """
        self.state = require(CONNECTION_TABLE, self.state, Input.SEND_HEADER, "the connection")
        self.emit_item(ProtocolHeader())

    def send_open(self) -> None:
        """Sends this end's open.

        Raises:
            LocalProtocolError: not legal now, or it does not fit into a frame of 512 octets.
        """
        state = require(CONNECTION_TABLE, self.state, Input.SEND_OPEN, "the connection")
        chosen = self.settings
        frame = Frame(
            0,
            Open(
                container_id=self.container_id,
                hostname=chosen.hostname,
                max_frame_size=chosen.max_frame_size,
                channel_max=chosen.channel_max,
                idle_time_out=chosen.idle_time_out_ms,
                offered_capabilities=chosen.offered_capabilities,
                desired_capabilities=chosen.desired_capabilities,
                properties=None if chosen.properties is None else dict(chosen.properties),
            ),
        )
        size = item_size(frame)
        if size > MIN_MAX_FRAME_SIZE:
            raise LocalProtocolError(
                f"the open has {size} octets; before both opens are exchanged a frame has at most "
                f"{MIN_MAX_FRAME_SIZE} [2.4.1]"
            )
        self.state = state
        self.idle.expect(chosen.idle_time_out_ms)
        self.emit_item(frame)

    def begin(
        self, settings: SessionSettings | None = None, *, channel: int | None = None
    ) -> Session:
        """Begins a session.

        Args:
            settings: of this end; None takes the connection's.
            channel: this end's number for it; None takes the lowest free one.

        Raises:
            LocalProtocolError: the open has not been sent, the close has, or no channel is free.
        """
        session = Session(self, self._ordinal + 1, settings or self.session_settings)
        session.send_begin(None, channel)
        return session

    def close(self, error: Error | None = None) -> None:
        """Closes the connection; with an error what still comes is dropped [2.4.3].

        Raises:
            LocalProtocolError: the open has not been sent, or the close has.
        """
        step = Input.SEND_CLOSE if error is None else Input.SEND_ERROR_CLOSE
        self.state = require(CONNECTION_TABLE, self.state, step, "the connection")
        self.error = self.error or error
        self.failed = self.failed or error is not None
        self.drop_sessions()
        self.emit_item(Frame(0, Close(error=error)))

    def abandon(self) -> None:
        """The transport is gone: everything ends here, nothing is sent."""
        self.state = ConnectionState.END
        self.drop_sessions()

    # -- exchange -------------------------------------------------------------------------------

    def apply(self, item: WireItem) -> list[Event]:
        """Works a header or frame of the peer into the state.

        Args:
            item: as a value.

        Returns:
            What it means, in order; nothing for what is dropped after an error. What the peer did
            wrong is a `ProtocolViolation` among them.
        """
        self.frames_in += 1
        events, session, link = connection_input.receive(self, item)
        self.last_in = (item, session, link)
        return events

    def answer(self, event: Event) -> None:
        """Does what the specification wants done about an event; see the events for what that is.

        What is no longer possible, because the link, session or connection has ended meanwhile,
        is left undone.
        """
        answer(self, event)

    def scope(self, item: WireItem, outgoing: bool) -> ItemScope:
        """What the item just sent or applied concerns, and this end's counters there.

        To be asked within `emit`, or right after `apply`; for another item it knows nothing.
        """
        last, session, link = self.last_out if outgoing else self.last_in
        if last is not item or session is None:
            return NOWHERE
        if link is None:
            return ItemScope(session=session.ordinal, session_ledger=session.ledger())
        return ItemScope(
            session.ordinal,
            link.name,
            link.is_sender,
            link.attach_no,
            link.ledger(),
            session.ledger(),
            link.in_message,
        )

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self, now_us: int) -> int | None:
        """When `on_deadline` wants to be called, in microseconds, or None.

        To be asked after whatever was applied or sent at `now_us`: frames that came or went since
        the last call count as of now.
        """
        self.idle.see(self.frames_in, self.frames_out, now_us)
        return None if self.ended else self.idle.next_deadline()

    def on_deadline(self, now_us: int) -> list[Event]:
        """Does what is due: sends a heartbeat; tells of a peer that has been silent too long."""
        self.idle.see(self.frames_in, self.frames_out, now_us)
        if self.idle.must_speak(now_us) and self.can_emit():
            self.emit_item(Frame(0))
            self.idle.see(self.frames_in, self.frames_out, now_us)
        silence = self.idle.silent_for_us(now_us)
        if silence is None or self.ended:
            return []
        text = (
            f"nothing was heard for {silence // 1000} ms; idle-time-out is "
            f"{self.settings.idle_time_out_ms} ms, and twice that is the limit [2.4.5]"
        )
        return [self.violated(ErrorCondition.RESOURCE_LIMIT_EXCEEDED, text)]

    # -- for session, link and input ------------------------------------------------------------

    def require(self, step: Input) -> None:
        """Asks the connection's table whether this end may send a frame.

        Raises:
            LocalProtocolError: it may not.
        """
        require(CONNECTION_TABLE, self.state, step, "the connection")

    def can_emit(self) -> bool:
        """Whether this end may send a frame other than open and close."""
        return Input.SEND_FRAME in CONNECTION_TABLE[self.state]

    def emit_item(self, item: WireItem) -> None:
        """Sends an item that concerns no session."""
        self.frames_out += 1
        self.last_out = (item, None, None)
        self._emit(item)

    def emit_frame(
        self,
        channel: int,
        performative: Performative,
        payload: bytes,
        session: Session,
        link: Link | None,
    ) -> None:
        """Sends a frame of a session."""
        self.emit_made(Frame(channel, performative, payload), session, link)

    def emit_made(self, frame: Frame, session: Session, link: Link | None) -> None:
        """Sends a frame of a session that is made already."""
        self.frames_out += 1
        self.last_out = (frame, session, link)
        self._emit(frame)

    def register(self, session: Session) -> None:
        """Notes a session that one end has begun."""
        if session not in self.sessions:
            self._ordinal += 1
            self.sessions.append(session)

    def new_session(self) -> Session:
        """The session for a peer's begin."""
        session = Session(self, self._ordinal + 1, self.session_settings)
        self.register(session)
        return session

    def awaiting(self, channel: int) -> Session | None:
        """The session that this end has begun on a channel and whose begin the peer owes."""
        for session in self.sessions:
            if session.channel == channel and session.remote_channel is None:
                return session
        return None

    def forget_session(self, session: Session) -> None:
        """A session that both ends have left is over; its channels are free already."""
        if session.state is SessionState.UNMAPPED and session in self.sessions:
            self.sessions.remove(session)

    def free_channel(self, wanted: int | None) -> int:
        """A channel for a session, not above what the peer accepts.

        Raises:
            LocalProtocolError: the wanted one, or every one, is in use.
        """
        return free_number("channel", self.channels, wanted, self.remote_channel_max)

    def forget_name(self, link: Link) -> None:
        """A link's name is free again, unless another attach has taken it."""
        key = (link.name, link.role)
        if self.names.get(key) is link:
            del self.names[key]

    def drop_sessions(self) -> None:
        """The connection's end takes its sessions with it, whatever their states."""
        for session in self.sessions:
            session.drop()
        self.sessions.clear()
        self.channels.clear()
        self.remote_channels.clear()

    def violated(self, condition: ErrorCondition, description: str) -> ProtocolViolation:
        """The event for a rule of the connection that the peer broke."""
        return ProtocolViolation(
            scope=Scope.CONNECTION, condition=condition, description=description
        )

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the connection, its sessions and links."""
        picture: dict[str, int | bool | str] = {
            "container_id": self.container_id,
            "is_client": self.is_client,
            "state": self.state.value,
            "sessions": len(self.sessions),
            "remote_max_frame_size": self.remote_max_frame_size,
            "frames_in": self.frames_in,
            "frames_out": self.frames_out,
        }
        for session in self.sessions:
            for name, value in session.overview().items():
                picture[f"session{session.ordinal}.{name}"] = value
        return picture
