"""The lattice of all schedules as a picture: states, moves, what is bad, and a path on top.

Up to `MOST_DRAWN` states each is a mark; beyond it the picture counts states by depth and says so.
What is bad has another shape or a hatch as well as another colour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool, TapTool

from workbench.sim.explorer import Exploration

from . import theme
from .charts import legend, paper
from .lattice_layout import Places, graph_of, places
from .lattice_words import BAD, GOOD, bad_levels, say, state_parts

MOST_DRAWN = 400
WIDTH, WIDEST = 900, 1150
# Pixels: of a mark's place in its column, and of a picture at least and at most.
PLACE, LOWEST, TALLEST = 11, 240, 400
NOWHERE = float("nan")
_TOOLS = "pan,wheel_zoom,box_zoom,tap,reset"
_OWN = {"line_color": theme.PURPLE, "line_width": 6, "line_alpha": 0.8, "line_dash": "6 2"}
_TIP = """<div style="max-width:26em;font-size:13px"><strong>@verdict</strong>, @moves
<br>@sender<br>@receiver<br>@wire</div>"""


def path_of(found: Exploration[Any, Any], moves: Iterable[Any]) -> list[int]:
    """Places of the states along a schedule, as far as they were found."""
    index = [0]
    for move in moves:
        state = found.ordered[index[-1]]
        after = dict(found.model.successors(state)).get(move)
        if after is None or after not in found:
            break
        index.append(found.index_of(after))
    return index


class LatticePicture:
    """The picture of an exploration, with what can be moved in it.

    Args:
        found: what was explored.
        path: places of states, in order, drawn on top: those that the learner went through.

    Attributes:
        figure: the Bokeh figure.
        marks: source of what can be clicked: a mark for each state, or for each depth.
        counted: whether states are counted by depth instead of drawn.
    """

    def __init__(self, found: Exploration[Any, Any], *, path: Sequence[int] = ()) -> None:
        self.found = found
        self.counted = found.states > MOST_DRAWN
        self._depths = found.depths()
        self._at: Places = {}
        self._path = ColumnDataSource({"x": [], "y": []}, name="path")
        self._chosen = ColumnDataSource({"x": [], "y": []}, name="chosen")
        self._here = ColumnDataSource({"x": [], "y": []}, name="here")
        if self.counted:
            self._count()
        else:
            self._draw()
        self.marks: ColumnDataSource = self._marks
        self._legend(path=bool(path))
        if path:
            self._path.data = self._points(path)

    # -- what moves -----------------------------------------------------------------------------

    def choose(self, path: Sequence[int]) -> None:
        """Draw a schedule, and stand at its end."""
        self._chosen.data = self._points(path)
        self.stand(path[-1])

    def stand(self, index: int) -> None:
        """Put the ring round a state."""
        self._here.data = self._points([index])

    def on_pick(self, use: Callable[[int], None]) -> None:
        """Call with the place of the state that was clicked."""

        def picked(_name: str, _old: Any, new: list[int]) -> None:
            if new:
                use(self.state_of(new[0]))

        self.marks.selected.on_change("indices", picked)

    def state_of(self, mark: int) -> int:
        """The state a mark stands for; of a whole depth the first bad one, else the first."""
        if not self.counted:
            return mark
        bad = (index for index in self.found.bad_at if self._depths[index] == mark)
        return next(bad, self._depths.index(mark))

    def _points(self, path: Sequence[int]) -> dict[str, list[float]]:
        if self.counted:
            return {"x": [float(self._depths[i]) for i in path], "y": [0.0] * len(path)}
        points = [self._at[index] for index in path]
        return {"x": [x for x, _ in points], "y": [y for _, y in points]}

    # -- drawing --------------------------------------------------------------------------------

    def _canvas(self, height: int, title: str = "") -> None:
        self.figure = paper(
            title,
            across=say("column.moves"),
            width=WIDTH,
            height=height,
            tools=_TOOLS,
            active_drag=None,
        )
        self.figure.max_width = WIDEST
        self.figure.ygrid.visible = False

    def _draw(self) -> None:
        found = self.found
        graph = graph_of(found)
        self._at = at = places(graph)
        tallest = max(self._depths.count(depth) for depth in set(self._depths))
        self._canvas(min(TALLEST, max(LOWEST, 110 + PLACE * tallest)))
        chart = self.figure
        chart.yaxis.visible = False
        moves = sorted({(source, target) for source, target in graph.edges()})
        chart.segment(
            [at[source][0] for source, _ in moves],
            [at[source][1] for source, _ in moves],
            [at[target][0] for _, target in moves],
            [at[target][1] for _, target in moves],
            line_color=theme.INK,
            line_alpha=0.55,
            line_width=1,
        )
        self._lines()
        bad = set(found.bad_at)
        nodes = range(found.states)
        parts = [(*state_parts(found.model, state), "", "")[:3] for state in found.ordered]
        self._marks = ColumnDataSource(
            {
                "x": [at[node][0] for node in nodes],
                "y": [at[node][1] for node in nodes],
                "marker": ["diamond" if node in bad else "circle" for node in nodes],
                "colour": [theme.VERMILLION if node in bad else theme.SKY for node in nodes],
                "size": [11 if node in bad else 8 for node in nodes],
                "verdict": [say("state.bad" if node in bad else "state.good") for node in nodes],
                "moves": [say("state.after", n=depth) for depth in self._depths],
                "sender": [part[0] for part in parts],
                "receiver": [part[1] for part in parts],
                "wire": [part[2] for part in parts],
            },
            name="states",
        )
        same = {"fill_alpha": 1.0, "line_alpha": 1.0}
        marks = chart.scatter(
            "x",
            "y",
            source=self._marks,
            marker="marker",
            size="size",
            fill_color="colour",
            line_color=theme.INK,
            line_width=0.6,
            **{f"nonselection_{name}": value for name, value in same.items()},
        )
        chart.add_tools(HoverTool(renderers=[marks], tooltips=_TIP))
        chart.select_one(TapTool).renderers = [marks]
        chart.scatter(
            "x", "y", source=self._here, marker="circle", size=20, fill_alpha=0,
            line_color=theme.INK, line_width=3,
        )  # fmt: skip

    def _count(self) -> None:
        """Too many to draw: how many states there are at each depth, good and bad."""
        found = self.found
        self._canvas(340, say("picture.counted", n=found.states))
        chart = self.figure
        chart.yaxis.axis_label = say("column.states")
        levels, bad = found.levels(), bad_levels(found)
        self._marks = data = ColumnDataSource(
            {
                "depth": list(range(len(levels))),
                GOOD: [total - wrong for total, wrong in zip(levels, bad, strict=True)],
                BAD: bad,
                "top": levels,
            },
            name="depths",
        )
        same = {"nonselection_fill_alpha": 1.0, "nonselection_line_alpha": 1.0}
        bars = [
            chart.vbar("depth", 0.8, GOOD, fill_color=theme.SKY, line_color=theme.INK,
                source=data, **same),
            chart.vbar("depth", 0.8, "top", bottom=GOOD, fill_color=theme.VERMILLION,
                line_color=theme.INK, hatch_pattern="diagonal_cross", hatch_color=theme.INK,
                hatch_alpha=0.4, nonselection_hatch_alpha=0.4, source=data, **same),
        ]  # fmt: skip
        shown = ("@depth", "@top{0,0}", f"@{BAD}{{0,0}}")
        names = (say("column.moves"), say("column.states"), say("column.bad"))
        tips = list(zip(names, shown, strict=True))
        chart.add_tools(HoverTool(renderers=bars, tooltips=tips))
        chart.select_one(TapTool).renderers = bars
        self._lines()
        chart.scatter(
            "x", "y", source=self._here, marker="inverted_triangle", size=16,
            fill_color=theme.INK, line_color="white", line_width=1,
        )  # fmt: skip

    def _lines(self) -> None:
        """The learner's own path, dashed, and the schedule to the chosen state."""
        self.figure.line("x", "y", source=self._chosen, line_color=theme.INK, line_width=3.5)
        self.figure.line("x", "y", source=self._path, **_OWN)

    def _nearest(self) -> None:
        """Mark the first bad state that was found: none is nearer."""
        if not self.found.bad_at:
            return
        first = self.found.bad_at[0]
        source = ColumnDataSource(self._points([first]), name="first")
        self.figure.scatter(
            "x", "y", source=source, marker="square", size=19, fill_alpha=0,
            line_color=theme.VERMILLION, line_width=2.5,
            legend_label=say("picture.nearest", n=self._depths[first]),
        )  # fmt: skip

    def _legend(self, *, path: bool) -> None:
        """Tell shapes and lines; what stands in the legend lies outside of the picture."""
        chart, nowhere = self.figure, {"x": [NOWHERE], "y": [NOWHERE]}
        if self.counted:
            size = {"marker": "square", "size": 14, "line_color": theme.INK, **nowhere}
            chart.scatter(fill_color=theme.SKY, legend_label=say("state.good"), **size)
            chart.scatter(
                fill_color=theme.VERMILLION, hatch_pattern="diagonal_cross", hatch_alpha=0.4,
                legend_label=say("state.bad"), **size,
            )  # fmt: skip
        else:
            for label, marker, colour in (
                (say("state.good"), "circle", theme.SKY),
                (say("state.bad"), "diamond", theme.VERMILLION),
            ):
                chart.scatter(
                    marker=marker, fill_color=colour, line_color=theme.INK, size=10,
                    legend_label=label, **nowhere,
                )  # fmt: skip
        self._nearest()
        chart.line(line_color=theme.INK, line_width=3.5, legend_label=say("picture.way"), **nowhere)
        if path:
            chart.line(**_OWN, legend_label=say("picture.path"), **nowhere)
        chart.legend.location = "left"
        chart.legend.padding, chart.legend.margin, chart.legend.spacing = 2, 2, 8
        legend(chart, "above")
