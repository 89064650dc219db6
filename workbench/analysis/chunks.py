"""How a job is cut so that one busy link does not become one busy task.

A window of Spark over a link puts all rows of that link into one task. Here a trace is cut by `seq`
into chunks instead, a chunk with all its links goes to one task, and what a link's counters are
when a chunk begins is worked out from one short summary per chunk and link.

Where a trace is many runs and none of them is long, there is no need to cut: each run goes to one
task as it is, and nothing has to be carried from one chunk to the next.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "CHUNK", "DEAL", "Chunks", "chunk_of", "in_cells", "run_deal", "task_of",
]  # fmt: skip

CHUNK, DEAL = "chunk", "deal"
WHOLE_ROWS = 100_000
"""A trace of no more rows is worked through faster than it is cut."""
SHORT = 16
"""A run is short if it has no more than one in so many of all rows."""
LARGEST_SHARE = 9
"""Runs are dealt so that no task has more than one in so many of all rows, or they are cut."""
_TRIES = 300_000
_SHIFT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """The size of chunks and the number of tasks they are dealt to.

    Attributes:
        rows: rows of a run in one chunk.
        tasks: partitions after a shuffle.
        whole: the trace is small: where each link may be one task, it is.
        deal: not 0: no run is cut, and this number deals runs to tasks evenly; see `run_deal`.
    """

    rows: int = 65_536
    tasks: int = 64
    whole: bool = False
    deal: int = 0

    @property
    def uncut(self) -> bool:
        """Each link's rows are in one task."""
        return self.whole or self.deal != 0

    @classmethod
    def of(cls, rows: int, runs: Mapping[str, int] | None = None) -> Chunks:
        """For a trace of so many rows; `runs`: by name how many each run has, if that is known.

        128 chunks are dealt to 16 tasks in turn. A task then has a sixteenth of the rows of a long
        run, and a thousand links give at most 128,000 summaries. More tasks would cost more than
        they balance: each is sent and unpacked, and puts together the code of its windows anew.
        """
        tasks = max(4, min(16, rows // 4_096))
        whole = rows <= WHOLE_ROWS
        deal = 0 if whole or not runs else _even_deal(runs, tasks)
        return cls(rows=max(2_048, rows // 128), tasks=tasks, whole=whole, deal=deal)


def _even_deal(runs: Mapping[str, int], tasks: int) -> int:
    """The number that deals runs most evenly, of as many as are worth a try; 0 if none does."""
    rows = sum(runs.values())
    if max(runs.values()) * SHORT > rows:
        return 0
    sums = [(zlib.crc32(run.encode()), size) for run, size in runs.items()]
    best, found = rows, 0
    for number in range(1, 2 * max(8, min(2_000, _TRIES // len(sums))), 2):
        loads = [0] * tasks
        for value, size in sums:
            loads[_task(value, number, tasks)] += size
        if max(loads) < best:
            best, found = max(loads), number
    return found if best * LARGEST_SHARE <= rows else 0


def task_of(run: str, chunks: Chunks) -> int:
    """The task that a run is dealt to, as `run_deal` has it."""
    return _task(zlib.crc32(run.encode()), chunks.deal, chunks.tasks)


def _task(check_sum: int, number: int, tasks: int) -> int:
    return (check_sum * number >> _SHIFT) % tasks


def run_deal(chunks: Chunks) -> Column:
    """The task that a row's run is dealt to: its check sum, times a number that deals evenly."""
    mixed = F.shiftright(F.crc32(F.col("run").cast("binary")) * F.lit(chunks.deal), _SHIFT)
    return F.pmod(mixed, F.lit(chunks.tasks)).cast("int")


def chunk_of(chunks: Chunks) -> Column:
    """The number of a row's chunk within its run."""
    return F.floor(F.col("seq") / F.lit(chunks.rows)).cast("long")


def in_cells(df: DataFrame, chunks: Chunks) -> DataFrame:
    """Adds `deal`, the task, and `chunk`, the number within the run; where runs are cut.

    This is the one shuffle: a window by `chunk`, `deal` and anything that tells runs apart needs no
    other. Chunks that follow each other go to different tasks: dealt by a hash, one task in twenty
    would get twice its share.
    """
    tasks = F.lit(chunks.tasks)
    if chunks.deal:
        named = df.schema["run"].dataType.typeName() == "string"
        # What a question lets through is few rows, which may have a hash in the name's place.
        deal = run_deal(chunks) if named else F.pmod(F.col("run"), tasks).cast("int")
        return df.withColumn(DEAL, deal).repartitionById(chunks.tasks, DEAL)
    chunk = chunk_of(chunks)
    deal = F.pmod(chunk + F.pmod(F.xxhash64("run"), tasks), tasks).cast("int")
    return df.withColumns({CHUNK: chunk, DEAL: deal}).repartitionById(chunks.tasks, DEAL)
