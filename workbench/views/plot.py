"""The empty Bokeh figure that every chart begins with, in the colours of the page around it.

Bokeh reads what is no data (texts, axes, grids, backgrounds) from CSS variables, so a chart is dark
in a dark JupyterLab. What is data has colours that are told apart on white and on black.
"""

from __future__ import annotations

from typing import Any

from bokeh.models import InlineStyleSheet, NumeralTickFormatter
from bokeh.plotting import figure

PAN, ZOOM, NO_TOOLS = "xpan,xwheel_zoom,box_zoom,reset", "reset,box_zoom", ""

_INK, _PAPER = "var(--jp-ui-font-color1, #24292f)", "var(--jp-layout-color0, #ffffff)"
_TEXTS = ("text", "axis-label-text", "major-label-text", "label-text", "title-text")
_LINES = ("axis-line", "major-tick-line", "minor-tick-line")
_PAGE = ("background-fill", "border-fill")
_COLOURS = (
    *((name, _INK) for name in _TEXTS),
    *((name, "var(--jp-ui-font-color2, #57606a)") for name in _LINES),
    *((name, _PAPER) for name in _PAGE),
    ("grid-line", "var(--jp-border-color2, #e0e0e0)"),
)
SHEET = ":host{" + "".join(f"--bk-{name}-color:{colour};" for name, colour in _COLOURS) + "}"
# A legend is made of elements, whose colours Bokeh reads before they are in the page.
LEGEND_SHEET = f":host{{background:{_PAPER}!important}}.bk-label{{color:{_INK}!important}}"


def plot(
    title: str,
    *,
    across: str = "",
    up: str = "",
    width: int,
    height: int,
    tools: str = PAN,
    **more: Any,
) -> Any:
    """An empty figure that shrinks with the page.

    Args:
        title: above it.
        across: what the x axis is, with its unit.
        up: what the y axis is, with its unit.
        width: in pixels, at most.
        height: in pixels.
        tools: names of Bokeh's tools; without any there is no toolbar.
        more: other properties of a figure.
    """
    chart = figure(
        title=title,
        x_axis_label=across,
        y_axis_label=up,
        width=width,
        height=height,
        max_width=width,
        sizing_mode="scale_width",
        tools=tools,
        toolbar_location="right" if tools else None,
        stylesheets=[InlineStyleSheet(css=SHEET)],
        **more,
    )
    chart.title.text_font_size = "14px"
    chart.toolbar.logo = None
    chart.outline_line_alpha = 0.2
    chart.xgrid.visible = False
    return chart


def numbers(chart: Any) -> None:
    """Write the upright axis' numbers as 1,200."""
    chart.yaxis.formatter = NumeralTickFormatter(format="0,0")


def legend(chart: Any, place: str = "right") -> None:
    """Put the legend, if there is one, beside or below the chart."""
    if not chart.legend:
        return
    chart.add_layout(chart.legend[0], place)
    chart.legend.orientation = "vertical" if place == "right" else "horizontal"
    chart.legend.label_text_font_size = "12px"
    chart.legend.border_line_alpha = 0
    chart.legend[0].stylesheets = [InlineStyleSheet(css=LEGEND_SHEET)]
