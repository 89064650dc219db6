"""The lattice as a widget: the picture, and beside the mouse a list, buttons, and words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from workbench.sim.explorer import Exploration

from .charts import Chart
from .controls import status
from .lattice import LatticePicture, path_of
from .lattice_words import bad_levels, say, state_words, summary, verdict, words
from .stills import Still

MOST_LISTED = 500  # states of one depth in the list
WITHIN = "calc(100% - 4px)"  # a field has a margin
OnSelect = Callable[[tuple[Any, ...]], None]


def button(description: str, tooltip: str) -> Any:
    """A button as wide as its words."""
    return widgets.Button(description=description, tooltip=tooltip, layout={"width": "auto"})


class LatticeView(Still, widgets.VBox):
    """All states of one exploration, and ways to choose one.

    A state is chosen by a click in the picture, or from two lists, depth and state, or with
    buttons. Whoever chooses gets a shortest schedule to that state.

    Args:
        found: what was explored.
        path: moves of the learner's own, drawn on top.
        on_select: called with the moves of a shortest schedule to the state that was chosen.

    Attributes:
        index: place of the chosen state in `found.ordered`; None before one was chosen.
    """

    def __init__(
        self,
        found: Exploration[Any, Any],
        *,
        path: Sequence[Any] = (),
        on_select: OnSelect | None = None,
    ) -> None:
        self.found = found
        self.path = tuple(path)
        self.index: int | None = None
        self.on_select = on_select
        self._depths = found.depths()
        self._quiet = False
        self.picture = LatticePicture(found, path=path_of(found, path) if path else ())
        self.line = widgets.HTML(status(f"{summary(found)} {say('found.bad-means')}"))
        self.depth = widgets.Dropdown(
            options=self._depth_options(),
            description=say("choose.after"),
            layout={"width": "300px", "max_width": WITHIN},
        )
        self.states = widgets.Dropdown(
            description=say("choose.state"), layout={"width": "auto", "max_width": WITHIN}
        )
        self.back = button(say("choose.back"), say("choose.back-is"))
        self.forth = button(say("choose.forth"), say("choose.forth-is"))
        self.nearest = button(say("choose.nearest"), say("choose.nearest-is"))
        self.nearest.disabled = not found.bad
        self.chart = Chart(self.picture.figure, words(found))
        row = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 8px"}
        super().__init__(
            children=[
                self.line,
                self.chart.picture,
                widgets.Box([self.depth, self.back, self.forth, self.nearest], layout=row),
                self.states,
                self.chart.twin,
            ]
        )
        self._list(0)
        self.picture.on_pick(self.choose)
        self.depth.observe(lambda change: self._deeper(change.new), names="value")
        self.states.observe(lambda change: self._listed(change.new), names="value")
        self.back.on_click(lambda _button: self._along(-1))
        self.forth.on_click(lambda _button: self._along(1))
        self.nearest.on_click(lambda _button: self.choose(self.found.bad_at[0]))

    def choose(self, index: int) -> None:
        """Choose a state by its place: picture and lists follow, and whoever listens is called."""
        self.index = index
        moves = self.found.schedule_to(index)
        self._quiet = True
        self.depth.value = self._depths[index]
        self._list(index)
        self._quiet = False
        self.picture.choose(path_of(self.found, moves))
        if self.on_select is not None:
            self.on_select(moves)

    def close(self) -> None:
        """Leave the page, with the picture."""
        self.chart.close()
        super().close()

    # -- lists ----------------------------------------------------------------------------------

    def _depth_options(self) -> list[tuple[str, int]]:
        levels, bad = self.found.levels(), bad_levels(self.found)
        keys = ["one-state" if states == 1 else "states" for states in levels]
        return [
            (say(f"choose.depth-{key}", moves=depth, n=states, bad=bad[depth]), depth)
            for depth, (key, states) in enumerate(zip(keys, levels, strict=True))
        ]

    def _list(self, index: int) -> None:
        """List the states as deep as this one, which is chosen."""
        depth = self._depths[index]
        first = self._depths.index(depth)
        last = first + self._depths.count(depth)
        start = max(first, min(index - MOST_LISTED // 2, last - MOST_LISTED))
        shown = range(start, min(last, start + MOST_LISTED))
        quiet, self._quiet = self._quiet, True
        self.states.options = [
            (
                say(
                    f"choose.listed-{verdict(self.found, place)}",
                    state=state_words(self.found, place),
                ),
                place,
            )
            for place in shown
        ]
        self.states.value = index
        self._quiet = quiet

    def _deeper(self, depth: int | None) -> None:
        if depth is None or self._quiet:
            return
        bad = (index for index in self.found.bad_at if self._depths[index] == depth)
        self.choose(next(bad, self._depths.index(depth)))

    def _listed(self, index: int | None) -> None:
        if index is not None and not self._quiet:
            self.choose(index)

    def _along(self, step: int) -> None:
        here = -1 if self.index is None else self.index
        self.choose(max(0, min(self.found.states - 1, here + step)))

    # -- without a kernel -----------------------------------------------------------------------

    def __repr__(self) -> str:
        return self.chart.words
