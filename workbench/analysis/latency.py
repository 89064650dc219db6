"""How long did answers take: settlements, grants, drains and echoes?

`latency` of `data/README.md`: one row per link and measure.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .channels import answered, channel_rows
from .chunks import Chunks
from .compose import question
from .endpoint_view import seen, spoken
from .readings import links_read, receivers
from .schemas import LATENCY, LINK
from .segmented_scan import checkpointed, segmented_scan
from .settling import settlements

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["answers_to_grants", "latency", "percentile"]


def percentile(value: str, percent: int) -> Column:
    """The nearest-rank percentile of a group, of whole numbers; null of nothing."""
    rank = F.expr(f"percentile_disc({percent / 100}) WITHIN GROUP (ORDER BY {value})")
    return rank.cast("long")


@question(LATENCY)
def latency(trace: DataFrame, chunks: Chunks) -> DataFrame:
    """Gives one row for each link and measure that began at least once."""
    rows = seen(trace)
    read = checkpointed(links_read(rows, chunks))
    begun = [
        settlements(rows, read).withColumn("measure", F.lit("settlement")),
        answers_to_grants(read, chunks).withColumn("measure", F.lit("grant")),
        _answers_to_flows(read, chunks),
    ]
    if spoken(trace):
        begun.append(answered(trace, channel_rows(trace), chunks))
    every = reduce(
        lambda one, more: one.unionByName(more),
        [each.select(*LINK, "measure", "seq", "us") for each in begun],
    )
    return every.groupBy(*LINK, "measure").agg(
        F.count("us").alias("count"),
        *(percentile("us", percent).alias(f"p{percent}_us") for percent in (50, 90, 99)),
        F.max("us").alias("max_us"),
        (F.count("*") - F.count("us")).alias("unanswered"),
        F.min_by("seq", F.struct(F.col("us").isNull(), -F.col("us"), "seq")).alias("worst_seq"),
    )


def answers_to_grants(read: DataFrame, chunks: Chunks) -> DataFrame:
    """Each grant made at credit 0, with the time to the link's next message.

    Args:
        read: of `readings.links_read`.
        chunks: how it is cut.

    Returns:
        `LINK`, `seq` and `us`; null where another grant or nothing came first.
    """
    asks = F.col("raises") & F.coalesce(F.col("left_before") == 0, F.lit(False))
    rows = receivers(read).where(F.col("raises") | F.col("begins"))
    rows = rows.select(*LINK, "key", "seq", "t_us", asks.alias("asks"), "begins")
    # The grant that stands last is told of by a row behind all others.
    behind = rows.groupBy(*LINK, "key").agg(
        (F.max("seq") + 1).alias("seq"), F.max("t_us").alias("t_us")
    )
    no = F.lit(False)
    rows = rows.unionByName(behind.withColumns({"asks": no, "begins": no}))
    read = segmented_scan(rows, chunks, {"event": F.struct("asks", "t_us", "seq")})
    was = F.col("was_event")
    return read.where(was["asks"]).select(
        *LINK,
        was["seq"].alias("seq"),
        F.when(F.col("begins"), F.col("t_us") - was["t_us"]).alias("us"),
    )


def _answers_to_flows(read: DataFrame, chunks: Chunks) -> DataFrame:
    """Each drain and each echo with the time to the sender's next flow; null if none came."""
    flow, user = F.col("kind") == "flow", F.col("by_sender")
    asks = flow & ~user & F.col("link_credit").isNotNull()
    drains = F.col("drain") & ~F.coalesce("was_drain", F.lit(False))
    measures = F.filter(
        F.array(F.when(asks & drains, "drain"), F.when(asks & F.col("echo"), "echo")),
        lambda one: one.isNotNull(),
    )
    rows = receivers(read).select(
        *LINK, "key", "seq", "t_us", (flow & user).alias("answers"), measures.alias("measures")
    )
    rows = rows.where(F.col("answers") | (F.size("measures") > 0))
    read = checkpointed(segmented_scan(rows, chunks, count=F.col("answers")))
    # Whoever asks when so many answers were given waits for the next.
    answers = read.where("answers").select(
        "key", (F.col("n") - 1).alias("n"), F.col("t_us").alias("answered_us")
    )
    asked = read.select(*LINK, "key", "n", "seq", "t_us", F.explode("measures").alias("measure"))
    return asked.join(answers, ["key", "n"], "left").select(
        *LINK, "measure", "seq", (F.col("answered_us") - F.col("t_us")).alias("us")
    )
