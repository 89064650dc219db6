"""Blocked has one meaning: something to send, and a brake other than `no-message`."""

from __future__ import annotations

from functools import cache

import pytest

from workbench import folds
from workbench.exercises import measure
from workbench.scenarios import run
from workbench.scenarios.big_trace import episodes
from workbench.trace import brakes
from workbench.trace.braking import blocked_intervals, blocked_us, held_by, links_of
from workbench.trace.fold import link_scope
from workbench.views.trace_charts import brake_chart, credit_chart

UNTIL_RELEASED = {"alarm": "session-window", "unconfirmed": "link-credit"}
"""An alarm, or a want of confirms, that is over inside the broker: a stall names it until the frame
comes that releases the sender; the brake meter, which sees inside, names what is left of it."""


@cache
def played():
    """One message of ten frames against windows of three, as a run; then runs with every brake."""
    parameters = {
        "messages": 1, "message_bytes": 4_500, "max_frame_size": 512, "client_window": 3,
        "link_credit": 1,
    }  # fmt: skip
    opened = [("open_window", {"frames": 3})] * 3
    ten_frames = run("windows", parameters=parameters).act_each(opened).rows
    return [ten_frames, *(episode.rows for episode in episodes())]


def by_release(spans):
    """Spans in order, those that follow each other with one release put together."""
    found = []
    for begin, end, brake in sorted(spans):
        name = UNTIL_RELEASED.get(brake, brake)
        if found and found[-1][1:] == (begin, name):
            begin = found.pop()[0]
        found.append((begin, end, name))
    return found


def shaded(chart):
    """What a chart shades, in ms, by brake."""
    return {
        one.name: {name: list(values) for name, values in one.data_source.data.items()}
        for one in chart.figure.renderers
        if one.name and one.name.startswith("blocked: ")
    }


def test_in_a_message_of_ten_frames_the_window_blocks_and_not_the_want_of_messages():
    """The rest of it is something to send, and needs no credit: its first frame has spent that."""
    rows = played()[0]
    sent = [row for row in rows if row.kind == "transfer" and row.event == "sent"]
    assert [row.brake for row in sent] == [
        "none", "none", "session-window", "none", "none", "session-window", "none", "none",
        "session-window", "no-message",
    ]  # fmt: skip
    assert sent[-1].brakes[0] == "no-message"


@pytest.mark.parametrize("number", range(15))
def test_charts_measures_and_stalls_agree_on_when_a_sender_is_blocked(number):
    """Row by row, in the folds, in what both charts shade and in what a lesson measures."""
    rows = played()[number]
    stalls = folds.stalls(rows)
    for link in links_of(rows):
        held = held_by(rows, link)
        for row, now in zip(rows, held, strict=True):
            if row.brake is not None and link_scope(row) == link:
                assert (row.brake, row.brakes) == (now.brake, now.brakes), row.seq
        spans = blocked_intervals(rows, held)
        place = (link.connection, link.session, link.link, link.link_sender)
        assert by_release(spans) == by_release(
            (one.start_us, one.end_us, one.brake)
            for one in stalls
            if one[1:5] == place and one.end_us > one.start_us
        )
        assert all(brakes.is_blocked(brake) for _, _, brake in spans)
        assert shaded(credit_chart(rows, link)) == shaded(brake_chart(rows, link))
        if link == next(iter(links_of(rows, sender="broker")), None):
            for brake, time_us in blocked_us(rows, held).items():
                assert measure.blocked_us(rows, brake) == time_us


def test_every_episode_is_asked():
    """The numbers of the test above are all there are, and somebody is blocked in most."""
    assert len(played()) == 15
    assert sum(bool(folds.stalls(rows)) for rows in played()) >= 10
