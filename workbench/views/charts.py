"""Charts over time and over results, drawn with Bokeh.

A chart is a plain figure over column data, made from rows alone: `credit_chart(rows)` is what a
page without a kernel shows. `CreditChart` keeps the figure's cursor and moves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bokeh.io import output_notebook
from bokeh.models import ColumnDataSource
from bokeh.resources import INLINE

from workbench.trace.braking import blocked_intervals, held_by
from workbench.trace.fold import Scope, link_scope
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, Row

from . import theme
from .plot import NO_TOOLS, numbers, plot
from .time_chart import (
    FollowingChart,
    Look,
    Steps,
    finish,
    shade,
    step_line,
    step_time,
    time_figure,
    top_of,
)

LOOKS = {
    "sender": Look(theme.SENDER),
    "receiver": Look(theme.RECEIVER, "dashed", 2.0),
    "capture point": Look(theme.SENDER),
}
LEGENDS = {
    "sender": "sender's view",
    "receiver": "receiver's view",
    "capture point": "capture point",
}


def notebook_output() -> None:
    """Put BokehJS itself into the page: charts then need no network and always appear."""
    output_notebook(INLINE, hide_banner=True)


def busiest_link(rows: Sequence[Row]) -> Scope | None:
    """The link that most rows concern."""
    counts: dict[Scope, int] = {}
    for row in rows:
        scope = link_scope(row)
        if scope is not None and scope.link_sender is not None:
            counts[scope] = counts.get(scope, 0) + 1
    return max(counts, key=counts.__getitem__, default=None)


def credit_steps(rows: Sequence[Row], link: Scope) -> dict[str, Steps]:
    """Link credit as each end has it: `sender` and `receiver`, or `capture point`.

    A counter that cannot be known makes a gap: its value is -1 until it is known.
    """
    found: dict[str, Steps] = {}
    for row in rows:
        if link_scope(row) != link:
            continue
        unknown = "link_credit" in row.unknown
        credit = -1 if unknown else (row.ledger or {}).get("link_credit")
        if credit is None:
            continue
        steps = found.setdefault(_side(row, link), [])
        if not steps or steps[-1][1] != credit:
            steps.append((row.t_us, int(credit)))
    return found


def _side(row: Row, link: Scope) -> str:
    if row.event == OBSERVED:
        return "capture point"
    peer = CLIENT if row.vantage.startswith("client") else BROKER
    return "sender" if peer == link.link_sender else "receiver"


def credit_chart(
    rows: Iterable[Row],
    link: Scope | None = None,
    *,
    at_us: int | None = None,
    title: str = "",
    width: int = 900,
    height: int = 260,
) -> Any:
    """Link credit over time at both ends, with the intervals in which the sender was blocked.

    Args:
        rows: trace rows in order of `seq`.
        link: which link; the busiest one if None.
        at_us: where the cursor stands, in microseconds; none is drawn if None.
        title: above the chart; the link's name if empty.
        width: in pixels.
        height: in pixels.

    Returns:
        A Bokeh figure: time in ms, credit in messages. Each brake has a colour and a hatch of its
        own; the receiver's line is dashed.
    """
    rows = list(rows)
    link = link or busiest_link(rows)
    chart = time_figure(
        title=title or (f"Link credit of {link.link}" if link else "No link in these rows"),
        unit="link-credit (messages)",
        width=width,
        height=height,
    )
    steps = credit_steps(rows, link) if link else {}
    top = top_of(steps.values())
    if link is not None:
        shade(chart, blocked_intervals(rows, held_by(rows, link)), top)
    lines = [
        step_line(chart, side, line, rows[-1].t_us, LOOKS[side], LEGENDS[side])
        for side, line in steps.items()
    ]
    finish(chart, lines, top, at_us)
    return chart


def figure_at(rows: Iterable[Row], step: int, **options: Any) -> Any:
    """The credit chart with its cursor at a step: a still."""
    rows = list(rows)
    return credit_chart(rows, at_us=step_time(rows, step), **options)


class CreditChart(FollowingChart):
    """A credit chart whose cursor can be moved.

    Args:
        rows: trace rows in order of `seq`, those that are drawn.
        link: which link; the busiest one if None.
    """

    def __init__(self, rows: Iterable[Row], link: Scope | None = None, **options: Any) -> None:
        rows = list(rows)
        super().__init__(rows, credit_chart(rows, link, at_us=step_time(rows, 0), **options))


def throughput_chart(
    results: Mapping[str, float],
    *,
    unit: str = "messages per second",
    title: str = "Throughput by top-up rule",
    width: int = 720,
) -> Any:
    """A bar per top-up rule, or per way of doing something, its value printed on it.

    Args:
        results: rule to throughput, in the order in which the bars stand.
        unit: of the values.
        title: above the bars.
        width: in pixels.
    """
    names = list(results)
    colours = [theme.BLUE, theme.ORANGE, theme.GREEN, theme.PURPLE, theme.SKY, theme.VERMILLION]
    hatches = [" ", "right_diagonal_line", "dot", "cross", "horizontal_line", "vertical_line"]
    count = len(names)
    source = ColumnDataSource(
        {
            "rule": names,
            "value": [float(results[name]) for name in names],
            "words": [f"{results[name]:,.0f}" for name in names],
            "colour": [colours[i % len(colours)] for i in range(count)],
            "hatch": [hatches[i % len(hatches)] for i in range(count)],
        }
    )
    chart = plot(title, up=unit, width=width, height=280, tools=NO_TOOLS, x_range=names)
    chart.vbar(
        x="rule",
        top="value",
        width=0.62,
        source=source,
        fill_color="colour",
        fill_alpha=0.85,
        line_color="colour",
        hatch_pattern="hatch",
        hatch_color="white",
        hatch_alpha=0.6,
        hatch_scale=10,
    )
    chart.text(
        x="rule",
        y="value",
        text="words",
        source=source,
        text_align="center",
        text_baseline="bottom",
        y_offset=-3,
        text_font_size="14px",
        text_font_style="bold",
        text_color=theme.INK,
    )
    numbers(chart)
    chart.y_range.start = 0
    chart.y_range.end = max(results.values(), default=1) * 1.15 or 1
    return chart
