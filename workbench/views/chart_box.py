"""A credit chart beside a panel, made anew for each of its runs."""

from __future__ import annotations

import ipywidgets as widgets

from .charts import CreditChart
from .panel_model import PanelModel


class ChartBox:
    """A credit chart in a widget, made anew for each run."""

    def __init__(self, model: PanelModel) -> None:
        self._model = model
        self.widget = widgets.VBox([])
        self.show()

    def show(self) -> None:
        """Draw the current run."""
        from .bokeh_widget import ChartWidget

        self._chart = CreditChart(self._model.run.rows)
        self._chart.move(self._model.cursor)
        old = self.widget.children
        self.widget.children = [ChartWidget(self._chart.figure)]
        for child in old:
            child.close()

    def move(self, step: int) -> None:
        """Put the cursor at a step."""
        self._chart.move(step)
