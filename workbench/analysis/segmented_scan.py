"""What came before a row, for rows of many keys: running sums, and the latest value of things.

Every question that follows links or sessions through time is built on this one step. A trace that
is small is worked through in one go, key by key. Of a large one each chunk is worked through alone
and begins with what the chunks before it add up to, so that no link is one task (`chunks`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from .chunks import CHUNK, DEAL, Chunks, chunk_of, in_cells

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

__all__ = ["alone", "checkpointed", "collected", "released", "segmented_scan"]

_KEPT: ContextVar[list[DataFrame] | None] = ContextVar("kept", default=None)


def alone(key: str, chunks: Chunks, order: Sequence[str] = ("seq",)) -> WindowSpec:
    """The rows of a key in their order, as far as one task has them."""
    cell = [key] if chunks.whole else [key, CHUNK, DEAL]
    return Window.partitionBy(*cell).orderBy(*order)


def segmented_scan(
    rows: DataFrame,
    chunks: Chunks,
    lasts: Mapping[str, Column] | None = None,
    *,
    marks: Mapping[str, Column] | None = None,
    count: Column | None = None,
    state: Column | None = None,
    peak: bool = False,
    key: str = "key",
    order: Sequence[str] = ("seq",),
) -> DataFrame:
    """Adds to each row what the rows of its key up to it have come to.

    Rows that were dealt to tasks already are not dealt again: several scans, with different keys
    too, need one shuffle.

    Args:
        rows: with `seq` and the key, and what `in_cells` deals by.
        chunks: how they are cut.
        lasts: names, and what is remembered of a row; null where it says nothing.
        marks: the same; they are remembered with the sum and the state at their row.
        count: what is added up.
        state: the latest of this is wanted; null where a row does not change it.
        peak: the highest sum so far is wanted too, in `peak`, 0 at the least.
        key: whose rows follow each other.
        order: columns by which they do, `seq` first.

    Returns:
        The rows with `was_NAME` (of the rows before) and `now_NAME` (of this row too) for each NAME
        that is remembered, of `marks` as struct(it, n, state); with `n`, the sum, this row included
        (if there is a `count`), and `state` and `state_before`, this row not included (if there is
        a `state`).
    """
    lasts, marks = dict(lasts or {}), dict(marks or {})
    cells = rows if chunks.whole or DEAL in rows.columns else in_cells(rows, chunks, key)
    window = alone(key, chunks, order)
    upto = window.rowsBetween(Window.unboundedPreceding, 0)
    earlier = window.rowsBetween(Window.unboundedPreceding, -1)
    zero, nothing = F.lit(0).cast("long"), F.lit(None).cast("boolean")
    given = {f"now_{name}": value for name, value in (lasts | marks).items()}
    sums, states = {}, {}
    if count is not None:
        given["n"] = F.coalesce(count.cast("long"), zero)
        sums["n"] = F.sum("n").over(upto)
    if state is not None:
        given["state"] = state
        sums["state_before"] = F.last("state", ignorenulls=True).over(earlier)
        states["state"] = F.coalesce("state", "state_before")
    local = _with(_with(_with(cells, given), sums), states)
    # Windows of their own for the sums, for marks need them; all else waits for the second, because
    # every window copies the whole row.
    then = (zero if count is None else F.col("n"), nothing if state is None else F.col("state"))
    local = _with(local, {f"now_{name}": _mark(F.col(f"now_{name}"), *then) for name in marks})
    found = {
        f"was_{name}": F.last(f"now_{name}", ignorenulls=True).over(earlier)
        for name in (*lasts, *marks)
    }
    if peak:
        found["peak"] = F.greatest(F.max("n").over(upto), zero)
    if chunks.whole:
        local = _with(local, found)
    elif sums or marks:
        found["is_last"] = F.lead("seq").over(window).isNull()
        local = checkpointed(_with(local, found))
        asked = {"n": count is not None, "state": state is not None, "peak": peak}
        scanned = [name for name, wanted in asked.items() if wanted]
        latest = (F.coalesce(f"now_{name}", f"was_{name}").alias(f"now_{name}")
                  for name in (*lasts, *marks))  # fmt: skip
        ends = local.where("is_last").select(key, CHUNK, *scanned, *latest)
        local = _carried(local.drop("is_last"), ends, key, scanned, lasts, marks)
    else:  # the last values are found without an order, so the rows need not be kept for a join
        place = F.struct(*order)
        latest = (F.max_by(value, F.when(value.isNotNull(), place)).alias(f"now_{name}")
                  for name, value in lasts.items())  # fmt: skip
        ends = rows.withColumn(CHUNK, chunk_of(chunks)).groupBy(key, CHUNK).agg(*latest)
        local = _carried(_with(local, found), ends, key, (), lasts, ())
    latest = {f"now_{name}": F.coalesce(f"now_{name}", f"was_{name}") for name in (*lasts, *marks)}
    return _with(local, latest)


def _with(rows: DataFrame, columns: dict[str, Column]) -> DataFrame:
    """The rows with these columns too; Spark Connect refuses to be given none."""
    return rows.withColumns(columns) if columns else rows


def _mark(it: Column, n: Column, state: Column) -> Column:
    return F.when(it.isNotNull(), F.struct(it.alias("it"), n.alias("n"), state.alias("state")))


def _carried(
    local: DataFrame,
    carry: DataFrame,
    key: str,
    scanned: Sequence[str],
    lasts: Iterable[str],
    marks: Iterable[str],
) -> DataFrame:
    """Adds to each chunk what the chunks before it, with these ends, have come to."""
    before = Window.partitionBy(key).orderBy(CHUNK).rowsBetween(Window.unboundedPreceding, -1)
    zero = F.lit(0).cast("long")
    from_n = F.col("from_n") if "n" in scanned else zero
    from_state = F.col("from_state") if "state" in scanned else F.lit(None).cast("boolean")

    def absolute(name: str) -> Column:
        """With the sum since the trace began and not since the chunk did."""
        mark = F.col(name)
        return _mark(mark["it"], mark["n"] + from_n, F.coalesce(mark["state"], from_state))

    starts = {f"from_{name}": F.last(name, ignorenulls=True).over(before)
              for name in ("state", *(f"now_{name}" for name in lasts))
              if name in carry.columns}  # fmt: skip
    if "n" in scanned:
        starts["from_n"] = F.coalesce(F.sum("n").over(before), zero)
    peak = {"peak": F.col("peak") + from_n} if "peak" in scanned else {}
    carry = _with(carry, starts)
    carry = _with(carry, {f"now_{name}": absolute(f"now_{name}") for name in marks} | peak)
    ends = {
        f"from_now_{name}": F.last(f"now_{name}", ignorenulls=True).over(before) for name in marks
    }
    if "peak" in scanned:
        ends["from_peak"] = F.coalesce(F.max("peak").over(before), zero)
    carry = _with(carry, ends).select(key, CHUNK, *starts, *ends)
    whole = local.join(collected(carry), [key, CHUNK])  # exactly one match per row
    filled = {f"was_{name}": F.coalesce(f"was_{name}", f"from_now_{name}") for name in lasts}
    for name in marks:
        filled[f"now_{name}"] = absolute(f"now_{name}")
        was = absolute(f"was_{name}")
        filled[f"was_{name}"] = F.coalesce(was, F.col(f"from_now_{name}"))
    if "n" in scanned:
        filled["n"] = F.col("n") + from_n
    if "state" in scanned:
        filled |= {name: F.coalesce(name, from_state) for name in ("state", "state_before")}
    if "peak" in scanned:
        filled["peak"] = F.greatest("from_peak", from_n + F.col("peak"))
    return _with(whole, filled).drop(*starts, *ends)


def checkpointed(rows: DataFrame) -> DataFrame:
    """The same rows, worked out once, when they are first asked for.

    What is lost with an executor is worked out again. The rows stay in Spark's cache, on disk where
    the heap is full, until `released` ends, or the session, or with `spark.catalog.clearCache()`.
    """
    rows.persist()
    kept = _KEPT.get()
    if kept is not None:
        kept.append(rows)
    return rows


@contextmanager
def released() -> Iterator[None]:
    """Gives back what questions asked within it keep in Spark's cache.

    For callers that hold the whole answer at the end. Along with the rows Spark keeps the plan of
    every step: a heap of 512 MB was full after four questions about a million rows.
    """
    kept: list[DataFrame] = []
    token = _KEPT.set(kept)
    try:
        yield
    finally:
        _KEPT.reset(token)
        # The last first: what others were made of would be planned anew for these.
        for rows in reversed(kept):
            rows.unpersist()


def collected(few: DataFrame) -> DataFrame:
    """The same rows, worked out now and held by the driver.

    What is joined with rows that it was made of would double the plan with each such step; a table
    of known size ends it there, and Spark knows whether it is small enough for each task.
    """
    text = few.schema.json().replace('"nullable":false', '"nullable":true')
    schema = T.StructType.fromJson(json.loads(text))  # Arrow takes a struct's nulls in no other
    return few.sparkSession.createDataFrame(few.to(schema).toArrow(), schema)
