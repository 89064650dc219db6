"""Lesson 09: predictions, tables and checks; each answer comes from a run."""

import pytest

from tests.lessons.asking import judged, solved, told
from workbench import run
from workbench.lessons.lesson_09 import (
    check,
    faces,
    faces_table,
    full,
    overloaded,
    overloads_table,
    predict,
    windows_table,
)
from workbench.lessons.table import words_of


def said(question, key) -> str:
    """One of a question's choices, in its words."""
    return words_of("09")[question]["choices"][key]


@pytest.fixture(scope="module")
def hung():
    """A queue that hangs, in three protocols."""
    return overloaded(1000, window=50)


def test_c1_a_full_queue_ends_the_session_and_not_the_connection():
    """The article's word, *disconnected*, is one of the misconceptions."""
    solution = solved(predict.limit, full(stop=0, resume=0, most=10, window=0), publish=14)
    assert solution.answer == said("limit", "session")
    assert "says 506" in solution.reason
    assert "the queue holds 10. 14 messages had been sent" in solution.reason
    assert told(solution, said("limit", "connection")).startswith("the client is disconnected")


@pytest.mark.parametrize(("stop", "resume"), [(7, 5), (20, 3), (1, 1)])
def test_both_marks_are_strict(stop, resume):
    """The brake comes with the message above the high one, and goes with those below the low."""
    marks = full(stop=stop, resume=resume)
    assert solved(predict.stops_at, marks, publish=stop + 4).answer == stop + 1
    assert solved(predict.goes_on_at, marks, publish=stop + 4).answer == resume - 1


def test_a_window_is_the_producer_s_and_not_the_queue_s():
    """Three of six come into the queue that is free."""
    solution = solved(predict.free_queue, full(window=4), publish=8, free=6)
    assert solution.answer == 3
    assert told(solution, 6).startswith("a free queue is not held")


@pytest.mark.parametrize(
    ("window", "key"), [(6, "through"), (0, "ended"), (50, "ended")]
)  # fmt: skip
def test_who_waits_for_completions_survives_a_slow_consumer(window, key):
    """An old client does not, nor one whose window is larger than the room above the mark."""
    queue = full(window=window, most=14)
    solution = solved(predict.survives, queue, publish=40, every_us=2000)
    assert solution.answer == said("survives", key)


def test_two_windows_overshoot_the_mark_by_their_sum():
    """165, and not 150."""
    pair = full(stop=100, resume=70, window=50, second_window=15, pause_us=10)
    solution = solved(predict.overshoot, pair, publish=400)
    assert solution.answer == 165
    assert told(solution, 150).startswith("the larger window counts")


def test_d2_two_flows_add():
    """What a flow of AMQP 1.0 does is the misconception."""
    solution = solved(predict.two_grants, run("qpid_credit"), credit=4)
    assert solution.answer == 8
    assert told(solution, 4).startswith("the second sets")


def test_each_protocol_says_something_else_to_a_publisher_that_must_stop(hung):
    """Nothing, completions, credit; and who has no window is not stopped."""
    solution = solved(predict.holds_most, hung, publish=1000)
    assert solution.answer == "AMQP 0-9-1"
    lines = overloads_table(hung).lines
    assert [(line[1], line[3]) for line in lines] == [
        ("800", "credit_flow"), ("50", "window is full"), ("255", "too many unconfirmed"),
        ("1,000", "nothing: it goes on"),
    ]  # fmt: skip
    assert [line[2].partition(" ")[0] for line in lines] == [
        "nothing", "session.completed", "flow", "nothing",
    ]  # fmt: skip


def test_c17_the_java_broker_stops_a_session_of_0_10_and_a_link_of_1_0():
    """By credit both times; the same marks, and what was under way comes on top."""
    both = faces(publish=40, other=6, most=10)
    solution = solved(predict.other_queue, both, other=6)
    assert solution.answer == said("other-queue", "link")
    assert told(solution, "over neither").startswith("credit is credit")
    assert [line[0:1] + line[2:] for line in faces_table(both).lines] == [
        ("AMQP 0-10", "message.set-flow-mode; message.stop", "31", "0", "8",
         "message.flow: 2,147,483,647 messages"),
        ("AMQP 1.0", "flow: link-credit 0, drain", "31", "6", "8", "flow: link-credit 20,000"),
    ]  # fmt: skip


def test_the_most_in_a_queue_is_its_mark_and_the_window():
    """At worst; without a window it is the queue's limit."""
    table = windows_table((1, 3, 6, 0), publish=40, stop=7, resume=5, most=12)
    assert [line[2:] for line in table.lines] == [
        ("8", "it waits"), ("10", "it waits"), ("12", "its session ended"),
        ("12", "its session ended"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "right", "words"),
    [
        (..., None, "Put your answer"),
        (41, None, "A mark is a whole number from 1 to 40"),
        (29, False, "the queue stops when it holds 30"),
        (36, False, "ends in a lost session, after 41 messages"),
        (34, True, "never holds more than 39"),
        (35, True, "never holds more than 40"),
    ],
)
def test_a_mark_for_a_burst_is_judged_by_the_run(answer, right, words):
    """High enough for the burst, low enough for the window above it."""
    verdict = judged(check.stop_mark, answer, burst=30, window=5, most=40)
    assert (verdict.right, words in verdict.text) == (right, True)


@pytest.mark.parametrize(
    ("answer", "right", "words"),
    [
        (..., None, "Put your answer"),
        (0, None, "A window is a whole number"),
        (4, False, "there is a larger one"),
        (6, False, "the session ends"),
        (5, True, "12 at most; with one more the session is lost"),
    ],
)
def test_the_largest_window_is_judged_by_the_run(answer, right, words):
    """It, and the next larger one."""
    verdict = judged(check.largest_window, answer, stop=7, most=12, publish=60)
    assert (verdict.right, words in verdict.text) == (right, True)
