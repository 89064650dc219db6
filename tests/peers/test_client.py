"""A client of ours: what its links and its send policy say is what it does."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from tests.peers.net import Net
from workbench import presets
from workbench.amqp10.credit import BatchThenWait, CreditPolicy, Manual, OneAtATime, TopUpAtHalf
from workbench.amqp10.errors import LocalProtocolError
from workbench.frontends import message_of
from workbench.peers import AtOnce, Consumer, OneByOne, Publisher, SendPolicy

CLIENT = {"from_peer": "client"}


# -- consumers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "grants"),
    [
        (Manual(), []),
        (OneAtATime(), [1] * 9),
        (BatchThenWait(4), [4] * 3),
        (TopUpAtHalf(4), [4] * 5),
    ],
)
def test_each_policy_grants_when_it_should(policy: CreditPolicy, grants: list[int]) -> None:
    """Eight messages: the flows are the policy's and nothing else's."""
    net = Net()
    net.fill("q", 8)
    consumer = Consumer(policy=policy, auto_settle=True)
    net.client(consumer)
    assert consumer.received == (8 if grants else 0)
    assert consumer.unsettled == 0
    assert [row.frame["link_credit"] for row in net.rows("flow", **CLIENT)] == grants


def test_an_application_works_on_one_message_at_a_time() -> None:
    """Dispositions follow one another at the processing time."""
    net = Net()
    net.fill("q", 4)
    net.client(Consumer(policy=TopUpAtHalf(10), processing_us=7000, auto_settle=True))
    times = [row.t_us for row in net.rows("disposition", **CLIENT)]
    assert [two - one for one, two in itertools.pairwise(times)] == [7000] * 3


def test_batch_then_wait_waits_until_all_are_done_with() -> None:
    """A batch that has arrived is not yet done with: each flow follows the fourth message."""
    net = Net()
    net.fill("q", 12)
    net.client(Consumer(policy=BatchThenWait(4), processing_us=5000, auto_settle=True))
    sent = [
        row.kind for row in net.recorder.rows if row.event == "sent" and row.from_peer == "client"
    ]
    done = list(itertools.accumulate(kind == "disposition" for kind in sent))
    assert [done[at] for at, kind in enumerate(sent) if kind == "flow"] == [0, 4, 8, 12]


def test_a_client_s_policies_begin_when_every_link_is_attached() -> None:
    """No credit before, and on each link its own; what comes later begins later."""
    net = Net()
    links = [Consumer(name, name, policy=OneAtATime()) for name in ("a", "b")]
    client = net.client(*links)
    attached = net.rows("attach", "received", vantage=client.vantage)
    assert net.rows("flow", **CLIENT)[0].seq > max(row.seq for row in attached)
    client.begin_session([Consumer("c", "c", policy=BatchThenWait(5))])
    assert client.beginning
    net.rest()
    grants = [(row.link, row.frame["link_credit"]) for row in net.rows("flow", **CLIENT)]
    assert grants == [("a", 1), ("b", 1), ("c", 5)]
    assert {one.link_credit for one in links} == {1}


@pytest.mark.parametrize("between", [False, True], ids=["one link", "another's in between"])
def test_acknowledging_uses_one_disposition_per_run_of_ids(between: bool) -> None:
    """What is settled already, or belongs to another link, is left out [2.7.6]."""
    net = Net()
    consumer, other = Consumer(address="q"), Consumer("other", "other")
    client = net.client(consumer, other)
    consumer.grant(5)
    other.grant(1)
    net.rest()
    for queue in ("q", "q", "other" if between else "q", "q", "q"):
        net.broker.queues[queue].publish(message_of(b"m"))
        net.rest()
    if not between:
        consumer.link.settle(2)
    assert consumer.acknowledge() == 4
    net.rest()
    ranges = [(row.frame["first"], row.frame.get("last")) for row in net.rows("disposition")]
    assert ranges[-2:] == [(0, 1), (3, 4)]
    assert [one.unsettled for one in client.consumers.values()] == [0, int(between)]


# -- publishers -----------------------------------------------------------------------------


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("before", [False, True], ids=["attached", "before"])
def test_a_publisher_stops_at_its_credit_and_goes_on_with_the_next(
    settled: bool, before: bool
) -> None:
    """250 messages over grants of 100: never more sent than granted; outcomes if any are told."""
    net = Net()
    publisher = Publisher(settled=settled)
    client = net.client(publisher, connected=not before)
    publisher.publish([b"x"] * 250)
    if before:
        net.connect(client)
    net.rest()
    assert publisher.sent == net.queue().ready == 250
    assert publisher.outcomes == ({} if settled else {"accepted": 250})
    rows = net.rows("transfer", **CLIENT)
    assert [row.ledger["available"] for row in rows] == list(range(249, -1, -1))
    assert min(row.ledger["link_credit"] for row in rows) >= 0


@pytest.mark.parametrize("pause_us", [0, 300])
def test_one_by_one_sends_a_message_per_clock_event(pause_us: int) -> None:
    """So a person may act between any two; the pause is what a message takes to be made."""
    net = Net()
    publisher = Publisher()
    net.client(publisher, sending=OneByOne(pause_us))
    began = net.clock.now_us
    publisher.publish([b"x"] * 2)
    publisher.publish([b"x"] * 3)  # while the first is scheduled
    sent = []
    while net.clock.step():
        sent.append(publisher.sent)
    assert sorted(set(sent)) == [1, 2, 3, 4, 5]
    times = [row.t_us - began for row in net.rows("transfer", **CLIENT)]
    assert times == [pause_us * number for number in range(1, 6)]


def test_at_once_sends_all_that_is_allowed_in_one_event_in_turns_until_it_is_stopped() -> None:
    """A message of each in turn, while credit lasts and the transport takes octets."""
    net = Net()
    links = [Publisher(name, name, settled=True, endless=b"x") for name in ("a", "b")]
    client = net.client(*links, connected=False, sending=AtOnce())
    client.writable = False
    net.connect(client)
    net.rest()
    assert [one.sent for one in links] == [0, 0]
    client.writable = True
    client.kick()
    rows = net.rows("transfer", **CLIENT)
    assert [row.link for row in rows] == ["a", "b"] * 100
    assert {row.ledger["available"] for row in rows} == {1}
    while min(one.sent for one in links) == 100:  # until there is credit again
        assert net.clock.step()
    client.stop()
    sent = [one.sent for one in links]
    net.rest()
    assert [one.sent for one in links] == [net.queue(one.name).ready for one in links] == sent


@pytest.mark.parametrize("sending", [OneByOne(), AtOnce()])
def test_nothing_is_sent_before_every_link_is_attached(sending: SendPolicy) -> None:
    """Though one of them has credit already."""
    net = Net()
    links = [Publisher(name, name) for name in ("a", "b")]
    client = net.client(*links, connected=False, sending=sending)
    links[0].publish([b"x"])
    net.connect(client)
    net.rest()
    (sent,) = net.rows("transfer", **CLIENT)
    attached = net.rows("attach", "received", vantage=client.vantage)
    assert [row.seq < sent.seq for row in attached] == [True, True]


def test_an_application_may_hand_messages_over_one_after_the_other() -> None:
    """Each at its time; it is told of those that have to wait for credit."""
    net = Net()
    told: list[int] = []
    publisher = Publisher(on_waiting=lambda _, count: told.append(count))
    net.client(publisher)
    began = net.clock.now_us
    publisher.publish([b"x"] * 3, every_us=500)
    publisher.publish([b"y"])  # behind those that are still to come
    net.rest()
    times = [row.t_us - began for row in net.rows("transfer", **CLIENT)]
    assert times == [500, 1000, 1500, 1500]
    assert told == []
    net.wires["c1"].hold_direction("b2c")  # no credit any more
    publisher.publish([b"z"] * 200)
    net.rest()
    publisher.publish([b"z"])
    assert told == [200, 1]


def test_who_ignores_the_window_sends_the_rest_of_a_message_too() -> None:
    """A message of eight frames and a window of four: four go, and then the others at once."""
    net = Net(replace(presets.get("spec"), max_frame_size=512, incoming_window=4))
    publisher = Publisher()
    client = net.client(publisher)
    net.wires["c1"].hold_direction("b2c")  # the window stays as it is
    publisher.publish([bytes(3_900)])
    net.rest()
    assert [row.frame.get("more") for row in net.rows("transfer", **CLIENT)] == [True] * 4
    client.ignore_window()
    assert client.ignoring
    net.clock.run_until_rest()
    more = [row.frame.get("more") for row in net.rows("transfer", **CLIENT)]
    assert len(more) == 8
    assert not more[-1]


# -- the client -----------------------------------------------------------------------------


def test_what_cannot_be_asked_is_refused_with_what_can() -> None:
    """A link that is not there, not attached yet, or gone with its session."""
    net = Net()
    first, second = Consumer("in", "q"), Publisher("out", "t")
    client = net.client(first, second, connected=False)

    def refused(why: str, ask: Any) -> None:
        with pytest.raises(LocalProtocolError) as error:
            ask()
        assert str(error.value) == why

    refused(
        "link in is not attached yet; legal now: wait until it is attached", lambda: first.grant(1)
    )
    refused("link in is not attached; legal now: wait until it is", lambda: client.consumer("in"))
    net.connect(client)
    net.rest()
    refused("link x is not attached; legal now: in", lambda: client.consumer("x"))
    refused("link in is not attached; legal now: out", lambda: client.publisher("in"))
    refused("session 2 is not there; legal now: 1", lambda: client.session(2))
    first.detach()
    refused("link in is DETACH_SENT; legal now: wait until it is attached", lambda: first.grant(1))
    client.close()
    net.rest()
    assert client.amqp.ended
    assert not client.attached


def test_after_close_the_clients_messages_are_back_in_the_queue() -> None:
    """A clean end on both sides."""
    net = Net()
    net.fill("q", 2)
    client = net.client(Consumer(policy=OneAtATime()))
    client.close()
    net.rest()
    assert client.amqp.ended
    assert net.broker.connections["c1"].amqp.ended
    assert net.queue().ready == 2


def test_every_link_is_in_the_overview_under_its_name() -> None:
    """With its counters; numbers, words and truth values alone."""
    net = Net()
    client = net.client(Consumer("in", "q", policy=TopUpAtHalf(7)), Publisher("out", "t"))
    picture = client.overview()
    assert picture["in.link_credit"] == 7
    assert picture["out.sent"] == 0
    assert picture["sessions"] == 1
    assert all(isinstance(value, int | bool | str) for value in picture.values())
