"""Charts and tables of lesson 10 that are made of answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from workbench.notebook import WrongValueError
from workbench.scenarios.run import run
from workbench.trace.given import takes
from workbench.trace.schema import CLIENT
from workbench.views.charts import Chart, curve_chart, points
from workbench.views.trace_charts import Dip, dips, held_chart, rate_chart

from . import measure
from .measure import MICROSECONDS
from .spark_answers import Answer, say
from .spark_desk import WINDOW_US
from .table import Table, table_of

# The archive's link; how many messages it carries is for the credit to say.
ARCHIVE = {"latency_us": 40_000}
ARCHIVE_BROKER = "rmq4.3"
BATCH, HALF = "batch-then-wait", "top-up-at-half"


@takes
def rate_over_time(rates: Answer) -> Any:
    """Throughput of the whole trace; dips have letters."""
    return rate_chart(_windows(rates))


@takes
def held_over_time(held: Answer, rates: Answer) -> Any:
    """How many links each brake held, over the same time as the throughput."""
    end_us = _windows(rates)[-1][0] + WINDOW_US
    return held_chart(_rows(held, "brake"), window_us=WINDOW_US, end_us=end_us)


def dips_of(rates: Answer) -> list[Dip]:
    """The dips of an answer to `rates`."""
    return dips(_windows(rates))


def _windows(rates: Answer) -> list[tuple[int, int]]:
    """When each window begins, and how many messages were in it."""
    rows = _rows(rates, "messages")
    return [(row["window_start_us"], row["messages"]) for row in rows]


def _rows(answer: Answer, wanted: str) -> list[dict[str, Any]]:
    """The rows of an answer, which is one about windows.

    Raises:
        WrongValueError: it is an answer to another question.
    """
    if answer.rows and not {"window_start_us", wanted} <= answer.rows[0].keys():
        raise WrongValueError(say("other-answer", question=answer.question))
    return answer.rows


@takes
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


@takes
def drawn(*charts: Chart) -> int:
    """How many points these charts have in all."""
    return sum(points(chart) for chart in charts)


@cache
def archive_rate(rule: str, link_credit: int) -> float:
    """Messages a second over the archive's link, once it runs steadily.

    They come in bursts, so that a rate from the first message to the last depends on how the
    bursts fall. It is taken from grant to grant, the first and the last credit left out: two
    grants on, an even credit that is topped up at half is where it was.

    Args:
        rule: how its receiver grants.
        link_credit: how many it grants.
    """
    given = {**ARCHIVE, "policy": rule, "n": link_credit, "acknowledge": "auto"}
    rows = run("credit", ARCHIVE_BROKER, {**given, "messages": 4 * link_credit}).rows
    flows = measure.frames(rows, "flow", from_peer=CLIENT)
    _, first, _, last, *_ = [row for row in flows if measure.number_in(row, "link_credit")]
    taken = measure.number_in(last, "delivery_count") - measure.number_in(first, "delivery_count")
    return taken / (last.t_us - first.t_us) * MICROSECONDS


@takes
def archive_chart(values: Sequence[int]) -> Any:
    """Messages a second over the archive's link, by its receiver's credit and rule."""
    return curve_chart(
        {rule: [(value, archive_rate(rule, value)) for value in values] for rule in (BATCH, HALF)},
        across=say("archive.across"),
        up=say("archive.up"),
        title=say("archive.title", ms=measure.milliseconds(ARCHIVE["latency_us"])),
        height=260,
    )
