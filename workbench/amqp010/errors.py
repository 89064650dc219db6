"""What can go wrong, and how far it reaches: the connection, a session's transport, the session.

The codes are those of the specification's domains `connection.close-code`, `session.detach-code`
and `execution.error-code`.
"""

from enum import Enum, IntEnum

from workbench.stream.cutter import UnreadableError

__all__ = [
    "CloseCode",
    "DecodeError",
    "DetachCode",
    "ErrorCode",
    "LocalProtocolError",
    "Scope",
]


class CloseCode(IntEnum):
    """Why a connection is closed."""

    NORMAL = 200
    CONNECTION_FORCED = 320
    INVALID_PATH = 402
    FRAMING_ERROR = 501


class DetachCode(IntEnum):
    """Why a session is detached from its channel."""

    NORMAL = 0
    SESSION_BUSY = 1
    TRANSPORT_BUSY = 2
    NOT_ATTACHED = 3
    UNKNOWN_IDS = 4


class ErrorCode(IntEnum):
    """Why a command fails, and its session with it."""

    UNAUTHORIZED_ACCESS = 403
    NOT_FOUND = 404
    RESOURCE_LOCKED = 405
    PRECONDITION_FAILED = 406
    RESOURCE_DELETED = 408
    ILLEGAL_STATE = 409
    COMMAND_INVALID = 503
    RESOURCE_LIMIT_EXCEEDED = 506
    NOT_ALLOWED = 530
    ILLEGAL_ARGUMENT = 531
    NOT_IMPLEMENTED = 540
    INTERNAL_ERROR = 541
    INVALID_ARGUMENT = 542


class Scope(Enum):
    """What a fault ends.

    CONNECTION: the connection, by connection.close with a `CloseCode`. CHANNEL: the attachment to
    a channel alone, by session.detached with a `DetachCode`. SESSION: the session, by
    execution.exception with an `ErrorCode` and session.detach.
    """

    CONNECTION = "connection"
    CHANNEL = "channel"
    SESSION = "session"


class DecodeError(UnreadableError, ValueError):
    """Octets that cannot be read.

    Attributes:
        reason: what is wrong, with the values found and what is legal.
        offset: of the octet concerned, from the beginning of what was to be read.
        completed: items that were read before the fault, by a reader of streams.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} (octet {offset})")
        self.reason = reason
        self.offset = offset

    def moved(self, by: int) -> "DecodeError":
        """The same error with its offset counted from a place `by` octets earlier."""
        return type(self)(self.reason, self.offset + by)


class LocalProtocolError(Exception):
    """A call that is not legal now; nothing has changed. The text says what is legal."""
