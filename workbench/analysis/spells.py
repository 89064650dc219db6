"""Intervals in which something holds, from rows that know the row before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .chunks import Chunks
from .lags import with_previous

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Spell"]


class Spell:
    """Something that holds from one row on until a row says otherwise, or until `end_us`.

    The rows have `t_us`, `seq` and `end_us`, the end of what is told about; rows at or after it add
    nothing. What is not known does not hold.

    Args:
        holds: after the row.
        held: after the row before.
        since_us: time of the row before.
    """

    def __init__(self, holds: Column, held: Column, since_us: Column) -> None:
        no = F.lit(False)
        end = F.col("end_us")
        self.holds = F.coalesce(holds, no)
        self.held = F.coalesce(held, no)
        self.since_us = since_us
        self.until_us = F.least(F.col("t_us"), end)
        self.begins = self.holds & ~self.held & (F.col("t_us") < end)

    def aggregates(self, times: str, total_us: str) -> tuple[Column, Column]:
        """How often, and how long in all, for one group of rows."""
        passed = F.when(self.held, F.greatest(self.until_us - self.since_us, F.lit(0)))
        tail = F.max_by(
            F.when(self.holds, F.greatest(F.col("end_us") - F.col("t_us"), F.lit(0))).otherwise(0),
            "seq",
        )
        return (
            F.coalesce(F.sum(self.begins.cast("long")), F.lit(0)).alias(times),
            (F.coalesce(F.sum(passed), F.lit(0)) + F.coalesce(tail, F.lit(0))).alias(total_us),
        )

    def longest(self, rows: DataFrame, group: Sequence[str], chunks: Chunks) -> DataFrame:
        """The longest of each group: `longest_us`; groups without one have no row."""
        edges = rows.withColumns({"begins_it": self.begins, "ends_it": self.held & ~self.holds})
        edges = edges.where("begins_it or ends_it").drop("previous")
        edges = with_previous(edges, ["t_us", "begins_it"])
        closed = edges.where("ends_it and previous.begins_it").select(
            *group,
            (F.least("t_us", "end_us") - F.col("previous.t_us")).alias("us"),
        )
        last = edges.groupBy(*group).agg(
            F.max_by(F.struct("begins_it", "t_us", "end_us"), "seq").alias("at")
        )
        still_open = last.where("at.begins_it").select(
            *group, (F.col("at.end_us") - F.col("at.t_us")).alias("us")
        )
        return (
            closed.union(still_open)
            .groupBy(*group)
            .agg(F.max(F.greatest("us", F.lit(0))).alias("longest_us"))
        )
