"""Lesson 03's last parts: a queue that changes hands, and one queue before another."""

from pathlib import Path

import pytest

from workbench.capture.importer import import_capture
from workbench.exercises.progress import Progress
from workbench.exercises.question import judge
from workbench.lessons.lesson_03 import Handover, check, handovers, predict, rabbit_stop
from workbench.scenarios import run

CAPTURE = Path(__file__).resolve().parent.parent.parent / (
    "data/captures/rmq43_h_sac_handover.pcapng"
)


@pytest.fixture(scope="module")
def outright():
    """Detached with unsettled messages."""
    return run("handover", parameters={"way": "outright"})


@pytest.fixture(scope="module")
def graceful():
    """Stopped, settled, detached."""
    return run("handover", parameters={"way": "graceful"})


def test_what_was_not_acknowledged_is_delivered_again_in_its_old_order(outright):
    """The next consumer's first message is the lowest one that is unsettled."""
    story = Handover(outright)
    assert [one.message for one in story.of_next] == [0, 1, 2, 3, 4]
    assert (story.again, story.in_order) == (5, True)
    assert story.arrived_before_leaving == 3
    solution = predict.first_of_next.question(outright).solve()
    assert solution.answer == 0
    assert judge(5, solution).belief == "what was sent is done"
    assert judge(3, solution).belief == "only what was in flight comes back"


def test_a_graceful_hand_over_delivers_nothing_twice(graceful):
    """Stop, wait for the echo, acknowledge, detach: 0 redeliveries, order kept."""
    story = Handover(graceful)
    assert (story.again, story.in_order) == (0, True)
    assert [one.message for one in story.of_leaver + story.of_next] == list(range(10))
    assert predict.first_of_next.question(graceful).solve().answer == 5


def test_what_the_next_one_does_is_not_the_first_one_s_leaving(outright):
    """A stop of the waiting consumer before it says nothing about when the first one left."""
    quiet = outright.act(outright.start_seq, "stop", consumer="b")
    assert Handover(quiet).arrived_before_leaving == Handover(outright).arrived_before_leaving


def test_both_ways_stand_side_by_side(outright, graceful):
    """One line each, as text and as a table."""
    table = handovers(outright, graceful)
    assert table.lines == [
        ("outright", "0 to 4", "0 to 4", "5 messages", "kept"),
        ("graceful", "0 to 4", "5 to 9", "no messages", "kept"),
    ]
    assert table._repr_html_().count("<tr>") == 3


def test_another_number_of_messages_is_shown_as_it_is():
    """Nothing of the table is written down."""
    played = run("handover", parameters={"way": "outright", "messages": 7, "leave_after": 1})
    (line,) = handovers(played).lines
    assert line[1:3] != ("0 to 4", "5 to 9")
    assert line[3] == f"{Handover(played).again} messages"


# -- one queue before another -------------------------------------------------------------------


def grant(played, queue, link_credit=10):
    """At the end of the run so far."""
    return played.then("grant", link_credit=link_credit, queue=queue)


@pytest.fixture(scope="module")
def two():
    """Ten messages in each of two queues."""
    return run("two_queues")


def test_urgent_first_is_recognised(two):
    """Credit for the first queue, and for the second when it is empty."""
    verdict = check.urgent_first(grant(grant(two, "urgent"), "bulk"), log=Progress())
    assert verdict.right, verdict
    assert "10 urgent, 10 bulk" in verdict.text


def test_the_wrong_order_and_messages_left_are_told(two):
    """Each with the numbers."""
    mixed = two
    for queue in ("bulk", "urgent"):
        mixed = mixed.act(two.start_seq, "grant", link_credit=10, queue=queue)
    verdict = check.urgent_first(mixed, log=Progress())
    assert verdict.right is False
    too_soon = "bulk was granted credit before the last urgent message had come"
    assert f"10 messages of urgent came after the first of bulk: {too_soon}" in verdict.text
    # One link after the other, and never both with credit at once: what is told is true of it, too.
    in_turn = grant(grant(grant(two, "urgent", 5), "bulk"), "urgent", 5)
    verdict = check.urgent_first(in_turn, log=Progress())
    assert verdict.right is False
    assert f"5 messages of urgent came after the first of bulk: {too_soon}" in verdict.text
    left = check.urgent_first(grant(two, "urgent"), log=Progress())
    assert left.right is False
    assert "10 bulk still wait" in left.text
    assert check.urgent_first(two, log=Progress()).right is None


# -- a real broker ------------------------------------------------------------------------------


def test_rabbitmq_hands_over_as_the_lesson_says():
    """The stop is answered, settled, and the link detached before the next consumer is served."""
    rows = import_capture(CAPTURE).rows
    stop = rabbit_stop(rows)
    later = [row for row in rows if row.seq > stop.seq and row.is_frame]
    mine = [row.kind for row in later if row.connection == stop.connection]
    assert mine[:4] == ["flow", "disposition", "detach", "detach"]
    detached = next(row for row in later if row.kind == "detach" and row.from_peer == "broker")
    served = next(row for row in later if row.kind == "transfer")
    assert served.connection != stop.connection
    assert served.seq > next(row for row in later if row.kind == "detach").seq
    assert detached.connection == stop.connection


def test_a_trace_without_a_stop_is_told(two):
    """Asking for what is not there is answered in words."""
    with pytest.raises(ValueError, match="no flow in this trace stops a link"):
        rabbit_stop(two.rows)
