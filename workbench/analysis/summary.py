"""What is there to say about each link in one line? For traces too long to fold in memory.

`summary` of `data/README.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .chunks import Chunks
from .compose import Transformer, typed
from .counting import counted
from .endpoint_view import seen
from .links import link_names, link_rows
from .readings import links_read
from .schemas import LINK, SUMMARY, TRACE
from .segmented_scan import segmented_scan
from .stalls import stalls
from .violations import beyond_credit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["summary"]


@typed(TRACE, SUMMARY)
def summary(chunks: Chunks = Chunks()) -> Transformer:  # noqa: B008
    """Gives one row for each link: messages, time at zero credit, longest stall, violations.

    Args:
        chunks: how the trace is cut; see `reading.open_trace`.
    """

    def transform(trace: DataFrame) -> DataFrame:
        told = {"t_us": F.col("t_us"), "kind": F.col("kind")}
        rows = counted(link_rows(trace, told), link_names(trace), chunks)
        rows = rows.where((F.col("end") == "sender") & F.col("link").isNotNull())
        rows = rows.withColumn("key", F.xxhash64(*LINK))
        rows = segmented_scan(rows, chunks, {"row": F.struct("t_us", "left", "count")})
        then = F.col("was_row")
        passed = F.coalesce(F.col("t_us") - then["t_us"], F.lit(0))
        first = (F.col("kind") == "transfer") & F.coalesce(
            then["count"].isNull() | (F.col("count") != then["count"]), F.lit(False)
        )
        links = rows.groupBy(*LINK).agg(
            F.count(F.when(first, 1)).alias("messages"),
            F.sum(F.when(then["left"] == 0, passed).otherwise(0)).alias("at_zero_us"),
            F.sum(passed).alias("lasted_us"),
        )
        long = (F.col("end_us") - F.col("start_us")).alias("longest_us")
        held = (
            stalls(chunks=chunks)(trace)
            .groupBy(*LINK)
            .agg(
                F.count("*").alias("stalls"),
                F.max(F.struct(long, (-F.col("seq")).alias("seq"), "brake")).alias("longest"),
            )
        )
        broken = (
            beyond_credit(links_read(seen(trace), chunks), chunks)
            .where("certain")
            .groupBy(*LINK)
            .agg(F.count("*").alias("violations"))
        )
        return _beside(_beside(links, held), broken).select(
            *LINK,
            "messages",
            "at_zero_us",
            "lasted_us",
            F.coalesce("stalls", F.lit(0)).alias("stalls"),
            F.coalesce(F.col("longest.longest_us"), F.lit(0)).alias("longest_us"),
            F.col("longest.brake").alias("longest_brake"),
            (-F.col("longest.seq")).alias("longest_seq"),
            F.coalesce("violations", F.lit(0)).alias("violations"),
        )

    return transform


def _beside(links: DataFrame, more: DataFrame) -> DataFrame:
    """What else is known of each link, which is one row at most."""
    same = [F.col(f"a.{name}").eqNullSafe(F.col(f"b.{name}")) for name in LINK]
    both = links.alias("a").join(more.alias("b"), same, "left")
    return both.drop(*(F.col(f"b.{name}") for name in LINK))
