"""Clients that come in with TLS: who is let in, and what the one who serves is told of the rest."""

import socket
import ssl

import pytest

from tests.net.certificates import certificate_for
from tests.patience import TIMEOUT_S, until
from workbench.net import Limits, LiveBroker
from workbench.net.serve import serve
from workbench.net.tls import server_context, trust_in
from workbench.trace import files

SASL_HEADER = b"AMQP\x03\x01\x00\x00"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """For `localhost`: the certificate and its key."""
    return certificate_for("localhost", tmp_path_factory.mktemp("certificate"))


def dial(server):
    return socket.create_connection((server.host, server.port), timeout=TIMEOUT_S)


def is_refused_by(context, name):
    """A client that ends the handshake with an alert."""

    def client(server):
        with dial(server) as plain, pytest.raises(ssl.SSLError):
            context().wrap_socket(plain, server_hostname=name)

    return client


def says(octets):
    """A client that says so much, and waits for the end."""

    def client(server):
        with dial(server) as plain:
            plain.sendall(octets)
            assert plain.recv(1) == b""

    return client


def leaves(server):
    dial(server).close()


REFUSED = "the client refused"
NOT_LET_IN = {
    "who does not trust it": (is_refused_by(ssl.create_default_context, "localhost"), REFUSED),
    "who speaks no TLS": (
        says(SASL_HEADER),
        "legal here: TLS, an address that begins with amqps://",
    ),
    "who says nothing": (says(b""), "it was not over within 0.3 s"),
    "who leaves": (leaves, "the client closed the connection"),
}


@pytest.mark.parametrize(("client", "why"), NOT_LET_IN.values(), ids=NOT_LET_IN.keys())
def test_who_is_not_let_in_is_told_to_the_one_who_serves(certificate, client, why):
    """In one line, with the client's address: asyncio tells nobody."""
    limits = Limits(handshake_s=0.3 if "0.3 s" in why else TIMEOUT_S)
    with LiveBroker(tls=server_context(*certificate), limits=limits) as broker:
        client(broker)
        news = []
        until(lambda: news.extend(broker.news()) or news)
        assert broker.connections() == []
    assert len(news) == 1
    line = news[0]
    assert line.startswith("a client from 127.0.0.1 port ")
    assert "is not let in: the TLS handshake failed: " in line
    assert why in line


def test_who_speaks_tls_where_it_is_not_spoken_is_told_to_the_one_who_serves():
    """Its first octets are no protocol header [2.2]."""
    with LiveBroker() as broker:
        is_refused_by(ssl.create_default_context, "localhost")(broker)
        until(lambda: not broker.connections())
        news = broker.news()
    assert len(news) == 1
    line = news[0]
    assert line.startswith(
        "c1 is gone: amqp:connection:framing-error: at octet 0: the stream begin"
    )
    assert "with 16 03 01" in line
    assert "(TLS); legal is a protocol header: 41 4d 51 50" in line


def test_a_client_that_asks_for_another_name_is_told_as_one_that_refuses(certificate):
    """A proxy tells it as the broker does."""
    with LiveBroker() as behind:
        target = f"127.0.0.1:{behind.port}"
        with serve(forward=target, tls=server_context(*certificate)) as proxy:
            is_refused_by(lambda: trust_in(certificate[0]), "example.org")(proxy)
            news = []
            until(lambda: news.extend(proxy.news()) or news)
    assert REFUSED in news[0]
    assert "a name that is in it" in news[0]


def test_octets_in_one_segment_with_the_end_of_the_handshake_are_served(certificate, tmp_path):
    """TCP keeps no boundaries; and such a client is a connection as any other."""
    with serve("rmq4.3", tls=server_context(*certificate), trace=tmp_path) as broker:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = trust_in(certificate[0]).wrap_bio(incoming, outgoing, server_hostname="localhost")
        with dial(broker) as client:
            shaken = False
            while not shaken:
                try:
                    tls.do_handshake()
                    shaken = True
                except ssl.SSLWantReadError:
                    client.sendall(outgoing.read())
                    incoming.write(client.recv(65536))
            tls.write(SASL_HEADER)
            client.sendall(outgoing.read())  # the end of the handshake, and the header
            answer = b""
            while len(answer) < len(SASL_HEADER):
                incoming.write(client.recv(65536))
                try:
                    answer += tls.read(len(SASL_HEADER))
                except ssl.SSLWantReadError:
                    continue
            assert answer == SASL_HEADER
            assert broker.connections() == ["c1"]
        until(lambda: not broker.connections())
    assert [row.event for row in files.read(tmp_path)][:2] == ["connect", "sent"]


def test_who_shakes_hands_counts_among_those_connected(certificate):
    """`connections` bounds sockets; and a server that stops does not wait for a handshake."""
    limits = Limits(connections=1, handshake_s=TIMEOUT_S)
    broker = LiveBroker(tls=server_context(*certificate), limits=limits)
    with broker, dial(broker) as silent:
        until(lambda: broker.ask(lambda: broker.listener.handshakes))
        says(b"")(broker)
        assert broker.overview()["turned_away"] == 1
        broker.stop()
        assert silent.recv(1) == b""
