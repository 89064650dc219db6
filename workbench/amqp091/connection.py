"""One end of a connection: header, start, tune, open, close, heartbeats, and its channels [2.2.4].

The rules of this file:

* `apply` works a frame of the peer into the state and returns events. It sends nothing, so that an
  observer can read the counters between a frame and what it causes.
* Whatever this end sends goes through `emit`, once per frame, after the state for it is up to date.
* A call that is not legal now raises `LocalProtocolError` and changes nothing.
* There is no clock: time comes in as `now_us`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workbench.amqp091.channel import Channel
from workbench.amqp091.errors import DecodeError, LocalProtocolError, ReplyCode, Scope
from workbench.amqp091.events import (
    Event,
    HeaderReceived,
    HeaderRefused,
    Heartbeat,
    MethodReceived,
    PeerSilent,
    ProtocolViolation,
)
from workbench.amqp091.frame import (
    Frame,
    ProtocolHeader,
    Undecodable,
    WireItem,
    kind_of,
    lower_limit,
)
from workbench.amqp091.methods import (
    BY_BROKER,
    BY_CLIENT,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlow,
    ChannelFlowOk,
    ChannelOpen,
    ChannelOpenOk,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    ConnectionUnblocked,
    ConnectionUpdateSecret,
    ConnectionUpdateSecretOk,
    Method,
    Table,
)
from workbench.amqp091.scope import NOWHERE, ItemScope
from workbench.amqp091.settings import BLOCKED_CAPABILITY, ConnectionSettings
from workbench.amqp091.states import (
    CHANNEL_TABLE,
    CONNECTION_TABLE,
    HEADER,
    OTHER,
    ChannelState,
    ConnectionState,
    Step,
    next_state,
    require,
    step_of,
)
from workbench.stream.idle import IdleTimer

__all__ = ["Connection"]

CONNECTION_CLASS = 10
OPENED, END = ConnectionState.OPENED, ConnectionState.END
CLOSED = ConnectionState.CLOSED
CLOSING = frozenset((ConnectionState.CLOSE_SENT, ConnectionState.CLOSE_RCVD, CLOSED))
OPENING = frozenset((ConnectionState.TUNED, ConnectionState.OPEN_RCVD))
US_PER_S = 1_000_000

Taken = tuple[list[Event], Channel | None, str | None]
"""Events, and the channel and consumer that the frame concerns."""


class Connection:
    """One end of an AMQP 0-9-1 connection, client or server alike.

    Args:
        is_client: this end speaks first.
        emit: called with each header or frame that this end sends.
        settings: of this end.

    Attributes:
        state: of the connection.
        peer_properties: told by the peer in start or start-ok.
        mechanism: that the client has chosen; None until then.
        response: the client's, likewise: what it proves itself with.
        virtual_host: that the client opens; None until then.
        channel_max: most channels; 0: no limit. Like the next two, from tune-ok on.
        frame_max: largest frame, in octets; 0: no limit.
        heartbeat_s: seconds between heartbeats; 0: none.
        channels: those that have not been left by both ends, by number.
        blocked: why the broker takes no messages; None: it takes them.
        error: the close with which either end has ended it.
        idle: heartbeats; `idle.deaf` is set while this end does not read.
        frames_in: headers and frames received.
        frames_out: headers and frames sent.
    """

    def __init__(
        self,
        *,
        is_client: bool,
        emit: Callable[[WireItem], None],
        settings: ConnectionSettings | None = None,
    ) -> None:
        self.is_client = is_client
        self.emit = emit
        self.settings = settings or ConnectionSettings()
        self.state = ConnectionState.START
        self.peer_properties: Table | None = None
        self.mechanism: str | None = None
        self.response: bytes | None = None
        self.virtual_host: str | None = None
        self.channel_max = self.settings.channel_max
        self.frame_max = self.settings.least_frame_max
        self.heartbeat_s = 0
        self.channels: dict[int, Channel] = {}
        self.blocked: str | None = None
        self.error: ConnectionClose | None = None
        self.idle = IdleTimer()
        self.frames_in = 0
        self.frames_out = 0
        self._proposed: ConnectionTune | None = None
        self._ordinal = 0
        self._lowest = 1  # no lower number is free
        self._last_in: tuple[WireItem | None, Channel | None, str | None] = (None, None, None)
        self._last_out: tuple[WireItem | None, Channel | None, str | None] = (None, None, None)

    # -- life -----------------------------------------------------------------------------------

    @property
    def opened(self) -> bool:
        """open-ok was exchanged, and no close."""
        return self.state is OPENED

    @property
    def can_send(self) -> bool:
        """Channels may send: until this end has closed it, or answered the peer's close."""
        return (True, OTHER) in CONNECTION_TABLE[self.state]

    @property
    def ended(self) -> bool:
        """Nothing more will be sent or understood but closes: the transport can be dropped."""
        return self.state in (CLOSED, END)

    @property
    def peer_capabilities(self) -> frozenset[str]:
        """What the peer says it understands, such as `connection.blocked`."""
        found = (self.peer_properties or {}).get("capabilities")
        if not isinstance(found, Mapping):
            return frozenset()
        return frozenset(name for name, value in found.items() if value is True)

    def start(self) -> None:
        """Begins: a client sends its header; a server waits for it.

        Raises:
            LocalProtocolError: the connection has been started.
        """
        if self.is_client:
            self._step_out(HEADER, "protocol-header")
            self.emit_frame(ProtocolHeader())

    def send(self, method: Method) -> None:
        """Sends a method of class connection.

        Raises:
            LocalProtocolError: it is not legal now.
        """
        self.check_direction(method)
        self._step_out(step_of(method), method.NAME)
        handler = _SENT.get(type(method))
        if handler is not None:
            handler(self, method)
        self.emit_frame(Frame(0, method))

    def open_channel(self, number: int | None = None) -> Channel:
        """Opens a channel, as a client.

        Args:
            number: of the channel; None takes the lowest free one.

        Raises:
            LocalProtocolError: not legal now, or no number is free.
        """
        most = self.channel_max or 65535
        if len(self.channels) >= most:
            raise LocalProtocolError(f"{most} channels are open, and channel-max is {most}")
        if number is None:
            number = next(one for one in range(self._lowest, 65536) if one not in self.channels)
            self._lowest = number
        if number in self.channels or not 1 <= number <= 65535:
            raise LocalProtocolError(f"channel {number} is not free: 1 to 65535 are legal")
        channel = Channel(self, number, self._ordinal + 1)
        channel.send(ChannelOpen())
        self._ordinal += 1
        self.channels[number] = channel
        return channel

    def block(self, reason: str) -> bool:
        """Tells that no messages are taken, if the client understands it; as a server.

        Returns:
            Whether it was told.

        Raises:
            LocalProtocolError: the connection is not open.
        """
        return self._tell_blocked(ConnectionBlocked(reason=reason))

    def unblock(self) -> bool:
        """Tells that messages are taken again; as `block`."""
        return self._tell_blocked(ConnectionUnblocked())

    def _tell_blocked(self, method: Method) -> bool:
        if BLOCKED_CAPABILITY not in self.peer_capabilities:
            return False
        self.send(method)
        return True

    def close(
        self,
        code: ReplyCode = ReplyCode.REPLY_SUCCESS,
        text: str = "",
        method: tuple[int, int] = (0, 0),
    ) -> None:
        """Closes the connection; what still comes has no effect.

        Args:
            code: why.
            text: why, in words: the whole reply-text.
            method: class-id and method-id at fault.

        Raises:
            LocalProtocolError: it was not begun, or a close was sent or received.
        """
        class_id, method_id = method
        self.send(
            ConnectionClose(
                reply_code=code, reply_text=text, class_id=class_id, method_id=method_id
            )
        )

    def abandon(self) -> None:
        """The transport is gone: everything ends here, nothing is sent."""
        self.state = ConnectionState.END
        self.channels.clear()

    # -- exchange -------------------------------------------------------------------------------

    def apply(self, item: WireItem) -> list[Event]:
        """Works a header or frame of the peer into the state.

        Args:
            item: as a value.

        Returns:
            What it means, in order; nothing for a part of a message, and for what is dropped after
            a close. What the peer did wrong is a `ProtocolViolation` among them.
        """
        self.frames_in += 1
        events, channel, consumer = self._take(item)
        self._last_in = (item, channel, consumer)
        return events

    def undecodable(self, error: DecodeError) -> list[Event]:
        """What it means that a `FrameReader` cannot go on; the transport has to be dropped soon."""
        if self.state in (ConnectionState.START, ConnectionState.HEADER_SENT):
            self.state = ConnectionState.END
            return [HeaderRefused(header=None, wanted=self.settings.offered)]
        if self.state in (ConnectionState.CLOSE_SENT, CLOSED, END):
            return []
        return [ProtocolViolation(code=error.code, text=error.reason)]

    def answer(self, event: Event) -> None:
        """Does what every end has to do about an event; see the events for what that is.

        What is no longer possible, because the channel or connection has ended meanwhile, is left
        undone.
        """
        match event:
            case HeaderReceived():
                settings = self.settings
                self.send(
                    ConnectionStart(
                        server_properties=settings.properties,
                        mechanisms=settings.mechanisms.encode(),
                    )
                )
            case HeaderRefused() if not self.is_client:
                self.emit_frame(event.wanted)
            case PeerSilent():
                self.abandon()
            case ProtocolViolation():
                self._answer_violation(event)
            case MethodReceived():
                handler = _ANSWERS.get(type(event.method))
                if handler is not None:
                    handler(self, event)

    def scope(self, item: WireItem, outgoing: bool) -> ItemScope:
        """What the item just sent or applied concerns, and this end's counters there.

        To be asked within `emit`, or right after `apply`; for another item it knows nothing.
        """
        last, channel, consumer = self._last_out if outgoing else self._last_in
        if last is not item or channel is None:
            return NOWHERE
        return ItemScope(channel.ordinal, consumer, channel.ledger(consumer))

    # -- what comes -----------------------------------------------------------------------------

    def _take(self, item: WireItem) -> Taken:
        state = self.state
        if state is END:
            return [], None, None
        if type(item) is ProtocolHeader:
            return [self._take_header(item)], None, None
        payload = item.payload
        if item.channel == 0:
            return self._take_method0(item), None, None
        if state in CLOSING:
            return [], None, None
        if state is not OPENED or payload is None:
            return [self._unexpected(item)], None, None
        channel = self.channels.get(item.channel)
        if channel is None:
            if self.is_client:
                return [self._unexpected(item)], None, None
            most = self.channel_max
            if most and len(self.channels) >= most:
                text = (
                    f"number of channels opened ({most}) has reached the negotiated channel_max "
                    f"({most})"
                )
                return [self.violated(ReplyCode.NOT_ALLOWED, text)], None, None
            self._ordinal += 1
            channel = self.channels[item.channel] = Channel(self, item.channel, self._ordinal)
        events, consumer = channel.take(payload)
        return events, channel, consumer

    def _take_header(self, header: ProtocolHeader) -> Event:
        state = next_state(CONNECTION_TABLE, self.state, HEADER, sent=False)
        if self.is_client or header != ProtocolHeader() or state is None:
            self.state = ConnectionState.END
            return HeaderRefused(header=header, wanted=self.settings.offered)
        self.state = state
        return HeaderReceived(header=header)

    def _take_method0(self, item: Frame) -> list[Event]:
        payload = item.payload
        if payload is None:
            return [Heartbeat()]
        closing = self.state in CLOSING
        if not isinstance(payload, Method):
            if closing:
                return []
            if isinstance(payload, Undecodable):
                return [self.unreadable(payload)]
            return [self._unexpected(item)]
        step = step_of(payload)
        state = None
        if payload.numbers[0] == CONNECTION_CLASS and self.may_send(
            payload, from_client=not self.is_client
        ):
            state = next_state(CONNECTION_TABLE, self.state, step, sent=False)
        early = step is Step.CLOSE and not (self.opened or closing)
        if state is None or (early and self.settings.terse):
            if closing:
                return []
            text = f"unexpected method in connection state {self._word}"
            return [self.violated(ReplyCode.CHANNEL_ERROR, text, payload)]
        handler = _TAKEN.get(type(payload))
        fault = None if handler is None else handler(self, payload)
        if fault is not None:
            return [fault]
        self.state = state
        return [MethodReceived(None, payload)]

    def _take_start(self, method: ConnectionStart) -> None:
        self.peer_properties = method.server_properties

    def _take_start_ok(self, method: ConnectionStartOk) -> None:
        self.peer_properties = method.client_properties
        self.mechanism = method.mechanism
        self.response = method.response

    def _take_tune_ok(self, method: ConnectionTuneOk) -> ProtocolViolation | None:
        proposed = self._proposed
        assert proposed is not None
        least = self.settings.least_frame_max
        for name, value, most in (
            ("frame_max", method.frame_max, proposed.frame_max),
            ("channel_max", method.channel_max, proposed.channel_max),
        ):
            word, bound = ("higher", "maximum"), most
            if name == "frame_max" and 0 < value < least:
                word, bound = ("lower", "minimum"), least
            elif not most or 0 < value <= most:
                continue
            text = (
                f"negotiated {name} = {value} is {word[0]} than the {word[1]} allowed value "
                f"({bound})"
            )
            return self.violated(ReplyCode.NOT_ALLOWED, text, proposed)
        self._agree(method)
        return None

    def _agree(self, method: ConnectionTuneOk) -> None:
        self.channel_max = method.channel_max
        self.frame_max = method.frame_max
        self.heartbeat_s = method.heartbeat
        # As RabbitMQ does: this end speaks after half the time, and waits for twice as long.
        every_us = method.heartbeat * US_PER_S
        self.idle.speak_within_us = every_us // 2 or None
        self.idle.give_up_after_us = 2 * every_us or None

    def _take_open(self, method: ConnectionOpen) -> None:
        self.virtual_host = method.virtual_host

    def _take_close(self, method: ConnectionClose) -> None:
        self.error = self.error or method
        if not self.is_client:  # which ends the transport in its own time
            self.idle.give_up_after_us = None

    def _take_blocked(self, method: ConnectionBlocked) -> None:
        self.blocked = method.reason

    def _take_unblocked(self, method: ConnectionUnblocked) -> None:
        self.blocked = None

    # -- what goes out --------------------------------------------------------------------------

    def _step_out(self, step: Step, word: str) -> None:
        self.state = require(CONNECTION_TABLE, self.state, step, "the connection", word)

    def _propose(self, method: ConnectionTune) -> None:
        self._proposed = method

    def check_direction(self, method: Method) -> None:
        """Raises an error if only the other end may send a method.

        Raises:
            LocalProtocolError: so it is.
        """
        if not self.may_send(method, from_client=self.is_client):
            other = "broker" if self.is_client else "client"
            raise LocalProtocolError(f"{method.NAME} is sent by a {other}")

    def check_can_send(self, method: Method) -> None:
        """Raises an error unless this end may send a method of a channel now.

        Raises:
            LocalProtocolError: it may not; the text says what is legal.
        """
        self.check_direction(method)
        require(CONNECTION_TABLE, self.state, OTHER, "the connection", method.NAME)

    def may_send(self, method: Method, *, from_client: bool) -> bool:
        """Whether a client, or a broker, may send a method at all."""
        return type(method) not in (BY_BROKER if from_client else BY_CLIENT)

    def emit_frame(
        self, item: WireItem, channel: Channel | None = None, consumer: str | None = None
    ) -> None:
        """Sends a header or frame that concerns a channel and a consumer, or neither."""
        self.frames_out += 1
        self._last_out = (item, channel, consumer)
        self.emit(item)

    # -- answers --------------------------------------------------------------------------------

    def _answer_start(self, event: MethodReceived) -> None:
        settings = self.settings
        self._reply(
            ConnectionStartOk(
                client_properties=settings.properties,
                mechanism=settings.mechanism,
                response=settings.response,
            )
        )

    def _answer_start_ok(self, event: MethodReceived) -> None:
        settings = self.settings
        self._reply(
            ConnectionTune(
                channel_max=settings.channel_max,
                frame_max=settings.frame_max,
                heartbeat=settings.heartbeat_s,
            )
        )

    def _answer_tune(self, event: MethodReceived) -> None:
        proposed, settings = self._proposed, self.settings
        assert proposed is not None
        self._reply(
            ConnectionTuneOk(
                channel_max=lower_limit(proposed.channel_max, settings.channel_max),
                frame_max=lower_limit(proposed.frame_max, settings.frame_max),
                heartbeat=lower_limit(proposed.heartbeat, settings.heartbeat_s)
                if settings.heartbeat_s
                else 0,
            )
        )
        self._reply(ConnectionOpen(virtual_host=settings.virtual_host))

    def _answer_close(self, event: MethodReceived) -> None:
        self._reply(ConnectionCloseOk())
        if self.ended:
            self.channels.clear()

    def _answer_channel(self, event: MethodReceived) -> None:
        channel, method = event.channel, event.method
        assert channel is not None
        reply: Method
        if isinstance(method, ChannelOpen):
            reply = ChannelOpenOk()
        elif isinstance(method, ChannelClose):
            if channel.state is ChannelState.CLOSE_SENT and self.settings.close_frees:
                return
            reply = ChannelCloseOk()
        else:
            assert isinstance(method, ChannelFlow)
            if not self.is_client:
                return
            reply = ChannelFlowOk(active=method.active)
        if not self.can_send:
            return
        if (True, step_of(reply)) in CHANNEL_TABLE[channel.state]:
            channel.send(reply)
        elif isinstance(method, ChannelClose):  # a close that came behind the one just answered
            self.emit_frame(Frame(channel.number, reply), channel)

    def _reply(self, method: Method) -> None:
        """Sends a method of class connection, if that is still possible."""
        if (True, step_of(method)) in CONNECTION_TABLE[self.state]:
            self.send(method)

    def _answer_violation(self, event: ProtocolViolation) -> None:
        said = event.close
        numbers = said.class_id, said.method_id
        code = ReplyCode(said.reply_code)
        channel = event.channel
        if channel is not None and event.scope is Scope.CHANNEL:
            if self.can_send and (True, Step.CLOSE) in CHANNEL_TABLE[channel.state]:
                channel.close(code, said.reply_text, numbers)
        elif self.state is ConnectionState.CLOSE_SENT:
            return  # it ends already, and close-ok is all that is owed
        elif self.settings.terse and (event.undecodable or not self._tells):
            self.error = self.error or said
            self.abandon()
        elif (True, Step.CLOSE) in CONNECTION_TABLE[self.state]:
            self.close(code, said.reply_text, numbers)
        else:
            self.abandon()

    @property
    def _tells(self) -> bool:
        """Whether RabbitMQ says by connection.close what is wrong, as the connection is now."""
        return self.can_send or (self.settings.tells_opening and self.state in OPENING)

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self, now_us: int) -> int | None:
        """When `on_deadline` wants to be called, in microseconds, or None.

        To be asked after whatever was applied or sent at `now_us`: frames that came or went since
        the last call count as of now.
        """
        self.idle.see(self.frames_in, self.frames_out, now_us)
        return None if self.state is END else self.idle.next_deadline()

    def on_deadline(self, now_us: int) -> list[Event]:
        """Does what is due: sends a heartbeat; tells of a peer that has been silent too long."""
        self.idle.see(self.frames_in, self.frames_out, now_us)
        if self.state is END:
            return []
        if self.idle.must_speak(now_us):
            self.emit_frame(Frame(0))
            self.idle.see(self.frames_in, self.frames_out, now_us)
        silence = self.idle.silent_for_us(now_us)
        if silence is None:
            return []
        text = f"nothing was heard for {silence // 1000} ms; the heartbeat is {self.heartbeat_s} s"
        return [PeerSilent(text)]

    def forget(self, channel: Channel) -> None:
        """A channel that both ends have left is over; its number is free."""
        if self.channels.pop(channel.number, None) is not None:
            self._lowest = min(self._lowest, channel.number)

    # -- what is wrong --------------------------------------------------------------------------

    def violated(
        self, code: ReplyCode, text: str, method: Method | None = None
    ) -> ProtocolViolation:
        """The event for a rule of the connection that the peer broke."""
        numbers = (0, 0) if method is None else method.numbers
        return ProtocolViolation(code=code, text=text, method=numbers)

    def unreadable(self, payload: Undecodable) -> ProtocolViolation:
        """The event for a frame whose inside cannot be read."""
        return ProtocolViolation(
            code=payload.code, text=payload.fault, method=payload.numbers, undecodable=True
        )

    @property
    def _word(self) -> str:
        """The state, in RabbitMQ's words where they are told."""
        if self.state in OPENING:
            return "opening"
        return "running" if self.opened else self.state.value.lower()

    def _unexpected(self, item: Frame) -> ProtocolViolation:
        """A frame on a channel on which it cannot stand."""
        kind = kind_of(item)
        text = f"{kind} came on channel {item.channel}"
        if not self.opened:
            text += f" in connection state {self._word}"
        return self.violated(ReplyCode.UNEXPECTED_FRAME, text)


_TAKEN: dict[type[Method], Callable[..., ProtocolViolation | None]] = {
    ConnectionStart: Connection._take_start,
    ConnectionStartOk: Connection._take_start_ok,
    ConnectionTune: Connection._propose,
    ConnectionTuneOk: Connection._take_tune_ok,
    ConnectionOpen: Connection._take_open,
    ConnectionClose: Connection._take_close,
    ConnectionCloseOk: lambda connection, method: connection.channels.clear(),
    ConnectionBlocked: Connection._take_blocked,
    ConnectionUnblocked: Connection._take_unblocked,
}

_SENT: dict[type[Method], Callable[..., object]] = {
    ConnectionTune: Connection._propose,
    ConnectionTuneOk: Connection._agree,
    ConnectionOpen: Connection._take_open,
    ConnectionClose: Connection._take_close,
    ConnectionBlocked: Connection._take_blocked,
    ConnectionUnblocked: Connection._take_unblocked,
}
"""What a method of class connection changes, received and sent, beside the state."""

_ANSWERS: dict[type[Method], Callable[[Connection, MethodReceived], None]] = {
    ConnectionStart: Connection._answer_start,
    ConnectionStartOk: Connection._answer_start_ok,
    ConnectionTune: Connection._answer_tune,
    ConnectionOpen: lambda connection, event: connection._reply(ConnectionOpenOk()),
    # A password does not run out.
    ConnectionUpdateSecret: lambda connection, _: connection._reply(ConnectionUpdateSecretOk()),
    ConnectionClose: Connection._answer_close,
    ChannelOpen: Connection._answer_channel,
    ChannelClose: Connection._answer_channel,
    ChannelFlow: Connection._answer_channel,
}
"""What is done about a method; about those that are not listed, nothing."""
