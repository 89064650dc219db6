"""The messages of a classic queue that wait for a consumer: oldest first, or by priority."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable

from .base import Stored

PriorityOf = Callable[[Stored], int]


def no_priority(_: Stored) -> int:
    """0, the lowest."""
    return 0


class Ready:
    """Messages in the order of their numbers; what comes back goes to its old place.

    Attributes:
        octets: sizes of the messages, added up.
    """

    def __init__(self) -> None:
        self.octets = 0
        self._fresh: deque[Stored] = deque()  # never handed out, in order
        # What came back. Every fresh message is younger than any of these, because fresh ones are
        # handed out in order, so the oldest ready message is at the top here if there is one.
        self._returned: list[tuple[int, Stored]] = []

    def __len__(self) -> int:
        return len(self._fresh) + len(self._returned)

    def append(self, message: Stored) -> None:
        """A new one, younger than all."""
        self._fresh.append(message)
        self.octets += len(message.payload)

    def put_back(self, message: Stored) -> None:
        """One that was handed out."""
        heapq.heappush(self._returned, (message.message_id, message))
        self.octets += len(message.payload)

    def head(self) -> Stored | None:
        """The oldest."""
        if self._returned:
            return self._returned[0][1]
        return self._fresh[0] if self._fresh else None

    def oldest_for(self, consumer: str) -> Stored | None:
        """The oldest that the consumer has not barred."""
        if not self._returned:
            return self._fresh[0] if self._fresh else None
        oldest = self._returned[0][1]
        if consumer not in oldest.barred:
            return oldest
        rest = [entry for entry in self._returned if consumer not in entry[1].barred]
        if rest:
            return min(rest)[1]
        return self._fresh[0] if self._fresh else None

    def take(self, message: Stored) -> None:
        """Take one out: most often the oldest that came back, or the oldest of all."""
        number = message.message_id
        self.octets -= len(message.payload)
        if self._returned and self._returned[0][0] == number:
            heapq.heappop(self._returned)
        elif self._fresh and self._fresh[0].message_id == number:
            self._fresh.popleft()
        else:
            self._returned = [entry for entry in self._returned if entry[0] != number]
            heapq.heapify(self._returned)

    def clear(self) -> list[Stored]:
        """Take all out, oldest first."""
        gone = [message for _, message in sorted(self._returned)] + list(self._fresh)
        self._returned.clear()
        self._fresh.clear()
        self.octets = 0
        return gone


class ReadyByPriority(Ready):
    """The same, a line for each priority: the highest first, in it the oldest.

    So a limit drops messages of the highest priority first, and what is too old goes from the head
    of the highest alone, as in `rabbit_priority_queue.erl`.

    Args:
        highest: priority; what is above it counts as this.
        priority_of: a message.
    """

    def __init__(self, highest: int, priority_of: PriorityOf) -> None:
        super().__init__()
        self._lines = [Ready() for _ in range(max(1, highest) + 1)]
        self._priority_of = priority_of
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, message: Stored) -> None:
        """A new one, younger than all."""
        self._line(message).append(message)
        self._changed(message, 1)

    def put_back(self, message: Stored) -> None:
        """One that was handed out."""
        self._line(message).put_back(message)
        self._changed(message, 1)

    def head(self) -> Stored | None:
        """The oldest of the highest priority."""
        return next((line.head() for line in self._lines if len(line)), None)

    def oldest_for(self, consumer: str) -> Stored | None:
        """The oldest of the highest priority that the consumer has not barred."""
        found = (line.oldest_for(consumer) for line in self._lines if len(line))
        return next((message for message in found if message is not None), None)

    def take(self, message: Stored) -> None:
        """Take one out."""
        self._line(message).take(message)
        self._changed(message, -1)

    def clear(self) -> list[Stored]:
        """Take all out, the highest priority first."""
        self._count = self.octets = 0
        return [message for line in self._lines for message in line.clear()]

    def _line(self, message: Stored) -> Ready:
        highest = len(self._lines) - 1
        return self._lines[highest - min(self._priority_of(message), highest)]

    def _changed(self, message: Stored, count: int) -> None:
        self._count += count
        self.octets += count * len(message.payload)
