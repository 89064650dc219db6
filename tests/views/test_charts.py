"""Charts are checked by their column data; how they look is for eyes."""

from __future__ import annotations

from workbench.scenarios import run
from workbench.trace.braking import blocked_intervals, held_by
from workbench.trace.fold import Scope
from workbench.views import theme
from workbench.views.chart_box import ChartedStage
from workbench.views.charts import (
    CreditChart,
    busiest_link,
    credit_chart,
    credit_steps,
    figure_at,
    throughput_chart,
)
from workbench.views.stage_widget import StageWidget

LINK = Scope("link", "c1", 0, "q", "broker", 1)


def source(chart, name):
    """Column data of the glyph of that name."""
    return dict(next(item for item in chart.renderers if item.name == name).data_source.data)


def test_each_end_has_a_line_of_its_own(racing):
    """The sender's credit and the receiver's differ while a frame is in flight."""
    steps = credit_steps(racing.rows, LINK)
    assert steps["receiver"] == [(0, 3), (1040, 2), (1040, 6), (1080, 5)]
    assert steps["sender"] == [(500, 3), (540, 2), (580, 1)]
    chart = credit_chart(racing.rows)
    assert source(chart, "sender")["ms"] == [0.5, 0.54, 0.58, 250.0]
    assert source(chart, "sender")["value"] == [3, 2, 1, 1]


def test_a_blocked_interval_is_shaded_with_its_brake(story):
    """From the transfer that took the last credit to the flow that gave more."""
    run = story()
    run.transfer(0, "sent", 1, 0)
    run.t_us = 900
    run.flow(1, "received", 5)
    run.t_us = 2000
    run.transfer(2, "sent", 2, 4)
    assert blocked_intervals(run.rows, held_by(run.rows, LINK)) == [(0, 900, "link-credit")]
    chart = credit_chart(run.rows)
    assert source(chart, "held: link-credit") == {"left": [0.0], "right": [0.9]}


def test_brakes_differ_in_hatch_where_they_share_a_colour():
    """Grey prints and colour-blind eyes tell brakes apart."""
    looks = [(style.colour, style.hatch) for style in theme.BRAKE_STYLES.values()]
    hatches = [style.hatch for style in theme.BRAKE_STYLES.values()]
    assert len(set(looks)) == len(looks)
    assert len(set(hatches)) >= len(hatches) - 1


def test_the_cursor_is_moved(racing):
    """One property of one span."""
    chart = CreditChart(racing.rows)
    chart.move(4)
    cursor = next(item for item in chart.figure.center if getattr(item, "name", "") == "cursor")
    assert cursor.location == 0.58


def test_a_still_of_the_chart_has_its_cursor_at_the_step(racing):
    """`figure_at` needs no widget and no kernel."""
    cursor = next(item for item in figure_at(racing.rows, 8).center if item.name == "cursor")
    assert cursor.location == 250.0


def test_a_trace_without_links_makes_an_empty_chart(story):
    """Nothing to draw is no error."""
    assert busiest_link([]) is None
    assert credit_chart(story().rows).title.text == "No link in these rows"


def test_values_stand_on_the_bars():
    """The throughput of each rule is printed, in the order given."""
    chart = throughput_chart({"one at a time": 990.4, "half": 8200})
    data = chart.renderers[0].data_source.data
    assert list(data["rule"]) == ["one at a time", "half"]
    assert list(data["words"]) == ["990", "8,200"]


def test_a_chart_below_a_stage_follows_step_and_branch():
    """Its cursor stands at the step's time, and it draws the branch that is shown."""
    desk = ChartedStage(StageWidget(run("credit", parameters={"messages": 9})))
    first = desk.chart
    reply = desk.stage.reply({"act": "grant", "value": 3, "branch": 0, "step": desk.stage.cursor})
    assert reply["type"] == "branch"
    desk.stage.branch = 1
    assert desk.chart is not first
    assert desk.run is desk.stage.run
    desk.stage.cursor = len(desk.run.rows) - 1
    cursor = next(item for item in desk.chart.figure.center if item.name == "cursor")
    assert cursor.location == desk.run.rows[-1].t_us / 1000
