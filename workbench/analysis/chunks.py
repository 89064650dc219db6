"""How a job is cut so that one busy link does not become one busy task.

A window of Spark over a link puts all rows of that link into one task. Here a trace is cut by `seq`
into chunks instead, a chunk of a connection, with all its links, goes to one task, and what a
link's counters are when a chunk begins is worked out from one short summary per chunk and link.

A trace whose longest connections fit into memory is not cut: to carry states from one chunk to the
next costs more than it gains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["CHUNK", "DEAL", "UNIT", "Chunks", "chunk_of", "in_cells", "unit"]

CHUNK, DEAL, UNIT = "chunk", "deal", "unit"
AT_ONCE, ROWS_OF_MB = 4, 1_500
"""So many connections may be worked on at once, and so many of their rows find room in a megabyte.

A window of Spark holds all rows of a link, and windows that follow each other hold them several
times. With 512 MB and two cores all of four questions were answered about one link with 3,200 rows
for each megabyte, and two of them about four links with 1,600 each.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """The size of chunks and the number of tasks they are dealt to.

    Attributes:
        rows: rows of a run in one chunk.
        tasks: partitions after a shuffle.
        whole: each link may be one task, for the longest of them fit into memory.
    """

    rows: int = 65_536
    tasks: int = 64
    whole: bool = False

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
        named = (size for (_, name), size in (connections or {}).items() if name is not None)
        longest = sum(nlargest(AT_ONCE, named)) or rows
        whole = longest <= room_mb * ROWS_OF_MB
        return cls(rows=max(2_048, rows // 128), tasks=tasks, whole=whole)

    def beside(self, other: Chunks) -> Chunks:
        """For two traces in one table."""
        return Chunks(
            rows=max(self.rows, other.rows),
            tasks=max(self.tasks, other.tasks),
            whole=self.whole and other.whole,
        )


def unit() -> Column:
    """What stands for a row's connection where rows are dealt: a check sum of its name."""
    name = F.concat_ws(" ", "run", "connection")
    return F.crc32(name.cast("binary"))


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
    chunk = chunk_of(chunks)
    deal = F.pmod(chunk + units, F.lit(chunks.tasks)).cast("int")
    return df.withColumns({CHUNK: chunk, DEAL: deal}).repartitionById(chunks.tasks, DEAL)
