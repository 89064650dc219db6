"""A stage with a credit chart above it, whose cursor is where the stage stands."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from .charts import Chart
from .stage_widget import StageWidget
from .stills import Still
from .trace_charts import credit_chart

HEIGHT = 190
"""Of the chart, in pixels: it and the wire of the stage below are then on one screen."""


class ChartedStage(Still, widgets.VBox):
    """Link credit over time of the branch that is shown, and below it the stage.

    Attributes:
        stage: the picture.
        chart: of its run.
    """

    def __init__(self, stage: StageWidget) -> None:
        self.stage = stage
        self._rows = self._shown()
        self.chart = self._charted()
        # Boxes of their own: another chart must not take the stage's view with it.
        self._above, self._below = widgets.VBox(), widgets.VBox()
        self._put()
        super().__init__(children=[self._above, stage, self._below])
        stage.observe(lambda _change: self._draw(), names=["branch", "cursor", "scene"])
        self._draw()

    @property
    def run(self) -> Any:
        """The run that is shown."""
        return self.stage.run

    def _shown(self) -> Any:
        """The rows of the branch that is shown; what was recorded has no run."""
        return getattr(self.run, "rows", self.run)

    def _charted(self) -> Chart:
        return credit_chart(self.run, self.stage.first_link, at_us=0, height=HEIGHT)

    def _put(self) -> None:
        self._above.children = [self.chart.picture]
        self._below.children = [self.chart.twin]

    def _draw(self) -> None:
        """Draw the branch that is shown now, and the cursor where it stands."""
        if self._shown() is not self._rows:
            self._rows = self._shown()
            old, self.chart = self.chart, self._charted()
            self._put()
            old.close()
        if self._rows:
            self.chart.move(self._rows[min(self.stage.cursor, len(self._rows) - 1)].t_us)

    def still(self) -> str:
        """What the picture shows now, as text."""
        return self.stage.still()

    def __repr__(self) -> str:
        return self.still()
