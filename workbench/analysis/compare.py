"""What differs between two traces, and is that much?

`compare` of `data/README.md`: one row per measure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from . import channels
from .chunks import Chunks
from .compose import Transformer, typed
from .endpoint_view import seen, spoken
from .grants import at_zero
from .readings import links_read, merged, senders, sessions_read
from .schemas import COMPARE, LINK, TRACE
from .segmented_scan import collected, segmented_scan
from .settling import settlements
from .violations import violations_of
from .windows import windows_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, GroupedData

__all__ = ["compare"]

TOTALS = ("messages", "frames", "duration_us", "zero_us", "closed_us", "violations")
SAMPLES = ("gap_us", "settlement_us")
SIDES = ("left", "right")


@typed(TRACE, COMPARE)
def compare(right: DataFrame, chunks: Chunks = Chunks()) -> Transformer:  # noqa: B008
    """Gives one row for each measure; the trace it is asked of is the left one.

    Args:
        right: the other trace.
        chunks: how the traces are cut; see `reading.open_trace`.
    """

    def transform(left: DataFrame) -> DataFrame:
        # Both are one trace to what is asked of them, and each of their runs says whose it is.
        traces = [trace.withColumn("run", F.concat(F.lit(side), F.lit(" "), "run"))
                  for side, trace in zip(SIDES, (left, right), strict=True)]  # fmt: skip
        both = merged(_parts(traces[0].unionByName(traces[1]), chunks), ["side"])
        row = both.agg(
            *(
                _told(F.max(F.when(F.col("side") == side, F.col(name))), name).alias(
                    f"{side}_{name}"
                )
                for side in SIDES
                for name in both.columns
                if name != "side"
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


def _parts(trace: DataFrame, chunks: Chunks) -> list[DataFrame]:
    """For each side each total, of each sample how many, mean and variance; and of each its place.

    Each part is worked out by itself: a plan of all of them together takes Spark longer to make
    than a trace of a million rows to work through.
    """
    rows = seen(trace)
    links, sessions = links_read(rows, chunks), sessions_read(rows, chunks)
    carried = windows_of(rows, sessions, chunks)
    gaps, settled = _gaps(links, chunks), settlements(rows, links).select("run", "seq", "us")
    if spoken(trace):
        on_channels = channels.channel_rows(trace)
        carried = carried.unionByName(_on_channels(trace), allowMissingColumns=True)
        gaps = gaps.unionByName(channels.gaps(on_channels))
        answers = channels.answered(trace, on_channels, chunks)
        settled = settled.unionByName(answers.select("run", "seq", "us"))
    directions = _by_side(carried).agg(
        *(F.sum(name).alias(name) for name in ("messages", "frames", "closed_us")),
        *(_most(name, F.nullif(name, F.lit(0)), "first_seq") for name in ("messages", "frames")),
        _most("closed_us", F.when(F.col("closed_times") > 0, F.col("longest_closed_us")),
              "worst_seq"),
    )  # fmt: skip
    waited = F.col("end_us") - F.col("start_us")
    zero = _by_side(at_zero(rows, links, chunks)).agg(
        F.sum(waited).alias("zero_us"), _most("zero_us", waited, "start_seq")
    )
    broken = _by_side(violations_of(rows, links, sessions, chunks)).agg(
        F.count("*").alias("violations"), _most("violations", F.lit(1), "seq")
    )
    lasted = F.max_by("t_us", "seq") - F.min_by("t_us", "seq")
    runs = trace.groupBy("run").agg(lasted.alias("us"), F.max("seq").alias("seq"))
    duration = _by_side(runs).agg(
        F.sum("us").alias("duration_us"), _most("duration_us", F.col("us"), "seq")
    )
    parts = [
        directions, zero, broken, duration,
        _sample(gaps, "gap_us"),
        _sample(settled, "settlement_us"),
    ]  # fmt: skip
    return [collected(part) for part in parts]


def _on_channels(trace: DataFrame) -> DataFrame:
    """What a peer has sent on each channel, as `windows_of` has it of a session."""
    return (
        channels.content(trace)
        .groupBy(*LINK)
        .agg(
            F.sum(F.col("begins").cast("long")).alias("messages"),
            F.count("*").alias("frames"),
            F.min("seq").alias("first_seq"),
        )
    )


def _by_side(rows: DataFrame) -> GroupedData:
    return rows.groupBy(F.substring_index("run", " ", 1).alias("side"))


def _told(value: Column, name: str) -> Column:
    """As the answer has it: without a row a total is 0, and a run has its own name again."""
    if name in TOTALS:
        return F.coalesce(value, F.lit(0)).cast("double")
    if not name.endswith("_at"):
        return value
    run = F.substring(value["run"], F.instr(value["run"], " ") + 1, F.length(value["run"]))
    return F.struct(run.alias("run"), value["seq"].alias("seq"))


def _most(name: str, amount: Column, seq: str) -> Column:
    """The row that has most of it, the first by `(run, seq)`; null amounts do not count."""
    place = F.struct((-amount).alias("less"), "run", F.col(seq).alias("seq"))
    return F.min(F.when(amount.isNotNull(), place)).alias(f"{name}_at")


def _gaps(links: DataFrame, chunks: Chunks) -> DataFrame:
    """From one message of a link (`seq`) to the next."""
    begun = senders(links).where("begins").select("run", "key", "seq", "t_us")
    read = segmented_scan(begun, chunks, {"begun": F.struct("t_us", "seq")})
    before = F.col("was_begun")
    return read.select(
        "run", before["seq"].alias("seq"), (F.col("t_us") - before["t_us"]).alias("us")
    )


def _sample(values: DataFrame, name: str) -> DataFrame:
    return _by_side(values).agg(
        F.avg("us").alias(name),
        F.count("us").alias(f"{name}_n"),
        F.var_samp("us").alias(f"{name}_variance"),
        _most(name, F.col("us"), "seq"),
    )


def _measure(name: str, effect: Column) -> Column:
    return F.struct(
        F.lit(name).alias("measure"),
        F.col(f"left_{name}").alias("left"),
        F.col(f"right_{name}").alias("right"),
        effect.alias("effect"),
        *(
            F.col(f"{side}_{name}_at")[part].alias(f"{side}_{part}")
            for side in ("left", "right")
            for part in ("run", "seq")
        ),
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
