"""Proton as the sender of a link, against our receiver link and against the broker.

Counters are compared with what Proton tells (`credit`, `queued`) and with plain counting.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("proton", reason="needs python-qpid-proton")

from tests.amqp10.proton_engine import Bridge
from tests.broker.rig import Rig
from workbench.amqp10.events import DeliveryReceived, FlowReceived, ProtocolViolation
from workbench.peers.proton_peer import ProtonPeer


class Publishing:
    """A Proton sender attached to a receiver link of ours; its octets can be held back."""

    def __init__(self):
        self.bridge = Bridge(we_open=False)
        session = self.bridge.open_session()
        self.sender = session.sender("s")
        self.sender.target.address = "q"
        self.sender.open()
        self.bridge.pump()
        (ours,) = self.bridge.ours.connection.sessions
        (self.link,) = ours.links
        self.queued = 0  # all that the application has given to Proton
        self.given_back = 0
        self.held = bytearray()

    def leave(self):
        """What Proton wants to say is on its way."""
        while (pending := self.bridge.transport.pending()) > 0:
            self.held += self.bridge.transport.peek(pending)
            self.bridge.transport.pop(pending)

    def queue(self, count):
        """The application sends; Proton holds what it has no credit for."""
        for _ in range(count):
            self.sender.delivery(b"%d" % self.queued)
            self.sender.send(b"message")
            self.sender.advance()
            self.queued += 1
        self.leave()

    def grant(self, credit, drain=False):
        """Our receiver's word reaches Proton at once; Proton's frames are still held."""
        self.link.grant(credit, drain=drain)
        self.bridge.transport.push(self.bridge.ours.data_to_send())
        self.bridge._mirror()
        self.leave()

    def drained(self):
        """Proton's application answers a drain."""
        if self.sender.drain_mode and self.sender.credit > 0:
            self.given_back += self.sender.drained()
            self.leave()

    def arrive(self):
        """Everything under way arrives."""
        data, self.held = bytes(self.held), bytearray()
        for event in self.bridge.ours.receive_data(data):
            self.bridge.events.append(event)
            self.bridge.ours.connection.answer(event)
        self.bridge.pump()

    @property
    def arrived(self):
        """How many messages our end has taken in."""
        return sum(isinstance(event, DeliveryReceived) for event in self.bridge.events)

    def check(self):
        """Nothing is under way: both ends and plain counting agree."""
        link, sender = self.link, self.sender
        assert [e for e in self.bridge.events if isinstance(e, ProtocolViolation)] == []
        assert link.delivery_count == self.arrived + self.given_back
        assert link.session.counters.next_incoming_id == self.arrived
        assert self.arrived + sender.queued == self.queued
        # Proton takes a credit off for what it only holds, so its number may be below 0.
        assert link.credit == max(0, sender.credit + sender.queued)
        told = [e.frame for e in self.bridge.events if isinstance(e, FlowReceived)]
        for flow in told:
            assert not flow.echo
            assert flow.available is None


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("queue"), st.integers(1, 4)),
        st.tuples(st.just("grant"), st.integers(0, 8)),
        st.tuples(st.just("drain"), st.integers(1, 8)),
        st.tuples(st.sampled_from(["drained", "arrive", "settle"]), st.just(0)),
    ),
    min_size=2,
    max_size=16,
)


@given(acts=ACTS)
@settings(max_examples=150, derandomize=True, deadline=None)
def test_our_receiver_counts_what_a_proton_sender_sends_and_gives_back(acts):
    """delivery-count = messages + credit given back; credit = what Proton may still send."""
    play = Publishing()
    for name, number in acts:
        match name:
            case "queue":
                play.queue(number)
            case "grant" | "drain":
                play.grant(number, drain=name == "drain")
            case "drained":
                play.drained()
            case "arrive":
                play.arrive()
            case "settle":
                for delivery_id in list(play.link.unsettled):
                    play.link.settle(delivery_id)
    play.arrive()
    play.check()


@pytest.mark.parametrize(("ready", "credit"), [(0, 4), (3, 10), (10, 10), (12, 5)])
def test_a_proton_sender_drains_with_none_some_enough_and_too_many(ready, credit):
    """It sends what it has, gives back the rest when its application says so, and credit is 0."""
    play = Publishing()
    play.queue(ready)
    play.grant(credit, drain=True)
    play.arrive()
    play.drained()
    play.arrive()
    play.check()
    assert play.arrived == min(ready, credit)
    assert play.given_back == max(0, credit - ready)
    assert (play.link.credit, play.link.delivery_count) == (0, credit)


def test_a_proton_sender_and_receiver_never_answer_an_echo():
    """A departure of Proton's [2.7.4]: nobody may wait for the answer."""
    play = Publishing()
    play.grant(3)
    play.arrive()
    before = len(play.bridge.events)
    play.link.flow(echo=True)
    play.link.session.flow(echo=True)
    play.arrive()
    assert len(play.bridge.events) == before


@pytest.mark.parametrize("count", [1, 49, 50, 51, 100, 130, 250])
def test_a_proton_publisher_and_the_broker_count_alike_in_both_directions(count):
    """Proton publishes to a queue and receives from it on one session: two sequences of ids."""
    rig = Rig()
    peer = rig.connect(ProtonPeer(address="q"))
    rig.rest()
    sender = peer.receiver.session.sender("publisher")
    sender.target.address = "q"
    sender.open()
    peer.pump()
    rig.rest()
    (session,) = rig.broker.connections["c1"].amqp.sessions
    to_client, from_client = session.links
    preset = rig.preset
    assert sender.credit == from_client.credit == preset.publisher_credit
    deliveries = []
    for number in range(count):
        deliveries.append(sender.delivery(b"%d" % number))
        sender.send(b"\0Sw\xa1\x04%04d" % number)
        sender.advance()
    peer.pump()
    rig.rest()
    assert from_client.delivery_count == count
    assert from_client.credit == sender.credit
    assert preset.credit_regrant_at < from_client.credit <= preset.publisher_credit
    assert all(delivery.settled for delivery in deliveries)
    taken = count // 3
    peer.grant(taken)
    rig.rest()
    peer.grant(count + 7)
    rig.rest()
    peer.drain()
    rig.rest()
    assert [int(payload[-4:]) for payload in peer.payloads] == list(range(count))
    assert peer.link_credit == to_client.credit == 0
    assert to_client.delivery_count == taken + count + 7
    counters = session.counters
    assert (counters.next_outgoing_id, counters.next_incoming_id) == (count, count)
    shadow = [row.ledger for row in rig.recorder.rows if row.vantage == "client:proton"][-1]
    assert shadow["next_incoming_id"] == shadow["next_outgoing_id"] == count
