"""A queue changes hands over AMQP 0-9-1: in order, or not."""

from __future__ import annotations

import pytest

from workbench.scenarios import ActionError, handover, run
from workbench.scenarios.handover_091 import seen

KINDS = pytest.mark.parametrize("queue_type", ["classic", "quorum"])


def handed(**parameters):
    """A run of the scenario."""
    return run("handover_091", "rmq4.3", parameters)


def numbers(played, consumer="b"):
    """Numbers of the messages that arrived at a consumer, in order."""
    return [one.message for one in seen(played) if one.consumer == consumer]


@KINDS
@pytest.mark.parametrize("held", [1, 5])
def test_a51_who_cancels_and_is_lost_hands_over_without_order(queue_type, held):
    """The next one goes on behind what the first one holds, and gets that last."""
    cancelled = handed(way="cancel", leave_after=held, prefetch=held, queue_type=queue_type)
    assert numbers(cancelled, "a") == [*range(held)]
    assert numbers(cancelled) == [*range(held, 11)]
    lost = cancelled.then("leave", way="close")
    assert numbers(lost) == [*range(held, 11), *range(held)]
    assert [one.message for one in seen(lost) if one.again and one.marked] == [*range(held)]


@KINDS
def test_a52_who_closes_its_channel_hands_over_in_order(queue_type):
    """What it held comes first, and again."""
    closed = handed(way="close", queue_type=queue_type)
    assert numbers(closed) == [*range(11)]
    assert [one.message for one in seen(closed) if one.again] == [*range(5)]


def test_a49_over_1_0_nothing_comes_again_and_order_is_kept():
    """Beside the two ways of 0-9-1: the consumer stops first, and settles."""
    graceful = run("handover", parameters={"way": "graceful", "messages": 11, "leave_after": 5})
    arrivals = handover.seen(graceful)
    assert [one.message for one in arrivals] == sorted(one.message for one in arrivals)
    assert not any(one.again for one in arrivals)


def test_who_acknowledges_before_it_is_lost_keeps_the_order():
    """A cancel is no loss of order by itself."""
    cancelled = handed(way="cancel").then("acknowledge", count=5)
    lost = cancelled.then("leave", way="close")
    assert numbers(lost) == [*range(5, 11)]


def test_what_a_consumer_cannot_do_is_refused_in_words():
    """With what it can."""
    cancelled = handed(way="cancel")
    with pytest.raises(ActionError, match="has cancelled already; legal now: way=close"):
        cancelled.then("leave")
    with pytest.raises(ActionError, match="holds 5 messages not yet acknowledged"):
        cancelled.then("acknowledge", count=6)
    with pytest.raises(ActionError, match="there is no consumer 'c'; there are: a, b"):
        cancelled.then("leave", consumer="c")
    with pytest.raises(ActionError, match="the channel of consumer a is closed"):
        cancelled.then("leave", way="close").then("acknowledge")
    with pytest.raises(ActionError, match="scenario handover_091 has it"):
        run("handover", parameters={"way": "by-hand"}).then("leave", way="cancel")
