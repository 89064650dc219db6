"""The places of a quorum queue as a figure: who leads, what waits in which log, what is cut.

Positions come from networkx and stay; what changes with a step is text, border, hatch and bar.
Every role has a glyph and a word, a crashed node a hatch, a cut way a dash and a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import networkx as nx
from bokeh.models import ColumnDataSource, LabelSet, Range1d

from workbench.trace.replicas import DOWN, LEADER
from workbench.trace.schema import Row

from . import theme
from .plot import NO_TOOLS, plot
from .topology_state import (
    LOG,
    REPLICA,
    SESSION,
    Picture,
    Place,
    TopologyState,
    Way,
    log_of,
    picture_words,
)

WIDTH = 1000
LEVEL = 75  # between two replicas, one above the other
BOX = {REPLICA: (190, 40), LOG: (190, 32)}
CLIENT_BOX = (180, 46)
BESIDE = 37  # from the middle of a replica's box down to that of its log
COLUMNS = (98, 350)  # middles of the clients and of the session
MIDDLE, WIDE = 722, 176  # of the ellipse of replicas

Position = tuple[float, float]

# Role: colour of the border, its width, dash, fill, hatch.
LOOKS: dict[str, tuple[str, float, str, str, str]] = {
    LEADER: (theme.BLUE, 3.5, "solid", "#dcecf8", " "),
    "follower": ("#4b5563", 1.2, "solid", "#ffffff", " "),
    "candidate": (theme.ORANGE, 2.5, "dashed", "#fff4dc", " "),
    "pre-vote": (theme.ORANGE, 1.5, "dotted", "#fff4dc", " "),
    DOWN: ("#4b5563", 1.5, "dashed", "#d6d9de", "diagonal_cross"),
}
PLAIN = ("#8a94a0", 1.2, "solid", "#ffffff", " ")
HERE = theme.VERMILLION


def height_for(replicas: int) -> int:
    """How high the figure is, in pixels."""
    return 2 * LEVEL * max(1, replicas // 2) + 140


def positions(state: TopologyState) -> dict[str, Position]:
    """Where each place stands, in pixels: clients on the left, replicas on an ellipse.

    The ellipse is stretched so that no two replicas stand side by side.
    """
    replicas = [name for name, kind in state.places if kind == REPLICA]
    middle = height_for(len(replicas)) / 2
    front = nx.Graph()
    for name, kind in state.places:
        if kind not in (REPLICA, LOG):
            front.add_node(name, layer=int(name == SESSION))
    found: dict[str, Position] = {}
    for name, (_, y) in nx.multipartite_layout(front, subset_key="layer", scale=1).items():
        shift = LEVEL * float(y) if len(front) > 2 else 0
        found[name] = (COLUMNS[front.nodes[name]["layer"]], middle + shift)
    group = nx.Graph()
    group.add_nodes_from(replicas)
    circle = nx.circular_layout(group, scale=1)
    levels = sorted({round(abs(float(y)), 3) for _, y in circle.values()})
    for name, (x, y) in circle.items():
        up = levels.index(round(abs(float(y)), 3)) * (1 if y < 0 else -1)
        # The first replica stands on the left, next to the session.
        across = MIDDLE - WIDE * float(x) if len(replicas) > 1 else MIDDLE - WIDE
        found[name] = (across, middle + 17 - LEVEL * -up)
        found[log_of(name)] = (across, found[name][1] - BESIDE)
    return found


def _size(kind: str) -> tuple[int, int]:
    return BOX.get(kind, CLIENT_BOX)


def _boxes(places: Sequence[Place], at: dict[str, Position]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "name", "x", "y", "width", "height", "line", "thick", "dash", "fill", "hatch",
            "title", "title_y", "text", "text_y", "left", "bar", "bar_y", "bar_right",
        )
    }  # fmt: skip
    for place in places:
        (x, y), (width, height) = at[place.name], _size(place.kind)
        line, thick, dash, fill, hatch = LOOKS.get(place.role, PLAIN)
        if place.here:
            line, thick = HERE, 4.5
        left = x - width / 2
        share = place.depth / place.most if place.most else 0
        given = (
            place.name, x, y, width, height, line, thick, dash, fill, hatch,
            place.title, y + 9, place.text, y + 4 if place.kind == LOG else y - 8,
            left + 7, left, y - height / 2 + 4, left + width * share,
        )  # fmt: skip
        for name, value in zip(columns, given, strict=True):
            columns[name].append(value)
    return columns


def _lines(ways: Sequence[Way], at: dict[str, Position]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        name: [] for name in ("x0", "y0", "x1", "y1", "line", "thick", "dash", "x", "y", "text")
    }
    for way in ways:
        if SESSION in (way.a, way.b) and not (way.led or way.cut or way.client):
            continue  # the session talks to the leader only
        (x0, y0), (x1, y1) = at[way.a], at[way.b]
        line, thick, dash = ("#4b5563", 2.0, "solid") if way.led else ("#c3cad3", 1.0, "solid")
        text = way.text
        if way.text:
            line, thick = HERE, 3.0
        if way.cut:
            line, thick, dash, text = theme.VERMILLION, 2.5, "dashed", "✂ cut"
        # Ways cross in the middle, so words stand nearer to the second place.
        near = 0.5 if way.client else 0.6
        x, y = x0 + near * (x1 - x0), y0 + near * (y1 - y0) + (32 if way.client else 0)
        given = (x0, y0, x1, y1, line, thick, dash, x, y)
        for name, value in zip(columns, (*given, text), strict=True):
            columns[name].append(value)
    return columns


class Topology:
    """The figure of a quorum queue, at one step of a run.

    Args:
        rows: of one run, in order of `seq`: those that the stepper shows.
        queue: a quorum queue; the first one if None.

    Attributes:
        figure: the Bokeh figure.
        step: that it shows.
    """

    def __init__(self, rows: Iterable[Row], queue: str | None = None) -> None:
        self.state = TopologyState(list(rows), queue)
        self.step = -1
        self._at = positions(self.state)
        self._boxes = ColumnDataSource({}, name="places")
        self._lines = ColumnDataSource({}, name="ways")
        height = height_for(len(self.state.story.nodes))
        self.figure = plot(
            "",
            width=WIDTH,
            height=height,
            tools=NO_TOOLS,
            x_range=Range1d(0, WIDTH),
            y_range=Range1d(0, height),
        )
        self.move(0)
        self._draw()

    def _draw(self) -> None:
        chart = self.figure
        chart.axis.visible = False
        chart.grid.visible = False
        chart.title.text_font_size = "13px"
        chart.title.text_font_style = "normal"
        chart.segment(
            x0="x0",
            y0="y0",
            x1="x1",
            y1="y1",
            source=self._lines,
            line_color="line",
            line_width="thick",
            line_dash="dash",
            name="ways",
        )
        chart.rect(
            x="x",
            y="y",
            width="width",
            height="height",
            source=self._boxes,
            fill_color="fill",
            line_color="line",
            line_width="thick",
            line_dash="dash",
            hatch_pattern="hatch",
            hatch_color="#8a94a0",
            hatch_alpha=0.5,
            name="places",
        )
        chart.hbar(
            y="bar_y",
            left="bar",
            right="bar_right",
            height=7,
            source=self._boxes,
            fill_color=theme.ORANGE,
            line_alpha=0,
            hatch_pattern="right_diagonal_line",
            hatch_color="white",
            hatch_scale=6,
            name="depths",
        )
        for text, y, style in (("title", "title_y", "bold"), ("text", "text_y", "normal")):
            chart.text(
                x="left",
                y=y,
                text=text,
                source=self._boxes,
                text_font_size="12px",
                text_font_style=style,
                text_baseline="middle",
                text_color="#17202b",
            )
        chart.add_layout(
            LabelSet(
                x="x",
                y="y",
                text="text",
                source=self._lines,
                text_font_size="12px",
                text_font_style="bold",
                text_color="#17202b",
                text_align="center",
                background_fill_color="white",
                background_fill_alpha=0.9,
            )
        )

    def picture(self, step: int | None = None) -> Picture:
        """What there is at a step; at the one shown if None."""
        return self.state.at(self.step if step is None else step)

    def move(self, step: int) -> None:
        """Show a step."""
        picture = self.state.at(step)
        if picture.step == self.step:
            return
        self.step = picture.step
        self._boxes.data = _boxes(picture.places, self._at)
        self._lines.data = _lines(picture.ways, self._at)
        cut = picture.sentence.partition(" No majority")
        self.figure.title.text = f"Step {picture.step}: {cut[0]}" + (
            " No majority." if cut[1] else ""
        )

    def follow(self, stepper: Any) -> Topology:
        """Move with a `StepperWidget`."""
        stepper.observe(lambda change: self.move(change["new"]), names="cursor")
        self.move(stepper.cursor)
        return self

    def words(self, step: int | None = None) -> str:
        """The picture as text."""
        return picture_words(self.picture(step))

    def __str__(self) -> str:
        return self.words()
