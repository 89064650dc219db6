"""What lesson 08 asks and judges: read off runs of the model."""

import pytest

from tests.lessons.asking import judged, solved, told
from workbench.lessons.lesson_08 import check, filled, memory_table, predict
from workbench.scenarios import run


@pytest.fixture(scope="module")
def begun():
    """Three connections, nothing published."""
    return run("memory", "rmq4.3")


def test_an_alarm_comes_out_of_what_is_added_up(begun):
    """Each message counts with what is kept about it; the table follows the messages."""
    solution = solved(predict.fills, begun, 100)
    assert solution.answer == "about 39"
    assert told(solution, "about 100").startswith("payload is all that counts")
    small = run("memory", "rmq4.3", {"message_bytes": 100})
    assert solved(predict.fills, small, 200).answer == "about 63"
    lines = memory_table(begun, (10, 39, 100)).lines
    assert [line[4] for line in lines] == ["none", "none", "memory"]
    assert [line[5] for line in lines] == ["running", "running", "blocked"]
    assert [line[6:] for line in lines][-1] == ("blocking", "blocking")


def test_only_who_publishes_under_an_alarm_is_told(begun):
    """One of three, and its state is another than theirs."""
    solution = solved(predict.who_is_told, begun, 100)
    assert solution.answer == 1
    assert "c1 blocked, c2 blocking, c3 blocking" in solution.reason
    assert told(solution, 3).startswith("every connection is told")


def test_b13_a_consumer_goes_on_until_its_connection_publishes(begun):
    """All of 20; after one publish none."""
    before, after = solved(predict.goes_on, begun, 100), solved(predict.one_publish, begun, 100)
    assert (before.answer, after.answer) == (20, 0)
    assert told(before, 0).startswith("an alarm stops every connection")
    assert told(after, 20).startswith("consuming is not publishing")


def test_a71_a_connection_can_be_opened_under_an_alarm(begun):
    """The article says that it cannot; it is blocked at its first publish."""
    solution = solved(predict.newcomer, begun, 100)
    assert solution.answer == "it is opened, and blocked when it publishes"
    assert "*blocking*; with its first publish it is *blocked*" in solution.reason
    refused = "its connection is not opened before the alarm is over"
    assert told(solution, refused).startswith("no connection can be opened")


def test_the_check_wants_an_alarm_that_ends_by_itself(begun):
    """By a consumer, and the next look at the memory; a switch does not count."""
    assert judged(check.over, begun).right is None
    full = filled(begun, 60)
    assert "on still" in judged(check.over, full).text
    assert "no alarm" in judged(check.over, filled(begun, 5)).text
    drained = full.then("consume", connection="c2").then("wait", ms=1_000)
    assert judged(check.over, drained).right
    assert "by hand" in judged(check.over, full.then("clear")).text
