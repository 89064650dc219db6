"""The listener tells protocols apart by a client's first eight octets."""

import asyncio
import contextlib

import pytest

from tests.net.still import StillServer, gone
from workbench.amqp10.frame import Frame, encode_item
from workbench.amqp10.performatives import SaslMechanisms
from workbench.net import listener
from workbench.net.client import Client
from workbench.net.protocols import AMQP_1_0

AMQP, SASL, TLS = AMQP_1_0.headers
OTHER = b"AMQP\x00\x00\x09\x02"
MECHANISMS = encode_item(Frame(0, SaslMechanisms(sasl_server_mechanisms=("PLAIN", "ANONYMOUS"))))


@pytest.fixture
def broker():
    """A broker in this thread, in a time that stands still while there is anything to do."""
    with StillServer() as made:
        yield made
        assert made.listener.failures == []


@pytest.fixture
def dial(broker):
    """Connects clients to it, which are closed after the test."""
    with contextlib.ExitStack() as clients:

        def connect():
            return clients.enter_context(broker.dial())

        yield connect


@pytest.mark.parametrize("size", [1, 3, 8, 20])
@pytest.mark.parametrize(
    ("octets", "answer"),
    [
        (SASL, SASL + MECHANISMS),
        (AMQP, SASL),  # who does not log in is told that it must
        (TLS, SASL),
        (OTHER, SASL),
        (b"AMQP\x00\x02\x00\x00", SASL),
        (b"GET / HTTP/1.1\r\n\r\n", b""),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", b""),
        (b"AMQX", b""),
        (b"AMQP\x00\x01\x00", b""),  # too few to know: the time for the others runs out
        (b"", b""),
    ],
)
def test_a_client_is_answered_in_its_protocol_or_in_amqp_1_0(broker, dial, octets, answer, size):
    """However its octets are cut; what is no header at all is cut off [2.2, 5.3]."""
    client = dial()
    with contextlib.suppress(BrokenPipeError):  # it may be closed before it has said all
        for at in range(0, len(octets), size):
            client.sendall(octets[at : at + size])
            broker.wait(0)
    assert gone(client) == answer


OF_0_9_1 = b"AMQP\x00\x00\x09\x01"


@pytest.mark.parametrize(
    ("preset", "octets", "answer"),
    [
        ("rmq4.3", OTHER, OF_0_9_1),
        ("rmq4.3", b"AMQP\x00\x00\x08\x00", SASL),
        ("rmq4.3", b"AMQP\x00\x02\x00\x00", SASL),
        ("rmq3.8.4", SASL, OF_0_9_1),
        ("rmq3.8.4", AMQP, OF_0_9_1),
        ("rmq3.8.3", OTHER, OF_0_9_1),
        ("rmq3.5.5", b"AMQP\x00\x00\x08\x00", OF_0_9_1),
        ("rmq3.5.5", b"GET / HTTP/1.1\r\n\r\n", OF_0_9_1),
    ],
)
def test_rabbitmq_answers_a_header_that_it_does_not_take_by_its_version(preset, octets, answer):
    """0-9-1's before RabbitMQ 4, which had AMQP 1.0 by a plugin; then SASL's, as a rule."""
    with StillServer(preset) as broker, broker.dial() as client:
        client.sendall(octets)
        broker.wait(0)
        assert gone(client) == answer
        assert broker.listener.failures == []


class Echo(Client, asyncio.Protocol):
    """Another protocol: says what it hears."""

    vantage = "client:echo"
    words = "an echo"

    def __init__(self, greeting):
        super().__init__(greeting.server, greeting.name)
        self.socket = greeting.socket

    def receive(self, octets):
        self.socket.write(octets)

    data_received = receive

    def connection_lost(self, error):
        self.server.forget(self)

    def farewell(self):
        self.socket.close()

    drop = farewell


def test_another_protocol_is_an_entry_of_the_table(broker, dial, monkeypatch):
    """It gets the socket and all that was read; the others go on as they were."""
    monkeypatch.setitem(listener.PROTOCOLS, OTHER, Echo)
    client = dial()
    client.sendall(OTHER[:5])
    broker.wait(0)
    client.sendall(OTHER[5:] + b"and more")
    broker.wait(0)
    client.sendall(b", later")
    broker.wait(0)
    assert client.recv(100) == OTHER + b"and more, later"
    other = dial()
    other.sendall(SASL)
    broker.wait(0)
    assert other.recv(8) == SASL


def test_a_client_whose_protocol_is_known_may_stay_silent_as_long_as_its_protocol_lets_it(
    broker, dial, monkeypatch
):
    """The time for the first eight octets does not run on."""
    monkeypatch.setitem(listener.PROTOCOLS, OTHER, Echo)
    client = dial()
    client.sendall(OTHER)
    broker.wait(10 * broker.listener.limits.handshake_s)
    client.sendall(b", later")
    broker.wait(0)
    assert client.recv(100) == OTHER + b", later"


def test_a_client_that_has_said_nothing_is_listed_and_leaves_as_any_other(broker):
    """It has a name from the beginning, and no wire."""
    server = broker.listener
    client = broker.dial()
    (greeting,) = server.connections.values()
    assert (greeting.name, greeting.wire, greeting.held_octets) == ("c1", None, 0)
    assert "said nothing" in greeting.words
    client.close()
    broker.wait(0)
    assert server.connections == {}
    assert list(server.news) == ["c1 is gone without a close"]
