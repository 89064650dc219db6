"""The messages of a queue that wait for a consumer, in the order in which they are handed out.

A classic queue's go oldest first, or by priority; a quorum queue's as they came back, then by
priority.
"""

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

    def listed(self) -> list[Stored]:
        """All, oldest first."""
        return [message for _, message in sorted(self._returned)] + list(self._fresh)

    def clear(self) -> list[Stored]:
        """Take all out, oldest first."""
        gone = self.listed()
        self._returned.clear()
        self._fresh.clear()
        self.octets = 0
        return gone


class ReadyByPriority:
    """A line of `Ready` for each priority: the highest first, in it the oldest.

    So a limit drops messages of the highest priority first, and what is too old goes from the head
    of the highest alone, as in `rabbit_priority_queue.erl`.

    Args:
        highest: priority; what is above it counts as this, a message without a priority as 0.

    Attributes:
        octets: sizes of the messages, added up.
    """

    def __init__(self, highest: int) -> None:
        self.octets = 0
        self._lines = [Ready() for _ in range(highest + 1)]
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

    def listed(self) -> list[Stored]:
        """All, the highest priority first."""
        return [message for line in self._lines for message in line.listed()]

    def clear(self) -> list[Stored]:
        """Take all out, the highest priority first."""
        self._count = self.octets = 0
        return [message for line in self._lines for message in line.clear()]

    def _line(self, message: Stored) -> Ready:
        highest = len(self._lines) - 1
        return self._lines[highest - min(message.message.priority or 0, highest)]

    def _changed(self, message: Stored, count: int) -> None:
        self._count += count
        self.octets += count * len(message.payload)


USUAL, HIGHEST = 4, 31  # priority of a message that names none; the highest one
HIGH, NORMAL = 1, 0
WEIGHT = 2  # so many of high priority go before a message that came earlier with a normal one


class FifoReady:
    """A quorum queue's: what came back first, in the order of coming back, then the others.

    A message that was never handed out goes by its priority: in 4.3 by each of 32, in 4.0 by two,
    of which the higher one is favoured and the lower one never starves (`rabbit_fifo_pq.erl`,
    `rabbit_fifo_q.erl`).

    Args:
        two_priorities: above the usual one and not above it, as before 4.3.
        in_order: what comes back keeps its order; False is for showing what breaks then.

    Attributes:
        octets: sizes of the messages, added up.
    """

    def __init__(self, *, two_priorities: bool = False, in_order: bool = True) -> None:
        self.octets = 0
        self._in_order = in_order
        self._two = two_priorities
        self._count = 0
        self._taken = 0  # of those that were never handed out, 0 to WEIGHT
        self._returned: deque[Stored] = deque()
        self._fresh: dict[int, deque[Stored]] = {}  # by priority, from the highest

    def __len__(self) -> int:
        return self._count

    def append(self, message: Stored) -> None:
        """A new one."""
        priority = message.message.priority
        given = USUAL if priority is None else min(priority, HIGHEST)
        if self._two:
            given = HIGH if given > USUAL else NORMAL
        if given not in self._fresh:
            self._fresh[given] = deque()
            self._fresh = dict(sorted(self._fresh.items(), reverse=True))
        self._fresh[given].append(message)
        self._changed(message, 1)

    def put_back(self, message: Stored) -> None:
        """One that was handed out: behind those that came back before."""
        if self._in_order:
            self._returned.append(message)
        else:
            self._returned.appendleft(message)
        self._changed(message, 1)

    def head(self) -> Stored | None:
        """The first."""
        return self._line()[0] if self._count else None

    def take(self) -> Stored:
        """Take the first out."""
        line = self._line()
        if line is not self._returned:
            self._taken = 0 if self._taken == WEIGHT else self._taken + 1
        message = line.popleft()
        self._changed(message, -1)
        return message

    def take_expired(self, now_us: int) -> list[Stored]:
        """Take out what is too old at the head of each line, if the first of all is.

        4.0 looks at the first alone, one after the other.
        """
        gone: list[Stored] = []
        while (first := self.head()) is not None and first.is_too_old(now_us):
            if self._two:
                gone.append(self.take())
                continue
            for line in (self._returned, *self._fresh.values()):
                while line and line[0].is_too_old(now_us):
                    gone.append(line.popleft())
                    self._changed(gone[-1], -1)
        return gone

    def listed(self) -> tuple[Stored, ...]:
        """All of them: what came back, then by priority."""
        lines = (self._returned, *self._fresh.values())
        return tuple(message for line in lines for message in line)

    def clear(self) -> tuple[Stored, ...]:
        """Take all out."""
        gone = self.listed()
        self._returned.clear()
        self._fresh.clear()
        self.octets = self._count = 0
        return gone

    def _line(self) -> deque[Stored]:
        """The line whose first message is the first of all."""
        if self._returned:
            return self._returned
        lines = [line for line in self._fresh.values() if line]
        if self._two and self._taken == WEIGHT:
            return min(lines, key=lambda line: line[0].message_id)
        return lines[0]

    def _changed(self, message: Stored, count: int) -> None:
        self._count += count
        self.octets += count * len(message.payload)
