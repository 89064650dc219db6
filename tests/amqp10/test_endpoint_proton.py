"""Our endpoint against python-qpid-proton, an implementation we did not write, by octets."""

import pytest

pytest.importorskip("proton")

import proton

from tests.amqp10.proton_engine import Bridge
from workbench.amqp10.events import (
    CloseReceived,
    DeliveryReceived,
    LinkAttached,
    LinkDetached,
    ProtocolViolation,
    SessionEnded,
)
from workbench.amqp10.messaging import Accepted, Rejected, Released
from workbench.amqp10.settings import ConnectionSettings, SessionSettings

BODY = bytes(range(256)) * 40


def our_receiver(**options):
    """Proton attaches a sender; our end is the server and receives."""
    bridge = Bridge(we_open=False, **options)
    session = bridge.open_session()
    sender = session.sender("s")
    sender.target.address = "q"
    sender.open()
    bridge.pump()
    (ours,) = bridge.ours.connection.sessions
    (link,) = ours.links
    return bridge, sender, link


def our_sender(terms=None, **options):
    """Our end is the client and attaches a sender; Proton receives."""
    bridge = Bridge(we_open=True, **options)
    session = bridge.ours.connection.begin()
    link = session.attach_sender("s", None, "q", **(terms or {}))
    bridge.pump()
    receiver = bridge.proton_link()
    return bridge, link, receiver


def violations(bridge):
    return [event for event in bridge.events if isinstance(event, ProtocolViolation)]


def proton_send(sender, body, tag, settled=False):
    delivery = sender.delivery(tag)
    sender.send(body)
    sender.advance()
    if settled:
        delivery.settle()
    return delivery


def bodies(bridge):
    return [
        event.delivery.payload for event in bridge.events if isinstance(event, DeliveryReceived)
    ]


def test_proton_sends_settled_messages_by_our_credit():
    """What it may send, it sends; the rest waits for a grant."""
    bridge, sender, link = our_receiver()
    for number in range(10):
        proton_send(sender, b"m%d" % number, b"t%d" % number, settled=True)
    bridge.pump()
    assert bodies(bridge) == []
    link.grant(4)
    bridge.pump()
    assert bodies(bridge) == [b"m0", b"m1", b"m2", b"m3"]
    assert (link.credit, link.delivery_count) == (0, 4)
    link.grant(10)
    bridge.pump()
    assert len(bodies(bridge)) == 10
    assert (link.credit, link.delivery_count) == (4, 10)
    assert sender.credit == 4
    assert violations(bridge) == []


def test_proton_settles_by_our_dispositions():
    """Outcomes and ranges arrive at the sender we did not write."""
    bridge, sender, link = our_receiver()
    link.grant(5)
    bridge.pump()
    sent = [proton_send(sender, b"m", b"t%d" % number) for number in range(4)]
    bridge.pump()
    assert list(link.unsettled) == [0, 1, 2, 3]
    link.settle(0, 1)
    link.settle(2, state=Released())
    link.settle(3, state=Rejected())
    bridge.pump()
    assert [one.settled for one in sent] == [True] * 4
    assert [int(one.remote_state) for one in sent] == [
        proton.Delivery.ACCEPTED, proton.Delivery.ACCEPTED,
        proton.Delivery.RELEASED, proton.Delivery.REJECTED,
    ]  # fmt: skip
    assert link.unsettled == {}


def test_proton_splits_by_our_max_frame_size():
    """Messages of many frames are put together, with one credit each."""
    bridge, sender, link = our_receiver(settings=ConnectionSettings(max_frame_size=512))
    link.grant(3)
    bridge.pump()
    for number in range(2):
        proton_send(sender, BODY, b"t%d" % number)
    bridge.pump()
    assert bodies(bridge) == [BODY, BODY]
    assert (link.credit, link.delivery_count) == (1, 2)
    assert [one.frames > 20 for one in link.unsettled.values()] == [True, True]


def test_proton_obeys_our_session_window():
    """It stops in mid-message when the window is closed, and goes on when it opens."""
    bridge, sender, link = our_receiver(
        settings=ConnectionSettings(max_frame_size=512),
        session_settings=SessionSettings(incoming_window=3),
    )
    link.grant(5)
    bridge.pump()
    proton_send(sender, BODY, b"t")
    bridge.pump()
    assert bodies(bridge) == []
    assert link.session.counters.frames_in == 3
    frames = 3
    while not bodies(bridge):
        link.session.set_incoming_window(3)
        link.session.flow()
        bridge.pump()
        assert link.session.counters.frames_in <= frames + 3
        frames = link.session.counters.frames_in
    assert bodies(bridge) == [BODY]
    assert violations(bridge) == []


def test_the_window_opens_again_by_regrant_at():
    """A session of ours with a rule keeps a small window open by itself."""
    bridge, sender, link = our_receiver(
        settings=ConnectionSettings(max_frame_size=512),
        session_settings=SessionSettings(incoming_window=4, regrant_at=2),
    )
    link.grant(50)
    bridge.pump()
    for number in range(20):
        proton_send(sender, BODY, b"t%d" % number, settled=True)
    bridge.pump()
    assert bodies(bridge) == [BODY] * 20
    assert link.session.counters.frames_in > 400


def test_proton_drains_at_our_wish():
    """drained() gives back all credit with an advanced delivery-count, which we follow."""
    bridge, sender, link = our_receiver()
    link.grant(5)
    bridge.pump()
    proton_send(sender, b"m", b"t")
    link.grant(5, drain=True)
    bridge.pump()
    assert sender.drain_mode
    assert sender.drained() == 4
    bridge.pump()
    assert (link.credit, link.delivery_count) == (0, 5)
    assert bodies(bridge) == [b"m"]


@pytest.mark.parametrize("start", [0, 10, 2147483640, 4294967290])
def test_we_send_by_protons_credit_from_any_initial_delivery_count(start):
    """Proton counts from our initial value, over the wrap-around too."""
    bridge, link, receiver = our_sender({"initial_delivery_count": start})
    receiver.flow(12)
    bridge.pump()
    assert link.credit == 12
    for number in range(12):
        link.send(b"m%d" % number, settled=True)
    assert not link.can_send
    bridge.pump()
    assert len(bridge.bodies) == 12
    assert link.credit == 0
    assert receiver.credit == 0
    receiver.flow(5)
    bridge.pump()
    assert link.credit == 5
    link.send(b"last", settled=True)
    bridge.pump()
    assert bridge.bodies[-1] == b"last"
    assert receiver.credit == 4


def test_we_hear_protons_dispositions():
    """Accepted and released, settled by the receiver."""
    bridge, link, receiver = our_sender()
    receiver.flow(5)
    bridge.pump()
    sent = [link.send(b"m%d" % number) for number in range(3)]
    bridge.pump()
    for delivery, state in zip(bridge.deliveries, ["ACCEPTED", "RELEASED"], strict=False):
        delivery.update(getattr(proton.Delivery, state))
        delivery.settle()
    bridge.pump()
    assert [one.settled for one in sent] == [True, True, False]
    assert [one.remote_state for one in sent] == [Accepted(), Released(), None]
    link.settle(2)
    bridge.pump()
    assert bridge.deliveries[2].settled


def test_proton_puts_our_frames_together():
    """We split by its max-frame-size, and stop at its session window in mid-message."""
    bridge, link, receiver = our_sender(max_frame_size=512, incoming_capacity=2048)
    receiver.flow(5)
    bridge.pump()
    assert link.session.counters.remote_incoming_window <= 4
    delivery = link.send(BODY)
    assert not delivery.complete
    rounds = 0
    while not delivery.complete:
        bridge.pump()
        current = receiver.current
        if current is not None and current.partial:
            bridge.bodies.append(receiver.recv(current.pending))
        rounds += 1
        assert rounds < 100
    bridge.pump()
    assert b"".join(bridge.bodies) == BODY
    assert violations(bridge) == []


def test_we_answer_protons_drain():
    """With nothing available our answer brings its credit to 0."""
    bridge, link, receiver = our_sender()
    receiver.drain(7)
    bridge.pump()
    assert (link.credit, link.delivery_count) == (0, 7)
    assert receiver.credit == 0
    assert not receiver.draining()


def test_we_abort_and_proton_drops():
    """An aborted delivery is seen as such."""
    bridge, link, receiver = our_sender(max_frame_size=512, incoming_capacity=2048)
    receiver.flow(5)
    bridge.pump()
    link.send(BODY)
    bridge.pump()
    link.abort()
    current = receiver.current
    receiver.recv(current.pending)
    bridge.pump()
    assert bridge.aborted == 1
    assert bridge.bodies == []
    assert violations(bridge) == []


def test_endings_are_exchanged():
    """detach, end and close of either side are answered by the other."""
    bridge, link, receiver = our_sender()
    receiver.close()
    bridge.pump()
    assert [event.closed for event in bridge.events if isinstance(event, LinkDetached)] == [True]
    assert receiver.state == proton.Endpoint.LOCAL_CLOSED | proton.Endpoint.REMOTE_CLOSED
    link.session.end()
    bridge.pump()
    proton_session = bridge.connection.session_head(0)
    assert proton_session.state & proton.Endpoint.REMOTE_CLOSED
    proton_session.close()
    bridge.pump()
    assert any(isinstance(event, SessionEnded) for event in bridge.events)
    bridge.connection.close()
    bridge.pump()
    assert any(isinstance(event, CloseReceived) for event in bridge.events)
    assert bridge.ours.connection.ended
    assert bridge.connection.state == proton.Endpoint.LOCAL_CLOSED | proton.Endpoint.REMOTE_CLOSED


def test_a_link_that_proton_refuses_has_no_terminus():
    """Its attach has a null target, and its detach the reason [2.6.3]."""
    bridge = Bridge(we_open=True)
    session = bridge.ours.connection.begin()
    bridge.pump()
    link = session.attach_sender("s", None, "q")
    bridge._mirror = lambda: None
    bridge.pump()
    theirs = bridge.connection.link_head(proton.Endpoint.REMOTE_ACTIVE)
    theirs.condition = proton.Condition("amqp:not-found", "no such node")
    theirs.target.type = proton.Terminus.UNSPECIFIED
    theirs.open()
    theirs.close()
    bridge.pump()
    (attached,) = [event for event in bridge.events if isinstance(event, LinkAttached)]
    assert attached.refused
    assert link.error.condition == "amqp:not-found"
