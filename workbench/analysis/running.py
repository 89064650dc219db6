"""What came before a row, for rows of many keys: running sums, and the latest value of things.

Every question that follows links or sessions through time is built on this one step. A trace that
is small is worked through in one go, key by key. Of a large one each chunk is worked through alone
and begins with what the chunks before it add up to, so that no link is one task (`chunks`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from .chunks import CELL, CHUNK, DEAL, Chunks, cell_of, in_cells

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["collected", "persisted", "running"]


def running(
    rows: DataFrame,
    chunks: Chunks,
    remembered: Mapping[str, Column],
    *,
    count: Column | None = None,
    state: Column | None = None,
    order: Sequence[str] = ("seq",),
    peak: bool = False,
) -> DataFrame:
    """Adds to each row what the rows of its `key` up to it have come to.

    Args:
        rows: with `run`, `seq` and `key`.
        chunks: how they are cut.
        remembered: names, and what is remembered of a row; null where it says nothing.
        count: what is added up; nothing if None.
        state: the latest of this is wanted beside the sum; null where a row does not change it.
        order: columns by which the rows of a key follow each other, `seq` first.
        peak: the highest sum so far is wanted too, in `peak`, 0 at the least.

    Returns:
        The rows with `n` (the sum, this row included), `state` and `state_before` (this row not
        included) and, for each NAME that is remembered, `was_NAME` (of the rows before) and
        `now_NAME` (of this row too): struct(it, n, state), the value, and sum and state at its row.
    """
    cells = rows if chunks.whole else in_cells(rows, chunks)
    window = Window.partitionBy(*cell_of("key", chunks)).orderBy(*order)
    upto = window.rowsBetween(Window.unboundedPreceding, 0)
    earlier = window.rowsBetween(Window.unboundedPreceding, -1)
    zero, nothing = F.lit(0).cast("long"), F.lit(None).cast("boolean")
    added = zero if count is None else F.coalesce(count.cast("long"), zero)
    local = cells.withColumns(
        {"n": added, "state": nothing if state is None else state}
        | {f"now_{name}": value for name, value in remembered.items()}
    )
    sums = {"n": F.sum("n").over(upto)} if count is not None else {}
    states = {"state_before": F.last("state", ignorenulls=True).over(earlier)}
    ends = {} if chunks.uncut else {"is_last": F.lead("seq").over(window).isNull()}
    local = local.withColumns(sums | states | ends)
    local = local.withColumn("state", F.coalesce("state", "state_before"))
    marked = {
        f"now_{name}": F.when(
            F.col(f"now_{name}").isNotNull(),
            F.struct(F.col(f"now_{name}").alias("it"), "n", "state"),
        )
        for name in remembered
    }
    local = local.withColumns(marked)
    highest = {"peak": F.greatest(F.max("n").over(upto), zero)} if peak else {}
    local = local.withColumns(
        {
            f"was_{name}": F.last(f"now_{name}", ignorenulls=True).over(earlier)
            for name in remembered
        }
        | highest
    )
    if chunks.deal:
        local = local.drop(DEAL)
    elif not chunks.whole:
        local = _joined(persisted(local), remembered, peak=peak)
    return local.withColumns(
        {f"now_{name}": F.coalesce(f"now_{name}", f"was_{name}") for name in remembered}
    )


def _joined(local: DataFrame, remembered: Mapping[str, Column], *, peak: bool) -> DataFrame:
    """Adds to each chunk what the chunks before it have come to."""
    before = Window.partitionBy("key").orderBy(CHUNK).rowsBetween(Window.unboundedPreceding, -1)
    tops = ["peak"] if peak else []
    lasts = local.where("is_last").select(
        CELL, CHUNK, "key", "n", "state", *tops,
        *(F.coalesce(f"now_{name}", f"was_{name}").alias(f"now_{name}") for name in remembered),
    )  # fmt: skip
    carry = lasts.withColumns(
        {
            "from_n": F.coalesce(F.sum("n").over(before), F.lit(0).cast("long")),
            "from_state": F.last("state", ignorenulls=True).over(before),
        }
    )
    carry = carry.withColumns(
        {f"now_{name}": _absolute(f"now_{name}") for name in remembered}
        | ({"peak": F.col("peak") + F.col("from_n")} if peak else {})
    )
    highest = [F.coalesce(F.max("peak").over(before), F.lit(0)).alias("from_peak")] if peak else []
    carry = carry.select(
        CELL, "key", "from_n", "from_state", *highest,
        *(
            F.last(f"now_{name}", ignorenulls=True).over(before).alias(f"from_{name}")
            for name in remembered
        ),
    )  # fmt: skip
    whole = local.join(collected(carry), [CELL, "key"])  # exactly one match per row
    filled = {
        "n": F.col("n") + F.col("from_n"),
        "state": F.coalesce("state", "from_state"),
        "state_before": F.coalesce("state_before", "from_state"),
    }
    for name in remembered:
        filled[f"now_{name}"] = _absolute(f"now_{name}")
        filled[f"was_{name}"] = F.coalesce(_absolute(f"was_{name}"), F.col(f"from_{name}"))
    if peak:
        filled["peak"] = F.greatest("from_peak", F.col("from_n") + F.col("peak"))
    gone = ["from_n", "from_state", "from_peak", "is_last", CELL, CHUNK, DEAL]
    return whole.withColumns(filled).drop(*gone, *(f"from_{name}" for name in remembered))


def _absolute(name: str) -> Column:
    """What a chunk remembers, with the sum since the trace began and not since the chunk did."""
    here = F.col(name)
    return F.when(
        here.isNotNull(),
        F.struct(
            here["it"].alias("it"),
            (here["n"] + F.col("from_n")).alias("n"),
            F.coalesce(here["state"], F.col("from_state")).alias("state"),
        ),
    )


def persisted(rows: DataFrame) -> DataFrame:
    """The same rows, worked out once, when they are first asked for.

    What is lost with an executor is worked out again. The rows stay in Spark's cache, on disk where
    the heap is full, as long as the session lasts or until `spark.catalog.clearCache()`.
    """
    return rows.persist(StorageLevel.MEMORY_AND_DISK)


def collected(few: DataFrame) -> DataFrame:
    """The same rows, worked out now and held by the driver.

    What is joined with rows that it was made of would double the plan with each such step; a table
    of known size ends it there, and Spark knows whether it is small enough for each task.
    """
    text = few.schema.json().replace('"nullable":false', '"nullable":true')
    schema = T.StructType.fromJson(json.loads(text))  # Arrow takes a struct's nulls in no other
    return few.sparkSession.createDataFrame(few.to(schema).toArrow(), schema)
