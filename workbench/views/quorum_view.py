"""A stepper over a run of a quorum queue, with the topology and the lamps above it.

Lamps follow the stepper in the browser; the figure is moved by the kernel, as charts are.
"""

from __future__ import annotations

import html
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from .bokeh_widget import ChartWidget
from .lamps_doc import lamps_doc, lamps_words
from .static_html import asset, script
from .stepper_widget import StepperWidget, stepper
from .stills import Still
from .topology import Topology


class Lamps(anywidget.AnyWidget):
    """A line for each message, a lamp for each thing that has to happen to it.

    Attributes:
        doc: see `lamps_doc`.
        cursor: the step shown, as the stepper counts.
    """

    _esm = script("lamps.js")
    _css = asset("lamps.css")

    doc = traitlets.Dict().tag(sync=True)
    cursor = traitlets.Int(0, help="step shown, 0 is the start").tag(sync=True)

    def __init__(self, doc: dict[str, Any], *, cursor: int = 0) -> None:
        super().__init__(doc=doc, cursor=cursor)

    def follow(self, other: StepperWidget) -> Lamps:
        """Show the step that a stepper shows, from now on."""
        self.cursor = other.cursor
        self._linked = widgets.jslink((other, "cursor"), (self, "cursor"))
        return self

    def still(self, step: int | None = None) -> str:
        """The lamps at a step as text; at the own one if None."""
        return lamps_words(self.doc, self.cursor if step is None else step)


class QuorumBox(widgets.VBox):
    """Topology, its words and the lamps, as they are at a stepper's step.

    Args:
        rows: of one run.
        cursor: the step at first.
        topology: whether to draw the figure.
        queue: a quorum queue; the first one if None.
    """

    def __init__(
        self,
        rows: list[Any],
        *,
        cursor: int = 0,
        topology: bool = True,
        queue: str | None = None,
    ) -> None:
        self._queue = queue
        self._drawn = topology
        self.lamps = Lamps({})
        self.topology: Topology | None = None
        self._words = widgets.HTML()
        self._figure = widgets.VBox([])
        said = widgets.Accordion(children=[self._words], titles=("The figure in words",))
        super().__init__(children=[self._figure, said, self.lamps] if topology else [self.lamps])
        self.show(rows, cursor)

    def follow(self, steps: StepperWidget) -> QuorumBox:
        """Show the step that a stepper shows, from now on."""
        self.lamps.follow(steps)
        steps.observe(lambda change: self._move(change["new"]), names="cursor")
        self._move(steps.cursor)
        return self

    def show(self, rows: list[Any], cursor: int) -> None:
        """Show another run at a step."""
        with self.lamps.hold_sync():
            self.lamps.cursor = cursor
            self.lamps.doc = lamps_doc(rows, self._queue)
        if self._drawn:
            self.topology = Topology(rows, self._queue)
            old = self._figure.children
            self._move(cursor)  # before the page has the figure: what it gets is the right step
            self._figure.children = [ChartWidget(self.topology.figure)]
            for child in old:
                child.close()

    def _move(self, step: int) -> None:
        if self.topology is not None:
            self.topology.move(step)
            self._words.value = f"<pre>{html.escape(self.topology.words())}</pre>"

    def still(self, step: int) -> str:
        """Figure and lamps at a step, as text."""
        parts = [] if self.topology is None else [self.topology.words(step)]
        return "\n\n".join([*parts, self.lamps.still(step)])


class QuorumView(Still, widgets.VBox):
    """A stepper with topology and lamps above it; they have one cursor.

    Args:
        box: follows the stepper.
        steps: the stepper.
    """

    def __init__(self, box: QuorumBox, steps: StepperWidget) -> None:
        self.box = box.follow(steps)
        self.stepper = steps
        super().__init__(children=[box, steps])

    def still(self) -> str:
        """Everything at the present step, as text."""
        return f"{self.box.still(self.stepper.cursor)}\n\n{self.stepper.still()}"

    def __repr__(self) -> str:
        return self.still()


def quorum_view(
    trace: Any,
    *,
    at: int | None = None,
    topology: bool = True,
    queue: str | None = None,
    title: str = "",
) -> QuorumView:
    """A stepper over a run with a quorum queue, with a figure of the cluster and a row of lamps.

    Args:
        trace: a run (anything with `rows`), or rows in order of `seq`.
        at: `seq` of the row to begin at.
        topology: draw the figure; call `notebook_output()` before.
        queue: which queue, if there are several quorum queues; the first one if None.
        title: of the stepper.
    """
    rows = list(getattr(trace, "rows", trace))
    steps = stepper(trace, at=at, title=title, most=max(1, len(rows)))
    box = QuorumBox(rows, cursor=steps.cursor, topology=topology, queue=queue)
    return QuorumView(box, steps)
