"""What a received frame meant: events, which the owner of an endpoint handles or has answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from .composite import Command, Composite, Control, UnknownStruct
from .errors import Scope
from .frame import Headers, ProtocolHeader
from .values import SequenceSet

if TYPE_CHECKING:
    from .credit import Subscription
    from .session import Session

__all__ = [
    "CloseReceived",
    "CommandReceived",
    "CommandsCompleted",
    "ControlReceived",
    "Event",
    "ExceptionReceived",
    "FlowReceived",
    "FlushReceived",
    "HeaderReceived",
    "Heartbeat",
    "Ready",
    "ResultReceived",
    "SessionAttaching",
    "SessionDetached",
    "SessionDetaching",
    "Violation",
]


class HeaderReceived(Struct, frozen=True, gc=False):
    """The peer's protocol header; answered with ours, also where it is another protocol's."""

    header: ProtocolHeader


class ControlReceived(Struct, frozen=True, gc=False):
    """A line of the conversation that opens a connection; the answer is the next line."""

    control: Control


class Heartbeat(Struct, frozen=True, gc=False):
    """The peer lives."""


class CloseReceived(Struct, frozen=True, gc=False):
    """The peer has closed; answered with close-ok."""

    code: int
    text: str


class SessionAttaching(Struct, frozen=True):
    """The peer attaches a session; answered with attached and command-point.

    Attributes:
        force: it wants the session even if that is attached already.
    """

    session: Session
    force: bool = False


class Ready(Struct, frozen=True):
    """A control that wants an answer of the session: flush, request-timeout, completed."""

    session: Session
    control: Control


class SessionDetaching(Struct, frozen=True):
    """The peer detaches a session; answered with detached."""

    session: Session


class SessionDetached(Struct, frozen=True):
    """A session is attached no more.

    Attributes:
        code: of the peer's detached.
    """

    session: Session
    code: int


class CommandReceived(Struct, frozen=True):
    """A command that the owner executes; the answer is to complete it without doing anything.

    Attributes:
        command_id: on this end's count, which does not wrap.
        content_octets: of header and body.
    """

    session: Session
    command_id: int
    command: Command
    headers: Headers | None = None
    payload: bytes | None = None
    content_octets: int = 0


class FlowReceived(Struct, frozen=True):
    """Credit of a subscription was changed, by flow, set-flow-mode or stop."""

    session: Session
    command_id: int
    subscription: Subscription


class FlushReceived(Struct, frozen=True):
    """A subscription wants what is there; then `Session.flushed` takes its credit away."""

    session: Session
    command_id: int
    subscription: Subscription


class CommandsCompleted(Struct, frozen=True):
    """The peer has executed commands of ours.

    Attributes:
        ranges: those that were incomplete before, first and last of each.
        known: those that it has told of, if it wants to hear that we know.
    """

    session: Session
    ranges: tuple[tuple[int, int], ...]
    known: SequenceSet | None = None


class ResultReceived(Struct, frozen=True):
    """What a command of ours has found out."""

    session: Session
    command_id: int
    result_of: int
    value: Composite | UnknownStruct | None


class ExceptionReceived(Struct, frozen=True):
    """A command of ours failed; the session is about to be detached."""

    session: Session
    command_id: int
    code: int
    description: str


class Violation(Struct, frozen=True):
    """The peer broke a rule; answered according to its scope.

    Attributes:
        scope: what ends.
        code: a `CloseCode`, `DetachCode` or `ErrorCode`.
        reason: in words, with what would have been legal.
        session: that ends; None for the connection, or where there is no session.
        channel: on which.
        name: of the session that could not be attached, or was not.
        command_id: of the command that failed.
        method: the command or control that failed, by code; 0: none.
    """

    scope: Scope
    code: int
    reason: str
    session: Session | None = None
    channel: int = 0
    name: bytes = b""
    command_id: int | None = None
    method: int = 0


Event: TypeAlias = (
    HeaderReceived
    | ControlReceived
    | Heartbeat
    | CloseReceived
    | SessionAttaching
    | Ready
    | SessionDetaching
    | SessionDetached
    | CommandReceived
    | FlowReceived
    | FlushReceived
    | CommandsCompleted
    | ResultReceived
    | ExceptionReceived
    | Violation
)
