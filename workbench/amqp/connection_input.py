"""What a connection makes of a header or frame of the peer [2.2, 2.4, 5.3].

Nothing here sends anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from workbench.amqp import session_input
from workbench.amqp.errors import ErrorCondition, RemoteProtocolError
from workbench.amqp.events import (
    CloseReceived,
    Event,
    HeaderReceived,
    HeaderRefused,
    Heartbeat,
    OpenReceived,
    ProtocolViolation,
    SaslFinished,
    SaslReceived,
    SessionBegun,
    SessionEnded,
)
from workbench.amqp.frame import (
    AMQP_PROTOCOL,
    MIN_MAX_FRAME_SIZE,
    SASL_PROTOCOL,
    Frame,
    ProtocolHeader,
    WireItem,
    item_size,
)
from workbench.amqp.link import Link
from workbench.amqp.performatives import (
    SASL_FRAME,
    Begin,
    Close,
    End,
    Flow,
    Open,
    Performative,
    SaslCode,
    Transfer,
    Undecodable,
)
from workbench.amqp.quick import SMALL_PAYLOAD, take_settled
from workbench.amqp.sasl import SaslServer
from workbench.amqp.settings import UINT_MAX, USHORT_MAX
from workbench.amqp.states import (
    CONNECTION_TABLE,
    SESSION_TABLE,
    ConnectionState,
    Input,
    SessionState,
    legal_inputs,
    next_state,
)

if TYPE_CHECKING:
    from workbench.amqp.connection import Connection
    from workbench.amqp.session import Session

__all__ = ["receive"]

Outcome: TypeAlias = tuple[list[Event], "Session | None", Link | None]
"""Events, and the session and the link that the item concerns."""

ENDED = ConnectionState.END
DROPPING = (ConnectionState.CLOSE_SENT, ConnectionState.DISCARDING)


def receive(connection: Connection, item: WireItem) -> Outcome:
    """Takes in a header or frame."""
    if connection.state is ENDED:
        return [], None, None
    if isinstance(item, ProtocolHeader):
        return [_header(connection, item)], None, None
    performative = item.performative
    if type(performative) is Transfer:
        taken = take_settled(connection, item, performative)
        if taken is not None:
            return taken
    if performative is not None and performative.FRAME_TYPE == SASL_FRAME:
        return _sasl(connection, performative), None, None
    return _frame(connection, item)


# -- headers and SASL ---------------------------------------------------------------------------


def _header(connection: Connection, header: ProtocolHeader) -> Event:
    wanted = _wanted_header(connection)
    if header != wanted and not (header == ProtocolHeader() and _sasl_may_be_skipped(connection)):
        if connection.state not in (ConnectionState.START, ConnectionState.HDR_SENT):
            return connection.violated(
                ErrorCondition.FRAMING_ERROR, f"{header} came after the headers were exchanged"
            )
        connection.abandon()
        return HeaderRefused(header=header, wanted=wanted)
    if header.protocol_id == SASL_PROTOCOL:
        if connection.sasl_header_received:
            return connection.violated(ErrorCondition.FRAMING_ERROR, "a second SASL header came")
        connection.sasl_header_received = True
        return HeaderReceived(header=header)
    state = next_state(CONNECTION_TABLE, connection.state, Input.RECV_HEADER)
    if state is None:
        return _out_of_turn(connection, "header")
    connection.state = state
    return HeaderReceived(header=header)


def _wanted_header(connection: Connection) -> ProtocolHeader:
    """The header that the peer has to send next."""
    sasl = connection.sasl
    if sasl is None or sasl.code is SaslCode.OK:
        return ProtocolHeader(AMQP_PROTOCOL)
    return ProtocolHeader(SASL_PROTOCOL)


def _sasl_may_be_skipped(connection: Connection) -> bool:
    """Whether a client may begin with the AMQP header although this server offers SASL."""
    sasl = connection.sasl
    return (
        sasl is not None
        and isinstance(sasl.side, SaslServer)
        and not sasl.side.required
        and not connection.sasl_header_received
    )


def _sasl(connection: Connection, frame: Performative) -> list[Event]:
    exchange = connection.sasl
    if exchange is None or not connection.sasl_header_received:
        text = f"{frame.NAME} came without a SASL header before it"
        return [connection.violated(ErrorCondition.ILLEGAL_STATE, text)]
    try:
        reply = exchange.receive(frame)
    except RemoteProtocolError as error:
        return [connection.violated(error.condition, error.message)]
    if reply is not None:
        connection.sasl_replies.append(reply)
    events: list[Event] = [SaslReceived(performative=frame)]
    if exchange.code is not None:
        events.append(SaslFinished(code=exchange.code, user=exchange.user))
    return events


# -- frames -------------------------------------------------------------------------------------


def _frame(connection: Connection, frame: Frame) -> Outcome:
    performative = frame.performative
    fault = _too_large(connection, frame)
    if fault is not None:
        return [fault], None, None
    if type(performative) is Open:
        return _open(connection, performative), None, None
    if type(performative) is Close:
        return _close(connection, performative), None, None
    dropped = connection.state in DROPPING or connection.failed
    if type(performative) is Undecodable and not dropped:
        error = performative.error
        return [connection.violated(error.condition, error.message)], None, None
    if next_state(CONNECTION_TABLE, connection.state, Input.RECV_FRAME) is None:
        kind = "heartbeat" if performative is None else performative.NAME
        return [_out_of_turn(connection, kind)], None, None
    if dropped:
        return [], None, None
    if performative is None:
        return [Heartbeat()], None, None
    if frame.channel > connection.settings.channel_max:
        text = f"channel {frame.channel} is above channel-max {connection.settings.channel_max}"
        return [connection.violated(ErrorCondition.FRAMING_ERROR, text)], None, None
    if type(performative) is Begin:
        return _begin(connection, frame.channel, performative)
    session = connection.remote_channels.get(frame.channel)
    if session is None:
        text = f"{performative.NAME} came on channel {frame.channel}, on which no session is begun"
        return [connection.violated(ErrorCondition.ILLEGAL_STATE, text)], None, None
    if type(performative) is End:
        return _end(connection, session, performative)
    if session.state in (SessionState.END_SENT, SessionState.DISCARDING):
        return [], session, None
    if next_state(SESSION_TABLE, session.state, Input.RECV_FRAME) is None:
        text = f"{performative.NAME} came for a session in state {session.state.value}"
        return [connection.violated(ErrorCondition.ILLEGAL_STATE, text)], session, None
    events, link = session_input.receive(session, frame)
    return events, session, link


def _too_large(connection: Connection, frame: Frame) -> ProtocolViolation | None:
    limit = connection.settings.max_frame_size
    if connection.remote_open is None:
        limit = connection.settings.first_max_frame_size
    elif _surely_small(frame):
        return None
    size = item_size(frame)
    if size <= limit:
        return None
    return connection.violated(
        ErrorCondition.FRAMING_ERROR,
        f"a frame of {size} octets came; the largest accepted is {limit}",
    )


def _surely_small(frame: Frame) -> bool:
    """Whether a frame cannot reach 512 octets, judged without measuring it."""
    performative = frame.performative
    if isinstance(performative, Transfer):
        return len(frame.payload) <= SMALL_PAYLOAD and performative.state is None
    if isinstance(performative, Flow):
        return performative.properties is None
    return performative is None


def _out_of_turn(connection: Connection, kind: str) -> ProtocolViolation:
    legal = legal_inputs(CONNECTION_TABLE, connection.state, outgoing=False)
    return connection.violated(
        ErrorCondition.ILLEGAL_STATE,
        f"{kind} came in state {connection.state.value}; legal: "
        + (", ".join(step.words for step in legal) or "nothing until this end has spoken"),
    )


def _open(connection: Connection, frame: Open) -> list[Event]:
    state = next_state(CONNECTION_TABLE, connection.state, Input.RECV_OPEN)
    if state is None:
        return [_out_of_turn(connection, "open")]
    size: int = UINT_MAX if frame.max_frame_size is None else frame.max_frame_size
    if size < MIN_MAX_FRAME_SIZE:
        text = f"the open has max-frame-size {size}; the least is {MIN_MAX_FRAME_SIZE} [2.7.1]"
        return [connection.violated(ErrorCondition.INVALID_FIELD, text)]
    connection.state = state
    connection.remote_open = frame
    connection.remote_max_frame_size = size
    channel_max = USHORT_MAX if frame.channel_max is None else frame.channel_max
    connection.remote_channel_max = channel_max
    connection.idle.promise(frame.idle_time_out)
    return [OpenReceived(frame=frame)]


def _close(connection: Connection, frame: Close) -> list[Event]:
    state = next_state(CONNECTION_TABLE, connection.state, Input.RECV_CLOSE)
    if state is None:
        return [_out_of_turn(connection, "close")]
    connection.state = state
    connection.error = connection.error or frame.error
    sessions = tuple(connection.sessions)
    connection.drop_sessions()
    return [CloseReceived(error=frame.error, sessions=sessions)]


def _begin(connection: Connection, channel: int, frame: Begin) -> Outcome:
    if channel in connection.remote_channels:
        text = f"begin on channel {channel}, on which a session runs"
        return [connection.violated(ErrorCondition.ILLEGAL_STATE, text)], None, None
    session: Session | None
    if frame.remote_channel is None:
        session = connection.new_session()
    else:
        session = connection.awaiting(frame.remote_channel)
        if session is None:
            text = (
                f"begin answers channel {frame.remote_channel}, on which this end awaits no begin"
            )
            return [connection.violated(ErrorCondition.INVALID_FIELD, text)], None, None
    state = next_state(SESSION_TABLE, session.state, Input.RECV_BEGIN)
    assert state is not None, f"a begin is awaited in {session.state}"
    by_peer = state is SessionState.BEGIN_RCVD
    session.state = state
    session.remote_channel = channel
    session.remote_handle_max = UINT_MAX if frame.handle_max is None else frame.handle_max
    session.counters.begun(frame.next_outgoing_id, frame.incoming_window, frame.outgoing_window)
    connection.remote_channels[channel] = session
    if session.state in (SessionState.END_SENT, SessionState.DISCARDING):
        return [], session, None
    return [SessionBegun(session=session, frame=frame, by_peer=by_peer)], session, None


def _end(connection: Connection, session: Session, frame: End) -> Outcome:
    state = next_state(SESSION_TABLE, session.state, Input.RECV_END)
    if state is None:
        text = f"end came for a session in state {session.state.value}"
        return [connection.violated(ErrorCondition.ILLEGAL_STATE, text)], session, None
    by_peer = state is SessionState.END_RCVD
    session.state = state
    session.error = session.error or frame.error
    links = tuple(session.links)
    session.drop_links()
    assert session.remote_channel is not None
    del connection.remote_channels[session.remote_channel]
    connection.forget_session(session)
    event = SessionEnded(session=session, error=frame.error, by_peer=by_peer, links=links)
    return [event], session, None
