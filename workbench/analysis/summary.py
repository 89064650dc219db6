"""What is there to say about each link in one line? For traces too long to fold in memory.

`summary` of `data/README.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .channels import content
from .chunks import Chunks
from .compose import question
from .endpoint_view import ends_message, seen, spoken
from .links import SENDER, by_user, with_counters
from .readings import links_read, senders, sessions_read
from .schemas import LINK, SUMMARY
from .segmented_scan import checkpointed, segmented_scan
from .stalls import stalls
from .violations import (
    BEYOND_CREDIT,
    BEYOND_WINDOW,
    beyond_credit,
    beyond_window,
    excused,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["summary"]


@question(SUMMARY)
def summary(trace: DataFrame, chunks: Chunks) -> DataFrame:
    """Gives one row for each link: messages, time at zero credit, longest stall, broken rules."""
    last = ends_message(F.col("frame.more"), F.col("frame.aborted"))
    ends = F.when((F.col("kind") == "transfer") & by_user(), last)
    told = {"t_us": F.col("t_us"), "ends": ends}
    rows = with_counters(trace, told, chunks)
    rows = rows.where((F.col("end") == SENDER) & F.col("link").isNotNull())
    rows = rows.withColumn("key", F.xxhash64(*LINK))
    remembered = {"row": F.struct("t_us", "left"), "ends": F.col("ends")}
    rows = segmented_scan(rows, chunks, remembered)
    then = F.col("was_row")
    passed = F.coalesce(F.col("t_us") - then["t_us"], F.lit(0))
    first = F.col("ends").isNotNull() & F.coalesce("was_ends", F.lit(True))
    links = rows.groupBy(*LINK).agg(
        F.count(F.when(first, 1)).alias("messages"),
        F.min(F.when(first, F.col("seq"))).alias("first_seq"),
        F.sum(F.when(then["left"] == 0, passed).otherwise(0)).alias("at_zero_us"),
        F.sum(passed).alias("lasted_us"),
    )
    found = stalls(chunks=chunks)(trace)
    if spoken(trace):
        found = checkpointed(found)
        links = links.unionByName(_on_channels(trace, found))
    long = (F.col("end_us") - F.col("start_us")).alias("longest_us")
    held = found.groupBy(*LINK).agg(
        F.count("*").alias("stalls"),
        F.max(F.struct(long, (-F.col("seq")).alias("seq"), "brake")).alias("longest"),
    )
    views = seen(trace)
    breaches = beyond_credit(links_read(senders(views), chunks), chunks).union(
        beyond_window(sessions_read(views, chunks), chunks)
    )
    what = F.col("what")
    broken = (
        excused(breaches, trace)
        .where("certain")
        .groupBy(*LINK)
        .agg(
            F.count(F.when(what == BEYOND_CREDIT, 1)).alias("violations"),
            F.count(F.when(what == BEYOND_WINDOW, 1)).alias("beyond_window"),
        )
    )
    return _beside(_beside(links, held), broken).select(
        *LINK, "messages", "first_seq", "at_zero_us", "lasted_us",
        F.coalesce("stalls", F.lit(0)).alias("stalls"),
        F.coalesce(F.col("longest.longest_us"), F.lit(0)).alias("longest_us"),
        F.col("longest.brake").alias("longest_brake"),
        (-F.col("longest.seq")).alias("longest_seq"),
        *(F.coalesce(each, F.lit(0)).alias(each) for each in ("violations", "beyond_window")),
    )  # fmt: skip


def _on_channels(trace: DataFrame, found: DataFrame) -> DataFrame:
    """What stands for a link without links: what was sent on it, or what was held."""
    held = found.where("link is null").select(
        *LINK, *(F.lit(None).cast("long").alias(name) for name in ("seq", "t_us")),
        F.lit(False).alias("begins"),
    )  # fmt: skip
    rows = content(trace).select(held.columns).unionByName(held)
    return rows.groupBy(*LINK).agg(
        F.sum(F.col("begins").cast("long")).alias("messages"),
        F.min(F.when(F.col("begins"), F.col("seq"))).alias("first_seq"),
        F.lit(0).cast("long").alias("at_zero_us"),
        F.coalesce(F.max("t_us") - F.min("t_us"), F.lit(0)).alias("lasted_us"),
    )


def _beside(links: DataFrame, more: DataFrame) -> DataFrame:
    """What else is known of each link, which is one row at most."""
    same = [F.col(f"a.{name}").eqNullSafe(F.col(f"b.{name}")) for name in LINK]
    both = links.alias("a").join(more.alias("b"), same, "left")
    return both.drop(*(F.col(f"b.{name}") for name in LINK))
