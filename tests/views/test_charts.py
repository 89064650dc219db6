"""Charts are checked by their column data and their words; how they look is for eyes."""

from __future__ import annotations

import gzip
import json

import ipywidgets
import pytest

from workbench.notebook import WrongValueError
from workbench.scenarios import run
from workbench.trace.braking import blocked_intervals, held_by
from workbench.trace.fold import Scope
from workbench.trace.schema import Row
from workbench.views import theme
from workbench.views.chart_box import ChartedStage
from workbench.views.charts import (
    MOST_POINTS,
    Stretch,
    bar_chart,
    curve_chart,
    number,
    outcome_map,
    points,
    time_chart,
)
from workbench.views.stage_widget import StageWidget
from workbench.views.trace_charts import (
    brake_chart,
    busiest_link,
    credit_chart,
    credit_steps,
    dips,
    held_chart,
    rate_chart,
)

LINK = Scope("link", "c1", 0, "q", "broker", 1)
HALF = 500_000


def source(chart, name):
    """Column data of the glyph of that name."""
    found = next(item for item in chart.figure.renderers if item.name == name)
    return dict(found.data_source.data)


def windows(*counts):
    """Windows of half a second with these messages."""
    return [(place * HALF, count) for place, count in enumerate(counts)]


# -- over time ----------------------------------------------------------------------------------


def test_each_end_has_a_line_of_its_own(racing):
    """The sender's credit and the receiver's differ while a frame is in flight."""
    steps = credit_steps(racing.rows, LINK)
    assert steps["receiver's view"] == [(0, 3), (1040, 2), (1040, 6), (1080, 5)]
    assert steps["sender's view"] == [(500, 3), (540, 2), (580, 1)]
    chart = credit_chart(racing)
    assert source(chart, "sender's view")["x"] == [0.5, 0.54, 0.58, 250.0]
    assert source(chart, "sender's view")["y"] == [3, 2, 1, 1]
    told = [line.split() for line in repr(chart).splitlines()]
    assert ["sender's", "view", "3", "1", "3", "1", "3"] in told


def test_a_link_is_chosen_by_its_name(racing):
    """One over which the broker sends as well as a client's; a name that is none is told."""
    assert credit_chart(racing, "q").words == credit_chart(racing, LINK).words
    assert brake_chart(racing, "q").words == brake_chart(racing, LINK).words
    for chart in (credit_chart, brake_chart):
        with pytest.raises(WrongValueError, match="no link 'x' sends in this run; there are: q"):
            chart(racing, "x")


def test_a_blocked_interval_is_shaded_with_its_brake(story):
    """From the transfer that took the last credit to the flow that gave more; the words say it."""
    told = story()
    told.transfer(0, "sent", 1, 0)
    told.t_us = 900
    told.flow(1, "received", 5)
    told.t_us = 2000
    told.transfer(2, "sent", 2, 4)
    assert blocked_intervals(told.rows, held_by(told.rows, LINK)) == [(0, 900, "link-credit")]
    chart = credit_chart(told.rows)
    assert source(chart, "blocked: link-credit") == {"left": [0.0], "right": [0.9]}
    assert "link-credit  0.9 ms of 2.0 ms  in 1, from 0.0 ms to 0.9 ms" in repr(chart)


def test_a_counter_that_is_not_known_makes_a_gap():
    """No line is drawn there, and its words leave it out."""
    chart = time_chart({"credit": [(0, None), (1000, 4)], "window": []}, end_us=2000)
    first, *known = source(chart, "credit")["y"]
    assert (first != first, known) == (True, [4, 4])
    assert "credit  not known  4       4        4     2" in repr(chart)
    assert "window" not in repr(chart)


def test_a_line_of_a_large_trace_is_aggregated_and_keeps_its_extremes():
    """A hundred thousand changes make some thousand points, the one peak among them."""
    steps = [(place, 1_000 if place == 54_321 else place % 7) for place in range(100_000)]
    chart = time_chart({"credit": steps}, end_us=100_000)
    assert points(chart) <= MOST_POINTS + 1
    assert max(source(chart, "credit")["y"]) == 1_000
    assert source(chart, "credit")["x"][0] == 0


def test_a_stretch_that_is_no_brake_bears_its_name_and_a_mark_its_text():
    """Nothing is told by the legend alone."""
    chart = time_chart(
        end_us=9_000, stretches=[(0, 1_000, "A"), (2_000, 3_000, "A")], marks=[(500, "cut")]
    )
    assert sorted(one.text for one in chart.figure.center if hasattr(one, "text")) == [
        "A", "A", "cut",
    ]  # fmt: skip
    assert not chart.figure.legend
    assert "A       2.0 ms of 9.0 ms  in 2, from 0.0 ms to 3.0 ms" in repr(chart)


def test_brakes_differ_in_hatch_where_they_share_a_colour():
    """Grey prints and colour-blind eyes tell brakes apart."""
    looks = [(style.colour, style.hatch) for style in theme.BRAKE_STYLES.values()]
    hatches = [style.hatch for style in theme.BRAKE_STYLES.values()]
    assert len(set(looks)) == len(looks)
    assert len(set(hatches)) >= len(hatches) - 1


def test_the_cursor_is_moved(racing):
    """One property of one span."""
    chart = credit_chart(racing.rows, at_us=0)
    chart.move(580)
    cursor = next(item for item in chart.figure.center if getattr(item, "name", "") == "cursor")
    assert cursor.location == 0.58


def test_a_chart_of_a_run_counts_time_as_its_stage_does():
    """From the end of the set-up; what stood then stands at 0, and rows alone count from theirs."""
    played = run("credit")
    played = played.act(played.start_seq, "grant", link_credit=4)
    set_up_us = played.rows[played.start_seq].t_us
    assert set_up_us > 0
    chart, whole = credit_chart(played, at_us=0), credit_chart(played.rows)
    mine, all_of_it = (source(one, "sender's view") for one in (chart, whole))
    kept = [x - set_up_us / 1000 for x in all_of_it["x"] if 1000 * x > set_up_us]
    assert mine["x"] == pytest.approx([0, *kept])
    assert mine["y"] == all_of_it["y"][-len(mine["y"]) :]
    blocked = source(chart, "blocked: link-credit")
    assert (blocked["left"][0], min(blocked["right"]) > 0) == (0, True)
    chart.move(set_up_us + 2_000)
    cursor = next(item for item in chart.figure.center if getattr(item, "name", "") == "cursor")
    assert cursor.location == 2


def test_a_chart_brings_bokeh_to_a_page_that_asks_for_it(racing, monkeypatch):
    """Once and packed; nothing of it is in the widget's state, which every chart has."""
    picture = credit_chart(racing).picture
    sent = []
    monkeypatch.setattr(picture, "send", lambda content, buffers: sent.extend(buffers))
    picture._handle_custom_msg({}, [])
    (packed,) = sent
    assert b"root.Bokeh" in gzip.decompress(packed)
    assert len(packed) < 500_000
    assert len(json.dumps(picture.get_state(), default=str)) < 5_000


def test_a_trace_without_links_makes_an_empty_chart(story):
    """Nothing to draw is no error."""
    assert busiest_link([]) is None
    assert repr(credit_chart(story().rows)) == "No link in these rows"


def test_a_chart_above_a_stage_follows_step_and_branch():
    """Its cursor stands at the step's time, and it draws the branch that is shown."""
    desk = ChartedStage(StageWidget(run("credit", parameters={"messages": 9})))
    first = desk.chart
    reply = desk.stage.reply({"act": "grant", "value": 3, "branch": 0, "step": desk.stage.cursor})
    assert reply["type"] == "branch"
    desk.stage.branch = 1
    assert desk.chart is not first
    above, stage, below = desk.children
    assert stage is desk.stage
    assert above.children == (desk.chart.picture,)
    assert below.children == (desk.chart.twin,)
    assert desk.run is desk.stage.run
    desk.stage.cursor = len(desk.run.rows) - 1
    cursor = desk.chart.figure.select_one({"name": "cursor"})
    rows, begins = desk.run.rows, desk.run.start_seq
    assert cursor.location == (rows[-1].t_us - rows[begins].t_us) / 1000


# -- the same in words --------------------------------------------------------------------------


def test_the_name_of_an_area_lies_over_no_run():
    """At the height that is farthest from the runs in it, where the area is wide enough."""
    runs = {(x, y): "late" for x in (1, 3) for y in (1, 2, 6, 9)}
    chart = outcome_map(
        runs, {"late": ([0] * 11, [9 - y / 2 for y in range(11)])}, list(range(11)),
        across="x", up="y", now=(1, 2),
    )  # fmt: skip
    (name,) = [one for one in chart.figure.center if getattr(one, "text", "") == "late"]
    assert name.y == 4


@pytest.mark.parametrize(
    ("chart", "told"),
    [
        (
            bar_chart({"one at a time": 990.4, "half": 8200}, title="Rates"),
            "Rates\n\n               messages per second\none at a time  990\nhalf           8,200",
        ),
        (
            curve_chart(
                {"a": [(1, 2), (8, 3)]}, measured={"b": [(8, 2.5)]}, across="n", up="m", title="C"
            ),
            "C (m)\n\nn  a  b\n1  2\n8  3  2.5",
        ),
        (
            outcome_map(
                {(1, 2): "late", (3, 2): "in time"}, {"in time": ([2, 2], [4, 4])}, [0, 4],
                across="x", up="y", now=(1, 2),
            ),
            "y \\ x  1     3\n2      late  in time",
        ),
    ],
    ids=["bars", "curves", "outcomes"],
)  # fmt: skip
def test_every_chart_has_its_numbers_as_words(chart, told):
    """On a page without a kernel, and below the picture for whom that is no help."""
    assert repr(chart) == told
    assert chart._still() == told
    text = chart.twin
    assert isinstance(text, ipywidgets.HTML)
    assert told.splitlines()[-1] in text.value


def test_a_value_is_written_as_short_as_it_can_be_told_apart():
    """Thousands have commas, small ones two digits."""
    assert [number(value) for value in (8_200.4, 3, 2.44, 0.031, None)] == [
        "8,200", "3", "2.4", "0.031", "not known",
    ]  # fmt: skip


def test_values_stand_on_the_bars():
    """In the order given."""
    data = bar_chart({"one at a time": 990.4, "half": 8200}).figure.renderers[0].data_source.data
    assert list(data["name"]) == ["one at a time", "half"]
    assert list(data["words"]) == ["990", "8,200"]


def test_long_names_below_bars_go_on_in_further_lines():
    """They would run into each other, and cut ones could be taken for each other.

    On a narrow page, too, which gives each of five bars 90 px.
    """
    long = ["it is on the disks of a majority", "it is on the disk of every replica"] * 2
    values = {f"{name} {n}": n for n, name in enumerate(long)}
    chart, short = bar_chart(values), bar_chart({"one at a time": 990.4, "half": 8200})
    names = list(chart.figure.renderers[0].data_source.data["name"])
    assert [" ".join(name.split()) for name in names] == list(values)
    assert all("\n" in name and max(map(len, name.split("\n"))) < 25 for name in names)
    assert chart.figure.height > short.figure.height
    assert next(iter(values)) in repr(chart)
    wide = bar_chart({f"waiting costs nothing ({n})": n for n in range(5)}, width=860)
    names = wide.figure.renderers[0].data_source.data["name"]
    assert max(len(line) for name in names for line in name.split("\n")) <= 12


# -- a whole trace ------------------------------------------------------------------------------


def test_a_dip_is_windows_in_a_row_with_clearly_less_than_usual():
    """From its first window to the end of its last; the rate is per second."""
    (dip,) = dips(windows(50, 50, 50, 20, 10, 50, 50, 50))
    assert (dip.name, dip.start_us, dip.end_us) == ("A", 3 * HALF, 5 * HALF)
    assert (dip.rate, dip.usual, dip.seconds) == (30.0, 100.0, 1.0)


def test_dips_have_letters_in_order_of_time():
    """The second one is B, however deep."""
    found = dips(windows(50, 50, 0, 0, 50, 50, 40, 40, 50, 50, 50))
    assert [(dip.name, dip.start_us) for dip in found] == [("A", 2 * HALF), ("B", 6 * HALF)]


@pytest.mark.parametrize(
    "counts",
    [
        (50, 50, 50, 10, 50, 50),  # one window alone
        (10, 10, 50, 50, 50, 50),  # the beginning
        (50, 50, 50, 50, 10, 10),  # the ending
        (50, 50, 49, 49, 50, 50),  # hardly less
        (50, 50),
        (50,),
        (),
    ],
)
def test_what_is_no_dip(counts):
    """A single window, a beginning, an ending, and what is hardly less than usual."""
    assert dips(windows(*counts)) == []


def test_a_burst_after_a_dip_does_not_make_dips_of_the_rest():
    """The usual rate is the middle one, not the mean."""
    found = dips(windows(50, 50, 0, 0, 500, 50, 50, 50, 50))
    assert [(dip.start_us, dip.end_us) for dip in found] == [(2 * HALF, 4 * HALF)]


def test_the_chart_has_a_point_for_each_window_and_a_shade_for_each_dip():
    """So many glyphs and the end of the line, and a letter that a person can name."""
    data = windows(50, 50, 50, 20, 10, 50, 50, 50)
    chart = rate_chart(data)
    assert points(chart) == len(data) + 2
    assert [item.text for item in chart.figure.center if hasattr(item, "text")] == ["A"]
    assert source(chart, "rate")["y"][:4] == [100.0, 100.0, 100.0, 40.0]
    assert source(chart, "rate")["x"][-1] == 4.0
    assert "A       1.0 s of 4.0 s  in 1, from 1.5 s to 2.5 s" in repr(chart)


def test_a_burst_does_not_flatten_the_dips():
    """The chart ends at twice the usual rate, and the burst has its number written to it."""
    chart = rate_chart(windows(50, 50, 20, 20, 900, 50, 50, 50))
    assert chart.figure.y_range.end == pytest.approx(2.1 * 100)
    words = [item.text for item in chart.figure.center if hasattr(item, "text")]
    assert [word for word in words if "1,800" in word]


def test_each_brake_has_a_lane_as_high_as_its_most_and_a_hatch_of_its_own():
    """One link beside sixty is as high as the sixty; nothing rests on colour alone."""
    rows = [
        {"window_start_us": 0, "brake": "link-credit", "links": 1},
        {"window_start_us": HALF, "brake": "alarm", "links": 60},
        {"window_start_us": HALF, "brake": "link-credit", "links": 1},
        {"window_start_us": 2 * HALF, "brake": "alarm", "links": 30},
    ]
    chart = held_chart(rows, window_us=HALF, end_us=3 * HALF)
    assert points(chart) == len(rows)
    bars = {bar.name: bar for bar in chart.figure.renderers}
    spans = {}
    for brake, bar in bars.items():
        data = bar.data_source.data
        pairs = zip(data["bottom"], data["top"], strict=True)
        spans[brake] = [round(top - bottom, 6) for bottom, top in pairs]
    assert spans == {"link-credit": [0.9, 0.9], "alarm": [0.9, 0.45]}
    told = set(chart.figure.yaxis[0].major_label_overrides.values())
    assert told == {"link-credit, up to 1", "alarm, up to 60"}
    assert len({bar.glyph.hatch_pattern for bar in bars.values()}) == len(bars)
    assert "alarm        1.0 s of 1.5 s  in 2, from 0.5 s to 1.5 s, up to 60 at once" in repr(chart)


def test_more_points_than_anybody_can_see_are_refused():
    """Aggregate first: the text says so."""
    with pytest.raises(ValueError, match="aggregate first"):
        rate_chart(windows(*[1] * (MOST_POINTS + 1)))
    rows = [{"window_start_us": n, "brake": "alarm", "links": 1} for n in range(MOST_POINTS + 1)]
    with pytest.raises(ValueError, match="aggregate first"):
        held_chart(rows, window_us=1, end_us=9)


def test_a_stretch_may_be_given_as_a_plain_tuple():
    """As `blocked_intervals` gives them."""
    plain = time_chart(end_us=9, stretches=[(0, 4, "alarm")])
    named = time_chart(end_us=9, stretches=[Stretch(0, 4, "alarm")])
    assert source(plain, "blocked: alarm") == source(named, "blocked: alarm")


def test_a_legend_stands_above_the_lines_and_takes_nothing_of_their_room():
    """Beside them it would leave a narrow page no room; two names stand in a row."""
    curves = {name: [(1, 2), (3, 4)] for name in ("one", "two", "three")}
    chart = curve_chart(curves, across="n", up="messages", title="Curves", height=300).figure
    (told,) = chart.legend
    assert told in chart.above
    assert chart.height == 300 + 2 * 26


def test_where_credit_is_not_known_any_more_no_chart_goes_on_with_it():
    """The line has a gap in both, and begins anew where it is told again."""

    def row(seq: int, credit: int | None) -> Row:
        ledger = {"delivery_count": seq, "available": 5, "link_credit": credit}
        return Row(
            run="x", seq=seq, t_us=1_000 * seq, vantage="wire", event="observed", frame_id=seq,
            protocol="amqp-1.0", from_peer="client", connection="c1", session=0, link="out",
            link_sender="client", attach_no=0, kind="transfer", frame={"handle": 0},
            unknown=() if credit is not None else ("link_credit",),
            ledger={name: value for name, value in ledger.items() if value is not None},
        )  # fmt: skip

    rows = [row(seq, credit) for seq, credit in enumerate((7, 6, None, None, 3))]
    for chart in (credit_chart(rows), brake_chart(rows)):
        drawn = [
            [None if y != y else y for y in line.data_source.data["y"]]
            for line in chart.figure.renderers
            if "y" in line.data_source.data and 7 in line.data_source.data["y"]
        ]
        assert drawn
        assert all(line[:4] == [7, 6, None, 3] for line in drawn)
