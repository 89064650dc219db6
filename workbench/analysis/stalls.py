"""When did a sender have something to send while a brake was on, and which brake was it?

A stall begins when both are true and ends at the frame that lets go, or when nothing waits any
more. That messages waited is known in one of three ways:

* `internal`: the sender's own counter in the trace;
* `available`: the sender stated it on the wire, less what it has sent since;
* `later-frames`: nobody stated it, but as soon as the brake was off a transfer followed, within
  `prompt_us`. When the message came cannot be known then: the stall is counted from the brake on.

A sender that is known to have nothing, whose queue is empty or which gave its credit back, has no
stall, whatever the brakes. A stall that nothing ended runs to the end of its session, connection or
run. Where brakes change, each has its own row.

Rows are cut by chunk (`chunks`); of each chunk only the rows go on at which something changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from .chunks import CELL, Chunks, in_cells, latest
from .compose import Transformer, typed
from .holds import FREE, LINK, holds
from .schemas import STALLS, TRACE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["PROMPT_US", "stalls"]

PROMPT_US = 20_000
"""A sender that waited answers a grant at once: a round trip and its machine's time."""
ORDER = ("seq", "tie")
_UNKNOWN, _NONE, _SOME = 1, 0, 2


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
        rows = holds(trace, chunks).withColumn("key", F.xxhash64(*LINK))
        turns = _turns(in_cells(rows, chunks), chunks)
        ended = _by_knowledge(turns).unionByName(_by_what_followed(turns, prompt_us))
        found = ended.unionByName(_not_ended(turns, trace))
        return found.where(F.col("end_us") - F.col("start_us") >= min_us).withColumn(
            "end", F.lit("sender")
        )

    return transform


def _class(waiting: Column, inside: Column) -> Column:
    """Messages wait, none waits, or that is not known: what was stated may be out of date."""
    return F.when(waiting > 0, _SOME).when(inside & (waiting == 0), _NONE).otherwise(_UNKNOWN)


def _turns(cells: DataFrame, chunks: Chunks) -> DataFrame:
    """The rows at which a link's brake, or what is known of its messages, changes.

    And the transfers that may be the first after a brake. `was`: the place where the state began
    that the row ends.
    """
    window = Window.partitionBy(CELL, "key").orderBy(*ORDER)
    earlier = window.rowsBetween(Window.unboundedPreceding, -1)
    told = {
        "held": F.col("held"),
        "closed": F.col("closed"),
        "alarm": F.col("alarm"),
        "knows": F.when(F.col("waiting").isNotNull(), _class(F.col("waiting"), F.col("inside"))),
    }
    rows = cells.withColumns(told).withColumns(
        {f"old_{name}": F.last(name, ignorenulls=True).over(earlier) for name in told}
        | {"after_transfer": F.lag("is_transfer").over(window)}
    )
    changed = F.lit(False)
    for name in told:
        new, old = F.col(name), F.col(f"old_{name}")
        changed = changed | (new.isNotNull() & (old.isNull() | (new != old)))
    first = F.col("is_transfer") & ~F.coalesce("after_transfer", F.lit(False))
    few = rows.where(changed | first).select(
        *LINK, "key", *ORDER, "t_us", "frame_id", "is_transfer", "waiting", "inside", *told
    )
    # From here on it is few rows, used several times: they are worked out once and kept.
    few = few.localCheckpoint(eager=False)
    few = latest(few, chunks, {name: F.col(name) for name in told}, order=ORDER, both=True)
    few = few.withColumns(
        {
            "brake": _brake(""),
            "knows": F.coalesce(F.col("knows"), F.lit(_UNKNOWN)),
            "state": _state(""),
            "is_turn": ~_state("").eqNullSafe(_state("before_")),
        }
    ).localCheckpoint(eager=False)
    place = F.struct("brake", "knows", "seq", "frame_id", "t_us", "waiting", "inside")
    few = latest(few, chunks, {"was": F.when(F.col("is_turn"), place)}, order=ORDER)
    few = few.withColumnRenamed("before_was", "was").localCheckpoint(eager=False)
    # What comes right before a transfer: another one, or the end of a state.
    step = F.struct("is_transfer", "is_turn", "brake", "was", "t_us", "frame_id")
    return latest(
        few, chunks, {"step": F.when(F.col("is_turn") | F.col("is_transfer"), step)}, order=ORDER
    ).localCheckpoint(eager=False)


def _brake(which: str) -> Column:
    """The brake that a row's parts make: a brake of the link first, then its session's window."""
    held = F.col(f"{which}held")
    return F.when(held != FREE, held).when(
        F.col(f"{which}closed"),
        F.when(F.col(f"{which}alarm"), "alarm").otherwise("session-window"),
    )


def _state(which: str) -> Column:
    """Brake and what is known of messages, in one word; empty without a brake."""
    knows = F.coalesce(F.col(f"{which}knows"), F.lit(_UNKNOWN))
    return F.when(
        _brake(which).isNotNull(), F.concat_ws("/", _brake(which), knows.cast("string"))
    ).otherwise(FREE)


def _by_knowledge(turns: DataFrame) -> DataFrame:
    """Stalls of which it is known that messages waited."""
    was = F.col("was")
    return turns.where(
        F.col("is_turn") & was["brake"].isNotNull() & (was["knows"] == _SOME)
    ).select(
        *LINK,
        was["seq"].alias("seq"),
        was["frame_id"].alias("frame_id"),
        was["brake"].alias("brake"),
        was["t_us"].alias("start_us"),
        F.col("t_us").alias("end_us"),
        F.greatest(was["waiting"], F.col("waiting")).alias("messages_waiting"),
        F.col("frame_id").alias("release_frame_id"),
        F.when(was["inside"], "internal").otherwise("available").alias("evidence"),
    )


def _by_what_followed(turns: DataFrame, prompt_us: int) -> DataFrame:
    """Stalls of which the first transfer after them is the proof."""
    released = F.col("before_step")
    was = released["was"]
    proof = (
        F.col("is_transfer")
        & released["is_turn"]
        & released["brake"].isNull()
        & was["brake"].isNotNull()
        & (was["knows"] == _UNKNOWN)
        & (F.col("t_us") - released["t_us"] <= prompt_us)
    )
    return turns.where(proof).select(
        *LINK,
        was["seq"].alias("seq"),
        was["frame_id"].alias("frame_id"),
        was["brake"].alias("brake"),
        was["t_us"].alias("start_us"),
        released["t_us"].alias("end_us"),
        F.lit(1).cast("long").alias("messages_waiting"),
        released["frame_id"].alias("release_frame_id"),
        F.lit("later-frames").alias("evidence"),
    )


def _not_ended(turns: DataFrame, trace: DataFrame) -> DataFrame:
    """Stalls that last as long as their session, connection or run."""
    last = (
        turns.where("is_turn")
        .groupBy(*LINK)
        .agg(
            F.max_by(
                F.struct("brake", "knows", "seq", "frame_id", "t_us", "waiting", "inside"),
                F.struct(*ORDER),
            ).alias("it")
        )
        .where(F.col("it.brake").isNotNull() & (F.col("it.knows") == _SOME))
    )
    runs = trace.groupBy("run").agg(F.max("t_us").alias("run_us"))
    gone = trace.where(
        F.col("kind").isin("close", "end") | (F.col("event") == "disconnect")
    ).select("run", "connection", "session", "kind", "t_us")
    closed = (
        gone.where(F.col("kind").isNull() | (F.col("kind") != "end"))
        .groupBy("run", "connection").agg(F.min("t_us").alias("closed_us"))
    )  # fmt: skip
    ended = (
        gone.where(F.col("kind") == "end")
        .groupBy("run", "connection", "session").agg(F.min("t_us").alias("ended_us"))
    )  # fmt: skip
    it = F.col("it")
    return (
        last.join(F.broadcast(runs), "run", "inner")
        .join(F.broadcast(closed), ["run", "connection"], "left")
        .join(F.broadcast(ended), ["run", "connection", "session"], "left")
        .select(
            *LINK,
            it["seq"].alias("seq"),
            it["frame_id"].alias("frame_id"),
            it["brake"].alias("brake"),
            it["t_us"].alias("start_us"),
            F.greatest(it["t_us"], F.least("run_us", "closed_us", "ended_us")).alias("end_us"),
            it["waiting"].alias("messages_waiting"),
            F.lit(None).cast("long").alias("release_frame_id"),
            F.when(it["inside"], "internal").otherwise("available").alias("evidence"),
        )
    )
