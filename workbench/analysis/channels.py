"""What questions ask of AMQP 0-9-1 and 0-10, which have no links.

The messages of a channel, or of a session of AMQP 0-10, in one direction stand where AMQP 1.0 has a
link; `data/README.md` says so of each question. A trace without a frame of these is asked nothing
of this, and one without 0-10 is not asked for the numbers of its commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from workbench.trace.schema import AMQP_0_9_1, AMQP_0_10, BLOCKED, BROKER, CLIENT, UNBLOCKED

from . import full_consumers, serials
from .chunks import Chunks
from .endpoint_view import (
    LINKLESS,
    VIEW,
    endpoint_view,
    has_broker,
    is_frame,
    once,
    peer_of,
    spoken,
)
from .full_consumers import COMPLETED
from .schemas import LINK
from .segmented_scan import checkpointed, segmented_scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["answered", "channel_rows", "content", "gaps", "stalls_of"]

GIVEN = ("basic.deliver", "basic.get-ok")
TRANSFER, SYNC, POINT = "message.transfer", "execution.sync", "session.command-point"
CONTENT = (
    "basic.publish", *GIVEN, "content-header", "content-body", TRANSFER, "header", "body",
)  # fmt: skip
ANSWERS = ("basic.ack", "basic.nack", "basic.reject")
COMMAND = 1
"""`segment_type` of a command."""
ALARM, TCP, WINDOW = "alarm", "tcp", "qpid-window"
OF_READER, OF_CLIENT = ("credit-flow", ALARM, TCP), (TCP, WINDOW, "link-credit")
_PLACE = ("run", "connection", "session")


def _frames(trace: DataFrame) -> DataFrame:
    """Frames on a connection of a protocol without links, their fields flat."""
    old, new, ledger = F.col("frame_091"), F.col("frame_010"), F.col("ledger")
    ranges = F.get_json_object(new["extra_json"], "$.commands")
    return trace.where(is_frame(*LINKLESS) & F.col("connection").isNotNull()).select(
        "run", "seq", "t_us", "event", "protocol", "frame_id", "from_peer", "connection",
        "session", "kind", "body_bytes", *full_consumers.of_consumer(),
        F.lit(None).cast("string").alias("link_sender"),
        *(old[name].alias(name) for name in ("delivery_tag", "multiple")),
        F.coalesce(new["command_id"], F.lit(0)).alias("point"),
        F.coalesce((new["segment_type"] == COMMAND) & new["first_frame"], F.lit(False))
        .alias("command"),
        F.when(F.col("kind") == COMPLETED, F.from_json(ranges, "array<array<bigint>>"))
        .alias("ranges"),
        *(
            ledger[name].alias(name)
            for name in ("published", "unacknowledged", "prefetch_count", "incomplete_commands")
        ),
    )  # fmt: skip


def channel_rows(trace: DataFrame) -> DataFrame:
    """Every such frame once for each end whose knowledge it tells, worked out once."""
    rows = endpoint_view(_frames(trace), trace, protocols=LINKLESS)
    return checkpointed(rows.drop("is_frame", "link_sender"))


def _begins(sender: Column) -> Column:
    """A message of this peer begins, which sends the frame."""
    return (F.col("from_peer") == sender) & F.when(
        F.col("kind") == "basic.publish", sender == CLIENT
    ).when(F.col("kind").isin(*GIVEN), sender == BROKER).otherwise(F.col("kind") == TRANSFER)


def _named(rows: DataFrame, sender: str) -> DataFrame:
    """With what names a channel's direction in an answer."""
    none = F.lit(None)
    return rows.withColumns(
        {
            "link": none.cast("string"),
            "link_sender": F.col(sender),
            "attach_no": none.cast("int"),
        }
    )


def content(trace: DataFrame) -> DataFrame:
    """Frames of messages, once each: `LINK`, `seq`, `t_us`, `begins`, `body_bytes`."""
    rows = _frames(trace).where(F.col("kind").isin(*CONTENT)).select(
        *_PLACE, "seq", "t_us", "frame_id", "event", "kind", "from_peer", "body_bytes"
    )  # fmt: skip
    rows = once(rows).where(F.col("session").isNotNull() & F.col("from_peer").isNotNull())
    rows = rows.withColumn("begins", _begins(F.col("from_peer")))
    return _named(rows, "from_peer").select(*LINK, "seq", "t_us", "begins", "body_bytes")


def gaps(rows: DataFrame) -> DataFrame:
    """From one message of a channel and sender (`run`, `seq`) to the next, `us`."""
    of = Window.partitionBy(*LINK).orderBy("seq")
    begun = _named(rows.where(_begins(F.col(VIEW)) & F.col("session").isNotNull()), VIEW)
    begun = begun.withColumn("us", F.lead("t_us").over(of) - F.col("t_us"))
    return begun.where("us is not null").select("run", "seq", "us")


def answered(trace: DataFrame, rows: DataFrame, chunks: Chunks) -> DataFrame:
    """Each message that awaits an answer, with the time to it; null if none came.

    Args:
        trace: the trace.
        rows: of `channel_rows`.
        chunks: how it is cut.

    Returns:
        `LINK`, `measure` (`confirm`, `ack` or `completion`), `seq` of the frame with which it
        begins, and `us`.
    """
    keyed, protocols = _keyed(rows), spoken(trace)
    parts = []
    if AMQP_0_9_1 in protocols:
        parts.append(_by_tag(keyed))
    if AMQP_0_10 in protocols:
        parts.append(_by_number(keyed, chunks))
    begun, answers = parts[0]
    for asked, told in parts[1:]:
        begun = begun.unionByName(asked, allowMissingColumns=True)
        answers = answers.unionByName(told, allowMissingColumns=True)
    measure = F.when(F.col("protocol") == AMQP_0_10, "completion").otherwise(
        F.when(F.col(VIEW) == CLIENT, "confirm").otherwise("ack")
    )
    found = _met(begun.where(F.col("kind") != SYNC), answers).withColumn("measure", measure)
    return _named(found, VIEW).select(
        *LINK, "measure", "seq", (F.col("answer.t_us") - F.col("t_us")).alias("us")
    )


def _keyed(rows: DataFrame) -> DataFrame:
    """Those on a channel; `key` is its direction."""
    return rows.where("session is not null").withColumn("key", F.xxhash64(*_PLACE, VIEW))


def _met(begun: DataFrame, answers: DataFrame) -> DataFrame:
    """With each that was begun the first answer (`answer`) that names its number later.

    If the number is given anew, whoever had it waits for ever.
    """
    told = answers.select("key", "number", F.struct("seq", "t_us", "frame_id").alias("answer"))
    anew = F.lead("seq").over(Window.partitionBy("key", "number").orderBy("seq"))
    met = begun.select("key", "number", "seq", anew.alias("anew")).join(told, ["key", "number"])
    answer = F.col("answer.seq")
    first = (
        met.where((answer > F.col("seq")) & F.coalesce(answer < F.col("anew"), F.lit(True)))
        .groupBy("key", "seq")
        .agg(F.min("answer").alias("answer"))
    )
    return begun.join(first, ["key", "seq"], "left")


def _by_tag(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """AMQP 0-9-1: messages with the number by which an answer names them, and answers by number."""
    rows = rows.where(F.col("protocol") == AMQP_0_9_1)
    publishes = F.col(VIEW) == CLIENT
    waits = (F.col("kind") == GIVEN[0]) & F.coalesce(F.col("unacknowledged") != 0, F.lit(True))
    number = F.when(publishes, F.col("published")).otherwise(F.when(waits, F.col("delivery_tag")))
    begun = rows.where(_begins(F.col(VIEW))).withColumn("number", number)
    begun = checkpointed(begun.where("number is not null"))
    answer = ("key", "seq", "t_us", "frame_id")
    said = rows.where(
        (F.col("from_peer") != F.col(VIEW))
        & F.col("kind").isin(*ANSWERS)
        & F.col("delivery_tag").isNotNull()
        & ~(publishes & (F.col("kind") == "basic.reject"))
    ).select(*answer, F.col("delivery_tag").alias("tag"), "multiple")
    many = F.coalesce("multiple", F.lit(False))
    single = said.where(~many).select(*answer, F.col("tag").alias("number"))
    # Of those that speak of all up to a tag, each speaks of what those before it left; 0 is all.
    # None speaks of more than had begun.
    earlier = Window.partitionBy("key").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    ranges = said.where(many).unionByName(begun.select("key", "seq", "number"), True)
    ranges = ranges.withColumn("most", F.max("number").over(earlier))
    ranges = ranges.where("tag is not null and most is not null")
    tag = F.when(F.col("tag") == 0, F.col("most")).otherwise(F.least("tag", "most"))
    zero = F.col("tag") == 0
    before = F.max(F.when(~zero, tag)).over(earlier)
    ranges = ranges.withColumns({"upto": tag, "after": F.coalesce(before, F.lit(0))})
    ranges = ranges.where(F.col("upto") > F.col("after")).select(
        *answer, F.explode(F.sequence(F.col("after") + 1, F.col("upto"))).alias("number")
    )
    return begun, single.unionByName(ranges)


def _by_number(rows: DataFrame, chunks: Chunks) -> tuple[DataFrame, DataFrame]:
    """AMQP 0-10: messages and syncs with their place among all commands, and what is complete.

    A frame has no number of its command: it is counted from the command-point on. Places do not
    wrap. Each `session.completed` tells of all that is complete, most of which the one before it
    told too: what it adds is what counts.
    """
    rows = rows.where(F.col("protocol") == AMQP_0_10)
    said = F.col("from_peer") == F.col(VIEW)
    heard = F.when(~said & (F.col("kind") == COMPLETED), F.col("ranges"))
    rows = rows.select(
        "run", "connection", "session", "key", VIEW, "protocol", "seq", "t_us", "frame_id", "kind",
        "from_peer", "incomplete_commands", heard.alias("ranges"),
        F.when(said & (F.col("kind") == POINT), F.col("point")).alias("point"),
        (said & F.col("command")).alias("command"),
    ).where("command or point is not null or ranges is not null")  # fmt: skip
    marks = {"point": F.col("point"), "ranges": F.col("ranges")}
    read = checkpointed(
        segmented_scan(rows, chunks, marks=marks, count=F.col("command")).where(
            "now_point is not null"
        )
    )
    known = F.col("incomplete_commands").isNotNull() & F.col("command")
    begun = read.where(known & F.col("kind").isin(TRANSFER, SYNC)).withColumn(
        "number", F.col("n") - 1
    )
    now = _places(F.col("ranges"), F.col("n"))
    before = F.coalesce(_places(F.col("was_ranges.it"), F.col("was_ranges.n")), F.array())
    begin, end = F.col("now_point.n"), F.col("n") - 1
    between = F.arrays_zip(
        F.concat(F.array(begin), F.transform(before, lambda one: one["high"] + 1)).alias("low"),
        F.concat(F.transform(before, lambda one: one["low"] - 1), F.array(end)).alias("high"),
    )
    added = F.flatten(F.transform(now, lambda one: _within(between, one["low"], one["high"])))
    told = read.where("ranges is not null").withColumn("added", F.explode(added))
    number = F.explode(F.sequence("added.low", "added.high")).alias("number")
    return begun, told.select("key", "seq", "t_us", "frame_id", number)


def _places(ranges: Column, n: Column) -> Column:
    """Ranges of numbers as places, of the commands since the point, at a row with `n` before it."""
    point = F.col("now_point")
    following = point["it"] + n - point["n"]
    told = F.transform(
        ranges,
        lambda one: F.struct(
            *(
                (n + serials.signed(one[at], following)).alias(name)
                for at, name in enumerate(("low", "high"))
            )
        ),
    )
    return _within(told, point["n"], n - 1)


def _within(ranges: Column, low: Column, high: Column) -> Column:
    """What of ranges lies between two places."""
    cut = F.transform(
        ranges,
        lambda one: F.struct(
            F.greatest(one["low"], low).alias("low"), F.least(one["high"], high).alias("high")
        ),
    )
    return F.filter(cut, lambda one: one["low"] <= one["high"])


def stalls_of(trace: DataFrame, prompt_us: int, chunks: Chunks) -> DataFrame:
    """Intervals in which a peer with something to send was held, as `stalls` tells them."""
    rows, protocols = channel_rows(trace), spoken(trace)
    inside = _inside(trace)
    found = _told(trace, inside)
    if protocols:
        freed = _freed(rows, prompt_us, completes=AMQP_0_10 in protocols)
        if has_broker(trace):
            consumers = full_consumers.consumers_of(trace)
            waiting = full_consumers.starved(trace, consumers)
            found = found.unionByName(_stall(waiting, F.col("brake"), "internal"))
            freed = full_consumers.untold(freed, trace, consumers)
        found = found.unionByName(_stall(freed, F.col("brake"), "later-frames"))
    if AMQP_0_10 in protocols:
        found = found.unionByName(_synced(rows, inside, prompt_us, chunks))
    return found


def _synced(rows: DataFrame, inside: DataFrame, prompt_us: int, chunks: Chunks) -> DataFrame:
    """A client that waited for all to be complete, and sent again at once.

    What a producer tells of its window itself counts instead.
    """
    rows = _keyed(rows.where(F.col(VIEW) == CLIENT))
    begun, answers = _by_number(rows, chunks)
    syncs = begun.where(F.col("kind") == SYNC)
    found = _met(syncs, answers).where("answer is not null")
    # The first message behind each answer.
    of = Window.partitionBy("key").orderBy("seq")
    then = rows.where(_begins(F.col(VIEW)) | (F.col("kind") == COMPLETED)).select(
        "key", F.col("seq").alias("at"),
        F.min(F.when(F.col("kind") == TRANSFER, F.col("t_us")))
        .over(of.rowsBetween(0, Window.unboundedFollowing)).alias("then_us"),
    )  # fmt: skip
    found = found.withColumns({"at": F.col("answer.seq"), "end_us": F.col("answer.t_us")})
    found = found.join(then, ["key", "at"]).where(F.col("then_us") - F.col("end_us") <= prompt_us)
    known = inside.where(F.col("brake") == WINDOW).groupBy("run", "connection")
    found = found.join(known.agg(F.min("seq").alias("known")), ["run", "connection"], "left")
    found = found.where(F.coalesce(F.col("known") >= F.col("seq"), F.lit(True)))
    found = found.withColumns(
        {"release_frame_id": F.col("answer.frame_id"), "sender": F.lit(CLIENT), "waiting": F.lit(1)}
    )
    return _stall(found, F.lit(WINDOW), "later-frames")


def _freed(rows: DataFrame, prompt_us: int, *, completes: bool) -> DataFrame:
    """A consumer that got no more, and got another as soon as it could.

    Args:
        rows: of `channel_rows`.
        prompt_us: as soon as that.
        completes: there is AMQP 0-10, where a completion frees the subscriptions of a session.
    """
    rows = rows.where((F.col(VIEW) == BROKER) & F.col("session").isNotNull())
    its = rows.where(F.col("consumer").isNotNull() & F.coalesce("full", "uses_up").isNotNull())
    if completes:
        completed = rows.where((F.col("kind") == COMPLETED) & (F.col("from_peer") == CLIENT))
        of_010 = F.col("protocol") == AMQP_0_10
        subscribed = its.where(of_010).select(*_PLACE, "consumer").distinct()
        its = its.unionByName(completed.drop("consumer").join(subscribed, [*_PLACE]))
    of = Window.partitionBy(*_PLACE, "consumer").orderBy("seq")
    given = F.when(F.col("kind").isin(GIVEN[0], TRANSFER), F.col("t_us"))
    its = its.withColumn("full", full_consumers.still_full(of)).withColumns(
        {
            "full": F.coalesce(F.last("full", ignorenulls=True).over(of), F.lit(False)),
            "next_us": F.min(given).over(of.rowsBetween(0, Window.unboundedFollowing)),
        }
    )
    was = F.coalesce(F.lag("full").over(of), F.lit(False))
    its = its.withColumn("was", was).where(F.col("full") != F.col("was"))
    its = its.withColumns(
        {name: F.lead(of_).over(of) for name, of_ in (
            ("end_us", "t_us"), ("release_frame_id", "frame_id"), ("then_us", "next_us"))}
    )  # fmt: skip
    its = its.where(F.col("full") & (F.col("then_us") - F.col("end_us") <= prompt_us))
    return its.withColumns({"sender": F.lit(BROKER), "waiting": F.lit(1)})


def _inside(trace: DataFrame) -> DataFrame:
    """What the broker's reader, a producer or a socket tells of itself; few rows."""
    kind, peer = F.col("kind"), peer_of(F.col("vantage"))
    sender = F.when(
        F.col("vantage").startswith("reader:"), F.when(kind.isin(*OF_READER), CLIENT)
    ).when(F.when(peer == CLIENT, kind.isin(*OF_CLIENT)).otherwise(kind == TCP), peer)
    return checkpointed(
        trace.where(F.col("event").isin("block", "unblock") & F.col("connection").isNotNull())
        .select(
            "run", "connection", "session", "seq", "t_us", "frame_id", kind.alias("brake"),
            sender.alias("sender"), (F.col("event") == "block").alias("on"),
            F.coalesce(F.col("ledger.waiting_transfers"), F.lit(1)).alias("waiting"),
        )
        .where("sender is not null")
    )  # fmt: skip


def _told(trace: DataFrame, inside: DataFrame) -> DataFrame:
    """What is told by those who know, and of an alarm before that by connection.blocked."""
    place = ["run", "connection"]
    frames = is_frame(*LINKLESS) & F.col("connection").isNotNull()
    lasts = (
        trace.where(frames)
        .groupBy(*place)
        .agg(F.max_by("t_us", "seq").alias("last_us"), F.min("seq").alias("since"))
    )
    known = inside.where(F.col("brake") == ALARM).groupBy(*place).agg(F.min("seq").alias("known"))
    blocked = trace.where(frames & F.col("kind").isin(BLOCKED, UNBLOCKED)).select(
        *place, "seq", "t_us", "frame_id", "event", "kind"
    )
    wire = once(blocked).join(known, place, "left")
    wire = wire.where(F.coalesce(F.col("known") >= F.col("seq"), F.lit(True))).select(
        *place, F.lit(None).cast("int").alias("session"), "seq", "t_us", "frame_id",
        F.lit(ALARM).alias("brake"), F.lit(CLIENT).alias("sender"),
        (F.col("kind") == BLOCKED).alias("on"), F.lit(1).cast("long").alias("waiting"),
    )  # fmt: skip
    of = Window.partitionBy(*_PLACE, "brake", "sender").orderBy("seq")
    rows = inside.unionByName(wire).join(lasts, place).where(F.col("seq") >= F.col("since"))
    rows = rows.withColumn("was", F.coalesce(F.lag("on").over(of), F.lit(False)))
    rows = rows.where(F.col("on") != F.col("was")).withColumns(
        {
            "until": F.lead("t_us").over(of),
            "release_frame_id": F.lead("frame_id").over(of),
        }
    )
    end_us = F.coalesce("until", F.greatest("t_us", "last_us"))
    return _stall(rows.where("on").withColumn("end_us", end_us), F.col("brake"), "internal")


def _stall(rows: DataFrame, brake: Column, evidence: str) -> DataFrame:
    waiting = F.greatest(F.col("waiting"), F.lit(1)).cast("long")
    return _named(rows, "sender").select(
        *LINK, "seq", "frame_id", F.lit("sender").alias("end"), brake.alias("brake"),
        F.col("t_us").alias("start_us"), "end_us", waiting.alias("messages_waiting"),
        "release_frame_id", F.lit(evidence).alias("evidence"),
    )  # fmt: skip
