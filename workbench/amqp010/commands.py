"""The commands of classes execution, message, exchange and queue [errata of Qpid, 2008]."""

from enum import IntEnum

from .composite import (
    Bit,
    Command,
    Commands,
    Map,
    SequenceNo,
    Str8,
    Str16,
    Struct32,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    command,
)

__all__ = [
    "UNLIMITED",
    "AcceptMode",
    "AcquireMode",
    "CreditUnit",
    "ExchangeBind",
    "ExchangeBound",
    "ExchangeDeclare",
    "ExchangeDelete",
    "ExchangeQuery",
    "ExchangeUnbind",
    "ExecutionException",
    "ExecutionResult",
    "ExecutionSync",
    "FlowMode",
    "MessageAccept",
    "MessageAcquire",
    "MessageCancel",
    "MessageFlow",
    "MessageFlush",
    "MessageReject",
    "MessageRelease",
    "MessageSetFlowMode",
    "MessageStop",
    "MessageSubscribe",
    "MessageTransfer",
    "QueueDeclare",
    "QueueDelete",
    "QueuePurge",
    "QueueQuery",
]

UNLIMITED = 0xFFFFFFFF
"""As the value of message.flow: credit without a limit."""


class AcceptMode(IntEnum):
    """Whether the receiver of a message is to accept it."""

    EXPLICIT = 0
    NONE = 1


class AcquireMode(IntEnum):
    """Whether a message is the receiver's as it comes, or is only looked at."""

    PRE_ACQUIRED = 0
    NOT_ACQUIRED = 1


class FlowMode(IntEnum):
    """How credit is used: up, or until the receiver has completed the transfer."""

    CREDIT = 0
    WINDOW = 1


class CreditUnit(IntEnum):
    """What credit counts."""

    MESSAGE = 0
    BYTE = 1


@command("execution.sync", 0x0301)
class ExecutionSync(Command, frozen=True, gc=False):
    """Completes when every command before it has."""


@command("execution.result", 0x0302)
class ExecutionResult(Command, frozen=True, gc=False):
    """What a command has found out."""

    command_id: SequenceNo = None
    value: Struct32 = None


@command("execution.exception", 0x0303)
class ExecutionException(Command, frozen=True, gc=False):
    """Why a command failed; the session ends with it."""

    error_code: UInt16 = None
    command_id: SequenceNo = None
    class_code: UInt8 = None
    command_code: UInt8 = None
    field_index: UInt8 = None
    description: Str16 = None
    error_info: Map = None


@command("message.transfer", 0x0401)
class MessageTransfer(Command, frozen=True, gc=False):
    """Carries a message: to an exchange, or to a subscription."""

    destination: Str8 = None
    accept_mode: UInt8 = None
    acquire_mode: UInt8 = None


@command("message.accept", 0x0402)
class MessageAccept(Command, frozen=True, gc=False):
    """The messages are the receiver's now."""

    transfers: Commands = None


@command("message.reject", 0x0403)
class MessageReject(Command, frozen=True, gc=False):
    """The messages are not wanted."""

    transfers: Commands = None
    code: UInt16 = None
    text: Str8 = None


@command("message.release", 0x0404)
class MessageRelease(Command, frozen=True, gc=False):
    """The messages go back."""

    transfers: Commands = None
    set_redelivered: Bit = False


@command("message.acquire", 0x0405)
class MessageAcquire(Command, frozen=True, gc=False):
    """Messages that were only looked at are to be the receiver's."""

    transfers: Commands = None


@command("message.subscribe", 0x0407)
class MessageSubscribe(Command, frozen=True, gc=False):
    """Asks for the messages of a queue, under a destination of the session."""

    queue: Str8 = None
    destination: Str8 = None
    accept_mode: UInt8 = None
    acquire_mode: UInt8 = None
    exclusive: Bit = False
    resume_id: Str16 = None
    resume_ttl: UInt64 = None
    arguments: Map = None


@command("message.cancel", 0x0408)
class MessageCancel(Command, frozen=True, gc=False):
    """Ends a subscription."""

    destination: Str8 = None


@command("message.set-flow-mode", 0x0409)
class MessageSetFlowMode(Command, frozen=True, gc=False):
    """Chooses how credit is used."""

    destination: Str8 = None
    flow_mode: UInt8 = None


@command("message.flow", 0x040A)
class MessageFlow(Command, frozen=True, gc=False):
    """Adds credit."""

    destination: Str8 = None
    unit: UInt8 = None
    value: UInt32 = None


@command("message.flush", 0x040B)
class MessageFlush(Command, frozen=True, gc=False):
    """Asks for what is there, as far as credit goes; then credit is 0."""

    destination: Str8 = None


@command("message.stop", 0x040C)
class MessageStop(Command, frozen=True, gc=False):
    """Credit is 0 at once."""

    destination: Str8 = None


@command("exchange.declare", 0x0701)
class ExchangeDeclare(Command, frozen=True, gc=False):
    """Makes an exchange, or finds it."""

    exchange: Str8 = None
    type: Str8 = None
    alternate_exchange: Str8 = None
    passive: Bit = False
    durable: Bit = False
    auto_delete: Bit = False
    arguments: Map = None


@command("exchange.delete", 0x0702)
class ExchangeDelete(Command, frozen=True, gc=False):
    """Deletes an exchange."""

    exchange: Str8 = None
    if_unused: Bit = False


@command("exchange.query", 0x0703)
class ExchangeQuery(Command, frozen=True, gc=False):
    """Asks for an exchange; its result is an `ExchangeQueryResult`."""

    name: Str8 = None


@command("exchange.bind", 0x0704)
class ExchangeBind(Command, frozen=True, gc=False):
    """Binds a queue to an exchange."""

    queue: Str8 = None
    exchange: Str8 = None
    binding_key: Str8 = None
    arguments: Map = None


@command("exchange.unbind", 0x0705)
class ExchangeUnbind(Command, frozen=True, gc=False):
    """Takes a binding away."""

    queue: Str8 = None
    exchange: Str8 = None
    binding_key: Str8 = None


@command("exchange.bound", 0x0706)
class ExchangeBound(Command, frozen=True, gc=False):
    """Asks for a binding; its result is an `ExchangeBoundResult`."""

    exchange: Str8 = None
    queue: Str8 = None
    binding_key: Str8 = None
    arguments: Map = None


@command("queue.declare", 0x0801)
class QueueDeclare(Command, frozen=True, gc=False):
    """Makes a queue, or finds it."""

    queue: Str8 = None
    alternate_exchange: Str8 = None
    passive: Bit = False
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    arguments: Map = None


@command("queue.delete", 0x0802)
class QueueDelete(Command, frozen=True, gc=False):
    """Deletes a queue."""

    queue: Str8 = None
    if_unused: Bit = False
    if_empty: Bit = False


@command("queue.purge", 0x0803)
class QueuePurge(Command, frozen=True, gc=False):
    """Drops the messages of a queue."""

    queue: Str8 = None


@command("queue.query", 0x0804)
class QueueQuery(Command, frozen=True, gc=False):
    """Asks for a queue; its result is a `QueueQueryResult`."""

    queue: Str8 = None
