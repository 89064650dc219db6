"""One end of a connection: headers, log-in, limits, channels, and the sessions on them.

The rules of this file:

* `apply` works a frame of the peer into the state and returns events. It sends nothing, so that an
  observer can read the counters between a frame and what it causes.
* `answer` does what the specification asks for after an event.
* Whatever this end sends goes through `emit`, once per frame, after the state for it is up to date.
* There is no clock. Heartbeats are offered by nobody here, and heard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .assembler import Assembled, Assembler
from .composite import Command, Control
from .controls import (
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionHeartbeat,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    SessionAttach,
    SessionDetach,
    SessionDetached,
)
from .credit import subscription_name
from .errors import CloseCode, DecodeError, DetachCode, LocalProtocolError, Scope
from .events import (
    CloseReceived,
    ControlReceived,
    Event,
    HeaderReceived,
    Heartbeat,
    SessionAttaching,
    Violation,
)
from .frame import (
    LARGEST_FRAME_SIZE,
    MIN_MAX_FRAME_SIZE,
    Frame,
    Headers,
    ProtocolHeader,
    SegmentType,
    WireItem,
    control_frame,
    frames_of,
)
from .scope import NOWHERE, ItemScope
from .session import Session
from .states import CLIENT, CONNECTION_TABLE, SERVER, SPEAKERS, ConnectionState, SessionState

__all__ = ["Connection", "ConnectionSettings"]

LOCALE = "en_US"


def anybody(mechanism: str, response: bytes) -> str | None:
    """Lets everybody in; the user is whoever the response names."""
    return response.split(b"\0")[-2].decode(errors="replace") if b"\0" in response else mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """What an end chooses.

    Attributes:
        max_frame_size: octets of a frame that it takes, 4096 to 65535.
        channel_max: the highest channel.
        unfinished_octets: that commands may hold whose last frame has not come.
        first_command: the id of the first command that it sends on a session.
        properties: that it tells of itself.
        mechanisms: of SASL, that a server offers.
        mechanism: that a client chooses.
        response: that a client gives with it.
        virtual_host: that a client opens.
    """

    max_frame_size: int = LARGEST_FRAME_SIZE
    channel_max: int = 32767
    unfinished_octets: int = 67_108_864
    first_command: int = 0
    properties: Mapping[str, Any] = field(default_factory=dict)
    mechanisms: tuple[str, ...] = ("ANONYMOUS", "PLAIN")
    mechanism: str = "ANONYMOUS"
    response: bytes = b""
    virtual_host: str = "/"

    def __post_init__(self) -> None:
        """Refuse a size of frames that no peer takes."""
        if not MIN_MAX_FRAME_SIZE <= self.max_frame_size <= LARGEST_FRAME_SIZE:
            raise LocalProtocolError(
                f"max-frame-size {self.max_frame_size}; legal: {MIN_MAX_FRAME_SIZE} to"
                f" {LARGEST_FRAME_SIZE}"
            )


class Connection:
    """One end of an AMQP 0-10 connection, client or server alike.

    Args:
        is_client: this end speaks first.
        emit: called with each header or frame that this end sends.
        settings: of this end.
        login: of a server: given mechanism and response, who the user is; None: not let in.

    Attributes:
        state: of the conversation.
        channels: sessions by channel.
        remote_max_frame_size: octets of a frame that the peer takes.
        user: who the client is.
        properties: that the peer told of itself.
        error: why the connection was closed, code and text; None: it was not, or normally.
    """

    def __init__(
        self,
        *,
        is_client: bool,
        emit: Callable[[WireItem], None],
        settings: ConnectionSettings | None = None,
        login: Callable[[str, bytes], str | None] = anybody,
    ) -> None:
        self.is_client = is_client
        self.settings = settings or ConnectionSettings()
        self.state = ConnectionState.START
        self.channels: dict[int, Session] = {}
        self.remote_max_frame_size = MIN_MAX_FRAME_SIZE
        self.user: str | None = None
        self.properties: Mapping[str, Any] = {}
        self.error: tuple[int, str] | None = None
        self._emit = emit
        self._login = login
        self._ordinal = 0
        self._assembler = Assembler(self.settings.unfinished_octets)

    @property
    def opened(self) -> bool:
        """The conversation has come to open-ok, and no close."""
        return self.state is ConnectionState.OPENED

    @property
    def ended(self) -> bool:
        """Nothing more will be sent or understood."""
        return self.state is ConnectionState.END

    @property
    def unfinished_octets(self) -> int:
        """What has come of commands whose last frame has not."""
        return self._assembler.octets

    # -- sending --------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins: a client sends its header; a server waits for it."""
        if self.is_client:
            self._advance("header of the client", CLIENT)
            self._emit(ProtocolHeader())

    def attach(self, name: bytes, channel: int | None = None) -> Session:
        """Attaches a session to a channel; None takes the lowest that is free.

        Raises:
            LocalProtocolError: the connection is not open, or the channel or the name is taken.
        """
        if not self.opened:
            raise LocalProtocolError(
                f"the connection is {self.state.value}: no session can be attached; legal: when it"
                " is OPENED"
            )
        if channel is None:
            channel = next(n for n in range(len(self.channels) + 1) if n not in self.channels)
        taken = [one.name for one in self.channels.values()]
        if channel in self.channels or name in taken or channel > self.settings.channel_max:
            raise LocalProtocolError(
                f"session {name!r} on channel {channel}: one of the two is taken; attached:"
                f" {taken}, channels: {list(self.channels)}"
            )
        session = self._session(channel, name)
        session.attach()
        return session

    def send(
        self,
        channel: int,
        command: Command,
        headers: Headers | None = None,
        payload: bytes | None = None,
    ) -> None:
        """Sends the frames of a session's command."""
        size = self.remote_max_frame_size
        for frame in frames_of(channel, command, headers, payload, max_frame_size=size):
            self._emit(frame)

    def send_control(self, channel: int, control: Control) -> None:
        """Sends a control."""
        self._emit(control_frame(channel, control))

    def close(self, code: CloseCode = CloseCode.NORMAL, text: str = "") -> None:
        """Closes; what still comes is read over."""
        if self.state in (
            ConnectionState.CLOSE_SENT,
            ConnectionState.CLOSE_RCVD,
            ConnectionState.END,
        ):
            return
        if code is not CloseCode.NORMAL:
            self.error = code, text
        early = self.state in (ConnectionState.START, ConnectionState.HEADER)
        self.state = ConnectionState.END if early else ConnectionState.CLOSE_SENT
        self._leave_all()
        if not early:
            self.send_control(0, ConnectionClose(code, text.encode()[:255].decode(errors="ignore")))

    def scope(self, item: WireItem, outgoing: bool) -> ItemScope:
        """What a frame that was just sent or applied concerns, with this end's counters."""
        if isinstance(item, ProtocolHeader):
            return NOWHERE
        session = self.channels.get(item.channel)
        if session is None or not self.opened:
            return NOWHERE
        name = subscription_name(item.content, outgoing == self.is_client)
        found = session.subscriptions.get(name) if name is not None else None
        if found is None:
            return ItemScope(session.ordinal, ledger=session.ledger())
        return ItemScope(session.ordinal, name, True, session.ledger() | found.ledger())

    # -- what the peer says ---------------------------------------------------------------------

    def apply(self, item: WireItem) -> list[Event]:
        """Works a frame of the peer into the state; nothing is sent."""
        if self.ended:
            return []
        if isinstance(item, ProtocolHeader):
            return self._take_header(item)
        if self.state is ConnectionState.CLOSE_SENT:
            return self._take_late(item)
        if self.opened and item.segment_type != SegmentType.CONTROL:
            session = self.channels.get(item.channel)
            if session is None or not session.hears:
                return []  # As Qpid C++ does: who detached a session may not know of it yet.
        try:
            found = self._assembler.add(item)
        except DecodeError as error:
            return [self.violated(error.reason)]
        if found is None:
            return []
        if isinstance(found.method, Command):
            return self._take_command(found)
        if found.method.CODE >> 8 == 1:
            return self._take_line(found.method)
        return self._take_session_control(found.channel, found.method)

    def violated(self, reason: str) -> Violation:
        """The violation for octets or frames that cannot be."""
        return Violation(Scope.CONNECTION, CloseCode.FRAMING_ERROR, reason)

    def answer(self, event: Event) -> None:
        """Does what the specification asks for after an event."""
        match event:
            case HeaderReceived(header=header):
                self._answer_header(header)
            case ControlReceived(control=control):
                self._answer_line(control)
            case CloseReceived():
                self.state = ConnectionState.END
                self.send_control(0, ConnectionCloseOk())
            case SessionAttaching(session=session):
                session.accept()
            case Violation(scope=Scope.CONNECTION, code=code, reason=reason):
                self.close(CloseCode(code), reason)
            case Violation(scope=Scope.CHANNEL, code=code, name=name, channel=channel):
                self.send_control(channel, SessionDetached(name, code))
            case Violation(session=session):
                assert session is not None
                session.fail(event)
            case Heartbeat():
                pass
            case _:
                event.session.answer(event)

    def forget(self, session: Session) -> None:
        """A session is detached: its channel is free."""
        if self.channels.get(session.channel) is session:
            del self.channels[session.channel]
            self._assembler.forget(session.channel)

    def abandon(self) -> None:
        """The transport is gone, and every session with it."""
        self.state = ConnectionState.END
        self._leave_all()

    # -- inside ---------------------------------------------------------------------------------

    def _leave_all(self) -> None:
        for session in list(self.channels.values()):
            session.state = SessionState.DETACHED
            self.forget(session)

    def _session(self, channel: int, name: bytes) -> Session:
        self._ordinal += 1
        first = self.settings.first_command
        session = Session(self, channel, name, first=first, ordinal=self._ordinal)
        self.channels[channel] = session
        return session

    def _advance(self, line: str, speaker: str) -> bool:
        """Take the next step of the conversation, if this is one."""
        following = CONNECTION_TABLE[self.state].get(line)
        if following is None or SPEAKERS[line] != speaker:
            return False
        self.state = following
        return True

    def _take_header(self, header: ProtocolHeader) -> list[Event]:
        peer = SERVER if self.is_client else CLIENT
        if not self._advance(f"header of the {peer}", peer):
            return [self.violated("a second protocol header; legal: frames")]
        return [HeaderReceived(header)]

    def _answer_header(self, header: ProtocolHeader) -> None:
        if self.is_client:
            if not header.supported:
                self.state = ConnectionState.END
            return
        self._emit(ProtocolHeader())
        if not header.supported:
            self.state = ConnectionState.END
            return
        self._advance("header of the server", SERVER)
        self._line(
            ConnectionStart(dict(self.settings.properties), self.settings.mechanisms, (LOCALE,))
        )

    def _line(self, control: Control) -> None:
        self._advance(control.NAME, CLIENT if self.is_client else SERVER)
        self.send_control(0, control)

    def _take_line(self, control: Control) -> list[Event]:
        """A control of class connection."""
        match control:
            case ConnectionHeartbeat():
                return [Heartbeat()]
            case ConnectionClose(reply_code=code, reply_text=text):
                self.state = ConnectionState.CLOSE_RCVD
                if code != CloseCode.NORMAL:
                    self.error = code or 0, text or ""
                self._leave_all()
                return [CloseReceived(code or 0, text or "")]
        if not self._advance(control.NAME, SERVER if self.is_client else CLIENT):
            legal = " or ".join(CONNECTION_TABLE[self.state]) or "frames of sessions, or close"
            return [
                self.violated(f"{control.NAME} in state {self.state.value}; legal now: {legal}")
            ]
        if isinstance(control, ConnectionTune | ConnectionTuneOk):
            size = control.max_frame_size or LARGEST_FRAME_SIZE
            if size < MIN_MAX_FRAME_SIZE:
                why = f"max-frame-size is {size}; legal: {MIN_MAX_FRAME_SIZE} or more"
                return [self.violated(why)]
            self.remote_max_frame_size = size
        elif isinstance(control, ConnectionStartOk):
            self.properties = control.client_properties or {}
        elif isinstance(control, ConnectionStart):
            self.properties = control.server_properties or {}
        return [ControlReceived(control)]

    def _answer_line(self, control: Control) -> None:
        settings = self.settings
        match control:
            case ConnectionStart():
                self._line(
                    ConnectionStartOk(
                        dict(settings.properties), settings.mechanism, settings.response, LOCALE
                    )
                )
            case ConnectionStartOk(mechanism=mechanism, response=response):
                offered = mechanism in settings.mechanisms
                self.user = self._login(mechanism or "", response or b"") if offered else None
                if self.user is None:
                    self.close(CloseCode.CONNECTION_FORCED, "Authentication failed")
                else:
                    self._line(ConnectionTune(settings.channel_max, settings.max_frame_size, 0, 0))
            case ConnectionTune(channel_max=most):
                channels = min(settings.channel_max, settings.channel_max if most is None else most)
                self._line(ConnectionTuneOk(channels, settings.max_frame_size, 0))
                self._line(ConnectionOpen(settings.virtual_host))
            case ConnectionOpen():
                self._line(ConnectionOpenOk(()))

    def _take_late(self, frame: Frame) -> list[Event]:
        """After our close only the peer's word that it knows, or its own close, counts."""
        if isinstance(frame.content, ConnectionCloseOk):
            self.state = ConnectionState.END
        elif isinstance(frame.content, ConnectionClose):
            return [CloseReceived(frame.content.reply_code or 0, frame.content.reply_text or "")]
        return []

    def _early(self, name: str) -> list[Event]:
        return [self.violated(f"{name} before the connection is open (state {self.state.value})")]

    def _take_command(self, found: Assembled) -> list[Event]:
        if not self.opened:
            return self._early(found.method.NAME)
        return self.channels[found.channel].take_command(found)

    def _take_session_control(self, channel: int, control: Control) -> list[Event]:
        if not self.opened:
            return self._early(control.NAME)
        session = self.channels.get(channel)
        if isinstance(control, SessionAttach):
            return self._take_attach(channel, session, control)
        if session is not None:
            return session.take_control(control)
        if isinstance(control, SessionDetached):
            return []  # or two ends would tell each other for ever
        name = control.name if isinstance(control, SessionDetach) else None
        return [
            Violation(
                Scope.CHANNEL,
                DetachCode.NOT_ATTACHED,
                f"{control.NAME} on channel {channel}, to which no session is attached",
                channel=channel,
                name=name or b"",
                method=control.CODE,
            )
        ]

    def _take_attach(
        self, channel: int, session: Session | None, control: SessionAttach
    ) -> list[Event]:
        name = control.name or b""
        if channel > self.settings.channel_max:
            return [self.violated(f"channel is {channel}; legal: 0 to {self.settings.channel_max}")]
        fault = None
        if session is not None:
            if session.name == name:
                return []  # nothing changes [SessionHandler::attach]
            fault = DetachCode.TRANSPORT_BUSY, f"to channel {channel} is attached {session.name!r}"
        elif not control.force and any(one.name == name for one in self.channels.values()):
            fault = DetachCode.SESSION_BUSY, "it is attached to another channel"
        if fault is not None:
            return [
                Violation(
                    Scope.CHANNEL,
                    fault[0],
                    f"session {name!r} cannot be attached to channel {channel}: {fault[1]}",
                    channel=channel,
                    name=name,
                    method=SessionAttach.CODE,
                )
            ]
        session = self._session(channel, name)
        session.state = SessionState.ATTACH_RCVD
        return [SessionAttaching(session, control.force)]
