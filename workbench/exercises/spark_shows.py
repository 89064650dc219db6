"""Charts and tables of lesson 10 that are made of answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from workbench.scenarios.run import run
from workbench.views.charts import curve_chart, points
from workbench.views.trace_charts import Dip, dips, held_chart, rate_chart

from . import measure
from .measure import MICROSECONDS
from .spark_answers import Answer, say
from .spark_desk import WINDOW_US
from .table import Table, table_of

# The archive's link with fewer messages, enough to fill the wire several times.
ARCHIVE = {"messages": 1_200, "latency_us": 40_000}
BATCH, HALF = "batch-then-wait", "top-up-at-half"


def rate_over_time(rates: Answer) -> Any:
    """Throughput of the whole trace; dips have letters."""
    return rate_chart([(row["window_start_us"], row["messages"]) for row in rates.rows])


def held_over_time(held: Answer, rates: Answer) -> Any:
    """How many links each brake held, over the same time as the throughput."""
    end_us = rates.rows[-1]["window_start_us"] + WINDOW_US
    return held_chart(held.rows, window_us=WINDOW_US, end_us=end_us)


def dips_of(rates: Answer) -> list[Dip]:
    """The dips of an answer to `rates`."""
    return dips([(row["window_start_us"], row["messages"]) for row in rates.rows])


def dip_table(rates: Answer) -> Table:
    """The dips in words, for whom the chart is no help."""
    return table_of(
        "dips",
        [
            (
                dip.name,
                f"{dip.start_us / MICROSECONDS:.1f}",
                f"{dip.end_us / MICROSECONDS:.1f}",
                f"{dip.rate:,.0f}",
                f"{dip.usual:,.0f}",
            )
            for dip in dips_of(rates)
        ],
    )


def drawn(*charts: Any) -> int:
    """How many points these charts have in all."""
    return sum(points(chart) for chart in charts)


@cache
def archive_rate(rule: str, link_credit: int) -> float:
    """Messages a second over the archive's link.

    Args:
        rule: how its receiver grants.
        link_credit: how many it grants.
    """
    given = {**ARCHIVE, "policy": rule, "n": link_credit, "acknowledge": "auto"}
    rows = run("credit", "rmq4.3", given).rows
    times = [row.t_us for row in measure.frames(rows, "transfer", event="received")]
    return (len(times) - 1) / (times[-1] - times[0]) * MICROSECONDS


def archive_chart(values: Sequence[int]) -> Any:
    """Messages a second over the archive's link, by its receiver's credit and rule."""
    return curve_chart(
        {rule: [(value, archive_rate(rule, value)) for value in values] for rule in (BATCH, HALF)},
        across=say("archive.across"),
        up=say("archive.up"),
        title=say("archive.title", ms=measure.milliseconds(ARCHIVE["latency_us"])),
        height=260,
    )
