"""What holds the sender of each link, from the fields on the wire: the material of `stalls`.

Only the rows that tell what a link's sender knows are taken ("An end's rows" in `data/README.md`),
and of transfers only its own, which is half of a trace of both ends. Names are left behind at once:
a row is numbers, and is told by hashes of its link and session. Credit and window are followed in
two passes over the same cells, by session and by link; then only those rows go on at which a brake,
or what is known of waiting messages, may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from workbench.trace.schema import BROKER, CLIENT, FRAME_EVENTS, OBSERVED, OWN

from . import serials
from .chunks import UNIT, Chunks, unit
from .counters import (
    GRANTED,
    begun,
    begun_since,
    counted,
    limit,
    link_word,
    scanned,
    session_word,
    stands,
    with_left,
)
from .endpoint_view import (
    VIEW,
    attaches,
    endpoint_view,
    is_frame,
    lost_places,
    peer_of,
    reckoned,
    roster,
)
from .schemas import LINK
from .segmented_scan import alone, checkpointed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "NONE", "SOME", "STATED", "SURE", "UNKNOWN", "link_keys", "session_edges",
    "session_key", "turns", "watched",
]  # fmt: skip

NONE, UNKNOWN, STATED, SOME = 0, 1, 2, 3
"""No message waits; nobody knows; the sender said that some do; its own counter says so."""
SURE = -1
"""Instead of the row in which a window of 0 was stated: it is an alarm's."""
_KINDS = ("begin", "flow", "attach", "transfer", "detach", "end")


def session_key(peer: str) -> Column:
    """The direction of a session in which that peer sends."""
    return F.xxhash64("run", "connection", "session", peer)


def link_keys(trace: DataFrame) -> DataFrame:
    """Each link once: its names and, as `lkey` and `skey`, the hashes that stand for it."""
    return (
        roster(trace)
        .where("link is not null and link_sender is not null and session is not null")
        .select(*LINK)
        .distinct()
        .select(*LINK, F.xxhash64(*LINK).alias("lkey"), session_key("link_sender").alias("skey"))
    )


_PLAIN = (
    "run", "seq", "t_us", "frame_id", "vantage", "event", "protocol", "kind", "from_peer",
    "connection", "session", "link", "link_sender", "attach_no", "ledger_source",
)  # fmt: skip
_FRAME = (
    "next_outgoing_id", "next_incoming_id", "incoming_window", "initial_delivery_count",
    "delivery_count", "link_credit", "available", "more", "aborted",
)  # fmt: skip
_LEDGER = ("available", "delivery_count", "link_credit")
_WORD = ("op", "stated", "given")
_ON_TIME, _LATE, _FIRST = range(3)
"""How a transfer comes: the first after a hold, or so long after the one before."""


def _rows(trace: DataFrame) -> DataFrame:
    """What flow control lives on, as numbers; a column is null where its row says nothing."""
    # Spark reads a struct whole, sixty columns, where it has to carry it past a join or `explode`.
    slim = trace.select(
        *_PLAIN,
        *(F.col("frame")[name].alias(name) for name in _FRAME),
        *(F.col("ledger")[name].alias(f"ledger_{name}") for name in _LEDGER),
        reckoned().alias("reckoned"),
        attaches().alias("attaches"),
    )
    available = F.when(F.col("ledger_source") == OWN, F.col("ledger_available"))
    by_sender = peer_of(F.col("vantage")) == F.col("link_sender")
    gate = F.col("event").isin("block", "unblock") & (F.col("kind") == "unconfirmed")
    inner = (
        ~F.col("event").isin(*FRAME_EVENTS)
        & F.col("session").isNotNull() & F.col("link").isNotNull()
        & F.col("link_sender").isin(CLIENT, BROKER)
        & (F.coalesce(available.isNotNull() & by_sender, F.lit(False)) | gate)
    )  # fmt: skip
    framed = is_frame() & F.col("kind").isin(*_KINDS)
    rows = slim.where(F.col("connection").isNotNull() & (framed | inner))
    told = F.col("kind") != "transfer"  # of transfers the sender's rows are enough
    rows = endpoint_view(rows, trace, told, inner).where("session is not null")
    mine = F.col("link").isNotNull() & (F.col("link_sender") == F.col(VIEW))
    rows = rows.withColumns(
        {
            "lost": lost_places(F.col(VIEW)),
            "skey": session_key(VIEW),
            "lkey": F.when(mine, F.xxhash64(*LINK)),
            "what": F.when(F.col("is_frame"), F.col("kind")).otherwise(""),
        }
    )
    said, what, mine = F.col("said"), F.col("what"), F.col("lkey").isNotNull()
    window = F.col("incoming_window")
    by_alarm = F.when(F.col("event") == OBSERVED, F.lit(SURE).cast("long")).otherwise(F.col("seq"))
    shut = (window == 0) & (F.col(VIEW) == CLIENT)
    sends = said & (what == "transfer")
    stated = F.when(said & (what == "flow"), F.col("available"))
    own = F.when(F.col("is_frame"), F.col("own")).otherwise(by_sender)
    of_session, of_link = session_word(what, said), link_word(what, said)
    return rows.select(
        F.xxhash64("run").alias("run"), unit().alias(UNIT), "seq", "t_us", "frame_id", "skey",
        "lkey", "lost", sends.alias("sends"),
        *(of_session[name].alias(f"s_{name}") for name in _WORD),
        *(F.when(mine, of_link[name]).alias(f"l_{name}") for name in _WORD),
        F.when(
            ~said & what.isin("begin", "flow") & window.isNotNull(),
            F.struct(F.when(shut, by_alarm).alias("word")),
        ).alias("s_word"),
        F.when(mine & sends, F.col("t_us")).alias("l_us"),
        F.when(
            mine & own & available.isNotNull(),
            F.struct("seq", F.lit(True).alias("inside"), available.alias("number"),
                     F.lit(None).cast("long").alias("none")),
        ).when(
            mine & stated.isNotNull(),
            F.struct("seq", F.lit(False).alias("inside"), stated.alias("number"),
                     F.when(stated == 0, F.col("seq")).alias("none")),
        ).alias("l_told"),
        F.when(
            ~F.col("is_frame") & gate,
            F.struct((F.col("event") == "block").alias("on"), "seq",
                     serials.steps(F.col("ledger_delivery_count"), -F.col("ledger_link_credit"))
                     .alias("limit")),
        ).alias("gate"),
        (mine & (what == "detach")).alias("gone"),
    )  # fmt: skip


def watched(trace: DataFrame, chunks: Chunks) -> DataFrame:
    """Rows of sessions with the window that their sender has after each.

    Returns:
        The rows of `_rows` with `closed` (the window is 0), `word` (the row in which the peer said
        so itself, null if it did not), `is_edge` (that may have changed with the row) and `sure`
        (the window is known).
    """
    rows = _rows(trace)
    read = counted(
        checkpointed(rows) if chunks.whole else rows, chunks, links=False,
        lasts={"word": F.col("s_word")}, of="s_", key="skey",
    )  # fmt: skip
    read = (
        with_left(read)
        .withColumns(
            {
                "closed": F.coalesce(F.col("left") == 0, F.lit(False)),
                "word": F.col("now_word")["word"],
                "sure": F.col("left").isNotNull(),
            }
        )
        .drop("count", "left", *scanned("word"), *(f"s_{name}" for name in (*_WORD, "word")))
    )
    shut = F.struct("closed", F.col("word").isNotNull())
    was = F.lag(shut).over(alone("skey", chunks))
    return read.withColumn("is_edge", was.isNull() | (shut != was))


def turns(seen: DataFrame, chunks: Chunks, prompt_us: int) -> DataFrame:
    """The rows of links at which a hold, or what is known of waiting messages, may turn.

    Also the first transfer after a hold, and the first that comes late after another.

    Args:
        seen: of `watched`.
        chunks: how the trace is cut.
        prompt_us: later than this a transfer is late.

    Returns:
        `lkey`, `run`, `seq`, `t_us`, `frame_id`, `closed`, `word`, `sure`, `sends`, `gate`, `gone`,
        `here`: struct of what holds for the link after the row, and `prev_us` and `prev_begun` (the
        time of the transfer before, and the messages begun before; null at the beginning of a
        cell).
    """
    edge = F.last(F.when(F.col("is_edge"), F.col("seq")), ignorenulls=True).over(
        alone("skey", chunks).rowsBetween(Window.unboundedPreceding, 0)
    )
    rows = seen.withColumn("edge", edge).where("lkey is not null")
    rows = rows.withColumns({"told": F.col("l_told.inside"), "granted": F.col("l_op") == GRANTED})
    read = counted(
        rows, chunks, links=True, lasts={"us": F.col("l_us")}, marks={"told": F.col("l_told")},
        of="l_", key="lkey",
    )  # fmt: skip
    read = _with_counters(read)
    place = alone("lkey", chunks)
    earlier = place.rowsBetween(Window.unboundedPreceding, -1)
    held, sends, seq = F.col("zero") | F.col("closed"), F.col("sends"), F.col("seq")
    code = (
        F.col("zero").cast("int") + F.col("closed").cast("int") * 2
        + F.col("word").isNotNull().cast("int") * 4 + F.col("knows") * 8
    )  # fmt: skip
    read = read.withColumns(
        {
            "same": F.lag(code).over(place) == code,
            "before": F.lag("seq").over(place),
            "after": F.lead("edge").over(place),
            "prev_us": F.col("was_us"),
            "prev_begun": F.lag("begun").over(place),
            "held_seq": F.last(F.when(held, seq), ignorenulls=True).over(earlier),
            "sent_seq": F.last(F.when(sends, seq), ignorenulls=True).over(earlier),
        }
    )
    # What may prove that messages waited, or end their burst: the first transfer after a hold, the
    # next, for it may be the first that has ended it, and of those that follow the first late one.
    hold = F.greatest("held_seq", "edge")
    first = sends & F.coalesce(hold >= F.col("sent_seq"), F.col("sent_seq").isNull())
    late = sends & F.coalesce(F.col("t_us") - F.col("prev_us") > prompt_us, F.lit(False))
    mark = F.when(sends, F.when(first, _FIRST).when(late, _LATE).otherwise(_ON_TIME))
    read = read.withColumn("last_sent", F.last(mark, ignorenulls=True).over(earlier))
    wanted = (
        F.col("before").isNull()
        | F.coalesce(F.col("after") > seq, F.lit(True))
        | ~F.col("same")
        | F.col("is_edge")  # the session's window had turned before, without a row of the link
        | F.coalesce(F.greatest("lost.own", "lost.peer") > F.col("before"), F.lit(False))
        | (F.col("told").isNotNull() & (held | ~F.col("told")))
        | (F.col("granted") & F.col("zero"))
        | F.col("gate").isNotNull()
        | F.col("gone")
        | first
        | (sends & F.coalesce(F.col("last_sent") == _FIRST, F.lit(False)))
        | (late & F.coalesce(F.col("last_sent") == _ON_TIME, F.lit(False)))
    )
    return read.where(wanted).select(
        "lkey", "run", "seq", "t_us", "frame_id", "closed", "word", "sure", "sends", "gate", "gone",
        F.struct(
            "zero", "credit_sure", "knows", "none", "waiting", "limit", "begun", "middle",
            F.col("now_us").alias("l_us"),
        ).alias("here"),
        "prev_us", "prev_begun",
    )  # fmt: skip


def _with_counters(read: DataFrame) -> DataFrame:
    """What a link's sender may send, and what is known of its messages, after each row."""
    read = with_left(read).withColumns(
        {"middle": ~F.coalesce("state", F.lit(True)), "begun": begun()}
    )
    told = F.col("now_told")
    # The sender's own counter is not read from the wire, and nothing of it is missing.
    heard = told["it"]["inside"] | stands(told["it"]["seq"], F.col("lost.own"))
    told = F.when(heard, told)
    inside, number = told["it"]["inside"], told["it"]["number"]
    read = read.withColumns(
        {
            "zero": ~F.col("middle") & F.coalesce(F.col("left") == 0, F.lit(False)),
            "credit_sure": F.col("middle") | F.col("left").isNotNull(),
            "limit": limit(),
            "waiting": F.when(inside, number)
            .when(told.isNotNull(), F.greatest(number - begun_since(told), F.lit(0)))
            .otherwise(0),
        }
    )
    knows = (
        F.when(F.col("waiting") > 0, F.when(inside, SOME).otherwise(STATED))
        .when(F.coalesce(inside, F.lit(False)) & ~F.col("middle"), NONE)
        .otherwise(UNKNOWN)
    )
    read = read.withColumn("knows", knows)
    return read.withColumn("none", F.when(F.col("knows") == UNKNOWN, told["it"]["none"]))


def session_edges(seen: DataFrame, chunks: Chunks) -> DataFrame:
    """The rows of `watched` at which a window closes or opens, for all links but the row's own."""
    changed = F.col("is_edge")
    if chunks.whole:  # before the first row it was open
        changed = changed & (F.col("closed") | F.col("word").isNotNull() | F.col("earlier"))
        seen = seen.withColumn("earlier", F.lag("seq").over(alone("skey", chunks)).isNotNull())
    return seen.where(changed).select(
        "skey", "seq", "t_us", "frame_id", "closed", "word", "sure", F.col("lkey").alias("by")
    )
