"""What an end of a connection knows, told by rows: its own, or those that stand in for them.

The definition is in `data/README.md` under "Words that all of them use".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from workbench.trace.schema import AMQP_1_0, BROKER, CLIENT, FRAME_EVENTS, OBSERVED, SENT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["VIEW", "frames_once", "other", "seen"]

VIEW = "view"
_FIELDS = (
    "next_outgoing_id", "incoming_window", "next_incoming_id", "handle", "handle_max", "role",
    "initial_delivery_count", "delivery_count", "link_credit", "drain", "echo", "delivery_id",
    "settled", "more", "aborted", "first", "last",
)  # fmt: skip


def other(peer: Column) -> Column:
    """The peer at the other side."""
    return F.when(peer == CLIENT, BROKER).otherwise(CLIENT)


def seen(trace: DataFrame) -> DataFrame:
    """Every AMQP 1.0 frame row once for each end whose knowledge it tells.

    Returns:
        The row's key columns, the fields on the wire that flow control lives on, `view` (whose
        knowledge it is, `client` or `broker`) and `own` (False: the row stands in).
    """
    rows = frames(trace)
    present = F.broadcast(
        rows.groupBy("run", "connection").agg(
            *(
                F.coalesce(F.max(F.col("logger") == peer), F.lit(False)).alias(f"has_{peer}")
                for peer in (CLIENT, BROKER)
            ),
            F.max(F.col("event") == OBSERVED).alias("has_observed"),
        )
    )
    rows = rows.join(present, ["run", "connection"])
    stands_in = (F.col("event") == OBSERVED) | ~F.col("has_observed")
    views = F.filter(
        F.array(
            *(
                F.when(
                    F.col(f"has_{peer}"),
                    F.when(
                        F.coalesce(F.col("logger") == peer, F.lit(False)),
                        F.struct(F.lit(peer).alias(VIEW), F.lit(True).alias("own")),
                    ),
                ).when(stands_in, F.struct(F.lit(peer).alias(VIEW), F.lit(False).alias("own")))
                for peer in (CLIENT, BROKER)
            )
        ),
        lambda one: one.isNotNull(),
    )
    kept = [name for name in rows.columns if not name.startswith("has_") and name != "logger"]
    return rows.withColumn("views", F.explode(views)).select(*kept, "views.*")


def frames(trace: DataFrame) -> DataFrame:
    """AMQP 1.0 frames on a connection, their fields flat, and who logged each (null: a capture)."""
    frame = F.col("frame")
    rows = trace.where(
        (F.col("protocol") == AMQP_1_0)
        & F.col("event").isin(*FRAME_EVENTS)
        & F.col("connection").isNotNull()
    )
    author = F.col("from_peer")
    logger = F.when(F.col("event") == OBSERVED, F.lit(None)).otherwise(
        F.when(F.col("event") == SENT, author).otherwise(other(author))
    )
    return rows.select(
        "run", "seq", "t_us", "event", "frame_id", "from_peer", "connection", "session", "link",
        "link_sender", "attach_no", "queue", "kind", "body_bytes", logger.alias("logger"),
        *(frame[name].alias(name) for name in _FIELDS),
    )  # fmt: skip


def frames_once(trace: DataFrame) -> DataFrame:
    """One row for each frame: the observed one, else the sent one, else the received one."""
    rank = F.when(F.col("event") == OBSERVED, 0).when(F.col("event") == SENT, 1).otherwise(2)
    rows = frames(trace).withColumn("rank", rank)
    names = [name for name in rows.columns if name not in ("run", "frame_id", "rank", "logger")]
    best = F.min_by(F.struct(*names), F.struct("rank", "seq")).alias("best")
    return rows.groupBy("run", "frame_id").agg(best).select("run", "frame_id", "best.*")
