"""Messages a second over a whole trace, its dips, and how many links were held in each moment.

However large the trace, the chart has a few hundred points: it draws what was counted by window,
and refuses what was not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from string import ascii_uppercase
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool, Label

from . import theme
from .plot import numbers, plot

__all__ = ["MOST_POINTS", "Dip", "dips", "held_chart", "points", "rate_chart"]

MOST_POINTS = 5_000
"""Points of a chart; a browser draws more of them slowly, and nobody can tell them apart."""
DIP = 0.97
"""A window below this share of the usual rate is in a dip."""
LEAST_WINDOWS = 2
LANE = 0.9
"""So much of its lane a brake takes where it holds the most links; the rest is the gap above."""
BURST = 2.0
"""The chart ends at so many times the usual rate; what is above has its number written to it."""
US_PER_S = 1_000_000

Window = tuple[int, int]
"""Where it begins, in microseconds, and the messages in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dip:
    """A time in which less was sent than usual.

    Attributes:
        name: A, B, ... in order of time.
        start_us, end_us: from when to when, microseconds.
        rate: messages a second in it.
        usual: messages a second in the middle window of the trace.
    """

    name: str
    start_us: int
    end_us: int
    rate: float
    usual: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end_us - self.start_us) / US_PER_S


def dips(windows: Sequence[Window]) -> list[Dip]:
    """The dips of a rate: windows in a row, two at least, with clearly less than the middle one.

    What touches the first or the last window is a beginning or an ending and no dip.

    Args:
        windows: all windows in order of time.
    """
    if len(windows) < LEAST_WINDOWS:
        return []
    size = windows[1][0] - windows[0][0]
    usual = median(count for _, count in windows)
    found: list[Dip] = []
    low: list[Window] = []
    for place, window in enumerate([*windows, (0, int(usual) + 1)]):
        if place < len(windows) and window[1] < DIP * usual:
            low.append(window)
            continue
        inside = low and low[0] is not windows[0] and low[-1] is not windows[-1]
        if inside and len(low) >= LEAST_WINDOWS:
            per_s = US_PER_S / size
            found.append(
                Dip(
                    name=ascii_uppercase[len(found) % len(ascii_uppercase)],
                    start_us=low[0][0],
                    end_us=low[-1][0] + size,
                    rate=per_s * sum(count for _, count in low) / len(low),
                    usual=per_s * usual,
                )
            )
        low = []
    return found


def points(chart: Any) -> int:
    """How many points a figure draws: rows of its sources, once for each glyph."""
    sources = [getattr(one, "data_source", None) for one in chart.renderers]
    return sum(
        max((len(column) for column in source.data.values()), default=0)
        for source in sources
        if source is not None
    )


def rate_chart(
    windows: Iterable[Window],
    *,
    title: str = "Messages a second",
    width: int = 900,
    height: int = 260,
) -> Any:
    """Throughput over time; dips are shaded and have letters.

    Args:
        windows: where each begins, microseconds, and its messages; all of the same length.
        title: above the chart.
        width: in pixels.
        height: in pixels.

    Returns:
        A Bokeh figure: seconds, messages a second. It ends at twice the usual rate.

    Raises:
        ValueError: there are too many windows to draw; the text says what to do.
    """
    windows = list(windows)
    _checked(len(windows))
    chart = _figure(title, "messages a second", width, height)
    size = windows[1][0] - windows[0][0] if len(windows) > 1 else US_PER_S
    rates = [count * US_PER_S / size for _, count in windows]
    source = ColumnDataSource(
        {
            "s": [start / US_PER_S for start, _ in windows],
            "end": [(start + size) / US_PER_S for start, _ in windows],
            "rate": rates,
        },
        name="rate",
    )
    line = chart.step(
        "s", "rate", source=source, mode="after", line_width=2, line_color=theme.SENDER, name="rate"
    )
    # What comes at once after a stall is many times the usual; it must not flatten the dips.
    top = min(max(rates, default=1), BURST * median(rates or [1])) * 1.05 or 1
    for dip in dips(windows):
        _letter(chart, dip, top)
    for (start, _), rate in zip(windows, rates, strict=True):
        if rate > top:
            _burst(chart, start / US_PER_S, rate, top)
    tips = [("from", "@s{0.0} s to @end{0.0} s"), ("messages a second", "@rate{0,0}")]
    chart.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="vline"))
    chart.y_range.end = top
    return chart


def _letter(chart: Any, dip: Dip, top: float) -> None:
    """A dip's time shaded, with its letter on top."""
    start, end = dip.start_us / US_PER_S, dip.end_us / US_PER_S
    chart.quad(
        left=[start],
        right=[end],
        bottom=[0],
        top=[top],
        fill_color=theme.GREY,
        fill_alpha=0.14,
        line_alpha=0,
        hatch_pattern="right_diagonal_line",
        hatch_color=theme.GREY,
        hatch_alpha=0.25,
        name=f"dip {dip.name}",
    )
    chart.add_layout(
        Label(
            x=(start + end) / 2,
            y=top,
            y_offset=-22,
            text=dip.name,
            text_align="center",
            text_font_size="16px",
            text_font_style="bold",
            background_fill_alpha=0.8,
            name=f"letter {dip.name}",
        )
    )


def _burst(chart: Any, at_s: float, rate: float, top: float) -> None:
    """A window that is higher than the chart: its number, at the top."""
    chart.add_layout(
        Label(
            x=at_s,
            y=top,
            y_offset=-16,
            x_offset=14,
            text=f"\N{BLACK UP-POINTING TRIANGLE} {rate:,.0f}",
            text_font_size="12px",
            background_fill_alpha=0.8,
            name="burst",
        )
    )


def held_chart(
    rows: Iterable[Mapping[str, Any]],
    *,
    window_us: int,
    end_us: int,
    title: str = "Links held at some moment of the window",
    width: int = 900,
    height: int = 220,
) -> Any:
    """How many links each brake held, window by window; each brake has a lane of its own.

    A lane is as high as the most links that its brake held: one link among sixty can be seen.

    Args:
        rows: `window_start_us`, `brake` and `links`, as `analysis.overview.held` answers.
        window_us: length of a window, microseconds.
        end_us: where the time axis ends.
        title: above the chart.
        width: in pixels.
        height: in pixels.

    Returns:
        A Bokeh figure: seconds, and a lane for each brake with a colour and a hatch of its own; the
        brake that comes first is at the top.

    Raises:
        ValueError: there are too many windows to draw.
    """
    found = sorted(rows, key=lambda row: (row["window_start_us"], row["brake"]))
    _checked(len(found))
    chart = _figure(title, "", width, height)
    lanes: dict[str, list[Mapping[str, Any]]] = {}
    for row in found:
        lanes.setdefault(row["brake"], []).append(row)
    labels: dict[float, str] = {}
    for place, (brake, held) in enumerate(reversed(lanes.items())):
        most = max(row["links"] for row in held)
        labels[place + LANE / 2] = f"{brake}, up to {most:,}"
        style = theme.BRAKE_STYLES[brake]
        source = {
            "left": [row["window_start_us"] / US_PER_S for row in held],
            "right": [(row["window_start_us"] + window_us) / US_PER_S for row in held],
            "bottom": [place] * len(held),
            "top": [place + LANE * row["links"] / most for row in held],
            "links": [row["links"] for row in held],
        }
        bars = chart.quad(
            left="left",
            right="right",
            bottom="bottom",
            top="top",
            source=ColumnDataSource(source, name=brake),
            fill_color=style.colour,
            fill_alpha=0.45,
            line_alpha=0,
            hatch_pattern=style.hatch,
            hatch_color=theme.INK,
            hatch_alpha=0.35,
            hatch_scale=8,
            name=brake,
        )
        tips = [("held by", brake), ("from", "@left{0.0} s to @right{0.0} s"), ("links", "@links")]
        chart.add_tools(HoverTool(renderers=[bars], tooltips=tips))
    chart.yaxis.ticker = list(labels)
    chart.yaxis.major_label_overrides = labels
    chart.ygrid.visible = False
    chart.x_range.start, chart.x_range.end = 0, end_us / US_PER_S
    return chart


def _figure(title: str, up: str, width: int, height: int) -> Any:
    chart = plot(title, across="time (s)", up=up, width=width, height=height)
    numbers(chart)
    chart.y_range.start = 0
    return chart


def _checked(count: int) -> None:
    if count > MOST_POINTS:
        raise ValueError(
            f"{count:,} points are too many for a chart, {MOST_POINTS:,} are drawn at most:"
            " aggregate first, with a longer window"
        )
