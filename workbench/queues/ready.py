"""The messages of a classic queue that wait for a consumer, oldest first."""

from __future__ import annotations

import heapq
from collections import deque

from .base import Stored


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
