"""Clients that break rules or waste resources: each pays for itself, and nobody else notices."""

import contextlib
import dataclasses
import random
import socket
import struct
import time

import pytest

from workbench import presets
from workbench.amqp.framing import Frame, ProtocolHeader, encode_item
from workbench.amqp.messaging import Source, Target
from workbench.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Role,
    Transfer,
)
from workbench.net import Limits, LiveBroker

TIMEOUT_S = 10
BODY = b"\x00\x53\x75\xa0\x01x"
UINT_MAX = 4294967295
ONE_READ = 262_144  # octets that asyncio reads at a time


@pytest.fixture
def broker():
    """A broker with short patience."""
    limits = Limits(handshake_s=0.4, idle_s=0.2, close_s=0.4, write_octets=65_536)
    with LiveBroker("spec", limits=limits) as live:
        yield live
        assert live.listener.failures == []


@pytest.fixture
def served(broker, raw_client):
    """Ask at the end whether a well-behaved client is still served."""

    def check():
        client = raw_client(broker).open()
        sender = client.sender(client.session(), "after")
        sender.send(BODY, settled=True)
        client.flush()
        client.amqp.close()
        client.pump(lambda: client.amqp.ended)

    return check


def gone(sock, within_s=TIMEOUT_S):
    """Read until the broker closes; seconds that took."""
    began = time.monotonic()
    sock.settimeout(within_s)
    with contextlib.suppress(ConnectionResetError):
        while sock.recv(65536):
            assert time.monotonic() - began < within_s
    return time.monotonic() - began


def dial(broker):
    """A bare socket."""
    return socket.create_connection((broker.host, broker.port), timeout=TIMEOUT_S)


def eventually(condition, within_s=TIMEOUT_S):
    """Wait for a condition."""
    deadline = time.monotonic() + within_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def test_who_says_nothing_is_closed_after_the_handshake_time(broker, served):
    """A connection must be open within `handshake_s`."""
    with dial(broker) as silent:
        assert 0.2 < gone(silent) < 3
    served()


def test_a_slow_loris_is_closed_after_the_handshake_time(broker, served):
    """Octet by octet is no way to stay: the handshake has one deadline as a whole."""
    octets = b"AMQP\x03\x01\x00\x00" + bytes(100)
    began = time.monotonic()
    with dial(broker) as slow, contextlib.suppress(OSError):
        for octet in octets:
            slow.sendall(bytes([octet]))
            time.sleep(0.05)
    assert time.monotonic() - began < 3
    served()


def test_a_half_open_connection_is_closed_after_twice_the_idle_time_out(broker, raw_client, served):
    """A client that has vanished without a word is given up [2.4.5]."""
    client = raw_client(broker).open()
    assert client.amqp.remote_open.idle_time_out == 200
    eventually(lambda: not broker.connections())
    client.pump(lambda: client.errors() != [], strict=False)
    assert client.errors() == ["amqp:resource-limit-exceeded"]
    served()


def test_random_octets_end_their_own_connection_only(broker, served):
    """A hundred streams of noise, bare and behind a good handshake."""
    noise = random.Random(1)
    opened = encode_item(ProtocolHeader(0, 1, 0, 0)) + encode_item(
        Frame(0, Open(container_id="noise"))
    )
    for number in range(100):
        with dial(broker) as sock, contextlib.suppress(OSError):
            sock.sendall((b"", opened)[number % 2] + noise.randbytes(noise.randrange(1, 3000)))
            sock.shutdown(socket.SHUT_WR)
            gone(sock)
    eventually(lambda: not broker.connections())
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
    eventually(lambda: not broker.connections())
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


def test_a_grant_of_all_there_is_gets_all_there_is(broker, raw_client, served):
    """link-credit 4294967295 is legal: it is the absolute number, and no counter breaks."""
    client = raw_client(broker).open()
    session = client.session()
    sender = client.sender(session)
    for _ in range(50):
        sender.send(BODY, settled=True)
    receiver = client.receiver(session)
    receiver.grant(UINT_MAX)
    client.pump(lambda: client.kinds().count("transfer") == 50)
    served()


def test_a_publisher_that_ignores_credit_loses_its_link(raw_client):
    """More transfers than credit: detach with transfer-limit-exceeded [2.6.7, 2.8.17]."""
    preset = dataclasses.replace(
        presets.get("spec"), publisher_credit=5, publisher_credit_regrant_at=-1
    )
    with LiveBroker(preset) as broker:
        client = raw_client(broker).open()
        client.sender(client.session())
        for number in range(7):
            transfer = Transfer(
                handle=0, delivery_id=number, delivery_tag=bytes([number]), settled=True
            )
            client.socket.sendall(encode_item(Frame(0, transfer, BODY)))
        # The seventh comes for a link that is gone with an error: that ends the session [2.8.16].
        client.pump(lambda: len(client.errors()) == 2)
        assert client.errors() == ["amqp:link:transfer-limit-exceeded", "amqp:session:errant-link"]
        assert broker.overview()["queue:q.ready"] == 5
        assert broker.connections() == ["c1"]


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
    waiting = broker.ask(
        lambda: broker.listener.connections["c1"]._transport.get_write_buffer_size()
    )
    assert waiting < 6 * 65_536
    assert broker.overview()["queue:big.ready"] > 100
    served()


def test_who_asks_for_ever_without_reading_is_not_read_either(broker, raw_client, served):
    """A flood of echo requests fills no memory: when the answers pile up TCP holds the client."""
    deaf = raw_client(broker).open()
    session = deaf.session()
    assert session is not None
    echo = Flow(
        incoming_window=10, next_outgoing_id=0, outgoing_window=10, next_incoming_id=0, echo=True
    )
    flood = encode_item(Frame(0, echo)) * 2_000
    deaf.socket.settimeout(0.3)
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    began = time.monotonic()
    with contextlib.suppress(OSError):
        while time.monotonic() - began < 3:
            deaf.socket.sendall(flood)
    for connection in broker.connections():
        waiting = broker.ask(
            lambda name=connection: broker.listener.connections[
                name
            ]._transport.get_write_buffer_size()
        )
        # Beyond four times the limit nothing is read; what had been read is answered.
        assert waiting < 4 * 65_536 + 2 * ONE_READ
    served()


def test_many_connections_at_once(raw_client):
    """Two hundred clients are served side by side, and leave nothing behind."""
    with LiveBroker("spec") as broker:
        clients = [raw_client(broker).open() for _ in range(200)]
        assert broker.overview()["connections"] == 200
        for client in clients[::20]:
            client.sender(client.session())
        for client in clients:
            client.socket.close()
        eventually(lambda: not broker.connections())
        assert broker.listener.failures == []
        assert not broker.listener.broker.connections


def test_a_close_that_is_not_answered_is_cut(broker, raw_client, served):
    """After the broker's close a client has `close_s` to answer."""
    client = raw_client(broker).open()
    client.socket.sendall(encode_item(Frame(0, FRAMES["detach"])))
    assert gone(client.socket) < 3
    served()
