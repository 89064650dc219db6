"""What lesson 04 asks, shows and checks: read off runs, and judged by them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from workbench import presets
from workbench.capture.importer import import_capture
from workbench.exercises import windows_check, windows_predict, windows_runs
from workbench.exercises.progress import Progress
from workbench.exercises.question import judge
from workbench.exercises.windows_runs import (
    GENEROUS,
    at_start,
    disobeyed,
    halfway,
    id_table,
    lane_runs,
    lane_us,
    lanes,
    layer_table,
    rabbit_cut,
    refused_at,
)
from workbench.frontends.windows import Windows
from workbench.scenarios import run

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data" / "captures"
LARGE = {"messages": 1, "message_bytes": 4500, "max_frame_size": 512, "client_window": 3}
PRESETS = pytest.mark.parametrize("preset", ["rmq4.0", "rmq4.3"])


def solved(asking, *args, **kwargs):
    """The solution of a question, without its widget."""
    return asking.question(*args, **kwargs).solve()


def told(solution, answer) -> str:
    """What a learner reads who gives that answer; it must not be right."""
    verdict = judge(answer, solution)
    assert verdict.right is False
    return f"{verdict.belief}: {verdict.text}"


# -- predictions --------------------------------------------------------------------------------


@PRESETS
@pytest.mark.parametrize(("window", "frames"), [(3, 3), (5, 5), (40, 10)])
def test_a_message_stops_where_the_window_ends(preset, window, frames):
    """Ten frames: as many pass as the window lets through, and never more than there are."""
    begun = run("windows", preset, {**LARGE, "client_window": window})
    solution = solved(windows_predict.stops_at, begun, 1)
    assert solution.answer == frames
    assert "takes 10 frames" in solution.reason
    if frames < 10:
        assert told(solution, 10).startswith(windows_predict.COUNTS_MESSAGES)
        assert told(solution, 1).startswith("a message is a frame")


@PRESETS
def test_credit_does_not_open_a_window(preset):
    """The flow repeats window 0, so nothing follows; whoever thinks otherwise is named."""
    stopped = at_start(run("windows", preset, LARGE), "grant", link_credit=1)
    solution = solved(windows_predict.more_credit, stopped, 5)
    assert solution.answer == 0
    assert told(solution, 3).startswith(windows_predict.CREDIT_OPENS)
    assert told(solution, 5).startswith("credit counts frames")


@PRESETS
@pytest.mark.parametrize("first", [0, 4294967290])
def test_a_window_is_reckoned_from_both_ids(preset, first):
    """4 + 8 − 10 = 2, wherever the numbers begin."""
    given = {"messages": 30, "client_window": 10, "link_credit": 30, "broker_first_id": first}
    solution = solved(windows_predict.worked_out, run("windows", preset, given), 4, 8)
    assert solution.answer == 2
    assert told(solution, 8).startswith(windows_predict.WINDOW_IS_SET)
    assert told(solution, 18).startswith("windows add up")


@PRESETS
@pytest.mark.parametrize(("window", "left"), [(400, 200), (10, 5), (7, 3)])
def test_the_broker_opens_its_window_at_half(preset, window, left):
    """The setting moves the answer; the beliefs move with it."""
    given = {"consumers": 0, "publisher": True, "broker_window": window}
    solution = solved(windows_predict.reopens_at, run("windows", preset, given), 450)
    assert solution.answer == left
    assert told(solution, window - 1).startswith("after every frame")
    assert told(solution, 0).startswith("waits until it is used up")


@pytest.mark.parametrize("batch", [256, 30])
def test_what_leaves_the_queue_is_one_batch(batch):
    """max_queue_credit of the preset reaches the answer and its reason."""
    numbers = replace(presets.get("rmq4.3"), max_queue_credit=batch)
    given = {"messages": 1000, "client_window": 5, "link_credit": GENEROUS}
    solution = solved(windows_predict.held, run("windows", numbers, given))
    assert solution.answer == batch
    assert f"max_queue_credit, {batch}," in solution.reason
    assert f"{batch - 5} wait in the session" in solution.reason
    assert told(solution, 5).startswith("nothing leaves that cannot be sent")
    assert told(solution, 1000).startswith("credit empties the queue")


@PRESETS
def test_under_an_alarm_a_publisher_waits_and_a_consumer_does_not(preset):
    """Nothing goes out although there is credit; what was granted comes in."""
    both = run("windows", preset, {"publisher": True, "messages": 20})
    waits = solved(windows_predict.obeys, both, 50)
    assert waits.answer == 0
    assert told(waits, 50).startswith("credit is enough")
    goes_on = solved(windows_predict.consumers, both, 10)
    assert goes_on.answer == 10
    assert told(goes_on, 0).startswith(windows_predict.WINDOW_STOPS_ALL)


@PRESETS
@pytest.mark.parametrize("window", [400, 12])
def test_a_window_s_worth_of_frames_is_tolerated(preset, window):
    """400 by default; another window, another tolerance."""
    both = run("windows", preset, {"publisher": True, "broker_window": window})
    solution = solved(windows_predict.tolerated, both, 500)
    assert solution.answer == window
    assert "amqp:session:window-violation" in solution.reason
    assert told(solution, 0).startswith("the first frame too many ends it")
    assert told(solution, 500).startswith("nobody counts")


def test_another_tolerance_in_the_mechanism_is_another_answer(monkeypatch):
    """The answer is counted in the run: a broker that tolerates nothing gives zero."""
    monkeypatch.setattr(
        Windows, "shut", lambda self, session: (_forget(session), self._tell_closed(session))
    )
    monkeypatch.setattr(
        Windows,
        "_tell_closed",
        lambda self, session: (session.set_incoming_window(0), session.flow()),
        raising=False,
    )
    both = run("windows", "rmq4.3", {"publisher": True})
    assert solved(windows_predict.tolerated, both, 500).answer == 0


def _forget(session) -> None:
    session.counters.frames_allowed = session.counters.frames_in


@PRESETS
def test_a_second_session_passes_the_first(preset):
    """All of its messages come beside one that is full; no second socket is opened."""
    stuck = run("windows", preset, {"messages": 100, "client_window": 5, "link_credit": 100})
    solution = solved(windows_predict.express, stuck)
    assert solution.answer == 3
    assert "session 2" in solution.reason
    assert "1 socket" in solution.reason
    assert told(solution, 0).startswith("the window is the connection's")


def test_a_real_broker_goes_on_with_a_message_that_was_paid_for():
    """Credit 0 in the middle of a message: the rest follows all the same (capture e)."""
    capture = import_capture(CAPTURES / "rmq43_e_large_message_split.pcapng")
    solution = solved(windows_predict.real_split, capture.rows)
    assert solution.answer == 8
    assert told(solution, 0).startswith("credit 0 stops a message")
    with pytest.raises(ValueError, match="no flow in this trace"):
        rabbit_cut(run("windows").rows)


# -- tables -------------------------------------------------------------------------------------


def test_both_ids_stand_crosswise_once_the_wire_is_empty():
    """One end's next-outgoing-id is the other's next-incoming-id, across the wrap-around."""
    given = {"messages": 30, "client_window": 10, "link_credit": 30, "broker_first_id": 4294967290}
    client, broker = id_table(halfway(run("windows", "rmq4.3", given), 4, 8)).lines
    assert (client[1], client[2]) == (broker[2], broker[1])
    assert client[3] == broker[4]


def test_an_express_lane_helps_against_a_slow_session_and_not_against_a_slow_reader():
    """The urgent message waits for the burst, or for nobody; the socket is the same."""
    session = lane_runs(100, session_us=500)
    behind, beside = (
        lane_us(played, link)
        for played, link in zip(session.values(), ("out", "out2"), strict=True)
    )
    assert behind == 1000 + 101 * 500
    assert beside == 1000 + 500
    reader = lane_runs(100, reader_us=500)
    both = {
        lane_us(played, link) for played, link in zip(reader.values(), ("out", "out2"), strict=True)
    }
    assert both == {behind}
    assert "51.5" in str(lanes(100, session_us=500))


def test_each_scarce_thing_has_a_brake_and_a_place_of_its_own():
    """Credit keeps messages in the queue, a window in the session, a slow writer in the writer."""
    lines = {line[0]: line for line in layer_table(600).lines}
    brakes = [line[1] for line in lines.values()]
    assert brakes == ["link-credit", "session-window", "tcp"]
    assert [int(line[3]) > 0 for line in lines.values()] == [False, True, True]
    assert [int(line[4]) > 0 for line in lines.values()] == [False, False, True]
    assert int(lines["little credit"][5]) == 590


# -- checks -------------------------------------------------------------------------------------


def verdict(check, *args, **kwargs):
    return check(*args, log=Progress(), **kwargs)


def test_a_message_in_helpings_is_judged_by_what_was_announced_and_what_came():
    """Nothing done, too large a helping, too few, and all of it."""
    begun = run("windows", "rmq4.3", LARGE)
    check = windows_check.in_helpings
    assert verdict(check, begun, frames=4).right is None
    granted = at_start(begun, "grant", link_credit=1)
    few = verdict(check, granted, frames=4)
    assert (few.right, "3 frames" in few.text) == (False, True)
    greedy = verdict(check, granted.then("open_window", frames=100), frames=4)
    assert "announces 100; 4 is the most" in greedy.text
    helped = granted
    for _ in range(2):
        helped = helped.then("open_window", frames=4)
    assert verdict(check, helped, frames=4).right
    assert not verdict(check, helped, frames=3).right


def test_emptying_a_queue_under_an_alarm_is_judged_step_by_step():
    """Alarm, credit, settlement and a message that waits: each that is missing is named."""
    both = run("windows", "rmq4.3", {"publisher": True, "messages": 20})
    check = windows_check.under_alarm
    assert verdict(check, both).right is None
    assert "No alarm" in verdict(check, both.then("grant", link_credit=1)).text
    alarmed = at_start(both, "alarm")
    assert "20 are still in the queue" in verdict(check, alarmed).text
    granted = alarmed.then("grant", link_credit=20)
    assert "20 are not acknowledged" in verdict(check, granted).text
    settled = granted.then("acknowledge")
    assert "Publish something too" in verdict(check, settled).text
    done = settled.then("publish", count=5)
    right = verdict(check, done)
    assert right.right
    assert "no frames left" in right.text
    assert "cleared" in verdict(check, done.then("clear")).text
    over = settled.then("publish", count=500).then("ignore_window")
    assert not verdict(check, over).right


def test_overtaking_needs_a_full_session_and_another_that_sends():
    """The first must stand still at its window when the second's message leaves."""
    begun = run("windows", "rmq4.3", {"messages": 40, "client_window": 6})
    check = windows_check.overtakes
    assert verdict(check, begun).right is None
    assert "never used up" in verdict(check, at_start(begun, "grant", link_credit=5)).text
    full = at_start(begun, "grant", link_credit=40)
    assert "nothing came on another session" in verdict(check, full).text
    assert verdict(check, full.then("begin_session")).right
    opened = full.then("open_window", frames=2).then("begin_session")
    assert "went on before" in verdict(check, opened).text


@pytest.mark.parametrize("latency_us", [500, 1000])
def test_the_smallest_window_is_searched_by_running(latency_us):
    """One number passes; one less is too small, one more is not the smallest."""
    given = {"latency_us": latency_us, "messages": 120}
    check = windows_check.smallest_window
    right = [n for n in range(1, 60) if verdict(check, n, **given).right]
    assert len(right) == 1
    (best,) = right
    assert "finds it closed" in verdict(check, best - 1, **given).text
    assert "there is a smaller one" in verdict(check, best + 1, **given).text
    assert verdict(check, ..., **given).right is None
    assert verdict(check, -1, **given).right is None
    # A round trip and the time for one message, twice, for the window opens at half.
    pace_us = presets.get("rmq4.3").queue_deliver_us
    assert abs(best - 2 * (2 * latency_us // pace_us)) <= 4


def test_a_check_wants_a_run_of_its_own_scenario():
    """Another desk is told so, and nothing is recorded."""
    log = Progress()
    assert windows_check.overtakes(run("credit"), log=log).right is None
    assert log.records == []


def test_the_shared_runs_end_where_the_cells_look():
    """`disobeyed` ends a session; `last` is where the run rests."""
    ended = disobeyed(run("windows", "rmq4.3", {"publisher": True}), 1000)
    assert [refused_at(ended)] == [row.seq for row in windows_runs.ends(ended.rows)]
    assert ended.last == ended.last
