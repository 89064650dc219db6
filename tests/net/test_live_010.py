"""A live connection of AMQP 0-10: octets in any pieces, bad ones, silence, and the end."""

import contextlib
import random

import pytest

from tests import fuzz_frames
from tests.net.still import StillServer, converse_damaged, gone
from workbench.amqp010 import controls as k
from workbench.amqp010.commands import (
    MessageFlow,
    MessageSubscribe,
    MessageTransfer,
    QueueDeclare,
)
from workbench.amqp010.connection import Connection, ConnectionSettings
from workbench.amqp010.frame import (
    Frame,
    FrameReader,
    Headers,
    ProtocolHeader,
    control_frame,
    encode_item,
    frames_of,
)
from workbench.amqp010.structs import DeliveryProperties
from workbench.amqp010.values import SequenceSet
from workbench.folds.summary import summarise


@pytest.fixture
def broker():
    """A broker of Qpid's in this thread, in a time that stands still."""
    with StillServer("qpid-cpp") as made:
        yield made
        assert list(made.listener.failures) == []


@pytest.fixture
def dial(broker):
    """Connects clients to it, which are closed after the test."""
    with contextlib.ExitStack() as clients:

        def connect():
            return clients.enter_context(broker.dial())

        yield connect


def opening(name=b"s"):
    """All that a client says until it has a session and a queue, and one message in it."""
    return [
        ProtocolHeader(),
        *[control_frame(0, one) for one in (
            k.ConnectionStartOk({}, "ANONYMOUS", b"", "en_US"), k.ConnectionTuneOk(100, 65535, 0),
            k.ConnectionOpen("/"), k.SessionAttach(name), k.SessionCommandPoint(0, 0),
        )],
        *frames_of(0, QueueDeclare("q")),
        *frames_of(0, MessageTransfer("", sync=True),
                   Headers((DeliveryProperties(routing_key="q"),)), b"x" * 50),
    ]  # fmt: skip


def answers(octets):
    """The controls and commands that the broker has said."""
    items = [one.item for one in FrameReader().feed(octets)]
    assert items[0] == ProtocolHeader()
    return [item.kind for item in items[1:]]


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_octets_may_come_in_any_pieces(broker, dial, size):
    """The conversation needs no answer in between: whoever is let in may speak on."""
    client = dial()
    header, *rest = map(encode_item, opening())
    for octets in (header, *rest):  # each line waits for the one before it to be answered
        for at in range(0, len(octets), size):
            client.sendall(octets[at : at + size])
            broker.wait(0)
    assert answers(client.recv(65536)) == [
        "connection.start", "connection.tune", "connection.open-ok",
        "session.attached", "session.command-point", "session.completed",
    ]  # fmt: skip
    assert broker.overview()["queue:q.ready"] == 1
    client.close()
    broker.wait(1)
    assert broker.connections() == []


def test_of_a_client_behind_a_socket_session_and_open_commands_are_worked_out(broker, dial):
    """It shows neither; what it publishes would else stand on no session."""
    client = dial()
    for octets in map(encode_item, opening()):
        client.sendall(octets)
        broker.wait(0)
    rows = [row for row in broker.rows() if row.vantage == "client:c1" and row.session]
    counts = [(row.kind, (row.ledger or {}).get("incomplete_commands")) for row in rows]
    assert {row.ledger_source for row in rows if row.ledger} == {"shadow"}
    assert [one for one in counts if one[0] in ("queue.declare", "message.transfer")] == [
        ("queue.declare", 1), ("message.transfer", 2),
    ]  # fmt: skip
    assert counts[-1] == ("session.completed", 0)
    (published,) = (one for one in summarise(broker.rows()) if one.link_sender == "client")
    assert (published.session, published.messages) == (1, 1)


@pytest.mark.parametrize(
    "bad", [b"\xff" * 40, b"\x0f\x00\x00\x05" + bytes(20), b"AMQP\x00\x01\x00\x00"]
)
def test_octets_that_are_no_frame_close_the_connection_with_the_code(broker, dial, bad):
    """framing-error, behind all that was right; then the socket is closed."""
    client = dial()
    for octets in map(encode_item, opening()):
        client.sendall(octets)
        broker.wait(0)
    client.sendall(bad + bytes(20))
    items = [one.item for one in FrameReader().feed(gone(client))]
    assert items[-1].content.reply_code == 501
    assert broker.overview()["queue:q.ready"] == 1


def test_whoever_says_nothing_after_the_header_is_cut_off(broker, dial):
    """The time for the log-in runs out."""
    client = dial()
    client.sendall(encode_item(ProtocolHeader()))
    assert answers(gone(client)) == ["connection.start"]


def test_a_broker_that_stops_says_so(broker, dial):
    """connection-forced."""
    client = dial()
    for octets in map(encode_item, opening()[:4]):
        client.sendall(octets)
        broker.wait(0)
    broker.loop.run_until_complete(broker.listener.stop())
    items = [one.item for one in FrameReader().feed(gone(client))]
    assert items[-1].content.reply_code == 320


def test_damaged_conversations_cost_the_broker_nothing(broker, dial):
    """Whatever comes, that client alone is answered or cut, and nothing of it stays."""
    converse_damaged(broker, dial, [encode_item(item) for item in opening()])
    assert broker.connections() == []


def test_a_client_of_ours_opens_it(broker, dial):
    """The endpoint's other role, over octets."""
    client, out = dial(), []
    end = Connection(is_client=True, emit=out.append, settings=ConnectionSettings())
    reader = FrameReader()
    end.start()
    while not end.opened:
        client.sendall(b"".join(map(encode_item, out)))
        out.clear()
        broker.wait(0)
        for one in reader.feed(client.recv(65536)):
            for event in end.apply(one.item):
                end.answer(event)
    assert end.properties["product"] == "qpid-cpp"
    client.close()


ATTACKS = {
    "a completion of what was never sent": (
        [control_frame(0, k.SessionCompleted(SequenceSet(((500, 600),))))], 542,
    ),
    "a point beyond a gap": ([control_frame(0, k.SessionCommandPoint(9, 0))], 542),
    "credit in a unit that is none": (
        [*frames_of(0, MessageSubscribe("q", "d", 0, 0)), *frames_of(0, MessageFlow("d", 7, 1))],
        542,
    ),
    "watermarks that cannot be": (
        [*frames_of(0, QueueDeclare("x", arguments={"qpid.flow_stop_count": 1,
                                                    "qpid.flow_resume_count": 2}))], 542,
    ),
    "a session that is attached twice": ([control_frame(1, k.SessionAttach(b"s"))], 1),
}  # fmt: skip


def test_a_victim_beside_attackers_loses_nothing_and_they_get_their_codes(broker, dial):
    """Each attack ends its own session, or is refused; damaged frames end their connection."""
    chooser = random.Random(4)
    victim = dial()
    for octets in map(encode_item, opening()):
        victim.sendall(octets)
        broker.wait(0)
    message = b"".join(map(encode_item, opening()[-3:]))
    for number in range(40):
        attack, code = list(ATTACKS.values())[number % len(ATTACKS)]
        frames = [encode_item(frame) for frame in attack]
        damaged = number % 2
        if damaged:
            frames = [fuzz_frames.damaged(chooser, fuzz_frames.AMQP_0_10)]
        client = dial()
        with contextlib.suppress(OSError):
            for octets in [*map(encode_item, opening(b"%d" % number)[:6]), *frames]:
                client.sendall(octets)
                broker.wait(0)
        if not damaged:
            items = [one.item for one in FrameReader().feed(client.recv(65536))]
            said = [one.content for one in items if isinstance(one, Frame)]
            codes = {getattr(one, "error_code", getattr(one, "code", None)) for one in said}
            assert code in codes
        client.close()
        victim.sendall(message)
        broker.wait(0)
    # Its own messages, and those that damaged frames may have been, all in order.
    assert broker.overview()["queue:q.ready"] >= 41
    assert "session.completed" in answers(victim.recv(65536))
