"""The counters of links at each of their rows, in a trace of any size.

Rows are made narrow before they are dealt to tasks: a link is one number, what a frame does to the
counters a code and two (`counters`), and the names of links, which are few, travel on their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from workbench.trace.schema import OBSERVED, RECEIVED

from .chunks import UNIT, Chunks, unit
from .counters import counted, link_word, with_left
from .endpoint_view import (
    attaches,
    is_named,
    lost_places,
    of_a_link,
    reckoned,
    roster,
    stray,
)
from .lost import gaps, with_lost
from .schemas import LINK

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["RECEIVER", "SENDER", "by_user", "with_counters"]

SENDER, RECEIVER = "sender", "receiver"
_FIELDS = ("initial_delivery_count", "delivery_count", "link_credit", "more", "aborted")


def with_counters(trace: DataFrame, more: Mapping[str, Column], chunks: Chunks) -> DataFrame:
    """Frames that concern one link, with the counters of one of its ends.

    Args:
        trace: the trace.
        more: columns to be carried along, as expressions over the trace's row.
        chunks: how it is cut.

    Returns:
        `LINK`, `end` (whose counters they are), `seq`, what was asked for, `count` (the
        delivery-count) and `left` (of the credit), both null if not known. Nothing is counted for a
        frame that names neither its link nor who sends over it, as of a link that was attached
        before the capture and has sent nothing yet.
    """
    rows = _rows(trace, more)
    read = with_left(counted(rows, chunks, links=True))
    whole = read.select("key", "seq", *more, "count", "left")
    return whole.join(F.broadcast(_names(trace)), "key").drop("key")


def _rows(trace: DataFrame, more: Mapping[str, Column]) -> DataFrame:
    frame = F.col("frame")
    rows = trace.where(of_a_link()).select(
        _key(_end()).alias("key"), "run", "connection", "seq", "event", "kind", "link_sender",
        "attach_no", F.when(is_named(), by_user()).alias("user"), reckoned().alias("reckoned"),
        attaches().alias("attaches"), *(frame[name].alias(name) for name in _FIELDS),
        *(column.alias(name) for name, column in more.items()),
    )  # fmt: skip
    rows = with_lost(rows.join(F.broadcast(gaps(trace)), ["run", "connection"], "left"))
    rows = rows.withColumn("lost", lost_places(F.col("link_sender")))
    word = link_word(F.col("kind"), F.col("user"))
    return rows.select(
        "key", unit().alias(UNIT), "seq", "lost",
        *(column.alias(name) for name, column in word.items()), *more,
    )  # fmt: skip


def by_user() -> Column:
    """The frame is of the link's sender; null where the sender is not known."""
    return F.col("from_peer") == F.col("link_sender")


def _end() -> Column:
    """Whose counters a row tells of: a capture shows the sender's, an end its own."""
    user = by_user()
    own = F.when(F.col("event") == RECEIVED, ~user).otherwise(user)
    return F.when((F.col("event") == OBSERVED) | F.coalesce(own, F.lit(True)), SENDER).otherwise(
        RECEIVER
    )


def _key(end: Column) -> Column:
    """An unnamed link is told apart by its handle, so that it is never mixed with another."""
    return F.xxhash64(*LINK, end, stray())


def _names(trace: DataFrame) -> DataFrame:
    """What the keys stand for: a row for each end of each link."""
    both, one = F.array(F.lit(SENDER), F.lit(RECEIVER)), F.array(F.lit(SENDER))
    ends = F.when(is_named(), both).otherwise(one)
    return (
        roster(trace)
        .where("of_a_link")
        .withColumn("end", F.explode(ends))
        .select(F.xxhash64(*LINK, "end", "handle").alias("key"), *LINK, "end")
    )
