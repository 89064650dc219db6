"""A get with a time-out: the runs' endings beside the reckoning, the question and the check."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenarios.endings import expected_ending
from workbench.exercises.progress import Progress
from workbench.exercises.question import judge
from workbench.exercises.timeout import ending_of, explained, named, timed_get
from workbench.lessons.lesson_03 import check, predict
from workbench.peers.getter import Ending
from workbench.views.timeout_view import TimeoutView

IN_TIME, CROSSED, NOTHING = map(named, Ending)


@pytest.fixture(scope="module")
def get():
    """The lesson's: a message after 5 ms."""
    return timed_get(publish_at_us=5000)


@pytest.mark.parametrize(
    ("timeout_us", "ending"), [(2000, NOTHING), (4500, CROSSED), (6000, CROSSED), (7000, IN_TIME)]
)
def test_three_endings(get, timeout_us, ending):
    """Nothing, crossed, in time: by how long the receiver waits (figure 2.44)."""
    assert ending_of(get.play(timeout_us, 1000)) == ending


def reckoned(get, timeout_us, latency_us):
    """Which ending must come, in words and without a run."""
    ending = expected_ending(
        timeout_us=timeout_us,
        latency_us=latency_us,
        there_us=get.there_us,
        deliver_us=get.preset.queue_deliver_us,
    )
    return named(ending)


@given(
    timeout_us=st.integers(0, 12_000),
    latency_us=st.integers(1, 8_000),
    publish_at_us=st.integers(0, 8_000),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_reckoning_is_what_the_runs_do(timeout_us, latency_us, publish_at_us):
    """For any time-out, wire and time of publishing: the analytic ending is the run's."""
    one = timed_get(publish_at_us=publish_at_us, most_us=100_000)
    # At the very microsecond of an edge either order of two events is right.
    if timeout_us not in one.limits(latency_us):
        assert reckoned(one, timeout_us, latency_us) == ending_of(one.play(timeout_us, latency_us))


@pytest.mark.parametrize("latency_us", [250, 1000, 3000])
def test_the_edges_of_the_areas_are_where_the_ending_turns(get, latency_us):
    """One microsecond to either side of an edge, and the ending is another."""
    crossed, in_time = get.limits(latency_us)
    assert ending_of(get.play(in_time + 1, latency_us)) == IN_TIME
    assert ending_of(get.play(in_time - 1, latency_us)) == CROSSED
    assert ending_of(get.play(crossed + 1, latency_us)) == CROSSED
    assert ending_of(get.play(crossed - 1, latency_us)) == NOTHING


def test_on_a_wire_that_is_slow_enough_something_always_comes(get):
    """The drain needs longer than the message to be published: *nothing* has no room."""
    assert get.limits(6000)[0] == 0
    assert ending_of(get.play(0, 6000)) == CROSSED


def test_a_message_that_is_there_early_waits_for_the_grant():
    """The sender cannot send before the flow has come, so the edge bends on a slow wire."""
    early = timed_get(publish_at_us=100)
    crossed, in_time = early.limits(3000)
    assert crossed == 0
    assert ending_of(early.play(in_time + 1, 3000)) == IN_TIME
    assert ending_of(early.play(in_time - 1, 3000)) == CROSSED


def test_every_ending_leaves_no_credit_behind(get):
    """link-credit is 0 at the receiver in each, and the words say which frame took it."""
    words = [explained(get.play(timeout, 1000)) for timeout in (2000, 4500, 8000)]
    assert all("link-credit is 0" in each for each in words)
    assert "a flow with delivery-count 1 came" in words[0]
    assert "drain was sent" in words[1]
    assert "the message came" in words[1]
    assert "drain was sent" not in words[2]


def test_the_question_is_answered_by_the_run(get):
    """Crossed: the message; with a shorter patience the same question has another answer."""
    solution = predict.crossing.question(get, 4500, 1000).solve()
    assert solution.answer == "the message"
    wrong = judge("a flow that gives the credit back", solution)
    assert wrong.belief == "a time-out is the end"
    early = predict.crossing.question(get, 1000, 1000).solve()
    assert early.answer == "a flow that gives the credit back"


def test_the_check_finds_the_shortest_time_outs_by_running_the_model(get):
    """Right to the microsecond; longer ones, shorter ones and no answers get words of their own."""

    def judged(*answers):
        return check.shortest_timeouts(*answers, get, latency_us=1000, log=Progress())

    at_all, in_time = get.limits(1000)
    assert judged(in_time, at_all).right
    assert judged(in_time + 1, at_all + 1).right
    assert "too short for the message to come in time" in judged(in_time - 2, at_all).text
    longer = judged(in_time, at_all + 2).text
    assert "enough for the message to come at all, but so is a shorter one" in longer
    assert judged(..., ...).right is None
    assert judged(-1, at_all).right is None
    assert judged("soon", at_all).right is None
    assert "legal: 0 to" in judged(10**12, at_all).text


def test_the_chart_has_the_same_endings_in_words(get):
    """A row a round trip, a column a time-out: the text twin of the marks."""
    _title, _blank, _head, *rows = TimeoutView(
        get, timeout_us=4500, latency_us=1000
    ).chart.words.splitlines()
    assert len(rows) == len(get.latencies_us)
    found = set()
    for row, latency in zip(rows, get.latencies_us, strict=True):
        _trip, *endings = re.split(r" {2,}", row)
        assert endings == [reckoned(get, timeout, latency) for timeout in get.timeouts_us]
        found.update(endings)
    assert found == {IN_TIME, CROSSED, NOTHING}


def now(view):
    """Where the mark of the present choice stands."""
    return dict(view.chart.figure.select_one({"name": "now"}).data_source.data)


def test_the_sliders_play_another_get(get):
    """Line, mark and stage follow; a page without a kernel keeps it all as text."""
    view = TimeoutView(get, timeout_us=4500, latency_us=1000)
    assert "crosses the drain" in view.line.value
    view.timeout.value = 8000
    assert "comes in time" in view.line.value
    assert now(view) == {"x": [8.0], "y": [2.0]}
    assert "time-out 8 ms" in view.stage.still()
    view.latency.value = 6000
    assert now(view)["y"] == [6.0]
    text = repr(view)
    assert "round trip 6 ms" in text
    assert view.chart.words in text
    assert not view.timeout.continuous_update


def test_the_chart_draws_areas_and_marks_of_three_shapes(get):
    """Every ending has a hatch for its area and a shape for its runs; none by colour alone."""
    chart = TimeoutView(get, timeout_us=4500, latency_us=1000).chart.figure
    names = {renderer.name: renderer.glyph for renderer in chart.renderers}
    endings = (IN_TIME, CROSSED, NOTHING)
    hatches = {names[f"area: {ending}"].hatch_pattern for ending in endings}
    markers = {names[f"runs: {ending}"].marker for ending in endings}
    assert (len(hatches), len(markers)) == (3, 3)
    drawn = sum(
        len(chart.select_one({"name": f"runs: {one}"}).data_source.data["x"]) for one in endings
    )
    assert drawn == len(get.timeouts_us) * len(get.latencies_us)
