"""A get with a time-out under two sliders, time-out and round trip: the ending, and its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import ipywidgets as widgets

from .charts import Chart, outcome_map, say
from .controls import status
from .stage_widget import StageWidget
from .stills import Still

# The areas' edges are drawn through so many points; they have a bend.
_EDGE_POINTS = 40

_SLIDERS = {"flex": "1 1 260px", "max_width": "320px"}
_CHART = {"display": "block", "width": "520px", "max_width": "100%"}


class Reckoning(Protocol):
    """What this view is given: plays gets, and knows what should come of them (times in us)."""

    @property
    def names(self) -> Sequence[str]:
        """The endings: in time, crossed, nothing."""

    @property
    def timeouts_us(self) -> Sequence[int]:
        """Of the runs that are drawn."""

    @property
    def latencies_us(self) -> Sequence[int]:
        """Of the runs that are drawn; the round trip is twice that."""

    @property
    def most_us(self) -> int:
        """The longest time-out that is offered."""

    def play(self, timeout_us: int, latency_us: int) -> Any:
        """A run with that time-out over that wire."""

    @property
    def outcomes(self) -> dict[tuple[int, int], str]:
        """The ending of each run that is drawn, by (time-out, latency)."""

    def limits(self, latency_us: int) -> tuple[int, int]:
        """From which time-out on the message comes at all, and from which it comes in time."""

    def told(self, played: Any) -> str:
        """What came of a run, in one sentence."""


class TimeoutView(Still, widgets.VBox):
    """Sliders beside a chart of all endings, a line that tells this one, and its run on the stage.

    Args:
        plan: plays the gets.
        timeout_us, latency_us: chosen at first.
    """

    def __init__(self, plan: Reckoning, *, timeout_us: int, latency_us: int) -> None:
        self.plan = plan
        step = 100
        # A little more than the slowest wire of the drawn runs, so that no mark lies on the edge.
        self._most_latency_us = max(plan.latencies_us) * 5 // 4
        self.timeout = _slider(say("timeout.slider"), timeout_us, plan.most_us, step)
        self.latency = _slider(
            say("timeout.trip-slider"),
            2 * latency_us,
            2 * self._most_latency_us,
            2 * step,
            least=2 * step,
        )
        self.line = widgets.HTML(layout={"min_height": "28px"})
        self.chart = self._chart()
        self.run = plan.play(timeout_us, latency_us)
        self.stage = StageWidget(self.run, title=self._title(), acts=[])
        super().__init__(
            children=[
                widgets.Box(
                    [
                        widgets.VBox([self.timeout, self.latency, self.line], layout=_SLIDERS),
                        widgets.Box([self.chart.picture], layout=_CHART),
                    ],
                    layout={"flex_flow": "row wrap", "grid_gap": "4px 16px"},
                ),
                self.stage,
                self.chart.twin,
            ]
        )
        for slider in (self.timeout, self.latency):
            slider.observe(lambda _change: self._chosen(), names="value")
        self._tell()

    def _chart(self) -> Chart:
        plan = self.plan
        most = self._most_latency_us
        trips = [2 * most * number // _EDGE_POINTS for number in range(_EDGE_POINTS + 1)]
        low = [plan.limits(trip // 2) for trip in trips]
        right = plan.most_us
        edges = (
            ([_ms(in_time) for _, in_time in low], [_ms(right)] * len(low)),
            ([_ms(crossed) for crossed, _ in low], [_ms(in_time) for _, in_time in low]),
            ([0.0] * len(low), [_ms(crossed) for crossed, _ in low]),
        )
        runs = {
            (_ms(timeout), _ms(2 * latency)): ending
            for (timeout, latency), ending in plan.outcomes.items()
        }
        return outcome_map(
            runs,
            dict(zip(plan.names, edges, strict=True)),
            [_ms(trip) for trip in trips],
            across=say("timeout.across"),
            up=say("timeout.up"),
            now=self._now(),
            title=say("timeout.chart"),
        )

    def _now(self) -> tuple[float, float]:
        return _ms(self.timeout.value), _ms(self.latency.value)

    def _chosen(self) -> None:
        self.run = self.plan.play(self.timeout.value, self.latency.value // 2)
        self.chart.stand(*self._now())
        self.stage.show_run(self.run, title=self._title())
        self._tell()

    def _title(self) -> str:
        timeout, trip = self._now()
        return say("timeout.title", timeout=timeout, trip=trip)

    def _tell(self) -> None:
        self.line.value = status(self.plan.told(self.run))

    def __repr__(self) -> str:
        timeout, trip = self._now()
        head = say("timeout.now", timeout=timeout, trip=trip)
        head = f"{head} {self.plan.told(self.run)}"
        return f"{head}\n\n{self.chart.words}\n\n{self.stage.still()}"


def _ms(time_us: int) -> float:
    return time_us / 1000


def _slider(name: str, value: int, most: int, step: int, *, least: int = 0) -> Any:
    return widgets.IntSlider(
        value=value,
        min=least,
        max=most,
        step=step,
        description=name,
        continuous_update=False,
        style={"description_width": "initial"},
        layout={"width": "auto"},
    )
