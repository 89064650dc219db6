"""Intervals in which something holds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from workbench.trace.schema import Row


class Mark(NamedTuple):
    """Of a row what is remembered of it while it waits: thousands may."""

    run: str
    seq: int
    t_us: int
    frame_id: int | None
    kind: str | None


Moment = Row | Mark
Span = tuple[Moment, Moment]
"""From one row to another."""


def took(span: Span) -> int:
    """Microseconds from its first row to its last."""
    return span[1].t_us - span[0].t_us


def longest(spans: Iterable[Span]) -> Span | None:
    """The longest; of several the one whose first row comes first by `(run, seq)`."""
    order = sorted(spans, key=lambda span: (-took(span), span[0].run, span[0].seq))
    return order[0] if order else None


class Intervals:
    """Intervals in which something held, told row by row.

    Attributes:
        intervals: those that are over, in order; none begins before the last has ended.
        lasts: when the rows ended, nothing had ended the last of them.
    """

    def __init__(self) -> None:
        self.intervals: list[Span] = []
        self.lasts = False
        self._since: Row | None = None
        self._done = False

    def note(self, row: Row, holds: bool | None) -> None:
        """It holds from now on, or not; None, not known, is not."""
        if self._done:
            return
        if holds and self._since is None:
            self._since = row
        elif not holds and self._since is not None:
            self.intervals.append((self._since, row))
            self._since = None

    def finish(self, row: Row, *, lasts: bool = False) -> None:
        """Nothing is told after this; the first word counts.

        Args:
            row: with which it is over.
            lasts: it is not, but there are no more rows.
        """
        if not self._done:
            self.lasts = lasts and self._since is not None
        self.note(row, False)
        self._done = True

    @property
    def told(self) -> list[tuple[Span, bool]]:
        """Each of them, and whether nothing had ended it."""
        latest = len(self.intervals) - 1
        return [(span, self.lasts and at == latest) for at, span in enumerate(self.intervals)]

    @property
    def times(self) -> int:
        """How many."""
        return len(self.intervals)

    @property
    def total_us(self) -> int:
        """All together."""
        return sum(map(took, self.intervals))

    @property
    def longest_us(self) -> int:
        """The longest; 0 if there is none."""
        return max(map(took, self.intervals), default=0)

    @property
    def worst_seq(self) -> int | None:
        """The row with which the longest began; None if there is none."""
        most = longest(self.intervals)
        return None if most is None else most[0].seq

    def within(self, start: int, end: int) -> int:
        """How much of it lies between two times."""
        after = bisect_right(self.intervals, start, key=lambda span: span[1].t_us)
        before = bisect_left(self.intervals, end, key=lambda span: span[0].t_us)
        return sum(
            max(0, min(end, last.t_us) - max(start, first.t_us))
            for first, last in self.intervals[after:before]
        )


def over(row: Row, intervals: Iterable[Intervals], *, lasts: bool = False) -> None:
    """Finish all of them; see `Intervals.finish`."""
    for one in intervals:
        one.finish(row, lasts=lasts)
