"""What lesson 04 asks, shows and checks: read off runs, and judged by them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lessons.asking import judged, solved, told
from workbench import presets
from workbench.capture.importer import import_capture
from workbench.exercises.measure import stalls_us
from workbench.exercises.progress import Progress
from workbench.frontends.windows import Windows
from workbench.lessons.lesson_04 import (
    GENEROUS,
    at_start,
    check,
    disobeyed,
    predict,
    rabbit_cut,
    refused_at,
    transfers,
)
from workbench.scenarios import run
from workbench.trace.brakes import LINK_CREDIT, SESSION_WINDOW
from workbench.trace.schema import CLIENT

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data" / "captures"
LARGE = {"messages": 1, "message_bytes": 4500, "max_frame_size": 512, "client_window": 3}
PRESETS = pytest.mark.parametrize("preset", ["rmq4.0", "rmq4.3"])


# -- predictions --------------------------------------------------------------------------------


@PRESETS
@pytest.mark.parametrize(("window", "frames"), [(3, 3), (5, 5), (40, 10)])
def test_a_message_stops_where_the_window_ends(preset, window, frames):
    """Ten frames: as many pass as the window lets through, and never more than there are."""
    begun = run("windows", preset, {**LARGE, "client_window": window})
    solution = solved(predict.stops_at, begun, 1)
    assert solution.answer == frames
    assert "takes 10 frames" in solution.reason
    if frames < 10:
        assert told(solution, 10).startswith("the window counts messages")
        assert told(solution, 1).startswith("a message is a frame")


@PRESETS
def test_credit_does_not_open_a_window(preset):
    """The flow repeats window 0, so nothing follows; whoever thinks otherwise is named."""
    stopped = at_start(run("windows", preset, LARGE), "grant", link_credit=1)
    solution = solved(predict.more_credit, stopped, 5)
    assert solution.answer == 0
    assert told(solution, 3).startswith("credit opens the window")
    assert told(solution, 5).startswith("credit counts frames")


@PRESETS
@pytest.mark.parametrize("first", [0, 4294967290])
def test_a_window_is_reckoned_from_both_ids(preset, first):
    """4 + 8 − 10 = 2, wherever the numbers begin."""
    given = {"messages": 30, "client_window": 10, "link_credit": 30, "broker_first_id": first}
    solution = solved(predict.worked_out, run("windows", preset, given), 4, 8)
    assert solution.answer == 2
    assert told(solution, 8).startswith("the window is what the flow says")
    assert told(solution, 18).startswith("windows add up")


@PRESETS
@pytest.mark.parametrize(("window", "left"), [(400, 200), (10, 5), (7, 3)])
def test_the_broker_opens_its_window_at_half(preset, window, left):
    """The setting moves the answer; the beliefs move with it."""
    given = {"consumers": 0, "publisher": True, "broker_window": window}
    solution = solved(predict.reopens_at, run("windows", preset, given), 450)
    assert solution.answer == left
    assert told(solution, window - 1).startswith("after every frame")
    assert told(solution, 0).startswith("waits until it is used up")


@pytest.mark.parametrize("latency_us", [1_000, 10_000, 500_000])
def test_the_credit_of_one_link_ends_before_rabbitmq_s_window(latency_us):
    """170 are fewer than half of 400: however late a flow comes, the window does not close."""
    given = {"consumers": 0, "publisher": True, "publish_us": 100, "latency_us": latency_us}
    played = at_start(run("windows", "rmq4.3", given), "publish", count=1000)
    held = stalls_us(played, "out")
    assert SESSION_WINDOW not in held
    assert (LINK_CREDIT in held) is (latency_us > 1_000)
    narrow = at_start(run("windows", "rmq4.3", {**given, "broker_window": 10}), "publish", count=99)
    assert SESSION_WINDOW in stalls_us(narrow, "out")


@pytest.mark.parametrize("batch", [256, 30])
def test_what_leaves_the_queue_is_one_batch(batch):
    """max_queue_credit of the preset reaches the answer and its reason."""
    numbers = replace(presets.get("rmq4.3"), max_queue_credit=batch)
    given = {"messages": 1000, "client_window": 5, "link_credit": GENEROUS}
    solution = solved(predict.held, run("windows", numbers, given))
    assert solution.answer == batch
    assert f"max_queue_credit, {batch}," in solution.reason
    assert f"{batch - 5} wait in the session" in solution.reason
    assert told(solution, 5).startswith("nothing leaves that cannot be sent")
    assert told(solution, 1000).startswith("credit empties the queue")


@PRESETS
def test_under_an_alarm_a_publisher_waits_and_a_consumer_does_not(preset):
    """Nothing goes out although there is credit; what was granted comes in."""
    both = run("windows", preset, {"publisher": True, "messages": 20})
    waits = solved(predict.obeys, both, 50)
    assert waits.answer == 0
    assert told(waits, 50).startswith("credit is enough")
    goes_on = solved(predict.consumers, both, 10)
    assert goes_on.answer == 10
    assert told(goes_on, 0).startswith("a closed window stops everything")


@PRESETS
@pytest.mark.parametrize("window", [400, 12])
def test_a_window_s_worth_of_frames_is_tolerated(preset, window):
    """400 by default; another window, another tolerance."""
    both = run("windows", preset, {"publisher": True, "broker_window": window})
    solution = solved(predict.tolerated, both, 500)
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
    assert solved(predict.tolerated, both, 500).answer == 0


def _forget(session) -> None:
    session.counters.frames_allowed = session.counters.frames_in


@PRESETS
def test_a_second_session_passes_the_first(preset):
    """All of its messages come beside one that is full; no second socket is opened."""
    stuck = run("windows", preset, {"messages": 100, "client_window": 5, "link_credit": 100})
    solution = solved(predict.express, stuck)
    assert solution.answer == 3
    assert "session 2" in solution.reason
    assert "1 socket" in solution.reason
    assert told(solution, 0).startswith("the window is the connection's")


def test_a_real_broker_goes_on_with_a_message_that_was_paid_for():
    """Credit 0 in the middle of a message: the rest follows all the same (capture e)."""
    capture = import_capture(CAPTURES / "rmq43_e_large_message_split.pcapng")
    solution = solved(predict.real_split, capture.rows)
    assert solution.answer == 8
    assert told(solution, 0).startswith("credit 0 stops a message")
    with pytest.raises(ValueError, match="no flow in this trace"):
        rabbit_cut(run("windows").rows)


# -- checks -------------------------------------------------------------------------------------


def test_emptying_a_queue_under_an_alarm_is_judged_step_by_step():
    """Alarm, credit, settlement and a message that waits: each that is missing is named."""
    both = run("windows", "rmq4.3", {"publisher": True, "messages": 20})
    assert judged(check.under_alarm, both).right is None
    assert "No alarm" in judged(check.under_alarm, both.then("grant", link_credit=1)).text
    alarmed = at_start(both, "alarm")
    assert "20 are still in the queue" in judged(check.under_alarm, alarmed).text
    granted = alarmed.then("grant", link_credit=20)
    assert "20 are not acknowledged" in judged(check.under_alarm, granted).text
    settled = granted.then("acknowledge")
    assert "Publish something too" in judged(check.under_alarm, settled).text
    done = settled.then("publish", count=5)
    right = judged(check.under_alarm, done)
    assert right.right
    assert "no frames left" in right.text
    assert "cleared" in judged(check.under_alarm, done.then("clear")).text
    over = settled.then("publish", count=500).then("ignore_window")
    assert not judged(check.under_alarm, over).right


@PRESETS
def test_what_left_before_the_alarm_was_heard_does_not_wait(preset):
    """The act comes after the alarm, and its messages leave all the same; later ones wait."""
    both = run("windows", preset, {"publisher": True, "messages": 20})
    alarmed = at_start(both, "alarm").act(both.start_seq, "publish", count=3)
    settled = alarmed.then("grant", link_credit=20).then("acknowledge")
    assert len(transfers(settled.rows, CLIENT)) == 3
    verdict = judged(check.under_alarm, settled)
    assert verdict.right is False
    assert "nothing waits" in verdict.text
    later = judged(check.under_alarm, settled.then("publish", count=2))
    assert later.right
    assert "3 frames left the publisher, and 2 messages wait" in later.text


def test_overtaking_needs_a_full_session_and_another_that_sends():
    """The first must stand still at its window when the second's message leaves."""
    begun = run("windows", "rmq4.3", {"messages": 40, "client_window": 6})
    assert judged(check.overtakes, begun).right is None
    assert "never used up" in judged(check.overtakes, at_start(begun, "grant", link_credit=5)).text
    full = at_start(begun, "grant", link_credit=40)
    assert "nothing came on another session" in judged(check.overtakes, full).text
    assert judged(check.overtakes, full.then("begin_session")).right
    opened = full.then("open_window", frames=2).then("begin_session")
    assert "went on before" in judged(check.overtakes, opened).text


def test_the_smallest_window_is_searched_by_running():
    """One number passes; one less is too small, one more is not the smallest."""
    given, latency_us = {"latency_us": 500, "messages": 60}, 500
    # A round trip and the time for one message, twice, for the window opens at half.
    about = 2 * (2 * latency_us // presets.get("rmq4.3").queue_deliver_us)
    tried = range(about - 5, about + 6)
    (best,) = [n for n in tried if judged(check.smallest_window, n, **given).right]
    assert "finds it closed" in judged(check.smallest_window, best - 1, **given).text
    assert "there is a smaller one" in judged(check.smallest_window, best + 1, **given).text
    assert judged(check.smallest_window, ..., **given).right is None
    assert judged(check.smallest_window, -1, **given).right is None


def test_a_check_wants_a_run_of_its_own_scenario():
    """Another desk is told so, and nothing is recorded."""
    log = Progress()
    assert check.under_alarm(run("credit"), log=log).right is None
    assert log.records == []


def test_the_shared_run_ends_where_the_cell_looks():
    """`disobeyed` ends a session, and a run in which none ends says so."""
    both = run("windows", "rmq4.3", {"publisher": True})
    ended = disobeyed(both, 1000)
    assert ended.rows[refused_at(ended)].kind == "end"
    with pytest.raises(ValueError, match="ends no session"):
        refused_at(both)
