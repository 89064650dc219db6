"""Broker-J towards publishers of AMQP 1.0: credit that comes back, and queues that take it away."""

from dataclasses import replace

import pytest

from tests.broker.rig import Rig, data
from workbench import presets
from workbench.amqp10.performatives import Flow
from workbench.frontends.amqp010 import declare_queue, thresholds_of
from workbench.queues import Purge

JAVA = presets.get("broker-j")
FREE, DRAINED = False, True


@pytest.fixture
def numbers():
    """Of the preset, beside those of the rig."""
    return {}


@pytest.fixture
def rig(numbers):
    """A broker that grants twenty; its queues `q` and `r` may hold ten, `wide` a hundred."""
    made = Rig(replace(JAVA, publisher_credit=20, **numbers))
    for name, most in (("q", 10), ("r", 10), ("wide", 100)):
        declare_queue(made.broker, name, thresholds_of(JAVA, {"qpid.max_count": most}))
    return made


def told(client):
    """The broker's words on credit: handle, link-credit, drain."""
    flows = [one for one in client.frames(Flow) if one.handle is not None]
    return [(one.handle, one.link_credit, bool(one.drain)) for one in flows]


def send(rig, link, count):
    for number in range(count):
        link.send(data(b"m%d" % number))
    rig.rest()


def accept(rig, taking, count):
    """A consumer takes so many."""
    taking.grant(count)
    rig.rest()
    for delivery in list(taking.unsettled):
        taking.settle(delivery)
    rig.rest()


@pytest.mark.parametrize(
    ("numbers", "used"), [({}, 10), ({"publisher_credit_regrant_at": 5}, 15)], ids=["half", "five"]
)
def test_credit_is_told_again_when_little_is_left_and_comes_back_with_each_outcome(rig, used):
    """Twenty less what is not settled: at half of it, or at five, twenty again."""
    client, session = rig.raw()
    link = rig.sender(session, address="wide")
    assert told(client) == [(0, 20, FREE)]
    send(rig, link, used - 1)
    assert len(told(client)) == 1
    send(rig, link, 1)
    assert told(client)[1:] == [(0, 20, FREE)]


def test_credit_that_is_told_is_less_by_what_is_not_settled(rig):
    """Fifteen wait for their outcome, five are left: with five settled ten are told."""
    client, session = rig.raw()
    rig.broker.queues["wide"].enqueue_us = 100_000
    send(rig, rig.sender(session, address="wide"), 15)
    assert told(client) == [(0, 20, FREE), (0, 10, FREE), (0, 20, FREE)]


def test_c17_the_eleventh_message_takes_the_credit_of_every_link_to_that_queue(rig):
    """Two links of the session to the queue; not the one to another, nor another session's."""
    client, session = rig.raw()
    links = [rig.sender(session, name=name, address=name[0]) for name in ("q1", "q2", "r1")]
    second = client.amqp.begin()
    rig.rest()
    other = rig.sender(second)
    send(rig, links[0], 11)
    assert told(client)[-2:] == [(0, 0, DRAINED), (1, 0, DRAINED)]
    assert (links[2].credit, other.credit) == (20, 20)
    send(rig, other, 1)
    assert other.credit == 0


def test_c17_a_session_is_not_stopped_by_a_queue_that_has_room_though_others_still_are(rig):
    """Between 80 per cent and the maximum: those that were stopped wait, a newcomer is not."""
    client, session = rig.raw()
    send(rig, rig.sender(session), 11)
    _, receiving = rig.raw("c2")
    taking = rig.receiver(receiving)
    accept(rig, taking, 2)
    assert rig.queue().flow.count == 9
    newcomer, third = rig.raw("c3")
    send(rig, rig.sender(third), 1)
    assert told(newcomer) == [(0, 20, FREE)]
    assert told(client)[-1] == (0, 0, DRAINED)
    accept(rig, taking, 2)
    assert rig.queue().flow.count == 8
    assert told(client)[-1] == (0, 20, FREE)


def test_a_link_to_a_queue_that_is_too_full_is_stopped_as_it_is_attached(rig):
    """Credit, and at once none."""
    _, session = rig.raw()
    send(rig, rig.sender(session), 11)
    late, second = rig.raw("c2")
    rig.sender(second)
    assert told(late) == [(0, 20, FREE), (0, 0, DRAINED)]


def test_what_was_under_way_when_credit_was_cut_is_taken(rig):
    """It is no fault of the sender's, and no link ends."""
    client, session = rig.raw()
    link = rig.sender(session)
    send(rig, link, 20)
    assert rig.queue().flow.count == 20
    assert link.attached
    rig.broker.queues["q"].command(Purge())
    rig.rest()
    assert told(client)[-1] == (0, 20, FREE)
