"""One message on its way into all the queues that it was routed to.

It is accepted when every queue has confirmed it, rejected when the first one refuses it, and
released if there is no queue for it, or the only ones were deleted meanwhile
(`rabbit_amqp_session.erl:settle_publish`, `handle_queue_down`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from workbench.amqp.messaging import Accepted, Rejected, Released
from workbench.amqp.performatives import Error
from workbench.amqp.values import Symbol

from .queue_process import QueueProcess

Settled: TypeAlias = Callable[[object], None]
"""Takes the outcome of a message: accepted, rejected or released."""

ACCEPTED, RELEASED = Accepted(), Released()
RESOURCE_LIMIT, PRECONDITION = "amqp:resource-limit-exceeded", "amqp:precondition-failed"


def rejection(queue: str, reason: str) -> Rejected:
    """The outcome that says which queue did not take a message, and why [RabbitMQ 4.3].

    Args:
        queue: its name.
        reason: `maxlen`, `property-limit-exceeded` or `unavailable`.
    """
    full = reason == "maxlen"
    return Rejected(
        error=Error(
            condition=Symbol(RESOURCE_LIMIT if full else PRECONDITION),
            description=f"queue {queue!r} rejected the message: {reason}",
            info={Symbol("queue"): queue, Symbol("reason"): reason},
        )
    )


class Publication:
    """Waits for the queues that one message went to.

    Args:
        queues: that get it, each once.
        done: told the outcome, once.
        answered: told of each queue that need not be waited for any more.
    """

    __slots__ = ("_answered", "_any", "_done", "_waiting")

    def __init__(
        self,
        queues: Iterable[QueueProcess],
        done: Settled,
        answered: Callable[[Publication, QueueProcess], None],
    ) -> None:
        self._waiting = dict.fromkeys(queues)
        self._done: Settled | None = done
        self._answered = answered
        self._any = False  # some queue has confirmed it
        if not self._waiting:
            self._end(Released())

    def confirmed(self, queue: QueueProcess) -> None:
        """A queue has taken it."""
        self._any = True
        self._leave(queue)

    def rejected(self, queue: QueueProcess, reason: str) -> None:
        """A queue does not take it: that decides, whatever the others do."""
        self._answered(self, queue)
        self._waiting.pop(queue, None)
        self._end(rejection(queue.name, reason))

    def queue_gone(self, queue: QueueProcess) -> None:
        """A queue was deleted before it answered."""
        self._leave(queue)

    def _leave(self, queue: QueueProcess) -> None:
        self._answered(self, queue)
        self._waiting.pop(queue, None)
        if not self._waiting:
            self._end(Accepted() if self._any else Released())

    def _end(self, outcome: object) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(outcome)


class SinglePublication:
    """The same for a message that went to one queue: most do, and it costs them less.

    Args:
        queue: name of the one that gets it.
        done: told the outcome, once.
        waiting: where it stands until the queue need not be waited for any more.
    """

    __slots__ = ("_done", "_queue", "_waiting")

    def __init__(
        self, queue: str, done: Settled, waiting: dict[Publication | SinglePublication, None]
    ) -> None:
        self._queue = queue
        self._done: Settled | None = done
        self._waiting = waiting

    def confirmed(self) -> None:
        """The queue has taken it."""
        self._waiting.pop(self, None)
        done, self._done = self._done, None
        if done is not None:
            done(ACCEPTED)

    def rejected(self, reason: str) -> None:
        """The queue does not take it."""
        self._end(rejection(self._queue, reason))

    def queue_gone(self, _queue: QueueProcess) -> None:
        """The queue was deleted before it answered."""
        self._end(RELEASED)

    def _end(self, outcome: object) -> None:
        self._waiting.pop(self, None)
        done, self._done = self._done, None
        if done is not None:
            done(outcome)
