"""A node of a cluster: a write-ahead log on a disk that takes its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from workbench.queues import QueueError
from workbench.queues.draws import Draws
from workbench.queues.wal import Done, WriteAheadLog
from workbench.sim import Tap, Timer, VirtualClock

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


class BatchOfEntries(Protocol):
    """What a disk is told of the log: how large the batch is."""

    @property
    def octets(self) -> int:
        """About so many octets."""


class Disk(Protocol):
    """Where a batch is made safe."""

    def sync(self, wal: BatchOfEntries, done: Callable[[], None]) -> Callable[[], None]:
        """Make the log's batch safe, and call `done` then. Returns what takes that back."""


class VirtualDisk:
    """A disk that needs virtual time, and nothing else.

    Attributes:
        time: of an fsync; may be changed at any moment, and counts from the next one on.
    """

    def __init__(self, clock: VirtualClock, time: SyncTime, draws: Draws) -> None:
        self.time = time
        self._clock = clock
        self._draws = draws

    def sync(self, wal: BatchOfEntries, done: Callable[[], None]) -> Callable[[], None]:
        """Wait for as long as an fsync takes."""
        timer: Timer = self._clock.call_later(self.time.draw(self._draws), done)
        return timer.cancel


class ClusterNode:
    """One node.

    Args:
        name: of the node.
        clock, tap: of the run.
        disk: under its log.
        written: called for every writer that a batch has made safe.

    Attributes:
        wal: its write-ahead log, shared by all its queues.
        alive: it is not down.
        stalled: its disk does nothing until it is let go on.
    """

    def __init__(
        self,
        name: str,
        clock: VirtualClock,
        tap: Tap,
        disk: Disk,
        written: Callable[[str, Done], None],
    ) -> None:
        self.name = name
        self.wal = WriteAheadLog()
        self.disk = disk
        self.alive = True
        self.stalled = False
        self._clock = clock
        self._tap = tap
        self._written = written
        self._cancel: Callable[[], None] | None = None

    def sync(self) -> None:
        """Begin the next batch, if the disk is idle and something waits."""
        if not self.alive or self.stalled:
            return
        count = self.wal.begin()
        if count:
            self._log("append", {"entries": count, "batch": self.wal.batches})
            self._cancel = self.disk.sync(self.wal, self._synced)

    def stall(self) -> None:
        """The disk hangs after the batch under way."""
        self.stalled = True

    def go_on(self) -> None:
        """The disk works again."""
        self.stalled = False
        self.sync()

    def crash(self, saved: int) -> int:
        """Lose what is not on disk; returns how many entries that is."""
        self.alive = False
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        return self.wal.crash(saved)

    def _synced(self) -> None:
        self._cancel = None
        count = self.wal.syncing
        done = self.wal.finish()
        self._log("fsync", {"entries": count, "batch": self.wal.batches})
        # What came meanwhile is the next batch; what this batch causes comes too late for it.
        self.sync()
        for each in done:
            self._written(self.name, each)

    def _log(self, event: str, extra: dict[str, int]) -> None:
        self._tap.internal(
            t_us=self._clock.now_us,
            event=event,
            vantage=f"wal:{self.name}",
            kind="batch",
            ledger={"mailbox": self.wal.waiting},
            extra=extra,
        )
