"""Much at once against the live listener: broken frames, large messages, many links, a victim."""

import contextlib
import dataclasses
import random
import socket
import threading

import pytest

from tests.fuzz_frames import CORPUS, damaged
from tests.patience import TIMEOUT_S, until
from workbench import presets
from workbench.amqp10.events import DeliveryReceived
from workbench.amqp10.frame import Frame, ProtocolHeader, encode_item, item_size
from workbench.amqp10.messaging import Accepted
from workbench.amqp10.performatives import Begin, Open, SaslInit, Transfer
from workbench.amqp10.values import Symbol
from workbench.net import LiveBroker

BODY = b"\x00\x53\x75\xa0\x01x"
MIB = 1_048_576
LOGIN = encode_item(ProtocolHeader(3, 1, 0, 0)) + encode_item(
    Frame(0, SaslInit(mechanism=Symbol("ANONYMOUS")))
)
OPENED = (
    LOGIN
    + encode_item(ProtocolHeader(0, 1, 0, 0))
    + encode_item(Frame(0, Open(container_id="fuzz")))
)
BEGUN = encode_item(Frame(0, Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)))


@pytest.fixture
def broker():
    """A broker by the specification; none of its code may fail."""
    with LiveBroker("spec") as live:
        yield live
        assert live.listener.failures == []


def dial(broker):
    """A bare socket."""
    return socket.create_connection((broker.host, broker.port), timeout=TIMEOUT_S)


def test_the_fuzzers_corpus_whole_and_damaged_breaks_its_own_connection_only(broker, raw_client):
    """Every frame of the corpus, and 300 damaged ones, behind a good handshake and session."""
    chooser = random.Random(4)
    frames = [encode_item(item) for item in CORPUS]
    frames += [damaged(chooser) for _ in range(300)]
    for raw in frames:
        with dial(broker) as sock, contextlib.suppress(OSError):
            sock.sendall(OPENED + BEGUN + raw)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass
    client = raw_client(broker).open()
    client.sender(client.session()).send(BODY, settled=True)
    client.flush()
    assert broker.connections()


@pytest.mark.slow
def test_a_message_of_16_mib_in_frames_of_512_octets_arrives_whole(raw_client):
    """Some 34,000 frames each way, to the largest message that is taken; nothing is lost."""
    limit = 16 * MIB
    preset = dataclasses.replace(presets.get("spec"), max_frame_size=512, max_message_size=limit)
    size = limit - 8  # descriptor, constructor and size of the data section
    payload = b"\x00\x53\x75\xb0" + size.to_bytes(4, "big") + bytes(size)
    with LiveBroker(preset) as broker:
        client = raw_client(broker, max_frame_size=512).open()
        session = client.session()
        receiver = client.receiver(session)
        receiver.grant(1)
        sender = client.sender(session)
        sender.send(payload, settled=True)
        arrived = lambda: broker.overview()["queue:q.enqueued"] == 1  # noqa: E731
        while not arrived():
            client.flush()  # blocking, so that TCP paces it
            client.pump(arrived, 0.1, strict=False)
        client.pump(lambda: any(isinstance(e, DeliveryReceived) for e in client.events))
        transfers = [one for one in client.received if getattr(one, "payload", b"")]
        assert all(item_size(one) <= 512 for one in transfers)
        assert b"".join(one.payload for one in transfers) == payload
        assert broker.listener.failures == []


def test_two_thousand_links_over_twenty_connections_are_served(broker, raw_client):
    """A hundred links on each: every one gets its credit, and all go with their connections."""
    clients = [raw_client(broker).open() for _ in range(20)]
    for client in clients:
        session = client.session()
        links = [session.attach_sender(f"l{n}", None, f"q{n % 10}") for n in range(100)]
        client.pump(lambda links=links: all(link.credit > 0 for link in links))
    assert broker.overview()["connections"] == 20
    for client in clients:
        client.socket.close()
    until(lambda: not broker.connections())


def frames_of(*performatives):
    """Octets of these frames, on the session that `BEGUN` begins."""
    return b"".join(encode_item(Frame(0, performative)) for performative in performatives)


ATTACKS = {
    "amqp:decode-error": b"\x00\x00\x00\x0c\x02\x00\x00\x00\x1a\x1a\x1a\x1a",
    "amqp:connection:framing-error": b"\xff\xff\xff\xff\x02\x00\x00\x00",
    "amqp:session:unattached-handle": frames_of(
        Transfer(handle=9, delivery_id=0, delivery_tag=b"t")
    ),
    "amqp:illegal-state": frames_of(Open(container_id="again")),
}
"""What an attacker sends behind a good handshake, by the condition that answers it."""


def test_a_victim_beside_attackers_loses_nothing_and_they_get_their_conditions(broker, raw_client):
    """A thousand messages, unsettled and consumed, in order, while four others break rules.

    How fast that goes is measured in `benchmarks/hostile_load.py`.
    """
    stop, answered, wrong = threading.Event(), [], []

    def attack(number):
        attacks = list(ATTACKS.items())
        while not stop.is_set():
            condition, octets = attacks[number % len(attacks)]
            number += 1
            with contextlib.suppress(ConnectionResetError), dial(broker) as sock:
                sock.sendall(OPENED + BEGUN + octets)
                answer = b""
                while condition.encode() not in answer and (data := sock.recv(65536)):
                    answer += data
                (answered if condition.encode() in answer else wrong).append((condition, answer))
            stop.wait(0.005)

    victim, reader = raw_client(broker).open(), raw_client(broker).open()
    sender = victim.sender(victim.session(), "victim")
    receiver = reader.receiver(reader.session(), "victim")
    receiver.grant(1_000)
    reader.flush()
    attackers = [threading.Thread(target=attack, args=(number,)) for number in range(4)]
    for attacker in attackers:
        attacker.start()
    try:
        for number in range(1_000):
            victim.pump(lambda: sender.credit > 0)
            sender.send(b"\x00\x53\x75\xa0\x04%04d" % number)
            victim.flush()
        victim.pump(lambda: not sender.unsettled)
        arrived = lambda: [e.delivery for e in reader.events if isinstance(e, DeliveryReceived)]  # noqa: E731
        reader.pump(lambda: len(arrived()) == 1_000)
        for delivery in arrived():
            receiver.settle(delivery.delivery_id, state=Accepted())
        reader.flush()
        reader.pump(lambda: broker.overview()["queue:victim.terminal"] == 1_000)
    finally:
        stop.set()
        for attacker in attackers:
            attacker.join()
    assert [int(one.payload[-4:]) for one in arrived()] == list(range(1_000))
    assert wrong == []
    assert {condition for condition, _ in answered} == set(ATTACKS)
