"""Consumers of AMQP 0-9-1 and 0-10 that get no more while messages are ready.

A trace from inside a broker tells both: the broker's rows of the consumer, and the rows of its
queue. The plain fold is `folds/consumers.py`, `Starved`, and of a consumer alone
`trace/consumers.py`, `Fullness`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from workbench.trace.schema import AMQP_0_10, BROKER, CLIENT

from .endpoint_view import LINKLESS, run_ends
from .segmented_scan import checkpointed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

__all__ = ["COMPLETED", "consumers_of", "of_consumer", "starved", "still_full", "untold"]

CONSUME, CANCEL = ("basic.consume", "message.subscribe"), ("basic.cancel", "message.cancel")
OF_SESSION = ("channel.close", "session.detach", "session.detached")
CLOSING = ("connection.close", *OF_SESSION)
COMPLETED, SET_MODE = "session.completed", "message.set-flow-mode"
CREDIT_MODE = 0
PREFETCH, LINK_CREDIT = "prefetch", "link-credit"
CONSUMER = ("run", "connection", "session", "consumer")


def of_consumer() -> list[Column]:
    """What a row tells of a consumer, or of a subscription of AMQP 0-10.

    Returns:
        `consumer`: its tag, or its destination. `brake`: what holds it if it gets none. `full`:
        whether it gets no more after the row; null if the row does not tell. `uses_up`: whether it
        gets no credit back from the row on; null likewise.
    """
    of_010, kind, ledger = F.col("protocol") == AMQP_0_10, F.col("kind"), F.col("ledger")
    cancelled = F.when(kind == CANCEL[1], F.col("frame_010.destination")).otherwise(F.col("link"))
    limit, unacked = ledger["prefetch_count"], ledger["unacknowledged"]
    without = (ledger["credit_messages"] == 0) | (ledger["credit_octets"] == 0)
    mode = F.when(kind == SET_MODE, F.col("frame_010.flow_mode") == CREDIT_MODE)
    return [
        F.when(of_010, cancelled).otherwise(F.col("consumer")).alias("consumer"),
        F.when(of_010, LINK_CREDIT).otherwise(PREFETCH).alias("brake"),
        F.when(of_010, without).otherwise((limit > 0) & (unacked >= limit)).alias("full"),
        mode.when(kind == CONSUME[1], F.lit(False)).alias("uses_up"),
    ]


def consumers_of(trace: DataFrame) -> DataFrame:
    """What a broker has logged of consumers, and of all of a session (no `consumer`); once.

    Returns:
        `CONSUMER`, `at` (struct of seq, t_us, frame_id), `kind`, `queue` (that is named; empty if
        none is), and those of `of_consumer`.
    """
    own = (F.col("vantage") == BROKER) & F.col("protocol").isin(*LINKLESS)
    completed = (F.col("kind") == COMPLETED) & (F.col("from_peer") == CLIENT)
    of_all = own & (F.col("kind").isin(*CLOSING) | completed)
    rows = trace.select(
        *CONSUMER[:3], *of_consumer(), _at(), "kind", own.alias("own"),
        (of_all | (F.col("event") == "disconnect")).alias("of_all"),
        F.coalesce("frame_091.queue", "frame_010.queue", F.lit("")).alias("queue"),
    )  # fmt: skip
    rows = rows.where(F.col("of_all") | (F.col("own") & F.col("consumer").isNotNull()))
    return checkpointed(rows.drop("own", "of_all"))


def still_full(of: WindowSpec) -> Column:
    """What `full` is at each row of a consumer; the frame that completes messages frees it."""
    uses = F.coalesce(F.last("uses_up", ignorenulls=True).over(of), F.lit(False))
    freed = (F.col("kind") == COMPLETED) & ~uses
    return F.when(freed, F.lit(False)).otherwise(F.col("full"))


def starved(trace: DataFrame, consumers: DataFrame) -> DataFrame:
    """From when to when a consumer is full and its queue has messages.

    Args:
        trace: the trace.
        consumers: of `consumers_of`.

    Returns:
        Its channel, `sender` and `brake`; `seq`, `frame_id` and `t_us` of the row with which it
        begins, messages `waiting` then, `end_us` and `release_frame_id`.
    """
    queues = _queues(trace)
    of = Window.partitionBy("run", "queue").orderBy("at")
    # With how many were ready when the consumer became full.
    held = queues.unionByName(_full(consumers), allowMissingColumns=True)
    known = F.last("ready", ignorenulls=True).over(of)
    held = held.withColumn("ready", known).where("consumer is not null")
    some = _spans(queues.withColumn("holds", F.col("ready") > 0), of)
    some = some.select("run", "queue", F.struct("at", "until", "ready").alias("some"))
    begin, end = F.col("some.at"), F.col("some.until")
    met = held.join(some, ["run", "queue"]).where(
        F.coalesce(begin["seq"] < F.col("until.seq"), F.lit(True))
        & F.coalesce(F.col("at.seq") < end["seq"], F.lit(True))
    )
    met = met.withColumn("run_key", F.xxhash64("run")).join(F.broadcast(run_ends(trace)), "run_key")
    first, last = F.greatest("at", begin), F.least("until", end)
    waiting = F.when(begin > F.col("at"), F.col("some.ready")).otherwise(F.col("ready"))
    return met.select(
        *CONSUMER[:3], F.lit(BROKER).alias("sender"), "brake", first["seq"].alias("seq"),
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
    return consumers.where(F.col("kind").isin(*CONSUME)).select(*CONSUMER, "queue").distinct()


def _full(consumers: DataFrame) -> DataFrame:
    """From when to when a consumer of a queue gets no more, and what holds it (`brake`)."""
    consumed = _consumed(consumers)
    rows = consumers.withColumnRenamed("queue", "named").join(consumed, [*CONSUMER])
    begins = F.when(F.col("kind").isin(*CONSUME), F.col("named") == F.col("queue"))
    rows = rows.withColumn("on", begins.when(F.col("kind").isin(*CANCEL), F.lit(False)))
    of_all = consumers.where("consumer is null").select(
        "run", "connection", "at", "kind",
        F.when(F.col("kind") == COMPLETED, None).otherwise(False).alias("on"),
        F.when(F.col("kind").isin(*OF_SESSION, COMPLETED), F.col("session")).alias("of"),
    )  # fmt: skip
    of_all = consumed.join(of_all, ["run", "connection"])
    of_all = of_all.where(F.coalesce(F.col("of") == F.col("session"), F.lit(True)))
    names = [*CONSUMER, "queue", "at", "kind", "on"]
    rows = rows.select(*names, "full", "uses_up", "brake")
    rows = rows.unionByName(of_all.select(*names), allowMissingColumns=True)
    of = Window.partitionBy(*CONSUMER, "queue").orderBy("at")
    rows = rows.withColumn("full", still_full(of))
    holds = F.last("on", ignorenulls=True).over(of) & F.last("full", ignorenulls=True).over(of)
    spans = _spans(rows.withColumn("holds", F.coalesce(holds, F.lit(False))), of)
    return spans.select(*CONSUMER, "queue", "at", "until", "brake")


def _spans(rows: DataFrame, of: WindowSpec) -> DataFrame:
    """The rows with which something begins to hold, `until` where the row is that ends it."""
    was = F.coalesce(F.lag("holds").over(of), F.lit(False))
    turns = rows.withColumn("was", was).where(F.col("holds") != F.col("was"))
    return turns.withColumn("until", F.lead("at").over(of)).where("holds")
