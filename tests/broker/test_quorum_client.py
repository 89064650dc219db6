"""A client of a quorum queue: pending, soft limit, stash, resend, and what its owner hears."""

import pytest

from workbench.broker.quorum_client import FifoClient
from workbench.broker.quorum_cluster import FRONT
from workbench.queues import (
    Credit,
    CreditReply,
    Deliver,
    Dropped,
    Enqueue,
    Message,
    QueueError,
    Settle,
    Stored,
)
from workbench.queues.limits import MAXLEN
from workbench.queues.quorum_fifo import Active, Answered, Full, Handed, OutOfOrder, Resume
from workbench.sim import VirtualClock


class Group:
    """A queue that takes commands, and does nothing else."""

    def __init__(self):
        self.batches = []  # (leader, commands as logged)

    def join(self, client):
        client.leader_is("n1", 1)

    def submit(self, place, leader, commands):
        self.batches.append((leader, commands))

    @property
    def sent(self):
        return [logged.command for _, commands in self.batches for logged in commands]


class Owner:
    """Writes down what it hears."""

    def __init__(self):
        self.heard, self.confirmed, self.slow = [], [], []

    def replied(self, logged, reply):
        self.confirmed.append(logged.seq)

    def handed(self, effect):
        self.heard.append(effect.number)

    def told(self, effect):
        self.heard.append(
            effect.credited.link_credit if isinstance(effect, Answered) else type(effect)
        )

    def slowed(self, slow, pending):
        self.slow.append((slow, pending))


class Rig:
    """A client that knows the leader and has one consumer `x`, its owner, and the queue."""

    def __init__(self, **options):
        self.group, self.owner, self.clock = Group(), Owner(), VirtualClock()
        self.client = FifoClient(
            self.group, self.clock, "c", place=FRONT, owner=self.owner, **options
        )
        self.client.consume("x")
        self.send = self.client.send

    def publish(self, count):
        for _ in range(count):
            self.send(Enqueue(message=Message(payload=b"m")))

    def applied(self, *numbers):
        self.client.heard(1, [(number, None) for number in numbers], [])


@pytest.mark.parametrize("limit", [32, 256])
def test_b21_the_command_after_the_soft_limit_blocks(limit):
    """32 pending (256 before 3.8.4) are borne; the next one tells block, once."""
    rig = Rig(soft_limit=limit)
    rig.publish(limit)
    assert rig.owner.slow == []
    rig.publish(6)
    assert rig.owner.slow == [(True, limit + 1)]
    assert len(rig.client.pending) == limit + 6  # it goes on taking: only the reader is stopped


@pytest.mark.parametrize("options", [{"soft_limit": 0}, {"soft_limit": -1}, {"resend_us": -1}])
def test_numbers_that_cannot_be_are_refused(options):
    """With a limit of 0 the queue would be slow for ever."""
    with pytest.raises(QueueError, match="legal: "):
        Rig(**options)


def test_it_unblocks_when_fewer_than_the_limit_are_pending():
    """At the limit it is still slow; below it no longer."""
    rig = Rig(soft_limit=4)
    rig.publish(6)
    rig.applied(1, 2)
    assert rig.owner.slow == [(True, 5)]
    rig.applied(3)
    assert rig.owner.slow == [(True, 5), (False, 3)]


def test_while_slow_settlements_wait_and_then_go_as_one():
    """A stash keeps them; when the queue goes on one command carries all of a consumer's."""
    rig = Rig(soft_limit=2)
    rig.publish(3)
    for number in (4, 5, 6):
        rig.send(Settle(consumer="x", message_ids=(number,)))
    assert len(rig.group.sent) == 3
    rig.applied(1, 2)
    assert rig.group.sent[3:] == [Settle(consumer="x", message_ids=(4, 5, 6))]


def test_settlements_count_as_pending_too():
    """Not messages alone: every command of this client for this queue."""
    rig = Rig(soft_limit=2)
    for number in (1, 2):
        rig.send(Settle(consumer="x", message_ids=(number,)))
    rig.publish(1)
    assert rig.owner.slow == [(True, 3)]


def test_what_a_settlement_has_made_slow_blocks_nobody():
    """Only a message tells block, and only if the queue was not slow (`rabbit_fifo_client.erl`)."""
    rig = Rig(soft_limit=2)
    rig.publish(2)
    rig.send(Settle(consumer="x", message_ids=(1,)))
    assert rig.client.slow
    rig.publish(4)
    rig.send(Settle(consumer="x", message_ids=(2,)))
    assert len(rig.group.sent) == 7  # it waits all the same
    rig.applied(*range(1, 7))
    assert rig.owner.slow == []
    assert rig.group.sent[7:] == [Settle(consumer="x", message_ids=(2,))]
    rig.publish(1)
    assert rig.owner.slow == [(True, 3)]


def test_a_new_leader_gets_everything_pending_in_order_with_the_same_numbers():
    """So that it can tell what it has already; then the consumer asks for what it has not seen."""
    rig = Rig()
    rig.publish(5)
    rig.applied(2)
    rig.client.leader_is("n2", 2)
    (leader, again), (_, (asked,)) = rig.group.batches[5:]
    assert leader == "n2"
    assert [logged.enqueue_seq for logged in again] == [1, 3, 4, 5]
    assert asked.command == Resume(consumer="x", number=0)
    assert rig.client.resent == 4


def test_without_a_leader_commands_wait():
    """They are pending all the same, and the soft limit counts them."""
    rig = Rig(soft_limit=3)
    rig.client.not_leader("n1")
    rig.publish(4)
    assert rig.group.sent == []
    assert rig.owner.slow == [(True, 4)]


def test_an_answer_that_comes_twice_confirms_once():
    """The second is for a command that is no longer pending."""
    rig = Rig()
    rig.publish(1)
    rig.applied(1)
    rig.applied(1)
    assert rig.owner.confirmed == [1]


def test_a_gap_makes_it_send_all_again():
    """The queue has not taken a message in, since one before it is missing."""
    rig = Rig()
    rig.publish(3)
    rig.client.heard(1, [(3, OutOfOrder(2))], [])
    assert [logged.seq for logged in rig.group.batches[-1][1]] == [1, 2, 3]
    assert list(rig.client.pending) == [1, 2, 3]


def test_after_a_silence_of_ten_seconds_it_sends_all_again():
    """A timer runs while something is pending, and no longer."""
    rig = Rig()
    rig.publish(1)
    for again in (1, 2):
        assert rig.clock.next_us == again * 10_000_000
        rig.clock.step()
        assert len(rig.group.sent) == 1 + again
    rig.applied(1)
    assert rig.clock.next_us is None


# -- deliveries and answers -----------------------------------------------------------------


def handed(*numbers, settled=False):
    """Deliveries with these numbers."""
    return [
        Handed(
            "c",
            number,
            Deliver(
                consumer="x",
                message=Stored(message_id=number, message=Message(payload=b"m")),
                settled=settled,
            ),
        )
        for number in numbers
    ]


def answered(seq, number, credit):
    """The answer to a credit command, before the delivery of that number."""
    credited = CreditReply(delivery_count=number, link_credit=credit, available=0)
    return Answered("c", "x", seq, number, credited)


DROPPED = Dropped(message=Stored(message_id=9, message=Message(payload=b"m")), reason=MAXLEN)


def test_an_answer_waits_for_the_deliveries_that_were_lost_before_it():
    """They are asked for, and come in their places: 90 is the credit that is left after two."""
    rig = Rig()
    rig.send(Credit(consumer="x", delivery_count=0, link_credit=92))
    rig.client.heard(1, [(1, None)], [answered(1, 2, 90)])
    assert rig.owner.heard == []
    assert rig.group.sent[-1] == Resume(consumer="x", number=0)
    rig.client.heard(1, [], handed(2))  # what comes meanwhile is not lost either: it comes again
    rig.client.heard(1, [], handed(0, 1, 2))
    assert rig.owner.heard == [0, 1, 90, 2]


def test_an_answer_that_comes_twice_is_heard_once():
    """The command was sent twice, to two leaders or one; a later one's answer is another matter."""
    rig = Rig()
    rig.client.heard(
        1, [], [answered(1, 0, 50), answered(1, 0, 49), answered(2, 0, 70), answered(1, 0, 48)]
    )
    assert rig.owner.heard == [50, 70]


def test_an_earlier_leader_is_heard_in_what_it_did_and_not_in_how_the_queue_stands():
    """Its word was on the way when a later one was heard; a dead letter is told by no other."""
    told = [Full(True), Active("c", "x", 0), DROPPED, *handed(0), answered(1, 1, 50)]
    for term, heard in ((2, [Full, Active, Dropped, 0, 50]), (1, [Dropped, 0, 50])):
        rig = Rig()
        rig.client.leader_is("n2", 2)
        rig.client.heard(term, [], told)
        assert rig.owner.heard == heard
        before = len(rig.group.sent)
        rig.client.leader_is("n1", 1)
        assert (rig.client.leader, len(rig.group.sent)) == ("n2", before)


def test_what_was_sent_settled_is_settled_when_it_has_come():
    """As many at once as came together; a copy is not settled again."""
    rig = Rig()
    rig.client.heard(1, [], handed(0, 1, settled=True))
    rig.client.heard(1, [], handed(1, 2, settled=True))
    assert rig.owner.heard == [0, 1, 2]
    assert rig.group.sent == [
        Settle(consumer="x", message_ids=(0, 1)),
        Settle(consumer="x", message_ids=(2,)),
    ]
