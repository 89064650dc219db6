"""A queue with a single active consumer changes hands."""

import pytest

from workbench.scenarios import ActionError, ParameterError, run
from workbench.scenarios.handover import seen


def handed(**parameters):
    """A run of the scenario."""
    return run("handover", parameters=parameters)


def numbers(played, consumer=None):
    """Numbers of the messages that arrived, in order."""
    return [one.message for one in seen(played) if consumer is None or one.consumer == consumer]


@pytest.mark.parametrize("latency_us", [0, 100, 1000, 5000])
@pytest.mark.parametrize("leave_after", [1, 3, 5])
def test_a_graceful_hand_over_delivers_nothing_twice_and_keeps_the_order(latency_us, leave_after):
    """Stop with echo, take what still comes, settle, detach: 0 redeliveries."""
    played = handed(way="graceful", latency_us=latency_us, leave_after=leave_after, link_credit=8)
    arrivals = seen(played)
    assert not any(one.again for one in arrivals)
    assert numbers(played) == sorted(numbers(played))
    assert {one.consumer for one in arrivals} == {"a", "b"}


@pytest.mark.parametrize("leave_after", [1, 3, 5])
def test_detaching_outright_returns_what_was_held_in_the_original_order(leave_after):
    """The next consumer's first message is the lowest one that was not acknowledged."""
    played = handed(way="outright", leave_after=leave_after)
    assert numbers(played, "b")[0] == 0
    assert numbers(played, "b") == sorted(numbers(played, "b"))
    assert any(one.again for one in seen(played))


def test_what_was_acknowledged_before_detaching_does_not_come_again():
    """Two of five are settled: the next one begins with the third."""
    played = handed(link_credit=5)
    some = played.act(played.rows[-1].seq, "acknowledge", count=2)
    gone = some.act(some.rows[-1].seq, "leave", way="outright")
    assert numbers(gone, "b")[:3] == [2, 3, 4]


def test_a_waiting_consumer_is_told_that_nothing_is_available():
    """Its echo is answered with available 0, whatever its credit and however much is ready."""
    played = handed(link_credit=0)
    granted = played.act(played.rows[-1].seq, "grant", link_credit=5, consumer="b")
    asked = granted.act(granted.rows[-1].seq, "echo", consumer="b")
    answer = [
        row.frame
        for row in asked.rows
        if row.kind == "flow" and row.event == "received" and row.vantage == "client:b"
    ][-1]
    assert answer["available"] == 0
    assert answer["link_credit"] == 5
    assert numbers(asked, "b") == []


def test_the_queue_takes_messages_back_before_the_next_consumer_is_active():
    """The rows of the trace tell it in that order."""
    played = handed(way="outright")
    events = [row.event for row in played.rows if row.event in ("requeue", "activate")]
    assert events == ["activate", "requeue", "activate"]


def test_consumers_take_over_in_the_order_in_which_they_attached():
    """When the second leaves too, the third one goes on."""
    played = handed(way="graceful", consumers=3, link_credit=2, leave_after=1)
    gone = played.act(played.rows[-1].seq, "leave", consumer="b")
    assert list(dict.fromkeys(one.consumer for one in seen(gone))) == ["a", "b", "c"]
    assert numbers(gone) == sorted(numbers(gone))


def test_leaving_twice_and_acts_of_who_is_gone_are_refused():
    """The text says who is attached."""
    played = handed(way="graceful")
    with pytest.raises(ActionError, match="attached: b"):
        played.act(played.rows[-1].seq, "leave", consumer="a")
    with pytest.raises(ActionError, match="no consumer 'c'"):
        played.act(played.rows[-1].seq, "echo", consumer="c")


def test_the_way_of_0_9_1_is_not_here_yet_and_the_refusal_names_what_is():
    """Cancelling with unsettled messages belongs to channels."""
    with pytest.raises(ParameterError, match="by-hand, graceful, outright"):
        handed(way="cancel")
