"""A connection over octets: in any pieces, of any quality."""

import pytest

from workbench import serial
from workbench.amqp10.events import DeliveryReceived, LinkAttaching, ProtocolViolation
from workbench.amqp10.settings import ConnectionSettings, SessionSettings

from .byte_endpoint import ByteEndpoint


class Bytes:
    """Two ends joined by octets; the client sends over a link.

    Args:
        start: initial ids.
    """

    def __init__(self, start=0):
        small = ConnectionSettings(max_frame_size=512)
        ids = SessionSettings(next_outgoing_id=start, delivery_id=start)
        self.client = ByteEndpoint(
            container_id="c", is_client=True, settings=small, session_settings=ids
        )
        self.server = ByteEndpoint(container_id="s", is_client=False, settings=small)
        self.flying = {self.client: b"", self.server: b""}
        self.deliveries = []
        self.client.connection.start()
        session = self.client.connection.begin()
        self.sender = session.attach_sender("a", None, "q", initial_delivery_count=start)
        self.pump()
        (self.receiver,) = self.server.connection.sessions[0].links

    def arrive(self, source, size):
        """Lets up to so many octets of `source` arrive in one piece."""
        for end in self.flying:
            self.flying[end] += end.data_to_send()
        data, self.flying[source] = self.flying[source][:size], self.flying[source][size:]
        end = self.server if source is self.client else self.client
        for event in end.receive_data(data):
            if isinstance(event, DeliveryReceived):
                self.deliveries.append(event.delivery)
            if isinstance(event, LinkAttaching):
                event.link.accept()
            else:
                end.connection.answer(event)
        return bool(data)

    def pump(self, size=1 << 20):
        while self.arrive(self.client, size) | self.arrive(self.server, size):
            pass


@pytest.mark.parametrize("size", [1, 3, 7, 64])
def test_octets_may_come_in_any_pieces(size):
    """Nothing is lost at the seams."""
    both = Bytes()
    both.receiver.grant(9)
    both.pump()
    for number in range(9):
        both.sender.send(bytes(number * 100), settled=bool(number % 2))
    both.pump(size)
    assert [one.payload for one in both.deliveries] == [bytes(100 * number) for number in range(9)]


def test_octets_that_are_no_amqp_end_the_connection():
    """One violation with the offset; nothing after it is read [2.8.16]."""
    both = Bytes()
    (event,) = both.server.receive_data(b"\x00\x00\x00\x03\x02\x00\x00\x00")
    assert isinstance(event, ProtocolViolation)
    assert event.condition == "amqp:connection:framing-error"
    assert both.server.receive_data(b"anything") == []
    both.server.connection.answer(event)
    both.pump()
    assert both.client.connection.error.condition == "amqp:connection:framing-error"


def test_what_came_before_the_fault_is_worked_in():
    """The frames before the bad one have their effect."""
    both = Bytes()
    both.receiver.grant(1)
    both.pump()
    both.sender.send(b"good")
    events = both.server.receive_data(
        both.client.data_to_send() + b"\x00\x00\x00\x03\x02\x00\x00\x00"
    )
    assert [type(event) for event in events] == [DeliveryReceived, ProtocolViolation]


@pytest.mark.parametrize("start", [0, 250, 4294967290])
def test_settled_deliveries_may_go_round_the_circle(start):
    """delivery-ids wrap, and tags grow by an octet."""
    both = Bytes(start)
    both.receiver.grant(600)
    both.pump()
    for _ in range(300):
        both.sender.send(b"x", settled=True)
    both.pump()
    assert [one.delivery_id for one in both.deliveries] == [
        serial.add(start, number) for number in range(300)
    ]


def test_the_tag_of_an_unsettled_delivery_is_passed_over():
    """A number that is in use as a tag is given to no other delivery."""
    both = Bytes()
    both.receiver.grant(10)
    both.pump()
    both.sender.send(b"x", delivery_tag=b"\x01")
    for _ in range(4):
        both.sender.send(b"y", settled=True)
    both.pump()
    tags = [one.delivery_tag for one in both.deliveries]
    assert tags == [b"\x01", b"\x00", b"\x02", b"\x03", b"\x04"]
