"""Time-out against round trip: where a message comes in time, crosses the drain, or does not come.

Lines are a reckoning, marks are runs; a reader sees whether they agree. Each area has a hatch and
its name in it, each ending a mark of its own shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool, Label

from . import theme
from .plot import NO_TOOLS, legend, plot


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingStyle:
    """How one ending is drawn.

    Attributes:
        marker: Bokeh's name of the shape.
        colour: of the mark and of its area.
        hatch: of the area.
    """

    marker: str
    colour: str
    hatch: str


# In the order in which a longer and longer time-out meets them from the right.
STYLES = (
    EndingStyle(marker="circle", colour=theme.GREEN, hatch="dot"),
    EndingStyle(marker="triangle", colour=theme.ORANGE, hatch="right_diagonal_line"),
    EndingStyle(marker="square", colour=theme.BLUE, hatch="horizontal_line"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """Where the reckoning says that one ending comes: time-outs from `low` to `high`, in ms.

    Attributes:
        name: of the ending, in words.
        low, high: one value a round trip; the area lies between.
    """

    name: str
    low: Sequence[float]
    high: Sequence[float]


def timeout_chart(
    areas: Sequence[Area],
    round_trips: Sequence[float],
    runs: Mapping[tuple[float, float], str],
    *,
    now: tuple[float, float],
    width: int = 520,
    height: int = 250,
) -> tuple[Any, ColumnDataSource]:
    """The chart and the source of the mark that shows the present choice.

    Args:
        areas: of the endings, at most as many as there are styles.
        round_trips: in ms, rising; where the areas' limits are given.
        runs: the ending of each run, by (time-out, round trip) in ms.
        now: time-out and round trip that are chosen, in ms.
        width: in pixels.
        height: in pixels.
    """
    style = {area.name: one for area, one in zip(areas, STYLES, strict=True)}
    right = max(max(area.high) for area in areas)
    chart = plot(
        "Which ending comes",
        across="time-out of the receiver (ms)",
        up="round trip (ms)",
        width=width,
        height=height,
        tools=NO_TOOLS,
        x_range=(0, right),
        y_range=(min(round_trips), max(round_trips)),
    )
    for area in areas:
        _fill(chart, area, round_trips, style[area.name])
    marks = [_marks(chart, name, one, runs) for name, one in style.items()]
    tips = [("time-out", "@x{0.0} ms"), ("round trip", "@y{0.0} ms"), ("this run", "@words")]
    chart.add_tools(HoverTool(renderers=[mark for mark in marks if mark], tooltips=tips))
    here = ColumnDataSource({"x": [now[0]], "y": [now[1]]}, name="now")
    chart.scatter(
        "x",
        "y",
        source=here,
        marker="diamond",
        size=24,
        fill_alpha=0,
        line_color=theme.INK,
        line_width=3,
        legend_label="your choice",
        name="now",
    )
    legend(chart, "below")
    chart.ygrid.visible = False
    return chart, here


def _fill(chart: Any, area: Area, round_trips: Sequence[float], style: EndingStyle) -> None:
    if all(high <= low for low, high in zip(area.low, area.high, strict=True)):
        return
    chart.patch(
        [*area.low, *reversed(area.high)],
        [*round_trips, *reversed(round_trips)],
        fill_color=style.colour,
        fill_alpha=0.13,
        line_color=style.colour,
        line_alpha=0.7,
        hatch_pattern=style.hatch,
        hatch_color=style.colour,
        hatch_alpha=0.25,
        hatch_scale=12,
        name=f"area: {area.name}",
    )
    widest = max(range(len(round_trips)), key=lambda i: area.high[i] - area.low[i])
    top = round_trips[-1] - round_trips[0]
    chart.add_layout(
        Label(
            x=(area.low[widest] + area.high[widest]) / 2,
            y=min(max(round_trips[widest], round_trips[0] + top / 16), round_trips[-1] - top / 16),
            text=area.name,
            text_align="center",
            text_baseline="middle",
            text_font_size="13px",
            text_font_style="bold",
            background_fill_alpha=0.75,
        )
    )


def _marks(
    chart: Any, name: str, style: EndingStyle, runs: Mapping[tuple[float, float], str]
) -> Any:
    places = [place for place, ending in runs.items() if ending == name]
    if not places:
        return None
    source = ColumnDataSource(
        {
            "x": [timeout for timeout, _ in places],
            "y": [trip for _, trip in places],
            "words": [name] * len(places),
        },
        name=name,
    )
    return chart.scatter(
        "x",
        "y",
        source=source,
        marker=style.marker,
        size=10,
        fill_color=style.colour,
        line_color=theme.INK,
        legend_label=f"run: {name}",
        name=f"runs: {name}",
    )
