"""A stream of octets, arriving in any pieces, cut into items: the part that no protocol changes."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

__all__ = ["StreamCutter", "UnreadableError"]

Item = TypeVar("Item")


class UnreadableError(Exception):
    """Octets that cannot be read; the base of each protocol's decode error.

    Attributes:
        reason: what is wrong.
        completed: the items that a cutter had completed in the call that failed.
    """

    reason: str
    completed: tuple[Any, ...] = ()

    def moved(self, by: int) -> UnreadableError:
        """The same error with its offset counted from a place `by` octets earlier."""
        raise NotImplementedError


class StreamCutter(Generic[Item]):
    """One direction of a connection. Between calls the octets of one item at most are kept.

    Args:
        offset: what the first octet counts as in offsets.

    Attributes:
        offset: of the next item.
    """

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset
        self._buffer = bytearray()  # of an item that is not complete
        self._needed = 0  # octets that this item has, as far as is known
        self._error: UnreadableError | None = None

    @property
    def pending(self) -> bytes:
        """The octets of an item that is not yet complete."""
        return bytes(self._buffer)

    def feed(self, data: bytes) -> list[Item]:
        """Takes octets and gives the items that they complete.

        Args:
            data: the next octets of the stream, any number of them.

        Returns:
            The completed items, in order.

        Raises:
            UnreadableError: the stream cannot be read further; the error, of the protocol's own
                kind, has in `completed` the items that this call completed before the fault. Every
                later call raises it again.
        """
        if self._error is not None:
            raise self._error.moved(0)
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return []
            data = bytes(self._buffer)
            self._buffer.clear()
        elif type(data) is not bytes:
            data = bytes(data)
        items: list[Item] = []
        try:
            at = self._cut(data, items)
        except UnreadableError as error:
            self._error = error
            error.completed = tuple(items)
            raise
        self._buffer += data[at:]
        return items

    def _cut(self, data: bytes, items: list[Item]) -> int:
        """Appends the items of `data`, and counts `offset` on; returns where an incomplete begins.

        Of that one it puts the octets that it has, as far as is known, into `_needed`.
        """
        raise NotImplementedError
