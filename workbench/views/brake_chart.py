"""Credit, window and unconfirmed over time, with the time in which the sender was held shaded.

What is shaded is a stall: the sender had a message and a brake was on. Time without a message is
left white, for nobody was held up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool, Span
from bokeh.plotting import figure

from workbench.trace import brakes
from workbench.trace.braking import Held, held_by, held_intervals, held_us, links_of
from workbench.trace.fold import Scope
from workbench.trace.schema import CLIENT, Row

from . import theme
from .charts import cursor_at, shade, step_time
from .meter_doc import choose_link

Steps = list[tuple[int, int]]

# Line, attribute of `Held`, colour, dash, width.
LINES: tuple[tuple[str, str, str, str, float], ...] = (
    ("link credit (sender)", "link_credit", theme.BLUE, "solid", 2.5),
    ("session window (frames)", "window", theme.GREEN, "dotted", 2.0),
    ("unconfirmed (broker)", "unconfirmed", theme.VERMILLION, "dashed", 2.0),
)


def chosen_link(rows: Sequence[Row], link: Scope | str | None) -> Scope:
    """The link that is meant: a client's sending link by name, or the first.

    Raises:
        ValueError: there is none; the text lists the names.
    """
    links = links_of(rows, sender=CLIENT) or links_of(rows)
    if not links:
        raise ValueError("no link in these rows: a chart needs one over which somebody sends")
    return links[choose_link(links, link)]


def counter_steps(rows: Sequence[Row], held: Sequence[Held], name: str) -> Steps:
    """(time in us, value) at each change of a counter; what is not known yet is left out."""
    found: Steps = []
    for row, one in zip(rows, held, strict=True):
        value = getattr(one, name)
        if value is not None and (not found or found[-1][1] != value):
            found.append((row.t_us, int(value)))
    return found


def brake_chart(
    trace: Any,
    link: Scope | str | None = None,
    *,
    at_us: int | None = None,
    title: str = "",
    width: int = 900,
    height: int = 280,
) -> Any:
    """What one sender may do over time, and when a brake held it.

    Args:
        trace: a run (anything with `rows`), or rows in order of `seq`.
        link: over which it sends; the first one if None.
        at_us: where the cursor stands, in microseconds; none is drawn if None.
        title: above the chart; the link's name if empty.
        width: in pixels.
        height: in pixels.

    Returns:
        A Bokeh figure: time in ms. Each line has a dash of its own, each brake a hatch and its name
        in the legend.

    Raises:
        ValueError: the run has no such link.
    """
    rows = list(getattr(trace, "rows", trace))
    chosen = chosen_link(rows, link)
    held = held_by(rows, chosen)
    chart = figure(
        width=width,
        height=height,
        title=title or f"What holds {chosen.link}",
        x_axis_label="time (ms)",
        y_axis_label="messages or frames",
        tools="xpan,xwheel_zoom,box_zoom,reset",
        toolbar_location="right",
        sizing_mode="scale_width",
        max_width=width,
    )
    steps = {name: counter_steps(rows, held, field) for name, field, *_ in LINES}
    top = max((value for line in steps.values() for _, value in line), default=1) * 1.08 + 0.5
    stalls = [one for one in held_intervals(rows, held) if one[2] != brakes.NO_MESSAGE]
    shade(chart, stalls, top)
    lines = [
        _line(chart, name, steps[name], rows[-1].t_us, (colour, dash, width_))
        for name, _, colour, dash, width_ in LINES
        if steps[name]
    ]
    tips = [("", "$name"), ("at", "@ms{0.000} ms"), ("value", "@value")]
    chart.add_tools(HoverTool(renderers=lines, tooltips=tips, mode="vline"))
    chart.y_range.start, chart.y_range.end = 0, top
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


def _line(chart: Any, name: str, steps: Steps, last_us: int, look: tuple[str, str, float]) -> Any:
    colour, dash, width = look
    times = [*(time for time, _ in steps), last_us]
    values = [*(value for _, value in steps), steps[-1][1]]
    source = ColumnDataSource({"ms": [time / 1000 for time in times], "value": values}, name=name)
    return chart.step(
        "ms",
        "value",
        source=source,
        mode="after",
        line_color=colour,
        line_dash=dash,
        line_width=width,
        legend_label=name,
        name=name,
    )


def brake_words(trace: Any, link: Scope | str | None = None) -> str:
    """How long each brake held the sender, in words: a line each."""
    rows = list(getattr(trace, "rows", trace))
    chosen = chosen_link(rows, link)
    held = held_by(rows, chosen)
    total = held_us(rows, held)
    last = rows[-1].t_us if rows else 0
    lines = [f"Link {chosen.link}: {last / 1000:,.1f} ms in all."]
    for brake, time_us in total.items():
        words = brakes.WORDS[brake]
        lines.append(f"  {brake:<15} {time_us / 1000:>10,.1f} ms   {words}")
    free = last - sum(total.values())
    lines.append(f"  {'free':<15} {free / 1000:>10,.1f} ms   nothing holds it")
    return "\n".join(lines)


class BrakeChart:
    """A brake chart whose cursor follows a stepper's.

    Args:
        rows: trace rows in order of `seq`, the ones that the stepper shows.
        link: which link; the first one if None.

    Attributes:
        figure: the Bokeh figure.
    """

    def __init__(
        self, rows: Iterable[Row], link: Scope | str | None = None, **options: Any
    ) -> None:
        self.rows = list(rows)
        self._words = brake_words(self.rows, link)
        self.figure = brake_chart(self.rows, link, at_us=step_time(self.rows, 0), **options)
        self._cursor = next(item for item in self.figure.center if isinstance(item, Span))

    def move(self, step: int) -> None:
        """Put the cursor at a step: one property, so one event to the browser."""
        self._cursor.location = step_time(self.rows, step) / 1000

    def follow(self, stepper: Any) -> BrakeChart:
        """Move with a `StepperWidget`."""
        stepper.observe(lambda change: self.move(change["new"]), names="cursor")
        self.move(stepper.cursor)
        return self

    def __str__(self) -> str:
        return self._words
