"""What RabbitMQ has against a client's frames, and how far that reaches.

The endpoint names a fault as the specification does. RabbitMQ has other conditions for some; many
that the specification would answer on the link end the session, for a session is one process that
dies of them; and some it does not notice (`rabbit_amqp_reader.erl`, `rabbit_amqp_session.erl`).
"""

from __future__ import annotations

from dataclasses import replace

from workbench.amqp.connection import Connection
from workbench.amqp.errors import ErrorCondition, Scope
from workbench.amqp.events import ProtocolViolation
from workbench.amqp.frame import Frame
from workbench.amqp.performatives import (
    Attach,
    Begin,
    Detach,
    Open,
    ReceiverSettleMode,
    Transfer,
)
from workbench.presets import Preset

from .management_link import is_management

MIN_IDLE_TIME_OUT_MS = 1000
VHOST_PREFIX, VHOST = "vhost:", "/"


def agreed_channel_max(amqp: Connection, frame: Open) -> int:
    """The highest channel: the client's, if it is lower than the broker's."""
    own = amqp.settings.channel_max
    return own if frame.channel_max is None else min(own, frame.channel_max)


def fault_of_open(amqp: Connection, frame: Open) -> ProtocolViolation | None:
    """What is wrong with a client's open."""
    idle = frame.idle_time_out
    if idle and idle < MIN_IDLE_TIME_OUT_MS:
        return amqp.violated(
            ErrorCondition.NOT_ALLOWED,
            f"idle-time-out ({idle} ms) < minimum idle-time-out ({MIN_IDLE_TIME_OUT_MS} ms)",
        )
    host = frame.hostname or ""
    if host.startswith(VHOST_PREFIX) and host.removeprefix(VHOST_PREFIX) != VHOST:
        return amqp.violated(
            ErrorCondition.UNAUTHORIZED_ACCESS,
            f"virtual host {host.removeprefix(VHOST_PREFIX)!r} does not exist; legal: {VHOST!r}",
        )
    return None


def rabbit_fault(
    event: ProtocolViolation, frame: Frame | None, amqp: Connection, preset: Preset
) -> ProtocolViolation | None:
    """A fault with RabbitMQ's condition and scope.

    Args:
        event: as the specification has it.
        frame: that broke the rule.
        amqp: the connection's endpoint.
        preset: of the broker.

    Returns:
        What is to be answered; None: RabbitMQ does not notice.
    """
    said = None if frame is None else frame.performative
    if event.scope is Scope.CONNECTION:
        return _of_connection(event, frame, said, amqp)
    if event.scope is Scope.LINK:
        return _of_link(event, said, preset)
    if isinstance(said, Detach) and event.condition is ErrorCondition.UNATTACHED_HANDLE:
        return None
    if event.condition is ErrorCondition.ERRANT_LINK:
        # A link that was detached with an error is forgotten at once: its handle is unknown.
        return replace(event, condition=ErrorCondition.UNATTACHED_HANDLE)
    return event


def _of_connection(
    event: ProtocolViolation, frame: Frame | None, said: object, amqp: Connection
) -> ProtocolViolation | None:
    if isinstance(said, Open) and event.condition is ErrorCondition.INVALID_FIELD:
        return replace(event, condition=ErrorCondition.FRAME_SIZE_TOO_SMALL)
    if event.session is not None and event.condition is ErrorCondition.FRAMING_ERROR:
        # A handle that is too high: the session's process looks at it.
        if isinstance(said, Attach):
            return replace(event, scope=Scope.SESSION)
        if isinstance(said, Detach):
            return None
        return replace(event, scope=Scope.SESSION, condition=ErrorCondition.UNATTACHED_HANDLE)
    if frame is None or not amqp.opened or event.condition is not ErrorCondition.ILLEGAL_STATE:
        return event
    session = amqp.remote_channels.get(frame.channel)
    if session is None:
        return None  # the reader drops what is for no session
    if isinstance(said, Begin):
        return replace(
            event, scope=Scope.SESSION, condition=ErrorCondition.INTERNAL_ERROR, session=session
        )
    return event


def _of_link(event: ProtocolViolation, said: object, preset: Preset) -> ProtocolViolation:
    link = event.link
    assert link is not None
    if event.condition is ErrorCondition.TRANSFER_LIMIT_EXCEEDED:
        if is_management(link):  # type: ignore[arg-type]
            return replace(event, scope=Scope.SESSION)
        return event
    if event.condition is ErrorCondition.MESSAGE_SIZE_EXCEEDED and preset.refuses_links:
        return event
    condition = event.condition
    if isinstance(said, Transfer):
        under_way = getattr(link, "receiving", None)
        if under_way is not None and said.delivery_id not in (None, under_way.delivery_id):
            condition = ErrorCondition.FRAMING_ERROR
        elif said.rcv_settle_mode is ReceiverSettleMode.SECOND and not said.settled:
            condition = ErrorCondition.NOT_IMPLEMENTED
    return replace(event, scope=Scope.SESSION, condition=condition)
