"""Reply codes of AMQP 0-9-1 and the errors that this package raises [1.1, 2.2.5].

There are two ways to be wrong. `LocalProtocolError`: this side asked for something that is not
legal now; nothing was sent and no counter moved. What the peer does wrong is a
`events.ProtocolViolation`; a `FrameReader`, which knows no connection, raises `DecodeError`.
"""

from enum import Enum, IntEnum

from workbench.stream.cutter import UnreadableError

__all__ = ["AmqpError", "DecodeError", "LocalProtocolError", "ReplyCode", "Scope"]


class Scope(Enum):
    """What an error ends."""

    CHANNEL = "channel"
    CONNECTION = "connection"


class ReplyCode(IntEnum):
    """The codes of close and return; names as in a reply-text, `PRECONDITION_FAILED - ...`."""

    REPLY_SUCCESS = 200
    CONTENT_TOO_LARGE = 311
    NO_ROUTE = 312
    NO_CONSUMERS = 313
    CONNECTION_FORCED = 320
    INVALID_PATH = 402
    ACCESS_REFUSED = 403
    NOT_FOUND = 404
    RESOURCE_LOCKED = 405
    PRECONDITION_FAILED = 406
    FRAME_ERROR = 501
    SYNTAX_ERROR = 502
    COMMAND_INVALID = 503
    CHANNEL_ERROR = 504
    UNEXPECTED_FRAME = 505
    RESOURCE_ERROR = 506
    NOT_ALLOWED = 530
    NOT_IMPLEMENTED = 540
    INTERNAL_ERROR = 541

    @property
    def scope(self) -> Scope:
        """Whether it ends the channel or the connection: the "hard" and "soft" errors of 1.1."""
        return Scope.CHANNEL if self in _SOFT else Scope.CONNECTION


_SOFT = frozenset(
    (
        ReplyCode.CONTENT_TOO_LARGE, ReplyCode.NO_ROUTE, ReplyCode.NO_CONSUMERS,
        ReplyCode.ACCESS_REFUSED, ReplyCode.NOT_FOUND, ReplyCode.RESOURCE_LOCKED,
        ReplyCode.PRECONDITION_FAILED,
    )
)  # fmt: skip


class AmqpError(Exception):
    """Base of the errors of `workbench.amqp091`.

    Attributes:
        message: what is wrong, with what would be legal.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class LocalProtocolError(AmqpError):
    """This side asked for something that is not legal; nothing was sent and nothing changed."""


class DecodeError(AmqpError, UnreadableError):
    """Octets that are not AMQP 0-9-1; ends the connection.

    Attributes:
        code: `FRAME_ERROR` for what is no frame, `SYNTAX_ERROR` for a bad argument,
            `NOT_IMPLEMENTED` for a class or method that nobody has.
        reason: the message without the offset.
        offset: index of the offending octet. What it counts from is the decoded buffer, or for
            `FrameReader` the first octet of the stream.
        completed: what a `FrameReader` had completed in the call that failed (`RawItem`s).
    """

    def __init__(
        self, reason: str, offset: int = 0, code: ReplyCode = ReplyCode.SYNTAX_ERROR
    ) -> None:
        super().__init__(f"at octet {offset}: {reason}")
        self.code = code
        self.reason = reason
        self.offset = offset

    def moved(self, by: int) -> "DecodeError":
        """The same error with its offset counted from a place `by` octets earlier."""
        return type(self)(self.reason, self.offset + by, self.code)
