"""AMQP 0-9-1 through the proxy: octet for octet, recorded, held and let go by hand."""

import contextlib

import pytest

from tests.net.still import StillServer, gone
from tests.net.test_live_091 import answers, handshake, heard, opening, publish
from workbench.amqp091 import methods as m
from workbench.amqp091.frame import Frame, encode_item, kind_of
from workbench.net.passing import FORM_0_9_1, FrameSplitter, Opaque
from workbench.sim import Direction

B2C = Direction.BROKER_TO_CLIENT
CONSUME = Frame(1, m.BasicConsume(queue="q", consumer_tag="t"))


SOON_S = 0.01


def say(proxy, client, *items):
    """Write frames, each after the one before was answered by the broker behind."""
    for item in items:
        client.sendall(encode_item(item))
        proxy.wait(SOON_S)


@pytest.fixture
def behind():
    """A broker in this thread, in a time that stands still."""
    with StillServer("rmq4.3") as made:
        yield made
        assert list(made.listener.failures) == []


@pytest.fixture
def proxy(behind):
    """A recording proxy in front of it."""
    with StillServer(forward=behind) as made:
        yield made
        assert list(made.listener.failures) == []


@pytest.fixture
def dial(proxy):
    """Connects clients through it, which are closed after the test."""
    with contextlib.ExitStack() as clients:

        def connect(items=()):
            client = clients.enter_context(proxy.dial())
            say(proxy, client, *items)
            return client

        yield connect


@pytest.mark.parametrize("size", [1, 5, 4096])
def test_each_frame_is_observed_once_with_the_book_of_its_channel(behind, proxy, dial, size):
    """However the octets are cut; the password passes and is not recorded."""
    client = dial()
    consume = [Frame(1, m.BasicQos(prefetch_count=2)), CONSUME]
    for octets in map(encode_item, [*opening(), *consume]):
        for at in range(0, len(octets), size):
            client.sendall(octets[at : at + size])
            proxy.wait(SOON_S)
    assert kind_of(heard(client)[-3]) == "basic.deliver"
    say(proxy, client, Frame(1, m.BasicAck(delivery_tag=1)))
    frames = [row for row in proxy.rows() if row.frame_id is not None]
    assert {(row.vantage, row.event, row.protocol) for row in frames} == {
        ("wire", "observed", "amqp-0-9-1")
    }
    assert len({row.frame_id for row in frames}) == len(frames)
    (delivered,) = (row for row in frames if row.kind == "basic.deliver")
    assert (delivered.consumer, delivered.from_peer) == ("t", "broker")
    assert delivered.ledger == frames[-3].ledger
    assert (delivered.ledger["prefetch_count"], delivered.ledger["unacknowledged"]) == (2, 1)
    assert frames[-1].ledger["unacknowledged"] == 0
    (start_ok,) = (row for row in frames if row.kind == "connection.start-ok")
    assert "guest" not in str(start_ok)
    assert behind.overview()["queue:q.unsettled"] == 0
    (words,) = [one.words for one in proxy.listener.connections.values()]
    assert words.startswith("AMQP 0-9-1, product '?'")


def test_frames_are_held_and_let_go_by_hand(behind, proxy, dial):
    """A publish that is held has not reached the broker; a delivery neither its client."""
    client = dial(opening())
    heard(client)
    wire = proxy.wire()
    wire.hold()
    say(proxy, client, *publish())
    assert [held.kind for held in wire.held()] == [
        "basic.publish", "content-header", "content-body",
    ]  # fmt: skip
    assert wire.held()[2].octets == encode_item(publish()[2])
    assert behind.overview()["queue:q.ready"] == 1
    wire.free_run()
    proxy.wait(SOON_S)
    assert behind.overview()["queue:q.ready"] == 2
    wire.break_when("unacknowledged >= 2 b2c", link="t")
    say(proxy, client, CONSUME)
    assert list(map(kind_of, heard(client))) == [
        "basic.consume-ok",
        *KINDS_OF_DELIVERY,
        KINDS_OF_DELIVERY[0],
    ]
    assert [stop.why for stop in wire.stops()] == ["unacknowledged of link t >= 2 broker to client"]


KINDS_OF_DELIVERY = ["basic.deliver", "content-header", "content-body"]


def test_behind_a_closed_gate_heartbeats_tell_that_all_is_well(behind, proxy, dial):
    """Both sides hear one in time, for as long as nothing else passes."""
    client = dial(handshake(heartbeat=10))
    heard(client)
    proxy.wire().hold()
    say(proxy, client, Frame(1, m.ChannelOpen()))
    for _ in range(12):
        proxy.wait(5)
    kinds = list(map(kind_of, heard(client)))
    assert kinds == ["heartbeat"] * len(kinds)
    assert len(kinds) >= 6
    assert behind.connections()


def test_what_cannot_be_read_passes_and_its_counters_are_unknown(proxy, dial):
    """A frame without its frame-end: the broker behind says what is wrong with it."""
    client = dial(opening())
    heard(client)
    client.sendall(encode_item(Frame(1, m.ChannelFlow(active=True)))[:-1] + b"\xcd")
    assert answers(gone(client))[-1].payload.reply_code == 501
    (told,) = [row.extra["text"] for row in proxy.rows() if row.event == "error"]
    assert told.startswith("passed on unread: at octet 0: type 1")
    assert "invalid_frame_end_marker,205" in told


def test_a_large_frame_is_passed_on_in_pieces():
    """It is not kept whole; what follows it is read again."""
    splitter = FrameSplitter()
    splitter.answers(FORM_0_9_1)
    large = encode_item(Frame(1, bytes(5_000_000)))
    octets = large + encode_item(Frame(1, m.BasicGetEmpty()))
    pieces = [
        piece
        for at in range(0, len(octets), 65536)
        for piece in splitter.feed(octets[at : at + 65536])
    ]
    assert b"".join(part for part, _ in pieces) == octets
    assert kind_of(pieces[-1][1]) == "basic.get-empty"
    unread = [item for _, item in pieces[:-1]]
    assert all(isinstance(item, Opaque) for item in unread)
    assert [item.more for item in unread] == [True] * (len(unread) - 1) + [False]
