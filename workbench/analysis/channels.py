"""What questions ask of AMQP 0-9-1, which has no links.

A channel's messages in one direction stand where AMQP 1.0 has a link; `data/README.md` says so of
each question. A trace without a frame of AMQP 0-9-1 is asked nothing of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from workbench.trace.schema import AMQP_0_9_1, BROKER, CLIENT

from .endpoint_view import VIEW, endpoint_view, is_frame, once, peer_of
from .schemas import LINK
from .segmented_scan import checkpointed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["answered", "begun_messages", "channel_rows", "content", "gaps", "stalls_of"]

GIVEN = ("basic.deliver", "basic.get-ok")
CONTENT = ("basic.publish", *GIVEN, "content-header", "content-body")
ANSWERS = ("basic.ack", "basic.nack", "basic.reject")
BLOCKED = ("connection.blocked", "connection.unblocked")
TOLD = ("credit-flow", "alarm", "tcp")
_PLACE = ("run", "connection", "session")


def _frames(trace: DataFrame) -> DataFrame:
    """AMQP 0-9-1 frames on a connection, their fields flat."""
    frame, ledger = F.col("frame_091"), F.col("ledger")
    return trace.where(is_frame(AMQP_0_9_1) & F.col("connection").isNotNull()).select(
        "run", "seq", "t_us", "event", "protocol", "frame_id", "from_peer", "connection",
        "session", "consumer", "kind", "body_bytes",
        F.lit(None).cast("string").alias("link_sender"),
        *(frame[name].alias(name) for name in ("delivery_tag", "multiple")),
        *(
            ledger[name].alias(name)
            for name in ("published", "unacknowledged", "prefetch_count")
        ),
    )  # fmt: skip


def channel_rows(trace: DataFrame) -> DataFrame:
    """Every AMQP 0-9-1 frame once for each end whose knowledge it tells, worked out once."""
    rows = endpoint_view(_frames(trace), trace, protocol=AMQP_0_9_1)
    return checkpointed(rows.drop("is_frame", "link_sender"))


def _begins(sender: Column) -> Column:
    """A message of this peer begins, which sends the frame."""
    return (F.col("from_peer") == sender) & F.when(
        F.col("kind") == "basic.publish", sender == CLIENT
    ).when(F.col("kind").isin(*GIVEN), sender == BROKER).otherwise(F.lit(False))


def _named(rows: DataFrame, sender: str) -> DataFrame:
    """With what names a channel's direction in an answer."""
    none = F.lit(None)
    return rows.withColumns(
        {
            "link": none.cast("string"),
            "link_sender": F.col(sender),
            "attach_no": none.cast("int"),
        }
    )


def content(trace: DataFrame) -> DataFrame:
    """Frames of messages, once each: `LINK`, `seq`, `t_us`, `begins`, `body_bytes`."""
    rows = once(_frames(trace).drop("link_sender"))
    rows = rows.where(
        F.col("kind").isin(*CONTENT) & F.col("session").isNotNull() & F.col("from_peer").isNotNull()
    )
    rows = rows.withColumn("begins", _begins(F.col("from_peer")))
    return _named(rows, "from_peer").select(*LINK, "seq", "t_us", "begins", "body_bytes")


def gaps(rows: DataFrame) -> DataFrame:
    """From one message of a channel and sender (`run`, `seq`) to the next, `us`."""
    of = Window.partitionBy(*LINK).orderBy("seq")
    begun = begun_messages(rows).withColumn("us", F.lead("t_us").over(of) - F.col("t_us"))
    return begun.where("us is not null").select("run", "seq", "us")


def begun_messages(rows: DataFrame) -> DataFrame:
    """The rows with which messages begin, among their sender's: `LINK`, `seq`, `t_us`."""
    begun = rows.where(_begins(F.col(VIEW)) & F.col("session").isNotNull())
    return _named(begun, VIEW).select(*LINK, "seq", "t_us")


def answered(rows: DataFrame) -> DataFrame:
    """Each message that awaits an answer, with the time to it; null if none came.

    Args:
        rows: of `channel_rows`.

    Returns:
        `LINK`, `measure` (`confirm` or `ack`), `seq` of its method and `us`.
    """
    rows = rows.where("session is not null").withColumn("key", F.xxhash64(*_PLACE, VIEW))
    publishes = F.col(VIEW) == CLIENT
    waits = (F.col("kind") == GIVEN[0]) & F.coalesce(F.col("unacknowledged") != 0, F.lit(True))
    number = F.when(publishes, F.col("published")).otherwise(F.when(waits, F.col("delivery_tag")))
    begun = rows.where(_begins(F.col(VIEW))).withColumn("number", number)
    begun = checkpointed(begun.where("number is not null"))
    most = begun.groupBy("key").agg(F.max("number").alias("most"))
    said = rows.where(
        (F.col("from_peer") != F.col(VIEW))
        & F.col("kind").isin(*ANSWERS)
        & F.col("delivery_tag").isNotNull()
        & ~(publishes & (F.col("kind") == "basic.reject"))
    ).select("key", "seq", "t_us", F.col("delivery_tag").alias("tag"), "multiple")
    many = F.coalesce("multiple", F.lit(False))
    single = said.where(~many).select("key", "seq", "t_us", F.col("tag").alias("number"))
    # Of those that speak of all up to a tag, each speaks of what those before it left; 0 is all.
    ranges = said.where(many).join(most, "key")
    tag = F.when(F.col("tag") == 0, F.col("most")).otherwise(F.least("tag", "most"))
    zero = F.col("tag") == 0
    before = F.max(F.when(~zero, tag)).over(
        Window.partitionBy("key").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    )
    ranges = ranges.withColumns({"upto": tag, "after": F.coalesce(before, F.lit(0))})
    ranges = ranges.where(F.col("upto") > F.col("after")).select(
        "key",
        "seq",
        "t_us",
        F.explode(F.sequence(F.col("after") + 1, F.col("upto"))).alias("number"),
    )
    answers = single.unionByName(ranges).select(
        "key", "number", F.col("seq").alias("at"), F.col("t_us").alias("answered_us")
    )
    met = begun.select("key", "number", "seq").join(answers, ["key", "number"])
    first = (
        met.where(F.col("at") > F.col("seq"))
        .groupBy("key", "seq")
        .agg(F.min_by("answered_us", "at").alias("answered_us"))
    )
    found = begun.join(first, ["key", "seq"], "left").withColumn(
        "measure", F.when(publishes, "confirm").otherwise("ack")
    )
    return _named(found, VIEW).select(
        *LINK, "measure", "seq", (F.col("answered_us") - F.col("t_us")).alias("us")
    )


def stalls_of(trace: DataFrame, prompt_us: int) -> DataFrame:
    """Intervals in which a peer with something to send was held, as `stalls` tells them."""
    return _prefetched(channel_rows(trace), prompt_us).unionByName(_told(trace))


def _prefetched(rows: DataFrame, prompt_us: int) -> DataFrame:
    """A consumer that had as many as it may, and got another as soon as it had fewer."""
    of = Window.partitionBy(*_PLACE, "consumer").orderBy("seq")
    full = (F.col("prefetch_count") > 0) & (F.col("unacknowledged") >= F.col("prefetch_count"))
    rows = rows.where(
        (F.col(VIEW) == BROKER)
        & F.col("consumer").isNotNull()
        & F.col("prefetch_count").isNotNull()
        & F.col("unacknowledged").isNotNull()
    ).withColumn("full", full)
    given = F.when(F.col("kind") == "basic.deliver", F.col("t_us"))
    rows = rows.withColumns(
        {
            "was": F.coalesce(F.lag("full").over(of), F.lit(False)),
            "next_us": F.min(given).over(of.rowsBetween(0, Window.unboundedFollowing)),
        }
    ).where(F.col("full") != F.col("was"))
    rows = rows.withColumns(
        {name: F.lead(of_).over(of) for name, of_ in (
            ("end_us", "t_us"), ("release_frame_id", "frame_id"), ("then_us", "next_us"))}
    )  # fmt: skip
    rows = rows.where(F.col("full") & (F.col("then_us") - F.col("end_us") <= prompt_us))
    return _stall(rows.withColumn("sender", F.lit(BROKER)), F.lit("prefetch"), "later-frames")


def _told(trace: DataFrame) -> DataFrame:
    """What the broker's reader or a socket tells of itself; of an alarm else connection.blocked."""
    frames = is_frame(AMQP_0_9_1) & F.col("connection").isNotNull()
    last = (
        trace.where(frames)
        .groupBy("run", "connection")
        .agg(F.max_by("t_us", "seq").alias("last_us"))
    )
    names = ("run", "connection", "seq", "t_us", "frame_id")
    reads = F.when(F.col("vantage").startswith("reader:"), CLIENT).when(
        F.col("kind") == "tcp", peer_of(F.col("vantage"))
    )
    inside = checkpointed(
        trace.where(F.col("event").isin("block", "unblock") & F.col("kind").isin(*TOLD))
        .select(
            *names, F.col("kind").alias("brake"), reads.alias("sender"),
            (F.col("event") == "block").alias("on"),
        )
        .where("sender is not null and connection is not null")
    )  # fmt: skip
    known = inside.where("brake = 'alarm'").select("run", "connection").distinct()
    blocked = trace.where(frames & F.col("kind").isin(*BLOCKED))
    wire = once(blocked.select(*names, "event", "kind")).join(
        known, ["run", "connection"], "left_anti"
    )
    wire = wire.select(
        *names, F.lit("alarm").alias("brake"), F.lit(CLIENT).alias("sender"),
        (F.col("kind") == BLOCKED[0]).alias("on"),
    )  # fmt: skip
    of = Window.partitionBy("run", "connection", "brake", "sender").orderBy("seq")
    rows = inside.unionByName(wire).join(last, ["run", "connection"])
    rows = rows.withColumn("was", F.coalesce(F.lag("on").over(of), F.lit(False)))
    rows = rows.where(F.col("on") != F.col("was")).withColumns(
        {
            "until": F.lead("t_us").over(of),
            "release_frame_id": F.lead("frame_id").over(of),
        }
    )
    end_us = F.coalesce("until", F.greatest("t_us", "last_us"))
    rows = rows.where("on").withColumns({"end_us": end_us, "session": F.lit(None).cast("int")})
    return _stall(rows, F.col("brake"), "internal")


def _stall(rows: DataFrame, brake: Column, evidence: str) -> DataFrame:
    return _named(rows, "sender").select(
        *LINK, "seq", "frame_id", F.lit("sender").alias("end"), brake.alias("brake"),
        F.col("t_us").alias("start_us"), "end_us", F.lit(1).cast("long").alias("messages_waiting"),
        "release_frame_id", F.lit(evidence).alias("evidence"),
    )  # fmt: skip
