"""Charts and tables of lesson 10 that are made of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.views.curve_chart import curve_chart
from workbench.views.rate_chart import held_chart, points, rate_chart

from .measure import MICROSECONDS
from .spark_answers import Answer
from .spark_desk import WINDOW_US
from .spark_dips import dips_of
from .spark_ways import BATCH, HALF, archive_rate
from .table import Table


def rate_over_time(rates: Answer) -> Any:
    """Throughput of the whole trace; dips have letters."""
    return rate_chart([(row["window_start_us"], row["messages"]) for row in rates.rows])


def held_over_time(held: Answer, rates: Answer) -> Any:
    """How many links each brake held, over the same time as the throughput."""
    end_us = rates.rows[-1]["window_start_us"] + WINDOW_US
    return held_chart(held.rows, window_us=WINDOW_US, end_us=end_us)


def dip_table(rates: Answer) -> Table:
    """The dips in words, for whom the chart is no help."""
    return Table(
        name="Dips",
        head=("dip", "from (s)", "to (s)", "messages a second", "usual"),
        lines=[
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


def archive_chart(values: Sequence[int]) -> Any:
    """Messages a second over the archive's link, by its receiver's credit and rule."""
    return curve_chart(
        {rule: [(value, archive_rate(rule, value)) for value in values] for rule in (BATCH, HALF)},
        across="credit (messages)",
        up="messages a second",
        title="The archive's link, by the credit and the rule of its receiver",
        height=260,
    )
