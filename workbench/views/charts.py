"""Charts: over time, over a number that somebody chose, bars, a map of outcomes.

Four functions make all of them: `time_chart`, `curve_chart`, `bar_chart`, `outcome_map`. Each gives
a `Chart`: a Bokeh figure with the same in words below it, which is what a page without a kernel and
a screen reader have. Texts, axes and paper take the colours of the page around them, so a chart is
dark in a dark JupyterLab; what is data has colours that are told apart on white and on black, and a
dash, a hatch or a shape as well.
"""

from __future__ import annotations

import gzip
import html
import math
import textwrap
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

import anywidget
import ipywidgets as widgets
import traitlets
from bokeh.models import (
    ColumnDataSource,
    CustomJS,
    HoverTool,
    InlineStyleSheet,
    Label,
    NumeralTickFormatter,
    Span,
    TapTool,
)
from bokeh.plotting import figure
from bokeh.resources import Resources
from jupyter_bokeh.widgets import BokehModel

from workbench.languages import digits, phrase
from workbench.trace.given import takes

from . import theme
from .static_html import asset
from .stills import Still

WIDTH = 900
"""Of a chart in pixels, at most."""
MOST_POINTS = 5_000
"""Points of a line; a browser draws more of them slowly, and nobody can tell them apart."""
PAN, ZOOM, NO_TOOLS = "xpan,xwheel_zoom,box_zoom,reset", "reset,box_zoom", ""
LANE = 0.9
"""So much of its lane a stretch takes where its amount is greatest; the rest is the gap above."""

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
# A canvas reads its colours when it is painted, and a page may be given another theme. In a narrow
# page a legend of two columns would be cut.
FOLLOW = """
if (!cb_obj.follows) {
  cb_obj.follows = new MutationObserver(() => cb_obj.change.emit());
  const attributeFilter = ["class", "data-jp-theme-light", "data-jp-theme-name"];
  cb_obj.follows.observe(document.body, { attributes: true, attributeFilter });
}
const columns = cb_obj.inner_width < 400 ? 1 : 2;
for (const one of [...cb_obj.above, ...cb_obj.below]) if (one.ncols) one.ncols = columns;"""
_LEGEND_ROW = 26  # px
_LETTER, _NAME_LINE = 8, 16  # px, of a name below a bar
_NARROW = 460  # px, of a chart beside the file browser of a page of 900
# A legend is made of elements, whose colours Bokeh reads before they are in the page.
LEGEND_SHEET = f":host{{background:{_PAPER}!important}}.bk-label{{color:{_INK}!important}}"

say = partial(phrase, "charts")
_COLUMNS = ("line", "first", "lowest", "highest", "last", "changes")
Points = Sequence[tuple[float, float]]
Steps = Sequence[tuple[int, float | None]]
"""(time in µs, value) at each change of a counter; None where it cannot be known."""
Grid = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Look:
    """How a line, its points or a bar is drawn.

    Attributes:
        colour: of it.
        dash: Bokeh's name of the line's dash pattern.
        marker: Bokeh's name of the shape of its points.
        hatch: Bokeh's name of the pattern of an area.
    """

    colour: str
    dash: str
    marker: str
    hatch: str


LOOKS = (
    Look(theme.BLUE, "solid", "circle", " "),
    Look(theme.VERMILLION, "dashed", "square", "right_diagonal_line"),
    Look(theme.GREEN, "dotted", "triangle", "dot"),
    Look(theme.PURPLE, "dotdash", "diamond", "cross"),
    Look(theme.ORANGE, "dashdot", "inverted_triangle", "horizontal_line"),
    Look(theme.SKY, "4 4", "hex", "vertical_line"),
)


class Stretch(NamedTuple):
    """A time that is shaded: of a brake, with its colour and hatch, or of anything with a name."""

    begin_us: int
    end_us: int
    name: str
    amount: float = 1


class FigureWidget(BokehModel):
    """As `BokehModel`.

    That one fails where it is closed a second time, and Python closes every widget once more when
    it is thrown away: a closed chart would leave an error behind.
    """

    def close(self) -> None:
        """Leave the page; nothing happens the second time."""
        if self.comm is not None:
            super().close()


@cache
def bokeh_js() -> bytes:
    """Bokeh's own script, as far as figures need it, packed by gzip."""
    (script,) = Resources(mode="inline", components=["bokeh"]).js_raw[:1]
    return gzip.compress(script.encode())


class Picture(anywidget.AnyWidget):
    """A figure that brings Bokeh itself into a page that has none, as after a reload.

    The widget of a figure cannot: where Bokeh is missing it fails before it draws.

    Attributes:
        shown: the figure.
    """

    _esm = asset("figure.js")

    shown = traitlets.Instance(FigureWidget).tag(sync=True, **widgets.widget_serialization)

    def __init__(self, shown: FigureWidget) -> None:
        super().__init__(shown=shown)
        self.on_msg(lambda *_asked: self.send({}, buffers=[bokeh_js()]))

    def close(self) -> None:
        """Leave the page, with the figure."""
        self.shown.close()
        super().close()


class Chart(Still, widgets.VBox):
    """A figure, and below it the same in words.

    Args:
        figure: of Bokeh.
        words: what it shows, as text.
        begin_us: of a time chart, the time at its left edge.

    Attributes:
        figure: as given.
        words: as given.
        picture: the figure as a widget.
        twin: the words as a widget that can be opened.
    """

    def __init__(self, figure: Any, words: str, begin_us: int = 0) -> None:
        self.figure = figure
        self._begin_us = begin_us
        self.words = words
        self.picture = Picture(FigureWidget(figure))
        self.twin = widgets.HTML(
            f"<details><summary>{say('chart.in-words')}</summary>"
            f"<pre>{html.escape(words)}</pre></details>"
        )
        super().__init__(children=[self.picture, self.twin])

    def move(self, at_us: int) -> None:
        """Put the cursor of a time chart at a time: one property, so one event to the browser."""
        since = max(0, at_us - self._begin_us)
        self.figure.select_one({"name": "cursor"}).location = since / 1000

    def stand(self, x: float, y: float) -> None:
        """Put the mark of a map of outcomes at another choice."""
        self.figure.select_one({"name": "now"}).data_source.data = {"x": [x], "y": [y]}

    def close(self) -> None:
        """Leave the page, with the figure."""
        self.picture.close()
        super().close()

    def __repr__(self) -> str:
        return self.words


def points(chart: Chart) -> int:
    """How many points a chart draws: rows of its sources, once for each glyph."""
    sources = [getattr(one, "data_source", None) for one in chart.figure.renderers]
    return sum(
        max((len(column) for column in source.data.values()), default=0)
        for source in sources
        if source is not None
    )


# -- the paper ----------------------------------------------------------------------------------


def paper(
    title: str,
    *,
    across: str = "",
    up: str = "",
    width: int,
    height: int,
    tools: str = PAN,
    **more: Any,
) -> Any:
    """An empty figure that gets narrower with the page, and stays as high.

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
        sizing_mode="stretch_width",
        tools=tools,
        toolbar_location="right" if tools else None,
        stylesheets=[InlineStyleSheet(css=SHEET)],
        **more,
    )
    chart.js_on_change("inner_width", CustomJS(code=FOLLOW))
    chart.title.text_font_size = "14px"
    chart.toolbar.logo = None
    chart.outline_line_alpha = 0.2
    chart.xgrid.visible = False
    chart.yaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    return chart


def legend(chart: Any, place: str) -> None:
    """Put the legend, if there is one, below or above the chart."""
    if not chart.legend:
        return
    chart.add_layout(chart.legend[0], place)
    # A row of more would be cut, and beside the chart there would be no room for lines.
    chart.legend.orientation, chart.legend.ncols = "horizontal", 2
    chart.legend.label_text_font_size = "12px"
    chart.legend.border_line_alpha = 0
    chart.legend[0].stylesheets = [InlineStyleSheet(css=LEGEND_SHEET)]


def _legend_on_top(chart: Any) -> None:
    """Put the legend above the lines, which stay as high as they were."""
    legend(chart, "above")
    for one in chart.legend:
        one.location, one.padding, one.margin, one.spacing = "left", 2, 2, 6
        chart.height += _LEGEND_ROW * math.ceil(len(one.items) / 2)


def _label(chart: Any, x: float, y: float, text: str, size: int, **more: Any) -> None:
    chart.add_layout(
        Label(
            x=x,
            y=y,
            text=text,
            text_align="center",
            text_font_size=f"{size}px",
            text_font_style="bold",
            background_fill_alpha=0.8,
            **more,
        )
    )


def _aligned(title: str, *grids: Grid) -> str:
    """Grids of words, one below the other, each with its columns aligned."""
    lines = [title] if title else []
    for grid in grids:
        if grid:
            widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
            lines += [""] if lines else []
            lines += [
                "  ".join(
                    cell.ljust(width) for cell, width in zip(row, widths, strict=True)
                ).rstrip()
                for row in grid
            ]
    return "\n".join(lines)


def number(value: float | None) -> str:
    """A value as charts and their words write it."""
    if value is None:
        return say("chart.not-known")
    whole = abs(value) >= 10 or value == int(value)
    return digits(value, ",.0f" if whole else ",.2g")


# -- over time ----------------------------------------------------------------------------------


@takes
def time_chart(
    lines: Mapping[str, Steps] | None = None,
    *,
    end_us: int,
    begin_us: int = 0,
    unit: str = "",
    stretches: Iterable[Stretch | tuple[int, int, str]] = (),
    lanes: bool = False,
    marks: Iterable[tuple[int, str]] = (),
    at_us: int | None = None,
    top: float | None = None,
    seconds: bool = False,
    title: str = "",
    height: int = 260,
) -> Chart:
    """Counters over time as stepped lines, stretches of time shaded, moments marked.

    A line of more than `MOST_POINTS` changes is aggregated: of each of its parts first, lowest,
    highest and last value are drawn.

    Args:
        lines: name to (time in µs, value) at each change, at most six; one without any is left
            out.
        end_us: where time ends.
        begin_us: where the axis begins, with 0; what was before is not drawn.
        unit: of the values.
        stretches: (begin in µs, end in µs, name). That of a brake (`trace.brakes`) has its colour
            and its hatch and is named in the legend; any other is grey and bears its name.
        lanes: whether each name has a lane of its own, in which a `Stretch` is as high as its
            `amount`, measured by the greatest of that name: one beside sixty can be seen.
        marks: (time in µs, text), written at the top.
        at_us: where the cursor stands; none is drawn if None.
        top: where the values end; a little above the highest if None.
        seconds: whether the axis counts seconds, not milliseconds.
        title: above the chart.
        height: in pixels.
    """
    scale, short = (1_000_000, "s") if seconds else (1_000, "ms")
    end_us -= begin_us
    drawn = {name: _since(begin_us, steps) for name, steps in (lines or {}).items()}
    shaded = [
        one._replace(begin_us=max(0, one.begin_us - begin_us), end_us=one.end_us - begin_us)
        for one in (Stretch(*each) for each in stretches)
        if one.end_us > begin_us or one.begin_us >= begin_us
    ]
    marks = [(time_us - begin_us, text) for time_us, text in marks if time_us >= begin_us]
    across = say("time.axis", unit=short)
    chart = paper(title, across=across, up=unit, width=WIDTH, height=height)
    values = [value for steps in drawn.values() for _, value in steps if value is not None]
    if top is None:
        top = max(values, default=1) * 1.08 + 0.5
    if lanes:
        _lanes(chart, shaded, scale, short)
    else:
        _shades(chart, shaded, scale, top)
        chart.y_range.end = top
    curves = [
        _stepped(chart, name, [*steps, (end_us, steps[-1][1])], scale, look, told=len(drawn) > 1)
        for (name, steps), look in zip(drawn.items(), LOOKS, strict=False)
        if steps
    ]
    if curves:
        at, value = (say("time.at"), f"@x{{0,0.000}} {short}"), (say("time.value"), "@y{0,0.[00]}")
        tips = [("", "$name"), at, value]
        chart.add_tools(HoverTool(renderers=curves, tooltips=tips, mode="vline"))
    for time_us, text in marks:
        _label(chart, time_us / scale, top, text, 12, y_offset=-16, x_offset=28, name="mark")
    if at_us is not None:
        chart.add_layout(
            Span(
                location=max(0, at_us - begin_us) / scale,
                dimension="height",
                line_color=theme.INK,
                line_width=1.5,
                name="cursor",
            )
        )
    chart.y_range.start = 0
    if lanes:
        chart.x_range.start, chart.x_range.end = 0, end_us / scale
    _legend_on_top(chart)
    return Chart(chart, _time_words(title, drawn, shaded, end_us, scale, short), begin_us)


def _since(begin_us: int, steps: Steps) -> Steps:
    """A line's changes from then on, and first what it stood at."""
    at = max(0, bisect_right(steps, begin_us, key=itemgetter(0)) - 1)
    return [(max(0, time_us - begin_us), value) for time_us, value in steps[at:]]


def _thinned(steps: Steps) -> Steps:
    """A line's points; of too many, the first, lowest, highest and last of each part."""
    if len(steps) <= MOST_POINTS:
        return steps
    part = -(-len(steps) * 4 // MOST_POINTS)
    kept: list[int] = []
    for begin in range(0, len(steps), part):
        places = range(begin, min(begin + part, len(steps)))
        known = [place for place in places if steps[place][1] is not None] or list(places)
        by_value = sorted(known, key=lambda place: steps[place][1] or 0)
        kept += sorted({places[0], by_value[0], by_value[-1], places[-1]})
    return [steps[place] for place in kept]


def _stepped(chart: Any, name: str, steps: Steps, scale: int, look: Look, *, told: bool) -> Any:
    steps = _thinned(steps)
    gap = float("nan")
    data = {
        "x": [time_us / scale for time_us, _ in steps],
        "y": [gap if value is None else value for _, value in steps],
    }
    return chart.step(
        "x",
        "y",
        source=ColumnDataSource(data, name=name),
        mode="after",
        line_color=look.colour,
        line_dash=look.dash,
        line_width=2.5 if look is LOOKS[0] else 2,
        name=name,
        **({"legend_label": name} if told else {}),
    )


def _by_name(shaded: Iterable[Stretch]) -> dict[str, list[Stretch]]:
    found: dict[str, list[Stretch]] = {}
    for one in shaded:
        found.setdefault(one.name, []).append(one)
    return found


def _style(name: str) -> theme.BrakeStyle:
    plain = theme.BrakeStyle(colour=theme.GREY, hatch="right_diagonal_line")
    return theme.BRAKE_STYLES.get(name, plain)


def _shades(chart: Any, shaded: Sequence[Stretch], scale: int, top: float) -> None:
    """Shade from 0 to the top; a brake's name stands in the legend, any other on its stretch."""
    for name, spans in _by_name(shaded).items():
        style, brake = _style(name), name in theme.BRAKE_STYLES
        data = {
            "left": [one.begin_us / scale for one in spans],
            "right": [one.end_us / scale for one in spans],
        }
        words = say("time.blocked", brake=name) if brake else name
        chart.quad(
            left="left",
            right="right",
            bottom=0,
            top=top,
            source=ColumnDataSource(data, name=name),
            fill_color=style.colour,
            fill_alpha=0.13,
            line_alpha=0,
            hatch_pattern=style.hatch,
            hatch_color=style.colour,
            hatch_alpha=0.35,
            hatch_scale=9,
            name=words,
            **({"legend_label": words} if brake else {}),
        )
        for one in () if brake else spans:
            middle = (one.begin_us + one.end_us) / 2 / scale
            _label(chart, middle, top, name, 16, y_offset=-22, name="letter")


def _lanes(chart: Any, shaded: Sequence[Stretch], scale: int, short: str) -> None:
    """A lane for each name, the first at the top."""
    labels: dict[float, str] = {}
    for place, (name, spans) in enumerate(reversed(_by_name(shaded).items())):
        most = max(one.amount for one in spans)
        labels[place + LANE / 2] = say("time.lane", name=name, most=number(most))
        style = _style(name)
        data = {
            "left": [one.begin_us / scale for one in spans],
            "right": [one.end_us / scale for one in spans],
            "bottom": [place] * len(spans),
            "top": [place + LANE * one.amount / most for one in spans],
            "amount": [one.amount for one in spans],
        }
        bars = chart.quad(
            left="left",
            right="right",
            bottom="bottom",
            top="top",
            source=ColumnDataSource(data, name=name),
            fill_color=style.colour,
            fill_alpha=0.45,
            line_alpha=0,
            hatch_pattern=style.hatch,
            hatch_color=theme.INK,
            hatch_alpha=0.35,
            hatch_scale=8,
            name=name,
        )
        between = say("time.to", begin=f"@left{{0.0}} {short}", end=f"@right{{0.0}} {short}")
        tips = [("", name), (say("time.from"), between), (say("time.how-many"), "@amount")]
        chart.add_tools(HoverTool(renderers=[bars], tooltips=tips))
    chart.yaxis.ticker = list(labels)
    chart.yaxis.major_label_overrides = labels
    chart.ygrid.visible = False


def _time_words(
    title: str,
    lines: Mapping[str, Steps],
    shaded: Sequence[Stretch],
    end_us: int,
    scale: int,
    short: str,
) -> str:
    told = []
    for name, steps in lines.items():
        known = [value for _, value in steps if value is not None]
        if known:
            extremes = (steps[0][1], min(known), max(known), steps[-1][1])
            told.append((name, *map(number, extremes), f"{len(steps):,}"))
    head = [tuple(say(f"column.{name}") for name in _COLUMNS)]

    def ms(time_us: float) -> str:
        return f"{time_us / scale:,.1f} {short}"

    spans = []
    for name, some in _by_name(shaded).items():
        shaded_us = sum(one.end_us - one.begin_us for one in some)
        share = say("time.share", part=ms(shaded_us), all=ms(end_us))
        most = max(one.amount for one in some)
        ends = {"begin": ms(some[0].begin_us), "end": ms(some[-1].end_us)}
        where = say(
            "time.stretches-at-once" if most > 1 else "time.stretches",
            n=len(some), most=number(most), **ends,
        )  # fmt: skip
        spans.append((name, share, where))
    shades = [(say("column.shaded"), say("column.how-long"), say("column.stretches"))]
    return _aligned(title, told and head + told, spans and shades + spans)


# -- over a number ------------------------------------------------------------------------------


@takes
def curve_chart(
    curves: Mapping[str, Points],
    *,
    across: str,
    up: str,
    measured: Mapping[str, Points] | None = None,
    title: str = "",
    logarithmic: bool = False,
    top: float | None = None,
    height: int = 320,
) -> Chart:
    """Curves over a number that somebody chose, and points that were measured elsewhere.

    Args:
        curves: name to (x, y), drawn as lines with a marker at each point.
        across: what the x axis is, with its unit.
        up: what the y axis is, with its unit.
        measured: name to (x, y), drawn as hollow stars without a line.
        title: above the chart.
        logarithmic: both axes; numbers must then be above 0.
        top: where the values end; what is above is cut off.
        height: in pixels.
    """
    scale = "log" if logarithmic else "linear"
    chart = paper(
        title, across=across, up=up, width=860, height=height, tools=ZOOM,
        x_axis_type=scale, y_axis_type=scale,
    )  # fmt: skip
    drawn = []
    everything = {**curves, **(measured or {})}
    for (name, some), look in zip(everything.items(), LOOKS, strict=False):
        data = {"x": [float(x) for x, _ in some], "y": [float(y) for _, y in some]}
        source = ColumnDataSource(data, name=name)
        same = {"source": source, "line_width": 2, "legend_label": name, "line_color": look.colour}
        if name in curves:
            chart.line("x", "y", line_dash=look.dash, **same)
            shape = {"marker": look.marker, "size": 8, "fill_color": look.colour}
        else:
            shape = {"marker": "star", "size": 17, "fill_color": None}
        drawn.append(chart.scatter("x", "y", name=name, **same, **shape))
    tips = [("", "$name"), (across, "@x{0,0.0}"), (up, "@y{0,0}")]
    chart.add_tools(HoverTool(renderers=drawn, tooltips=tips))
    if not logarithmic:
        chart.y_range.start = chart.x_range.start = 0
    if top is not None:
        chart.y_range.end = top
    _legend_on_top(chart)
    by_x = {name: dict(some) for name, some in everything.items()}
    rows = [
        (number(x), *(number(some[x]) if x in some else "" for some in by_x.values()))
        for x in sorted({x for some in by_x.values() for x in some})
    ]
    return Chart(chart, _aligned(f"{title} ({up})", [(across, *by_x), *rows]))


# -- bars ---------------------------------------------------------------------------------------


@takes
def bar_chart(
    values: Mapping[str, float],
    *,
    unit: str | None = None,
    title: str = "",
    width: int = 720,
    height: int = 280,
    use: Callable[[int], object] | None = None,
) -> Chart:
    """A bar for each way of doing something, its value printed on it.

    Args:
        values: name to value, in the order in which the bars stand.
        unit: of the values; messages per second if None.
        title: above the bars.
        width: in pixels, at most.
        height: in pixels, without further lines of names.
        use: called with the place of a bar that is clicked, from 0.
    """
    unit = say("bars.rate") if unit is None else unit
    looks = [LOOKS[place % len(LOOKS)] for place in range(len(values))]
    # Side by side long names would run into each other: they go on in further lines, as many as a
    # narrow page needs.
    room = max(12, round(min(width, _NARROW) / _LETTER / max(1, len(values))))
    names = [textwrap.fill(name, room) for name in values]
    height += _NAME_LINE * max((name.count("\n") for name in names), default=0)
    source = ColumnDataSource(
        {
            "name": names,
            "value": [float(value) for value in values.values()],
            "words": [number(value) for value in values.values()],
            "colour": [look.colour for look in looks],
            "hatch": [look.hatch for look in looks],
        }
    )
    chart = paper(title, up=unit, width=width, height=height, tools=NO_TOOLS, x_range=names)
    bars = chart.vbar(
        x="name",
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
        x="name",
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
    chart.y_range.start = 0
    chart.y_range.end = max(values.values(), default=1) * 1.15 or 1
    if use is not None:
        told = use
        chart.add_tools(TapTool(renderers=[bars]))
        source.selected.on_change(
            "indices", lambda _name, _old, chosen: told(chosen[0]) if chosen else None
        )
    rows = [(name, number(value)) for name, value in values.items()]
    return Chart(chart, _aligned(title, [("", unit), *rows]))


# -- outcomes -----------------------------------------------------------------------------------


def outcome_map(
    outcomes: Mapping[tuple[float, float], str],
    areas: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    heights: Sequence[float],
    *,
    across: str,
    up: str,
    now: tuple[float, float],
    title: str = "",
) -> Chart:
    """What comes of which choice of two numbers: runs as marks, areas as the rule has them.

    Lines are computed and marks are runs; a reader sees whether they agree. Each area has a hatch
    and its name in it, each outcome a mark of its own shape.

    Args:
        outcomes: (x, y) of a run to its outcome, in words.
        areas: outcome to where it must come: the least x and the greatest x at each height.
        heights: y values, rising, of the areas' edges.
        across: what x is, with its unit.
        up: what y is, with its unit.
        now: (x, y) that is chosen; `Chart.stand` moves it.
        title: above the chart.
    """
    chart = paper(
        title, across=across, up=up, width=520, height=290, tools=NO_TOOLS,
        x_range=(0, max(max(high) for _, high in areas.values())),
        y_range=(min(heights), max(heights)),
    )  # fmt: skip
    looks = dict(zip(areas, (LOOKS[2], LOOKS[4], LOOKS[0]), strict=False))
    for name, (low, high) in areas.items():
        if any(right > left for left, right in zip(low, high, strict=True)):
            _area(chart, name, low, high, heights, looks[name], list(outcomes))
    drawn = []
    for name, look in looks.items():
        places = [place for place, outcome in outcomes.items() if outcome == name]
        data = {
            "x": [x for x, _ in places],
            "y": [y for _, y in places],
            "words": [name] * len(places),
        }
        if places:
            drawn.append(
                chart.scatter(
                    "x",
                    "y",
                    source=ColumnDataSource(data, name=name),
                    marker=look.marker,
                    size=10,
                    fill_color=look.colour,
                    line_color=theme.INK,
                    legend_label=say("outcomes.run", outcome=name),
                    name=f"runs: {name}",
                )
            )
    tips = [(across, "@x{0.0}"), (up, "@y{0.0}"), (say("outcomes.this-run"), "@words")]
    chart.add_tools(HoverTool(renderers=drawn, tooltips=tips))
    chart.scatter(
        "x",
        "y",
        source=ColumnDataSource({"x": [now[0]], "y": [now[1]]}),
        marker="diamond",
        size=24,
        fill_alpha=0,
        line_color=theme.INK,
        line_width=3,
        legend_label=say("outcomes.choice"),
        name="now",
    )
    legend(chart, "below")
    chart.ygrid.visible = False
    columns = sorted({x for x, _ in outcomes})
    rows = [
        (number(y), *(outcomes.get((x, y), "") for x in columns))
        for y in sorted({y for _, y in outcomes})
    ]
    head = (f"{up} \\ {across}", *map(number, columns))
    return Chart(chart, _aligned(title, [head, *rows]))


_ROOMY = 0.45
"""An area's name stands where it is at least so wide, compared with its widest place."""


def _area(
    chart: Any,
    name: str,
    low: Sequence[float],
    high: Sequence[float],
    heights: Sequence[float],
    look: Look,
    marks: Sequence[tuple[float, float]],
) -> None:
    chart.patch(
        [*low, *reversed(high)],
        [*heights, *reversed(heights)],
        fill_color=look.colour,
        fill_alpha=0.13,
        line_color=look.colour,
        line_alpha=0.7,
        hatch_pattern="diagonal_cross" if look.hatch == " " else look.hatch,
        hatch_color=look.colour,
        hatch_alpha=0.25,
        hatch_scale=12,
        name=f"area: {name}",
    )
    wide = [right - left for left, right in zip(low, high, strict=True)]
    all_of_it = heights[-1] - heights[0]
    edge = all_of_it / 16
    levels = [min(max(y, heights[0] + edge), heights[-1] - edge) for y in heights]
    roomy = [place for place, one in enumerate(wide) if one >= max(wide) * _ROOMY]

    def free(place: int) -> tuple[float, float]:
        """How far the nearest mark is above or below, and how wide the area is."""
        there = [abs(y - levels[place]) for x, y in marks if low[place] <= x <= high[place]]
        return min(there, default=all_of_it), wide[place]

    at = max(roomy, key=free)
    _label(chart, (low[at] + high[at]) / 2, levels[at], name, 13, text_baseline="middle")
