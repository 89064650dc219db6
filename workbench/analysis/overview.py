"""What is small enough to draw or to read: rates over time, and the table of stalls summed up.

A trace of millions of frames is never drawn. Each of these answers has a few hundred rows at most,
however large the trace: a row for each window of time, for each brake, or for each link and brake.
`rates` reads the trace; the others take what `stalls` answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .compose import Transformer, typed
from .errors import AnalysisError
from .schemas import BY_BRAKE, HELD, LINK, LOST, RATES, STALLS, TRACE

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["by_brake", "held", "lost", "rates", "worst"]


def _checked(window_us: int) -> int:
    if window_us < 1:
        raise AnalysisError(f"a window of {window_us} µs has no length; legal: 1 or more")
    return window_us


@typed(TRACE, RATES)
def rates(window_us: int) -> Transformer:
    """Gives one row for each window: the messages that begin in it, over all links.

    A message of several transfers counts with its first one, which alone must have a
    `delivery_id` [2.7.5]; a frame that both ends logged counts where it was sent. One shuffle, of
    one row per window and task.

    Args:
        window_us: length of a window in microseconds, 1 or more.

    Raises:
        AnalysisError: the window has no length.
    """
    size = _checked(window_us)
    begins = (
        (F.col("kind") == "transfer")
        & F.col("event").isin("sent", "observed")
        & F.col("frame.delivery_id").isNotNull()
    )
    return lambda trace: (
        trace.groupBy(_start(F.col("t_us"), size).alias("window_start_us"))
        .agg(F.count_if(begins).alias("messages"))
        .orderBy("window_start_us")
    )


@typed(STALLS, HELD)
def held(window_us: int) -> Transformer:
    """Gives one row for each window and brake: how many links it held at some moment of it.

    A stall is laid over all windows that it touches, so a long one makes many rows before they
    are counted: choose the window with the trace's length in mind.

    Args:
        window_us: length of a window in microseconds, 1 or more.

    Raises:
        AnalysisError: the window has no length.
    """
    size = _checked(window_us)
    first, last = _start(F.col("start_us"), size), _start(F.col("end_us"), size)
    return lambda stalls: (
        stalls.withColumn("window_start_us", F.explode(F.sequence(first, last, F.lit(size))))
        .groupBy("window_start_us", "brake")
        .agg(F.count_distinct(F.struct(*LINK)).alias("links"))
        .orderBy("window_start_us", "brake")
    )


@typed(STALLS, BY_BRAKE)
def by_brake() -> Transformer:
    """Gives one row for each brake: how often it held a sender, how many links, how long."""
    duration = F.col("end_us") - F.col("start_us")
    return lambda stalls: (
        stalls.groupBy("brake")
        .agg(
            F.count(F.lit(1)).alias("stalls"),
            F.count_distinct(F.struct(*LINK)).alias("links"),
            F.sum(duration).alias("lost_us"),
            F.max(duration).alias("longest_us"),
        )
        .orderBy(F.desc("lost_us"), "brake")
    )


@typed(STALLS, LOST)
def lost() -> Transformer:
    """Gives one row for each link and brake: the time that the link lost to it in all."""
    return lambda stalls: (
        stalls.groupBy("run", "link", "brake")
        .agg(F.sum(F.col("end_us") - F.col("start_us")).alias("lost_us"))
        .orderBy(F.desc("lost_us"), "run", "link", "brake")
    )


@typed(STALLS, STALLS)
def worst(count: int) -> Transformer:
    """Gives the longest stalls, the longest first; of equal ones the first in the trace.

    Args:
        count: how many.
    """
    duration = F.col("end_us") - F.col("start_us")
    return lambda stalls: stalls.orderBy(F.desc(duration), "run", "seq").limit(count)


def _start(time: Column, window_us: int) -> Column:
    return F.floor(time / window_us).cast("long") * F.lit(window_us).cast("long")
