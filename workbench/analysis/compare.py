"""What differs between two traces, and is that much?

`compare` of `data/README.md`: one row per measure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from . import channels
from .chunks import Chunks
from .compose import Transformer, typed
from .endpoint_view import seen, spoken
from .grants import at_zero
from .readings import links_read, senders, sessions_read
from .schemas import COMPARE, LINK, TRACE
from .segmented_scan import checkpointed, segmented_scan
from .settling import settlements
from .violations import violations_of
from .windows import windows_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, GroupedData

__all__ = ["compare"]

TOTALS = ("messages", "frames", "duration_us", "zero_us", "closed_us", "violations")
SAMPLES = ("gap_us", "settlement_us")
SIDES = ("left", "right")


@typed(TRACE, COMPARE)
def compare(right: DataFrame, chunks: Chunks = Chunks()) -> Transformer:  # noqa: B008
    """Gives one row for each measure; the trace it is asked of is the left one.

    Args:
        right: the other trace.
        chunks: how the traces are cut; see `reading.open_trace`.
    """

    def transform(left: DataFrame) -> DataFrame:
        # Both are one trace to what is asked of them, and each of their runs says whose it is.
        traces = [trace.withColumn("run", F.concat(F.lit(side), F.lit(" "), "run"))
                  for side, trace in zip(SIDES, (left, right), strict=True)]  # fmt: skip
        told: dict[str, dict[str, Any]] = {side: {} for side in SIDES}
        for part in _parts(traces[0].unionByName(traces[1]), chunks):
            for row in part.collect():
                told[row["side"]] |= row.asDict()
        rows = [_measure(name, *told.values()) for name in (*TOTALS, *SAMPLES)]
        columns = {name: [row[name] for row in rows] for name in COMPARE.names}
        return left.sparkSession.createDataFrame(pa.table(columns), COMPARE)

    return transform


def _parts(trace: DataFrame, chunks: Chunks) -> Iterator[DataFrame]:
    """For each side each total, of each sample how many, mean and variance; and of each its place.

    Each part has a row for each side and is planned when it is asked for, the quickest first: a
    plan of all of them together takes Spark longer to make than a trace of a million rows to work
    through.
    """
    lasted = F.max_by("t_us", "seq") - F.min_by("t_us", "seq")
    runs = trace.groupBy("run").agg(lasted.alias("us"), F.max("seq").alias("seq"))
    yield _by_side(runs).agg(
        F.sum("us").alias("duration_us"), _most("duration_us", F.col("us"), "seq")
    )
    rows, others = seen(trace), spoken(trace)
    sessions = checkpointed(sessions_read(rows, chunks))
    carried = windows_of(rows, sessions, chunks)
    if others:
        carried = carried.unionByName(_on_channels(trace), allowMissingColumns=True)
    yield _by_side(carried).agg(
        *(F.sum(name).alias(name) for name in ("messages", "frames", "closed_us")),
        *(_most(name, F.nullif(name, F.lit(0)), "first_seq") for name in ("messages", "frames")),
        _most("closed_us", F.when(F.col("closed_times") > 0, F.col("longest_closed_us")),
              "worst_seq"),
    )  # fmt: skip
    links = checkpointed(links_read(senders(rows), chunks))
    gaps = _gaps(links, chunks)
    if others:
        on_channels = channels.channel_rows(trace)
        gaps = gaps.unionByName(channels.gaps(on_channels))
    yield _sample(gaps, "gap_us")
    settled = settlements(rows, links).select("run", "seq", "us")
    if others:
        answers = channels.answered(trace, on_channels, chunks)
        settled = settled.unionByName(answers.select("run", "seq", "us"))
    yield _sample(settled, "settlement_us")
    waited = F.col("end_us") - F.col("start_us")
    yield _by_side(at_zero(rows, links, chunks)).agg(
        F.sum(waited).alias("zero_us"), _most("zero_us", waited, "start_seq")
    )
    yield _by_side(violations_of(rows, links, sessions, chunks)).agg(
        F.count("*").alias("violations"), _most("violations", F.lit(1), "seq")
    )


def _on_channels(trace: DataFrame) -> DataFrame:
    """What a peer has sent on each channel, as `windows_of` has it of a session."""
    return (
        channels.content(trace)
        .groupBy(*LINK)
        .agg(
            F.sum(F.col("begins").cast("long")).alias("messages"),
            F.count("*").alias("frames"),
            F.min("seq").alias("first_seq"),
        )
    )


def _by_side(rows: DataFrame) -> GroupedData:
    return rows.groupBy(F.substring_index("run", " ", 1).alias("side"))


def _most(name: str, amount: Column, seq: str) -> Column:
    """The row that has most of it, the first by `(run, seq)`; null amounts do not count."""
    place = F.struct((-amount).alias("less"), "run", F.col(seq).alias("seq"))
    return F.min(F.when(amount.isNotNull(), place)).alias(f"{name}_at")


def _gaps(links: DataFrame, chunks: Chunks) -> DataFrame:
    """From one message of a link (`seq`) to the next."""
    begun = links.where("begins").select("run", "key", "seq", "t_us")
    read = segmented_scan(begun, chunks, {"begun": F.struct("t_us", "seq")})
    before = F.col("was_begun")
    return read.select(
        "run", before["seq"].alias("seq"), (F.col("t_us") - before["t_us"]).alias("us")
    )


def _sample(values: DataFrame, name: str) -> DataFrame:
    return _by_side(values).agg(
        F.avg("us").alias(name),
        F.count("us").alias(f"{name}_n"),
        F.var_samp("us").alias(f"{name}_variance"),
        _most(name, F.col("us"), "seq"),
    )


def _measure(name: str, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """The answer's row; what is not in a side's parts is none, and of a total 0."""
    row: dict[str, Any] = {"measure": name, "effect": _effect(name, left, right)}
    for side, told in zip(SIDES, (left, right), strict=True):
        value, place = told.get(name), told.get(f"{name}_at")
        row[side] = float(value or 0) if name in TOTALS or value is not None else None
        row[f"{side}_run"] = place and place["run"].removeprefix(f"{side} ")
        row[f"{side}_seq"] = place and place["seq"]
    known = row["left"] is not None and row["right"] is not None
    row["difference"] = row["right"] - row["left"] if known else None
    row["ratio"] = row["right"] / row["left"] if known and row["left"] else None
    return row


def _effect(name: str, *sides: dict[str, Any]) -> float | None:
    """Cohen's d: the means' difference by the pooled standard deviation; null for totals."""
    counts = [side.get(f"{name}_n") or 0 for side in sides]
    if min(counts) < 2:
        return None
    left, right = sides
    weights = (counts[0] - 1) * left[f"{name}_variance"] + (counts[1] - 1) * right[
        f"{name}_variance"
    ]
    pooled = math.sqrt(weights / (sum(counts) - 2))
    return (right[name] - left[name]) / pooled if pooled else None
