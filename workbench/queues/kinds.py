"""The state machine for a queue's type."""

from __future__ import annotations

from .arguments import CLASSIC, NO_ARGUMENTS, STREAM, QueueArgumentError, QueueArguments
from .classic import ClassicQueue
from .flow_limit import QpidQueue, QpidQueueArguments
from .protocol import Queue
from .stream import StreamQueue


def make_queue(name: str, arguments: QueueArguments = NO_ARGUMENTS, created_us: int = 0) -> Queue:
    """A queue of the type that its arguments name.

    Args:
        name: of the queue.
        arguments: how it is declared.
        created_us: when.

    Raises:
        QueueArgumentError: it is a quorum queue, which is no single machine but a group of
            replicas.
    """
    if isinstance(arguments, QpidQueueArguments):
        return QpidQueue(name, arguments, created_us)
    if arguments.queue_type == CLASSIC:
        return ClassicQueue(name, arguments, created_us)
    if arguments.queue_type == STREAM:
        return StreamQueue(name, arguments, created_us)
    raise QueueArgumentError(
        f"a {arguments.queue_type} queue is no single machine; legal here: {CLASSIC}, {STREAM};"
        " a broker makes it of replicas"
    )
