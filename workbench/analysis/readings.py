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
from .endpoint_view import VIEW, ends_message
from .schemas import LINK
from .segmented_scan import checkpointed, segmented_scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "SESSION", "begun_since", "counter", "endings", "floored", "links_read", "merged", "receivers",
    "room_of", "senders", "sessions_read", "still_open",
]  # fmt: skip

SESSION = ("run", "connection", "session", VIEW)
LATE = 1 << 62
"""Behind every row."""


def senders(rows: DataFrame) -> DataFrame:
    """Of links: the rows that tell what the sender knows."""
    return rows.where(F.col(VIEW) == F.col("link_sender"))


def receivers(rows: DataFrame) -> DataFrame:
    """Of links: the rows that tell what the receiver knows."""
    return rows.where(F.col(VIEW) != F.col("link_sender"))


def links_read(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """Rows of links with the sender's counters, as the row's end knows them.

    Args:
        rows: of `endpoint_view.seen`.
        chunks: how they are cut.

    Returns:
        The rows with `key` (link and view), `by_sender`, `begins` and `ends` (of a message),
        `number` (messages begun so far) and what `_limited` adds; `was_grant` is the flow of the
        receiver before.
    """
    flow, attach = F.col("kind") == "flow", F.col("kind") == "attach"
    by_sender = F.coalesce(F.col("from_peer") == F.col("link_sender"), F.lit(False))
    sends = by_sender & (F.col("kind") == "transfer") & F.col("session").isNotNull()
    last = ends_message(F.col("more"), F.col("aborted"))
    named = rows.where(F.col("link").isNotNull() & F.col("link_sender").isNotNull()).withColumns(
        {"key": F.xxhash64(*LINK, VIEW), "by_sender": by_sender, "sends": sends,
         "ends": sends & last}
    )  # fmt: skip
    user = F.col("by_sender")
    heard = ~user & flow & F.col("link_credit").isNotNull()
    initial = F.when(user & attach, F.struct(_number("initial_delivery_count", "value")))
    base = initial.when(
        user & flow & F.col("delivery_count").isNotNull(),
        F.struct(_number("delivery_count", "value")),
    ).when(user & F.col("reckoned").isNotNull(), F.struct(_number("reckoned", "value")))
    grant = F.struct(
        _number("delivery_count", "at"),
        _number("link_credit", "more"),
        F.coalesce("drain", F.lit(False)).alias("drain"),
    )
    read = segmented_scan(
        named, chunks,
        {"grant": F.when(heard, grant), "initial": initial,
         "attach": F.when(F.col("attaches"), True)},
        marks={"base": base},
        count=F.col("ends"), state=F.when(F.col("sends"), F.col("ends")),
    )  # fmt: skip
    read = _limited(read, heard)
    unspoken = F.lit(0).cast("long")
    return checkpointed(
        read.withColumns(
            {
                "begins": F.col("sends") & F.coalesce("state_before", F.lit(True)),
                "number": F.col("n") + still_open("state"),
                "left": F.when(
                    F.col("now_grant").isNull() & F.col("now_attach").isNotNull(), unspoken
                ).otherwise(F.col("left")),
                "left_before": F.when(
                    F.col("was_grant").isNull() & F.col("was_attach").isNotNull(), unspoken
                ).otherwise(F.col("left_before")),
            }
        ).drop("now_grant", "now_attach", "was_attach", "state", "state_before", "n")
    )


def sessions_read(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """Rows of sessions, each end's, with that end's counters as a sender.

    Args:
        rows: of `endpoint_view.seen`.
        chunks: how they are cut.

    Returns:
        The rows with `key` (session and view), `sends` and what `_limited` adds.
    """
    said, begin, flow = F.col("said"), F.col("kind") == "begin", F.col("kind") == "flow"
    named = rows.where(F.col("session").isNotNull()).withColumns(
        {"key": F.xxhash64(*SESSION), "sends": said & (F.col("kind") == "transfer")}
    )
    heard = ~said & (begin | flow) & F.col("incoming_window").isNotNull()
    start = F.when(said & begin, F.struct(_number("next_outgoing_id", "value")))
    base = start.when(
        said & flow & F.col("next_outgoing_id").isNotNull(),
        F.struct(_number("next_outgoing_id", "value")),
    )
    grant = F.struct(_number("next_incoming_id", "at"), _number("incoming_window", "more"))
    read = segmented_scan(
        named, chunks, {"grant": F.when(heard, grant), "initial": start},
        marks={"base": base}, count=F.col("sends"),
    )  # fmt: skip
    read = _limited(read, heard)
    return checkpointed(read.drop("now_grant", "was_grant", "n"))


def _limited(read: DataFrame, heard: Column) -> DataFrame:
    """Adds what follows from the counts and the latest grant.

    Columns: `count` and `count_before` (D or N), `left` and `left_before` (credit or window),
    `over` (by how many one more, just before the row, would have been beyond the limit; null if it
    was allowed), `raises` (the row raises the limit), `moved` (by how much, of rows that grant;
    null where either limit is unknown), `limited` (the row grants, and its limit is known),
    `started` (the number with which the sender began was seen). What is not known is null.
    """
    # Right before the row, the sum is without what the row itself adds.
    if "ends" in read.columns:
        n_before = F.col("n") - F.col("ends").cast("long")
        begun, begun_before = (
            F.col("n") + still_open("state"),
            n_before + still_open("state_before"),
        )
    else:
        begun, begun_before = F.col("n"), F.col("n") - F.col("sends").cast("long")
    read = read.withColumns(
        {
            "count": counter("now_base", begun),
            "count_before": counter("was_base", begun_before),
        }
    )
    room = room_of("now_grant", "now_initial", F.col("count"))
    room_before = room_of("was_grant", "was_initial", F.col("count_before"))
    here, before = F.col("now_grant"), F.col("was_grant")
    started = F.col("was_initial.value")
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
            "left": floored(room),
            "left_before": floored(room_before),
            "over": F.when(room_before <= 0, 1 - room_before),
            "raises": F.coalesce(heard & raises, F.lit(False)),
            "moved": F.when(heard, moved),
            "limited": heard & base.isNotNull(),
            "started": started.isNotNull(),
        }
    ).drop("now_base", "was_base", "now_initial", "was_initial")


def begun_since(mark: str, begun: Column) -> Column:
    """Messages, or frames, begun since a mark of a scan; one may have been in the middle then."""
    return begun - F.col(mark)["n"] - still_open(F.col(mark)["state"])


def counter(base: str, begun: Column) -> Column:
    """The counter: what was stated, and the messages or frames begun since."""
    return serials.add(F.col(base)["it"]["value"], begun_since(base, begun))


def still_open(ended: str | Column) -> Column:
    """1 in the middle of a message: it is counted, and its end has not come yet."""
    return (~F.coalesce(ended, F.lit(True))).cast("long")


def room_of(grant: str, initial: str, count: Column) -> Column:
    """How many more may be sent; below 0, by how many it is overrun."""
    at = F.coalesce(F.col(grant)["at"], F.col(initial)["value"])
    more = F.col(grant)["more"]
    return more - serials.used(more, at, count)


def floored(room: Column) -> Column:
    """A credit or window, 0 to 2^32 - 1; null if it is not known."""
    return F.when(room.isNotNull(), F.least(F.greatest(room, F.lit(0)), F.lit(serials.LARGEST)))


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


def _number(name: str, alias: str) -> Column:
    return F.col(name).cast("long").alias(alias)
