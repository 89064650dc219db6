"""A live connection of AMQP 0-9-1: octets in any pieces, bad ones, floods, silence, the trace."""

import contextlib

import pytest

from tests.net.still import StillServer, converse_damaged, gone
from workbench.amqp091 import methods as m
from workbench.amqp091.frame import (
    ContentHeader,
    Frame,
    FrameReader,
    ProtocolHeader,
    encode_item,
    kind_of,
)
from workbench.net import Limits
from workbench.net.breakpoints import Breakpoint
from workbench.sim import Direction

FLOOD = 3_000_000
CAPABLE = {"capabilities": {"connection.blocked": True, "authentication_failure_close": True}}


@pytest.fixture
def limits():
    """Of the broker; a test may set its own."""
    return Limits()


@pytest.fixture
def broker(limits):
    """A broker in this thread, in a time that stands still."""
    with StillServer("rmq4.3", limits=limits) as made:
        yield made
        assert list(made.listener.failures) == []


@pytest.fixture
def dial(broker):
    """Connects clients to it, which are closed after the test."""
    with contextlib.ExitStack() as clients:

        def connect(items=()):
            client = clients.enter_context(broker.dial())
            say(broker, client, *items)
            return client

        yield connect


def say(broker, client, *items):
    """Write frames, each after the one before was answered."""
    for item in items:
        client.sendall(encode_item(item))
        broker.wait(0)


def handshake(password=b"guest", heartbeat=0):
    """All that a client says until it is open."""
    return [
        ProtocolHeader(),
        Frame(0, m.ConnectionStartOk(client_properties=CAPABLE, response=b"\0guest\0" + password)),
        Frame(0, m.ConnectionTuneOk(channel_max=2047, frame_max=131072, heartbeat=heartbeat)),
        Frame(0, m.ConnectionOpen(virtual_host="/")),
    ]


def publish(body=b"x" * 50, channel=1):
    """One message."""
    return [
        Frame(channel, m.BasicPublish(exchange="", routing_key="q")),
        Frame(channel, ContentHeader(body_size=len(body))),
        Frame(channel, body),
    ]


def opening():
    """Until it has a channel and a queue, and one message in it."""
    declare = m.QueueDeclare(queue="q", durable=True)
    return [*handshake(), Frame(1, m.ChannelOpen()), Frame(1, declare), *publish()]


def answers(octets):
    """What the broker has said."""
    return [one.item for one in FrameReader(131072, mid_stream=True).feed(octets)]


def heard(client):
    """What the broker has said by now."""
    return answers(client.recv(65536))


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_octets_may_come_in_any_pieces(broker, dial, size):
    """One conversation, however it is cut."""
    client = dial()
    for octets in map(encode_item, opening()):
        for at in range(0, len(octets), size):
            client.sendall(octets[at : at + size])
            broker.wait(0)
    assert list(map(kind_of, heard(client))) == [
        "connection.start", "connection.tune", "connection.open-ok", "channel.open-ok",
        "queue.declare-ok",
    ]  # fmt: skip
    assert broker.overview()["queue:q.ready"] == 1
    client.close()
    broker.wait(1)
    assert broker.connections() == []


def nested(depth):
    """A field table that holds a table that holds a table."""
    octets = b"\0\0\0\0"
    for _ in range(depth):
        octets = b"\x01nF" + octets
        octets = len(octets).to_bytes(4, "big") + octets
    return octets


def method(numbers, arguments=b"", channel=1, end=b"\xce"):
    """A method frame of these octets, whether they are right or not."""
    payload = b"".join(one.to_bytes(2, "big") for one in numbers) + arguments
    return b"\x01" + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + end


QOS = Frame(1, m.BasicQos(prefetch_count=1))
CLOSED = [Frame(1, m.ChannelClose()), QOS]
TCP_ENDS = "the connection ends without a word"
BAD = {
    "octets that are no frame": ([b"\xff" * 40], "connection.close 501", "frame_too_large"),
    "a frame above frame-max": (
        [b"\x01\x00\x01\xff\xff\xff\xff" + bytes(20)],
        "connection.close 501", "frame_too_large,4294967295,131064",
    ),
    "another octet where frame-end is due": (
        [method((20, 20), b"\x01", end=b"\xcd")],
        "connection.close 501", "<<0,20,0,20,1>>: {invalid_frame_end_marker,205}",
    ),
    "a method on a channel that was never opened": (
        [Frame(7, m.QueueDeclare())], "connection.close 504", "expected 'channel.open'",
    ),
    "a method on a closed channel": (CLOSED, "connection.close 504", "expected 'channel.open'"),
    "content on channel 0": (
        [Frame(0, b"body on channel 0")], "connection.close 505", "came on channel 0",
    ),
    "a content header on channel 0": (
        [Frame(0, ContentHeader(body_size=1))], "connection.close 505", "came on channel 0",
    ),
    "a body longer than its header said": (
        [*publish()[:2], Frame(1, b"x" * 51)],
        "connection.close 501", "content body frame exceeds remaining content size",
    ),
    "a content header that nobody waits for": (
        [Frame(1, ContentHeader(body_size=1))], "connection.close 505", "expected method frame",
    ),
    "a second protocol header": ([ProtocolHeader()], "connection.close 501", "frame"),
    "a prefetch in octets": (
        [Frame(1, m.BasicQos(prefetch_size=1))], "connection.close 540", "prefetch_size",
    ),
    "an unknown class": ([method((77, 10))], TCP_ENDS, "NOT_IMPLEMENTED - "),
    "an unknown method": ([method((60, 999))], TCP_ENDS, "NOT_IMPLEMENTED - "),
    "a table nested 1,000 deep": (
        [method((50, 10), b"\0\0\x01q\0" + nested(1000))], TCP_ENDS, "more than 32 deep",
    ),
    "arguments that are cut off": ([method((60, 10), b"\0\0")], TCP_ENDS, "SYNTAX_ERROR - "),
    "a negative delivery-tag": (
        [method((60, 80), (-1).to_bytes(8, "big", signed=True) + b"\0")],
        "channel.close 406", "unknown delivery tag 18446744073709551615",
    ),
    "an acknowledgement of an unknown tag": (
        [Frame(1, m.BasicAck(delivery_tag=99))],
        "channel.close 406", "PRECONDITION_FAILED - unknown delivery tag 99",
    ),
    "more channels than channel-max": (
        [Frame(number, m.ChannelOpen()) for number in range(2, 2049)],
        "connection.close 530", "has reached the negotiated channel_max (2047)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("bad", "ends", "words"), BAD.values(), ids=BAD)
def test_what_breaks_a_rule_has_its_code_and_scope_and_others_go_on(broker, dial, bad, ends, words):
    """After all that was right. Where RabbitMQ tells the client nothing, the trace has the reason.

    Codes and words are those of the capture rmq43_e1, where it has the case.
    """
    client, other = dial(opening()), dial(opening())
    for one in bad:
        client.sendall(one if isinstance(one, bytes) else encode_item(one))
        broker.wait(0)
    rows = broker.rows()
    if ends.startswith("channel"):
        told = heard(client)[-1]
        say(broker, client, Frame(1, m.ChannelCloseOk()), Frame(1, m.ChannelOpen()), *publish())
        assert broker.overview()["queue:q.ready"] == 3
    else:
        told = answers(gone(client))[-1]
    if ends == TCP_ENDS:
        (why,) = [row.extra["text"] for row in rows if row.event == "error"]
        assert kind_of(told) == "queue.declare-ok"
        assert words in why
    else:
        assert f"{kind_of(told)} {told.payload.reply_code}" == ends
        assert words in told.payload.reply_text
        assert not [row for row in rows if row.event == "error"]
    before = broker.overview()["queue:q.ready"]
    say(broker, other, *publish())
    assert broker.overview()["queue:q.ready"] == before + 1


@pytest.mark.parametrize(
    ("close", "answer"),
    [
        (Frame(1, m.ChannelClose(reply_code=200)), "channel.close-ok"),
        (Frame(0, m.ConnectionClose(reply_code=200)), "connection.close-ok"),
    ],
    ids=["channel", "connection"],
)
def test_a_close_in_one_segment_with_an_error_is_answered_behind_it(broker, dial, close, answer):
    """A client that closes waits for that, and for nothing else."""
    client = dial(opening())
    client.sendall(b"".join(map(encode_item, (Frame(1, m.BasicAck(delivery_tag=99)), close))))
    broker.wait(0)
    assert list(map(kind_of, heard(client)))[-2:] == ["channel.close", answer]


def told(octets):
    """What the broker has said behind the handshake, with the code of a close."""
    kinds = [(kind_of(one), getattr(one.payload, "reply_code", "")) for one in answers(octets)]
    return [f"{kind} {code}".strip() for kind, code in kinds if kind.split("-")[0] not in SHAKEN]


SHAKEN = ("connection.start", "connection.tune", "connection.open", "channel.open")


def sized(size, make):
    """A frame of this many octets; `make` takes a text of any length into it."""
    (more,) = (size - len(encode_item(make(""))),)
    frame = make("x" * more)
    assert len(encode_item(frame)) == size
    return frame


@pytest.mark.parametrize(
    ("preset", "most"), [("rmq3.5.5", 4096), ("rmq4.0", 4096), ("rmq4.3", 8192)]
)
@pytest.mark.parametrize("over", [0, 1])
def test_until_tune_ok_a_frame_has_the_smallest_frame_max(preset, most, over):
    """And 8 octets: `rabbit_reader.erl`, `?FRAME_MIN_SIZE`, which 4.3 has doubled."""
    start_ok = sized(
        most + 8 + over,
        lambda text: Frame(
            0, m.ConnectionStartOk(client_properties={"t": text}, response=b"\0guest\0guest")
        ),
    )
    with StillServer(preset) as broker, broker.dial() as client:
        say(broker, client, ProtocolHeader(), start_ok)
        kinds = list(map(kind_of, heard(client)))
        assert kinds == ["connection.start", "connection.tune"][: 2 - over]


@pytest.mark.parametrize("segments", ["one segment", "a segment for each frame"])
@pytest.mark.parametrize("frame_max", [8192, 131072])
@pytest.mark.parametrize(("over", "answer"), [(0, "queue.declare-ok"), (1, "connection.close 501")])
def test_from_tune_ok_on_a_frame_has_what_it_says(broker, dial, frame_max, over, answer, segments):
    """However the octets lie in TCP's segments; measured on 3.10.8."""
    header, start_ok, _, opens = handshake()
    large = sized(
        frame_max + 8 + over,
        lambda text: Frame(1, m.QueueDeclare(queue="q", durable=True, arguments={"t": text})),
    )
    tune_ok = Frame(0, m.ConnectionTuneOk(channel_max=2047, frame_max=frame_max))
    frames = [encode_item(one) for one in (tune_ok, opens, Frame(1, m.ChannelOpen()), large)]
    client = dial([header, start_ok])
    for octets in [b"".join(frames)] if segments == "one segment" else frames:
        client.sendall(octets)
        broker.wait(1)
    assert told(client.recv(65536)) == [answer]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (b"\x01\0\0\0\xff\xff\xff", 501), (method((20, 20), b"\x01", end=b"\xcd"), 501),
        (QOS, 505), (Frame(0, m.BasicQos()), 504), (Frame(0, b"a body"), 505),
        (Frame(0, m.ConnectionClose()), 504),
    ],
    ids=[
        "a frame above frame-max", "another octet at the end", "a frame of a channel",
        "a method of a channel", "content", "a close",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("preset", "tells"), [("rmq3.5.5", False), ("rmq3.8.4", True), ("rmq4.3", True)]
)
def test_what_is_wrong_behind_tune_ok_is_told_by_version(preset, tells, wrong, code):
    """`rabbit_reader.erl:handle_exception`, `opening`; measured on 3.10.8. Before it, TCP ends."""
    octets = wrong if isinstance(wrong, bytes) else encode_item(wrong)
    for much, closes in ((2, []), (3, [f"connection.close {code}"] if tells else [])):
        with StillServer(preset) as broker, broker.dial() as client:
            say(broker, client, *handshake()[:much])
            client.sendall(octets)
            assert told(gone(client)) == closes


@pytest.mark.parametrize("much", [1, 2, 3, 4])
def test_a_close_is_answered_at_any_step_of_the_specification(much):
    """RabbitMQ answers one of an open connection alone."""
    with StillServer("spec") as broker, broker.dial() as client:
        say(broker, client, *handshake()[:much], Frame(0, m.ConnectionClose()))
        assert kind_of(heard(client)[-1]) == "connection.close-ok"


def test_tcp_is_the_clients_to_end_once_its_close_is_answered(broker, dial):
    """Until its time is up, each close is answered; a close-ok, due from nobody, ends it at once.

    `rabbit_reader.erl:close_connection`; measured on 3.10.8.
    """
    patient, done = dial(opening()), dial(opening())
    close, limit = Frame(0, m.ConnectionClose()), broker.listener.limits.close_s
    for client in (patient, done):
        say(broker, client, close)
        broker.wait(limit / 2)
        say(broker, client, QOS, close)
        assert list(map(kind_of, heard(client)))[-2:] == ["connection.close-ok"] * 2
        assert broker.connections() != []
        began = broker.now()
        if client is done:
            say(broker, client, Frame(0, m.ConnectionCloseOk()))
        assert answers(gone(client)) == []
        assert broker.now() - began == pytest.approx(0 if client is done else limit / 2, abs=0.1)


@pytest.mark.parametrize(
    ("ending", "last"),
    [
        (Frame(0, m.ConnectionClose()), "connection.close-ok"),
        (Frame(1, m.ChannelOpen()), "connection.close"),
    ],
    ids=["the client closes", "the broker closes"],
)
@pytest.mark.parametrize(("heartbeat", "cut_s"), [(2, 2), (4, 4), (8, 5)])
def test_heartbeats_go_on_until_tcp_is_cut(broker, dial, heartbeat, cut_s, ending, last):
    """The time of one heartbeat, and no longer than the limit: measured on 3.10.8 with 2 s.

    A client that goes on with its own is cut as one that is silent.
    """
    for speaks in (False, True):
        client = dial([*handshake(heartbeat=heartbeat), Frame(1, m.ChannelOpen()), ending])
        began = broker.now()
        while speaks and broker.now() - began < cut_s - 1:
            broker.wait(0.5)
            client.sendall(encode_item(Frame(0)))
        kinds = list(map(kind_of, answers(gone(client))))
        assert broker.now() - began == pytest.approx(cut_s, abs=0.1)
        assert kinds[kinds.index(last) :] == [last, "heartbeat"]


@pytest.mark.parametrize("much", [1, 7, 12])
def test_a_frame_that_is_never_whole_is_not_answered(broker, dial, much):
    """Nothing is known of it before its frame-end has come; it goes with the connection."""
    client = dial(opening())
    end = broker.listener.connections["c1"].end
    said = end.octets_out
    client.sendall(method((20, 20), b"\x01")[:much])
    broker.wait(60)
    assert end.octets_out == said
    client.close()
    broker.wait(1)
    assert broker.connections() == []


def test_the_wrong_password_is_told_where_the_client_understands_it(broker, dial):
    """403, and the socket is closed."""
    client = dial(handshake(b"wrong")[:2])
    assert answers(gone(client))[-1].payload.reply_code == 403


@pytest.mark.parametrize("much", [0, 1, 2, 3])
def test_whoever_does_not_finish_the_handshake_is_cut_off(broker, dial, much):
    """Its time runs out, wherever it stops."""
    client = dial(handshake()[:much])
    assert len(answers(gone(client))) == min(much, 2)
    assert broker.connections() == []


def test_the_time_of_the_handshake_does_not_run_on(broker, dial):
    """Who is open may be silent, if it wants no heartbeats."""
    client = dial(handshake())
    broker.wait(1000)
    assert list(map(kind_of, heard(client)))[-1] == "connection.open-ok"


def test_heartbeats_come_and_who_sends_none_is_given_up(broker, dial):
    """One after half the time; the end after twice the time."""
    client, beating = dial(handshake(heartbeat=10)), dial(handshake(heartbeat=10))
    for _ in range(5):
        broker.wait(6)
        say(broker, beating, Frame(0))
    kinds = list(map(kind_of, answers(gone(client))))
    assert kinds[3:] == ["heartbeat"] * len(kinds[3:])
    assert len(kinds[3:]) == 4
    assert len(broker.connections()) == 1


def test_a_broker_that_stops_says_so(broker, dial):
    """connection-forced."""
    client = dial(opening())
    broker.loop.run_until_complete(broker.listener.stop())
    assert answers(gone(client))[-1].payload.reply_code == 320


def flood(broker, client, octets):
    """Write without end; tells how much was taken before nothing more was."""
    taken = 0
    while taken < FLOOD:
        with contextlib.suppress(BlockingIOError):
            taken += client.send(octets[taken % len(octets) :])
            continue
        broker.wait(1)
        try:
            taken += client.send(octets[taken % len(octets) :])
        except BlockingIOError:
            break
    return taken


def test_a_publisher_that_ignores_blocked_is_held_by_tcp(broker, dial):
    """Under an alarm nothing more is read; what it holds stays small, and others consume."""
    client = dial(opening())
    broker.listener.broker.set_alarm()
    octets = b"".join(map(encode_item, publish(b"x" * 100_000)))
    assert flood(broker, client, octets) < FLOOD
    assert broker.listener.connections["c1"].held_octets < 1_000_000
    assert broker.listener.broker.connections["c1"].held_octets < 1_000_000
    assert broker.overview()["queue:q.ready"] == 1
    other = dial([*handshake(), Frame(1, m.ChannelOpen()), Frame(1, m.BasicGet(queue="q"))])
    assert "basic.get-ok" in map(kind_of, heard(other))
    broker.listener.broker.clear_alarm()
    broker.wait(1)
    assert broker.overview()["queue:q.ready"] > 1


def test_a_flood_of_acknowledgements_does_not_pile_up(broker, dial):
    """Methods cost no credit; the socket waits for the channel all the same."""
    client = dial(opening())
    octets = encode_item(Frame(1, m.BasicQos(prefetch_count=1))) * 1000
    end = broker.listener.broker.connections["c1"]
    most = 0
    for _ in range(8):
        with contextlib.suppress(BlockingIOError):
            client.send(octets)
        broker.wait(0)
        most = max(most, end.backlog)
    assert most < 4_000


def test_a_client_that_does_not_read_is_sent_no_more(broker, dial):
    """A consumer without acknowledgements, and one that asks again and again."""
    client = dial(opening())
    for _ in range(400):
        client.sendall(b"".join(map(encode_item, publish(b"x" * 10_000))))
        broker.wait(0)
    lazy = dial([*handshake(), Frame(1, m.ChannelOpen())])
    say(broker, lazy, Frame(1, m.BasicConsume(queue="q", no_ack=True)))
    broker.wait(1)
    assert broker.listener.connections["c2"].held_octets < 3_000_000
    lazy.close()
    broker.wait(1)
    assert [one.name for one in broker.listener.connections.values()] == ["c1"]


def test_parts_of_messages_count_for_the_alarm(broker, dial):
    """On every channel a message of which the end never comes."""
    client = dial(handshake())
    for number in range(1, 51):
        say(broker, client, Frame(number, m.ChannelOpen()))
        publishing, _, _ = publish(channel=number)
        say(broker, client, publishing, Frame(number, ContentHeader(body_size=1_000_000)))
        say(broker, client, Frame(number, b"x" * 100_000))
    broker.wait(1)
    assert broker.listener.broker.connections["c1"].held_octets == 5_000_000


CHANNELS = 10_000


def test_ten_thousand_channels_are_served_and_leave_nothing():
    """A broker without channel-max: they open, each can be used, and all go with the connection."""
    opened = [Frame(number, m.ChannelOpen()) for number in range(1, CHANNELS + 1)]
    with StillServer("rmq3.5.5", record=False) as broker, broker.dial() as client:
        say(broker, client, *handshake()[:2])
        say(broker, client, Frame(0, m.ConnectionTuneOk(frame_max=131072)), handshake()[3])
        client.sendall(b"".join(map(encode_item, opened)))
        broker.wait(1)
        end = broker.listener.broker.connections["c1"]
        assert len(end.amqp.channels) == CHANNELS
        say(broker, client, Frame(CHANNELS, m.QueueDeclare(queue="q")), *publish(channel=1))
        assert broker.overview()["queue:q.ready"] == 1
        assert end.held_octets == 0
        client.close()
        broker.wait(1)
        assert end.amqp.channels == {}
        assert (broker.connections(), broker.listener.failures) == ([], [])


def test_damaged_conversations_cost_the_broker_nothing(broker, dial):
    """Whatever comes, that client alone is answered or cut, and nothing of it stays."""
    converse_damaged(broker, dial, [encode_item(item) for item in opening()])
    assert broker.connections() == []


def test_a_mistake_of_ours_costs_that_client_alone(broker, dial, monkeypatch):
    """internal-error; it is noted, and the others go on."""
    client, other = dial(opening()), dial(opening())

    def fail(*_):
        raise ZeroDivisionError("ours")

    with monkeypatch.context() as patch:
        patch.setattr("workbench.frontends.amqp091.channel.ChannelProcess._publish", fail)
        say(broker, client, *publish())
    assert heard(client)[-1].payload.reply_code == 541
    assert [type(error) for error in broker.listener.failures] == [ZeroDivisionError]
    broker.listener.failures.clear()
    say(broker, other, *publish())
    assert broker.overview()["queue:q.ready"] == 3


def test_its_frames_are_in_the_trace_with_counters_and_without_the_password(broker, dial):
    """Sent and received, by both ends' books."""
    client = dial(opening())
    say(broker, client, Frame(1, m.BasicConsume(queue="q", consumer_tag="t")))
    rows = [row for row in broker.rows() if row.protocol == "amqp-0-9-1"]
    assert {row.frame_id for row in rows if row.event == "sent"} == {
        row.frame_id for row in rows if row.event == "received"
    }
    (start_ok,) = (r for r in rows if r.kind == "connection.start-ok" and r.event == "sent")
    assert "guest" not in str(start_ok)
    (delivered,) = (r for r in rows if r.kind == "basic.deliver" and r.event == "received")
    assert (delivered.consumer, delivered.ledger["unacknowledged"]) == ("t", 1)


def test_frames_wait_at_the_gate_and_breakpoints_close_it(broker, dial):
    """A kind of frame, and a counter."""
    client = dial(opening())
    heard(client)
    wire = broker.listener.connections["c1"].wire
    kinds = wire.protocol.kinds
    wire.breakpoints.append(Breakpoint.of("basic.deliver", kinds))
    say(broker, client, Frame(1, m.BasicConsume(queue="q", consumer_tag="t")))
    assert list(map(kind_of, heard(client))) == ["basic.consume-ok"]
    assert wire.waiting(Direction.BROKER_TO_CLIENT) == 3
    wire.step(1, (Direction.BROKER_TO_CLIENT,))
    broker.wait(0)
    assert list(map(kind_of, heard(client))) == ["basic.deliver"]
    wire.breakpoints[:] = [Breakpoint.of("unacknowledged >= 3", kinds, link="t")]
    wire.thaw()
    say(broker, client, *publish(), *publish())
    assert [stop.why for stop in wire.stops][1:] == ["unacknowledged of link t >= 3"]


def test_a_client_need_not_wait_for_its_channel(broker, dial):
    """All in one piece, from channel.open on."""
    client = dial(handshake())
    client.sendall(b"".join(map(encode_item, opening()[4:])))
    broker.wait(1)
    assert kind_of(heard(client)[-1]) == "queue.declare-ok"
    assert broker.overview()["queue:q.ready"] == 1
