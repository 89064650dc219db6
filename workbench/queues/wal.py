"""A node's write-ahead log: one file, one disk, all the node's queues.

While the disk is busy with one batch everything that comes waits, and all of it is the next batch:
one write, one fsync, and then every writer hears how far it has got. So throughput is what is in
flight divided by the time of an fsync, whatever that time is (`ra_log_wal.erl`).

The state machine knows no time: its owner lets as much pass between `begin` and `finish` as
the disk needs. `disk` is what a crash leaves.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from msgspec import Struct

from .raft import Entry, RaftLog

MOST_IN_A_BATCH = 8192  # ra_log_wal.erl: wal_max_batch_size


class Record(NamedTuple):
    """Entries that one writer handed over at once."""

    writer: str
    entries: tuple[Entry, ...]
    generation: int


class Done(Struct, frozen=True, gc=False):
    """A writer's last entry in a batch that is on disk now."""

    writer: str
    index: int
    generation: int


class WriteAheadLog:
    """The log of one node.

    Attributes:
        disk: per writer, what is on disk.
        batches: how many fsyncs were begun.
        entries: how many entries they were for.
        waiting: entries that wait for the next batch.
        syncing: entries of the batch that is on its way to the disk.
    """

    def __init__(self) -> None:
        self.disk: dict[str, RaftLog] = {}
        self.batches = 0
        self.entries = 0
        self.waiting = 0
        self.syncing = 0
        self._waiting: deque[Record] = deque()
        self._batch: list[Record] = []

    @property
    def busy(self) -> bool:
        """A batch has been written and is not yet safe."""
        return bool(self._batch)

    def write(self, writer: str, entries: tuple[Entry, ...], generation: int) -> None:
        """Take entries; they wait for the next batch."""
        self._waiting.append(Record(writer, entries, generation))
        self.waiting += len(entries)

    def put(self, writer: str, entries: tuple[Entry, ...]) -> None:
        """Entries that were there before anything happened: on disk, and no fsync counted."""
        self._to_disk(writer, entries)

    def begin(self) -> int:
        """Write what waits and begin the fsync; returns how many entries the batch has.

        Nothing begins while a batch is under way, or if nothing waits: the answer is then 0.
        """
        if self._batch or not self._waiting:
            return 0
        count = 0
        while self._waiting:
            size = len(self._waiting[0].entries)
            if count and count + size > MOST_IN_A_BATCH:
                break
            self._batch.append(self._waiting.popleft())
            count += size
        self.waiting -= count
        self.syncing = count
        self.batches += 1
        self.entries += count
        return count

    def finish(self) -> list[Done]:
        """The fsync is done; returns for each writer how far it has got, in order of writing."""
        batch, self._batch = self._batch, []
        self.syncing = 0
        done: dict[str, Done] = {}
        for writer, entries, generation in batch:
            if not entries:  # its writer was forgotten meanwhile
                continue
            self._to_disk(writer, entries)
            done[writer] = Done(writer, entries[-1].index, generation)
        return list(done.values())

    def crash(self, saved: int = 0) -> int:
        """Power is gone: what was not synced is lost.

        Args:
            saved: entries of the batch under way that had reached the disk all the same, from its
                first one on; the rest of it did not.

        Returns:
            How many entries were lost.
        """
        lost = self.waiting + self.syncing
        for writer, entries, _ in self._batch:
            if saved <= 0:
                break
            if not entries:
                continue
            self._to_disk(writer, entries[:saved])
            lost -= len(entries[:saved])
            saved -= len(entries)
        self._batch = []
        self._waiting.clear()
        self.waiting = self.syncing = 0
        return lost

    def forget(self, writer: str) -> None:
        """Keep nothing of a writer; the fsync under way goes on without its entries."""
        self.disk.pop(writer, None)
        self._waiting = deque(record for record in self._waiting if record.writer != writer)
        self.waiting = sum(len(record.entries) for record in self._waiting)
        self._batch = [
            record._replace(entries=()) if record.writer == writer else record
            for record in self._batch
        ]
        self.syncing = sum(len(record.entries) for record in self._batch)

    def restore(self, writer: str) -> RaftLog:
        """A writer's log as it is on disk, to begin with after a restart."""
        return RaftLog(self.disk[writer].entries()) if writer in self.disk else RaftLog()

    def _to_disk(self, writer: str, entries: tuple[Entry, ...]) -> None:
        self.disk.setdefault(writer, RaftLog()).overwrite(entries)
