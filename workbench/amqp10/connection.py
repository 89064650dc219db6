"""One end of a connection: header, open, close, channels, and the sessions on it [2.4].

The rules of this file:

* `apply` works a frame of the peer into the state and returns events. It sends nothing, so that an
  observer can read the counters between a frame and what it causes.
* Whatever this end sends goes through `emit`, once per frame, after the state for it is up to date.
* A call that is not legal now raises `LocalProtocolError` and changes nothing.
* There is no clock: time comes in as `now_us`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from workbench.amqp10.errors import (
    ErrorCondition,
    FrameTooLargeError,
    LocalProtocolError,
    RemoteProtocolError,
    Scope,
)
from workbench.amqp10.events import (
    CloseReceived,
    DeliveriesUpdated,
    DeliveryAborted,
    DeliveryReceived,
    Event,
    FlowReceived,
    HeaderReceived,
    HeaderRefused,
    Heartbeat,
    LinkAttaching,
    LinkDetached,
    LinkStolen,
    OpenReceived,
    PartReceived,
    ProtocolViolation,
    SaslFinished,
    SaslReceived,
    SessionBegun,
    SessionEnded,
)
from workbench.amqp10.frame import (
    AMQP_PROTOCOL,
    FRAME_HEADER_SIZE,
    MIN_MAX_FRAME_SIZE,
    SASL_PROTOCOL,
    Frame,
    ProtocolHeader,
    WireItem,
    item_size,
)
from workbench.amqp10.link import Link
from workbench.amqp10.outcome import Accepted, Released
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Performative,
    Role,
    SaslChallenge,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    Transfer,
    Undecodable,
)
from workbench.amqp10.receiver import ReceiverLink
from workbench.amqp10.sasl import SaslClient, SaslExchange, SaslServer
from workbench.amqp10.scope import NOWHERE, ItemScope
from workbench.amqp10.sender import SenderLink
from workbench.amqp10.session import Session, free_number
from workbench.amqp10.settings import UINT_MAX, USHORT_MAX, ConnectionSettings, SessionSettings
from workbench.amqp10.states import (
    CONNECTION_TABLE,
    SESSION_TABLE,
    ConnectionState,
    Input,
    SessionState,
    legal_inputs,
    next_state,
    require,
)
from workbench.stream.idle import IdleTimer

__all__ = ["Connection"]

US_PER_MS = 1_000

Taken: TypeAlias = tuple[list[Event], Session | None, Link | None]
"""Events, and the session and the link that the item concerns."""

Told = TypeVar("Told", Detach, End, Close)

CUT = "..."
"""Stands for the rest of a description for which a frame has no room."""

SASL_FRAMES = frozenset((SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome))

SMALL_PAYLOAD = 400
"""A payload up to this leaves room for a transfer's fields within the least max-frame-size."""

SMALL_STATES = (type(None), Accepted, Released)


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
        self.emit = emit
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
        # What is told is to be half of what is waited for [2.4.5].
        expected_ms = chosen.idle_time_out_ms
        self.idle.give_up_after_us = 2 * expected_ms * US_PER_MS if expected_ms else None
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
        self.emit_item(Frame(0, self.fitted(Close(error=error))))

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
        events, session, link = self._take(item)
        self.last_in = (item, session, link)
        return events

    def answer(self, event: Event) -> None:
        """Does what the specification wants done about an event; see the events for what that is.

        What is no longer possible, because the link, session or connection has ended meanwhile,
        is left undone.
        """
        handler = _ANSWERS.get(type(event))
        if handler is not None:
            handler(self, event)

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

    # -- what comes -----------------------------------------------------------------------------

    def _take(self, item: WireItem) -> Taken:
        """Works in a header or frame."""
        if self.state is ConnectionState.END:
            return [], None, None
        if type(item) is ProtocolHeader:
            return [self._take_header(item)], None, None
        frame = item.performative
        kind = type(frame)
        if kind in SASL_FRAMES:
            return self._take_sasl(frame), None, None
        if self.remote_open is None or not _surely_small(kind, item):
            fault = self._too_large(item)
            if fault is not None:
                return [fault], None, None
        handler = _TAKE.get(kind)
        if handler is not None:
            return handler(self, frame), None, None
        if not self.state.receives:
            return [self._out_of_turn("heartbeat" if frame is None else frame.NAME)], None, None
        if self.failed or self.state.discards:
            return [], None, None
        if frame is None:
            return [Heartbeat()], None, None
        session = self.remote_channels.get(item.channel)
        if session is None or kind is Begin:
            return self._take_outside(item.channel, frame)
        if kind is End:
            return self._take_end(session, frame)
        if session.state.discards:
            return [], session, None
        if not session.state.receives:
            text = f"{frame.NAME} came for a session in state {session.state.value}"
            return [self.violated(ErrorCondition.ILLEGAL_STATE, text)], session, None
        events, link = session.take(item)
        return events, session, link

    def _take_outside(self, channel: int, frame: Performative) -> Taken:
        """A begin, or a frame on a channel without a session."""
        if channel > self.settings.channel_max:
            text = f"channel {channel} is above channel-max {self.settings.channel_max}"
            return [self.violated(ErrorCondition.FRAMING_ERROR, text)], None, None
        if isinstance(frame, Begin):
            return self._take_begin(channel, frame)
        text = f"{frame.NAME} came on channel {channel}, on which no session is begun"
        return [self.violated(ErrorCondition.ILLEGAL_STATE, text)], None, None

    def _take_header(self, header: ProtocolHeader) -> Event:
        wanted = self._wanted_header()
        if header != wanted and not (header == ProtocolHeader() and self._sasl_may_be_skipped()):
            if self.state not in (ConnectionState.START, ConnectionState.HDR_SENT):
                return self.violated(
                    ErrorCondition.FRAMING_ERROR, f"{header} came after the headers were exchanged"
                )
            self.abandon()
            return HeaderRefused(header=header, wanted=wanted)
        if header.protocol_id == SASL_PROTOCOL:
            if self.sasl_header_received:
                return self.violated(ErrorCondition.FRAMING_ERROR, "a second SASL header came")
            self.sasl_header_received = True
            return HeaderReceived(header=header)
        state = next_state(CONNECTION_TABLE, self.state, Input.RECV_HEADER)
        if state is None:
            return self._out_of_turn("header")
        self.state = state
        return HeaderReceived(header=header)

    def _wanted_header(self) -> ProtocolHeader:
        """The header that the peer has to send next."""
        sasl = self.sasl
        if sasl is None or sasl.code is SaslCode.OK:
            return ProtocolHeader(AMQP_PROTOCOL)
        return ProtocolHeader(SASL_PROTOCOL)

    def _sasl_may_be_skipped(self) -> bool:
        """Whether a client may begin with the AMQP header although this server offers SASL."""
        sasl = self.sasl
        return (
            sasl is not None
            and isinstance(sasl.side, SaslServer)
            and not sasl.side.required
            and not self.sasl_header_received
        )

    def _take_sasl(self, frame: Any) -> list[Event]:
        exchange = self.sasl
        if exchange is None or not self.sasl_header_received:
            text = f"{frame.NAME} came without a SASL header before it"
            return [self.violated(ErrorCondition.ILLEGAL_STATE, text)]
        try:
            reply = exchange.receive(frame)
        except RemoteProtocolError as error:
            return [self.violated(error.condition, error.message)]
        if reply is not None:
            self.sasl_replies.append(reply)
        events: list[Event] = [SaslReceived(performative=frame)]
        if exchange.code is not None:
            events.append(SaslFinished(code=exchange.code, user=exchange.user))
        return events

    def _too_large(self, frame: Frame) -> ProtocolViolation | None:
        limit = self.settings.max_frame_size
        if self.remote_open is None:
            limit = self.settings.first_max_frame_size
        size = item_size(frame)
        if size <= limit:
            return None
        return self.violated(
            ErrorCondition.FRAMING_ERROR,
            f"a frame of {size} octets came; the largest accepted is {limit}",
        )

    def _out_of_turn(self, kind: str) -> ProtocolViolation:
        legal = legal_inputs(CONNECTION_TABLE, self.state, outgoing=False)
        return self.violated(
            ErrorCondition.ILLEGAL_STATE,
            f"{kind} came in state {self.state.value}; legal: "
            + (", ".join(step.words for step in legal) or "nothing until this end has spoken"),
        )

    def _take_open(self, frame: Open) -> list[Event]:
        state = next_state(CONNECTION_TABLE, self.state, Input.RECV_OPEN)
        if state is None:
            return [self._out_of_turn("open")]
        size: int = UINT_MAX if frame.max_frame_size is None else frame.max_frame_size
        if size < MIN_MAX_FRAME_SIZE:
            text = f"the open has max-frame-size {size}; the least is {MIN_MAX_FRAME_SIZE} [2.7.1]"
            return [self.violated(ErrorCondition.INVALID_FIELD, text)]
        self.state = state
        self.remote_open = frame
        self.remote_max_frame_size = size
        channel_max = USHORT_MAX if frame.channel_max is None else frame.channel_max
        self.remote_channel_max = channel_max
        # After half of that time, so that the heartbeat arrives in time.
        told_ms = frame.idle_time_out
        self.idle.speak_within_us = told_ms * US_PER_MS // 2 if told_ms else None
        return [OpenReceived(frame=frame)]

    def _take_undecodable(self, frame: Undecodable) -> list[Event]:
        if self.failed or self.state.discards:
            return []
        return [self.violated(frame.condition, frame.fault)]

    def _take_close(self, frame: Close) -> list[Event]:
        state = next_state(CONNECTION_TABLE, self.state, Input.RECV_CLOSE)
        if state is None:
            return [self._out_of_turn("close")]
        self.state = state
        self.error = self.error or frame.error
        sessions = tuple(self.sessions)
        self.drop_sessions()
        return [CloseReceived(error=frame.error, sessions=sessions)]

    def _take_begin(self, channel: int, frame: Begin) -> Taken:
        if channel in self.remote_channels:
            text = f"begin on channel {channel}, on which a session runs"
            return [self.violated(ErrorCondition.ILLEGAL_STATE, text)], None, None
        session: Session | None
        if frame.remote_channel is None:
            if len(self.channels) > self.remote_channel_max:
                text = (
                    f"begin on channel {channel} can have no answer: {len(self.channels)} channels "
                    f"are in use, and the peer's channel-max is {self.remote_channel_max}"
                )
                fault = self.violated(ErrorCondition.RESOURCE_LIMIT_EXCEEDED, text)
                return [fault], None, None
            session = self.new_session()
        else:
            session = self.awaiting(frame.remote_channel)
            if session is None:
                text = (
                    f"begin answers channel {frame.remote_channel}, on which this end awaits no "
                    "begin"
                )
                return [self.violated(ErrorCondition.INVALID_FIELD, text)], None, None
        state = SESSION_TABLE[session.state][Input.RECV_BEGIN]  # where it is awaited it is legal
        by_peer = state is SessionState.BEGIN_RCVD
        session.state = state
        session.remote_channel = channel
        session.remote_handle_max = UINT_MAX if frame.handle_max is None else frame.handle_max
        session.counters.begun(frame.next_outgoing_id, frame.incoming_window, frame.outgoing_window)
        self.remote_channels[channel] = session
        if session.state.discards:
            return [], session, None
        return [SessionBegun(session=session, frame=frame, by_peer=by_peer)], session, None

    def _take_end(self, session: Session, frame: Any) -> Taken:
        state = next_state(SESSION_TABLE, session.state, Input.RECV_END)
        if state is None:
            text = f"end came for a session in state {session.state.value}"
            return [self.violated(ErrorCondition.ILLEGAL_STATE, text)], session, None
        by_peer = state is SessionState.END_RCVD
        session.state = state
        session.error = session.error or frame.error
        links = tuple(session.links)
        session.drop_links()
        assert session.remote_channel is not None
        del self.remote_channels[session.remote_channel]
        self.forget_session(session)
        event = SessionEnded(session=session, error=frame.error, by_peer=by_peer, links=links)
        return [event], session, None

    # -- answers --------------------------------------------------------------------------------

    def _answer_header(self, event: HeaderReceived) -> None:
        if event.header.protocol_id == SASL_PROTOCOL:
            if not self.sasl_header_sent:
                self.send_sasl_header()
            return
        self._say_hello()

    def _say_hello(self) -> None:
        """Sends the AMQP header if it is due, and a client's open behind it."""
        if self._allows(Input.SEND_HEADER):
            self.send_header()
            if self.is_client and not self.settings.pipeline_open:
                return
        if self.is_client and self._allows(Input.SEND_OPEN):
            self.send_open()

    def _answer_refused(self, event: HeaderRefused) -> None:
        if not self.is_client:
            self.emit_item(event.wanted)

    def _answer_sasl(self, event: SaslReceived) -> None:
        if not self.sasl_header_sent:
            self.send_sasl_header()
        while self.sasl_replies:
            self.emit_item(Frame(0, self.sasl_replies.pop(0)))

    def _answer_sasl_finished(self, event: SaslFinished) -> None:
        if event.code is not SaslCode.OK:
            self.abandon()
        elif self.is_client:
            self._say_hello()

    def _answer_open(self, event: OpenReceived) -> None:
        if self._allows(Input.SEND_HEADER):
            self.send_header()
        if self._allows(Input.SEND_OPEN):
            self.send_open()

    def _fail(self, error: Error | None) -> None:
        """Closes; what has to be said before a close is said first [2.4.3]."""
        if self.state is ConnectionState.START:
            self.error = self.error or error
            if not self._in_sasl():
                self.emit_item(ProtocolHeader())
            self.abandon()
            return
        if self._allows(Input.SEND_HEADER):
            self.send_header()
        if self._allows(Input.SEND_OPEN):
            self.send_open()
        if self._allows(Input.SEND_CLOSE):
            self.close(error)

    def _in_sasl(self) -> bool:
        return self.sasl is not None and self.sasl.code is not SaslCode.OK

    def _allows(self, step: Input) -> bool:
        return step in CONNECTION_TABLE[self.state]

    def _answer_begin(self, event: SessionBegun) -> None:
        if event.by_peer:
            event.session.answer_begin()

    def _answer_stolen(self, event: LinkStolen) -> None:
        text = f"link {event.link.name} was attached anew [2.6.1]"
        event.link.finish(closed=True, error=Error(ErrorCondition.STOLEN, text))

    def _answer_detach(self, event: LinkDetached) -> None:
        event.link.finish(closed=event.closed, error=None)
        event.link.session.regrant()  # what came for it before may have been discarded

    def _answer_transfer(self, event: DeliveryReceived | PartReceived | DeliveryAborted) -> None:
        event.link.session.regrant()

    def _answer_violation(self, event: ProtocolViolation) -> None:
        if event.scope is Scope.LINK and event.link is not None:
            event.link.finish(closed=True, error=event.error)
            event.link.session.regrant()  # a transfer that broke a rule has used the window, too
        elif event.scope is Scope.SESSION and event.session is not None:
            event.session.finish(event.error)
        else:
            self._fail(event.error)

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self, now_us: int) -> int | None:
        """When `on_deadline` wants to be called, in microseconds, or None.

        To be asked after whatever was applied or sent at `now_us`: frames that came or went since
        the last call count as of now.
        """
        self.idle.see(self.frames_in, self.frames_out, now_us)
        return self.idle.next_deadline() if self.can_emit() else None

    def on_deadline(self, now_us: int) -> list[Event]:
        """Does what is due: sends a heartbeat; tells of a peer that has been silent too long."""
        self.idle.see(self.frames_in, self.frames_out, now_us)
        if self.idle.must_speak(now_us) and self.can_emit():
            self.emit_item(Frame(0))
            self.idle.see(self.frames_in, self.frames_out, now_us)
        silence = self.idle.silent_for_us(now_us)
        if silence is None or not self.can_emit():
            return []
        text = (
            f"nothing was heard for {silence // 1000} ms; idle-time-out is "
            f"{self.settings.idle_time_out_ms} ms, and twice that is the limit [2.4.5]"
        )
        return [self.violated(ErrorCondition.RESOURCE_LIMIT_EXCEEDED, text)]

    # -- for session and link -------------------------------------------------------------------

    def check_can_emit(self) -> None:
        """Raises an error unless this end may send a frame other than open and close.

        Raises:
            LocalProtocolError: it may not; the text says what is legal.
        """
        require(CONNECTION_TABLE, self.state, Input.SEND_FRAME, "the connection")

    def can_emit(self) -> bool:
        """Whether this end may send a frame other than open and close."""
        return self.state.sends

    def fitted(self, frame: Told) -> Told:
        """The frame that tells an error, with as much of its description as the peer takes.

        A frame may have max-frame-size octets [2.7.1], and 512 before the peer's open.
        """
        error = frame.error
        if error is None or error.description is None:
            return frame
        over = FRAME_HEADER_SIZE + frame.size() - self.remote_max_frame_size
        if over <= 0:
            return frame
        octets = error.description.encode()
        kept = octets[: max(0, len(octets) - over - len(CUT))].decode(errors="ignore")
        return replace(frame, error=replace(error, description=kept + CUT))

    def fits(self, frame: Performative) -> bool:
        """Whether the peer takes a frame of that size, as far as this end measures."""
        if not self.settings.measures:
            return True
        return FRAME_HEADER_SIZE + frame.size() <= self.remote_max_frame_size

    def check_size(self, frame: Attach) -> None:
        """Raises an error if an attach is larger than the peer takes.

        Raises:
            FrameTooLargeError: it is.
        """
        if not self.fits(frame):
            octets = FRAME_HEADER_SIZE + frame.size()
            raise FrameTooLargeError(
                f"the attach of link {frame.name[:40]} has {octets} octets; the peer takes frames"
                f" of {self.remote_max_frame_size}"
            )

    def emit_item(self, item: WireItem) -> None:
        """Sends an item that concerns no session."""
        self.frames_out += 1
        self.last_out = (item, None, None)
        self.emit(item)

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


def _surely_small(kind: type | None, frame: Frame) -> bool:
    """Whether a frame cannot reach 512 octets, judged without measuring it."""
    said: Any = frame.performative
    if kind is Transfer:
        return len(frame.payload) <= SMALL_PAYLOAD and said.state is None
    if kind is Disposition:
        return type(said.state) in SMALL_STATES
    if kind is Flow:
        return said.properties is None
    return said is None


_TAKE: dict[type | None, Callable[..., list[Event]]] = {
    Open: Connection._take_open,
    Close: Connection._take_close,
    Undecodable: Connection._take_undecodable,
}

_ANSWERS: dict[type, Callable[[Connection, Any], None]] = {
    HeaderReceived: Connection._answer_header,
    HeaderRefused: Connection._answer_refused,
    SaslReceived: Connection._answer_sasl,
    SaslFinished: Connection._answer_sasl_finished,
    OpenReceived: Connection._answer_open,
    CloseReceived: lambda connection, event: connection._fail(None),
    SessionBegun: Connection._answer_begin,
    SessionEnded: lambda _, event: event.session.finish(None),
    LinkAttaching: lambda _, event: event.link.answer_attach(),
    LinkStolen: Connection._answer_stolen,
    LinkDetached: Connection._answer_detach,
    FlowReceived: lambda _, event: event.session.answer_flow(event),
    DeliveryReceived: Connection._answer_transfer,
    PartReceived: Connection._answer_transfer,
    DeliveryAborted: Connection._answer_transfer,
    DeliveriesUpdated: lambda _, event: event.session.answer_disposition(event),
    ProtocolViolation: Connection._answer_violation,
}
"""What is done about an event; about those that are not listed, nothing."""
