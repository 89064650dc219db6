"""What the specification wants done about an event.

One function per event; those of which nothing has to be done are not listed. An answer that is no
longer possible is left undone: between an event and its answer the owner may have ended things.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.amqp.delivery import OutgoingDelivery, is_terminal
from workbench.amqp.errors import ErrorCondition, Scope
from workbench.amqp.events import (
    CloseReceived,
    DeliveriesUpdated,
    DeliveryAborted,
    DeliveryReceived,
    Event,
    FlowReceived,
    HeaderReceived,
    HeaderRefused,
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
from workbench.amqp.frame import SASL_PROTOCOL, Frame, ProtocolHeader
from workbench.amqp.performatives import Error, Role, SaslCode
from workbench.amqp.sender import SenderLink
from workbench.amqp.settlement import runs
from workbench.amqp.states import (
    CONNECTION_TABLE,
    LINK_TABLE,
    SESSION_TABLE,
    ConnectionState,
    Input,
    LinkState,
)

if TYPE_CHECKING:
    from workbench.amqp.connection import Connection
    from workbench.amqp.link import Link
    from workbench.amqp.session import Session

__all__ = ["answer"]


def answer(connection: Connection, event: Event) -> None:
    """Answers an event of this connection."""
    handler = _ANSWERS.get(type(event))
    if handler is not None:
        handler(connection, event)


# -- connection ---------------------------------------------------------------------------------


def _header(connection: Connection, event: HeaderReceived) -> None:
    if event.header.protocol_id == SASL_PROTOCOL:
        if not connection.sasl_header_sent:
            connection.send_sasl_header()
        return
    _say_hello(connection)


def _say_hello(connection: Connection) -> None:
    """Sends the AMQP header if it is due, and a client's open behind it."""
    if _allows(connection, Input.SEND_HEADER):
        connection.send_header()
        if connection.is_client and not connection.settings.pipeline_open:
            return
    if connection.is_client and _allows(connection, Input.SEND_OPEN):
        connection.send_open()


def _refused(connection: Connection, event: HeaderRefused) -> None:
    if not connection.is_client:
        connection.emit_item(event.wanted)


def _sasl(connection: Connection, event: SaslReceived) -> None:
    if not connection.sasl_header_sent:
        connection.send_sasl_header()
    while connection.sasl_replies:
        connection.emit_item(Frame(0, connection.sasl_replies.pop(0)))


def _sasl_finished(connection: Connection, event: SaslFinished) -> None:
    if event.code is not SaslCode.OK:
        connection.abandon()
    elif connection.is_client:
        _say_hello(connection)


def _open(connection: Connection, event: OpenReceived) -> None:
    if _allows(connection, Input.SEND_HEADER):
        connection.send_header()
    if _allows(connection, Input.SEND_OPEN):
        connection.send_open()


def _close(connection: Connection, event: CloseReceived) -> None:
    _fail(connection, None)


def _fail(connection: Connection, error: Error | None) -> None:
    """Closes; what has to be said before a close is said first [2.4.3]."""
    if connection.state is ConnectionState.START:
        if not _in_sasl(connection):
            connection.emit_item(ProtocolHeader())
        connection.abandon()
        return
    if _allows(connection, Input.SEND_HEADER):
        connection.send_header()
    if _allows(connection, Input.SEND_OPEN):
        connection.send_open()
    if _allows(connection, Input.SEND_CLOSE):
        connection.close(error)


def _in_sasl(connection: Connection) -> bool:
    return connection.sasl is not None and connection.sasl.code is not SaslCode.OK


def _allows(connection: Connection, step: Input) -> bool:
    return step in CONNECTION_TABLE[connection.state]


# -- session ------------------------------------------------------------------------------------


def _begin(connection: Connection, event: SessionBegun) -> None:
    session = event.session
    if event.by_peer and Input.SEND_BEGIN in SESSION_TABLE[session.state] and _live(session):
        session.accept()


def _end(connection: Connection, event: SessionEnded) -> None:
    _end_session(event.session, None)


def _end_session(session: Session, error: Error | None) -> None:
    if not _live(session):
        return
    if Input.SEND_BEGIN in SESSION_TABLE[session.state] and session.channel is None:
        session.accept()
    if Input.SEND_END in SESSION_TABLE[session.state]:
        session.end(error)


def _live(session: Session) -> bool:
    return session in session.connection.sessions and session.connection.can_emit()


# -- link ---------------------------------------------------------------------------------------


def _attach(connection: Connection, event: LinkAttaching) -> None:
    link = event.link
    awaited = Input.SEND_ATTACH in LINK_TABLE[link.state] and link.handle is None
    if awaited and link.session.can_emit():
        link.accept()


def _stolen(connection: Connection, event: LinkStolen) -> None:
    error = Error(
        condition=ErrorCondition.STOLEN,
        description=f"link {event.link.name} was attached anew [2.6.1]",
    )
    _detach_link(event.link, closed=True, error=error)


def _detach(connection: Connection, event: LinkDetached) -> None:
    _detach_link(event.link, closed=event.closed, error=None)


def _detach_link(link: Link, *, closed: bool, error: Error | None) -> None:
    if not link.session.can_emit():
        return
    if link.state is LinkState.ATTACH_RCVD and error is not None:
        link.refuse(error)
        return
    if link.state is LinkState.DETACH_RCVD and link.handle is None:
        link.accept()  # type: ignore[attr-defined]
    if Input.SEND_DETACH in LINK_TABLE[link.state]:
        link.detach(closed=closed or None, error=error)


def _flow(connection: Connection, event: FlowReceived) -> None:
    session, link = event.session, event.link
    if not session.can_emit():
        return
    session.pump()
    told = isinstance(link, SenderLink) and _drain(link)
    if event.frame.echo and not told:
        if link is None:
            session.flow()
        elif Input.SEND_FRAME in LINK_TABLE[link.state]:
            link.flow()


def _drain(link: SenderLink) -> bool:
    """Gives credit back if that is asked and nothing is there to send; returns whether it did."""
    if not link.attached or not link.drain or link.credit == 0 or link.available > 0:
        return False
    link.drained()
    return True


def _transfer(
    connection: Connection, event: DeliveryReceived | PartReceived | DeliveryAborted
) -> None:
    event.link.session.regrant()


def _updated(connection: Connection, event: DeliveriesUpdated) -> None:
    if event.role is not Role.RECEIVER or event.settled or not is_terminal(event.state):
        return
    if not event.session.can_emit():
        return
    waiting = [
        delivery
        for delivery in event.deliveries
        if isinstance(delivery, OutgoingDelivery)
        and not delivery.settled
        and delivery.link.attached
    ]
    for first, last, link in runs(waiting):
        link.settle(first, last, state=event.state)


def _violation(connection: Connection, event: ProtocolViolation) -> None:
    if event.scope is Scope.LINK and event.link is not None:
        _detach_link(event.link, closed=True, error=event.error)
    elif event.scope is Scope.SESSION and event.session is not None:
        _end_session(event.session, event.error)
    else:
        _fail(connection, event.error)


_ANSWERS: dict[type, Callable[[Connection, Any], None]] = {
    HeaderReceived: _header,
    HeaderRefused: _refused,
    SaslReceived: _sasl,
    SaslFinished: _sasl_finished,
    OpenReceived: _open,
    CloseReceived: _close,
    SessionBegun: _begin,
    SessionEnded: _end,
    LinkAttaching: _attach,
    LinkStolen: _stolen,
    LinkDetached: _detach,
    FlowReceived: _flow,
    DeliveryReceived: _transfer,
    PartReceived: _transfer,
    DeliveryAborted: _transfer,
    DeliveriesUpdated: _updated,
    ProtocolViolation: _violation,
}
