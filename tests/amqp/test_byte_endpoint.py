"""A connection over octets: in any pieces, of any quality, and by either path with one result."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import serial
from workbench.amqp import (
    ByteEndpoint,
    Close,
    ConnectionSettings,
    DeliveryReceived,
    Detach,
    End,
    Frame,
    LinkAttaching,
    LocalProtocolError,
    Open,
    ProtocolHeader,
    ProtocolViolation,
    SessionSettings,
    Transfer,
    encode_item,
)


def told(event):
    """What an event says, comparable between two runs."""
    delivery = getattr(event, "delivery", None)
    if delivery is None:
        return type(event).__name__, getattr(event, "description", None)
    return (
        type(event).__name__,
        event.link.name,
        delivery.payload,
        delivery.size,
        delivery.rcv_settle_mode,
        delivery.message_format,
        delivery.overview(),
    )


class Bytes:
    """Two ends joined by octets; the client sends over two links.

    Args:
        fast: both ends may take the short cut.
        start: initial ids.
        window: of the server's session.
        terms: for `accept` at the server.
        handles: of the client's links.
    """

    def __init__(self, fast, start=0, window=1000, terms=None, handles=(0, 1)):
        small = ConnectionSettings(max_frame_size=512)
        self.client = ByteEndpoint(
            container_id="c", is_client=True, fast=fast, settings=small,
            session_settings=SessionSettings(next_outgoing_id=start, delivery_id=start),
        )  # fmt: skip
        self.server = ByteEndpoint(
            container_id="s", is_client=False, fast=fast, settings=small,
            session_settings=SessionSettings(incoming_window=window),
        )  # fmt: skip
        self.terms = terms or {}
        self.octets = {self.client: b"", self.server: b""}
        self.flying = {self.client: b"", self.server: b""}
        self.log = []
        self.client.start()
        session = self.client.connection.begin()
        self.senders = [
            session.attach_sender(name, None, "q", handle=handle, initial_delivery_count=start)
            for name, handle in zip("ab", handles, strict=True)
        ]
        self.pump()
        self.receivers = list(self.server.connection.sessions[0].links)

    def collect(self):
        for end in (self.client, self.server):
            data = end.data_to_send()
            self.octets[end] += data
            self.flying[end] += data

    def arrive(self, source, size):
        """Lets up to so many octets of `source` arrive in one piece."""
        self.collect()
        data, self.flying[source] = self.flying[source][:size], self.flying[source][size:]
        end = self.server if source is self.client else self.client
        for event in end.receive_data(data):
            self.log.append(told(event))
            if isinstance(event, LinkAttaching):
                event.link.accept(**self.terms)
            else:
                end.connection.answer(event)

    def pump(self):
        self.collect()
        while any(self.flying.values()):
            for end in (self.client, self.server):
                self.arrive(end, 1 << 20)
            self.collect()

    def picture(self):
        self.collect()
        return (
            self.log,
            self.octets[self.client],
            self.octets[self.server],
            self.client.connection.overview(),
            self.server.connection.overview(),
        )


STEPS = st.one_of(
    st.tuples(st.just("batch"), st.integers(0, 1), st.lists(st.integers(0, 700), max_size=6)),
    st.tuples(st.just("send"), st.integers(0, 1), st.integers(0, 700)),
    st.tuples(st.just("grant"), st.integers(0, 1), st.integers(0, 9)),
    st.tuples(st.just("arrive"), st.booleans(), st.integers(1, 900)),
    st.tuples(st.just("window"), st.just(0), st.integers(0, 12)),
    st.tuples(st.just("settle"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("detach"), st.integers(0, 1), st.just(0)),
)


def play(both, steps):
    for name, which, number in steps:
        try:
            if name == "batch":
                both.senders[which].send_settled_batch([bytes([n % 256]) * n for n in number])
            elif name == "send":
                both.senders[which].send(bytes(number))
            elif name == "grant":
                both.receivers[which].grant(number)
            elif name == "arrive":
                both.arrive(both.client if which else both.server, number)
            elif name == "window":
                session = both.server.connection.sessions[0]
                session.set_incoming_window(number)
                session.flow()
            elif name == "settle":
                both.receivers[which].settle(next(iter(both.receivers[which].unsettled), 0))
            else:
                both.receivers[which].detach()
        except LocalProtocolError as error:
            both.log.append(error.message)
    both.pump()


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.lists(STEPS, min_size=5, max_size=50),
    st.sampled_from([0, 250, 65530, 2147483640, 4294967290]),
    st.sampled_from([1000, 3]),
    st.sampled_from([{}, {"max_message_size": 300}]),
    st.sampled_from([(0, 1), (255, 256)]),
)
def test_the_short_cut_yields_what_the_plain_path_yields(steps, start, window, terms, handles):
    """The same octets, events and counters, whatever the order, sizes and pieces."""
    pictures = []
    for fast in (True, False):
        both = Bytes(fast, start, window, terms, handles)
        both.receivers[0].grant(20)
        both.receivers[1].grant(5)
        play(both, steps)
        pictures.append(both.picture())
    assert pictures[0] == pictures[1]


def plain_stream():
    frames = [
        Frame(
            0,
            Transfer(
                handle=number % 2, delivery_id=number * 60, delivery_tag=b"%d" % number,
                message_format=0, settled=True,
            ),
            b"body%d" % number,
        )
        for number in range(6)
    ]  # fmt: skip
    return b"".join(encode_item(frame) for frame in frames)


@settings(derandomize=True, deadline=None, max_examples=600)
@given(
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=0, max_size=3),
    st.lists(st.integers(1, 80), max_size=6),
)
def test_damaged_octets_mean_the_same_by_either_path(damage, pieces):
    """What the short cut does not know at sight is judged by the plain path alone."""
    data = bytearray(plain_stream())
    for place, octet in damage:
        data[place % len(data)] = octet
    pictures = []
    for fast in (True, False):
        both = Bytes(fast)
        for link in both.receivers:
            link.grant(4)
        both.pump()
        both.flying[both.client] += bytes(data)
        for size in pieces:
            both.arrive(both.client, size)
        both.arrive(both.client, 1 << 20)
        pictures.append(both.picture())
    assert pictures[0] == pictures[1]


def test_the_short_cut_is_taken():
    """A plain stream makes no frame objects: the reader sees none of them."""
    both = Bytes(True)
    both.receivers[0].grant(50)
    both.pump()
    fed = []
    feed = both.server._reader.feed
    both.server._reader.feed = lambda data: fed.append(data) or feed(data)
    assert both.senders[0].send_settled_batch([b"x"] * 50) == 50
    both.pump()
    assert fed == []
    assert both.receivers[0].delivery_count == 50


@pytest.mark.parametrize("size", [1, 3, 7, 64])
def test_octets_may_come_in_any_pieces(size):
    """Nothing is lost at the seams."""
    both = Bytes(True)
    both.receivers[0].grant(9)
    both.pump()
    for number in range(9):
        both.senders[0].send(bytes(number * 100), settled=bool(number % 2))
    both.collect()
    while both.flying[both.client]:
        both.arrive(both.client, size)
    payloads = [entry[2] for entry in both.log if entry[0] == "DeliveryReceived"]
    assert payloads == [bytes(number * 100) for number in range(9)]


def test_octets_that_are_no_amqp_end_the_connection():
    """One violation with the offset; nothing after it is read [2.8.16]."""
    both = Bytes(True)
    (event,) = both.server.receive_data(b"\x00\x00\x00\x03\x02\x00\x00\x00")
    assert isinstance(event, ProtocolViolation)
    assert event.condition == "amqp:connection:framing-error"
    assert both.server.receive_data(b"anything") == []
    both.server.connection.answer(event)
    both.pump()
    assert both.client.connection.error.condition == "amqp:connection:framing-error"


def test_what_came_before_the_fault_is_worked_in():
    """The frames before the bad one have their effect."""
    both = Bytes(True)
    both.receivers[0].grant(1)
    both.pump()
    both.senders[0].send(b"good")
    both.collect()
    events = both.server.receive_data(
        both.flying[both.client] + b"\x00\x00\x00\x03\x02\x00\x00\x00"
    )
    assert [type(event) for event in events] == [DeliveryReceived, ProtocolViolation]


def test_before_the_opens_a_frame_has_at_most_512_octets():
    """The limit told in an open counts once the peer can know it [2.4.1]."""
    end = ByteEndpoint(container_id="s", is_client=False)
    large = encode_item(Frame(0, Open(container_id="x" * 600)))
    events = end.receive_data(encode_item(ProtocolHeader()) + large)
    assert events[-1].condition == "amqp:connection:framing-error"
    end = ByteEndpoint(container_id="c", is_client=True)
    end.start()
    events = end.receive_data(encode_item(ProtocolHeader()) + large)
    assert events[-1].condition == "amqp:connection:framing-error"
    assert "before both opens" in events[-1].description


def test_observers_see_every_item_with_its_octets():
    """A tap gets what passed; with one the short cut is not taken."""
    sent, received = [], []
    client = ByteEndpoint(
        container_id="c", is_client=True, on_sent=lambda item, octets: sent.append((item, octets))
    )
    server = ByteEndpoint(
        container_id="s", is_client=False,
        on_received=lambda raw, events: received.append((raw.item, raw.raw)),
    )  # fmt: skip
    client.start()
    server.receive_data(client.data_to_send())
    assert received == sent
    assert [octets for _, octets in sent] == [encode_item(item) for item, _ in sent]


def settled_frame(delivery_id, payload=b"x"):
    return encode_item(
        Frame(
            0,
            Transfer(
                handle=0, delivery_id=delivery_id, delivery_tag=b"t", message_format=0, settled=True
            ),
            payload,
        )
    )  # fmt: skip


UNSETTLED = encode_item(Frame(0, Transfer(handle=0, delivery_id=5, delivery_tag=b"u")))
FIRST_PART = encode_item(Frame(0, Transfer(handle=0, delivery_id=5, delivery_tag=b"u", more=True)))


@pytest.mark.parametrize(
    ("stream", "window", "terms"),
    [
        (b"".join(map(settled_frame, range(6))), 3, {}),  # more frames than the window allows
        (b"".join(map(settled_frame, range(12))), 1000, {}),  # more deliveries than the credit
        (UNSETTLED + settled_frame(5), 1000, {}),  # the id of an unsettled delivery again
        (FIRST_PART + settled_frame(6), 1000, {}),  # another delivery in the middle of one
        (settled_frame(0, bytes(11)) + settled_frame(1), 1000, {"max_message_size": 10}),
        (settled_frame(0, bytes(500)) + settled_frame(1), 1000, {}),  # above max-frame-size
        (settled_frame(0)[:-1], 1000, {}),  # not complete
        (settled_frame(0) + encode_item(Frame(0, Detach(handle=0))) + settled_frame(1), 9, {}),
        (settled_frame(0) + encode_item(Frame(0, End())) + settled_frame(1), 9, {}),
        (settled_frame(0) + encode_item(Frame(0, Close())) + settled_frame(1), 9, {}),
    ],
)
def test_what_is_wrong_is_wrong_by_either_path(stream, window, terms):
    """A plain frame where it may not stand is judged as on the plain path."""
    pictures = []
    for fast in (True, False):
        both = Bytes(fast, 0, window, terms)
        both.receivers[0].grant(10)
        both.pump()
        both.flying[both.client] += stream
        both.arrive(both.client, 1 << 20)
        pictures.append(both.picture())
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize("start", [0, 250, 4294967290])
def test_a_batch_may_go_round_the_circle(start):
    """delivery-ids of one batch wrap, and tags grow by an octet."""
    pictures = []
    for fast in (True, False):
        both = Bytes(fast, start)
        both.receivers[0].grant(600)
        both.pump()
        assert both.senders[0].send_settled_batch([b"x"] * 300) == 300
        both.pump()
        pictures.append(both.picture())
        ids = [entry[-1]["delivery_id"] for entry in both.log if entry[0] == "DeliveryReceived"]
        assert ids == [serial.add(start, number) for number in range(300)]
    assert pictures[0] == pictures[1]


def test_a_batch_leaves_the_tags_of_the_unsettled_alone():
    """A number that is in use as a tag is passed over by either path."""
    pictures = []
    for fast in (True, False):
        both = Bytes(fast)
        both.receivers[0].grant(10)
        both.pump()
        both.senders[0].send(b"x", delivery_tag=b"\x01")
        assert both.senders[0].send_settled_batch([b"y"] * 4) == 4
        both.pump()
        pictures.append(both.picture())
    assert pictures[0] == pictures[1]
