"""What RabbitMQ has against a client's frames, and how far that reaches.

The endpoint names a fault as the specification does. RabbitMQ has other conditions for some; many
that the specification would answer on the link end the session, for a session is one process that
dies of them; and some it does not notice (`rabbit_amqp_reader.erl`, `rabbit_amqp_session.erl`). A
frame that its session has no clause for, or of which it trips over a field, ends the session with
internal-error. Before the client's open it answers nothing: it hangs up.
"""

from __future__ import annotations

from msgspec.structs import replace

from workbench.amqp10.composite import BY_DESCRIPTOR
from workbench.amqp10.connection import Connection
from workbench.amqp10.decoder import decode_value
from workbench.amqp10.errors import DecodeError, ErrorCondition, Scope
from workbench.amqp10.events import DeliveriesUpdated, ProtocolViolation
from workbench.amqp10.frame import Frame
from workbench.amqp10.link import is_terminal
from workbench.amqp10.messaging import SECTIONS, Modified
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    Flow,
    Open,
    ReceiverSettleMode,
    Role,
    Transfer,
    Undecodable,
)
from workbench.amqp10.session import Session
from workbench.amqp10.value_text import value_text
from workbench.amqp10.values import Described, MapPairs, Symbol, ULong
from workbench.presets import Preset

from .management_link import is_management

MIN_IDLE_TIME_OUT_MS = 1000
VHOST_PREFIX, VHOST = "vhost:", "/"

LEAST_FIELDS = {Flow.DESCRIPTOR: 4, Transfer.DESCRIPTOR: 1, Disposition.DESCRIPTOR: 2}
"""`amqp10_composite.erl` reads no shorter lists of these; others may be as short as they like."""


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


def fault_of_outcome(event: DeliveriesUpdated) -> ProtocolViolation | None:
    """What is wrong with a client's disposition.

    Nothing is looked at while the session has no unsettled deliveries for the client.

    Args:
        event: what the client said.
    """
    session, state = event.session, event.state
    if event.role is not Role.RECEIVER:
        return session.violated(
            ErrorCondition.INTERNAL_ERROR,
            "a disposition of a publisher, which nothing here expects; legal: role receiver",
        )
    if not event.deliveries and not session.outgoing:
        return None
    if not is_terminal(state):
        return session.violated(
            ErrorCondition.INVALID_FIELD,
            f"{value_text(state)} is no outcome; legal here: accepted, rejected, released,"
            " modified",
        )
    annotations = state.message_annotations if isinstance(state, Modified) else None
    given = () if annotations is None else annotations.items()
    reserved = [key for key, _ in given if not str(key).startswith("x-")]
    if reserved:
        return session.violated(
            ErrorCondition.INTERNAL_ERROR,
            f"modified has the message-annotation {value_text(reserved[0])}; legal: names that"
            " begin with x-",
        )
    if event.frame.settled is None:
        return session.violated(
            ErrorCondition.INTERNAL_ERROR,
            "a disposition leaves settled out; legal here: true or false",
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
    if frame is not None and type(said) is Undecodable:
        return _of_undecodable(event, frame.channel, said, amqp)
    if event.scope is Scope.CONNECTION:
        return _of_connection(event, frame, said, amqp)
    if event.scope is Scope.LINK:
        return _of_link(event, said, preset)
    return _of_session(event, said)


def _of_undecodable(
    event: ProtocolViolation, channel: int, said: Undecodable, amqp: Connection
) -> ProtocolViolation | None:
    """The reader closes for what it cannot read; the rest goes to the session, which trips."""
    crash = replace(event, condition=ErrorCondition.INTERNAL_ERROR)
    descriptor = _descriptor_of(said.octets)
    if descriptor is None or descriptor in _BY_READER:
        return crash
    session = amqp.remote_channels.get(channel)
    if session is not None:
        return replace(crash, scope=Scope.SESSION, session=session)
    return crash if descriptor in _BEGIN else None


_BEGIN = (Begin.DESCRIPTOR, Begin.SYMBOL)
_BY_READER = (Open.DESCRIPTOR, Open.SYMBOL)
_NOT_DESCRIBED = "not described"


def _descriptor_of(body: bytes) -> object | None:
    """The descriptor of what the reader makes of a body; None if it makes nothing of it."""
    try:
        value, _ = decode_value(body, 0, len(body))
    except DecodeError:
        return None
    if not isinstance(value, Described):
        return _NOT_DESCRIBED
    descriptor, fields = value.descriptor, value.value
    if not isinstance(descriptor, ULong | Symbol):
        return None
    kind = BY_DESCRIPTOR.get(descriptor)
    if kind is None:
        return descriptor if descriptor in SECTIONS else None
    if not isinstance(fields, list):
        return descriptor if isinstance(fields, dict | MapPairs) else None
    least = LEAST_FIELDS.get(kind.DESCRIPTOR, 0)
    return descriptor if least <= len(fields) <= len(kind.FIELDS) else None


def _of_connection(
    event: ProtocolViolation, frame: Frame | None, said: object, amqp: Connection
) -> ProtocolViolation | None:
    if event.session is not None and event.condition is ErrorCondition.FRAMING_ERROR:
        # A handle that is too high: the session's process looks at it.
        if isinstance(said, Attach):
            return replace(event, scope=Scope.SESSION)
        if isinstance(said, Detach):
            return None
        return replace(event, scope=Scope.SESSION, condition=ErrorCondition.UNATTACHED_HANDLE)
    crash = replace(event, condition=ErrorCondition.INTERNAL_ERROR)
    if isinstance(said, Open):
        return crash  # a second one: no clause
    if isinstance(said, Begin) and event.condition is ErrorCondition.INVALID_FIELD:
        return crash  # it answers a begin, and the broker begins no sessions
    if frame is None or not amqp.opened or event.condition is not ErrorCondition.ILLEGAL_STATE:
        return event
    session = amqp.remote_channels.get(frame.channel)
    if session is None:
        return None  # the reader drops what is for no session
    if isinstance(said, Begin):
        return replace(crash, scope=Scope.SESSION, session=session)
    return event


def _of_session(event: ProtocolViolation, said: object) -> ProtocolViolation | None:
    if isinstance(said, Detach) and event.condition is ErrorCondition.UNATTACHED_HANDLE:
        return None
    if event.condition is not ErrorCondition.INVALID_FIELD:
        return event
    if isinstance(said, Disposition) and said.role is Role.RECEIVER and not _awaits(event.session):
        return None
    # A transfer without delivery-id, or with one that is in use; an attach without
    # initial-delivery-count; a range that ends before it begins.
    return replace(event, condition=ErrorCondition.INTERNAL_ERROR)


def _awaits(session: Session | None) -> bool:
    """Whether the client has deliveries to settle."""
    return session is not None and bool(session.outgoing)


def _of_link(event: ProtocolViolation, said: object, preset: Preset) -> ProtocolViolation | None:
    link, condition = event.link, event.condition
    assert link is not None
    if isinstance(said, Flow):
        if not link.is_sender:
            return None  # it tells of messages that wait at the publisher: nobody listens
        return replace(event, scope=Scope.SESSION, condition=ErrorCondition.INTERNAL_ERROR)
    if isinstance(said, Transfer):
        if link.is_sender:
            condition = ErrorCondition.UNATTACHED_HANDLE
        elif is_management(link):  # type: ignore[arg-type]
            if condition is ErrorCondition.INVALID_FIELD:
                condition = ErrorCondition.INTERNAL_ERROR
        elif condition is ErrorCondition.TRANSFER_LIMIT_EXCEEDED:
            return event
        elif said.rcv_settle_mode is ReceiverSettleMode.SECOND and not said.settled:
            condition = ErrorCondition.NOT_IMPLEMENTED
            if preset.refuses_links:
                return replace(event, condition=condition)
        elif condition is ErrorCondition.INVALID_FIELD:
            if preset.refuses_links:
                return event
            condition = ErrorCondition.FRAMING_ERROR
    return replace(event, scope=Scope.SESSION, condition=condition)


def undefined_sum(name: str, number: int, to: str, most: int) -> str:
    """Why a session dies of a number that is too large (`serial_number:add`, RFC 1982).

    Args:
        name: of the field.
        number: that came in it.
        to: what it is added to.
        most: the largest that can be added.
    """
    return (
        f"{name} {number} cannot be added to {to}: undefined serial addition; legal: up to {most}"
    )
