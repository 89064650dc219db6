"""How often, and how long, does each session window close, both ways?

`windows` of `data/README.md`: one row per session and direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from . import serials
from .chunks import Chunks
from .compose import Transformer, typed
from .lags import with_previous
from .readings import LINK, SENDERS, SESSION, link_rows_of, session_endings, sessions_read
from .schemas import TRACE, WINDOWS
from .seen import VIEW
from .spells import Spell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["windows"]


@typed(TRACE, WINDOWS)
def windows(chunks: Chunks = Chunks()) -> Transformer:  # noqa: B008
    """Gives one row for each session and direction in which a transfer or a window was seen."""
    return lambda trace: _windows(trace, chunks)


def _windows(trace: DataFrame, chunks: Chunks) -> DataFrame:
    read = sessions_read(trace, chunks)
    rows = read.join(F.broadcast(session_endings(trace)), list(SESSION))
    said = F.coalesce(F.col("from_peer") == F.col(VIEW), F.lit(False))
    begun = F.col("kind") == "begin"
    spell = Spell(F.col("left") == 0, F.col("previous.left") == 0, F.col("previous.t_us"))
    per_session = rows.groupBy(*SESSION).agg(
        F.sum(F.col("sends").cast("long")).alias("frames"),
        F.max(F.when(~said & begun, F.col("incoming_window"))).alias("window_first"),
        F.min("left").alias("window_least"),
        F.max(F.coalesce(said & begun, F.lit(False))).alias("began"),
        *spell.aggregates("closed_times", "closed_us"),
    )
    longest = spell.longest(rows, SESSION, chunks)
    found = (
        per_session.join(_messages(trace), list(SESSION), "left")
        .join(_grants(read, chunks), list(SESSION), "left")
        .join(longest, list(SESSION), "left")
    )
    frames, messages = F.col("frames"), F.coalesce("messages", F.lit(0).cast("long"))
    return found.where((frames > 0) | F.col("window_least").isNotNull()).select(
        "run", "connection", "session", F.col(VIEW).alias("sender"), frames,
        messages.alias("messages"),
        F.when(messages > 0, frames / messages).alias("frames_per_message"),
        F.coalesce("grants", F.lit(0).cast("long")).alias("grants"), "window_first",
        "window_least", "closed_times", "closed_us",
        F.coalesce("longest_us", F.lit(0).cast("long")).alias("longest_closed_us"),
        (F.col("began") & F.col("window_first").isNotNull()).alias("known"),
    )  # fmt: skip


def _messages(trace: DataFrame) -> DataFrame:
    """Messages begun in each session: those that ended, and those still open at the end."""
    per_link = (
        link_rows_of(trace, SENDERS)
        .where("sends")
        .groupBy(*LINK, VIEW)
        .agg(
            F.sum(F.col("ends").cast("long")).alias("whole"),
            F.max_by("ends", "seq").alias("over"),
        )
    )
    begun = F.col("whole") + F.when(F.col("over"), 0).otherwise(1)
    return per_link.groupBy(*SESSION).agg(F.sum(begun).cast("long").alias("messages"))


def _grants(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """Flows that raised the window's upper end; the begin gives it and is none."""
    said = F.coalesce(F.col("from_peer") == F.col(VIEW), F.lit(False))
    begun = (
        rows.where(said & (F.col("kind") == "begin"))
        .groupBy(*SESSION)
        .agg(F.max("next_outgoing_id").alias("begun"))
    )
    told = rows.where(
        ~said & F.col("kind").isin("begin", "flow") & F.col("incoming_window").isNotNull()
    ).join(F.broadcast(begun), list(SESSION), "left")
    counted_from = F.coalesce(
        F.when(F.col("kind") == "flow", F.col("next_incoming_id")),
        F.col("begun"),
        F.lit(0).cast("long"),
    )
    uppers = told.drop("previous").withColumn(
        "upper", serials.add(counted_from, F.col("incoming_window"))
    )
    uppers = with_previous(uppers, ["upper"])
    moved = serials.difference(F.col("upper"), F.col("previous.upper"))
    raised = F.when(F.col("previous").isNull(), F.col("incoming_window") > 0).otherwise(moved > 0)
    return (
        uppers.where(raised & (F.col("kind") == "flow"))
        .groupBy(*SESSION)
        .agg(F.count("*").alias("grants"))
    )
