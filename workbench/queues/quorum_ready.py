"""What is ready in a quorum queue: what came back first, then what was never handed out."""

from __future__ import annotations

from collections import deque

from .base import Enqueue, Stored

_Fresh = tuple[int, Enqueue, int | None]


class QuorumReady:
    """Messages in the order in which they are handed out.

    Args:
        in_order: what comes back keeps its order; False is for showing what breaks then.

    Attributes:
        octets: sizes of the encoded messages, added up.
    """

    def __init__(self, *, in_order: bool = True) -> None:
        self.octets = 0
        self._in_order = in_order
        self._fresh: deque[_Fresh] = deque()  # not yet a `Stored`: most are taken out once
        self._returned: deque[Stored] = deque()

    def __len__(self) -> int:
        return len(self._fresh) + len(self._returned)

    def append(self, message_id: int, command: Enqueue, expires_us: int | None) -> None:
        """A new one."""
        self._fresh.append((message_id, command, expires_us))
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
        message = self._returned.popleft() if self._returned else _stored(self._fresh.popleft())
        self.octets -= len(message.payload)
        return message

    def head_expires_us(self) -> int | None:
        """When the first is too old; None: never, or there is none."""
        if self._returned:
            return self._returned[0].expires_us
        return self._fresh[0][2] if self._fresh else None

    def listed(self) -> tuple[Stored, ...]:
        """All of them, first to last."""
        return (*self._returned, *map(_stored, self._fresh))

    def clear(self) -> tuple[Stored, ...]:
        """Take all out, first to last."""
        gone = self.listed()
        self._returned.clear()
        self._fresh.clear()
        self.octets = 0
        return gone


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
