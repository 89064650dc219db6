"""Running counters, chunk by chunk: the one way in which credit and windows are worked out.

A counter (a link's delivery-count, a session's next-outgoing-id) is *stated* now and then and
*steps* in between. A grant (link-credit, incoming-window) is what may be used from a count on. What
a row's frame does to them stands in these columns of it:

* `step`: the frame may count; `step_sure`: it counts whatever came before; `step_id`: its
  delivery-id;
* `turn`: struct(seq, open, id), the delivery that is open after it;
* `base`: struct(seq, value), the counter is this from now on (value null: it is lost);
* `grant`: struct(seq, at, credit), `at` null: the initial count;
* `claim`: struct(seq, at, credit), the same as stated by the end that uses it;
* `initial`: struct(value), the initial count;
* `lost_user`, `lost_granter`: the seq of the last place before the row where frames are missing of
  the end that uses the grant, and of the end that gives it; null if none;
* `whole`: no frame is missing at the beginning.

How it runs. Pass 1 looks at each chunk alone; its last row per key is the summary. The summaries, a
few per key, are combined in order: that gives what each chunk begins with. Pass 2 adds it to every
row. The first step of a chunk is the only one that pass 1 cannot judge: whether it goes on with a
delivery of the chunk before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from . import serials
from .chunks import CELL, CHUNK

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["OPS", "counted"]

OPS: tuple[str, ...] = (
    "step", "step_sure", "step_id", "turn", "base", "grant", "claim", "initial", "lost_user",
    "lost_granter", "whole",
)  # fmt: skip
_LASTS = ("turn", "grant", "claim", "initial")
_NEVER = -1


def counted(cells: DataFrame, extras: Sequence[str] = ()) -> DataFrame:
    """Adds `steps`, `count`, `left` to rows that are dealt to cells and have a `key`.

    Args:
        cells: rows with the columns above, `cell`, `chunk`, `key` and `seq`.
        extras: more struct columns of which every row gets the latest: column `last_NAME`, and in
            `steps_NAME` the value of `steps` at the row that set it.

    Returns:
        The rows without the columns of `OPS`. `steps`: how often the key's counter has stepped
        since the trace began; `count`: the counter, null if not known; `left`: what is left of the
        grant, null if not known.
    """
    local = _each_chunk_alone(cells, extras)
    carry = _combined(local.where("is_last"), extras)
    whole = local.join(F.broadcast(carry), [CELL, "key"], "inner")  # exactly one match per row
    return _with_counters(whole, extras)


def _each_chunk_alone(cells: DataFrame, extras: Sequence[str]) -> DataFrame:
    order = Window.partitionBy(CELL, "key").orderBy("seq")
    upto = order.rowsBetween(Window.unboundedPreceding, 0)
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    held = F.last("turn", ignorenulls=True).over(before)
    rows = cells.withColumn("held", held).withColumn("is_last", F.lead("seq").over(order).isNull())
    rows = rows.withColumns(_judged(F.col("held"), F.col("step"), F.col("step_id"), "lost_user"))
    rows = rows.withColumns(
        {
            "fresh": F.col("step") & ~F.col("step_sure") & F.col("held").isNull(),
            "counts": F.col("step_sure") | (F.col("held").isNotNull() & F.col("judged_first")),
            "base": F.when(
                ~F.col("step_sure") & F.col("held").isNotNull() & F.col("judged_doubt"),
                F.struct(F.col("seq"), F.lit(None).cast("long").alias("value")),
            ).otherwise(F.col("base")),
        }
    )
    rows = rows.withColumns(
        {
            "n": F.sum(F.col("counts").cast("long")).over(upto),
            "after": F.max(F.col("fresh").cast("long")).over(upto),
            "unsure": F.last(
                F.when(F.col("fresh"), F.struct("seq", "step_id", "lost_user")), ignorenulls=True
            ).over(upto),
            **{name: F.last(name, ignorenulls=True).over(upto) for name in _LASTS},
        }
    )
    marked = {
        name: F.last(
            F.when(F.col(name).isNotNull(), F.struct(F.col(name).alias("it"), "n", "after")),
            ignorenulls=True,
        ).over(upto)
        for name in ("base", *extras)
    }
    return rows.withColumns(marked).drop(
        "held", "fresh", "counts", "judged_first", "judged_doubt", "step", "step_sure", "step_id"
    )


def _judged(held: Column, step: Column, step_id: Column, lost: str) -> dict[str, Column]:
    """Whether a step begins a delivery, and whether that cannot be told.

    A first transfer must carry its delivery-id and a later one may [2.7.5]. So where it is not
    known whether a delivery is open, a transfer with an id leaves the count unknown.
    """
    known = held.isNotNull() & (held["seq"] > F.coalesce(F.col(lost), F.lit(_NEVER)))
    other = F.coalesce(step_id != held["id"], F.lit(False))
    return {
        "judged_first": step & known & F.coalesce(~held["open"] | other, F.lit(False)),
        "judged_doubt": step & ~known & step_id.isNotNull(),
    }


def _combined(summaries: DataFrame, extras: Sequence[str]) -> DataFrame:
    """What each chunk begins with, per key; a handful of rows for each."""
    order = Window.partitionBy("key").orderBy(CHUNK)
    before = order.rowsBetween(Window.unboundedPreceding, -1)

    def latest(name: str) -> Column:
        return F.last(name, ignorenulls=True).over(before)

    held = latest("turn")
    rows = summaries.select(CELL, CHUNK, "key", "n", "unsure", "base", *_LASTS, *extras).withColumn(
        "held", held
    )
    rows = rows.withColumn("lost", F.col("unsure.lost_user")).withColumns(
        _judged(F.col("held"), F.col("unsure").isNotNull(), F.col("unsure")["step_id"], "lost")
    )
    rows = rows.withColumns(
        {"one": F.col("judged_first").cast("long"), "doubt": F.col("judged_doubt")}
    ).withColumn("from_n", F.coalesce(F.sum(F.col("n") + F.col("one")).over(before), F.lit(0)))
    rows = rows.withColumns(
        {
            "base": F.when(
                F.col("doubt") & (F.coalesce(F.col("base.after"), F.lit(0)) == 0),
                F.struct(
                    F.struct(
                        F.col("unsure.seq").alias("seq"), F.lit(None).cast("long").alias("value")
                    ).alias("it"),
                    F.lit(0).cast("long").alias("n"),
                ),
            ).otherwise(_absolute("base")),
            **{name: _absolute(name) for name in extras},
        }
    )
    return rows.select(
        CELL,
        "key",
        "one",
        "doubt",
        "from_n",
        *(latest(name).alias(f"from_{name}") for name in (*_LASTS[1:], "base", *extras)),
    )


def _absolute(name: str) -> Column:
    """What a chunk's row set, with the steps since the trace began instead of the chunk."""
    here = F.col(name)
    return F.when(
        here.isNotNull(),
        F.struct(
            here["it"].alias("it"),
            (F.col("from_n") + here["n"] + F.col("one") * here["after"]).alias("n"),
        ),
    )


def _with_counters(rows: DataFrame, extras: Sequence[str]) -> DataFrame:
    lost_user = F.coalesce(F.col("lost_user"), F.lit(_NEVER))
    lost_granter = F.coalesce(F.col("lost_granter"), F.lit(_NEVER))
    spoilt = F.col("doubt") & (F.col("after") == 1)  # the unsure step lies at or before the row
    own = F.col("base").isNotNull() & ~(spoilt & (F.col("base")["after"] == 0))
    base = F.when(own, _absolute("base")).when(~spoilt, F.col("from_base"))
    rows = rows.withColumns(
        {
            "steps": F.col("from_n") + F.col("n") + F.col("one") * F.col("after"),
            "base": base,
            **{
                f"latest_{name}": F.coalesce(F.col(name), F.col(f"from_{name}"))
                for name in _LASTS[1:]
            },
            **{
                f"latest_{name}": F.coalesce(_absolute(name), F.col(f"from_{name}"))
                for name in extras
            },
        }
    )
    stated = F.col("base")
    count = F.when(
        stated["it"]["seq"] > lost_user,
        serials.add(stated["it"]["value"], F.col("steps") - stated["n"]),
    )
    grant, claim = F.col("latest_grant"), F.col("latest_claim")
    good = grant.isNotNull() & (grant["seq"] > lost_granter)
    claimed = claim.isNotNull() & (claim["seq"] > F.greatest(lost_user, lost_granter))
    untouched = F.col("whole") & F.col("lost_user").isNull() & F.col("lost_granter").isNull()
    rows = rows.withColumns(
        {
            "count": count,
            "granted": F.when(good, grant["credit"])
            .when(claimed, claim["credit"])
            .when(untouched, F.lit(0)),
            "at": F.coalesce(
                F.when(good, grant["at"]).when(claimed, claim["at"]),
                F.col("latest_initial")["value"],
            ),
        }
    )
    # Credit 0 is 0 whatever the count is. What was granted before the sender's attach, of which
    # nothing is missing, is what it will begin with.
    early = F.col("latest_initial").isNull() & untouched
    left = (
        F.when(F.col("count").isNotNull() & F.col("at").isNotNull(),
               serials.left_of(F.col("granted"), F.col("at"), F.col("count")))
        .when((F.col("granted") == 0) | early, F.col("granted"))
    )  # fmt: skip
    kept = [name for name in rows.columns if name not in _DROPPED]
    carried = tuple(
        f"{way}_{name}" for way in ("from", "latest") for name in (*_LASTS, "base", "n", *extras)
    )
    kept = [name for name in kept if name not in carried and name not in extras]
    return rows.withColumn("left", left).select(
        *kept,
        "left",
        *(F.col(f"latest_{name}")["it"].alias(f"last_{name}") for name in extras),
        *(F.col(f"latest_{name}")["n"].alias(f"steps_{name}") for name in extras),
    )


_DROPPED = {
    "is_last", "n", "after", "unsure", "base", "turn", "grant", "claim", "initial", "whole", "one",
    "doubt", "granted", "at", "lost_user", "lost_granter",
}  # fmt: skip
