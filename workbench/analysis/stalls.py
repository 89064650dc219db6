"""When did a sender have something to send while a brake was on, and which brake was it?

`stalls` of `data/README.md`: from the fields on the wire, and from internal rows where there are
any. Three steps:

1. `blocked_intervals` reads credit and window of every row and lets those rows through at which
   something may turn: of a trace without stalls, next to none;
2. here they are put in order with what concerns several links (windows, the end of sessions, TCP,
   alarms), and each *hold*, from the row that puts a brake on to the row after which none is, gets
   its number;
3. rows are dealt by link and hold, so that a busy link is many small groups, and each group tells
   its stalls: what was known of messages that wait, and what followed the release.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from workbench.trace.schema import BROKER, CLIENT

from .blocked_intervals import (
    SOME,
    STATED,
    SURE,
    UNKNOWN,
    link_keys,
    session_edges,
    session_key,
    turns,
    watched,
)
from .channels import stalls_of
from .chunks import Chunks
from .compose import Transformer, typed
from .endpoint_view import VIEW, alarms, endpoint_view, is_frame, peer_of, run_ends, spoken
from .schemas import LINK, STALLS, TRACE
from .segmented_scan import checkpointed, segmented_scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["PROMPT_US", "stalls"]

PROMPT_US = 20_000
"""A sender that waited answers a grant at once: a round trip and its machine's time."""
ORDER = ("seq", "tie")
_HOLD = ("lkey", "hold")


@typed(TRACE, STALLS)
def stalls(
    min_us: int = 0,
    prompt_us: int = PROMPT_US,
    chunks: Chunks = Chunks(),  # noqa: B008
) -> Transformer:
    """Gives one row for each stall.

    Args:
        min_us: leave shorter ones out.
        prompt_us: how soon after the brake a transfer must follow to be a proof, microseconds.
        chunks: how the trace is cut; see `reading.open_trace`.
    """

    def transform(trace: DataFrame) -> DataFrame:
        seen = watched(trace, chunks)
        few = checkpointed(turns(seen, chunks, prompt_us))
        links = link_keys(trace)
        dealt = _dealt(seen, few, links, trace, chunks)
        # What is left is at most half of the rows, mostly next to none.
        fewer = replace(chunks, tasks=max(4, chunks.tasks // 2))
        held = _numbered(_own(few).unionByName(dealt, allowMissingColumns=True), trace, fewer)
        found = _told(_grouped(held, fewer, prompt_us), prompt_us)
        found = _named(found, links, trace).select(*STALLS.names)
        if spoken(trace):
            found = found.unionByName(stalls_of(trace, prompt_us, chunks))
        return found.where(F.col("end_us") - F.col("start_us") >= min_us)

    return transform


def _own(few: DataFrame) -> DataFrame:
    """Rows of the links themselves."""
    return few.select(
        "lkey", "run", "seq", F.lit(0).alias("tie"), "t_us", "frame_id", "sends", "here",
        F.struct("closed", "word", "sure").alias("shut"), "gate", "prev_us", "prev_begun",
        F.when(F.col("gone"), F.lit(True)).alias("over"),
    )  # fmt: skip


def _dealt(
    seen: DataFrame, few: DataFrame, links: DataFrame, trace: DataFrame, chunks: Chunks
) -> DataFrame:
    """What concerns all links of a session or connection, as a row of each of them."""
    since = few.groupBy("lkey").agg(F.min("seq").alias("since"))
    peers = F.xxhash64("run", "connection", "link_sender")
    lean = links.select(
        "lkey", F.explode(F.array("skey", peers)).alias("dkey"), F.xxhash64("run").alias("run")
    ).join(since, "lkey")
    windows = session_edges(seen, chunks).select(
        F.col("skey").alias("dkey"), "seq", "t_us", "frame_id", "by",
        F.struct("closed", "word", "sure").alias("shut"),
    )  # fmt: skip
    events = windows.unionByName(_events(trace), allowMissingColumns=True)
    there = F.col("seq") > F.col("since")
    return (
        events.join(F.broadcast(lean), "dkey")  # each event meets the links of its session
        .where(there & ~F.col("by").eqNullSafe(F.col("lkey")))
        .select(
            "lkey", "run", "seq", F.lit(1).alias("tie"), "t_us", "frame_id",
            F.lit(False).alias("sends"), "shut", "tcp", "over",
        )
    )  # fmt: skip


def _events(trace: DataFrame) -> DataFrame:
    """Ends of sessions and connections, and TCP that takes no more octets: few rows."""
    place = ("seq", "t_us", "frame_id")
    ended = is_frame() & F.col("kind").isin("end", "close")
    tcp = F.col("event").isin("block", "unblock") & (F.col("kind") == "tcp")
    gone = F.col("event") == "disconnect"
    rows = trace.where((ended | tcp | gone) & F.col("connection").isNotNull())
    rows = checkpointed(
        rows.select(
            "run", "seq", "t_us", "frame_id", "vantage", "event", "protocol", "kind", "from_peer",
            "connection", "session", "link_sender",
        )
    )  # fmt: skip
    ends = endpoint_view(rows.where(ended), trace).select(
        F.when(F.col("kind") == "end", session_key(VIEW))
        .otherwise(F.xxhash64("run", "connection", VIEW)).alias("dkey"),
        *place, F.lit(True).alias("over"),
    )  # fmt: skip
    both = F.array(F.lit(CLIENT), F.lit(BROKER))
    others = rows.where(tcp | gone).withColumn(
        "peer", F.explode(F.when(gone, both).otherwise(F.array(peer_of(F.col("vantage")))))
    )
    others = others.select(
        F.xxhash64("run", "connection", "peer").alias("dkey"), *place,
        F.when(gone, F.lit(True)).alias("over"),
        F.when(tcp, F.col("event") == "block").alias("tcp"),
    )  # fmt: skip
    return ends.unionByName(others, allowMissingColumns=True)


def _numbered(rows: DataFrame, trace: DataFrame, chunks: Chunks) -> DataFrame:
    """Adds brake and what is known after each row, and `hold`, the number of the link's hold."""
    rows = rows.join(F.broadcast(alarms(trace)), "run", "left").withColumnRenamed("lkey", "key")
    word = F.col("shut.word")
    alarm = (word == SURE) | F.coalesce(word > F.col("alarm"), F.lit(False))
    gate, here = F.col("gate"), F.col("here")
    remembered = {
        "here": here,
        "shut": F.when(
            F.col("shut").isNotNull(),
            F.struct(F.col("shut.closed").alias("closed"),
                     F.coalesce(alarm, F.lit(False)).alias("alarm"),
                     F.col("shut.sure").alias("sure")),
        ),
        "tcp": F.col("tcp"),
        "over": F.col("over"),
        "free": F.when(~here["zero"], F.col("seq")),
        "on": F.when(gate["on"], gate),
        "off": F.when(~gate["on"], gate["seq"]),
    }  # fmt: skip
    read = segmented_scan(rows, chunks, remembered, order=ORDER).where("was_over is null")
    known = {name: F.col(f"now_here.{name}") for name in ("knows", "none", "begun", "middle")}
    own = F.col("tie") == 0
    read = read.withColumns(
        {
            "brake": _brake("now"),
            "before": _brake("was"),
            **known,
            "waiting": F.when(own, F.col("here.waiting")).otherwise(0),
            "prev_us": F.coalesce("prev_us", F.col("was_here.l_us")),
            "prev_begun": F.coalesce("prev_begun", F.col("was_here.begun"), F.lit(0)),
        }
    )
    was = F.struct(F.col("was_here.knows"), F.col("was_here.none"))
    same = F.col("brake").eqNullSafe(F.col("before")) & (
        F.col("brake").isNull() | F.struct("knows", "none").eqNullSafe(was)
    )
    # What is not known any more, for octets are missing, was not released by this row.
    unknown = F.col("brake").isNull() & ~_is_off(F.col("before"))
    read = read.withColumns(
        {
            "turn": ~same,
            "starts": F.col("brake").isNotNull() & F.col("before").isNull(),
            "over": F.col("over").isNotNull() | unknown,
        }
    ).select(
        "key", "run", *ORDER, "t_us", "frame_id", "sends", "brake", "before", "knows", "none",
        "begun", "middle", "waiting", "prev_us", "prev_begun", "over", "turn", "starts",
    )  # fmt: skip
    count = segmented_scan(read, chunks, count=F.col("starts"), order=ORDER)
    return count.withColumnRenamed("n", "hold").withColumnRenamed("key", "lkey")


def _brake(when: str) -> Column:
    """What holds the sender, from what is remembered; null if nothing does."""
    it = {
        name: F.col(f"{when}_{name}")
        for name in ("here", "shut", "tcp", "over", "free", "on", "off")
    }
    on, off = it["on"], it["off"]
    blocked = on.isNotNull() & (
        off.isNull() | (off < on["seq"]) | (off > F.coalesce(it["free"], F.lit(-1)))
    )
    # If the limit is another, a grant of before the block is still on its way.
    withheld = blocked & (on["limit"].isNull() | on["limit"].eqNullSafe(it["here"]["limit"]))
    credit = F.when(withheld, "unconfirmed").otherwise("link-credit")
    window = F.when(it["shut"]["alarm"], "alarm").otherwise("session-window")
    brake = (
        F.when(it["here"]["zero"], credit)
        .when(it["shut"]["closed"], window)
        .when(it["tcp"], "tcp")
    )  # fmt: skip
    return F.when(it["over"].isNull(), brake)


def _is_off(brake: Column) -> Column:
    """Whether it is known of a brake that does not hold the sender that it does not."""
    of_credit = brake.isin("unconfirmed", "link-credit")
    of_window = brake.isin("session-window", "alarm")
    sure = F.when(of_credit, F.col("now_here.credit_sure")).when(of_window, F.col("now_shut.sure"))
    return F.coalesce(sure, F.lit(True))


def _grouped(held: DataFrame, chunks: Chunks, prompt_us: int) -> DataFrame:
    """The rows of each hold with its release, and how many messages followed that.

    The row with which the next hold begins belongs to both: it may be the transfer that proves.
    """
    again = F.when(F.col("starts") & (F.col("hold") > 1), F.array(F.col("hold") - 1, "hold"))
    rows = held.where("hold > 0").withColumn(
        "number", F.explode(F.coalesce(again, F.array("hold")))
    )
    rows = rows.withColumn("closing", F.col("number") < F.col("hold")).drop("hold")
    rows = rows.withColumnRenamed("number", "hold")
    # Dealt by hand: Spark would put what looks small to it into one task.
    rows = rows.repartition(chunks.tasks, *_HOLD)
    group = Window.partitionBy(*_HOLD)
    free, was_free = F.col("brake").isNull(), F.col("before").isNull()
    after = F.col("closing") | (free & was_free)
    release = F.struct(*ORDER, "t_us", "begun", "middle", "over")
    rows = rows.withColumns(
        {
            "release": F.min(F.when(~F.col("closing") & free & ~was_free, release)).over(group),
            "first": F.min(F.when(after & F.col("sends"), F.struct("seq", "t_us"))).over(group),
        }
    )
    late = (
        F.col("sends")
        & after
        & (F.col("seq") > F.col("first.seq"))
        & (F.col("t_us") - F.col("prev_us") > prompt_us)
    )
    rows = rows.withColumn(
        "upto",
        F.coalesce(
            F.min(F.when(late, F.struct("seq", "prev_begun"))).over(group)["prev_begun"],
            F.max("begun").over(group),
        ),
    )
    turn = (F.col("turn") & ~F.col("closing")).cast("int")
    rows = rows.where("not closing").withColumn("part", F.sum(turn).over(group.orderBy(*ORDER)))
    return rows.withColumn("most", F.max("waiting").over(Window.partitionBy(*_HOLD, "part"))).where(
        "turn"
    )


def _told(rows: DataFrame, prompt_us: int) -> DataFrame:
    """The parts of holds that are stalls."""
    group = Window.partitionBy(*_HOLD)
    place = group.orderBy(*ORDER)
    said = (F.col("knows") != UNKNOWN) | (F.col("none") == F.col("seq"))
    parts = rows.withColumns(
        {
            "said": F.max(F.when(F.col("brake").isNotNull() & said, F.col("seq"))).over(group),
            "end_us": F.lead("t_us").over(place),
            "end_frame": F.lead(F.when(~F.col("over"), F.col("frame_id"))).over(place),
            "end_waiting": F.lead("waiting").over(place),
        }
    ).where("brake is not null")
    release, first = F.col("release"), F.col("first")
    proven = (
        (F.col("knows") == UNKNOWN)
        & (F.col("brake") != "tcp")
        & (F.col("seq") >= F.coalesce("said", F.lit(0)))
        & ~release["over"]
        & (first["t_us"] - release["t_us"] <= prompt_us)
    )
    burst = F.col("upto") - release["begun"] + release["middle"].cast("long")
    known = F.greatest("most", "end_waiting")
    evidence = (
        F.when(F.col("knows") == SOME, "internal")
        .when(F.col("knows") == STATED, "available")
        .when(proven, "later-frames")
    )
    return parts.select(
        "lkey", "run", "seq", "frame_id", "brake", F.col("t_us").alias("start_us"), "end_us",
        F.greatest(F.when(proven, burst).otherwise(known), F.lit(1)).alias("messages_waiting"),
        F.col("end_frame").alias("release_frame_id"), evidence.alias("evidence"),
    ).where("evidence is not null")  # fmt: skip


def _named(found: DataFrame, links: DataFrame, trace: DataFrame) -> DataFrame:
    """With the names of links; what nothing ended lasts to the run's last row."""
    names = links.select("lkey", *LINK)
    named = (
        found.withColumnRenamed("run", "run_key")
        .join(F.broadcast(names), "lkey")
        .join(F.broadcast(run_ends(trace)), "run_key")
    )
    return named.withColumns({"end": F.lit("sender"), "end_us": F.coalesce("end_us", "last_us")})
