"""Charts over time and over results, drawn with Bokeh.

A chart is a plain figure over column data, made from rows alone: `credit_chart(rows)` is what a
page without a kernel shows. `CreditChart` keeps the figure's cursor and moves it with a stepper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bokeh.io import output_notebook
from bokeh.models import ColumnDataSource, HoverTool, Span
from bokeh.plotting import figure
from bokeh.resources import INLINE

from workbench.trace import brakes
from workbench.trace.fold import Scope, link_scope
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, Row

from . import theme

# (time in µs, value) at each change
Steps = list[tuple[int, int]]
# (begin, end, brake) in µs
Intervals = list[tuple[int, int, str]]


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


def blocked_intervals(rows: Sequence[Row], link: Scope) -> Intervals:
    """When a brake held the link's sender, and which: the brake of its rows until the next row."""
    intervals: Intervals = []
    since, holding = 0, brakes.NONE
    last = rows[-1].t_us if rows else 0
    for row in rows:
        if row.brake is None or link_scope(row) != link or row.brake == holding:
            continue
        if holding != brakes.NONE and row.t_us > since:
            intervals.append((since, row.t_us, holding))
        since, holding = row.t_us, row.brake
    if holding != brakes.NONE and last > since:
        intervals.append((since, last, holding))
    return intervals


def credit_chart(
    rows: Iterable[Row],
    link: Scope | None = None,
    *,
    at_us: int | None = None,
    title: str = "",
    width: int = 900,
    height: int = 260,
) -> Any:
    """Link credit over time at both ends, with the intervals in which the sender was held.

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
    chart = figure(
        width=width,
        height=height,
        title=title or (f"Link credit of {link.link}" if link else "No link in these rows"),
        x_axis_label="time (ms)",
        y_axis_label="link-credit (messages)",
        tools="xpan,xwheel_zoom,box_zoom,reset",
        toolbar_location="right",
        sizing_mode="scale_width",
        max_width=width,
    )
    if link is not None:
        _draw(chart, rows, link)
    chart.y_range.start = 0
    if at_us is not None:
        chart.add_layout(cursor_at(at_us))
    if chart.legend:
        chart.add_layout(chart.legend[0], "right")
        chart.legend.label_text_font_size = "12px"
        chart.legend.border_line_alpha = 0
    chart.title.text_font_size = "14px"
    chart.xgrid.visible = False
    chart.outline_line_alpha = 0.2
    return chart


def _draw(chart: Any, rows: Sequence[Row], link: Scope) -> None:
    steps = credit_steps(rows, link)
    top = max((value for line in steps.values() for _, value in line), default=1) * 1.08 + 0.5
    shade(chart, blocked_intervals(rows, link), top)
    last = rows[-1].t_us
    looks = {
        "sender": (theme.SENDER, "solid", 2.5),
        "receiver": (theme.RECEIVER, "dashed", 2.0),
        "capture point": (theme.SENDER, "solid", 2.5),
    }
    lines = []
    for side, line in steps.items():
        colour, dash, width = looks[side]
        times = [time / 1000 for time, _ in line] + [last / 1000]
        values = [value if value >= 0 else float("nan") for _, value in line]
        source = ColumnDataSource({"ms": times, "credit": [*values, values[-1]]}, name=side)
        lines.append(
            chart.step(
                "ms",
                "credit",
                source=source,
                mode="after",
                line_color=colour,
                line_dash=dash,
                line_width=width,
                legend_label=f"{side}'s view" if side != "capture point" else side,
                name=side,
            )
        )
    tips = [("at", "@ms{0.000} ms"), ("link-credit", "@credit")]
    chart.add_tools(HoverTool(renderers=lines, tooltips=tips, mode="vline"))
    chart.y_range.end = top


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
        line_color="#333333",
        line_width=1.5,
        name="cursor",
    )


def figure_at(rows: Iterable[Row], step: int, **options: Any) -> Any:
    """The credit chart with its cursor at a step: a still."""
    rows = list(rows)
    return credit_chart(rows, at_us=step_time(rows, step), **options)


def step_time(rows: Sequence[Row], step: int) -> int:
    """Time of a step in microseconds; step 0 is the time of the first row."""
    if not rows:
        return 0
    return rows[max(0, min(len(rows), step) - 1)].t_us


class CreditChart:
    """A credit chart whose cursor follows a stepper's.

    Args:
        rows: trace rows in order of `seq`, the ones that the stepper shows.
        link: which link; the busiest one if None.

    Attributes:
        figure: the Bokeh figure.
    """

    def __init__(self, rows: Iterable[Row], link: Scope | None = None, **options: Any) -> None:
        self.rows = list(rows)
        self.figure = credit_chart(self.rows, link, at_us=step_time(self.rows, 0), **options)
        self._cursor = next(item for item in self.figure.center if isinstance(item, Span))

    def move(self, step: int) -> None:
        """Put the cursor at a step: one property, so one event to the browser."""
        self._cursor.location = step_time(self.rows, step) / 1000

    def follow(self, stepper: Any) -> CreditChart:
        """Move with a `StepperWidget`."""
        stepper.observe(lambda change: self.move(change["new"]), names="cursor")
        self.move(stepper.cursor)
        return self


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
    chart = figure(
        x_range=names,
        width=width,
        height=280,
        title=title,
        y_axis_label=unit,
        toolbar_location=None,
        tools="",
        sizing_mode="scale_width",
        max_width=width,
    )
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
    )
    chart.y_range.start = 0
    chart.y_range.end = max(results.values(), default=1) * 1.15 or 1
    chart.xgrid.visible = False
    chart.outline_line_alpha = 0.2
    return chart
