"""The client side of a quorum queue: pending, soft limit, stash, resend."""

import pytest

from workbench.queues import Enqueue, QueueError, Settle
from workbench.queues.quorum_client import QuorumClient, Replied, Slow, Timer, ToLeader
from workbench.queues.quorum_commands import OutOfOrder


def client(**options):
    """A client that knows the leader."""
    made = QuorumClient("c", **options)
    made.leader_is("n1", 1)
    return made


def publish(to, count):
    """Send so many messages; returns the effects."""
    return [effect for _ in range(count) for effect in to.send(Enqueue(payload=b"m"))]


def of(effects, kind):
    """Effects of one kind."""
    return [effect for effect in effects if isinstance(effect, kind)]


@pytest.mark.parametrize("limit", [32, 256])
def test_b21_the_command_after_the_soft_limit_blocks(limit):
    """32 pending (256 before 3.8.4) are borne; the next one tells block, once."""
    made = client(soft_limit=limit)
    assert of(publish(made, limit), Slow) == []
    assert of(publish(made, 1), Slow) == [Slow(True)]
    assert of(publish(made, 5), Slow) == []
    assert len(made.pending) == limit + 6  # it goes on taking: only the reader is stopped


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_blocks_before_anything_is_sent_is_refused(limit):
    """Such a queue would be slow for ever."""
    with pytest.raises(QueueError, match="legal: 1 or more pending commands"):
        client(soft_limit=limit)


def test_it_unblocks_when_fewer_than_the_limit_are_pending():
    """At the limit it is still slow; below it no longer."""
    made = client(soft_limit=4)
    publish(made, 6)
    assert of(made.applied([(1, None), (2, None)]), Slow) == []
    assert of(made.applied([(3, None)]), Slow) == [Slow(False)]


def test_while_slow_settlements_wait_and_then_go_as_one():
    """A stash keeps them; at unblock one command carries all of a consumer's."""
    made = client(soft_limit=2)
    publish(made, 3)
    for number in (4, 5, 6):
        assert made.send(Settle(consumer="x", message_ids=(number,))) == []
    assert made.stashed == 1
    effects = made.applied([(1, None), (2, None)])
    sent = of(effects, ToLeader)
    assert [logged.command for each in sent for logged in each.commands] == [
        Settle(consumer="x", message_ids=(4, 5, 6))
    ]


def test_settlements_count_as_pending_too():
    """Not messages alone: every command of this client for this queue."""
    made = client(soft_limit=2)
    for number in (1, 2):
        made.send(Settle(consumer="x", message_ids=(number,)))
    assert of(publish(made, 1), Slow) == [Slow(True)]


def test_a_new_leader_gets_everything_pending_in_order_with_the_same_numbers():
    """So that it can tell what it has already."""
    made = client()
    publish(made, 5)
    made.applied([(2, None)])
    ((again,),) = (of(made.leader_is("n2", 2), ToLeader),)
    assert again.leader == "n2"
    assert [logged.enqueue_seq for logged in again.commands] == [1, 3, 4, 5]
    assert made.resent == 4


def test_news_of_an_older_leader_is_not_heeded():
    """Terms order leaders: a late word of the last one changes nothing."""
    made = client()
    made.leader_is("n2", 5)
    assert made.leader_is("n1", 4) == []
    assert made.leader == "n2"


def test_without_a_leader_commands_wait():
    """They are pending all the same, and the soft limit counts them."""
    made = client(soft_limit=3)
    made.not_leader("n1")
    effects = publish(made, 4)
    assert of(effects, ToLeader) == []
    assert of(effects, Slow) == [Slow(True)]


def test_an_answer_that_comes_twice_confirms_once():
    """The second is for a command that is no longer pending."""
    made = client()
    publish(made, 1)
    assert len(of(made.applied([(1, None)]), Replied)) == 1
    assert of(made.applied([(1, None)]), Replied) == []


def test_a_gap_makes_it_send_all_again():
    """The queue has not taken a message in, since one before it is missing."""
    made = client()
    publish(made, 3)
    effects = made.applied([(3, OutOfOrder(2))])
    assert [logged.seq for logged in of(effects, ToLeader)[0].commands] == [1, 2, 3]
    assert list(made.pending) == [1, 2, 3]


def test_after_a_long_silence_it_sends_all_again():
    """A timer runs while something is pending, and no longer."""
    made = client()
    assert Timer(True) in publish(made, 1)
    assert len(of(made.timer_expired(), ToLeader)) == 1
    assert Timer(False) in made.applied([(1, None)])
    assert made.timer_expired() == []
