"""A socket that publishes and acknowledgements share: two sliders beside what a consumer gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets as widgets

from workbench.views.charts import Chart, bar_chart
from workbench.views.controls import status
from workbench.views.stills import Still

from .table import say

_BESIDE = {"flex": "1 1 300px", "max_width": "360px"}
_CHART = {"display": "block", "width": "560px", "max_width": "100%"}


class SharedSocket(Still, widgets.VBox):
    """How deep the socket is, how many publishes go for each acknowledgement, and the bars.

    Args:
        consumed: plays a run and gives the messages that its consumer got, of the octets that the
            socket takes and the publishes for each acknowledgement.
        beside: what a consumer gets otherwise, by name: the bars that stay.
        sockets: octets that are offered.
        shares: publishes for each acknowledgement that are offered.
        octets, share: chosen at first.
        after: what is to be said of the messages that the consumer got, in words.

    Attributes:
        beside: as given.
        socket, share: the sliders.
        said, line: what is chosen, and what comes of it: the words, and the widget that shows them.
        chart: the bars.
    """

    still_is_prose = True

    def __init__(
        self,
        consumed: Callable[[int, int], int],
        *,
        beside: Mapping[str, int],
        sockets: Sequence[int],
        shares: Sequence[int],
        octets: int,
        share: int,
        after: Callable[[int], str],
    ) -> None:
        self._consumed = consumed
        self.beside = dict(beside)
        self._after = after
        self._known: dict[tuple[int, int], int] = {}
        self.socket = _slider(say("socket.octets"), sockets, octets)
        self.share = _slider(say("socket.share"), shares, share)
        self.line = widgets.HTML()
        self.chart: Chart = self._drawn()
        self._place = widgets.VBox([self.chart], layout=_CHART)
        controls = widgets.VBox([self.socket, self.share, self.line], layout=_BESIDE)
        super().__init__([widgets.Box([controls, self._place], layout={"flex_flow": "row wrap"})])
        for slider in (self.socket, self.share):
            slider.observe(lambda _change: self._draw(), names="value")

    @property
    def now(self) -> int:
        """Messages that the consumer gets with what is chosen."""
        chosen = self.socket.value, self.share.value
        if chosen not in self._known:
            self._known[chosen] = self._consumed(*chosen)
        return self._known[chosen]

    def __repr__(self) -> str:
        return f"{self.said}\n{self.chart.words}"

    def _tell(self, text: str) -> None:
        self.said = text
        self.line.value = status(text)

    def _drawn(self) -> Chart:
        self._tell(say("socket.now", n=self.now, after=self._after(self.now)))
        bars = {**self.beside, say("socket.chosen"): self.now}
        return bar_chart(bars, unit=say("socket.unit"), width=540, height=260)

    def _draw(self) -> None:
        self._tell(say("socket.playing"))
        old, self.chart = self.chart, self._drawn()
        self._place.children = [self.chart]
        old.close()


def _slider(name: str, offered: Sequence[int], value: int) -> Any:
    """A slider over a few numbers, which plays nothing before it is let go."""
    return widgets.SelectionSlider(
        options=[(f"{one:,}", one) for one in offered],
        value=value,
        description=name,
        continuous_update=False,
        style={"description_width": "150px"},
        layout={"width": "340px"},
    )
