"""Who sees what: the ends of a trace, its links, and the rows that tell what an end knows.

An end knows what its own rows tell; where it has none, others stand in for them. The definition is
in `data/README.md` under "Words that all of them use".

Each scan of a large trace costs seconds before its first row, for every task of it reads the whole
index of the file. So what questions ask of the trace as a whole is asked once, and stays in Spark's
cache for the next question of the same trace: a row for each link, and a few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from workbench.trace.schema import (
    AMQP_0_9_1,
    AMQP_0_10,
    AMQP_1_0,
    BROKER,
    CLIENT,
    FRAME_EVENTS,
    LOSSES,
    OBSERVED,
    SENT,
)

from .lost import gaps, lost_of, with_lost
from .schemas import LINK
from .segmented_scan import checkpointed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "LINKLESS",
    "VIEW",
    "alarms",
    "endpoint_view",
    "ends_message",
    "frames_once",
    "has_broker",
    "is_frame",
    "is_named",
    "losses",
    "lost_places",
    "of_a_link",
    "once",
    "other",
    "peer_of",
    "reckoned",
    "roster",
    "run_ends",
    "seen",
    "spoken",
    "stray",
]  # fmt: skip

VIEW = "view"
LINKLESS = (AMQP_0_9_1, AMQP_0_10)
_FIELDS = (
    "next_outgoing_id", "incoming_window", "next_incoming_id", "handle", "handle_max", "role",
    "initial_delivery_count", "delivery_count", "link_credit", "drain", "echo", "delivery_id",
    "settled", "more", "aborted", "first", "last",
)  # fmt: skip


def other(peer: Column) -> Column:
    """The peer at the other side."""
    return F.when(peer == CLIENT, BROKER).otherwise(CLIENT)


def peer_of(vantage: Column) -> Column:
    """The end that logs under this name; null for an actor inside the broker."""
    return F.when(vantage == BROKER, BROKER).when(vantage.startswith("client:"), CLIENT)


def is_frame(*protocols: str) -> Column:
    """A frame of these protocols, or of AMQP 1.0, logged by an end or captured."""
    spoken = F.col("protocol").isin(*(protocols or (AMQP_1_0,)))
    return spoken & F.col("event").isin(*FRAME_EVENTS)


def of_a_link() -> Column:
    """A frame that concerns one link."""
    return (
        is_frame()
        & F.col("session").isNotNull()
        & (F.col("link").isNotNull() | F.col("frame")["handle"].isNotNull())
    )


def ends_message(more: Column, aborted: Column) -> Column:
    """Of a transfer: no more of its message will come."""
    return ~F.coalesce(more, F.lit(False)) | F.coalesce(aborted, F.lit(False))


def is_named() -> Column:
    """The trace says which link it is, and who sends over it."""
    return F.col("link").isNotNull() & F.col("link_sender").isNotNull()


def reckoned() -> Column:
    """The delivery-count right after a transfer, as the importer tells it; of rows of a trace."""
    observed = (F.col("event") == OBSERVED) & F.col("link").isNotNull()
    return F.when((F.col("kind") == "transfer") & observed, F.col("ledger")["delivery_count"])


def attaches() -> Column:
    """An attach before which the receiver can have granted nothing.

    See `folds.vantage.attaches`; of rows of a trace.
    """
    unknown = F.coalesce(F.array_contains("unknown", "link_credit"), F.lit(False))
    return (F.col("kind") == "attach") & ~unknown


def lost_places(sender: Column) -> Column:
    """The last places before the row where octets are missing, of the sender and of its peer.

    Null where none are: of most traces, and every step copies the whole row.
    """
    places = F.struct(lost_of(sender).alias("own"), lost_of(other(sender)).alias("peer"))
    return F.when(F.greatest("lost_client", "lost_broker").isNotNull(), places)


def stray() -> Column:
    """What tells an unnamed link apart: its handle."""
    return F.when(~is_named(), F.col("frame")["handle"])


def _logger() -> Column:
    """The end whose log a frame's row is from; null in a capture."""
    author = F.col("from_peer")
    return F.when(F.col("event") == SENT, author).when(F.col("event") != OBSERVED, other(author))


def roster(trace: DataFrame) -> DataFrame:
    """A row for each link, for each unnamed one, and for the rows of no link in each session.

    Returns:
        `LINK`, `of_a_link`, `handle` (of an unnamed link), and of these rows: `has_client`,
        `has_broker`, `has_observed` (whose log the frames on a connection are from; null if none
        is), of each of `LINKLESS` whether some are of it, `alarm` and `lost` (seq of the first
        alarm, and of the first place where octets are missing) and `last_us`.
    """
    # In one piece, for it is small: what is asked of it then needs no shuffle.
    return checkpointed(_scanned(trace).coalesce(1))


def _scanned(trace: DataFrame) -> DataFrame:
    there = F.coalesce(of_a_link(), F.lit(False))
    frame = is_frame(AMQP_1_0, *LINKLESS) & F.col("connection").isNotNull()
    return trace.groupBy(
        *LINK, there.alias("of_a_link"), F.when(there, stray()).alias("handle")
    ).agg(
        *(
            F.max(F.when(frame, F.coalesce(_logger() == peer, F.lit(False)))).alias(f"has_{peer}")
            for peer in (CLIENT, BROKER)
        ),
        F.max(F.when(frame, F.col("event") == OBSERVED)).alias("has_observed"),
        *(F.max(F.when(frame, F.col("protocol") == name)).alias(name) for name in LINKLESS),
        F.min(F.when(F.col("event") == "alarm-set", F.col("seq"))).alias("alarm"),
        F.min(F.when(F.col("event").isin(*LOSSES), F.col("seq"))).alias("lost"),
        F.max("t_us").alias("last_us"),
    )


def _present(trace: DataFrame) -> DataFrame:
    """Whose rows each connection has; a handful of rows."""
    flags = [f"has_{peer}" for peer in (CLIENT, BROKER)] + ["has_observed"]
    rows = roster(trace).where("has_observed is not null")
    return rows.groupBy("run", "connection").agg(*(F.max(name).alias(name) for name in flags))


def alarms(trace: DataFrame) -> DataFrame:
    """The first alarm of each run."""
    rows = roster(trace).where("alarm is not null")
    return rows.groupBy(F.xxhash64("run").alias("run")).agg(F.min("alarm").alias("alarm"))


def losses(trace: DataFrame) -> DataFrame:
    """Of each connection of which octets are missing: `lost`, the seq of the first such place."""
    rows = roster(trace).where("lost is not null and connection is not null")
    return rows.groupBy("run", "connection").agg(F.min("lost").alias("lost"))


def run_ends(trace: DataFrame) -> DataFrame:
    """The time of each run's last row."""
    run = F.xxhash64("run").alias("run_key")
    return roster(trace).groupBy(run).agg(F.max("last_us").alias("last_us"))


def spoken(trace: DataFrame) -> frozenset[str]:
    """Which of `LINKLESS` there are frames of: asked before a plan is made for them."""
    told = roster(trace).agg(*(F.max(name).alias(name) for name in LINKLESS)).head()
    return frozenset(name for name in LINKLESS if told and told[name])


def has_broker(trace: DataFrame) -> bool:
    """Whether a broker has logged rows of its own: asked before a plan is made for its insides."""
    told = roster(trace).agg(F.max("has_broker")).head()
    return bool(told and told[0])


def endpoint_view(
    rows: DataFrame,
    trace: DataFrame,
    heard: Column | None = None,
    inner: Column | None = None,
    protocols: Sequence[str] = (AMQP_1_0,),
) -> DataFrame:
    """Frames once for each end of which they tell what it knows.

    Args:
        rows: those of the trace that matter, on connections.
        trace: the trace.
        heard: which frames tell of the end too that received them; all if None.
        inner: internal rows that are wanted too; they tell of their link's sender.
        protocols: of the frames.

    Returns:
        The rows with `is_frame`, `view` (whose knowledge it is, `client` or `broker`), `said` (that
        end sent it), `own` (the end's own row, no other stands in), `lost_client` and `lost_broker`
        (where octets are missing before it).
    """
    yes, no = F.lit(True), F.lit(False)
    inner = no if inner is None else inner
    rows = rows.withColumn("is_frame", is_frame(*protocols)).where(F.col("is_frame") | inner)
    known = _present(trace).join(F.broadcast(gaps(trace)), ["run", "connection"], "left")
    rows = with_lost(rows.join(F.broadcast(known), ["run", "connection"], "left"))
    author = F.col("from_peer")
    stands_in = (F.col("event") == OBSERVED) | ~F.col("has_observed")

    def tells(peer: Column) -> Column:
        has = F.when(peer == CLIENT, F.col("has_client")).otherwise(F.col("has_broker"))
        return F.when(has, F.coalesce(_logger() == peer, no)).otherwise(stands_in)

    framed = F.col("is_frame")
    both = F.coalesce(tells(other(author)) & (yes if heard is None else heard), no)
    rows = rows.withColumns(
        {"told": framed & F.coalesce(tells(author), no), "heard": ~framed | both}
    ).where("told or heard")  # most may be neither: they must not come as far as what explodes
    views = F.when(F.col("told") & F.col("heard"), F.array(yes, no)).otherwise(
        F.array(F.col("told"))
    )
    rows = rows.withColumn("said", F.explode(views)).drop("told", "heard")
    view = F.when(~F.col("is_frame"), F.col("link_sender")).when(F.col("said"), author)
    rows = rows.withColumn(VIEW, view.otherwise(other(author)))
    own = F.when(F.col(VIEW) == CLIENT, F.col("has_client")).otherwise(F.col("has_broker"))
    return rows.withColumn("own", own).drop("has_client", "has_broker", "has_observed")


def seen(trace: DataFrame) -> DataFrame:
    """Every AMQP 1.0 frame row once for each end whose knowledge it tells, worked out once.

    Returns:
        The row's key columns, the fields on the wire that flow control lives on, and what
        `endpoint_view` adds.
    """
    rows = endpoint_view(_frames(trace), trace)
    return checkpointed(rows.drop("is_frame", "protocol", "body_bytes"))


def _frames(trace: DataFrame) -> DataFrame:
    """AMQP 1.0 frames on a connection, their fields flat."""
    frame = F.col("frame")
    return trace.where(is_frame() & F.col("connection").isNotNull()).select(
        "run", "seq", "t_us", "event", "protocol", "frame_id", "from_peer", "connection",
        "session", "link", "link_sender", "attach_no", "kind", "body_bytes",
        *(frame[name].alias(name) for name in _FIELDS), reckoned().alias("reckoned"),
        attaches().alias("attaches"),
    )  # fmt: skip


def frames_once(trace: DataFrame, *names: str) -> DataFrame:
    """One row for each frame, with these columns of `_frames`: see `once`."""
    return once(_frames(trace).select("run", "frame_id", "seq", "event", *names))


def once(frames: DataFrame) -> DataFrame:
    """Of each frame the row that observed it, else the one that sent it, else the received one."""
    rank = F.when(F.col("event") == OBSERVED, 0).when(F.col("event") == SENT, 1).otherwise(2)
    rows = frames.withColumn("rank", rank)
    names = [name for name in rows.columns if name not in ("run", "frame_id", "rank")]
    best = F.min_by(F.struct(*names), F.struct("rank", "seq")).alias("best")
    return rows.groupBy("run", "frame_id").agg(best).select("run", "frame_id", "best.*")
