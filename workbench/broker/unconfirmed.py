"""A published message until the queues that it was routed to have answered, and what they answer.

It is confirmed when every queue has taken it, refused when the first one refuses it, and unroutable
if there is no queue for it, or the only ones were deleted meanwhile
(`rabbit_amqp_session.erl:settle_publish`, `handle_queue_down`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec import Struct


class TakingQueue(Protocol):
    """A queue that is asked to take a message."""

    @property
    def name(self) -> str:
        """The queue's name."""


class Confirmed(Struct, frozen=True, gc=False):
    """Every queue has taken responsibility for the message."""


class Refused(Struct, frozen=True, gc=False):
    """A queue does not take the message.

    Attributes:
        reason: `maxlen`: there is no room in it.
        queue: its name.
    """

    reason: str
    queue: str


class Unroutable(Struct, frozen=True, gc=False):
    """No queue is there for the message."""


CONFIRMED, UNROUTABLE = Confirmed(), Unroutable()

Outcome: TypeAlias = Confirmed | Refused | Unroutable
Settled: TypeAlias = Callable[[Outcome], None]
"""Takes the outcome of a message."""
QueueAnswer: TypeAlias = Callable[[TakingQueue, Outcome], None]
"""Told which queue has decided on a message, and how."""
Unconfirmed: TypeAlias = "dict[TakingQueue, dict[UnconfirmedMessage, None]]"
"""By queue, the messages that wait for its answer."""


class UnconfirmedMessage:
    """Waits for the queues that one message went to.

    Args:
        queues: how many they are.
        done: told the outcome, once.
        index: where it stands until each of them has answered.
    """

    __slots__ = ("_any", "_done", "_index", "_left")

    def __init__(self, queues: int, done: Settled, index: Unconfirmed) -> None:
        self._left = queues
        self._done: Settled | None = done
        self._index = index
        self._any = False  # some queue has confirmed it

    def answered(self, queue: TakingQueue, outcome: Outcome) -> None:
        """A queue has decided; `UNROUTABLE` if it was deleted before."""
        waiting = self._index.get(queue)
        if waiting is not None:
            waiting.pop(self, None)
        self._left -= 1
        if type(outcome) is Refused:  # that decides, whatever the others do
            self._end(outcome)
            return
        self._any = self._any or outcome is CONFIRMED
        if not self._left:
            self._end(CONFIRMED if self._any else UNROUTABLE)

    def _end(self, outcome: Outcome) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(outcome)
