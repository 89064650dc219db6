"""What lesson 08 asks and judges: read off runs of the model."""

import pytest

from tests.lessons.asking import judged, solved, told
from workbench.lessons.lesson_08 import (
    Figures,
    alarm_in,
    answers_table,
    asked_to_stop,
    check,
    filled,
    history_table,
    predict,
    tangled,
)
from workbench.scenarios import run
from workbench.scenarios.multicast import Compared

SMALL = {"messages": 400, "target": 160, "store_credit": 40, "store_regrant_after": 10}


@pytest.fixture(scope="module")
def begun():
    """Three connections, nothing published."""
    return run("memory", "rmq4.3")


def test_an_alarm_comes_out_of_what_is_added_up(begun):
    """Each message counts with what is kept about it."""
    solution = solved(predict.fills, begun, 150)
    assert solution.answer == "about 39"
    assert told(solution, "about 100").startswith("payload is all that counts")
    assert told(solution, "all 150").startswith("an alarm is a warning")
    small = run("memory", "rmq4.3", {"message_bytes": 100})
    assert solved(predict.fills, small, 200).answer == "about 63"


def test_only_who_publishes_under_an_alarm_is_told(begun):
    """One of three, and its state is another than theirs."""
    solution = solved(predict.who_is_told, begun, 150)
    assert solution.answer == 1
    assert "c1 blocked, c2 blocking, c3 blocking" in solution.reason
    assert told(solution, 3).startswith("every connection is told")


def test_b13_a_consumer_goes_on_until_its_connection_publishes(begun):
    """All of 20; after one publish none."""
    before, after = solved(predict.goes_on, begun, 150), solved(predict.one_publish, begun, 150)
    assert (before.answer, after.answer) == (20, 0)
    assert told(before, 0).startswith("an alarm stops every connection")
    assert told(after, 20).startswith("consuming is not publishing")


def test_a71_a_connection_can_be_opened_under_an_alarm(begun):
    """The article says that it cannot; it is blocked at its first publish."""
    solution = solved(predict.newcomer, begun, 150)
    assert solution.answer == "it is opened, and blocked when it publishes"
    assert "blocking; with its first publish it is blocked" in solution.reason
    refused = "its connection is not opened before the alarm is over"
    assert told(solution, refused).startswith("no connection can be opened")


def test_what_is_done_after_a_wait_is_done_then(begun):
    """While the alarm is on the broker looks at its memory once a second, and says so."""
    full = filled(begun, 150)
    waited = full.then("wait", ms=3_000)
    looks = [row for row in waited.rows if row.kind == "memory" and row.event == "note"]
    since_us = next(row.t_us for row in full.rows if row.event == "alarm-set")
    assert [row.t_us - since_us for row in looks] == [1_000_000, 2_000_000, 3_000_000]
    assert all(row.extra["held"] > row.extra["limit"] == 40_000 for row in looks)
    assert waited.then("consume").rows[len(waited.rows)].t_us >= looks[-1].t_us


def test_the_check_wants_an_alarm_that_ends_by_itself(begun):
    """By a consumer, and the next look at the memory; a switch does not count."""
    assert judged(check.over, begun).right is None
    full = filled(begun, 60)
    assert judged(check.over, full).right is None  # so the lesson's picture begins
    busy = full.then("publish", connection="c3")
    assert judged(check.over, busy).right is False
    assert "on still" in judged(check.over, busy).text
    assert "no alarm" in judged(check.over, filled(begun, 5)).text
    drained = full.then("consume", connection="c2").then("wait", ms=1_000)
    assert judged(check.over, drained).right
    assert "by hand" in judged(check.over, full.then("clear")).text


def test_d7_who_goes_on_is_served_until_the_broker_dies():
    """By 1.5; 1.8 looks after its request, and 2.0 makes none."""
    solution = solved(predict.heedless, asked_to_stop(client="heedless"))
    assert solution.answer == "its messages are taken, until the broker has no memory left"
    assert solution.seen.event == "crash"
    assert told(solution, "it stops: it was asked to").startswith("who is asked stops")
    later = {
        preset: solved(predict.heedless, asked_to_stop(preset, client="silent"))
        for preset in ("rmq1.8", "rmq2.0")
    }
    assert [one.answer.split(",")[0] for one in later.values()] == [
        "its channel or its connection is closed", "it is not read any more",
    ]  # fmt: skip
    assert "channel.close 406" in later["rmq1.8"].reason
    assert "It takes no more messages" in later["rmq2.0"].reason


def test_d8_an_alarm_is_over_when_the_machine_has_its_memory_back():
    """An acknowledgement after one second, two and three more, and the next look."""
    brake = asked_to_stop()
    solution = solved(predict.all_clear, brake)
    assert brake.rows[alarm_in(brake)].event == "alarm-set"
    assert [one.answer for one in solution.beliefs] == [2, 4]
    assert solution.answer == 7


def test_the_all_clear_says_why_the_look_before_it_comes_too_soon():
    """The memory is back a moment after somebody has looked: as the rows of the looks say."""
    brake = asked_to_stop()
    solution = solved(predict.all_clear, brake)
    since_us = brake.rows[alarm_in(brake)].t_us
    looks = [row for row in brake.rows if row.kind == "memory" and "spare" in row.extra]
    spare = {(row.t_us - since_us) // 1_000_000: row.extra["spare"] for row in looks}
    assert (spare[6], spare[7]) == (1400, 0)
    assert "is there after 6.01 s, and the look at 6 s came before that" in solution.reason
    assert "a little more than 1 s later" in predict.all_clear.question(brake).text


def test_d5_of_five_answers_one_stops_and_loses_nobody():
    """The disk, for time; the table has a row for each, and what each message became."""
    solution = solved(predict.answers, 60)
    assert solution.answer == "let messages go to disk"
    assert len(solution.beliefs) == 4
    lines = answers_table(60).lines
    assert [sum(map(int, line[1:5])) for line in lines] == [60] * 5
    assert [line[0] for line in lines if "dies" in line[-1]] == ["operator"]


def test_e18_e19_a_pass_ends_with_the_credit_unless_messages_were_handed_out():
    """40 of 240 ready ones; of those that were handed out all, without a look at credit."""
    ready = solved(predict.first_go, run("paging", "rmq3.5.5", SMALL))
    held = solved(predict.first_go, run("paging", "rmq3.5.5", {**SMALL, "held": 240}))
    assert (ready.answer, held.answer) == (40, 240)
    assert "10 a time, in 20 passes" in ready.reason
    assert told(ready, 240).startswith("the quota goes at once")
    assert told(held, 40).startswith("credit ends all paging")


def test_e24_e25_a_lost_mirror_lets_in_what_two_credits_allow():
    """10 until the channel is blocked, and 20 of the reader's; the others at its death."""
    given = {"credit": 20, "more_after": 5, "mirror_death_us": 5_000_000}
    solution = solved(predict.lost_mirror, run("mirrors", "rmq3.5.5", given), 70)
    assert solution.answer == 30
    assert "After 10 messages the channel" in solution.reason
    assert "40 messages came in that moment" in solution.reason
    assert told(solution, 70).startswith("who is lost holds nobody")


def test_the_check_wants_one_pass_and_no_larger_credit():
    """A credit for each message of the quota; embedded ones need none, and stay in RAM."""
    given = {"messages": 400, "target": 160, "message_bytes": 5_000}
    assert judged(check.passes, ..., **given).right is None
    assert "whole number from 1 to 400" in judged(check.passes, 0, **given).text
    assert "must be more messages" in judged(check.passes, 1, **{**given, "target": 400}).text
    assert "in 2 passes" in judged(check.passes, 239, **given).text
    assert "than 241 would do" in judged(check.passes, 241, **given).text
    done = judged(check.passes, 240, **given)
    assert done.right and "240 writes waiting" in done.text
    small = judged(check.passes, 2, **{**given, "message_bytes": 100})
    assert small.right and "400 contents are in RAM still" in small.text


def test_the_check_wants_the_mirror_that_blocks_and_no_other():
    """Two hang; only with one of them is the channel's credit used up."""
    begun = tangled()
    assert judged(check.blocker, begun).right is None
    assert "last step" in judged(check.blocker, begun.act(begun.start_seq, "publish")).text
    assert "with n4" in judged(check.blocker, begun.then("resume", node="n2")).text
    woken = judged(check.blocker, begun.then("resume", node="n4"))
    assert woken.right and "n2 hangs as well" in woken.text
    dead = judged(check.blocker, begun.then("cut_off", node="n4"))
    assert dead.right and "after 5 s" in dead.text
    both = begun.then("resume", node="n2").then("resume", node="n4")
    assert "laid hands on n2" in judged(check.blocker, both).text


def test_e12_the_check_wants_the_least_credit_and_tells_what_it_costs():
    """A burst passes with half of it on each of two hops; what then stands in mailboxes is RAM."""
    burst = {"publish": 250, "service_us": 2_000}
    assert judged(check.burst_credit, ..., **burst).right is None
    assert "a multiple of 50, up to 250" in judged(check.burst_credit, 60, **burst).text
    assert "after 200 messages" in judged(check.burst_credit, 100, **burst).text
    right = judged(check.burst_credit, 150, **burst)
    assert right.right and "249 messages stood in mailboxes" in right.text
    assert "298 messages of this one channel do, where 400 did" in right.text
    assert "There is a smaller one" in judged(check.burst_credit, 200, **burst).text


def test_a_figure_that_does_not_come_out_is_named():
    """By the run's own comparison; what was put in is no result."""
    one = {"unit": "s", "article": (100, 200)}
    figures = Figures(
        [
            Compared(what="a", computed=50, **one),
            Compared(what="b", computed=190, **one),
            Compared(what="c", computed=50, given=True, **one),
        ]
    )
    assert [line[-1] for line in figures.table.lines] == ["-50%", "within", "given"]
    assert "Put in: c," in figures.summary
    assert figures.summary.endswith("Does not come out: a (50 s, in the article 100 to 200).")


def test_the_history_has_a_row_for_each_release(monkeypatch):
    """What `history` says, in words."""
    (line,) = history_table_of(monkeypatch, "rmq1.8")
    assert line[0] == "RabbitMQ 1.8.0"
    assert line[2:5] == ("channel.flow (active=false)", "connection.close 503", "channel.close 406")
    assert line[-1] == "nothing, until the alarm is over"


def history_table_of(monkeypatch, *releases):
    """The lines of the table, of some releases only."""
    monkeypatch.setattr("workbench.scenarios.brakes_history.RELEASES", releases)
    return history_table().lines
