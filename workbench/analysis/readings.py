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
from .endpoint_view import VIEW, ends_message, other
from .lost import lost_of
from .schemas import LINK
from .segmented_scan import checkpointed, segmented_scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "SESSION", "begun_since", "counter", "endings", "floored", "links_read", "lost_places",
    "merged", "receivers", "room_of", "senders", "sessions_read", "standing", "stands",
    "still_open",
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
    initial = F.when(user & attach, _told("initial_delivery_count"))
    base = initial.when(
        user & flow & F.col("delivery_count").isNotNull(), _told("delivery_count")
    ).when(user & F.col("reckoned").isNotNull(), _told("reckoned"))
    grant = F.struct(
        "seq",
        _number("delivery_count", "at"),
        _number("link_credit", "more"),
        F.coalesce("drain", F.lit(False)).alias("drain"),
    )
    named = named.withColumn("lost", lost_places(F.col("link_sender")))
    read = segmented_scan(
        named, chunks,
        {"grant": F.when(heard, grant), "initial": initial, "lost": F.col("lost"),
         "attach": F.when(F.col("attaches"), F.col("seq"))},
        marks={"base": base},
        count=F.col("ends"), state=F.when(F.col("sends"), F.col("ends")),
    )  # fmt: skip
    read = _limited(read, heard)

    def credit(name: str, when: str, lost: Column) -> Column:
        """Before the first grant, of a link whose attach was seen, there is none."""
        attach = F.col(f"{when}_attach")
        attached = attach.isNotNull() & stands(attach, lost["peer"])
        return F.when(F.col(f"{when}_grant").isNull() & attached, F.lit(0).cast("long")).otherwise(
            F.col(name)
        )

    return checkpointed(
        read.withColumns(
            {
                "begins": F.col("sends") & F.coalesce("state_before", F.lit(True)),
                "number": F.col("n") + still_open("state"),
                "left": credit("left", "now", F.col("lost")),
                "left_before": credit("left_before", "was", F.col("lost")),
                "left_last": credit("left_last", "was", F.col("was_lost")),
            }
        ).drop(
            "now_grant", "now_attach", "was_attach", "state", "state_before", "n", "lost",
            "was_lost", "now_lost",
        )
    )  # fmt: skip


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
    start = F.when(said & begin, _told("next_outgoing_id"))
    base = start.when(
        said & flow & F.col("next_outgoing_id").isNotNull(), _told("next_outgoing_id")
    )
    grant = F.struct("seq", _number("next_incoming_id", "at"), _number("incoming_window", "more"))
    named = named.withColumn("lost", lost_places(F.col(VIEW)))
    read = segmented_scan(
        named, chunks, {"grant": F.when(heard, grant), "initial": start, "lost": F.col("lost")},
        marks={"base": base}, count=F.col("sends"),
    )  # fmt: skip
    read = _limited(read, heard)
    return checkpointed(read.drop("now_grant", "was_grant", "n", "lost", "was_lost", "now_lost"))


def _limited(read: DataFrame, heard: Column) -> DataFrame:
    """Adds what follows from the counts and the latest grant.

    Columns: `count` and `count_before` (D or N), `left`, `left_before` and `left_last` (credit or
    window after the row, just before it, and after the row before it, between which octets may be
    missing), `over` (by how many one more, just before the row, would have been beyond the limit;
    null if it was allowed), `raises` (the row raises the limit), `moved` (by how much, of rows that
    grant; null where either limit is unknown), `limited` (the row grants, and its limit is known),
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
    lost, count_last = F.col("lost"), F.col("count_last")
    read = read.withColumns(
        {
            "count": known("now_base", lost, counter("now_base", begun)),
            "count_last": counter("was_base", begun_before),
        }
    )
    room = standing("now", lost, room_of("now_grant", "now_initial", F.col("count")))

    def earlier(lost: Column) -> Column:
        return standing("was", lost, room_of("was_grant", "was_initial", count_last))

    room_before = earlier(lost)
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
            "count_before": known("was_base", lost, count_last),
            "left": floored(room),
            "left_before": floored(room_before),
            "left_last": floored(earlier(F.col("was_lost"))),
            "over": F.when(room_before <= 0, 1 - room_before),
            "raises": F.coalesce(heard & raises, F.lit(False)),
            "moved": F.when(heard, moved),
            "limited": heard & base.isNotNull(),
            "started": started.isNotNull(),
        }
    ).drop("now_base", "was_base", "now_initial", "was_initial", "count_last")


def lost_places(sender: Column) -> Column:
    """The last places before the row where octets are missing, of the sender and of its peer.

    Null where none are: of most traces, and every step copies the whole row.
    """
    places = F.struct(lost_of(sender).alias("own"), lost_of(other(sender)).alias("peer"))
    return F.when(F.greatest("lost_client", "lost_broker").isNotNull(), places)


def stands(told_seq: Column, lost_seq: Column) -> Column:
    """What was told in a row still counts: nothing is missing since of who told it."""
    return lost_seq.isNull() | (told_seq > lost_seq)


def known(base: str, lost: Column, value: Column) -> Column:
    """What follows from the sender's latest word, if none of its octets are missing since."""
    return F.when(stands(F.col(base)["it"]["seq"], lost["own"]), value)


def standing(when: str, lost: Column, room: Column) -> Column:
    """What may be sent, if nothing is missing of either end since its latest word."""
    granted = stands(F.col(f"{when}_grant")["seq"], lost["peer"])
    return known(f"{when}_base", lost, F.when(granted, room))


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


def _told(name: str) -> Column:
    return F.struct("seq", _number(name, "value"))


def _number(name: str, alias: str) -> Column:
    return F.col(name).cast("long").alias(alias)
