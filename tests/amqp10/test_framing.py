import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amqp10 import strategies as gen
from workbench.amqp10.errors import DecodeError, ErrorCondition, LocalProtocolError
from workbench.amqp10.frame import (
    LARGEST_FRAME_SIZE,
    MIN_MAX_FRAME_SIZE,
    Frame,
    ProtocolHeader,
    decode_frame,
    encode_item,
    item_size,
)
from workbench.amqp10.framing import FrameReader
from workbench.amqp10.performatives import (
    Close,
    Open,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Transfer,
)

AMQP = ProtocolHeader(0)
SASL = ProtocolHeader(3)
LARGE = 1_000_000

property_test = settings(derandomize=True, max_examples=200, deadline=None)


def test_golden_frames():
    """A protocol header, a whole open and a heartbeat, octet for octet [2.2, 2.3, 2.4.5]."""
    opened = Open(container_id="c1", hostname="vhost:/", max_frame_size=32768, channel_max=32767)
    golden = {
        AMQP: "41 4d 51 50 00 01 00 00",
        SASL: "41 4d 51 50 03 01 00 00",
        Frame(0): "00 00 00 08 02 00 00 00",
    }
    for item, text in golden.items():
        assert encode_item(item) == bytes.fromhex(text)
    raw = bytes.fromhex(
        "00 00 00 23 02 00 00 00 00 53 10 c0 16 04 a1 02 63 31 a1 07 76 68 6f 73 74 3a 2f "
        "70 00 00 80 00 60 7f ff"
    )
    assert encode_item(Frame(0, opened)) == raw
    assert decode_frame(raw) == Frame(0, opened)


@given(gen.frames)
@property_test
def test_a_frame_is_read_back_as_it_was_written(frame):
    """decode(encode(x)) is x, the octets are canonical, the size is known without them."""
    raw = encode_item(frame)
    assert item_size(frame) == len(raw)
    decoded = decode_frame(raw)
    assert type(decoded) is Frame
    assert decoded == frame
    assert gen.same(decoded.performative, frame.performative)
    assert encode_item(decoded) == raw


@given(gen.headers)
@property_test
def test_a_protocol_header_is_eight_octets(header):
    """Any protocol, any version: what comes first is reported as it came [2.2]."""
    raw = encode_item(header)
    assert len(raw) == item_size(header) == 8
    assert [item.item for item in FrameReader().feed(raw)] == [header]


@given(st.lists(gen.frames.filter(lambda f: f.frame_type == 0), max_size=5), st.data())
@property_test
def test_any_cut_of_the_stream_gives_the_same_items(frames, data):
    """TCP keeps order, not boundaries: pieces of any size give the same items [2.3]."""
    items = [SASL, Frame(0, SaslInit(mechanism="ANONYMOUS")), AMQP, *frames]
    stream = b"".join(map(encode_item, items))
    reader = FrameReader(LARGE)
    at, read = 0, []
    while at < len(stream):
        size = data.draw(st.integers(1, 40))
        read += reader.feed(stream[at : at + size])
        at += size
        done = read[-1].offset + len(read[-1].raw) if read else 0
        assert reader.pending == stream[done:at]
    assert [r.item for r in read] == items
    assert b"".join(r.raw for r in read) == stream
    offsets = [sum(item_size(i) for i in items[:n]) for n in range(len(items))]
    assert [r.offset for r in read] == offsets
    assert reader.pending == b""


def test_one_octet_at_a_time_gives_the_same_items():
    """The smallest pieces there are."""
    items = [AMQP, Frame(0, Open(container_id="c")), Frame(0), Frame(0, Close())]
    reader = FrameReader()
    read = []
    for octet in b"".join(map(encode_item, items)):
        read += reader.feed(bytes((octet,)))
    assert [r.item for r in read] == items


def test_the_channel_of_a_sasl_frame_and_an_extended_header_are_ignored():
    """SASL ignores octets 6 and 7; octets between 8 and 4 * DOFF are skipped [2.3.1, 5.3.1]."""
    body = SaslInit(mechanism="X").encode()
    raw = (16 + len(body)).to_bytes(4, "big") + bytes((4, 1, 0x12, 0x34)) + b"extended" + body
    assert decode_frame(raw) == Frame(0, SaslInit(mechanism="X"))
    body = Transfer(handle=0).encode() + b"payload"
    raw = (12 + len(body)).to_bytes(4, "big") + bytes((3, 0, 0, 7)) + b"more" + body
    assert decode_frame(raw) == Frame(7, Transfer(handle=0), b"payload")


HEADERS_REFUSED = [
    ("00 00 00 07 02 00 00 00", "SIZE is 7; it counts the header too, so the least is 8"),
    ("00 00 02 01 02 00 00 00", "SIZE is 513; the max-frame-size accepted here is 512"),
    ("ff ff ff ff 02 00 00 00", "SIZE is 4294967295"),
    ("00 00 00 08 01 00 00 00", "DOFF is 1"),
    ("00 00 00 08 03 00 00 00", "body would begin at octet 12 of a frame of 8"),
    ("00 00 00 08 02 02 00 00", "TYPE is 2; legal are 0 (AMQP) and 1 (SASL)"),
    ("00 00 00 08 02 01 00 00", "after the AMQP protocol header only AMQP frames may come"),
    ("41 4d 51 50 00 01 00 00", "a protocol header cannot stand here"),
]


@pytest.mark.parametrize(("text", "part"), HEADERS_REFUSED)
def test_a_frame_header_that_cannot_be_ends_the_connection(text, part):
    """SIZE, DOFF and TYPE are checked before the body comes; framing-error [2.3.1]."""
    reader = FrameReader()
    reader.feed(encode_item(AMQP))
    with pytest.raises(DecodeError) as caught:
        reader.feed(bytes.fromhex(text))
    assert part in caught.value.message
    assert caught.value.condition is ErrorCondition.FRAMING_ERROR
    assert caught.value.offset in (8, 12, 13)
    with pytest.raises(DecodeError, match="at octet"):
        reader.feed(b"")


def test_an_oversized_frame_is_refused_before_it_is_stored():
    """Nothing above max-frame-size is ever buffered [2.7.1]."""
    reader = FrameReader(600)
    reader.feed(encode_item(AMQP))
    frame = Frame(0, Transfer(handle=0), bytes(700))
    with pytest.raises(DecodeError, match="max-frame-size accepted here is 600"):
        reader.feed(encode_item(frame)[:8])
    assert reader.pending == b""


def test_the_first_frames_are_measured_up_to_the_open_and_with_it():
    """What is larger may come behind the open, in whatever pieces; before it or as it, not."""
    opening = encode_item(AMQP) + encode_item(Frame(0, Open(container_id="c" * 500)))
    large = encode_item(Frame(0, Transfer(handle=0), bytes(700)))
    for pieces in ([opening + large], [opening, large], [opening + large[:8], large[8:]]):
        reader = FrameReader(800, first_max_frame_size=600)
        assert [raw.raw for piece in pieces for raw in reader.feed(piece)][-1] == large
    for first, octets in ((600, encode_item(AMQP) + large), (512, opening)):
        with pytest.raises(DecodeError, match=f"max-frame-size accepted here is {first}"):
            FrameReader(800, first_max_frame_size=first).feed(octets)


def test_the_limit_is_at_least_512_and_below_the_octets_of_the_protocol_header():
    """512 is always legal [2.8.19]; `AMQP` as a SIZE never is, so a header is no frame."""
    with pytest.raises(LocalProtocolError, match="the least is 512"):
        FrameReader(MIN_MAX_FRAME_SIZE - 1)
    assert FrameReader(2**32 - 1).max_frame_size == LARGEST_FRAME_SIZE == 0x414D5150 - 1


def test_items_before_a_fault_are_not_lost():
    """What came whole before the bad octets is handed out with the error."""
    good = [AMQP, Frame(0, Open(container_id="c")), Frame(0)]
    bad = bytes.fromhex("00 00 00 0c 02 00 00 00 00 53 99 45")
    with pytest.raises(DecodeError, match="0x99") as caught:
        FrameReader().feed(b"".join(map(encode_item, good)) + bad)
    assert [r.item for r in caught.value.completed] == good
    assert caught.value.offset == sum(map(item_size, good)) + 9
    assert caught.value.condition is ErrorCondition.DECODE_ERROR


def fed(*items, **options):
    reader = FrameReader(LARGE, **options)
    return [r.item for r in reader.feed(b"".join(map(encode_item, items)))]


def test_protocol_headers_stand_where_the_specification_puts_them():
    """First, and behind the SASL frames; both directions of a connection [2.2, 5.3.2]."""
    client = [SASL, Frame(0, SaslInit(mechanism="PLAIN")), AMQP, Frame(0, Open(container_id="c"))]
    mechanisms = Frame(0, SaslMechanisms(sasl_server_mechanisms=("PLAIN",)))
    server = [SASL, mechanisms, Frame(0, SaslOutcome(code=0)), AMQP, Frame(0)]
    assert fed(*client) == client
    assert fed(*server) == server
    for wrong in (
        [SASL, AMQP],
        [SASL, Frame(0)],
        [AMQP, AMQP],
        [AMQP, mechanisms],
        [AMQP, Frame(0), AMQP],
        [SASL, mechanisms, Frame(0)],
        [Frame(0)],
        [ProtocolHeader(2), Frame(0)],
        [ProtocolHeader(0, 0, 9, 1), Frame(0)],
    ):
        with pytest.raises(DecodeError) as caught:
            fed(*wrong)
        assert caught.value.condition is ErrorCondition.FRAMING_ERROR
        assert [r.item for r in caught.value.completed] == wrong[:-1]


def test_a_foreign_stream_is_named():
    """TLS, 0-9-1 and noise are refused at once, with what would be legal."""
    with pytest.raises(DecodeError, match="legal is a protocol header"):
        FrameReader().feed(b"G")
    with pytest.raises(DecodeError, match="announced TLS"):
        fed(ProtocolHeader(2), ProtocolHeader(2))
    with pytest.raises(DecodeError, match="version 0-9-1; what follows is not AMQP"):
        FrameReader().feed(encode_item(ProtocolHeader(0, 0, 9, 1)) + b"\x01")


def test_a_reader_can_go_on_behind_a_body_that_cannot_be_decoded():
    """Its octets are kept with the fault; a SASL frame, and what is no frame, end the stream."""
    good = encode_item(Frame(1, Close()))
    bad = bytes.fromhex("0000000c 02000007 005399 45")
    for size in (1, 5, len(good + bad + good)):
        reader = FrameReader(keeps_undecodable=True, mid_stream=True)
        stream = good + bad + good
        cuts = range(0, len(stream), size)
        items = [raw for at in cuts for raw in reader.feed(stream[at : at + size])]
        assert [raw.raw for raw in items] == [good, bad, good]
        assert b"".join(encode_item(raw.item) for raw in items) == stream
        kept = items[1].item
        assert (kept.channel, kept.performative.octets) == (7, bad[8:])
        assert "names no performative" in kept.performative.fault
    for octets in ("0000000b 02010000 005399", "00000007 02000000"):
        reader = FrameReader(keeps_undecodable=True, mid_stream=True)
        with pytest.raises(DecodeError):
            reader.feed(bytes.fromhex(octets))


def test_a_stream_whose_beginning_was_not_seen_may_begin_with_a_frame():
    """A capture may begin in the middle of a connection."""
    init = Frame(0, SaslInit(mechanism="X"))
    assert fed(Frame(3), Frame(0), mid_stream=True) == [Frame(3), Frame(0)]
    assert fed(init, AMQP, Frame(0), mid_stream=True) == [init, AMQP, Frame(0)]
    assert fed(AMQP, Frame(0), mid_stream=True) == [AMQP, Frame(0)]
    for wrong in ([Frame(0), init], [Frame(0), AMQP], [init, Frame(0)]):
        with pytest.raises(DecodeError):
            fed(*wrong, mid_stream=True)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("00 00 00 0d 02 00 00 00 00 53 18 45 00", "1 octets follow the close"),
        ("00 00 00 0c 02 01 00 00 00 53 18 45", "close cannot stand in a SASL frame"),
        ("00 00 00 0c 02 00 00 00 00 53 40 45", "sasl-mechanisms"),
        ("00 00 00 10 02 00 00 00 00 53 41 c0 04 01 a3 01", "sasl"),
        ("00 00 00 08 02 01 00 00", "a SASL frame is empty"),
        ("00 00 00 09 02 00 00 00", "SIZE is 9; here are 8 octets"),
        ("00 00 00", "at least 8 octets"),
    ],
)
def test_a_frame_whose_body_cannot_be_is_refused(text, part):
    """Payload only behind a transfer, SASL only in SASL frames [2.7.5, 5.3.1]."""
    with pytest.raises(DecodeError) as caught:
        decode_frame(bytes.fromhex(text))
    assert part in caught.value.message


@pytest.mark.parametrize(
    "item",
    [
        Frame(0, Close(), b"payload"),
        Frame(0, None, b"payload"),
        Frame(65536, Close()),
        Frame(-1),
        ProtocolHeader(256),
    ],
)
def test_a_frame_that_cannot_be_is_not_sent(item):
    """Misuse on this side is a LocalProtocolError."""
    with pytest.raises(LocalProtocolError):
        encode_item(item)
