"""Proton understands confirms as RabbitMQ's session tells them: in ranges that span links."""

from dataclasses import replace

import pytest

from tests.broker.rig import Rig
from workbench import presets
from workbench.amqp10.performatives import Disposition
from workbench.peers.proton_peer import ProtonPeer

proton = pytest.importorskip("proton", reason="needs python-qpid-proton")


def publish(count, queues, preset):
    """A Proton client with a sender for each queue, which publishes in turns; queues hang."""
    rig = Rig(preset)
    peer = rig.connect(ProtonPeer(address="other"))
    rig.rest()
    senders = []
    for name in queues:
        rig.broker.declare(name).stall()
        sender = peer.receiver.session.sender(name)
        sender.target.address = name
        sender.open()
        senders.append(sender)
    peer.pump()
    rig.rest()
    deliveries = []
    for number in range(count):
        sender = senders[number % len(senders)]
        deliveries.append(sender.delivery(b"%d" % number))
        sender.send(b"\0Sw\xa1\x04%04d" % number)
        sender.advance()
    peer.pump()
    rig.rest()
    return rig, deliveries


def told(rig) -> list[tuple[int, int]]:
    """First and last delivery-id of the broker's dispositions."""
    return [
        (row.frame["first"], row.frame.get("last", row.frame["first"]))
        for row in rig.recorder.rows
        if row.kind == Disposition.NAME and row.event == "sent" and row.vantage == "broker"
    ]


@pytest.mark.parametrize("name", ["rmq4.0", "rmq4.3"])
def test_a_proton_sender_settles_what_a_range_across_links_tells(name):
    """One frame for both links, and every delivery of both is accepted and settled."""
    rig, deliveries = publish(40, ["a", "b"], replace(presets.get(name), queue_enqueue_us=0))
    assert not any(delivery.settled for delivery in deliveries)
    for queue in ("a", "b"):
        rig.broker.declare(queue).resume()
    rig.rest()
    assert told(rig) == [(0, 39)]
    assert all(delivery.settled for delivery in deliveries)
    assert all(delivery.remote_state == proton.Delivery.ACCEPTED for delivery in deliveries)


def test_a_proton_sender_settles_only_what_is_told():
    """The other queue hangs on: its deliveries stay open between those that are settled."""
    rig, deliveries = publish(10, ["a", "b"], replace(presets.get("rmq4.3"), queue_enqueue_us=0))
    rig.broker.declare("a").resume()
    rig.rest()
    assert told(rig) == [(number, number) for number in range(0, 10, 2)]
    assert [delivery.settled for delivery in deliveries] == [True, False] * 5
