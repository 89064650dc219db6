"""What holds the sender of each link, row by row: the material of `stalls`.

Only the sender's rows are taken: those its end logged, or a capture. Their `ledger` and `brakes`
are the sender's own view, and `credit` shows that they follow from the wire. A window is the
session's: when another link's transfer closes it, or a flow about no link opens it, that concerns
every link of the session that sends the same way, so such edges are dealt to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from workbench.trace.schema import BROKER, CLIENT, FRAME_EVENTS, OBSERVED, OWN, RECEIVED, SENT

from .chunks import Chunks, latest

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["FREE", "LINK", "holds"]

FREE = ""
LINK = ("run", "connection", "session", "link", "link_sender", "attach_no")
_SESSION = ("run", "connection", "session", "owner")
_WINDOW_BRAKES = ("alarm", "session-window", "tcp", "no-message")
_KINDS = ("attach", "flow", "transfer", "detach")


def holds(trace: DataFrame, chunks: Chunks) -> DataFrame:
    """Rows of links with what each tells: brake, window, messages waiting; null where it does not.

    Columns besides the link's key: `seq`, `tie`, `t_us`, `frame_id`, `is_transfer`, `held` (a brake
    other than the window, `FREE` if none), `closed` (the window), `alarm`, `waiting` (messages) and
    `inside` (that number is the sender's own knowledge, so 0 means none).
    """
    rows = _sender_rows(trace)
    links = rows.where(F.col("link").isNotNull()).select(
        *LINK, "seq", F.lit(0).alias("tie"), "t_us", "frame_id", *_told()
    )
    edges = _with_alarms(_window_edges(rows, chunks), trace)
    return links.unionByName(_dealt(edges, rows))


def _sender_rows(trace: DataFrame) -> DataFrame:
    """The rows that the sender's end logged; `owner` is that end."""
    other = F.when(F.col("from_peer") == CLIENT, BROKER).otherwise(CLIENT)
    peer = F.when(F.col("vantage") == BROKER, BROKER).when(
        F.col("vantage").startswith("client:"), CLIENT
    )
    owner = (
        F.when(F.col("event") == SENT, F.col("from_peer"))
        .when(F.col("event") == RECEIVED, other)
        .when(F.col("event") == OBSERVED, F.coalesce(F.col("link_sender"), other))
        .otherwise(peer)
    )
    frame = F.col("event").isin(*FRAME_EVENTS)
    wanted = F.when(frame, F.col("kind").isin(*_KINDS, "begin")).otherwise(
        F.col("link").isNotNull() & F.col("ledger").isNotNull()
    )
    ledger = F.col("ledger")
    return (
        trace.where(wanted & F.col("session").isNotNull())
        .select(
            *LINK, "seq", "t_us", "frame_id", "event", "kind", "brakes",
            (F.col("ledger_source") == OWN).alias("inside"), owner.alias("owner"),
            ledger["link_credit"].alias("credit"), ledger["available"].alias("available"),
            ledger["remote_incoming_window"].alias("window"),
        )
        .where(F.col("link").isNull() | (F.col("link_sender") == F.col("owner")))
    )  # fmt: skip


def _told() -> tuple[Column, ...]:
    gone = F.col("kind") == "detach"
    return (
        (F.coalesce(F.col("kind") == "transfer", F.lit(False))).alias("is_transfer"),
        F.when(gone, FREE)
        .when(F.col("credit").isNotNull(), F.coalesce(F.try_element_at(
            F.array_except(F.col("brakes"),
                           F.array(*(F.lit(name) for name in _WINDOW_BRAKES))), F.lit(1)),
            F.lit(FREE)))
        .alias("held"),
        F.when(gone, False).otherwise(F.col("window") <= 0).alias("closed"),
        F.when(
            F.col("window").isNotNull(),
            F.coalesce(F.array_contains(F.col("brakes"), "alarm"), F.lit(False)),
        ).alias("alarm"),
        F.when(gone, 0).otherwise(F.col("available")).cast("long").alias("waiting"),
        (gone | F.col("inside")).alias("inside"),
    )  # fmt: skip


def _window_edges(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """The rows of a session at which its window closes or opens.

    A transfer can close it and only a flow or begin can open it, so most rows drop out at once.
    """
    told = rows.where(
        F.col("window").isNotNull() & ((F.col("window") <= 0) | F.col("kind").isin("flow", "begin"))
    ).select(
        *_SESSION, "seq", "t_us", "frame_id", F.col("link").alias("by_link"),
        (F.col("window") <= 0).alias("closed"), F.xxhash64(*_SESSION).alias("key"),
    )  # fmt: skip
    known = latest(told, chunks, {"closed": F.col("closed")})
    return known.where(F.col("closed") != F.coalesce("before_closed", F.lit(False)))


def _with_alarms(edges: DataFrame, trace: DataFrame) -> DataFrame:
    """Adds `alarm`: a resource alarm is on, and this window is one that it closes: a client's."""
    alarms = (
        trace.where(F.col("event").isin("alarm-set", "alarm-clear"))
        .groupBy("run")
        .agg(
            F.collect_list(F.struct("seq", (F.col("event") == "alarm-set").alias("on"))).alias(
                "alarms"
            )
        )
    )
    passed = F.filter("alarms", lambda one: one["seq"] < F.col("seq"))
    sets = F.size(F.filter(passed, lambda one: one["on"]))
    clears = F.size(F.filter(passed, lambda one: ~one["on"]))
    on = F.col("alarms").isNotNull() & (sets > clears) & (F.col("owner") == CLIENT)
    return (
        edges.join(F.broadcast(alarms), "run", "left")
        .withColumn("alarm", F.coalesce(on, F.lit(False)))
        .drop("alarms")
    )


def _dealt(edges: DataFrame, rows: DataFrame) -> DataFrame:
    """The edges of a session's window as rows of its links, without the one that made it."""
    links = (
        rows.where(F.col("link").isNotNull())
        .groupBy(*LINK)
        .agg(F.min("seq").alias("since"), F.max("seq").alias("until"))
    )
    joined = links.withColumnRenamed("link_sender", "owner").join(
        F.broadcast(edges.drop("key", "cell", "chunk", "before_closed")), list(_SESSION), "inner"
    )  # an edge for each link of the session
    return joined.where(
        ~F.col("by_link").eqNullSafe(F.col("link")) & (F.col("seq") > F.col("since"))
    ).select(
        *(F.col("owner").alias(name) if name == "link_sender" else F.col(name) for name in LINK),
        "seq",
        F.lit(1).alias("tie"),
        "t_us",
        "frame_id",
        F.lit(False).alias("is_transfer"),
        F.lit(None).cast("string").alias("held"),
        "closed",
        "alarm",
        F.lit(None).cast("long").alias("waiting"),
        F.lit(False).alias("inside"),
    )
