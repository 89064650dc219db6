"""What is ready in a quorum queue: what came back first, then what was never handed out.

What was never handed out goes by its priority: in 4.3 by each of 32, in 4.0 by two, of which the
higher one is favoured and the lower one never starves (`rabbit_fifo_pq.erl`, `rabbit_fifo_q.erl`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from .base import Enqueue, Stored

_Fresh = tuple[int, Enqueue, int | None]

USUAL, HIGHEST = 4, 31  # of a message that has no priority; of any
HIGH, NORMAL = 1, 0
WEIGHT = 2  # so many of high priority go before a message that came earlier with a normal one


class QuorumReady:
    """Messages in the order in which they are handed out.

    Args:
        two_priorities: above the usual one and not above it, as before 4.3.
        in_order: what comes back keeps its order; False is for showing what breaks then.

    Attributes:
        octets: sizes of the encoded messages, added up.
    """

    def __init__(self, *, two_priorities: bool = False, in_order: bool = True) -> None:
        self.octets = 0
        self._in_order = in_order
        self._two = two_priorities
        self._count = 0
        self._taken = 0  # of those that were never handed out, 0 to WEIGHT
        # By priority from the highest; not yet a `Stored`: most are taken out once.
        self._fresh: dict[int, deque[_Fresh]] = {}
        self._returned: deque[Stored] = deque()

    def __len__(self) -> int:
        return self._count + len(self._returned)

    def append(self, message_id: int, command: Enqueue, expires_us: int | None) -> None:
        """A new one."""
        line = self._line(command.priority)
        line.append((message_id, command, expires_us))
        self._count += 1
        self.octets += len(command.payload)

    def put_back(self, message: Stored) -> None:
        """One that was handed out: behind those that came back before."""
        if self._in_order:
            self._returned.append(message)
        else:
            self._returned.appendleft(message)
        self.octets += len(message.payload)

    def take(self) -> Stored:
        """Take the first out."""
        if self._returned:
            message = self._returned.popleft()
        else:
            message = self._pop(self._next())
            self._taken = 0 if self._taken == WEIGHT else self._taken + 1
        self.octets -= len(message.payload)
        return message

    def head_expires_us(self) -> int | None:
        """When the first is too old; None: never, or there is none."""
        if self._returned:
            return self._returned[0].expires_us
        return self._fresh[self._next()][0][2] if self._fresh else None

    def take_expired(self, now_us: int) -> list[Stored]:
        """Take out what is too old at the head of each line, if the first of all is.

        4.0 looks at the first alone, one after the other.
        """
        gone: list[Stored] = []
        while (at_us := self.head_expires_us()) is not None and at_us <= now_us:
            if self._two:
                gone.append(self.take())
                continue
            gone += self._expired_returned(now_us)
            for priority in tuple(self._fresh):
                while priority in self._fresh and _is_past(self._fresh[priority][0][2], now_us):
                    message = self._pop(priority)
                    self.octets -= len(message.payload)
                    gone.append(message)
        return gone

    def listed(self) -> tuple[Stored, ...]:
        """All of them: what came back, then by priority."""
        return (*self._returned, *map(_stored, self._all_fresh()))

    def clear(self) -> tuple[Stored, ...]:
        """Take all out."""
        gone = self.listed()
        self._returned.clear()
        self._fresh.clear()
        self.octets = self._count = 0
        return gone

    # -- inside -----------------------------------------------------------------------------

    def _line(self, priority: int | None) -> deque[_Fresh]:
        given = USUAL if priority is None else min(priority, HIGHEST)
        if self._two:
            given = HIGH if given > USUAL else NORMAL
        line = self._fresh.get(given)
        if line is None:
            line = self._fresh[given] = deque()
            if len(self._fresh) > 1:
                self._fresh = dict(sorted(self._fresh.items(), reverse=True))
        return line

    def _next(self) -> int:
        """The priority of the first that was never handed out."""
        priority = next(iter(self._fresh))
        if self._two and self._taken == WEIGHT and len(self._fresh) > 1:
            high, normal = self._fresh[HIGH][0], self._fresh[NORMAL][0]
            return HIGH if high[0] < normal[0] else NORMAL
        return priority

    def _pop(self, priority: int) -> Stored:
        line = self._fresh[priority]
        message = _stored(line.popleft())
        self._count -= 1
        if not line:
            del self._fresh[priority]
        return message

    def _expired_returned(self, now_us: int) -> list[Stored]:
        gone = []
        while self._returned and _is_past(self._returned[0].expires_us, now_us):
            gone.append(self._returned.popleft())
            self.octets -= len(gone[-1].payload)
        return gone

    def _all_fresh(self) -> Iterator[_Fresh]:
        for line in self._fresh.values():
            yield from line


def _is_past(at_us: int | None, now_us: int) -> bool:
    return at_us is not None and at_us <= now_us


def _stored(fresh: _Fresh) -> Stored:
    message_id, command, expires_us = fresh
    return Stored(
        message_id=message_id,
        payload=command.payload,
        message_format=command.message_format,
        delivery_count=command.origin.delivery_count,
        origin=command.origin,
        expires_us=expires_us,
    )
