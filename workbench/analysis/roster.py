"""Who takes part in a trace: its links, the ends that logged, alarms and ends of runs, in one scan.

Each scan of a large trace costs seconds before its first row, for every task of it reads the whole
index of the file. So what questions ask of the trace as a whole is asked once, and stays in Spark's
cache for the next question of the same trace: a row for each link, and a few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from workbench.trace.schema import AMQP_1_0, BROKER, CLIENT, FRAME_EVENTS, OBSERVED, SENT

from .running import persisted
from .schemas import LINK
from .seen import other

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "alarms", "is_frame", "is_named", "logger", "of_a_link", "present", "roster",
    "run_ends", "stray",
]  # fmt: skip


def is_frame() -> Column:
    """An AMQP 1.0 frame, logged by an end or captured."""
    return (F.col("protocol") == AMQP_1_0) & F.col("event").isin(*FRAME_EVENTS)


def of_a_link() -> Column:
    """A frame that concerns one link."""
    return (
        is_frame()
        & F.col("session").isNotNull()
        & (F.col("link").isNotNull() | F.col("frame")["handle"].isNotNull())
    )


def is_named() -> Column:
    """The link's attach is in the trace."""
    return F.col("link").isNotNull() & F.col("link_sender").isNotNull()


def stray() -> Column:
    """What tells an unnamed link apart: its handle."""
    return F.when(~is_named(), F.col("frame")["handle"])


def logger() -> Column:
    """The end whose log a frame's row is from; null in a capture."""
    author = F.col("from_peer")
    return F.when(F.col("event") == SENT, author).when(F.col("event") != OBSERVED, other(author))


def roster(trace: DataFrame) -> DataFrame:
    """A row for each link, for each unnamed one, and for the rows of no link in each session.

    Returns:
        `LINK`, `of_a_link`, `handle` (of an unnamed link), and of these rows: `client` and `broker`
        (its protocol header is there), `has_client`, `has_broker`, `has_observed` (whose log the
        frames on a connection are from; null if none is), `alarm` (seq of the first) and `last_us`.
    """
    # In one piece, for it is small: what is asked of it then needs no shuffle.
    return persisted(_scanned(trace).coalesce(1))


def _scanned(trace: DataFrame) -> DataFrame:
    header, there = F.col("kind") == "protocol-header", F.coalesce(of_a_link(), F.lit(False))
    frame = is_frame() & F.col("connection").isNotNull()
    return trace.groupBy(
        *LINK, there.alias("of_a_link"), F.when(there, stray()).alias("handle")
    ).agg(
        *(
            F.max(F.coalesce(header & (F.col("from_peer") == peer), F.lit(False))).alias(peer)
            for peer in (CLIENT, BROKER)
        ),
        *(
            F.max(F.when(frame, F.coalesce(logger() == peer, F.lit(False)))).alias(f"has_{peer}")
            for peer in (CLIENT, BROKER)
        ),
        F.max(F.when(frame, F.col("event") == OBSERVED)).alias("has_observed"),
        F.min(F.when(F.col("event") == "alarm-set", F.col("seq"))).alias("alarm"),
        F.max("t_us").alias("last_us"),
    )


def present(trace: DataFrame) -> DataFrame:
    """Whose rows each connection has; a handful of rows."""
    flags = [f"has_{peer}" for peer in (CLIENT, BROKER)] + ["has_observed"]
    rows = roster(trace).where("has_observed is not null")
    return rows.groupBy("run", "connection").agg(*(F.max(name).alias(name) for name in flags))


def alarms(trace: DataFrame) -> DataFrame:
    """The first alarm of each run."""
    rows = roster(trace).where("alarm is not null")
    return rows.groupBy(F.xxhash64("run").alias("run")).agg(F.min("alarm").alias("alarm"))


def run_ends(trace: DataFrame) -> DataFrame:
    """The time of each run's last row."""
    run = F.xxhash64("run").alias("run_key")
    return roster(trace).groupBy(run).agg(F.max("last_us").alias("last_us"))
