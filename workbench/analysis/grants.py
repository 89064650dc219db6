"""How does each receiver top up, and is what it grants enough?

`grants` of `data/README.md`: one row per link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .chunks import Chunks
from .compose import question
from .endpoint_view import VIEW, seen
from .intervals import intervals
from .latency import answers_to_grants, percentile
from .readings import endings, links_read, merged, receivers, senders
from .schemas import GRANTS, LINK
from .segmented_scan import checkpointed, segmented_scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["at_zero", "grants"]

FITS = 4, 5
"""A rule fits if four of five grants agree with it."""
STEADY = 10
"""Of the typical interval, its tenth: so far a timer's may vary."""


@question(GRANTS)
def grants(trace: DataFrame, chunks: Chunks) -> DataFrame:
    """Gives one row for each link."""
    rows = seen(trace)
    read = checkpointed(links_read(rows, chunks))
    trips = (
        answers_to_grants(read, chunks)
        .groupBy(*LINK)
        .agg(percentile("us", 50).alias("round_trip_us"))
    )
    parts = [*_sent(rows, read, chunks), _granted(read, chunks), trips]
    return _answered(merged(parts, LINK))


def at_zero(rows: DataFrame, read: DataFrame, chunks: Chunks) -> DataFrame:
    """When each link had no credit, from the first grant's arrival on.

    Args:
        rows: of `endpoint_view.seen`.
        read: of `readings.links_read`.
        chunks: how they are cut.

    Returns:
        As `intervals.intervals`, with `heard` (struct of seq and t_us, the first grant's arrival)
        and `last_us`, the time of the link's last transfer.
    """
    keys = (*LINK, VIEW)
    zero = intervals(
        senders(read), F.col("left") == 0, F.col("left_last") == 0,
        senders(endings(rows, keys)), keys, chunks,
    )  # fmt: skip
    firsts = _per_link(read).select(
        F.xxhash64(*LINK).alias("name"), "heard", F.col("last.t_us").alias("last_us")
    )
    # What ended before the first grant, or at it, was no wait for a grant to come again.
    return (
        zero.withColumn("name", F.xxhash64(*LINK))
        .join(F.broadcast(firsts), "name")
        .where(F.col("end_seq") > F.col("heard.seq"))
        .withColumns(
            {
                f"start_{name}": F.greatest(f"start_{name}", f"heard.{whole}")
                for name, whole in (("us", "t_us"), ("seq", "seq"))
            }
        )
    )


def _per_link(read: DataFrame) -> DataFrame:
    mark = F.struct("seq", "t_us")
    attached = F.col("by_sender") & F.col("attaches")
    return (
        senders(read)
        .groupBy(*LINK)
        .agg(
            F.sum(F.col("begins").cast("long")).alias("messages"),
            F.max(attached).alias("known"),
            F.min(F.when(F.col("raises"), mark)).alias("heard"),
            F.max(F.when(F.col("kind") == "transfer", mark)).alias("last"),
        )
    )


def _sent(rows: DataFrame, read: DataFrame, chunks: Chunks) -> list[DataFrame]:
    """What the sender's rows tell: messages, and time at zero, in all and up to the last."""
    took = F.col("end_us") - F.col("start_us")
    inside = F.least("end_us", "last_us") - F.col("start_us")
    zero = (
        at_zero(rows, read, chunks)
        .groupBy(*LINK)
        .agg(
            F.count("*").alias("zero_times"),
            F.sum(took).alias("zero_us"),
            F.sum(F.greatest(inside, F.lit(0))).alias("inside_us"),
            F.min(F.struct(-took, "start_seq")).getField("start_seq").alias("worst_seq"),
        )
    )
    return [_per_link(read), zero]


def _granted(read: DataFrame, chunks: Chunks) -> DataFrame:
    """What the receiver's rows tell: its grants, and how often each rule fits one."""
    flows = receivers(read).where(F.col("moved").isNotNull() | F.col("raises"))
    flows = flows.select(
        *LINK, "key", "seq", "t_us", "raises", "left", "left_before", "limited",
        F.coalesce("moved", F.lit(0).cast("long")).alias("moved"),
    )  # fmt: skip
    # The sum of all moves is where the limit stands; not every flow that moves it is a grant.
    grant = F.when(F.col("raises"), F.struct("t_us", "left", "limited"))
    read = segmented_scan(flows, chunks, marks={"grant": grant}, count=F.col("moved")).where(
        "raises"
    )
    was = F.col("was_grant.it")
    later = was.isNotNull()
    moved = F.when(F.col("limited") & was["limited"], F.col("n") - F.col("was_grant.n"))
    half = (F.col("left_before") > 0) & (F.col("left_before") * 2 <= was["left"])

    def fits(rule: Column) -> Column:
        part, whole = FITS
        agree = F.sum(F.when(later & F.coalesce(rule, F.lit(False)), 1).otherwise(0))
        return agree * whole >= F.sum(later.cast("long")) * part

    per_link = read.withColumns(
        {
            "again": F.when(later, F.col("left_before")),
            "interval": F.when(later, F.col("t_us") - was["t_us"]),
        }
    ).groupBy(*LINK).agg(
        F.count("*").alias("grants"),
        percentile("left", 50).alias("granted"),
        percentile("again", 50).alias("left"),
        *(percentile("interval", each).alias(f"p{each}") for each in (10, 50, 90)),
        F.count("interval").alias("intervals"),
        fits(moved == 1).alias("single"),
        fits(F.col("left_before") == 0).alias("batch"),
        fits(half).alias("half"),
    )  # fmt: skip
    steady = (F.col("intervals") >= 3) & ((F.col("p90") - F.col("p10")) * STEADY <= F.col("p50"))
    rule = (
        F.when(F.col("grants") == 1, "once")
        .when(F.col("single"), "one-at-a-time")
        .when(F.col("batch"), "batch")
        .when(F.col("half"), "at-half")
        .when(steady, "fixed-timer")
        .otherwise("other")
    )
    return per_link.withColumn("rule", rule).withColumnRenamed("p50", "interval_us")


def _answered(whole: DataFrame) -> DataFrame:
    """The columns that need both."""
    zero, no = F.lit(0).cast("long"), F.lit(False)
    filled = whole.withColumns(
        {
            **{name: F.coalesce(name, zero) for name in
               ("grants", "messages", "zero_times", "zero_us")},
            "known": F.coalesce("known", no),
            "rule": F.coalesce("rule", F.lit("none")),
        }
    )  # fmt: skip
    lasted = F.col("last.t_us") - F.col("heard.t_us") - F.coalesce("inside_us", zero)
    rate = F.when(lasted > 0, F.col("messages") * F.lit(1e6) / lasted)
    filled = filled.withColumn("rate", rate)
    waited = F.col("round_trip_us") + F.coalesce("interval_us", zero)
    # Rate by 10^6, and rounded up, as the arithmetic of the definition has it.
    needed = F.ceil(F.col("rate") * waited / F.lit(1e6))
    filled = filled.withColumns(
        {
            "grants_per_message": F.when(
                F.col("messages") > 0, F.col("grants") / F.col("messages")
            ),
            "credit_needed": needed.cast("long"),
        }
    )
    filled = filled.withColumn("arithmetic", _arithmetic())
    enough = (F.col("zero_us") == 0) | (F.col("granted") >= F.col("credit_needed"))
    raised = F.col("granted") < F.col("credit_needed")
    told = F.when(enough, "enough").when(raised, "raise")
    advice = F.when(F.col("known") & (F.col("grants") > 0), told)
    return filled.withColumn("advice", F.coalesce(advice, F.lit("unknown")))


def _arithmetic() -> Column:
    """How the credit that is needed was worked out; null where it was not."""
    tenths = F.floor(F.col("rate") * 10 + F.lit(0.5)).cast("long")
    told = F.concat(
        F.floor(tenths / 10).cast("long").cast("string"), F.lit("."), F.pmod(tenths, F.lit(10)),
        F.lit("/s x ("), F.col("round_trip_us"), F.lit(" + "),
        F.coalesce("interval_us", F.lit(0).cast("long")), F.lit(" µs), rounded up: "),
        F.col("credit_needed"),
    )  # fmt: skip
    return F.when(F.col("credit_needed").isNotNull(), told)
