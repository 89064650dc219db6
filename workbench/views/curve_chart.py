"""Curves over a number that somebody chose: a line for each, each with dash and marker of its own.

Points that were measured elsewhere may stand beside the curves, drawn another way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool

from . import theme
from .plot import ZOOM, legend, numbers, plot

Points = Sequence[tuple[float, float]]

LOOKS: tuple[tuple[str, str, str], ...] = (
    (theme.BLUE, "solid", "circle"),
    (theme.VERMILLION, "dashed", "square"),
    (theme.GREEN, "dotted", "triangle"),
    (theme.PURPLE, "dotdash", "diamond"),
    (theme.ORANGE, "dashdot", "inverted_triangle"),
)


def curve_chart(
    curves: Mapping[str, Points],
    *,
    across: str,
    up: str,
    measured: Mapping[str, Points] | None = None,
    title: str = "",
    logarithmic: bool = False,
    width: int = 860,
    height: int = 320,
) -> Any:
    """Curves and measured points.

    Args:
        curves: name to (x, y), drawn as lines with a marker at each point.
        across: what the x axis is, with its unit.
        up: what the y axis is, with its unit.
        measured: name to (x, y), drawn as hollow stars without a line.
        title: above the chart.
        logarithmic: both axes; numbers must then be above 0.
        width: in pixels.
        height: in pixels.

    Returns:
        A Bokeh figure.
    """
    scale = "log" if logarithmic else "linear"
    chart = plot(
        title, across=across, up=up, width=width, height=height, tools=ZOOM,
        x_axis_type=scale, y_axis_type=scale,
    )  # fmt: skip
    drawn = []
    for place, (name, points) in enumerate(curves.items()):
        colour, dash, marker = LOOKS[place % len(LOOKS)]
        source = _source(name, points)
        line = {"line_color": colour, "line_dash": dash, "line_width": 2}
        chart.line("x", "y", source=source, legend_label=name, **line)
        look = {"marker": marker, "size": 8, "color": colour, "name": name}
        drawn.append(chart.scatter("x", "y", source=source, legend_label=name, **look))
    for place, (name, points) in enumerate((measured or {}).items()):
        colour, *_ = LOOKS[(place + len(curves)) % len(LOOKS)]
        drawn.append(
            chart.scatter(
                "x",
                "y",
                source=_source(name, points),
                marker="star",
                size=17,
                fill_color=None,
                line_color=colour,
                line_width=2,
                legend_label=name,
                name=name,
            )
        )
    tips = [("", "$name"), (across, "@x{0,0.0}"), (up, "@y{0,0}")]
    chart.add_tools(HoverTool(renderers=drawn, tooltips=tips))
    numbers(chart)
    if not logarithmic:
        chart.y_range.start = chart.x_range.start = 0
    legend(chart)
    return chart


def _source(name: str, points: Points) -> ColumnDataSource:
    return ColumnDataSource(
        {"x": [float(x) for x, _ in points], "y": [float(y) for _, y in points]}, name=name
    )
