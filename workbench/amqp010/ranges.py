"""Sets of command ids, kept as ranges, and their way from and to the wire.

Ids wrap at 2**32; here they are counted on, so that a set has an order however long a session
lives. An id on the wire is the one that is nearest to a number that is known.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from workbench.serial import advanced, signed

from .values import SequenceSet

__all__ = ["RangeSet", "nearest", "on_wire"]


def on_wire(number: int) -> int:
    """A command's id as it is on the wire."""
    return advanced(0, number)


def nearest(wire: int, known: int) -> int:
    """The command whose id on the wire this is: of all such, the one nearest to `known`."""
    return known + signed(wire, on_wire(known))


class RangeSet:
    """Numbers, of which those that follow each other take the room of one.

    Finding takes logarithmic time in the number of ranges.
    """

    __slots__ = ("_firsts", "_lasts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __len__(self) -> int:
        """How many numbers are in it."""
        return sum(last - first + 1 for first, last in self)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """First and last of each range, in order."""
        return zip(tuple(self._firsts), tuple(self._lasts), strict=True)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._firsts, number) - 1
        return place >= 0 and number <= self._lasts[place]

    @property
    def first(self) -> int | None:
        """The lowest number."""
        return self._firsts[0] if self._firsts else None

    def add(self, first: int, last: int) -> None:
        """Puts a range in; what touches it becomes one with it."""
        low = bisect_left(self._lasts, first - 1)
        high = bisect_right(self._firsts, last + 1)
        if low < high:
            first = min(first, self._firsts[low])
            last = max(last, self._lasts[high - 1])
        self._firsts[low:high] = [first]
        self._lasts[low:high] = [last]

    def remove(self, first: int, last: int) -> list[tuple[int, int]]:
        """Takes a range out; returns what of it was there, as ranges."""
        low = bisect_left(self._lasts, first)
        high = bisect_right(self._firsts, last)
        if low >= high:
            return []
        old = list(zip(self._firsts[low:high], self._lasts[low:high], strict=True))
        left = [(a, b) for a, b in ((old[0][0], first - 1), (last + 1, old[-1][1])) if a <= b]
        self._firsts[low:high] = [a for a, _ in left]
        self._lasts[low:high] = [b for _, b in left]
        return [(max(a, first), min(b, last)) for a, b in old]

    def as_sequence_set(self) -> SequenceSet:
        """As it is on the wire."""
        return SequenceSet(tuple((on_wire(first), on_wire(last)) for first, last in self))
