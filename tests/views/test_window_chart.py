"""The chart of a session's window: every number in it stands in the rows."""

from __future__ import annotations

import itertools

import pytest

from workbench.scenarios import run
from workbench.views.window_chart import (
    HELD,
    RECEIVER,
    SENDER,
    closed_intervals,
    window_chart,
    window_steps,
)


@pytest.fixture(scope="module")
def published():
    """A client that publishes 60 messages to a broker with a window of 10."""
    given = {"consumers": 0, "publisher": True, "broker_window": 10}
    begun = run("windows", "rmq4.3", given)
    return begun.act(begun.start_seq, "publish", count=60)


def test_the_receiver_s_line_is_a_saw_between_the_window_and_its_half(published):
    """It falls by one with each frame and jumps up by itself; the client's is the same, later."""
    steps = window_steps(published.rows)
    values = [value for _, value in steps[RECEIVER]]
    falls = [b - a for a, b in itertools.pairwise(values) if b < a]
    assert set(falls) == {-1}
    assert (min(values), max(values)) == (5, 10)
    assert min(value for _, value in steps[SENDER]) == 0


def test_closed_time_is_shaded_and_put_down_to_an_alarm_only_if_one_was_on(published):
    """The client finds the window closed again and again; with an alarm the name changes."""
    rows = published.rows
    shaded = closed_intervals(rows, window_steps(rows)[SENDER])
    assert {brake for _, _, brake in shaded} == {"session-window"}
    assert all(end > begin for begin, end, _ in shaded)
    begun = run("windows", "rmq4.3", {"publisher": True})
    alarmed = begun.act(begun.start_seq, "alarm")
    alarmed = alarmed.act(alarmed.rows[-1].seq, "grant", link_credit=5)
    found = closed_intervals(alarmed.rows, window_steps(alarmed.rows)[SENDER])
    assert [brake for _, _, brake in found] == ["alarm"]


def test_messages_held_in_a_session_have_a_line_where_the_client_s_window_is_drawn():
    """251 behind a window of five; the broker's own window has no such line."""
    given = {"messages": 400, "client_window": 5, "link_credit": 1000}
    rows = run("windows", "rmq4.3", given).rows
    steps = window_steps(rows, "client")
    assert max(value for _, value in steps[HELD]) == 251
    assert HELD not in window_steps(rows)
    chart = window_chart(rows, "client")
    assert {item.label.value for item in chart.legend[0].items} >= {HELD, RECEIVER, SENDER}


def test_lines_are_told_apart_without_colour(published):
    """Each has a dash of its own, and a name in the legend."""
    chart = window_chart(published)
    lines = [one.glyph for one in chart.renderers if type(one.glyph).__name__ == "Step"]
    dashes = [tuple(line.line_dash) for line in lines]
    assert len(set(dashes)) == len(dashes) == 2
    assert any("held: session-window" in item.label.value for item in chart.legend[0].items)


def test_a_session_that_is_not_there_is_refused(published):
    """With the session's name in the text."""
    with pytest.raises(ValueError, match="session 3 on c1"):
        window_chart(published, session=3)
