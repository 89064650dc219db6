"""Intervals in which something holds, from rows that know whether it held before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .chunks import Chunks
from .segmented_scan import segmented_scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["intervals"]


def intervals(
    rows: DataFrame,
    holds: Column,
    held: Column,
    ends: DataFrame,
    keys: Sequence[str],
    chunks: Chunks,
) -> DataFrame:
    """From each row that makes it so to the row that ends it, or to the end of what it is about.

    Args:
        rows: with `key`, the keys, `seq`, `t_us`.
        holds: after the row; what is not known does not hold.
        held: before the row.
        ends: of `readings.endings`: nothing is told after an `end_seq`.
        keys: what the interval is of, `run` among them.
        chunks: how the rows are cut.

    Returns:
        The keys, `start_us`, `end_us`, and `start_seq` and `end_seq`, the rows that began and ended
        it.
    """
    no, yes = F.lit(False), F.lit(True)
    edges = (
        rows.withColumns({"holds": F.coalesce(holds, no), "held": F.coalesce(held, no)})
        .where(F.col("holds") != F.col("held"))
        .select("key", *keys, "seq", F.lit(0).alias("tie"), "t_us", "holds")
    )
    last = ends.select(
        "key", *keys, F.col("end_seq").alias("seq"), F.lit(1).alias("tie"),
        F.col("end_us").alias("t_us"), no.alias("holds"),
    )  # fmt: skip
    remembered = {"edge": F.struct("holds", "t_us", "seq"), "over": F.when(F.col("tie") == 1, yes)}
    read = segmented_scan(edges.unionByName(last), chunks, remembered, order=("seq", "tie"))
    return read.where(F.col("was_edge.holds") & F.col("was_over").isNull()).select(
        *keys,
        F.col("was_edge.t_us").alias("start_us"),
        F.col("was_edge.seq").alias("start_seq"),
        F.col("t_us").alias("end_us"),
        F.col("seq").alias("end_seq"),
    )
