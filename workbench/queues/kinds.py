"""The state machine for a queue's type."""

from __future__ import annotations

from .arguments import NO_ARGUMENTS, STREAM, QueueArguments
from .base import Queue
from .classic import ClassicQueue
from .stream import StreamQueue


def make_queue(name: str, arguments: QueueArguments = NO_ARGUMENTS, created_us: int = 0) -> Queue:
    """A queue of the type that its arguments name.

    A quorum queue is played by a classic one: to those on its links it behaves alike, but there is
    no log to wait for, and no delivery limit.
    """
    kind = StreamQueue if arguments.queue_type == STREAM else ClassicQueue
    return kind(name, arguments, created_us)
