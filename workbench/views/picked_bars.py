"""Bars of a chart that can be clicked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bokeh.models import TapTool

from .bokeh_widget import ChartWidget
from .charts import throughput_chart


def picked_bars(
    results: Mapping[str, float], use: Callable[[int], None], *, unit: str, title: str
) -> Any:
    """A widget with a bar for each name.

    Args:
        results: name to height, in the order in which the bars stand.
        use: is called with the place of the bar that was clicked, from 0.
        unit: of the values.
        title: above the bars.
    """
    chart = throughput_chart(results, unit=unit, title=title, width=860)
    bars = chart.renderers[0]
    chart.add_tools(TapTool(renderers=[bars]))

    def picked(_name: str, _old: Any, new: list[int]) -> None:
        if new:
            use(new[0])

    bars.data_source.selected.on_change("indices", picked)
    return ChartWidget(chart)
