"""One pass over rows of many keys: a running sum, and the latest of each of some columns.

Like `running`, and leaner: what is remembered takes the place of the column itself, and only what a
row comes to is kept, not what came before it. Two passes with different keys over the same cells
need one shuffle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from .chunks import CELL, CHUNK, Chunks, cell_of
from .running import collected, persisted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

__all__ = ["alone", "sweep"]


def alone(key: str, chunks: Chunks) -> WindowSpec:
    """The rows of a key in order of `seq`, as far as one task has them."""
    return Window.partitionBy(*cell_of(key, chunks)).orderBy("seq")


def sweep(
    cells: DataFrame,
    key: str,
    chunks: Chunks,
    *,
    count: str,
    lasts: Sequence[str],
    marks: Sequence[str],
    state: str | None = None,
) -> DataFrame:
    """Adds `n`, and puts the latest value in the place of each of `lasts` and `marks`.

    Args:
        cells: rows dealt to cells (`chunks.in_cells`), or as they are if the trace is whole.
        key: whose rows follow each other.
        chunks: how the trace is cut.
        count: boolean column; `n` is in how many rows so far it was true.
        lasts: columns; null where a row says nothing.
        marks: struct columns; they become struct(it, n, state) with the sum and the state then.
        state: one of `lasts`.
    """
    upto = alone(key, chunks).rowsBetween(Window.unboundedPreceding, 0)
    ends = {} if chunks.uncut else {"is_last": F.lead("seq").over(alone(key, chunks)).isNull()}
    # Two windows, for marks need the sum; all that can waits for the second, because every window
    # copies the whole row.
    first = [] if state is None else [state]
    rows = cells.withColumns(
        {"n": F.sum(F.col(count).cast("long")).over(upto)}
        | {name: F.last(name, ignorenulls=True).over(upto) for name in first}
    )
    then: Column = F.lit(None).cast("boolean") if state is None else F.col(state)
    rows = rows.withColumns(
        {
            name: F.last(
                F.when(
                    F.col(name).isNotNull(),
                    F.struct(F.col(name).alias("it"), "n", then.alias("state")),
                ),
                ignorenulls=True,
            ).over(upto)
            for name in marks
        }
        | {name: F.last(name, ignorenulls=True).over(upto) for name in lasts if name not in first}
        | ends
    )
    return rows if chunks.uncut else _carried(persisted(rows), key, lasts, marks, state)


def _carried(
    local: DataFrame, key: str, lasts: Sequence[str], marks: Sequence[str], state: str | None
) -> DataFrame:
    """Adds to each cell what the cells before it have come to."""
    before = Window.partitionBy(key).orderBy(CHUNK).rowsBetween(Window.unboundedPreceding, -1)

    def since(name: str, start: str) -> Column:
        mark = F.col(name)
        then = mark["state"] if state is None else F.coalesce(mark["state"], F.col(start))
        return F.when(
            mark.isNotNull(),
            F.struct(
                mark["it"].alias("it"), (mark["n"] + F.col("from_n")).alias("n"),
                then.alias("state"),
            ),
        )  # fmt: skip

    start = f"from_{state}"
    carry = local.where("is_last").select(CELL, CHUNK, key, "n", *lasts, *marks)
    carry = carry.withColumns(
        {"from_n": F.coalesce(F.sum("n").over(before), F.lit(0).cast("long"))}
        | {f"from_{name}": F.last(name, ignorenulls=True).over(before) for name in lasts}
    )
    carry = carry.withColumns({name: since(name, start) for name in marks})
    carry = carry.select(
        CELL, key, "from_n", *(f"from_{name}" for name in lasts),
        *(F.last(name, ignorenulls=True).over(before).alias(f"from_{name}") for name in marks),
    )  # fmt: skip
    whole = local.join(collected(carry), [CELL, key])  # exactly one match per row
    return whole.withColumns(
        {"n": F.col("n") + F.col("from_n")}
        | {name: F.coalesce(name, f"from_{name}") for name in lasts}
        | {name: F.coalesce(since(name, start), F.col(f"from_{name}")) for name in marks}
    ).drop("is_last", "from_n", *(f"from_{name}" for name in (*lasts, *marks)))
