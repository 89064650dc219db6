"""What lesson 06 asks and judges: read off runs of the model."""

import pytest

from tests.lessons.asking import judged, solved, told
from workbench.lessons.lesson_06 import (
    ack_table,
    check,
    flooded,
    flooded_at_once,
    handover_table,
    pace_table,
    predict,
)
from workbench.scenarios import run

SMALL = {"message_bytes": 0, "credit": 8, "more_after": 4, "max_link_credit": 8}


def chain(preset="rmq4.3", **parameters):
    """Everything open, nothing published."""
    return run("chain", preset, {**SMALL, **parameters})


@pytest.mark.parametrize(("preset", "credit", "kept"), [("rmq3.5.5", 200, 4), ("rmq4.3", 400, 2)])
def test_a_queue_that_hangs_takes_two_credits_of_publishes(preset, credit, kept):
    """400 and 800, as on real brokers: 0 at the reader, the credit below 0 at the channel."""
    begun = run("chain", preset, {"message_bytes": 0})
    solution = solved(predict.chain_takes, begun, 3 * credit)
    assert solution.answer == 2 * credit
    assert told(solution, credit).startswith("one credit for the whole way")
    assert told(solution, 3 * credit).startswith("credit stops nobody")
    assert f"{kept} grants in the end" in solution.reason
    assert f"stopped at 0; the channel handed on what it still got, to {credit} below" in (
        solution.reason
    )


def test_a_store_that_hangs_takes_a_third_credit():
    """2,000 and twice 200 in 3.5.5; here 24 and twice 8."""
    begun = chain(
        message_bytes=4096,
        persistent=True,
        store_credit=24,
        store_more_after=4,
        socket_octets=0,
        service_us=0,
    )
    solution = solved(predict.store_takes, begun, 60)
    assert solution.answer == 24 + 2 * 8
    assert told(solution, 24).startswith("the store's credit is all")
    assert told(solution, 2 * 8).startswith("it is as with the queue")


def test_over_0_9_1_every_lane_stops_and_over_1_0_one():
    """The same work at the same time: none of five arrive, and all five."""
    begun = chain(beside=True)
    above = solved(predict.other_lane, begun, 30, 5)
    below = solved(predict.other_link, begun, 30, 5)
    assert (above.answer, below.answer) == (0, 5)
    assert told(above, 5).startswith("the slow channel alone stops")
    assert told(below, 0).startswith("a stall holds the connection")


def test_acknowledgements_wait_behind_publishes_over_0_9_1_alone():
    """The prefetch, and everything."""
    begun = chain(beside=True, consume=True, prefetch=6, ready=30, processing_us=500)
    behind = solved(predict.ack_behind, begun, 40)
    assert behind.answer == 6
    assert "6 acknowledgements" in behind.reason
    assert told(behind, 30).startswith("acknowledgements have a way of their own")
    clients = flooded_at_once(begun, 40).world.peers
    assert clients["c2"].consumer("consumer").received == 30
    apart = chain(
        beside=True, consume=True, consumer_apart=True, prefetch=6, ready=30, processing_us=500
    )
    assert solved(predict.ack_behind, apart, 40).answer == 30


def test_a_new_prefetch_is_for_consumers_that_begin_later():
    """Whoever is there keeps the old one."""
    solution = solved(predict.too_late, run("prefetch", "rmq4.3"), 5, 20)
    assert solution.answer == 5
    assert told(solution, 20).startswith("a new limit holds at once")
    assert told(solution, 25).startswith("limits add up")


@pytest.mark.parametrize(("preset", "held"), [("rmq4.0", 5), ("rmq4.3", 10), ("rmq3.8.4", 5)])
def test_a_shared_prefetch_is_shared_by_version(preset, held):
    """Measured: 5 and 0 on 4.0.5, 5 and 5 on 4.3.6."""
    assert solved(predict.in_all, run("prefetch", preset), 5).answer == held


def test_a_cancel_hands_over_without_order_and_a_closed_channel_with_it():
    """Messages 5 to 9, then 0 to 4, then 10: as on real brokers."""
    begun = run("handover_091", "rmq4.3")
    assert solved(predict.first_after, begun, "cancel").answer == 5
    assert solved(predict.first_after, begun, "close").answer == 0
    lines = [line[1:] for line in handover_table().lines]
    assert lines == [
        ("5 to 9, 0 to 4, 10 to 14", "5", "lost"),
        ("0 to 14", "5", "kept"),
        ("5 to 9", "0", "kept"),
    ]


def test_a_slow_queue_sets_the_pace_of_its_connection_over_0_9_1():
    """The second queue is as slow as the first; over 1.0 it is as fast as before."""
    table = pace_table((10, 200), publish=60, credit=8, more_after=4, max_link_credit=8)
    fast, slow = ([float(cell.replace(",", "")) for cell in line[1:]] for line in table.lines)
    assert slow[1] < fast[1] / 4
    assert slow[3] == fast[3]


def test_an_acknowledgement_waits_for_every_publish_before_it():
    """Each costs its service time over 0-9-1, beyond what the credit lets through at once."""
    lines = ack_table((0, 900), service_us=50).lines
    alone, behind = ([float(cell.split()[0]) for cell in line[1:]] for line in lines)
    assert alone[0] == alone[1] == behind[1]
    assert behind[0] > alone[0]


def test_the_check_wants_a_way_past_a_queue_that_hangs():
    """What was read before the reader stopped has passed."""
    begun = chain(beside=True)
    assert judged(check.passed, begun, 5).right is None
    assert judged(check.passed, flooded(begun, 10), 5).text.startswith("Only 10 messages")
    assert judged(check.passed, flooded(begun, 40, others=5), 5).right is False
    first = begun.then("publish", queue="second", count=5)
    assert "does not hang" in judged(check.passed, first, 5).text
    assert judged(check.passed, flooded(first, 40), 5).right
