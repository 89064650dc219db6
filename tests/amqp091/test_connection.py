"""A connection's life, its heartbeats, and what a peer may not send on it."""

import pytest

from tests.amqp091.talk import Side, Talk
from workbench.amqp091.connection import Connection
from workbench.amqp091.errors import DecodeError, LocalProtocolError, ReplyCode, Scope
from workbench.amqp091.events import HeaderRefused, Heartbeat, ProtocolViolation
from workbench.amqp091.frame import (
    ContentHeader,
    Frame,
    FrameReader,
    ProtocolHeader,
    Undecodable,
    encode_item,
    kind_of,
)
from workbench.amqp091.methods import (
    BasicAck,
    BasicDeliver,
    BasicPublish,
    BasicQos,
    BasicQosOk,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ConnectionOpen,
    ConnectionTune,
    QueueDeclare,
)
from workbench.amqp091.settings import ConnectionSettings
from workbench.amqp091.states import ConnectionState


def kinds(items):
    return [kind_of(item) for item in items]


def test_a_client_and_a_server_open_a_connection():
    """Header, start, start-ok, tune, tune-ok with the lower limits, open, open-ok [2.2.4]."""
    talk = Talk(client={"frame_max": 8192, "heartbeat_s": 30}, server={"heartbeat_s": 60})
    assert kinds(talk.client.sent) == [
        "protocol-header", "connection.start-ok", "connection.tune-ok", "connection.open",
        "channel.open",
    ]  # fmt: skip
    assert kinds(talk.server.sent) == [
        "connection.start", "connection.tune", "connection.open-ok", "channel.open-ok",
    ]  # fmt: skip
    for side in (talk.client, talk.server):
        connection = side.connection
        assert connection.opened
        assert (connection.channel_max, connection.frame_max, connection.heartbeat_s) == (
            2047, 8192, 30,
        )  # fmt: skip
        assert connection.virtual_host == "/"
    assert talk.server.connection.response == b"\0guest\0guest"
    assert "connection.blocked" in talk.server.connection.peer_capabilities


@pytest.mark.parametrize("by", ["client", "server"])
def test_either_end_closes(by):
    """The one that is asked answers close-ok, and both are done; what is on the way is dropped."""
    talk = Talk()
    side = getattr(talk, by)
    other = talk.server if side is talk.client else talk.client
    side.connection.close(ReplyCode.CONNECTION_FORCED, "CONNECTION_FORCED - shutdown")
    other.channel.send(BasicQosOk() if other is talk.server else BasicQos())
    talk.pump()
    assert side.connection.ended
    assert other.connection.ended
    assert other.connection.error.reply_code == 320
    assert not side.connection.channels
    with pytest.raises(LocalProtocolError, match=r"state END: .* cannot be sent"):
        side.connection.close()


def test_closes_may_cross():
    """Each end answers the other's close."""
    talk = Talk()
    talk.client.connection.close()
    talk.server.connection.close()
    talk.pump()
    assert talk.client.connection.ended
    assert talk.server.connection.ended


def test_a_header_of_another_version_is_answered_with_one_that_is_known():
    """And that is all [4.2.2]."""
    server = Side(False, ConnectionSettings())
    header = ProtocolHeader(0, 1, 0, 0)
    (event,) = server.connection.apply(header)
    assert event == HeaderRefused(header, ProtocolHeader(0, 0, 9, 1))
    server.connection.answer(event)
    assert encode_item(*server.sent) == b"AMQP\x00\x00\x09\x01"
    assert server.connection.ended


class Heart:
    """A connection with a heartbeat of 10 s, and its clock in seconds."""

    def __init__(self):
        self.talk = Talk(client={"heartbeat_s": 10}, server={"heartbeat_s": 10})
        self.server = self.talk.server.connection
        self.talk.server.sent.clear()

    def at(self, seconds):
        """What is told and sent when the clock strikes; then when it has to strike next."""
        events = self.server.on_deadline(seconds * 1_000_000)
        told = [type(event).__name__ for event in events]
        sent = kinds(self.talk.server.sent)
        self.talk.server.sent.clear()
        following = self.server.next_deadline(seconds * 1_000_000)
        return told + sent, following and following / 1_000_000


def test_heartbeats_are_sent_at_half_and_missed_at_twice_the_time():
    """As RabbitMQ's `rabbit_heartbeat`; 0-9-1 says two missed ones are too many [4.2.7]."""
    heart = Heart()
    assert heart.at(0) == ([], 5)
    assert heart.at(5) == (["heartbeat"], 10)
    assert heart.server.apply(Frame(0)) == [Heartbeat()]
    assert heart.at(7) == ([], 10)  # heard at 7
    assert heart.at(10) == (["heartbeat"], 15)
    assert heart.at(15) == (["heartbeat"], 20)
    assert heart.at(20) == (["heartbeat"], 25)
    assert heart.at(25) == (["heartbeat"], 27)
    assert heart.at(27) == (["PeerSilent"], 27)
    (event,) = heart.server.on_deadline(27_000_000)
    assert event.text == "nothing was heard for 20000 ms; the heartbeat is 10 s"
    heart.server.answer(event)
    assert heart.server.ended
    assert heart.at(28) == ([], None)


def test_who_does_not_read_misses_no_heartbeat():
    """A blocked connection of RabbitMQ's does not watch its client [rabbit_reader.erl]."""
    heart = Heart()
    assert heart.at(0) == ([], 5)
    heart.server.idle.deaf = True
    assert heart.at(60) == (["heartbeat"], 65)
    heart.server.idle.deaf = False
    assert heart.at(79) == (["heartbeat"], 80)
    assert heart.at(80) == (["PeerSilent"], 80)


DECLARE = QueueDeclare(queue="q")
PUBLISH = BasicPublish(routing_key="q")
HEADER = ContentHeader(body_size=4)
UNREAD = Undecodable(1, b"\x00\x3c\x00\x28\xff", ReplyCode.SYNTAX_ERROR, "it is cut off")

# What a client sends on its channel 1; the last frame is the one that is wrong.
WRONG = {
    "a method on a channel that is not open": (
        [Frame(2, DECLARE)], "504 connection expected 'channel.open'", (50, 10),
    ),
    "a method on a closed channel": (
        [Frame(1, ChannelClose()), Frame(1, DECLARE)],
        "504 connection expected 'channel.open'", (50, 10),
    ),
    "content on a channel that is not open": (
        [Frame(2, b"x")],
        "505 connection expected method frame, got non method frame instead", (0, 0),
    ),
    "a channel opened twice": (
        [Frame(1, ChannelOpen())], "504 connection second 'channel.open' seen", (20, 10),
    ),
    "one channel too many": (
        [Frame(2, ChannelOpen()), Frame(3, ChannelOpen())],
        "530 connection number of channels opened (2) has reached the negotiated channel_max (2)",
        (0, 0),
    ),
    "a content header without a method": (
        [Frame(1, HEADER)],
        "505 connection expected method frame, got non method frame instead", (0, 0),
    ),
    "a method where a header is due": (
        [Frame(1, PUBLISH), Frame(1, DECLARE)],
        "505 connection expected content header for class 60, got non content header frame "
        "instead", (60, 40),
    ),
    "a body where a header is due": (
        [Frame(1, PUBLISH), Frame(1, b"x")],
        "505 connection expected content header for class 60, got non content header frame "
        "instead", (60, 40),
    ),
    "a header of another class": (
        [Frame(1, PUBLISH), Frame(1, ContentHeader(body_size=1, class_id=50))],
        "505 connection expected content header for class 60, got one for class 50 instead",
        (60, 40),
    ),
    "a method in a body": (
        [Frame(1, PUBLISH), Frame(1, HEADER), Frame(1, DECLARE)],
        "505 connection expected content body, got non content body frame instead", (60, 40),
    ),
    "a second header": (
        [Frame(1, PUBLISH), Frame(1, HEADER), Frame(1, HEADER)],
        "505 connection expected content body, got non content body frame instead", (60, 40),
    ),
    "a body longer than its header said": (
        [Frame(1, PUBLISH), Frame(1, HEADER), Frame(1, b"123"), Frame(1, b"45")],
        "501 connection content body frame exceeds remaining content size", (60, 40),
    ),
    "a message above the limit": (
        [Frame(1, PUBLISH), Frame(1, ContentHeader(body_size=101))],
        "406 channel message size 101 is larger than configured max size 100", (60, 40),
    ),
    "an unknown tag": (
        [Frame(1, BasicAck(delivery_tag=2**64 - 1))],
        "406 channel unknown delivery tag 18446744073709551615", (60, 80),
    ),
    "an answer to a close that nobody has sent": (
        [Frame(1, ChannelCloseOk())], "503 connection unimplemented method", (20, 41),
    ),
    "what only a broker sends": (
        [Frame(1, BasicDeliver())], "503 connection unimplemented method", (60, 60),
    ),
    "arguments that cannot be read": ([Frame(1, UNREAD)], "502 connection it is cut off", (60, 40)),
    "a channel's method on channel 0": (
        [Frame(0, DECLARE)],
        "504 connection unexpected method in connection state running", (50, 10),
    ),
    "a second open": (
        [Frame(0, ConnectionOpen())],
        "504 connection unexpected method in connection state running", (10, 40),
    ),
    "a broker's method of the connection": (
        [Frame(0, ConnectionTune())],
        "504 connection unexpected method in connection state running", (10, 30),
    ),
    "content on channel 0": (
        [Frame(0, HEADER)], "505 connection content-header came on channel 0", (0, 0),
    ),
    "a heartbeat on a channel": (
        [Frame(1)], "505 connection heartbeat came on channel 1", (0, 0),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("octets", "told"), [(243, "x" * 243), (244, "x" * 240 + "...")])
def test_a_text_that_is_longer_than_a_short_string_ends_with_dots(octets, told):
    """255 octets with the code's name; RabbitMQ cuts what is longer after 252."""
    fault = ProtocolViolation(ReplyCode.NOT_FOUND, "x" * octets)
    assert fault.reply_text == f"NOT_FOUND - {told}"


@pytest.mark.parametrize(("frames", "expected", "numbers"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_has_its_code_and_scope(frames, expected, numbers):
    """RabbitMQ's; the close goes out, what comes meanwhile is dropped, others are untouched."""
    talk = Talk(server={"channel_max": 2, "max_message_size": 100})
    server = talk.server
    for item in frames:
        before = len(server.heard(ProtocolViolation))
        for event in server.connection.apply(item):
            server.events.append(event)
            server.connection.answer(event)
    found = server.heard(ProtocolViolation)
    assert (before, len(found)) == (0, 1)
    (fault,) = found
    assert f"{fault.code.value} {fault.scope.value} {fault.text}" == expected
    assert fault.method == numbers
    close = server.sent[-1]
    said = close.payload
    assert kind_of(close) == f"{fault.scope.value}.close"
    assert said.reply_text == f"{fault.code.name} - {fault.text}"
    assert (said.reply_code, said.class_id, said.method_id) == (fault.code, *numbers)
    for item in (*frames, Frame(1, DECLARE), Frame(1, b"x")):
        assert server.connection.apply(item) == []
    if fault.scope is Scope.CHANNEL:
        server.connection.apply(Frame(1, ChannelCloseOk()))
        assert server.connection.opened
        assert not server.connection.channels


@pytest.mark.parametrize("terse", [False, True])
def test_before_it_is_open_a_connection_has_no_channels(terse):
    """RabbitMQ ends TCP without a word; a close says more."""
    server = Side(False, ConnectionSettings(terse=terse))
    for item in (ProtocolHeader(), Frame(1, ChannelOpen())):
        (event,) = server.connection.apply(item)
        server.connection.answer(event)
    assert event.text == "channel.open came on channel 1 in connection state start_sent"
    assert server.connection.ended == terse
    assert kinds(server.sent) == ["connection.start"] + ["connection.close"] * (not terse)


def test_octets_that_are_no_frame_close_the_connection():
    """With 501; after that nothing is read, so the owner drops the transport [4.2.3]."""
    talk = Talk()
    reader = FrameReader(4096, mid_stream=True)
    with pytest.raises(DecodeError) as caught:
        reader.feed(encode_item(Frame(0)) + encode_item(Frame(1, DECLARE))[:-1] + b"\xcd")
    assert [raw.item for raw in caught.value.completed] == [Frame(0)]
    (event,) = talk.server.connection.undecodable(caught.value)
    talk.server.connection.answer(event)
    assert talk.server.sent[-1].payload.reply_text.startswith("FRAME_ERROR - type 1, all octets")
    assert talk.server.connection.undecodable(caught.value) == []


def test_what_is_no_header_at_all_is_refused():
    """An HTTP request for one."""
    server = Connection(is_client=False, emit=lambda item: None)
    with pytest.raises(DecodeError, match="legal is the protocol header") as caught:
        FrameReader().feed(b"GET / HTTP/1.1\r\n")
    (event,) = server.undecodable(caught.value)
    assert event == HeaderRefused(None, ProtocolHeader())
    assert server.ended


def refused(act):
    with pytest.raises(LocalProtocolError) as caught:
        act()
    return caught.value.message


def test_a_call_that_is_not_legal_changes_nothing():
    """It says what is legal now, and no counter moves."""
    talk = Talk()
    client, server = talk.client.connection, talk.server.connection
    channel = talk.client.channel
    assert refused(client.start).startswith("the connection is in state OPENED: protocol-header")
    assert refused(lambda: client.open_channel(1)) == "channel 1 is not free: 1 to 65535 are legal"
    assert refused(lambda: channel.send(PUBLISH)) == (
        "basic.publish carries content: legal is send_content"
    )
    assert refused(lambda: channel.send_content(DECLARE)) == (
        "queue.declare carries no content: legal is send"
    )
    assert refused(lambda: channel.send(BasicQosOk())) == "basic.qos-ok is sent by a broker"
    assert refused(lambda: talk.server.channel.deliver("nobody", "", "q")) == (
        "channel 1 has no consumer 'nobody'"
    )
    channel.close()
    assert refused(lambda: channel.send(BasicQos())) == (
        "channel 1 is in state CLOSE_SENT: basic.qos cannot be sent; legal now: close-ok"
    )
    assert channel.counters.prefetch_count == 0
    assert server.state is ConnectionState.OPENED


def test_ten_thousand_channels_cost_their_books_alone():
    """They open and close; nothing is left of them."""
    talk = Talk(client={"channel_max": 0}, server={"channel_max": 0})
    client = talk.client.connection
    channels = [client.open_channel() for _ in range(10_000)]
    talk.pump()
    assert len(talk.server.connection.channels) == 10_001
    for channel in channels:
        channel.close()
    talk.pump()
    assert len(talk.server.connection.channels) == len(client.channels) == 1
    assert client.open_channel().number == 2
