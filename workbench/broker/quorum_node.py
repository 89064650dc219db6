"""A node of a cluster: a write-ahead log on a disk that takes its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.queues import QueueError
from workbench.queues.draws import Draws
from workbench.queues.wal import Done, WriteAheadLog
from workbench.sim import Clock, Tap, Timer

STEPS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncTime:
    """How long an fsync takes: one number, or a distribution by its quantiles.

    Attributes:
        quantiles: pairs (share in parts of a million, microseconds), rising in both; between two
            of them a straight line is drawn. One pair is a constant.
    """

    quantiles: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not self.quantiles:
            raise QueueError("an fsync takes some time; legal: 0 us or more")
        for share, us in self.quantiles:
            if us < 0 or not 0 <= share <= STEPS:
                raise QueueError(
                    f"an fsync of {us} us for a share of {share} parts of a million; legal: 0 us or"
                    f" more, and shares from 0 to {STEPS}"
                )
        shares, times = zip(*self.quantiles, strict=True)
        if list(shares) != sorted(shares) or list(times) != sorted(times):
            raise QueueError("the quantiles of an fsync must rise in share and in time")

    @classmethod
    def constant(cls, us: int) -> SyncTime:
        """Always the same."""
        return cls(quantiles=((0, us),))

    @classmethod
    def between(cls, low_us: int, high_us: int) -> SyncTime:
        """Anything between the two, evenly."""
        return cls(quantiles=((0, low_us), (STEPS, high_us)))

    def draw(self, draws: Draws) -> int:
        """The time of one fsync, in microseconds."""
        if len(self.quantiles) == 1:
            return self.quantiles[0][1]
        at = draws.randrange(0, STEPS)
        before = self.quantiles[0]
        for after in self.quantiles[1:]:
            if at <= after[0]:
                width = max(1, after[0] - before[0])
                return before[1] + (after[1] - before[1]) * max(0, at - before[0]) // width
            before = after
        return before[1]


class ClusterNode:
    """One node.

    Args:
        name: of the node.
        clock, tap: of the run.
        fsync: how long one takes; another may be set, and counts from the next one on.
        draws: that the time of an fsync is drawn from.
        written: called for every writer that a batch has made safe.

    Attributes:
        wal: its write-ahead log, shared by all its queues.
        alive: it is not down.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        tap: Tap,
        fsync: SyncTime,
        draws: Draws,
        written: Callable[[str, Done], None],
    ) -> None:
        self.name = name
        self.wal = WriteAheadLog()
        self.fsync = fsync
        self.alive = True
        self._draws = draws
        self._clock = clock
        self._log = tap.bind(
            clock, vantage=f"wal:{name}", ledger=lambda: {"mailbox": self.wal.waiting}
        ).note
        self._written = written
        self._timer: Timer | None = None

    def sync(self) -> None:
        """Begin the next batch, if the disk is idle and something waits."""
        count = self.wal.begin() if self.alive else 0
        if count:
            self._log("append", "batch", extra={"entries": count, "batch": self.wal.batches})
            self._timer = self._clock.call_later(self.fsync.draw(self._draws), self._synced)

    def crash(self, saved: int) -> int:
        """Lose what is not on disk; returns how many entries that is."""
        self.alive = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return self.wal.crash(saved)

    def _synced(self) -> None:
        self._timer = None
        count = self.wal.syncing
        done = self.wal.finish()
        self._log("fsync", "batch", extra={"entries": count, "batch": self.wal.batches})
        # What came meanwhile is the next batch; what this batch causes comes too late for it.
        self.sync()
        for each in done:
            self._written(self.name, each)
