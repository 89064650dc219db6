"""Which frames broke a rule of AMQP 1.0, and which clause is it?

`violations` of `data/README.md`: one row for each frame and rule.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from workbench.trace.schema import CLIENT

from . import serials
from .chunks import Chunks
from .compose import question
from .endpoint_view import VIEW, losses, seen
from .readings import SESSION, links_read, senders, sessions_read
from .schemas import LINK, VIOLATIONS
from .segmented_scan import checkpointed, segmented_scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "BEYOND_CREDIT", "BEYOND_WINDOW", "beyond_credit", "beyond_window", "excused", "violations",
    "violations_of",
]  # fmt: skip

BEYOND_CREDIT, BEYOND_WINDOW = "beyond-credit", "beyond-window"

CLAUSES = {
    BEYOND_CREDIT: "2.6.7",
    BEYOND_WINDOW: "2.5.6",
    "delivery-id-missing": "2.7.5",
    "delivery-id-order": "2.6.12",
    "id-never-sent": "2.5.6",
    "handle-unknown": "2.6.2",
    "handle-in-use": "2.6.2",
    "handle-too-high": "2.7.2",
    "delivery-id-changed": "2.7.5",
    "no-answer": "2.7.4",
}


@question(VIOLATIONS)
def violations(trace: DataFrame, chunks: Chunks) -> DataFrame:
    """Gives one row for each frame and each rule that it breaks."""
    rows = seen(trace)
    links = checkpointed(links_read(senders(rows), chunks))
    sessions = checkpointed(sessions_read(rows, chunks))
    return excused(violations_of(rows, links, sessions, chunks), trace)


def excused(found: DataFrame, trace: DataFrame) -> DataFrame:
    """The answer, where nothing is `certain` behind the first octets that its connection lacks.

    They may hold what would make it legal: an attach, a grant, the messages between two numbers. An
    answer that never came may be in them wherever they are.
    """
    sees_all = F.col("lost").isNull() | (
        (F.col("seq") < F.col("lost")) & (F.col("what") != "no-answer")
    )
    told = found.join(losses(trace), ["run", "connection"], "left")
    return told.withColumn("certain", F.col("certain") & sees_all).drop("lost")


def violations_of(
    rows: DataFrame, links: DataFrame, sessions: DataFrame, chunks: Chunks
) -> DataFrame:
    """The answer, from what `readings` gives; of links the rows of their senders."""
    found = [
        beyond_credit(links, chunks),
        beyond_window(sessions, chunks),
        *_numbers(links, chunks),
        _never_sent(sessions),
        _handles(rows, chunks),
        _too_high(rows, chunks),
        _unanswered(rows, chunks),
    ]
    clause = F.create_map(*(F.lit(word) for pair in CLAUSES.items() for word in pair))
    every = reduce(lambda one, more: one.union(more), found)
    return every.withColumn("clause", clause[F.col("what")])


def beyond_credit(links: DataFrame, chunks: Chunks) -> DataFrame:
    """Of the answer the messages begun without credit, from what `links_read` gives of senders."""
    # RabbitMQ puts a flow aside while its queue has not answered the one before.
    heeds = F.col("own") & (F.col(VIEW) == CLIENT)
    # Before the receiver's first flow a link that was attached has credit 0: nothing may go.
    over = F.coalesce("over", F.when(F.col("unspoken"), F.col("number")))
    return _beyond(links.withColumn("over", over), F.col("begins"), heeds, BEYOND_CREDIT, chunks)


def beyond_window(sessions: DataFrame, chunks: Chunks) -> DataFrame:
    """The transfer frames beyond their session's window, from what `sessions_read` gives."""
    return _beyond(sessions, F.col("sends"), F.col("own"), BEYOND_WINDOW, chunks)


def _breach(
    rows: DataFrame, what: str | Column, by: str = "null", certain: Column | None = None
) -> DataFrame:
    """Of the answer these rows, which each break a rule, by as much as an expression says."""
    # What has no link's name is said of no link.
    return rows.select(
        "run", "connection", "session", "link",
        F.expr("if(link is null, null, link_sender) as link_sender"),
        F.expr("if(link is null, null, attach_no) as attach_no"),
        "seq", "frame_id", "from_peer",
        (F.lit(what) if isinstance(what, str) else what).alias("what"),
        F.expr(f"cast({by} as long) as by"),
        (F.lit(True) if certain is None else certain).alias("certain"),
    )  # fmt: skip


def _beyond(read: DataFrame, sends: Column, heeds: Column, what: str, chunks: Chunks) -> DataFrame:
    """What goes out beyond its limit.

    It is certain where the sender heeds each limit as soon as its row comes, or where it is beyond
    the furthest limit so far as well: from move to move of the limit the sum tells where it stands,
    and its peak where it stood furthest.
    """
    over = F.when(sends, F.col("over"))
    rows = read.withColumn("over", over).where(over.isNotNull() | F.col("moved").isNotNull())
    read = segmented_scan(rows, chunks, count=F.col("moved"), peak=True).where("over is not null")
    certain = heeds | (F.col("started") & (F.col("over") > F.col("peak") - F.col("n")))
    return _breach(read, what, "over", certain)


def _numbers(links: DataFrame, chunks: Chunks) -> list[DataFrame]:
    """Delivery-ids: missing, or not the next."""
    number = F.col("delivery_id").cast("long").alias("id")
    begun = links.where("begins").select(
        "run", *LINK[1:], F.xxhash64(*SESSION).alias("key"), "seq", "frame_id", "from_peer", number,
        # What begins in a capture may be the rest of a message.
        (F.col("attach_no").isNotNull() | (F.col("number") > 1)).alias("whole"),
    )  # fmt: skip
    read = segmented_scan(begun, chunks, {"id": F.when(F.col("id").isNotNull(), F.struct("id"))})
    # Of a message of several frames, each that names an id names the first one's.
    goes_on = links.where("sends")
    going = segmented_scan(
        goes_on.select("run", *LINK[1:], "key", "seq", "frame_id", "from_peer", number, "begins"),
        chunks, {"first": F.when(F.col("begins"), F.struct("id"))},
    )  # fmt: skip
    moved = serials.signed(F.col("id"), F.col("was_first.id"))
    changed = going.where(~F.col("begins")).withColumn("off", moved).where("off <> 0")
    off = serials.signed(F.col("id"), serials.add(F.col("was_id.id"), F.lit(1)))
    wrong = read.withColumn("off", off).where("id is null or off <> 0")
    what = F.when(F.col("id").isNull(), "delivery-id-missing").otherwise("delivery-id-order")
    sure = F.col("id").isNotNull() | F.col("whole")
    return [_breach(wrong, what, "off", sure), _breach(changed, "delivery-id-changed", "off")]


def _never_sent(sessions: DataFrame) -> DataFrame:
    """Flows that speak of frames which the other end has not sent."""
    told = F.col("next_incoming_id").cast("long")
    ahead = serials.signed(told, F.col("count_before"))
    heard = ~F.col("said") & (F.col("kind") == "flow") & F.col("from_peer").isNotNull()
    rows = sessions.where(heard).withColumn("ahead", ahead).where("ahead > 0")
    return _breach(rows, "id-never-sent", "ahead")


def _handles(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """Frames whose handle stands for no link of their author's, or for another one."""
    begin, attach = F.col("kind") == "begin", F.col("kind") == "attach"
    said = rows.where(F.col("said") & F.col("session").isNotNull())
    # Only what changes, or needs, a handle; a session's begin is looked up.
    begun = said.where(begin).groupBy(*SESSION).agg(F.min("seq").alias("begun_seq"))
    uses = F.col("kind").isin("flow", "transfer", "detach")
    named = (
        said.where((attach | uses) & F.col("handle").isNotNull())
        .join(F.broadcast(begun), list(SESSION))
        .where(F.col("seq") > F.col("begun_seq"))
        .withColumn("key", F.xxhash64(*SESSION, "handle"))
    )
    stands = F.when(attach, True).when(F.col("kind") == "detach", False)
    read = segmented_scan(named, chunks, {"stands": stands})
    there = F.coalesce("was_stands", F.lit(False))
    what = F.when(attach, "handle-in-use").otherwise("handle-unknown")
    return _breach(read.where(attach == there), what)


def _too_high(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """Attaches with a handle beyond what the other end takes."""
    begun = (
        ~F.col("said") & (F.col("kind") == "begin") & F.col("from_peer").isNotNull()
        & F.col("handle_max").isNotNull()
    )  # fmt: skip
    attached = F.col("said") & (F.col("kind") == "attach") & F.col("handle").isNotNull()
    both = rows.where(F.col("session").isNotNull() & (begun | attached)).withColumn(
        "key", F.xxhash64(*SESSION)
    )
    most = F.when(~F.col("said"), F.struct(F.col("handle_max").alias("most")))
    over = F.col("handle") - F.col("was_most.most")
    read = segmented_scan(both, chunks, {"most": most}).withColumn("over", over)
    return _breach(read.where("said and over > 0"), "handle-too-high", "over")


def _unanswered(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """Flows that ask, and are passed over."""
    link = F.col("link").isNotNull() & (F.col("kind") == "flow")
    name = F.xxhash64(*LINK, VIEW)
    flows = rows.where(link & F.col("said")).withColumn("key", name)
    theirs = F.coalesce(F.col("link_sender") != F.col(VIEW), F.lit(True))
    drain = theirs & F.coalesce("drain", F.lit(False))
    read = segmented_scan(flows, chunks, {"drain": F.when(theirs, drain)})
    begins = drain & ~F.coalesce("was_drain", F.lit(False))
    asked = read.where(F.coalesce("echo", F.lit(False)) | begins)
    heard = rows.where(~F.col("said") & F.col("from_peer").isNotNull())
    answers = heard.where(link).groupBy(name.alias("key")).agg(F.max("seq").alias("answer_seq"))
    later = (
        heard.where((F.col("kind") != "transfer") & F.col("session").isNotNull())
        .groupBy(F.xxhash64(*SESSION).alias("session_key"))
        .agg(F.max("seq").alias("later_seq"))
    )
    found = (
        asked.withColumn("session_key", F.xxhash64(*SESSION))
        .join(F.broadcast(later), "session_key")
        .join(F.broadcast(answers), "key", "left")
        .where(
            (F.col("later_seq") > F.col("seq"))
            & F.coalesce(F.col("answer_seq") < F.col("seq"), F.lit(True))
        )
    )
    return _breach(found, "no-answer")
