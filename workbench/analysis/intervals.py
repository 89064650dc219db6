"""Intervals in which something holds, from rows that know whether it held before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .chunks import Chunks
from .segmented_scan import checkpointed, segmented_scan

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
    no = F.lit(False)
    edges = (
        rows.withColumns({"holds": F.coalesce(holds, no), "held": F.coalesce(held, no)})
        .where("holds <> held")
        .selectExpr("key", *keys, "seq", "0 as tie", "t_us", "holds")
    )
    last = ends.selectExpr(
        "key", *keys, "end_seq as seq", "1 as tie", "end_us as t_us", "false as holds"
    )
    remembered = {
        "edge": F.struct("holds", "t_us", "seq"),
        "over": F.expr("if(tie = 1, true, null)"),
    }
    # The scan of a cut trace asks for them twice, and they are few.
    turns = checkpointed(edges.union(last))
    read = segmented_scan(turns, chunks, remembered, order=("seq", "tie"))
    return read.where("was_edge.holds and was_over is null").selectExpr(
        *keys,
        "was_edge.t_us as start_us",
        "was_edge.seq as start_seq",
        "t_us as end_us",
        "seq as end_seq",
    )
