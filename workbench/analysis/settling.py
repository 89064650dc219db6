"""When was each message settled? What a disposition covers is a range of numbers.

A range may be long, and a session may have millions of messages: both are cut into blocks of
numbers, and a message meets only the dispositions that touch its block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from . import serials
from .endpoint_view import VIEW
from .readings import SESSION, endings, senders
from .schemas import LINK
from .segmented_scan import checkpointed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["settlements"]

BLOCK = 256
BLOCKS = serials.CIRCLE // BLOCK
WIDE = 1 << 16
"""A range of more numbers is looked at only where messages are."""


def settlements(rows: DataFrame, read: DataFrame) -> DataFrame:
    """Each message that was not sent settled, with the time to its settlement.

    Args:
        rows: of `endpoint_view.seen`.
        read: of `readings.links_read`.

    Returns:
        `LINK`, `seq` of its last frame, and `us`, from that to the first disposition that settles
        it; null if none did.
    """
    sent = checkpointed(_messages(read, endings(rows, (*LINK, VIEW))))
    met = sent.select("session_key", "block", "id", "seq", "next_seq").join(
        _touched(rows, sent).select(
            "session_key", "block", "first", "size",
            F.col("seq").alias("at"), F.col("t_us").alias("settled_us"),
        ),
        ["session_key", "block"],
    )  # fmt: skip
    inside = serials.signed(F.col("id"), F.col("first"))
    met = met.where(
        (inside >= 0)
        & (inside <= F.col("size"))
        & (F.col("at") > F.col("seq"))
        & F.coalesce(F.col("at") < F.col("next_seq"), F.lit(True))
    )
    first = met.groupBy("session_key", "seq").agg(F.min_by("settled_us", "at").alias("settled_us"))
    return sent.join(first, ["session_key", "seq"], "left").select(
        *LINK, "seq", (F.col("settled_us") - F.col("t_us")).alias("us")
    )


def _messages(read: DataFrame, ends: DataFrame) -> DataFrame:
    """Messages that wait for their settlement from their last frame (`seq`, `t_us`) on.

    `next_seq`: where the next message with the same number begins to wait, or the link ends; no
    sooner settlement is the next one's, and no later one this one's.
    """
    frames = senders(read).where("sends")
    whole = frames.groupBy("key", F.xxhash64(*SESSION).alias("session_key"), *LINK, "number").agg(
        F.min_by("delivery_id", "seq").alias("id"),
        F.max(F.coalesce("settled", F.lit(False))).alias("settled"),
        F.max_by(F.coalesce("aborted", F.lit(False)), "seq").alias("aborted"),
        F.max_by("ends", "seq").alias("ends"),
        F.max("seq").alias("seq"),
        F.max_by("t_us", "seq").alias("t_us"),
    )
    again = Window.partitionBy("session_key", "id").orderBy("seq")
    return whole.where(
        "ends and not settled and not aborted and id is not null"
    ).join(F.broadcast(ends.select("key", "end_seq")), "key").select(
        "session_key", *LINK, "id", "seq", "t_us",
        F.floor(F.col("id") / BLOCK).alias("block"),
        F.least(F.lead("seq").over(again), "end_seq").alias("next_seq"),
    )  # fmt: skip


def _touched(rows: DataFrame, sent: DataFrame) -> DataFrame:
    """Dispositions that settle what the view's end has sent, once for each block they touch."""
    by_sender = F.when(F.col("said"), "sender").otherwise("receiver")
    first = F.col("first").cast("long")
    size = F.coalesce(serials.signed(F.col("last").cast("long"), first), F.lit(0))
    ranges = (
        rows.where(
            (F.col("kind") == "disposition")
            & F.col("settled")
            & (F.col("role") == by_sender)
            & F.col("session").isNotNull()
            & F.col("first").isNotNull()
        )
        .select(
            F.xxhash64(*SESSION).alias("session_key"), "seq", "t_us", first.alias("first"),
            size.alias("size"),
        )
        .where(F.col("size") >= 0)
    )  # fmt: skip
    block = F.floor(F.col("first") / BLOCK)
    blocks = F.floor((F.pmod(F.col("first"), F.lit(BLOCK)) + F.col("size")) / BLOCK)
    every = F.transform(
        F.sequence(F.lit(0).cast("long"), blocks),
        lambda one: F.pmod(block + one, F.lit(BLOCKS)),
    )
    narrow = ranges.where(F.col("size") < WIDE).withColumn("block", F.explode(every))
    there = sent.select("session_key", "block").distinct()
    wide = (
        ranges.where(F.col("size") >= WIDE)
        .join(there, "session_key")
        .where(F.pmod(F.col("block") - block, F.lit(BLOCKS)) <= blocks)
    )
    return narrow.unionByName(wide.select(narrow.columns))
