"""The state machine for a queue's type."""

from __future__ import annotations

from .arguments import CLASSIC, NO_ARGUMENTS, STREAM, QueueArgumentError, QueueArguments
from .classic import ClassicQueue
from .protocol import Queue
from .stream import StreamQueue

KINDS: dict[str, type[ClassicQueue] | type[StreamQueue]] = {
    CLASSIC: ClassicQueue,
    STREAM: StreamQueue,
}


def make_queue(name: str, arguments: QueueArguments = NO_ARGUMENTS, created_us: int = 0) -> Queue:
    """A queue of the type that its arguments name.

    Raises:
        QueueArgumentError: it is a quorum queue, which is no single machine but a group of
            replicas.
    """
    kind = KINDS.get(arguments.queue_type)
    if kind is None:
        raise QueueArgumentError(
            f"a {arguments.queue_type} queue is no single machine; legal here: {', '.join(KINDS)};"
            " a broker makes it of replicas"
        )
    return kind(name, arguments, created_us)
