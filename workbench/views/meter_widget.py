"""The brake meter in a notebook: which brake is on at the stepper's step, and which one binds.

The meter follows the stepper in the browser; the kernel is not asked for a step.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from workbench.trace.fold import Scope
from workbench.trace.schema import Row

from .brake_chart import BrakeChart
from .meter_doc import meter_doc, meter_words
from .static_html import asset, script
from .stepper_widget import StepperWidget, stepper
from .stills import Still


class BrakeMeter(anywidget.AnyWidget):
    """A line for each brake, with its counter as a bar, and a sentence that names the binding one.

    Attributes:
        doc: the meter's document (see `meter_doc`).
        cursor: the step shown, as the stepper counts.
        link: place of the link in `doc["links"]`.
    """

    _esm = script("meter.js")
    _css = asset("meter.css")

    doc = traitlets.Dict().tag(sync=True)
    cursor = traitlets.Int(0, help="step shown, 0 is the start").tag(sync=True)
    link = traitlets.Int(0, help="place of the link in doc['links']").tag(sync=True)

    def __init__(
        self, rows: Sequence[Row], *, link: Scope | str | None = None, cursor: int = 0
    ) -> None:
        doc = meter_doc(rows, link=link)
        super().__init__(doc=doc, cursor=cursor, link=doc["link"])

    def follow(self, other: StepperWidget) -> BrakeMeter:
        """Show the step that a stepper shows, from now on."""
        self.cursor = other.cursor
        self._linked = widgets.jslink((other, "cursor"), (self, "cursor"))
        return self

    def show(self, rows: Sequence[Row], cursor: int) -> None:
        """Show another run, the same link of it if it has one of that name."""
        names = [one["name"] for one in self.doc["links"]]
        doc = meter_doc(rows)
        found = [one["name"] for one in doc["links"]]
        before = names[self.link] if self.link < len(names) else None
        with self.hold_sync():
            self.link = found.index(before) if before in found else doc["link"]
            self.cursor = cursor
            self.doc = doc

    def still(self, step: int | None = None) -> str:
        """What the meter shows at a step, as text; at its own if None."""
        return meter_words(self.doc, self.cursor if step is None else step, self.link)


class MeterView(Still, widgets.VBox):
    """A stepper with a brake meter above it, and perhaps a chart above both.

    Args:
        meter: follows the stepper.
        steps: the stepper.
        chart: drawn first; its cursor follows the stepper, too.
    """

    def __init__(
        self, meter: BrakeMeter, steps: StepperWidget, chart: BrakeChart | None = None
    ) -> None:
        self.meter = meter.follow(steps)
        self.stepper = steps
        self.chart = chart
        children: list[Any] = [meter, steps]
        if chart is not None:
            from .bokeh_widget import ChartWidget

            chart.follow(steps)
            words = widgets.HTML(f"<pre>{html.escape(str(chart))}</pre>")
            children.insert(0, ChartWidget(chart.figure))
            children.insert(1, widgets.Accordion(children=[words], titles=("The chart in words",)))
        super().__init__(children=children)

    def still(self) -> str:
        """Meter and stepper at the present step, as text."""
        parts = [self.meter.still(self.stepper.cursor)]
        if self.chart is not None:
            parts.append(str(self.chart))
        return "\n\n".join([*parts, self.stepper.still()])

    def __repr__(self) -> str:
        return self.still()


def brake_meter(
    trace: Any,
    *,
    at: int | None = None,
    link: Scope | str | None = None,
    chart: bool = False,
    title: str = "",
) -> MeterView:
    """A stepper over a run, with a meter that says at every step which brake is on.

    Args:
        trace: a run (anything with `rows`), or rows in order of `seq`.
        at: `seq` of the row to begin at.
        link: the link whose sender is looked at first; the meter offers every other.
        chart: draw credit, window and unconfirmed over time as well; call `notebook_output()`
            before.
        title: of the stepper.

    Raises:
        ValueError: the run has no such link; the text lists those it has.
    """
    rows = list(getattr(trace, "rows", trace))
    steps = stepper(trace, at=at, title=title, most=max(1, len(rows)))
    meter = BrakeMeter(rows, link=link, cursor=steps.cursor)
    return MeterView(meter, steps, BrakeChart(rows, link) if chart else None)
