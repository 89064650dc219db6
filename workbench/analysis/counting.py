"""The counters of links, chunk by chunk: the one way in which credit is worked out.

How it runs. Rows are dealt to tasks by *lane*: what one chunk of the trace has of one end of one
link. Pass 1 looks at each lane alone; its last row is the summary. The summaries, a few per link,
are combined in order: that gives what each lane begins with. Pass 2 adds it to every row. The first
transfer of a lane is the only thing that pass 1 cannot judge: whether it goes on with a delivery of
the chunk before.

Both passes read the same shuffled rows, which are kept narrow (`links`): whatever is remembered of
a row is packed into whole numbers, because a window of Spark copies texts and structs again for
each row, and numbers are just put down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from . import serials
from .chunks import DEAL, Chunks, dealt, run_deal
from .links import GRANTED, NEVER, OPENED, STARTED, STATED, TRANSFERRED, WELCOMED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["counted"]

_ROW = ("key", "run", "seq", "op", "said", "given", "lost_user", "lost_granter")
_UNSURE = 1 << 40
"""In a lane's sum of deliveries: the first transfer, which may begin one or not."""
_NULL = 1 << 32
_LARGEST = (1 << 32) - 1


def counted(rows: DataFrame, names: DataFrame, chunks: Chunks) -> DataFrame:
    """Adds `count` and `left` to rows of links, and the names of their links.

    Args:
        rows: of `links.link_rows`.
        names: of `links.link_names`.
        chunks: how rows are cut.

    Returns:
        What was carried along in the rows, `seq`, the names, `count` (the delivery-count of the
        row's end, null if not known) and `left` (of its credit, null if not known).
    """
    more = [name for name in rows.columns if name not in _ROW]
    local = _each_lane_alone(_in_lanes(rows, chunks), more, chunks)
    if chunks.deal:  # a link is one lane, and begins with nothing
        known = names.withColumn("lane", F.col("key"))
        local = local.withColumns(_nothing_before())
    else:
        begins = _combined(local.where("is_last"), chunks)
        known = names.join(begins, "key", "inner")  # a row for each lane
    whole = local.join(F.broadcast(known.drop("key")), "lane", "inner")  # exactly one match
    found = [name for name in names.columns if name not in ("key", "whole")]
    return _with_counters(whole, chunks).select(*found, "seq", *more, "count", "left")


def _in_lanes(rows: DataFrame, chunks: Chunks) -> DataFrame:
    """The one shuffle of all rows. A lane's number and a row's `seq` give back the key."""
    if chunks.deal:
        lane, deal = F.col("key"), run_deal(chunks)
    else:
        chunk = F.shiftright("seq", chunks.span.bit_length() - 1)
        lane = F.col("key").bitwiseXOR(_mask(chunks))
        deal = dealt(chunk, F.col("key"), chunks)
    rows = rows.withColumns({"lane": lane, DEAL: deal})
    return rows.drop("key", "run").repartitionById(chunks.tasks, DEAL)


def _nothing_before() -> dict[str, Column]:
    """What a lane begins with if nothing was before it; as `_combined` tells it."""
    nothing, zero = F.lit(None).cast("long"), F.lit(0).cast("long")
    names = ["base_seq", "base", "initial_seq", "initial"]
    names += [f"{name}_{part}" for name in ("grant", "claim") for part in ("seq", "at", "credit")]
    columns = {f"from_{name}": nothing for name in names}
    # Whether a delivery was under way at its first transfer, nobody knows.
    doubt = F.col("unsure").isNotNull() & _low(F.col("unsure")).isNotNull()
    return columns | {"from_n": zero, "one": zero, "doubt": doubt}


def _mask(chunks: Chunks) -> Column:
    return F.xxhash64(_start(chunks))


def _start(chunks: Chunks) -> Column:
    """Where the chunk of a row begins."""
    if chunks.deal:
        return F.lit(0).cast("long")
    return F.col("seq").bitwiseAND(F.lit(-chunks.span))


def _place(chunks: Chunks) -> Column:
    """The place of a row in its chunk."""
    if chunks.deal:
        return F.col("seq")
    return F.col("seq").bitwiseAND(F.lit(chunks.span - 1))


def _packed(high: Column, value: Column) -> Column:
    """A place in the chunk, or a mark, and a number up to 2^32 − 1, or null, in one."""
    low = F.coalesce(value, F.lit(_NULL))
    return F.shiftleft(high.cast("long"), 33).bitwiseOR(low)


def _high(packed: Column) -> Column:
    return F.shiftright(packed, 33)


def _low(packed: Column) -> Column:
    return F.when(packed.bitwiseAND(F.lit(_NULL)) == 0, packed.bitwiseAND(F.lit(_LARGEST)))


def _each_lane_alone(rows: DataFrame, more: Sequence[str], chunks: Chunks) -> DataFrame:
    order = Window.partitionBy("lane", DEAL).orderBy("seq")
    upto = order.rowsBetween(Window.unboundedPreceding, 0)
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    op, said, given, place = F.col("op"), F.col("said"), F.col("given"), _place(chunks)
    step = op.isin(TRANSFERRED, OPENED)
    granted = F.when(op == GRANTED, said)

    def last(column: Column, over: object = upto) -> Column:
        return F.last(column, ignorenulls=True).over(over)  # type: ignore[arg-type]

    # What is open after a row: the place, twice, plus 1 if a delivery is; and the delivery's id.
    turn = F.when(step, _packed(place * 2 + F.when(op == OPENED, 1).otherwise(0), said)).when(
        op == STARTED, _packed(place * 2, F.lit(None).cast("long"))
    )
    # Three windows, for each needs the one before; all that can waits for the last of them, because
    # every window copies the whole row.
    rows = rows.withColumns({"turn": turn, "held": last(turn, before)})
    held_place = _start(chunks) + F.shiftright(_high(F.col("held")), 1)
    held_open = _high(F.col("held")).bitwiseAND(F.lit(1)) == 1
    known = held_place > F.col("lost_user")
    first, doubt = _judged(known, held_open, _low(F.col("held")), said)
    fresh = step & F.col("held").isNull()
    rows = rows.withColumns(
        {
            "fresh": fresh,
            "stepped": F.when(fresh, F.lit(_UNSURE)).otherwise((step & first).cast("long")),
            "lost": step & ~fresh & doubt,
        }
    )
    rows = rows.withColumn("n", F.sum("stepped").over(upto))
    # The counter less the deliveries of this lane, so that the latest such number and the
    # deliveries so far give the counter at every row.
    stated = F.when(op.isin(STARTED, STATED), said)
    states = op.isin(STARTED, STATED) | F.col("lost")
    mark = place * 2 + _after("n")
    base = F.when(states, F.when(F.col("lost"), _packed(mark, F.lit(None).cast("long"))).otherwise(
        _packed(mark, stated)))  # fmt: skip
    # Pass 1 asks for what only pass 2 needs, so that both can share one shuffle.
    last_one = F.lead(F.xxhash64("lost_granter", *more)).over(order).isNull()
    ends = {} if chunks.deal else {"is_last": last_one}
    return rows.withColumns(
        {
            **ends,
            "grant": last(F.when(op.isin(GRANTED, WELCOMED), _packed(place, granted))),
            "credit": last(F.when(op == GRANTED, given).when(op == WELCOMED, F.lit(0))),
            "claim": last(F.when((op == STATED) & given.isNotNull(), _packed(place, said))),
            "claimed": last(F.when((op == STATED) & given.isNotNull(), given)),
            "initial": last(F.when(op == STARTED, _packed(place, said))),
            "unsure": last(F.when(F.col("fresh"), _packed(place, said))),
            "unsure_lost": last(F.when(F.col("fresh"), F.col("lost_user"))),
            "base": last(base),
            "base_n": last(F.when(states, _count_of("n"))),
        }
    ).select(
        "lane", "seq", "lost_user", "lost_granter", *more, "turn", "held", *ends, "grant",
        "credit", "claim", "claimed", "initial", "n", "unsure", "unsure_lost", "base", "base_n",
    )  # fmt: skip


def _after(n: str) -> Column:
    """1 from the unsure transfer of the lane on."""
    return F.shiftright(F.col(n), 40)


def _count_of(n: str) -> Column:
    return F.col(n).bitwiseAND(F.lit(_UNSURE - 1))


def _judged(known: Column, is_open: Column, held_id: Column, said: Column) -> tuple[Column, Column]:
    """Whether a transfer begins a delivery, and whether that cannot be told.

    A first transfer must carry its delivery-id and a later one may [2.7.5]. So where it is not
    known whether a delivery is open, a transfer with an id leaves the count unknown.
    """
    known = F.coalesce(known, F.lit(False))
    other = F.coalesce(said != held_id, F.lit(False))
    return known & (~is_open | other), ~known & said.isNotNull()


def _combined(summaries: DataFrame, chunks: Chunks) -> DataFrame:
    """What each lane begins with: a handful of rows for each key.

    Places become those of the trace here, and sums those since the trace began.
    """
    before = Window.partitionBy("key").orderBy("start").rowsBetween(Window.unboundedPreceding, -1)
    start = F.col("start")
    turn, unsure, base = F.coalesce("turn", "held"), F.col("unsure"), F.col("base")

    def placed(name: str, **fields: Column) -> Column:
        here = F.col(name)
        return F.when(
            here.isNotNull(),
            F.struct(
                (start + _high(here)).alias("seq"),
                _low(here).alias("at"),
                *(field.alias(alias) for alias, field in fields.items()),
            ),
        )

    key = F.col("lane").bitwiseXOR(_mask(chunks)).alias("key")
    rows = summaries.withColumn("start", _start(chunks)).select(
        "lane", key, "start", _count_of("n").alias("n"), "base_n",
        F.when(turn.isNotNull(), F.struct(
            (start + F.shiftright(_high(turn), 1)).alias("seq"),
            (_high(turn).bitwiseAND(F.lit(1)) == 1).alias("open"),
            _low(turn).alias("id"),
        )).alias("turn"),
        F.when(unsure.isNotNull(), F.struct(
            (start + _high(unsure)).alias("seq"), _low(unsure).alias("id"),
            F.col("unsure_lost").alias("lost"),
        )).alias("unsure"),
        F.when(base.isNotNull(), F.struct(
            (start + F.shiftright(_high(base), 1)).alias("seq"), _low(base).alias("value"),
            _high(base).bitwiseAND(F.lit(1)).alias("after"),
        )).alias("base"),
        placed("grant", credit=F.col("credit")).alias("grant"),
        placed("claim", credit=F.col("claimed")).alias("claim"),
        placed("initial").alias("initial"),
    )  # fmt: skip
    held, unsure = F.last("turn", ignorenulls=True).over(before), F.col("unsure")
    rows = rows.withColumn("held", held)
    known = F.col("held.seq") > unsure["lost"]
    first, doubt = _judged(known, F.col("held.open"), F.col("held.id"), unsure["id"])
    there = unsure.isNotNull()
    rows = rows.withColumns(
        {
            "one": F.coalesce(there & first, F.lit(False)).cast("long"),
            "doubt": there & doubt,
        }
    ).withColumn(
        "from_n",
        F.coalesce(F.sum(F.col("n") + F.col("one")).over(before), F.lit(0).cast("long")),
    )
    base, nothing = F.col("base"), F.lit(None).cast("long")
    rows = rows.withColumn(
        "base",
        F.when(
            F.col("doubt") & (F.coalesce(base["after"], F.lit(0)) == 0),
            F.struct(unsure["seq"].alias("seq"), nothing.alias("value")),
        ).when(
            base.isNotNull(),
            F.struct(
                base["seq"].alias("seq"),
                (base["value"] - F.col("from_n") - F.col("base_n")
                 - F.col("one") * base["after"]).alias("value"),
            ),
        ),
    )  # fmt: skip
    rows = rows.select(
        "lane", "key", "one", "doubt", "from_n",
        *(F.last(name, ignorenulls=True).over(before).alias(name)
          for name in ("base", "grant", "claim", "initial")),
    )  # fmt: skip
    return rows.select(
        "lane", "key", "one", "doubt", "from_n",
        F.col("base.seq").alias("from_base_seq"), F.col("base.value").alias("from_base"),
        *(F.col(f"{name}.{field}").alias(f"from_{name}_{field}")
          for name in ("grant", "claim") for field in ("seq", "at", "credit")),
        F.col("initial.seq").alias("from_initial_seq"), F.col("initial.at").alias("from_initial"),
    )  # fmt: skip


def _with_counters(rows: DataFrame, chunks: Chunks) -> DataFrame:
    start = _start(chunks)
    one, after = F.col("one"), _after("n")
    spoilt = F.col("doubt") & (after == 1)  # the unsure transfer lies at or before the row
    base = F.col("base")
    base_after = _high(base).bitwiseAND(F.lit(1))
    own = base.isNotNull() & ~(spoilt & (base_after == 0))
    since = _count_of("n") - F.col("base_n") + one * (after - base_after)
    steps = F.col("from_n") + _count_of("n") + one * after
    rows = rows.withColumns(
        {
            "base_seq": F.when(own, start + F.shiftright(_high(base), 1)).when(
                ~spoilt, F.col("from_base_seq")
            ),
            "now": F.when(own, _low(base) + since).when(~spoilt, F.col("from_base") + steps),
            **_latest("grant", "credit", start),
            **_latest("claim", "claimed", start),
            "started_seq": F.coalesce(start + _high(F.col("initial")), "from_initial_seq"),
            "started": F.when(F.col("initial").isNotNull(), _low(F.col("initial"))).otherwise(
                F.col("from_initial")
            ),
        }
    )
    lost_user, lost_granter = F.col("lost_user"), F.col("lost_granter")
    good = F.coalesce(F.col("grant_seq") > lost_granter, F.lit(False))
    claimed = F.coalesce(F.col("claim_seq") > F.greatest(lost_user, lost_granter), F.lit(False))
    untouched = F.col("whole") & (lost_user == NEVER) & (lost_granter == NEVER)
    rows = rows.withColumns(
        {
            "count": F.when(
                F.col("base_seq") > lost_user, F.pmod(F.col("now"), F.lit(serials.CIRCLE))
            ),
            "granted": F.when(good, F.col("grant_credit"))
            .when(claimed, F.col("claim_credit"))
            .when(untouched, F.lit(0)),
            "at": F.coalesce(
                F.when(good, F.col("grant_at")).when(claimed, F.col("claim_at")), F.col("started")
            ),
            # What was granted before the sender's attach, of which nothing is missing, is what it
            # will begin with.
            "early": F.col("started_seq").isNull() & untouched,
        }
    )
    # Credit 0 is 0 whatever the count is.
    left = (
        F.when(F.col("count").isNotNull() & F.col("at").isNotNull(),
               serials.left_of(F.col("granted"), F.col("at"), F.col("count")))
        .when((F.col("granted") == 0) | F.col("early"), F.col("granted"))
    )  # fmt: skip
    return rows.withColumn("left", left)


def _latest(name: str, credit: str, start: Column) -> dict[str, Column]:
    """A grant, or what the sender stated: of this lane, else of the lanes before."""
    here, own = F.col(name), F.col(name).isNotNull()
    return {
        f"{name}_seq": F.when(own, start + _high(here)).otherwise(F.col(f"from_{name}_seq")),
        f"{name}_at": F.when(own, _low(here)).otherwise(F.col(f"from_{name}_at")),
        f"{name}_credit": F.when(own, F.col(credit)).otherwise(F.col(f"from_{name}_credit")),
    }
