"""How often, and how long, does each session window close, both ways?

`windows` of `data/README.md`: one row per session and direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .chunks import Chunks
from .compose import question
from .endpoint_view import VIEW, ends_message, seen
from .intervals import intervals
from .readings import SESSION, endings, merged, senders, sessions_read
from .schemas import LINK, WINDOWS
from .segmented_scan import checkpointed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["closings", "windows", "windows_of"]


@question(WINDOWS)
def windows(trace: DataFrame, chunks: Chunks) -> DataFrame:
    """Gives one row for each session and direction in which a transfer or a window was seen."""
    rows = seen(trace)
    return windows_of(rows, checkpointed(sessions_read(rows, chunks)), chunks)


def windows_of(rows: DataFrame, read: DataFrame, chunks: Chunks) -> DataFrame:
    """The answer, from `endpoint_view.seen` and `readings.sessions_read`.

    Beside its columns there is `first_seq`, of the first transfer frame.
    """
    begun = F.col("kind") == "begin"
    per_session = read.groupBy(*SESSION).agg(
        F.sum(F.col("sends").cast("long")).alias("frames"),
        F.min(F.when(F.col("sends"), F.col("seq"))).alias("first_seq"),
        F.sum((F.col("raises") & ~begun).cast("long")).alias("grants"),
        F.max(F.when(~F.col("said") & begun, F.col("incoming_window"))).alias("window_first"),
        F.min("left").alias("window_least"),
        F.max(
            F.col("said") & begun & F.col("next_outgoing_id").isNotNull()
        ).alias("began"),
    )  # fmt: skip
    took = F.col("end_us") - F.col("start_us")
    closed = (
        closings(rows, read, chunks)
        .groupBy(*SESSION)
        .agg(
            F.count("*").alias("closed_times"),
            F.sum(took).alias("closed_us"),
            F.max(took).alias("longest_closed_us"),
            F.min(F.struct(-took, "start_seq")).getField("start_seq").alias("worst_seq"),
        )
    )
    found = merged([per_session, closed, _messages(rows)], SESSION)
    zero = F.lit(0).cast("long")
    messages = F.coalesce("messages", zero)
    return found.where((F.col("frames") > 0) | F.col("window_least").isNotNull()).select(
        "run", "connection", "session", F.col(VIEW).alias("sender"), "frames",
        messages.alias("messages"),
        F.when(messages > 0, F.col("frames") / messages).alias("frames_per_message"),
        "grants", "window_first", "window_least",
        *(
            F.coalesce(name, zero).alias(name)
            for name in ("closed_times", "closed_us", "longest_closed_us")
        ),
        "first_seq", "worst_seq",
        (F.coalesce("began", F.lit(False)) & F.col("window_first").isNotNull()).alias("known"),
    )  # fmt: skip


def closings(rows: DataFrame, read: DataFrame, chunks: Chunks) -> DataFrame:
    """Intervals in which a session's window was 0: as `intervals.intervals`."""
    ends = endings(rows, SESSION)
    return intervals(read, F.col("left") == 0, F.col("left_last") == 0, ends, SESSION, chunks)


def _messages(rows: DataFrame) -> DataFrame:
    """Messages begun in each session: those that ended, and those still open at the end."""
    last = ends_message(F.col("more"), F.col("aborted"))
    per_link = (
        senders(rows)
        .where(F.col("said") & (F.col("kind") == "transfer") & F.col("link").isNotNull())
        .groupBy(*LINK, VIEW)
        .agg(F.sum(last.cast("long")).alias("ended"), F.max_by(last, "seq").alias("over"))
    )
    begun = F.col("ended") + F.when(F.col("over"), 0).otherwise(1)
    return per_link.groupBy(*SESSION).agg(F.sum(begun).cast("long").alias("messages"))
