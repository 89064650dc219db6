"""How a job is cut so that one busy link does not become one busy task.

A window of Spark over a link puts all rows of that link into one task. Here a trace is cut by `seq`
into chunks instead, a chunk of a connection, with all its links, goes to one task, and what a
link's counters are when a chunk begins is worked out from one short summary per chunk and link.

Where a trace is many connections and none of them is long, there is no need to cut: each goes to
one task as it is, and nothing has to be carried from one chunk to the next. Nor is a trace cut
whose longest connections fit into memory: to carry states costs more than it gains.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "CHUNK", "DEAL", "UNIT", "Chunks", "chunk_of", "dealt", "in_cells", "unit",
]  # fmt: skip

CHUNK, DEAL, UNIT = "chunk", "deal", "unit"
UNDEALT_ROWS = 100_000
"""A trace of no more rows is not dealt by connections: a plain shuffle by link is as good."""
AT_ONCE, ROWS_OF_MB = 4, 1_500
"""So many connections may be worked on at once, and so many of their rows find room in a megabyte.

A window of Spark holds all rows of a link, and windows that follow each other hold them several
times. With 512 MB and two cores all of four questions were answered about one link with 3,200 rows
for each megabyte, and two of them about four links with 1,600 each.
"""
SHORT = 16
"""A connection is short if it has no more than one in so many of the rows of connections."""
LARGEST_SHARE = 9
"""No task is dealt more than one in so many of these; else connections are cut."""
_TRIES = 300_000
_SHIFT = 16
_BETWEEN = " "


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """The size of chunks and the number of tasks they are dealt to.

    Attributes:
        rows: rows of a run in one chunk.
        tasks: partitions after a shuffle.
        whole: each link may be one task, for the longest of them fit into memory.
        deal: not 0: no connection is cut, and this number deals them evenly; see `dealt`.
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
    def of(
        cls,
        rows: int,
        connections: Mapping[tuple[str, str | None], int] | None = None,
        *,
        room_mb: int,
    ) -> Chunks:
        """For a trace of so many rows.

        128 chunks are dealt to 16 tasks in turn. A task then has a sixteenth of the rows of a long
        run, and a thousand links give at most 128,000 summaries. More tasks would cost more than
        they balance: each is sent and unpacked, and puts together the code of its windows anew.

        Args:
            rows: of the whole trace.
            connections: by run and name how many rows each has, if that is known.
            room_mb: the memory that tasks work in; see `session.room_mb`.
        """
        tasks = max(4, min(16, rows // 4_096))
        named = {key: size for key, size in (connections or {}).items() if key[1] is not None}
        deal = 0 if rows <= UNDEALT_ROWS or not named else _even_deal(named, tasks)
        longest = sum(nlargest(AT_ONCE, named.values())) or rows
        whole = longest <= room_mb * ROWS_OF_MB and not deal
        return cls(rows=max(2_048, rows // 128), tasks=tasks, whole=whole, deal=deal)

    def beside(self, other: Chunks) -> Chunks:
        """For two traces in one table; their runs are told apart, so the deal of neither holds."""
        return Chunks(
            rows=max(self.rows, other.rows),
            tasks=max(self.tasks, other.tasks),
            whole=self.uncut and other.uncut,
        )


def _even_deal(connections: Mapping[tuple[str, str | None], int], tasks: int) -> int:
    """The number that deals most evenly, of as many as are worth a try; 0 if none does."""
    rows = sum(connections.values())
    if max(connections.values()) * SHORT > rows:
        return 0
    sums = [(_check_sum(*key), size) for key, size in connections.items()]
    best, found = rows, 0
    for number in range(1, 2 * max(8, min(2_000, _TRIES // len(sums))), 2):
        loads = [0] * tasks
        for value, size in sums:
            loads[_task(value, number, tasks)] += size
        if max(loads) < best:
            best, found = max(loads), number
    return found if best * LARGEST_SHARE <= rows else 0


def _check_sum(run: str, connection: str | None) -> int:
    return zlib.crc32(f"{run}{_BETWEEN}{connection or ''}".encode())


def _task(check_sum: int, number: int, tasks: int) -> int:
    """The task that a connection is dealt to by this number, as `dealt` has it."""
    return (check_sum * number >> _SHIFT) % tasks


def unit() -> Column:
    """What stands for a row's connection where rows are dealt: a check sum of its name."""
    name = F.concat(F.col("run"), F.lit(_BETWEEN), F.coalesce("connection", F.lit("")))
    return F.crc32(name.cast("binary"))


def dealt(units: Column, chunks: Chunks) -> Column:
    """The task of a connection that is not cut: its check sum, times a number that deals evenly."""
    mixed = F.shiftright(units * F.lit(chunks.deal), _SHIFT)
    return F.pmod(mixed, F.lit(chunks.tasks)).cast("int")


def chunk_of(chunks: Chunks) -> Column:
    """The number of a row's chunk within its run."""
    return F.floor(F.col("seq") / F.lit(chunks.rows)).cast("long")


def in_cells(df: DataFrame, chunks: Chunks, key: str) -> DataFrame:
    """Adds `deal`, the task, and `chunk`, the number within the run; where runs are cut.

    This is the one shuffle: a window by `chunk`, `deal` and anything that tells connections apart
    needs no other. Chunks that follow each other go to different tasks: dealt by a hash, one task
    in twenty would get twice its share.

    Args:
        df: rows with `unit`, or with `run` and `connection`; other rows are dealt by their key.
        chunks: how they are cut.
        key: whose rows follow each other; it tells connections apart.
    """
    if UNIT in df.columns:
        units = F.col(UNIT)
    elif "connection" in df.columns:
        units = unit()
    else:
        units = F.crc32(F.col(key).cast("string").cast("binary"))
    tasks = F.lit(chunks.tasks)
    if chunks.deal:
        return df.withColumn(DEAL, dealt(units, chunks)).repartitionById(chunks.tasks, DEAL)
    chunk = chunk_of(chunks)
    deal = F.pmod(chunk + units, tasks).cast("int")
    return df.withColumns({CHUNK: chunk, DEAL: deal}).repartitionById(chunks.tasks, DEAL)
