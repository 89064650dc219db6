"""Consumers of AMQP 0-9-1 that have all that their prefetch allows while messages are ready.

A trace from inside a broker tells both: the broker's rows of the consumer, and the rows of its
queue. The plain fold is `folds/consumers.py`, `Starved`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from workbench.trace.schema import BROKER

from .endpoint_view import run_ends
from .segmented_scan import checkpointed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

__all__ = ["consumers_of", "starved", "untold"]

CONSUME, CANCEL = "basic.consume", "basic.cancel"
OF_CHANNEL = "channel.close"
CLOSING = ("connection.close", OF_CHANNEL)
CONSUMER = ("run", "connection", "session", "consumer")


def consumers_of(trace: DataFrame) -> DataFrame:
    """What a broker has logged of consumers, and what ends them (no `consumer`); worked out once.

    Returns:
        `CONSUMER`, `at` (struct of seq, t_us, frame_id), `kind`, `queue` (that is named; empty if
        none is), `prefetch_count`, `unacknowledged`.
    """
    own = F.col("vantage") == BROKER
    of_one = own & F.col("consumer").isNotNull()
    gone = (F.col("event") == "disconnect") | (own & F.col("kind").isin(*CLOSING))
    return checkpointed(
        trace.where(of_one | gone).select(
            *CONSUMER, _at(), "kind", F.coalesce("frame_091.queue", F.lit("")).alias("queue"),
            "ledger.prefetch_count", "ledger.unacknowledged",
        )
    )  # fmt: skip


def starved(trace: DataFrame, consumers: DataFrame) -> DataFrame:
    """From when to when a consumer is full and its queue has messages.

    Args:
        trace: the trace.
        consumers: of `consumers_of`.

    Returns:
        Its channel and `sender`; `seq`, `frame_id` and `t_us` of the row with which it begins,
        messages `waiting` then, `end_us` and `release_frame_id`.
    """
    queues = _queues(trace)
    of = Window.partitionBy("run", "queue").orderBy("at")
    # With how many were ready when the consumer became full.
    full = queues.unionByName(_full(consumers), allowMissingColumns=True)
    known = F.last("ready", ignorenulls=True).over(of)
    full = full.withColumn("ready", known).where("consumer is not null")
    some = _spans(queues.withColumn("holds", F.col("ready") > 0), of)
    some = some.select("run", "queue", F.struct("at", "until", "ready").alias("some"))
    begin, end = F.col("some.at"), F.col("some.until")
    met = full.join(some, ["run", "queue"]).where(
        F.coalesce(begin["seq"] < F.col("until.seq"), F.lit(True))
        & F.coalesce(F.col("at.seq") < end["seq"], F.lit(True))
    )
    met = met.withColumn("run_key", F.xxhash64("run")).join(F.broadcast(run_ends(trace)), "run_key")
    first, last = F.greatest("at", begin), F.least("until", end)
    waiting = F.when(begin > F.col("at"), F.col("some.ready")).otherwise(F.col("ready"))
    return met.select(
        *CONSUMER[:3], F.lit(BROKER).alias("sender"), first["seq"].alias("seq"),
        first["frame_id"].alias("frame_id"), first["t_us"].alias("t_us"),
        F.coalesce(last["t_us"], "last_us").alias("end_us"),
        last["frame_id"].alias("release_frame_id"), waiting.alias("waiting"),
    )  # fmt: skip


def untold(found: DataFrame, trace: DataFrame, consumers: DataFrame) -> DataFrame:
    """Of times in which a consumer was full those before which no queue had told what it has."""
    told = _queues(trace).groupBy("run").agg(F.min("at.seq").alias("told"))
    named = _consumed(consumers).where("queue != ''").select(*CONSUMER).distinct()
    found = found.join(named.join(told, "run"), [*CONSUMER], "left")
    return found.where(F.coalesce(F.col("told") >= F.col("seq"), F.lit(True)))


def _at() -> Column:
    return F.struct("seq", "t_us", "frame_id").alias("at")


def _queues(trace: DataFrame) -> DataFrame:
    """What queues have told of the messages that are ready in them; a replica may be behind."""
    ready = F.col("ledger.queue_ready").alias("ready")
    own = F.col("vantage") == F.concat(F.lit("queue:"), "queue")
    return trace.where(own & ready.isNotNull()).select("run", "queue", _at(), ready)


def _consumed(consumers: DataFrame) -> DataFrame:
    """From which queues each consumer has got."""
    return consumers.where(F.col("kind") == CONSUME).select(*CONSUMER, "queue").distinct()


def _full(consumers: DataFrame) -> DataFrame:
    """From when to when a consumer of a queue has all that its prefetch allows."""
    consumed = _consumed(consumers)
    rows = consumers.withColumnRenamed("queue", "named").join(consumed, [*CONSUMER])
    begins = F.when(F.col("kind") == CONSUME, F.col("named") == F.col("queue"))
    limit, unacked = F.col("prefetch_count"), F.col("unacknowledged")
    rows = rows.withColumns(
        {
            "on": begins.when(F.col("kind") == CANCEL, F.lit(False)),
            "full": (limit > 0) & (unacked >= limit),
        }
    )
    ended = consumers.where("consumer is null").select(
        "run", "connection", "at", F.lit(False).alias("on"),
        F.when(F.col("kind") == OF_CHANNEL, F.col("session")).alias("closed"),
    )  # fmt: skip
    ended = consumed.join(ended, ["run", "connection"])
    ended = ended.where(F.coalesce(F.col("closed") == F.col("session"), F.lit(True)))
    names = [*CONSUMER, "queue", "at", "on"]
    rows = rows.select(*names, "full").unionByName(ended.select(*names), allowMissingColumns=True)
    of = Window.partitionBy(*CONSUMER, "queue").orderBy("at")
    holds = F.last("on", ignorenulls=True).over(of) & F.last("full", ignorenulls=True).over(of)
    spans = _spans(rows.withColumn("holds", F.coalesce(holds, F.lit(False))), of)
    return spans.select(*CONSUMER, "queue", "at", "until")


def _spans(rows: DataFrame, of: WindowSpec) -> DataFrame:
    """The rows with which something begins to hold, `until` where the row is that ends it."""
    was = F.coalesce(F.lag("holds").over(of), F.lit(False))
    turns = rows.withColumn("was", was).where(F.col("holds") != F.col("was"))
    return turns.withColumn("until", F.lead("at").over(of)).where("holds")
