"""The counters of links, at each of their rows: the one way in which `credit` is worked out.

The rows are kept narrow (`links`) and go to tasks once, for both scans over them: the first tells
what each transfer found open, so that it is known which of them begin a delivery; the second counts
those, and brings to each row what was stated and granted last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from . import serials
from .chunks import UNIT, Chunks
from .links import GRANTED, OPENED, STARTED, STATED, TRANSFERRED, WELCOMED
from .lost import NEVER
from .readings import floored
from .segmented_scan import segmented_scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["counted"]

_ROW = ("key", UNIT, "seq", "op", "said", "given", "lost_user", "lost_granter")


def counted(rows: DataFrame, names: DataFrame, chunks: Chunks) -> DataFrame:
    """Adds `count` and `left` to rows of links, and the names of their links.

    Args:
        rows: of `links.link_rows`.
        names: of `links.link_names`.
        chunks: how rows are cut.

    Returns:
        What was carried along in the rows, `seq`, the names, `count` (the delivery-count of the
        row's end, null if not known) and `left` (of its credit, null if not known).
    """
    more = [name for name in rows.columns if name not in _ROW]
    found = [name for name in names.columns if name not in ("key", "whole")]
    whole = _scanned(rows, chunks).join(F.broadcast(names), "key")
    return _with_counters(whole).select(*found, "seq", *more, "count", "left")


def _scanned(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """Adds `n`, deliveries begun, and the latest `base`, `grant`, `claim` and `initial`."""
    op, seq, said, given = (F.col(name) for name in ("op", "seq", "said", "given"))
    sends = op.isin(TRANSFERRED, OPENED)
    turn = F.struct(seq, (op == OPENED).alias("open"), F.when(sends, said).alias("id"))
    rows = segmented_scan(rows, chunks, {"turn": F.when(sends | (op == STARTED), turn)})
    # A first transfer must carry its delivery-id and a later one may [2.7.5]. So where it is not
    # known whether a delivery is open, a transfer with an id leaves the count unknown.
    was, no = F.col("was_turn"), F.lit(False)
    known = F.coalesce(was["seq"] > F.col("lost_user"), no)
    rows = rows.withColumns(
        {
            "begins": sends & known & (~was["open"] | F.coalesce(said != was["id"], no)),
            "doubt": sends & ~known & said.isNotNull(),
        }
    ).drop(UNIT, "was_turn", "now_turn")
    states = op.isin(STARTED, STATED) | F.col("doubt")
    placed = F.struct(seq, said.alias("at"), given.alias("credit"))
    return segmented_scan(
        rows, chunks,
        {
            "grant": F.when(op == GRANTED, placed).when(
                op == WELCOMED,
                F.struct(seq, F.lit(None).cast("long").alias("at"), F.lit(0).cast("long")
                         .alias("credit")),
            ),
            "claim": F.when((op == STATED) & given.isNotNull(), placed),
            "initial": F.when(op == STARTED, F.struct(said.alias("at"))),
        },
        marks={"base": F.when(states, F.struct(seq, F.when(~F.col("doubt"), said).alias("value")))},
        count=F.col("begins"),
    )  # fmt: skip


def _with_counters(rows: DataFrame) -> DataFrame:
    base, grant, claim = F.col("now_base"), F.col("now_grant"), F.col("now_claim")
    initial, no = F.col("now_initial"), F.lit(False)
    lost_user, lost_granter = F.col("lost_user"), F.col("lost_granter")
    good = F.coalesce(grant["seq"] > lost_granter, no)
    claimed = F.coalesce(claim["seq"] > F.greatest(lost_user, lost_granter), no)
    untouched = F.col("whole") & (lost_user == NEVER) & (lost_granter == NEVER)
    count = serials.add(base["it"]["value"], F.col("n") - base["n"])
    rows = rows.withColumns(
        {
            "count": F.when(base["it"]["seq"] > lost_user, count),
            "granted": F.when(good, grant["credit"])
            .when(claimed, claim["credit"])
            .when(untouched, F.lit(0)),
            "at": F.coalesce(F.when(good, grant["at"]).when(claimed, claim["at"]), initial["at"]),
            # What was granted before the sender's attach, of which nothing is missing, is what it
            # will begin with.
            "early": initial.isNull() & untouched,
        }
    )
    # Credit 0 is 0 whatever the count is.
    granted, at, count = F.col("granted"), F.col("at"), F.col("count")
    left = F.when(
        count.isNotNull() & at.isNotNull(),
        floored(granted - serials.used(granted, at, count)),
    ).when((granted == 0) | F.col("early"), granted)
    return rows.withColumn("left", left)
