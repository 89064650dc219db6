"""What charts over time share: the figure, its lines, the shaded intervals and the cursor.

A line is stepped, for a counter keeps its value until it changes. An interval is shaded in its
brake's colour and hatch. The cursor stands at a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool, Span

from workbench.trace.schema import Row

from . import theme
from .plot import legend, plot

# (time in µs, value) at each change
Steps = list[tuple[int, int]]
# (begin, end, brake) in µs
Intervals = list[tuple[int, int, str]]


@dataclass(frozen=True, slots=True)
class Look:
    """How a line is drawn.

    Attributes:
        colour: of the line.
        dash: Bokeh's name of the dash pattern.
        width: in pixels.
    """

    colour: str
    dash: str = "solid"
    width: float = 2.5


def time_figure(*, title: str, unit: str, width: int, height: int) -> Any:
    """An empty chart over time in ms.

    Args:
        title: above it.
        unit: of the other axis.
        width: in pixels, at most; it shrinks with the page.
        height: in pixels.
    """
    return plot(title, across="time (ms)", up=unit, width=width, height=height)


def top_of(lines: Iterable[Steps]) -> float:
    """Where the value axis ends: a little above the highest value."""
    return max((value for line in lines for _, value in line), default=1) * 1.08 + 0.5


def step_line(
    chart: Any, name: str, steps: Steps, last_us: int, look: Look, legend: str = ""
) -> Any:
    """Draw a counter's line up to a last time; -1 makes a gap, its value is not known there.

    Returns:
        The line, for `hover`.
    """
    times = [*(time_us for time_us, _ in steps), last_us]
    values = [*(value for _, value in steps), steps[-1][1]]
    source = ColumnDataSource(
        {
            "ms": [time_us / 1000 for time_us in times],
            "value": [value if value >= 0 else float("nan") for value in values],
        },
        name=name,
    )
    return chart.step(
        "ms",
        "value",
        source=source,
        mode="after",
        line_color=look.colour,
        line_dash=look.dash,
        line_width=look.width,
        legend_label=legend or name,
        name=name,
    )


def finish(chart: Any, lines: Sequence[Any], top: float, at_us: int | None = None) -> None:
    """Give a chart what comes last: tips over its lines, the value axis, cursor and legend."""
    if lines:
        tips = [("", "$name"), ("at", "@ms{0.000} ms"), ("value", "@value")]
        chart.add_tools(HoverTool(renderers=list(lines), tooltips=tips, mode="vline"))
        chart.y_range.end = top
    chart.y_range.start = 0
    if at_us is not None:
        chart.add_layout(cursor_at(at_us))
    legend(chart)


def shade(chart: Any, intervals: Intervals, top: float) -> None:
    """Shade intervals from 0 to `top`, each brake in its colour and hatch, named in the legend."""
    for brake in dict.fromkeys(name for _, _, name in intervals):
        style = theme.BRAKE_STYLES.get(brake)
        if style is None:
            continue
        spans = [(begin, end) for begin, end, name in intervals if name == brake]
        source = ColumnDataSource(
            {
                "left": [begin / 1000 for begin, _ in spans],
                "right": [end / 1000 for _, end in spans],
            },
            name=brake,
        )
        chart.quad(
            left="left",
            right="right",
            bottom=0,
            top=top,
            source=source,
            fill_color=style.colour,
            fill_alpha=0.13,
            line_alpha=0,
            hatch_pattern=style.hatch,
            hatch_color=style.colour,
            hatch_alpha=0.35,
            hatch_scale=9,
            legend_label=f"held: {brake}",
            name=f"held: {brake}",
        )


def cursor_at(at_us: int) -> Span:
    """An upright line at a time."""
    return Span(
        location=at_us / 1000,
        dimension="height",
        line_color=theme.INK,
        line_width=1.5,
        name="cursor",
    )


def step_time(rows: Sequence[Row], step: int) -> int:
    """Time of a step in microseconds; step 0 is the time of the first row."""
    if not rows:
        return 0
    return rows[max(0, min(len(rows), step) - 1)].t_us


class FollowingChart:
    """A chart with a cursor.

    Args:
        rows: trace rows in order of `seq`, those that are drawn.
        figure: a chart of them with a cursor.

    Attributes:
        figure: the Bokeh figure.
    """

    def __init__(self, rows: Sequence[Row], figure: Any) -> None:
        self.rows = rows
        self.figure = figure
        self._cursor = next(item for item in figure.center if isinstance(item, Span))

    def move(self, step: int) -> None:
        """Put the cursor at a step: one property, so one event to the browser."""
        self._cursor.location = step_time(self.rows, step) / 1000
