"""The frozen wire: a real client's frames wait for a hand, and the client stays alive meanwhile."""

import threading

import pytest

from tests.net.still import StillServer, gone
from tests.patience import TIMEOUT_S, held_on
from workbench.amqp10.frame import Frame, encode_item
from workbench.net import Limits
from workbench.net.serve import serve
from workbench.sim import WireError
from workbench.views.scene import scene


@pytest.fixture
def broker():
    """A recording broker."""
    with StillServer() as still:
        yield still


def transfers(client):
    """How many transfers the broker has sent to a raw client."""
    return client.kinds().count("transfer")


def consumer(broker, raw_client, messages=6):
    """A raw client with a receiver on a queue that holds messages."""
    client = raw_client(broker).open()
    session = client.session()
    sender = client.sender(session)
    for _ in range(messages):
        sender.send(b"\x00\x53\x75\xa0\x01x", settled=True)
    receiver = client.receiver(session)
    return client, receiver


def test_held_frames_go_on_one_at_a_time_and_in_order(broker, raw_client):
    """A closed gate keeps every frame; `step` lets the oldest through and stays closed."""
    client, receiver = consumer(broker, raw_client)
    wire = broker.wire()
    wire.hold("b2c")
    receiver.grant(4)
    client.flush()
    held = held_on(wire, 4)
    assert [frame.kind for frame in held[:4]] == ["transfer"] * 4
    assert [frame.item.performative.delivery_id for frame in held[:4]] == [0, 1, 2, 3]
    assert transfers(client) == 0
    wire.step()
    client.pump(lambda: transfers(client) == 1)
    wire.step(2)
    client.pump(lambda: transfers(client) == 3)
    assert not client.pump(lambda: transfers(client) > 3, 60, strict=False)
    wire.free_run()
    client.pump(lambda: transfers(client) == 4)
    assert [frame.performative.delivery_id for frame in client.received if frame_is(frame)] == [
        0, 1, 2, 3
    ]  # fmt: skip


def frame_is(item, kind="transfer"):
    """Whether an item is such a frame."""
    performative = getattr(item, "performative", None)
    return performative is not None and kind == performative.NAME


def test_what_the_client_sends_waits_too_and_the_broker_knows_nothing_of_it(broker, raw_client):
    """A grant that is held has not reached the broker: no message moves [2.6.7]."""
    client, receiver = consumer(broker, raw_client)
    wire = broker.wire()
    wire.hold("c2b")
    receiver.grant(2)
    client.flush()
    (held,) = held_on(wire, 1)
    assert (held.kind, held.direction) == ("flow", "c2b")
    assert not client.pump(lambda: transfers(client) > 0, 60, strict=False)
    wire.release(held.frame_id)
    client.pump(lambda: transfers(client) == 2)


def test_a_breakpoint_on_a_kind_stops_before_that_frame(broker, raw_client):
    """The wire runs freely to the first such frame, and that one is held."""
    client, receiver = consumer(broker, raw_client)
    wire = broker.wire()
    for _ in range(2):  # told twice it is one
        assert wire.break_when("transfer b2c") == "a transfer broker to client"
        assert wire.breakpoints() == ["a transfer broker to client"]
    receiver.grant(3)
    client.flush()
    assert [frame.kind for frame in held_on(wire, 3)] == ["transfer"] * 3
    assert len(wire.stops()) >= 1
    wire.clear_breakpoints()
    wire.free_run()
    client.pump(lambda: transfers(client) == 3)


def test_a_breakpoint_on_a_counter_stops_at_the_frame_that_brings_it_there(broker, raw_client):
    """When the broker's link-credit reaches 2, what follows is held."""
    client, receiver = consumer(broker, raw_client)
    wire = broker.wire()
    wire.break_when("link_credit <= 2", link="in")
    receiver.grant(5)
    client.flush()
    held = held_on(wire, 3)
    # 5 -> 4 -> 3 pass; the transfer that leaves a credit of 2 is the first that waits.
    client.pump(lambda: transfers(client) == 2)
    assert held[0].item.performative.delivery_id == 2
    assert [stop.why for stop in wire.stops()] == ["link_credit of link in <= 2"]


def test_unknown_kinds_counters_and_directions_are_told_with_those_there_are(broker, raw_client):
    """A mistake in a breakpoint is answered with what is legal."""
    raw_client(broker).open()
    wire = broker.wire()
    for words, legal in (
        ("transfers", "no frame is a 'transfers'; legal: attach, [a-z, -]*transfer$"),
        ("credit = 1", "no counter 'credit'; legal: delivery_count, link_credit, "),
        ("link_credit < 1", "legal: a kind of frame .transfer, flow c2b., or a counter with"),
        ("flow up", "is no breakpoint"),
    ):
        with pytest.raises(WireError, match=legal):
            wire.break_when(words)
    with pytest.raises(WireError, match="c2b"):
        wire.hold("up")
    with pytest.raises(WireError, match="there are: c1"):
        broker.wire("c9")


def test_heartbeats_pass_the_gate_so_that_a_patient_client_stays(broker, raw_client):
    """Empty frames keep the connection while both gates are closed [2.4.5]."""
    client = raw_client(broker, idle_time_out_ms=200).open()
    session = client.session()
    receiver = client.receiver(session)
    wire = broker.wire()
    wire.hold()
    receiver.grant(1)
    before = client.kinds().count("heartbeat")
    client.pump(lambda: client.kinds().count("heartbeat") >= before + 4)
    assert [frame.kind for frame in wire.held()] == ["flow"]
    wire.free_run()
    client.pump(lambda: True)
    assert broker.connections() == ["c1"]


def test_a_client_whose_broker_s_open_is_held_is_not_blamed_for_silence(raw_client):
    """It cannot know of an idle time-out that nobody has told it [2.4.5]."""
    with StillServer(limits=Limits(idle_s=0.1)) as broker:
        broker.freeze_new()
        client = raw_client(broker)
        client.amqp.start()
        client.flush()
        client.pump(lambda: broker.wires())
        wire = broker.wire("c1")
        while held_on(wire, 1)[0].kind != "open" or wire.held()[0].direction == "c2b":
            wire.step()
            client.pump(lambda: bool(wire.held()))
        wire.free_run("c2b")
        broker.wait(60)
        assert broker.connections() == ["c1"]
        assert [frame.kind for frame in wire.held()] == ["open"]
        wire.free_run()
        client.pump(lambda: client.amqp.opened)


def test_a_hold_from_the_first_octet_shows_the_handshake(broker, raw_client):
    """With `freeze_new` even the protocol header waits, and goes on by hand."""
    broker.freeze_new()
    client = raw_client(broker)
    client.amqp.start()
    client.flush()
    broker.until(broker.wires)
    wire = broker.wire()
    assert [frame.kind for frame in held_on(wire, 1)] == ["protocol-header"]
    assert wire.picture().words.startswith("not open yet")
    wire.free_run()
    client.pump(lambda: client.amqp.opened)
    assert wire.picture().words.startswith("container ")


@pytest.mark.parametrize("limits", [Limits(held_frames=50), Limits(held_octets=1_000)])
def test_too_many_held_frames_are_left_to_tcp(raw_client, limits):
    """Beyond the limit the socket is not read; nothing is lost when the gate opens."""
    with StillServer(limits=limits) as broker:
        client = raw_client(broker).open()
        session = client.session()
        client.sender(session)
        wire = broker.wire()
        wire.hold("c2b")
        for count in (60, 140):  # the first are too many; the others are not read any more
            for _ in range(count):
                client.amqp.begin()
            client.flush()
            held_on(wire, 51)
        for _ in range(3):  # turns of the loop, in which it would read
            broker.ask(lambda: None)
        assert 51 <= len(wire.held()) <= 60
        wire.free_run()
        client.pump(lambda: client.kinds().count("begin") == 201)
        (served,) = broker.listener.connections.values()
        assert broker.ask(lambda: served.held_octets) == 0


def test_the_stage_shows_what_was_held(broker, raw_client):
    """Holds and releases are rows, so the trace of a frozen wire opens on the stage."""
    client, receiver = consumer(broker, raw_client)
    wire = broker.wire()
    wire.hold("b2c")
    receiver.grant(2)
    client.flush()
    held_on(wire, 2)
    wire.step()
    wire.free_run()
    client.pump(lambda: transfers(client) == 2)
    rows = broker.rows()
    assert [row.event for row in rows if row.vantage == "wire"] == ["hold", "release", "release"]
    assert scene(rows)["branches"][0]["steps"]


def test_proton_waits_for_the_hand():
    """An unmodified client: its blocking send returns when its transfer is let through."""
    proton = pytest.importorskip("proton", reason="needs python-qpid-proton")
    from proton.utils import BlockingConnection

    with serve() as broker:
        connection = BlockingConnection(
            broker.url, timeout=TIMEOUT_S, allowed_mechs="ANONYMOUS", heartbeat=1
        )
        sender = connection.create_sender("q")
        wire = broker.wire()
        wire.hold()
        done = threading.Event()

        def send():
            sender.send(proton.Message(body="x"))
            done.set()

        thread = threading.Thread(target=send)
        thread.start()
        (held,) = held_on(wire, 1)
        assert held.kind == "transfer"
        assert not done.is_set()
        wire.step()
        assert [frame.kind for frame in held_on(wire, 1, direction="b2c")] == ["disposition"]
        assert not done.is_set()
        wire.free_run()
        assert done.wait(TIMEOUT_S)
        thread.join()
        connection.close()


def test_the_wire_of_the_client_is_not_that_of_a_socket_which_says_nothing(broker, raw_client):
    """Without a name the newest connection that has sent something is meant, and none before."""
    with pytest.raises(WireError, match="connect one first"):
        broker.wire()
    client = raw_client(broker).open()
    with broker.dial():
        assert len(broker.connections()) == 2
        wire = broker.wire()
        wire.hold("c2b")
        client.amqp.begin()
        client.flush()
        assert held_on(wire, 1, direction="c2b")[0].kind == "begin"
        wire.free_run()


def test_a_broker_that_has_said_close_waits_for_no_sign_of_life(broker, raw_client):
    """A client that does not answer is cut after `close_s`; until then nothing is due."""
    client = raw_client(broker, idle_time_out_ms=200).open()
    (served,) = broker.listener.connections.values()
    broker.ask(served.farewell)
    served.receive(encode_item(Frame(0)))  # what makes the broker look at its timers
    began = broker.now()
    gone(client.socket)
    assert broker.now() - began == pytest.approx(broker.listener.limits.close_s, abs=0.1)
