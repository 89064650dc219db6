"""What differs between two traces, and is that much?

`compare` of `data/README.md`: one row per measure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .chunks import Chunks
from .compose import Transformer, typed
from .grants import at_zero
from .readings import links_read, merged, rows_seen, senders, sessions_read
from .running import running
from .schemas import COMPARE, TRACE
from .settling import settlements
from .violations import violations_of
from .windows import windows_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["compare"]

TOTALS = ("messages", "frames", "duration_us", "zero_us", "closed_us", "violations")
SAMPLES = ("gap_us", "settlement_us")


@typed(TRACE, COMPARE)
def compare(right: DataFrame, chunks: Chunks = Chunks()) -> Transformer:  # noqa: B008
    """Gives one row for each measure; the trace it is asked of is the left one.

    Args:
        right: the other trace.
        chunks: how the traces are cut; see `reading.open_trace`.
    """

    def transform(left: DataFrame) -> DataFrame:
        sides = [
            _side(trace, chunks).withColumn("side", F.lit(side))
            for side, trace in (("left", left), ("right", right))
        ]
        both = sides[0].unionByName(sides[1])
        names = [name for name in both.columns if name != "side"]
        row = both.agg(
            *(
                F.max(F.when(F.col("side") == side, F.col(name))).alias(f"{side}_{name}")
                for side in ("left", "right")
                for name in names
            )
        )
        measures = [_measure(name, F.lit(None).cast("double")) for name in TOTALS]
        measures += [_measure(name, _effect(name)) for name in SAMPLES]
        one = row.select(F.explode(F.array(*measures)).alias("one")).select("one.*")
        known = F.col("left").isNotNull() & F.col("right").isNotNull()
        return one.withColumns(
            {
                "difference": F.col("right") - F.col("left"),
                "ratio": F.when(known & (F.col("left") != 0), F.col("right") / F.col("left")),
            }
        )

    return transform


def _side(trace: DataFrame, chunks: Chunks) -> DataFrame:
    """One row: each total, and of each sample how many, their mean and variance."""
    rows = rows_seen(trace)
    links, sessions = links_read(rows, chunks), sessions_read(rows, chunks)
    directions = windows_of(rows, sessions, chunks).agg(
        *(F.sum(name).alias(name) for name in ("messages", "frames", "closed_us"))
    )
    zero = at_zero(rows, links, chunks).agg(
        F.sum(F.col("end_us") - F.col("start_us")).alias("zero_us")
    )
    broken = violations_of(rows, links, sessions, chunks).agg(F.count("*").alias("violations"))
    lasted = F.max_by("t_us", "seq") - F.min_by("t_us", "seq")
    duration = trace.groupBy("run").agg(lasted.alias("us")).agg(F.sum("us").alias("duration_us"))
    parts = [
        directions, zero, broken, duration,
        _sample(_gaps(links, chunks), "gap_us"),
        _sample(settlements(rows, links), "settlement_us"),
    ]  # fmt: skip
    one = merged([part.withColumn("all", F.lit(1)) for part in parts], ["all"]).drop("all")
    return one.withColumns({name: F.coalesce(name, F.lit(0)).cast("double") for name in TOTALS})


def _gaps(links: DataFrame, chunks: Chunks) -> DataFrame:
    """From one message of a link to the next."""
    begun = senders(links).where("begins").select("run", "key", "seq", "t_us")
    read = running(begun, chunks, {"begun": F.struct("t_us")})
    return read.select((F.col("t_us") - F.col("was_begun.it.t_us")).alias("us"))


def _sample(values: DataFrame, name: str) -> DataFrame:
    return values.agg(
        F.avg("us").alias(name),
        F.count("us").alias(f"{name}_n"),
        F.var_samp("us").alias(f"{name}_variance"),
    )


def _measure(name: str, effect: Column) -> Column:
    return F.struct(
        F.lit(name).alias("measure"),
        F.col(f"left_{name}").alias("left"),
        F.col(f"right_{name}").alias("right"),
        effect.alias("effect"),
    )


def _effect(name: str) -> Column:
    """Cohen's d: the means' difference by the pooled standard deviation."""
    counts = [F.col(f"{side}_{name}_n") for side in ("left", "right")]
    spreads = [F.col(f"{side}_{name}_variance") for side in ("left", "right")]
    weights = (counts[0] - 1) * spreads[0] + (counts[1] - 1) * spreads[1]
    enough = (counts[0] >= 2) & (counts[1] >= 2)
    pooled = F.when(enough, F.sqrt(weights / (counts[0] + counts[1] - 2)))
    difference = F.col(f"right_{name}") - F.col(f"left_{name}")
    return F.when(pooled > 0, difference / pooled)
