"""The broker behind a socket: the same broker, a real client, a thread of its own."""

import contextlib
import socket

import pytest

from tests.patience import TIMEOUT_S, until
from workbench.amqp10.frame import Frame, encode_item
from workbench.amqp10.performatives import SaslInit
from workbench.net import Limits, ListenError, LiveBroker

proton = pytest.importorskip("proton", reason="needs python-qpid-proton")

from proton import Message  # noqa: E402  (only where the library is)
from proton.utils import BlockingConnection  # noqa: E402


@pytest.fixture
def broker():
    """A live broker on a free port."""
    with LiveBroker("spec") as live:
        yield live


def connect(broker):
    """A blocking Proton connection."""
    return BlockingConnection(broker.url, timeout=TIMEOUT_S, allowed_mechs="ANONYMOUS")


def test_a_real_client_sends_and_receives_over_a_socket(broker):
    """What Proton's blocking client sends it gets back, in order."""
    connection = connect(broker)
    sender = connection.create_sender("q")
    for number in range(250):  # more than one grant to the publisher
        sender.send(Message(body=number))
    receiver = connection.create_receiver("q", credit=10)
    bodies = []
    for _ in range(250):
        bodies.append(receiver.receive(timeout=TIMEOUT_S).body)
        receiver.accept()
    assert bodies == list(range(250))
    connection.close()


def test_octets_that_are_no_amqp_close_the_connection_and_nothing_else(broker):
    """A stream of nonsense is answered and closed; the next client is served [2.2]."""
    with socket.create_connection((broker.host, broker.port), timeout=TIMEOUT_S) as nonsense:
        nonsense.sendall(b"GET / HTTP/1.1\r\n\r\n")
        answer = b""
        while chunk := nonsense.recv(4096):
            answer += chunk
    assert answer[:4] in (b"", b"AMQP")
    connection = connect(broker)
    connection.create_sender("q").send(Message(body="still there"))
    connection.close()
    assert broker.listener.failures == []


def test_one_connection_too_many_is_turned_away():
    """Beyond `connections` a client is closed at once, those before it go on."""
    with LiveBroker("spec", limits=Limits(connections=1)) as broker:
        first = connect(broker)
        second = socket.create_connection((broker.host, broker.port), timeout=TIMEOUT_S)
        with second, contextlib.suppress(ConnectionResetError):
            assert second.recv(8) == b""
        assert broker.overview()["turned_away"] == 1
        first.create_sender("q").send(Message(body="served"))
        first.close()


def test_another_address_than_loopback_needs_a_word_and_a_lock():
    """Listening for other machines is refused unless it is asked for, and then without a lock."""
    with pytest.raises(ListenError, match="allow_remote"):
        LiveBroker("spec", host="0.0.0.0")
    with pytest.raises(ListenError, match="tls or users"):
        LiveBroker("spec", host="0.0.0.0", allow_remote=True)


def test_a_host_that_can_be_none_is_told_in_one_line():
    """Nobody looks such a name up."""
    with pytest.raises(ListenError, match="can be no host"):
        LiveBroker("spec", host="a..b", allow_remote=True, users={"ann": "secret"})


def test_a_port_in_use_is_told_in_one_line(broker):
    """A second listener on the port says so, and leaves no thread behind."""
    with pytest.raises(ListenError, match=f"port {broker.port}"):
        LiveBroker("spec", port=broker.port)


def test_after_stop_nobody_listens_and_stopping_again_is_harmless():
    """`stop` ends thread and socket."""
    broker = LiveBroker("spec")
    broker.stop()
    broker.stop()
    assert not broker.running
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((broker.host, broker.port), timeout=TIMEOUT_S)


HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
ENTRANCES = {
    "no SASL": None,
    "ANONYMOUS": SaslInit(mechanism="ANONYMOUS"),
    "guest": SaslInit(mechanism="PLAIN", initial_response=b"\0guest\0guest"),
    "guest with another password": SaslInit(mechanism="PLAIN", initial_response=b"\0guest\0secret"),
    "ann": SaslInit(mechanism="PLAIN", initial_response=b"\0ann\0secret"),
}


@pytest.mark.parametrize(
    ("users", "welcome"),
    [(None, {"ANONYMOUS", "guest"}), ({"ann": "secret"}, {"ann"})],
    ids=["nobody named", "ann"],
)
def test_who_is_let_in(users, welcome):
    """ANONYMOUS and guest:guest, or those who are named alone; without SASL nobody."""
    with LiveBroker("rmq4.3", users=users) as broker:
        assert {name for name, init in ENTRANCES.items() if let_in(broker, init)} == welcome


def test_who_is_not_let_in_is_told_why_by_the_one_who_serves():
    """Beside what the client is told, which is a code."""
    with LiveBroker("rmq4.3") as broker:
        assert not let_in(broker, ENTRANCES["guest with another password"])
        until(lambda: not broker.connections())
        assert broker.news() == ["c1 is gone: wrong user or password"]


def let_in(broker, init):
    """Whether a client that begins so gets the header of AMQP."""
    with socket.create_connection((broker.host, broker.port), timeout=TIMEOUT_S) as client:
        client.sendall(
            HEADER if init is None else SASL_HEADER + encode_item(Frame(0, init)) + HEADER
        )
        said = b""
        with contextlib.suppress(ConnectionResetError):
            while octets := client.recv(65536):
                said += octets
                if said.endswith(HEADER):
                    return True
        assert said.startswith(SASL_HEADER)
        return False
