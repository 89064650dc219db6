"""What the times of a run are worth: whether there are any, how coarse, and where they go back."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import gcd
from typing import Any

from .files import from_table
from .schema import OBSERVED, Row
from .words import counted, duration

__all__ = ["COARSE_US", "COLUMNS", "UNKNOWN_TIME", "Clock", "waits_in_words"]

COLUMNS = ("run", "seq", "event", "t_us", "t_raw_us")
"""The columns that `waits_in_words` reads."""

COARSE_US = 1_000
"""A clock that counts in steps of this or more is coarse: frames follow each other faster."""

UNKNOWN_TIME = "an unknown time"


class Clock:
    """The clock of one run, as its rows tell it.

    Attributes:
        gcd_us: greatest common divisor of all distances of packet times, microseconds; 0 while
            there is none.
        went_back: `t_us` at each row whose packet time is behind that of the row before by
            `COARSE_US` or more, in order. Packets that change places are less apart.
    """

    def __init__(self) -> None:
        self.gcd_us = 0
        self.went_back: list[int] = []
        self._observed = False
        self._last: int | None = None

    def see(self, row: Row) -> None:
        """The next row of the run."""
        if row.event != OBSERVED:
            return
        self._observed = True
        now, last = row.t_raw_us, self._last
        if now is None:
            return
        if last is not None:
            self.gcd_us = gcd(self.gcd_us, abs(now - last))
            if last - now >= COARSE_US:
                self.went_back.append(row.t_us)
        self._last = now

    def watch(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows, each of them seen."""
        for row in rows:
            self.see(row)
            yield row

    @property
    def timed(self) -> bool:
        """There are times; in the log of a program `t_us` counts its frames."""
        return not self._observed or self._last is not None

    @property
    def step_us(self) -> int:
        """In which steps it counts; two times that are a round number apart by chance count too."""
        return self.gcd_us if self.gcd_us and self.gcd_us % COARSE_US == 0 else 1

    @property
    def exact(self) -> bool:
        """It tells microseconds, unless it goes back."""
        return self.timed and self.step_us == 1

    @property
    def step(self) -> str:
        """How far apart its times are at least, in words: `1 ms`, `15.625 ms`, `30 s`."""
        if self.gcd_us >= 1_000_000:
            return f"{self.gcd_us / 1_000_000:g} s"
        return f"{self.gcd_us / 1_000:g} ms"

    def knows(self, start_us: int, end_us: int) -> bool:
        """Whether it tells how long it was from one time to another: it did not go back between.

        Args:
            start_us: `t_us`, which stands still while the clock is behind.
            end_us: likewise, not sooner.
        """
        at = bisect_left(self.went_back, start_us)
        return at == len(self.went_back) or self.went_back[at] > end_us

    def length(self, time_us: int) -> str:
        """So much time, in no more digits than the clock has: `3 ms`, `less than 1 ms`.

        In a log without times: `3 frames`.
        """
        if not self.timed:
            return counted(time_us, "frame")
        if time_us < self.step_us > 1:
            return f"less than {self.step}"
        return duration(time_us, self.step_us)

    def lasted(self, start_us: int, end_us: int) -> str:
        """How long it was from one `t_us` to a later one, in words."""
        known = self.knows(start_us, end_us)
        return self.length(end_us - start_us) if known else UNKNOWN_TIME

    def in_words(self, start_us: int, end_us: int) -> str:
        """How long it was, where a number of microseconds would say more than is known; else ""."""
        if self.exact and self.knows(start_us, end_us):
            return ""
        return self.lasted(start_us, end_us)

    def moment(self, t_us: int) -> str:
        """A time in the run: `3.282 s`; in a log without times `row 20`."""
        return f"{t_us / 1e6:,.3f} s" if self.timed else f"row {t_us:,}"


def waits_in_words(
    waits: Mapping[tuple[str, int | None], int], parts: Iterable[Any]
) -> dict[tuple[str, int], str]:
    """Of waits in a trace of any size, how long they were, as `Clock.in_words`.

    Args:
        waits: microseconds, by run and `seq` of the row with which each began.
        parts: the trace's record batches in order, with `COLUMNS`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    places = pa.array({seq for _, seq in waits if seq is not None}, pa.int64())
    clocks: defaultdict[str, Clock] = defaultdict(Clock)
    since: dict[tuple[str, int], int] = {}
    for part in parts:
        # No other rows say anything of a clock.
        told = pc.or_(pc.equal(part["event"], OBSERVED), pc.is_in(part["seq"], places))
        for row in from_table(part.filter(told)):
            clocks[row.run].see(row)
            if (row.run, row.seq) in waits:
                since[row.run, row.seq] = row.t_us
    return {
        place: clocks[place[0]].in_words(t_us, t_us + waits[place]) for place, t_us in since.items()
    }
