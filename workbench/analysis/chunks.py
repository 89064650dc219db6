"""How a job is cut so that one busy link does not become one busy task.

A window of Spark over a link puts all rows of that link into one task. Here a trace is cut by `seq`
into chunks instead, a chunk with all its links goes to one task, and what a link's counters are
when a chunk begins is worked out from one short summary per chunk and link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["CELL", "CHUNK", "Chunks", "in_cells"]

CHUNK, CELL = "chunk", "cell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """The size of chunks and the number of tasks they are dealt to.

    Attributes:
        rows: rows of a run in one chunk.
        tasks: partitions after a shuffle.
    """

    rows: int = 65_536
    tasks: int = 64

    @classmethod
    def of(cls, rows: int) -> Chunks:
        """For a trace of so many rows.

        128 chunks are dealt to 64 tasks by their hash. The fullest task then has about a twentieth
        of the rows, and a thousand links give at most 128,000 summaries. A small trace is cut less
        often: each task costs about 20 ms.
        """
        return cls(rows=max(2_048, rows // 128), tasks=max(4, min(64, rows // 4_096)))


def in_cells(df: DataFrame, chunks: Chunks) -> DataFrame:
    """Adds `chunk` (number within the run) and `cell` (run and chunk), and deals cells to tasks.

    This is the one shuffle: a window by `cell` and anything else needs no other.
    """
    number: Column = F.floor(F.col("seq") / F.lit(chunks.rows)).cast("long")
    return (
        df.withColumn(CHUNK, number)
        .withColumn(CELL, F.xxhash64("run", CHUNK))
        .repartition(chunks.tasks, CELL)
    )
