"""A stage with a credit chart below it, whose cursor is where the stage stands."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from .bokeh_widget import ChartWidget
from .charts import CreditChart
from .stage_widget import StageWidget
from .stills import Still

HEIGHT = 190
"""Of the chart, in pixels: both are then on one screen."""


class ChartedStage(Still, widgets.VBox):
    """A stage, and below it link credit over time of the branch that is shown.

    Attributes:
        stage: the picture.
        chart: of its run.
    """

    def __init__(self, stage: StageWidget) -> None:
        self.stage = stage
        self._rows = stage.run.rows
        self.chart = CreditChart(self._rows, height=HEIGHT)
        super().__init__(children=[stage, ChartWidget(self.chart.figure)])
        stage.observe(lambda _change: self._draw(), names=["branch", "cursor", "scene"])
        self._draw()

    @property
    def run(self) -> Any:
        """The run that is shown."""
        return self.stage.run

    def _draw(self) -> None:
        """Draw the branch that is shown now, and the cursor where it stands."""
        if self.stage.run.rows is not self._rows:
            self._rows = self.stage.run.rows
            self.chart = CreditChart(self._rows, height=HEIGHT)
            old = self.children[1]
            self.children = [self.stage, ChartWidget(self.chart.figure)]
            old.close()
        self.chart.move(self.stage.cursor + 1)

    def still(self) -> str:
        """What the picture shows now, as text."""
        return self.stage.still()

    def __repr__(self) -> str:
        return self.still()
