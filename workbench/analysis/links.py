"""The rows of a trace that concern a link, with what each does to the link's counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from workbench.trace.schema import (
    AMQP_1_0,
    BROKER,
    CLIENT,
    FRAME_EVENTS,
    OBSERVED,
    RECEIVED,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["RECEIVER", "SENDER", "link_rows", "with_losses"]

SENDER, RECEIVER = "sender", "receiver"
_LOSSES = ("gap", "error")


def link_rows(trace: DataFrame) -> DataFrame:
    """Frames that concern one link: its key, whose counters the row tells of, and `OPS`.

    A frame of a link whose attach is not in the trace has no name (`link` is null). Nobody can say
    which handles of the two ends belong together there, so nothing is counted for it.
    """
    frame = F.col("frame")
    named = F.col("link").isNotNull() & F.col("link_sender").isNotNull()
    rows = trace.where(
        (F.col("protocol") == AMQP_1_0)
        & F.col("event").isin(*FRAME_EVENTS)
        & F.col("session").isNotNull()
        & (F.col("link").isNotNull() | frame["handle"].isNotNull())
    )
    by_user = F.col("from_peer") == F.col("link_sender")
    rows = rows.select(
        "run", "seq", "t_us", "frame_id", "event", "from_peer", "connection", "session", "link",
        "link_sender", "attach_no", "kind", named.alias("named"),
        (named & by_user).alias("by_user"), (named & ~by_user).alias("by_granter"),
        _end(by_user).alias("end"),
        *(frame[name].alias(name) for name in (
            "handle", "initial_delivery_count", "delivery_count", "link_credit", "available",
            "delivery_id", "more", "aborted",
        )),
    )  # fmt: skip
    rows = with_losses(trace, rows)
    return rows.withColumns(_ops()).drop(
        "initial_delivery_count", "delivery_count", "link_credit", "delivery_id", "more", "aborted",
        "named", "gaps", "by_granter", "handle",
    )  # fmt: skip


def _end(by_user: Column) -> Column:
    """Whose counters a row tells of: a capture shows the sender's, an end its own."""
    own = F.when(F.col("event") == RECEIVED, ~by_user).otherwise(by_user)
    return F.when((F.col("event") == OBSERVED) | F.coalesce(own, F.lit(True)), SENDER).otherwise(
        RECEIVER
    )


def with_losses(trace: DataFrame, rows: DataFrame) -> DataFrame:
    """Adds `whole` and `gaps`: what of the row's connection is missing in the trace.

    Both tables are small (one row per connection), so they travel to the rows.
    """
    began = (
        trace.where((F.col("kind") == "protocol-header") & F.col("from_peer").isNotNull())
        .groupBy("run", "connection")
        .agg((F.countDistinct("from_peer") == 2).alias("began"))
    )
    gaps = (
        trace.where(F.col("event").isin(*_LOSSES))
        .select(
            "run",
            "connection",
            "seq",
            F.coalesce(
                F.get_json_object(F.col("frame")["extra_json"], "$.from_peer"), F.col("from_peer")
            ).alias("peer"),
        )
        .groupBy("run", "connection")
        .agg(
            F.struct(
                *(
                    F.collect_list(F.when(F.col("peer") == peer, F.col("seq"))).alias(peer)
                    for peer in (CLIENT, BROKER)
                )
            ).alias("gaps")
        )
    )
    where = ["run", "connection"]
    return (
        rows.join(F.broadcast(began), where, "left")
        .join(F.broadcast(gaps), where, "left")
        .withColumn("whole", F.coalesce("began", F.lit(False)) & F.col("named"))
        .drop("began")
    )


def _last_gap(peer: Column) -> Column:
    """The seq of the last gap before the row in what that peer sent."""
    gaps = F.when(peer == CLIENT, F.col("gaps")[CLIENT]).when(peer == BROKER, F.col("gaps")[BROKER])
    return F.array_max(F.filter(gaps, lambda seq: seq < F.col("seq")))


def _ops() -> dict[str, Column]:
    user, granter = F.col("by_user"), F.col("by_granter")
    attach, flow = F.col("kind") == "attach", F.col("kind") == "flow"
    step = F.coalesce(user & (F.col("kind") == "transfer"), F.lit(False))
    open_after = F.coalesce(F.col("more"), F.lit(False)) & ~F.coalesce(
        F.col("aborted"), F.lit(False)
    )
    seq, nothing = F.col("seq"), F.lit(None).cast("long")
    count = F.col("delivery_count")
    counted = flow & F.col("delivery_count").isNotNull()
    other = F.when(F.col("link_sender") == CLIENT, BROKER).otherwise(CLIENT)
    return {
        # An unnamed link is told apart by its handle, so that it is never mixed with another.
        "key": F.xxhash64(
            "run", "connection", "session", "link", "link_sender", "attach_no", "end",
            F.when(~F.col("named"), F.col("handle")),
        ),
        "step": step,
        "step_sure": F.lit(False),
        "step_id": F.when(step, F.col("delivery_id")),
        "turn": F.when(
            step, F.struct(seq, open_after.alias("open"), F.col("delivery_id").alias("id"))
        ).when(user & attach, F.struct(seq, F.lit(False).alias("open"), nothing.alias("id"))),
        "base": F.when(
            user & attach, F.struct(seq, F.col("initial_delivery_count").alias("value"))
        ).when(user & counted, F.struct(seq, F.col("delivery_count").alias("value"))),
        "grant": F.when(
            granter & attach,
            F.struct(seq, nothing.alias("at"), F.lit(0).cast("long").alias("credit")),
        ).when(
            granter & flow & F.col("link_credit").isNotNull(),
            F.struct(seq, count.alias("at"), F.col("link_credit").alias("credit")),
        ),
        # The sender states what it has left; the receiver's own number may be ahead of that.
        "claim": F.when(
            user & counted & F.col("link_credit").isNotNull() & (F.col("end") == SENDER),
            F.struct(seq, count.alias("at"), F.col("link_credit").alias("credit")),
        ),
        "initial": F.when(
            user & attach, F.struct(F.col("initial_delivery_count").alias("value"))
        ),
        "lost_user": _last_gap(F.col("link_sender")),
        "lost_granter": _last_gap(other),
    }  # fmt: skip
