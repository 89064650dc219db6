"""A client's way to a quorum queue: what its owner hears, whatever was lost or comes twice."""

from __future__ import annotations

from workbench.broker.quorum_cluster import FRONT
from workbench.broker.quorum_port import QueuePort
from workbench.queues import Credit, Credited, Deliver, Settle, Stored
from workbench.queues.base import Dropped
from workbench.queues.limits import MAXLEN
from workbench.queues.quorum_commands import Active, Answered, Full, Handed, Resume
from workbench.sim import VirtualClock


class Group:
    """A queue that takes commands, and does nothing else."""

    def __init__(self) -> None:
        self.sent: list = []

    def join(self, port) -> None:
        port.client.leader_is("n1", 1)

    def submit(self, place, leader, commands) -> None:
        self.sent += [logged.command for logged in commands]


class Owner:
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list = []

    def replied(self, logged, reply) -> None:
        pass

    def handed(self, effect) -> None:
        self.heard.append(effect.number)

    def told(self, effect) -> None:
        self.heard.append(
            effect.credited.link_credit if isinstance(effect, Answered) else type(effect)
        )

    def slowed(self, slow, pending) -> None:
        pass


def port():
    """A port with one consumer `x`, its owner, and what it sends."""
    group, owner = Group(), Owner()
    made = QueuePort(group, VirtualClock(), "c", place=FRONT, owner=owner)
    made.consume("x")
    return made, owner, group


def handed(*numbers, settled=False):
    """Deliveries with these numbers."""
    return [
        Handed(
            "c",
            number,
            Deliver(consumer="x", message=Stored(message_id=number, payload=b"m"), settled=settled),
        )
        for number in numbers
    ]


def answered(seq, number, credit):
    """The answer to a credit command, before the delivery of that number."""
    credited = Credited(delivery_count=number, link_credit=credit, available=0)
    return Answered("c", "x", seq, number, credited)


DROPPED = Dropped(message=Stored(message_id=9, payload=b"m"), reason=MAXLEN)


def test_an_answer_waits_for_the_deliveries_that_were_lost_before_it() -> None:
    """They are asked for, and come in their places: 90 is the credit that is left after two."""
    made, owner, group = port()
    made.send(Credit(consumer="x", delivery_count=0, link_credit=92))
    made.heard(1, [(1, None)], [answered(1, 2, 90)])
    assert owner.heard == []
    assert group.sent[-1] == Resume(consumer="x", number=0)
    made.heard(1, [], handed(2))  # what comes meanwhile is not lost either: it will come again
    made.heard(1, [], handed(0, 1, 2))
    assert owner.heard == [0, 1, 90, 2]


def test_an_answer_that_comes_twice_is_heard_once() -> None:
    """The command was sent twice, to two leaders or one; a later one's answer is another matter."""
    made, owner, _ = port()
    made.heard(
        1, [], [answered(1, 0, 50), answered(1, 0, 49), answered(2, 0, 70), answered(1, 0, 48)]
    )
    assert owner.heard == [50, 70]


def test_an_earlier_leader_is_heard_in_what_it_did_and_not_in_how_the_queue_stands() -> None:
    """Its word was on the way when a later one was heard; a dead letter is told by no other."""
    told = [Full(True), Active("c", "x", 0), DROPPED, *handed(0), answered(1, 1, 50)]
    for term, heard in ((2, [Full, Active, Dropped, 0, 50]), (1, [Dropped, 0, 50])):
        made, owner, group = port()
        made.leader_is("n2", 2)
        made.heard(term, [], told)
        assert owner.heard == heard
        before = len(group.sent)
        made.leader_is("n1", 1)
        assert (made.client.leader, len(group.sent)) == ("n2", before)


def test_what_was_sent_settled_is_settled_when_it_has_come() -> None:
    """As many at once as came together; a copy is not settled again."""
    made, owner, group = port()
    made.heard(1, [], handed(0, 1, settled=True))
    made.heard(1, [], handed(1, 2, settled=True))
    assert owner.heard == [0, 1, 2]
    assert group.sent == [
        Settle(consumer="x", message_ids=(0, 1)),
        Settle(consumer="x", message_ids=(2,)),
    ]
