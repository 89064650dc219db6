"""Error conditions of AMQP 1.0 and the errors that this package raises.

There are two ways to be wrong. `LocalProtocolError`: this side asked for something that is not
legal now; nothing was sent and no counter moved. `RemoteProtocolError`: the peer broke a rule; it
carries the condition and the scope with which the specification wants it answered.
"""

from enum import Enum, StrEnum

from workbench.stream.cutter import UnreadableError


class Scope(Enum):
    """What an error ends: a link (detach), a session (end) or the connection (close)."""

    LINK = "link"
    SESSION = "session"
    CONNECTION = "connection"


class ErrorCondition(StrEnum):
    """The standard error conditions [AMQP 1.0, 2.8.15 to 2.8.18]; each value is the symbol sent.

    A condition is a string, so it may stand wherever a symbol is wanted.
    """

    # amqp-error [2.8.15]
    INTERNAL_ERROR = "amqp:internal-error"
    NOT_FOUND = "amqp:not-found"
    UNAUTHORIZED_ACCESS = "amqp:unauthorized-access"
    DECODE_ERROR = "amqp:decode-error"
    RESOURCE_LIMIT_EXCEEDED = "amqp:resource-limit-exceeded"
    NOT_ALLOWED = "amqp:not-allowed"
    INVALID_FIELD = "amqp:invalid-field"
    NOT_IMPLEMENTED = "amqp:not-implemented"
    RESOURCE_LOCKED = "amqp:resource-locked"
    PRECONDITION_FAILED = "amqp:precondition-failed"
    RESOURCE_DELETED = "amqp:resource-deleted"
    ILLEGAL_STATE = "amqp:illegal-state"
    FRAME_SIZE_TOO_SMALL = "amqp:frame-size-too-small"
    # connection-error [2.8.16]
    CONNECTION_FORCED = "amqp:connection:forced"
    FRAMING_ERROR = "amqp:connection:framing-error"
    CONNECTION_REDIRECT = "amqp:connection:redirect"
    # session-error [2.8.17]
    WINDOW_VIOLATION = "amqp:session:window-violation"
    ERRANT_LINK = "amqp:session:errant-link"
    HANDLE_IN_USE = "amqp:session:handle-in-use"
    UNATTACHED_HANDLE = "amqp:session:unattached-handle"
    # link-error [2.8.18]
    DETACH_FORCED = "amqp:link:detach-forced"
    TRANSFER_LIMIT_EXCEEDED = "amqp:link:transfer-limit-exceeded"
    MESSAGE_SIZE_EXCEEDED = "amqp:link:message-size-exceeded"
    LINK_REDIRECT = "amqp:link:redirect"
    STOLEN = "amqp:link:stolen"


class AmqpError(Exception):
    """Base of the errors of `workbench.amqp10`.

    Attributes:
        message: what is wrong, in the specification's words, with what would be legal.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class LocalProtocolError(AmqpError):
    """This side asked for something that is not legal; nothing was sent and nothing changed."""


class FrameTooLargeError(LocalProtocolError):
    """A frame that cannot be cut would be larger than the peer takes [2.7.1]."""


class RemoteProtocolError(AmqpError):
    """The peer broke a rule.

    Attributes:
        condition: the error condition to answer with.
        scope: whether the link, the session or the connection has to end.
        message: which rule, with the numbers seen.
    """

    def __init__(self, condition: ErrorCondition, scope: Scope, message: str) -> None:
        super().__init__(message)
        self.condition = condition
        self.scope = scope


class DecodeError(RemoteProtocolError, UnreadableError):
    """Octets that are not AMQP 1.0; ends the connection.

    Attributes:
        condition: `amqp:decode-error` for a bad value, `amqp:connection:framing-error` for a bad
            frame header, protocol header or frame size.
        reason: the message without the offset.
        offset: index of the offending octet. What it counts from is the decoded buffer, or for
            `FrameReader` the first octet of the stream.
        completed: what a `FrameReader` had completed in the call that failed (`RawItem`s).
    """

    def __init__(
        self,
        reason: str,
        offset: int = 0,
        condition: ErrorCondition = ErrorCondition.DECODE_ERROR,
    ) -> None:
        super().__init__(condition, Scope.CONNECTION, f"at octet {offset}: {reason}")
        self.reason = reason
        self.offset = offset

    def moved(self, by: int) -> "DecodeError":
        """The same error with its offset counted from a place `by` octets earlier."""
        return type(self)(self.reason, self.offset + by, self.condition)
