"""What lesson 06 asks and judges: read off runs of the model."""

import pytest

from tests.lessons.asking import judged, solved, told
from workbench import stage
from workbench.lessons.lesson_06 import (
    check,
    flooded,
    flooded_at_once,
    handover_table,
    predict,
    receivers,
    senders_table,
)
from workbench.scenarios import run, two_senders

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
    beside = solved(predict.ack_behind, apart, 40)
    assert (beside.answer, beside.reason) == (30, "All 30: each acknowledgement was read.")


@pytest.mark.parametrize(
    ("there", "prefetch", "reason"),
    [
        (3, 6, "All 3, though 3 acknowledgements stand in the socket unread"),
        (30, 0, "All 30, though 30 acknowledgements stand in the socket unread"),
        (7, 6, "6. The consumer sent 6 acknowledgements; 6 of them stand in the socket"),
    ],
)
def test_what_needs_no_acknowledgement_is_not_said_to_be_acknowledged(there, prefetch, reason):
    """Where no more is ready than may be unacknowledged all of it comes, and nobody reads."""
    begun = chain(beside=True, consume=True, prefetch=prefetch, ready=there, processing_us=500)
    assert solved(predict.ack_behind, begun, 40).reason.startswith(reason)


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
    """Later messages come before those that are given back: as on real brokers."""
    begun = run("handover_091", "rmq4.3")
    assert solved(predict.first_after, begun, "cancel").answer == 5
    assert solved(predict.first_after, begun, "close").answer == 0
    lines = [line[1:] for line in handover_table().lines]
    assert lines == [
        ("5 to 14, 0 to 4", "5", "lost"),
        ("0 to 14", "5", "kept"),
        ("5 to 14", "0", "kept"),
    ]


@pytest.mark.slow
def test_two_senders_bring_in_four_times_as_much_over_1_0():
    """3.5 to 4.5 times at the article's disk; with a slower one it is more."""
    solution = solved(predict.four_times, 6_250, 60)
    assert solution.answer == 4
    assert told(solution, 1).startswith("all wait for the same disk")
    assert told(solution, 2).startswith("one of two targets is free")
    article, slower, printed = senders_table((6_250, 12_000), run_ms=60).lines
    assert 3.5 < float(article[5]) < 4.5
    assert float(slower[5]) > float(article[5])
    assert printed[5:] == ("3.93", "80")
    new_classic, new_quorum, old_classic, old_quorum = article[1:5]
    assert f"{old_classic} messages a second beside {old_quorum}." in solution.reason
    assert f"it is {new_classic} beside {new_quorum}." in solution.reason


def test_the_heads_of_the_two_senders_table_stand_over_the_articles_columns():
    """In the order in which the article's counts are kept, and a run's are counted."""
    spoken = {two_senders.AMQP_1_0: "1.0", two_senders.AMQP_0_9_1: "0-9-1"}
    columns = [f"{kind}, {spoken[protocol]}" for protocol, kind in two_senders.ARTICLE]
    table = senders_table((), run_ms=60)
    assert list(table.head) == ["fsync", *columns, "ratio", "blocks"]


@pytest.mark.slow
def test_a_consumer_is_ten_times_as_fast_where_nothing_is_published_before_it():
    """Over 1.0 on the same connection, over 0-9-1 on one of its own."""
    given = {"batch": 2_000, "run_ms": 60, "preload": 4_000}
    solution = solved(predict.receiver, **given)
    assert solution.answer == "more than ten times as many"
    assert told(solution, "about as many").startswith("consuming costs no publishing")
    view = receivers(**given)
    new, apart, smaller = view.beside.values()
    default = view.now
    assert smaller > 4 * default  # a fifth of the batch stands before an acknowledgement
    assert f"held for {200 * 60 / default:,.0f} ms" in view.line.value
    assert view.line.value.startswith('<div role="status">')  # a screen reader tells each change
    assert "<" not in view.said
    assert new > 10 * default
    assert apart > 10 * default
    assert list(view.beside)[1] == "two connections: the whole queue"  # more it could not get
    assert list(receivers(**given | {"preload": 8_000}).beside)[1] == "two connections"
    assert f"one for every {new / default:,.0f} over AMQP 1.0" in view.line.value
    assert "one for every 73, in ten seconds" in view.line.value
    assert f"{new:,} beside {default:,}" in solution.reason
    view.share.value = 1  # an acknowledgement behind each publish
    assert view.now > default
    assert f"{view.now:,}" in view.chart.words


def test_the_check_wants_a_way_past_a_queue_that_hangs():
    """What was read before the reader stopped has passed."""
    begun = chain(beside=True)
    assert judged(check.passed, begun, 5).right is None
    assert judged(check.passed, stage(flooded(begun, 40)), 5).right is None
    few = judged(check.passed, flooded(begun, 10), 5).text
    assert few.startswith("The reader goes on. Since the first queue hangs, 10 messages")
    assert judged(check.passed, flooded(begun, 40, others=5), 5).right is False
    first = begun.then("publish", queue="second", count=5)
    assert "does not hang" in judged(check.passed, first, 5).text
    behind = begun.act_each([("stall", {"queue": "slow"}),
                             ("publish", {"queue": "second", "count": 5})])  # fmt: skip
    assert "goes on" in judged(check.passed, behind, 5).text
    right = judged(check.passed, behind.then("publish", queue="slow", count=40), 5)
    assert right.right
    assert "5 messages came into the second queue while the first hung" in right.text
    hung = flooded(chain(beside=True, pause_us=400), 40)
    stopped = next(row for row in hung.rows if row.vantage == "reader:c1" and row.event == "block")
    assert judged(check.passed, hung.act(stopped.seq - 60, "publish", queue="second"), 1).right


def test_what_passed_while_the_first_queue_worked_does_not_count():
    """Let it work, have everything through, and hang it again: nothing has passed a hang."""
    begun = chain(beside=True)
    through = flooded(begun, 40, others=5).then("resume", queue="slow")
    again = through.then("stall", queue="slow")
    assert "no messages were published" in judged(check.passed, again, 1).text
    more = judged(check.passed, again.then("publish", queue="slow", count=40), 1)
    assert (more.right, "since then no messages came" in more.text) == (False, True)
