"""What a sender may send, at each row that tells it: credit of links, windows of sessions.

A link can be read from its sender's rows and from its receiver's; the words are defined in
`data/README.md` under "Words that all of them use".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from . import serials
from .chunks import Chunks, in_cells
from .counting import counted
from .lags import with_previous
from .seen import VIEW, seen

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "LINK", "RECEIVERS", "SENDERS", "SESSION", "endings", "first_frames", "grants_of",
    "link_rows_of", "links_read", "sessions_read",
]  # fmt: skip

LINK = ("run", "connection", "session", "link", "link_sender", "attach_no")
SESSION = ("run", "connection", "session", VIEW)
SENDERS, RECEIVERS = "sender", "receiver"


def link_rows_of(trace: DataFrame, whose: str) -> DataFrame:
    """The rows of links as their senders, or as their receivers, know them.

    Adds `by_sender`, `ends` (a transfer that is the last of its message) and `key`.
    """
    its = F.col(VIEW) == F.col("link_sender")
    rows = seen(trace).where(
        F.col("link").isNotNull()
        & F.col("link_sender").isNotNull()
        & (its if whose == SENDERS else ~its)
    )
    by_sender = F.coalesce(F.col("from_peer") == F.col("link_sender"), F.lit(False))
    no = F.lit(False)
    last = ~F.coalesce(F.col("more"), no) | F.coalesce(F.col("aborted"), no)
    return rows.withColumns(
        {
            "by_sender": by_sender,
            "sends": by_sender & (F.col("kind") == "transfer"),
            "ends": by_sender & (F.col("kind") == "transfer") & last,
            "key": F.xxhash64(*LINK),
        }
    )


def links_read(trace: DataFrame, chunks: Chunks, whose: str) -> DataFrame:
    """Rows of links with the sender's counters.

    Returns:
        The rows of `link_rows_of` with `count` (D after the row), `left` (credit after it) and
        `credit_before`; null where it is not known.
    """
    rows = link_rows_of(trace, whose)
    user, flow, attach = F.col("by_sender"), F.col("kind") == "flow", F.col("kind") == "attach"
    nothing, seq = F.lit(None).cast("long"), F.col("seq")
    heard = ~user & flow & F.col("link_credit").isNotNull()
    ops = {
        "step": F.col("sends"),
        "step_sure": F.lit(False),
        "step_id": F.when(F.col("sends"), F.col("delivery_id")),
        "turn": F.when(
            F.col("sends"),
            F.struct(seq, (~F.col("ends")).alias("open"), _number("delivery_id", "id")),
        ).when(user & attach, F.struct(seq, F.lit(False).alias("open"), nothing.alias("id"))),
        "base": F.when(
            user & attach, F.struct(seq, _number("initial_delivery_count", "value"))
        ).when(
            user & flow & F.col("delivery_count").isNotNull(),
            F.struct(seq, _number("delivery_count", "value")),
        ),
        "grant": F.when(
            ~user & attach,
            F.struct(seq, nothing.alias("at"), F.lit(0).cast("long").alias("credit")),
        ).when(
            heard, F.struct(seq, _number("delivery_count", "at"), _number("link_credit", "credit"))
        ),
        "claim": F.lit(None).cast("struct<seq:bigint,at:bigint,credit:bigint>"),
        "initial": F.when(user & attach, F.struct(_number("initial_delivery_count", "value"))),
        **_whole(),
    }  # fmt: skip
    read = kept(counted(in_cells(rows.withColumns(ops), chunks)))
    read = read.withColumn(
        "left", F.when(attach & F.col("left").isNull(), 0).otherwise(F.col("left"))
    )
    return with_previous(read, ["left", "t_us"]).withColumn("credit_before", F.col("previous.left"))


def sessions_read(trace: DataFrame, chunks: Chunks) -> DataFrame:
    """Rows of sessions, each end's, with that end's counters as a sender.

    Returns:
        Rows with `count` (N after the row), `left` (window after it), `previous` (struct of left
        and t_us of the row before in that session), `sends`.
    """
    rows = seen(trace).where(F.col("session").isNotNull())
    said = F.coalesce(F.col("from_peer") == F.col(VIEW), F.lit(False))
    begin, flow = F.col("kind") == "begin", F.col("kind") == "flow"
    nothing, seq = F.lit(None).cast("long"), F.col("seq")
    window = _number("incoming_window", "credit")
    sends = said & (F.col("kind") == "transfer") & (F.col("link_sender") == F.col(VIEW))
    heard = ~said & F.col("incoming_window").isNotNull()
    ops = {
        "sends": F.coalesce(sends, F.lit(False)),
        "key": F.xxhash64(*SESSION),
        "step": F.coalesce(sends, F.lit(False)),
        "step_sure": F.coalesce(sends, F.lit(False)),
        "step_id": nothing,
        "turn": F.lit(None).cast("struct<seq:bigint,open:boolean,id:bigint>"),
        "base": F.when(said & begin, F.struct(seq, _number("next_outgoing_id", "value"))).when(
            said & flow & F.col("next_outgoing_id").isNotNull(),
            F.struct(seq, _number("next_outgoing_id", "value")),
        ),
        "grant": F.when(heard & begin, F.struct(seq, nothing.alias("at"), window)).when(
            heard & flow, F.struct(seq, _number("next_incoming_id", "at"), window)
        ),
        "claim": F.lit(None).cast("struct<seq:bigint,at:bigint,credit:bigint>"),
        "initial": F.when(said & begin, F.struct(_number("next_outgoing_id", "value"))),
        **_whole(),
    }
    read = kept(counted(in_cells(rows.withColumns(ops), chunks)))
    return kept(with_previous(read, ["left", "t_us"]))


def first_frames(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """The transfer frames of `link_rows_of` that begin a message."""
    sent = in_cells(rows.where("sends"), chunks)
    return with_previous(sent, ["ends"]).where(F.coalesce(F.col("previous.ends"), F.lit(True)))


def grants_of(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """The flows among these rows that raise their link's limit, with `moved`: by how much.

    Adds `limit` (null where it counts from an initial count that the trace lacks). `moved` is null
    for the first.
    """
    flow = (F.col("kind") == "flow") & ~F.col("by_sender") & F.col("link_credit").isNotNull()
    begun = (
        rows.where(F.col("by_sender") & (F.col("kind") == "attach"))
        .groupBy("key")
        .agg(F.max("initial_delivery_count").alias("begun"))
    )
    counted_from = F.coalesce("delivery_count", "begun")
    limits = (
        rows.where(flow)
        .join(F.broadcast(begun), "key", "left")
        .withColumns(
            {
                "limit": serials.add(counted_from, F.col("link_credit")),
                "upper": serials.add(
                    F.coalesce(counted_from, F.lit(0).cast("long")), F.col("link_credit")
                ),
            }
        )
    )
    limits = with_previous(limits, ["upper"], "flow_before")
    moved = serials.difference(F.col("upper"), F.col("flow_before.upper"))
    raised = F.when(F.col("flow_before").isNull(), F.col("link_credit") > 0).otherwise(moved > 0)
    return limits.withColumn("moved", moved).where(raised)


def endings(trace: DataFrame, whose: str) -> DataFrame:
    """When each link ends as its sender, or its receiver, knows: link and `end_us`."""
    rows = seen(trace)
    at = F.col("t_us")
    connections = rows.groupBy("run", "connection", VIEW).agg(
        F.min(F.when(F.col("kind") == "close", at)).alias("closed"), F.max("t_us").alias("last_row")
    )
    sessions = rows.groupBy(*SESSION).agg(F.min(F.when(F.col("kind") == "end", at)).alias("ended"))
    links = rows.where(F.col("link").isNotNull() & F.col("link_sender").isNotNull())
    its = F.col(VIEW) == F.col("link_sender")
    links = (
        links.where(its if whose == SENDERS else ~its)
        .groupBy(*LINK, VIEW)
        .agg(F.min(F.when(F.col("kind") == "detach", at)).alias("detached"))
    )
    ends = F.least("detached", "ended", "closed")
    return (
        links.join(sessions, list(SESSION), "left")
        .join(connections, ["run", "connection", VIEW], "left")
        .select(*LINK, F.coalesce(ends, F.col("last_row")).alias("end_us"))
    )


def session_endings(trace: DataFrame) -> DataFrame:
    """When each session ends as each end knows: `SESSION` and `end_us`."""
    rows = seen(trace)
    at = F.col("t_us")
    connections = rows.groupBy("run", "connection", VIEW).agg(
        F.min(F.when(F.col("kind") == "close", at)).alias("closed"), F.max("t_us").alias("last_row")
    )
    sessions = (
        rows.where(F.col("session").isNotNull())
        .groupBy(*SESSION)
        .agg(F.min(F.when(F.col("kind") == "end", at)).alias("ended"))
    )
    return sessions.join(connections, ["run", "connection", VIEW]).select(
        *SESSION, F.coalesce(F.least("ended", "closed"), F.col("last_row")).alias("end_us")
    )


def kept(rows: DataFrame) -> DataFrame:
    """The same rows, worked out once, when they are first asked for, and kept while in use.

    Without it each use would work them out again, and each use of that again.
    """
    return rows.localCheckpoint(eager=False)


def _number(name: str, alias: str) -> Column:
    return F.col(name).cast("long").alias(alias)


def _whole() -> dict[str, Column]:
    """No frame is looked upon as lost: the plain definition knows of none."""
    nothing = F.lit(None).cast("long")
    return {"lost_user": nothing, "lost_granter": nothing, "whole": F.lit(False)}
