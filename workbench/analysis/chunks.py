"""How a job is cut so that one busy link does not become one busy task.

A window of Spark over a link puts all rows of that link into one task. Here a trace is cut by `seq`
into chunks instead, a chunk with all its links goes to one task, and what a link's counters are
when a chunk begins is worked out from one short summary per chunk and link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["CELL", "CHUNK", "DEAL", "Chunks", "dealt", "in_cells", "latest"]

CHUNK, CELL, DEAL = "chunk", "cell", "deal"
WHOLE_ROWS = 100_000
"""A trace of no more rows is worked through faster than it is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """The size of chunks and the number of tasks they are dealt to.

    Attributes:
        rows: rows of a run in one chunk.
        tasks: partitions after a shuffle.
        whole: the trace is small: where each link may be one task, it is.
    """

    rows: int = 65_536
    tasks: int = 64
    whole: bool = False

    @property
    def span(self) -> int:
        """`rows`, or the next power of 2: places in such a chunk are bits of `seq`."""
        return 1 << min(28, max(0, self.rows - 1).bit_length())

    @classmethod
    def of(cls, rows: int) -> Chunks:
        """For a trace of so many rows.

        128 chunks are dealt to 16 tasks in turn. A task then has a sixteenth of the rows of a long
        run, and a thousand links give at most 128,000 summaries. More tasks would cost more than
        they balance: each is sent and unpacked, and puts together the code of its windows anew.
        """
        return cls(
            rows=max(2_048, rows // 128),
            tasks=max(4, min(16, rows // 4_096)),
            whole=rows <= WHOLE_ROWS,
        )


def dealt(chunk: Column, of: Column, chunks: Chunks) -> Column:
    """The task that a chunk is dealt to: chunks that follow each other go to different ones.

    Dealt by a hash, one task in twenty would get twice its share.

    Args:
        chunk: its number.
        of: what it is a chunk of, as a hash: this says which task gets the first.
        chunks: how many tasks there are.
    """
    tasks = F.lit(chunks.tasks)
    return F.pmod(F.pmod(chunk, tasks) + F.pmod(of, tasks), tasks).cast("int")


def in_cells(df: DataFrame, chunks: Chunks) -> DataFrame:
    """Adds `chunk` (number within the run), `cell` (run and chunk) and `deal` (the cell's task).

    This is the one shuffle: a window by `cell`, `deal` and anything else needs no other.
    """
    number: Column = F.floor(F.col("seq") / F.lit(chunks.rows)).cast("long")
    rows = df.withColumn(CHUNK, number).withColumns(
        {
            CELL: F.xxhash64("run", CHUNK),
            DEAL: dealt(F.col(CHUNK), F.xxhash64("run"), chunks),
        }
    )
    return rows.repartitionById(chunks.tasks, DEAL)


def latest(
    rows: DataFrame,
    chunks: Chunks,
    columns: Mapping[str, Column],
    *,
    order: Sequence[str] = ("seq",),
    both: bool = False,
) -> DataFrame:
    """Adds to each row the latest value of each expression in the earlier rows of its `key`.

    Nulls are passed over. Each chunk is worked through alone; what it begins with comes from the
    last row of each earlier chunk, of which there are few.

    Args:
        rows: rows with `run`, `seq` and a `key`; they are dealt anew, for Spark would put what
            looks small to it into one task.
        chunks: how they are cut.
        columns: names of the new columns, and what is remembered. `before_NAME` is the latest
            value in the rows before.
        order: columns by which the rows of a key follow each other, the trace's `seq` first.
        both: `NAME` too is filled, with the row itself counted in; else it is left out.
    """
    cells = in_cells(rows, chunks)
    window = Window.partitionBy(CELL, "key", DEAL).orderBy(*order)
    upto = window.rowsBetween(Window.unboundedPreceding, 0)
    earlier = window.rowsBetween(Window.unboundedPreceding, -1)
    local = cells.withColumns(
        {
            **{f"new_{name}": value for name, value in columns.items()},
            "is_last": F.lead("seq").over(window).isNull(),
        }
    ).withColumns(
        {f"upto_{name}": F.last(f"new_{name}", ignorenulls=True).over(upto) for name in columns}
    )
    local = local.withColumns(
        {f"here_{name}": F.last(f"new_{name}", ignorenulls=True).over(earlier) for name in columns}
    )
    chunks_before = (
        Window.partitionBy("key").orderBy(CHUNK).rowsBetween(Window.unboundedPreceding, -1)
    )
    carry = local.where("is_last").select(
        CELL,
        "key",
        *(
            F.last(f"upto_{name}", ignorenulls=True).over(chunks_before).alias(f"from_{name}")
            for name in columns
        ),
    )
    kept = [name for name in cells.columns if name not in columns or not both]

    def filled(place: str, name: str) -> Column:
        return F.coalesce(F.col(f"{place}_{name}"), F.col(f"from_{name}"))

    return local.join(F.broadcast(carry), [CELL, "key"], "inner").select(
        *kept,
        *(filled("here", name).alias(f"before_{name}") for name in columns),
        *(filled("upto", name).alias(name) for name in columns if both),
    )
