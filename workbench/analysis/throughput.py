"""How much does each link carry from window to window, is that fair, and what held it up?

`throughput` of `data/README.md`: one row per window and link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from .channels import content
from .chunks import Chunks
from .compose import Transformer, typed
from .endpoint_view import VIEW, ends_message, frames_once, seen, spoken
from .errors import AnalysisError
from .intervals import intervals
from .links import by_user
from .readings import (
    SESSION,
    endings,
    links_read,
    merged,
    senders,
    sessions_read,
)
from .schemas import LINK, THROUGHPUT, TRACE
from .segmented_scan import checkpointed, segmented_scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["WINDOW_US", "throughput"]

WINDOW_US = 1_000_000
EMPTY = 100_000
"""So many windows of a link without a row are listed in a row; a longer pause is left out."""


@typed(TRACE, THROUGHPUT)
def throughput(window_us: int = WINDOW_US, chunks: Chunks = Chunks()) -> Transformer:  # noqa: B008
    """Gives one row for each window and link, from the link's first window to its last.

    Args:
        window_us: length of a window in microseconds, 1 or more.
        chunks: how the trace is cut; see `reading.open_trace`.

    Raises:
        AnalysisError: the window has no length.
    """
    if window_us < 1:
        raise AnalysisError(f"a window of {window_us} µs has no length; legal: 1 or more")

    def transform(trace: DataFrame) -> DataFrame:
        parts = [_counted(trace, window_us, chunks), _head_of_line(trace, window_us, chunks)]
        found = merged([*parts, _queues(trace)], (*LINK, "k"))
        link = Window.partitionBy(*LINK)
        earlier = link.orderBy("k").rowsBetween(Window.unboundedPreceding, -1)
        held = F.coalesce(F.sum("held").over(earlier), F.lit(0)) * window_us
        found = found.withColumns(
            {
                "queue": F.max("queue").over(link),
                "head_of_line_us": held + F.coalesce("held_us", F.lit(0)),
            }
        )
        return _shared(found, window_us)

    return transform


def _counted(trace: DataFrame, window_us: int, chunks: Chunks) -> DataFrame:
    """Messages, frames and octets by link and window, with the empty windows of short pauses."""
    sends = F.coalesce(by_user(), F.lit(False)) & (F.col("kind") == "transfer")
    last = ends_message(F.col("more"), F.col("aborted"))
    rows = (
        frames_once(trace, *LINK[1:], "t_us", "from_peer", "kind", "more", "aborted", "body_bytes")
        .where(F.col("link").isNotNull())
        .select(
            *LINK, "seq", F.xxhash64(*LINK).alias("key"), "body_bytes", sends.alias("sends"),
            (sends & last).alias("ends"), _window(F.col("t_us"), window_us).alias("k"),
        )
    )  # fmt: skip
    state = F.when(F.col("sends"), F.col("ends"))
    begins = F.col("sends") & F.coalesce("state_before", F.lit(True))
    counts = segmented_scan(rows, chunks, state=state).groupBy(*LINK, "k").agg(
        F.sum(begins.cast("long")).alias("messages"),
        F.sum(F.col("sends").cast("long")).alias("frames"),
        F.sum(F.when(F.col("sends"), F.col("body_bytes")).cast("long")).alias("body_bytes"),
    )  # fmt: skip
    if spoken(trace):
        on_channels = content(trace).groupBy(*LINK, _window(F.col("t_us"), window_us).alias("k"))
        counts = counts.unionByName(
            on_channels.agg(
                F.sum(F.col("begins").cast("long")).alias("messages"),
                F.count("*").alias("frames"),
                F.sum("body_bytes").cast("long").alias("body_bytes"),
            )
        )
    # From each window that has rows to the next that has, the ones between have none.
    following = F.lead("k").over(Window.partitionBy(*LINK).orderBy("k"))
    pause = following - F.col("k") - 1
    upto = F.when(pause <= EMPTY, following - 1).otherwise(F.col("k"))
    every = counts.withColumn("upto", upto).withColumn("at", F.explode(F.sequence("k", "upto")))
    here = F.col("at") == F.col("k")
    return every.select(
        *LINK, F.col("at").alias("k"),
        *(
            F.coalesce(F.when(here, F.col(name)), F.lit(0)).alias(name)
            for name in ("messages", "frames", "body_bytes")
        ),
    )  # fmt: skip


def _queues(trace: DataFrame) -> DataFrame:
    """The first queue that a row of each link names."""
    rows = trace.where("link is not null and connection is not null and queue is not null")
    return rows.groupBy(*LINK).agg(F.min_by("queue", "seq").alias("queue"))


def _head_of_line(trace: DataFrame, window_us: int, chunks: Chunks) -> DataFrame:
    """What began and ended in each window of the times that credit stood behind a closed window.

    `held` is beginnings less endings. `held_us` is the time from each beginning to the end of the
    window less that from each ending: with what earlier windows leave open, the time in this one.
    """
    rows = seen(trace)
    keys = (*LINK, VIEW)
    ends = senders(endings(rows, keys))
    shut = _changes(sessions_read(rows, chunks), F.col("left") == 0, F.col("left_last") == 0)
    # A session's window is every link's: the few rows at which it opens or closes go to each.
    shut = shut.select(*SESSION, "seq", "t_us", F.col("is").alias("shut"))
    shut = shut.join(F.broadcast(ends.select(*keys)), list(SESSION)).select(
        *keys, "seq", "t_us", "shut"
    )
    has = _changes(
        links_read(senders(rows), chunks), F.col("left") > 0, F.col("left_last") > 0
    ).select(*keys, "seq", "t_us", F.col("is").alias("has"))
    events = merged([shut, has], (*keys, "seq")).withColumn("key", F.xxhash64(*keys))
    events = checkpointed(events)  # as in `intervals`
    remembered = {name: F.col(name) for name in ("shut", "has")}
    read = segmented_scan(events, chunks, remembered)
    holds, held = (F.col(f"{now}_shut") & F.col(f"{now}_has") for now in ("now", "was"))
    held_up = intervals(read, holds, held, ends, keys, chunks).where("end_us > start_us")
    turns = F.array(*(F.struct(F.col(name).alias("t_us"), F.lit(turn).alias("turn"))
                      for name, turn in (("start_us", 1), ("end_us", -1))))  # fmt: skip
    turned = held_up.select(*LINK, F.inline(turns)).withColumn(
        "k", _window(F.col("t_us"), window_us)
    )
    until_end = (F.col("k") + 1) * window_us - F.col("t_us")
    return turned.groupBy(*LINK, "k").agg(
        F.sum("turn").alias("held"), F.sum(F.col("turn") * until_end).alias("held_us")
    )


def _changes(read: DataFrame, now: Column, before: Column) -> DataFrame:
    """The rows at which it is so, or not so, for the first time; adds `is`."""
    no = F.lit(False)
    rows = read.withColumn("is", F.coalesce(now, no))
    return rows.where(F.col("is") != F.coalesce(before, no))


def _window(t_us: Column, window_us: int) -> Column:
    return F.floor(t_us / F.lit(window_us)).cast("long")


def _shared(found: DataFrame, window_us: int) -> DataFrame:
    """What needs all links of a sender in a window."""
    messages = F.col("messages").cast("double")
    here = Window.partitionBy("run", "connection", "link_sender", "k")
    queue = Window.partitionBy("run", "queue", "link_sender", "k")
    found = found.where("frames is not null").withColumns(
        {
            "total": F.sum(messages).over(here),
            "squares": F.sum(messages * messages).over(here),
            "links": F.count("*").over(here),
            "queued": F.when(F.col("queue").isNotNull(), F.sum(messages).over(queue)),
        }
    )
    total, squares = F.col("total"), F.col("squares")
    return found.withColumns(
        {
            "window_start_us": F.col("k") * window_us,
            "rate": messages * F.lit(1e6) / F.lit(window_us),
            "queue_rate": F.col("queued") * F.lit(1e6) / F.lit(window_us),
            "connection_rate": total * F.lit(1e6) / F.lit(window_us),
            "share": F.when(total > 0, messages / total),
            "jain": F.when(squares > 0, total * total / (F.col("links") * squares)),
        }
    )
