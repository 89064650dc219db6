"""Clients that break rules or waste resources: each pays for itself, and nobody else notices."""

import contextlib
import random
import socket
import struct
import time

import pytest

from tests.net.still import StillServer, dial, gone
from tests.patience import TIMEOUT_S, until
from workbench.amqp10.frame import Frame, ProtocolHeader, encode_item
from workbench.amqp10.messaging import Source, Target
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Role,
    SaslInit,
    Transfer,
)
from workbench.amqp10.values import Symbol
from workbench.net import Limits, LiveBroker

BODY = b"\x00\x53\x75\xa0\x01x"
UINT_MAX = 4294967295
WRITE_OCTETS = 65_536
FLOOD_OCTETS = 4_000_000  # many times what is kept of it anywhere


@pytest.fixture
def limits():
    """Patience enough for a busy machine; a test of patience sets its own limits."""
    return Limits(write_octets=WRITE_OCTETS)


def within(**limits):
    """Run a test under these limits."""
    return pytest.mark.parametrize("limits", [Limits(**limits)], ids=["impatient"])


@pytest.fixture
def server_class():
    """In a time of its own; a test of the kernel's buffers takes a real one."""
    return StillServer


@pytest.fixture
def broker(server_class, limits):
    """A broker within the limits."""
    with server_class("spec", limits=limits) as server:
        yield server
        assert server.listener.failures == []


@pytest.fixture
def served(broker, raw_client):
    """Ask at the end whether a well-behaved client is still served."""

    def opened():
        """An open client; one that a busy machine made slow dials again."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            client = raw_client(broker)
            try:
                return client.open()
            except AssertionError:
                if not client.closed or time.monotonic() > deadline:
                    raise

    def check():
        client = opened()
        sender = client.sender(client.session(), "after")
        sender.send(BODY, settled=True)
        client.flush()
        client.amqp.close()
        client.pump(lambda: client.amqp.ended)

    return check


def small_buffer(broker, name, option):
    """Let the kernel keep little for a connection of the broker."""
    transport = broker.listener.connections[name].end.transport
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, option, 16_384)


@within(handshake_s=0.4)
def test_who_says_nothing_is_closed_after_the_handshake_time(broker, served):
    """A connection must be open within `handshake_s`."""
    with dial(broker) as silent:
        began = broker.now()
        gone(silent)
    assert broker.now() - began == pytest.approx(0.4)
    served()


@within(handshake_s=0.4)
def test_a_slow_loris_is_closed_after_the_handshake_time(broker, served):
    """Octet by octet is no way to stay: the handshake has one deadline as a whole."""
    frame = (512).to_bytes(4, "big") + bytes((2, 1, 0, 0))
    octets = (b"AMQP\x03\x01\x00\x00" + frame).ljust(8 + 512, b"\x00")
    sent = 0
    with dial(broker) as slow, contextlib.suppress(OSError):
        for octet in octets:
            slow.sendall(bytes([octet]))
            sent += 1
            broker.wait(0.05)
    assert sent == 8
    served()


@within(idle_s=0.2, close_s=0.4)
def test_a_half_open_connection_is_closed_after_twice_the_idle_time_out(broker, raw_client, served):
    """A client that has vanished without a word is given up [2.4.5]."""
    client = raw_client(broker).open()
    assert client.amqp.remote_open.idle_time_out == 200
    broker.until(lambda: not broker.connections())
    client.pump(lambda: client.errors() != [], strict=False)
    assert client.errors() == ["amqp:resource-limit-exceeded"]
    served()


def test_random_octets_end_their_own_connection_only(broker, served):
    """A hundred streams of noise, bare and behind a good handshake."""
    noise = random.Random(1)
    opened = (
        encode_item(ProtocolHeader(3, 1, 0, 0))
        + encode_item(Frame(0, SaslInit(mechanism=Symbol("ANONYMOUS"))))
        + encode_item(ProtocolHeader(0, 1, 0, 0))
        + encode_item(Frame(0, Open(container_id="noise")))
    )
    for number in range(100):
        with dial(broker) as sock, contextlib.suppress(OSError):
            sock.sendall((b"", opened)[number % 2] + noise.randbytes(noise.randrange(1, 3000)))
            sock.shutdown(socket.SHUT_WR)
            gone(sock)
    until(lambda: not broker.connections())
    served()


def test_broken_frames_behind_a_good_handshake_end_their_own_connection_only(
    broker, raw_client, served
):
    """Frames whose inside is noise are answered with a close, at once."""
    noise = random.Random(2)
    for _ in range(60):
        client = raw_client(broker).open()
        body = noise.randbytes(noise.randrange(1, 200))
        client.socket.sendall(struct.pack(">IBBH", 8 + len(body), 2, 0, 0) + body)
        client.pump(lambda client=client: client.closed or client.errors() != [])
        client.socket.close()
    until(lambda: not broker.connections())
    served()


def attach(role=Role.SENDER, handle=0):
    """An attach."""
    return Attach(
        name=f"l{handle}", handle=handle, role=role, source=Source(address="q"),
        target=Target(address="q"), initial_delivery_count=0 if role is Role.SENDER else None,
    )  # fmt: skip


BEGIN = Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10)
FRAMES = {
    "open": Open(container_id="again"),
    "begin": BEGIN,
    "attach": attach(),
    "attach-receiver": attach(Role.RECEIVER, 1),
    "flow": Flow(incoming_window=10, next_outgoing_id=0, outgoing_window=10, next_incoming_id=0),
    "flow-link": Flow(
        incoming_window=10, next_outgoing_id=0, outgoing_window=10, next_incoming_id=0,
        handle=7, link_credit=UINT_MAX, delivery_count=0,
    ),
    "transfer": Transfer(handle=0, delivery_id=0, delivery_tag=b"t"),
    "transfer-unattached": Transfer(handle=9, delivery_id=0, delivery_tag=b"t"),
    "disposition": Disposition(role=Role.RECEIVER, first=5, last=UINT_MAX),
    "detach": Detach(handle=3),
    "end": End(),
    "close": Close(),
}  # fmt: skip


@pytest.mark.parametrize("second", FRAMES)
@pytest.mark.parametrize("first", FRAMES)
def test_valid_frames_in_any_order_are_answered_or_refused_in_their_scope(
    broker, raw_client, first, second
):
    """Two frames after the opens, in every order: an error where it is due, never a fault."""
    client = raw_client(broker).open()
    for name in (first, second):
        with contextlib.suppress(OSError):
            client.socket.sendall(encode_item(Frame(0, FRAMES[name])))
    # A second open is illegal, and so is whatever needs a session where there is none.
    illegal = first not in ("begin", "close")
    patience_s = TIMEOUT_S if illegal else 0.05
    client.pump(lambda: client.closed or client.errors() != [], patience_s, strict=illegal)
    assert broker.listener.failures == []


@pytest.mark.parametrize("server_class", [LiveBroker])
def test_a_receiver_that_never_reads_costs_a_bounded_buffer(broker, raw_client, served):
    """What it does not read stays in the queue; the socket's buffer is bounded, others go on."""
    deaf = raw_client(broker, idle_time_out_ms=0).open()
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    session = deaf.session()
    receiver = deaf.receiver(session, "big")
    receiver.grant(UINT_MAX)
    deaf.flush()  # and it never reads again
    writer = raw_client(broker).open()
    sender = writer.sender(writer.session(), "big")
    payload = b"\x00\x53\x75\xb0" + (20_000).to_bytes(4, "big") + bytes(20_000)
    sent = 0
    while sent < 1_000:  # 20 MB
        writer.pump(lambda: sender.credit > 0)
        while sender.credit and sent < 1_000:
            sender.send(payload, settled=True)
            sent += 1
        writer.flush()
        deaf.socket.sendall(encode_item(Frame(0)))  # it lives, it only does not read
    waiting = broker.ask(lambda: broker.listener.connections["c1"].end.unread)
    assert waiting < 6 * WRITE_OCTETS
    assert broker.overview()["queue:big.ready"] > 100
    served()


@pytest.mark.parametrize("server_class", [LiveBroker])
def test_who_asks_for_ever_without_reading_is_not_read_either(broker, raw_client, served):
    """A flood of echo requests fills no memory: when the answers pile up TCP holds the client."""
    deaf = raw_client(broker).open()
    session = deaf.session()
    assert session is not None
    echo = Flow(
        incoming_window=10, next_outgoing_id=0, outgoing_window=10, next_incoming_id=0, echo=True
    )
    flood = encode_item(Frame(0, echo)) * 2_000
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):  # the kernel keeps little
        deaf.socket.setsockopt(socket.SOL_SOCKET, option, 16_384)
        broker.ask(lambda option=option: small_buffer(broker, "c1", option))
    deaf.socket.settimeout(1)
    sent = 0
    with contextlib.suppress(TimeoutError):  # TCP holds it
        while sent < FLOOD_OCTETS:
            sent += deaf.socket.send(flood[sent % len(flood) :])
    assert sent < FLOOD_OCTETS
    assert broker.connections() == ["c1"]
    for connection in broker.connections():
        waiting = broker.ask(lambda name=connection: broker.listener.connections[name].end.unread)
        # Beyond four times the limit nothing is read; what had been read is answered.
        assert waiting < 4 * WRITE_OCTETS + 2 * Limits().read_octets
    served()


def test_many_connections_at_once(raw_client):
    """Two hundred clients are served side by side, and leave nothing behind."""
    with StillServer("spec") as broker:
        clients = [raw_client(broker).open() for _ in range(200)]
        assert broker.overview()["connections"] == 200
        for client in clients[::20]:
            client.sender(client.session())
        for client in clients:
            client.socket.close()
        until(lambda: not broker.connections())
        assert broker.listener.failures == []
        assert not broker.listener.broker.connections


@within(close_s=0.4)
def test_a_close_that_is_not_answered_is_cut(broker, raw_client, served):
    """After the broker's close a client has `close_s` to answer."""
    client = raw_client(broker).open()
    client.socket.sendall(encode_item(Frame(0, FRAMES["detach"])))
    gone(client.socket)
    served()
