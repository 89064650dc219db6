"""What a sender may send, at each row that tells it: credit of links, windows of sessions.

Each end of a connection has its own rows (`endpoint_view`), and both ends' are read alike: those in
which `view` is the link's sender are the sender's, the others the receiver's. The words are defined
in `data/README.md` under "Words that all of them use".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from . import serials
from .chunks import Chunks
from .counters import (
    GRANTED,
    MOVED,
    OPENED,
    TRANSFERRED,
    begun,
    counted,
    counter,
    left,
    link_word,
    room,
    scanned,
    session_word,
    unspoken,
)
from .endpoint_view import VIEW, is_named, lost_places
from .schemas import LINK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "SESSION", "endings", "links_read", "merged", "receivers", "senders", "sessions_read",
]  # fmt: skip

SESSION = ("run", "connection", "session", VIEW)
LATE = 1 << 62
"""Behind every row."""

# What questions ask of a row. To carry all of it through every window took twice as long.
_OF_ROWS = (*LINK, VIEW, "seq", "t_us", "frame_id", "from_peer", "kind", "own")
_OF_LINKS = (
    "attaches", "link_credit", "drain", "echo", "delivery_id", "settled", "aborted",
)  # fmt: skip
_OF_SESSIONS = ("said", "incoming_window", "next_incoming_id", "next_outgoing_id")


def senders(rows: DataFrame) -> DataFrame:
    """Of links: the rows that tell what the sender knows."""
    return rows.where(F.col(VIEW) == F.col("link_sender"))


def receivers(rows: DataFrame) -> DataFrame:
    """Of links: the rows that tell what the receiver knows."""
    return rows.where(F.col(VIEW) != F.col("link_sender"))


def links_read(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """Rows of links with the sender's counters, as the row's end knows them.

    Args:
        rows: of `endpoint_view.seen`, or those of `senders`.
        chunks: how they are cut.

    Returns:
        `key` (link and view), `_OF_ROWS` and `_OF_LINKS` of each row, `by_sender`, `sends` (a
        transfer), `begins` and `ends` (of a message), `number` (messages begun so far), `was_drain`
        (the receiver's flow before asked for a drain) and what `_limited` adds.
    """
    by_sender = F.coalesce(F.col("from_peer") == F.col("link_sender"), F.lit(False))
    named = rows.where(is_named()).withColumns(
        {"by_sender": by_sender, "lost": lost_places(F.col("link_sender"))}
    )
    word = link_word(F.col("kind"), F.col("by_sender"))
    named = named.select(
        F.xxhash64(*LINK, VIEW).alias("key"), *_OF_ROWS, *_OF_LINKS, "by_sender", "lost",
        *(column.alias(name) for name, column in word.items()),
    )  # fmt: skip
    op = F.col("op")
    drain = F.when(op == GRANTED, F.coalesce("drain", F.lit(False)))
    remembered = {"lost": F.col("lost"), "drain": drain}
    read = _limited(counted(named, chunks, links=True, lasts=remembered))
    sends = op.isin(TRANSFERRED, OPENED)
    told = {
        "sends": sends,
        "begins": sends & F.coalesce("state_before", F.lit(True)),
        "ends": op == TRANSFERRED,
        "number": begun(),
    }
    return read.withColumns(told).drop(*_SCANNED, "now_drain")


def sessions_read(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """Rows of sessions, each end's, with that end's counters as a sender.

    Args:
        rows: of `endpoint_view.seen`.
        chunks: how they are cut.

    Returns:
        `key` (session and view), `_OF_ROWS` and `_OF_SESSIONS` of each row, `sends` and what
        `_limited` adds.
    """
    word = session_word(F.col("kind"), F.col("said"))
    named = rows.where(F.col("session").isNotNull()).select(
        F.xxhash64(*SESSION).alias("key"), *_OF_ROWS, *_OF_SESSIONS,
        lost_places(F.col(VIEW)).alias("lost"),
        *(column.alias(name) for name, column in word.items()),
    )  # fmt: skip
    read = _limited(counted(named, chunks, links=False, lasts={"lost": F.col("lost")}))
    return read.withColumn("sends", F.col("op") == MOVED).drop(*_SCANNED)


_SCANNED = ("op", "stated", "given", "lost", *scanned("lost"))


def _limited(read: DataFrame) -> DataFrame:
    """Adds what follows from the counts and the latest grant.

    Columns: `count` and `count_before` (D or N), `left`, `left_before` and `left_last` (credit or
    window after the row, just before it, and after the row before it, between which octets may be
    missing), `over` (by how many one more, just before the row, would have been beyond the limit;
    null if it was allowed), `raises` (the row raises the limit), `moved` (by how much, of rows that
    grant; null where either limit is unknown), `limited` (the row grants, and its limit is known),
    `started` (the number with which the sender began was seen), `unspoken` (of a link that was
    attached: its receiver had granted nothing before the row). What is not known is null.
    """
    heard, lost, was_lost = F.col("op") == GRANTED, F.col("lost"), F.col("was_lost")
    read = read.withColumns(
        {
            "count": counter(lost),
            "count_before": counter(lost, "was"),
            "count_last": counter(was_lost, "was"),
        }
    )
    room_before = room(F.col("count_before"), lost, "was")
    here, before = F.col("now_grant"), F.col("was_grant")
    started = F.col("was_start.number")
    base, base_before = F.coalesce(here["at"], started), F.coalesce(before["at"], started)
    ahead = serials.used(before["more"], base_before, base)
    moved = here["more"] - before["more"] + ahead
    early = F.when(before["at"].isNull(), before["more"]).otherwise(0)
    raises = (
        F.when(before.isNull(), here["more"] > 0)
        .when(base.isNull(), here["more"] > early)
        .when(base_before.isNull(), here["more"] > 0)
        .otherwise(moved > 0)
    )
    return read.withColumns(
        {
            "left": left(F.col("count"), lost),
            "left_before": left(F.col("count_before"), lost, "was"),
            "left_last": left(F.col("count_last"), was_lost, "was"),
            "over": F.when(room_before <= 0, 1 - room_before),
            "raises": F.coalesce(heard & raises, F.lit(False)),
            "moved": F.when(heard, moved),
            "limited": heard & base.isNotNull(),
            "started": started.isNotNull(),
            "unspoken": unspoken(lost, "was"),
        }
    ).drop("count_last")


def endings(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """When each link, or session, ends as the view's end knows.

    Args:
        rows: of `endpoint_view.seen`.
        keys: `(*LINK, VIEW)` or `SESSION`.

    Returns:
        `key`, the keys, `end_seq` and `end_us`: of the first row that ends it, else beyond the last
        row, at that row's time.
    """
    end = Window.partitionBy("run", "connection", VIEW)
    kinds = {"closed": "close", "ended": "end", "detached": "detach"}
    told = rows.groupBy(*keys).agg(
        *(
            F.expr(f"min(struct(seq, t_us)) filter (where kind = '{kind}') as {name}")
            for name, kind in kinds.items()
        ),
        F.expr("max(struct(seq, t_us)) as last_row"),
    )
    # A few rows: what ends a session or a connection is said in a row of no link.
    told = told.withColumns(
        {
            "closed": F.min("closed").over(end),
            "ended": F.min("ended").over(Window.partitionBy(*SESSION)),
            "last_row": F.max("last_row").over(end),
        }
    )
    parts = ["detached"] if "link" in keys else []
    told = told.withColumn("over", F.least(*parts, "ended", "closed"))
    named = F.col("session").isNotNull()
    if "link" in keys:
        named = named & F.col("link").isNotNull() & F.col("link_sender").isNotNull()
    return told.where(named).select(
        F.xxhash64(*keys).alias("key"),
        *keys,
        F.coalesce("over.seq", F.lit(LATE)).alias("end_seq"),
        F.coalesce("over.t_us", "last_row.t_us").alias("end_us"),
    )


def merged(parts: Sequence[DataFrame], keys: Sequence[str]) -> DataFrame:
    """One table of several, each with these keys and columns of its own, one row for each key.

    A key may be null, and may be missing in any of them.
    """
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    every = reduce(lambda one, more: one.unionByName(more, allowMissingColumns=True), parts)
    return every.groupBy(*keys).agg(
        *(F.max(name).alias(name) for name in names if name not in keys)
    )
