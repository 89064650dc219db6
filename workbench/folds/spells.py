"""Intervals in which something holds."""

from __future__ import annotations

from collections.abc import Iterable


class Spells:
    """Intervals in which something held, told row by row.

    Attributes:
        intervals: (from, to) in microseconds of those that are over.
    """

    def __init__(self) -> None:
        self.intervals: list[tuple[int, int]] = []
        self._since: int | None = None
        self._done = False

    def note(self, t_us: int, holds: bool | None) -> None:
        """It holds from now on, or not; None, not known, is not."""
        if self._done:
            return
        if holds and self._since is None:
            self._since = t_us
        elif not holds and self._since is not None:
            self.intervals.append((self._since, t_us))
            self._since = None

    def finish(self, t_us: int) -> None:
        """Nothing is told after this; the first word counts."""
        self.note(t_us, False)
        self._done = True

    @property
    def times(self) -> int:
        """How many."""
        return len(self.intervals)

    @property
    def total_us(self) -> int:
        """All together."""
        return sum(end - start for start, end in self.intervals)

    @property
    def longest_us(self) -> int:
        """The longest; 0 if there is none."""
        return max((end - start for start, end in self.intervals), default=0)

    def within(self, start: int, end: int) -> int:
        """How much of it lies between two times."""
        return sum(max(0, min(end, b) - max(start, a)) for a, b in self.intervals)


def over(t_us: int, spells: Iterable[Spells]) -> None:
    """Finish all of them."""
    for one in spells:
        one.finish(t_us)
