"""A slider for the time of an fsync, and what a publisher reaches then, as chart and table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import ipywidgets as widgets

from workbench.notebook import WrongValueError
from workbench.scenarios.confirming import PIPELINED, Confirmed, publish_for
from workbench.trace.given import takes
from workbench.views.charts import curve_chart
from workbench.views.stills import Still

from .measure import milliseconds
from .table import Table, say, table_of

MOST_MS = 20
MILLISECOND = 1_000
SEND_US = 10  # what a message costs the publisher
SYNCS = 24  # so many fsyncs long is a run from which a rate is read
LEAST_US = 20_000  # and at least so long


def pipelined(cap: int, fsync_us: int) -> Confirmed:
    """A publisher with at most `cap` unconfirmed, over a queue with one replica, once it is steady.

    An fsync confirms many at a time, and two groups take turns, so that it is counted over pairs of
    fsyncs: a run that ends between the two would have one of them for nothing.
    """
    given = {"replicas": 1, "latency_us": 0, "send_us": SEND_US}
    virtual_us = max(LEAST_US, SYNCS * fsync_us)
    (result,) = publish_for(PIPELINED, n=cap, fsync_us=fsync_us, virtual_us=virtual_us, **given)
    fsyncs = sorted(set(result.confirmed_us))[1:]
    begin, end = fsyncs[0], fsyncs[(len(fsyncs) - 1) // 2 * 2]
    messages = sum(begin < one <= end for one in result.confirmed_us)
    return replace(result, messages=messages, seconds=(end - begin) / 1_000_000)


def sync_table(fsync_us: int, results: Mapping[int, Confirmed]) -> Table:
    """Rate, latency, and how many fsyncs a message waited for, by what may be in flight."""
    lines = []
    for cap, result in results.items():
        syncs = f"{result.mean_latency_us / fsync_us:.2f}" if fsync_us else say("syncs.no-fsync")
        latency = f"{milliseconds(round(result.mean_latency_us)):,.1f}"
        lines.append((str(cap), f"{result.rate:,.0f}", latency, syncs))
    return table_of("syncs", lines)


class SyncDesk(Still, widgets.VBox):
    """Rate against what may be in flight, for the fsync time of a slider.

    Args:
        caps: how many messages may be in flight, a point each.
        fsync_ms: at first.

    Attributes:
        slider: 0 to 20 ms.
        results: of the present position, by cap.
    """

    def __init__(self, caps: Sequence[int], fsync_ms: int) -> None:
        if not 0 <= fsync_ms <= MOST_MS:
            raise WrongValueError(say("syncs.illegal", fsync_ms=fsync_ms, most=MOST_MS))
        self.caps = tuple(caps)
        self.results: dict[int, Confirmed] = {}
        self.slider = widgets.IntSlider(
            value=fsync_ms,
            min=0,
            max=MOST_MS,
            description=say("syncs.slider"),
            continuous_update=False,
            tooltip=say("syncs.slider-tip", most=MOST_MS),
            style={"description_width": "initial"},
            layout={"width": "420px"},
        )
        self._chart = widgets.VBox([])
        self._table = widgets.HTML()
        self._seen: dict[int, dict[int, Confirmed]] = {}
        super().__init__(children=[self.slider, self._chart, self._table])
        self.slider.observe(lambda _change: self._show(), names="value")
        self._show()

    @property
    def table(self) -> Table:
        """The results as a table."""
        return sync_table(self.slider.value * MILLISECOND, self.results)

    def _show(self) -> None:
        fsync_us = self.slider.value * MILLISECOND
        if fsync_us not in self._seen:
            self._seen[fsync_us] = {cap: pipelined(cap, fsync_us) for cap in self.caps}
        self.results = self._seen[fsync_us]
        curves = {say("syncs.confirmed"): [(cap, one.rate) for cap, one in self.results.items()]}
        if fsync_us:
            each = 1_000_000 / fsync_us
            curves[say("syncs.by-one")] = [(cap, cap * each) for cap in self.caps]
            curves[say("syncs.by-two")] = [(cap, cap * each / 2) for cap in self.caps]
        chart = curve_chart(
            curves,
            across=say("syncs.across"),
            up=say("syncs.up"),
            title=say("syncs.title", ms=self.slider.value),
            top=2.1 * max((one.rate for one in self.results.values()), default=1)
            if fsync_us
            else None,
            height=280,
        )
        old = self._chart.children
        self._chart.children = [chart]
        for child in old:
            child.close()
        # The class gives a table in a widget the look that it has in an output cell.
        table = self.table._repr_html_()
        self._table.value = f'<div role="status" class="jp-RenderedHTMLCommon">{table}</div>'

    def __repr__(self) -> str:
        return f"{say('syncs.now', ms=self.slider.value)}\n{self.table}"


@takes
def sync_desk(caps: Sequence[int], fsync_ms: int) -> SyncDesk:
    """A slider over the fsync time.

    Args:
        caps: how many messages may be in flight, a point each.
        fsync_ms: where the slider stands at first.
    """
    return SyncDesk(caps, fsync_ms)
