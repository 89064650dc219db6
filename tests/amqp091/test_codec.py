"""Octets and frames: against the specification's own, pamqp, pika and py-amqp; damaged ones."""

import math
import random

import amqp.basic_message
import amqp.serialization
import pamqp.commands
import pamqp.exceptions
import pamqp.frame
import pika.frame
import pytest

from tests import fuzz_frames
from tests.amqp091.corpus import LETTERS, PLAIN_TABLE, TABLE, corpus, filled, properties
from tests.amqp091.talk import Talk
from workbench.amqp091.codec import read_method, write_method
from workbench.amqp091.errors import DecodeError, LocalProtocolError, ReplyCode
from workbench.amqp091.events import ProtocolViolation
from workbench.amqp091.frame import (
    ContentHeader,
    Frame,
    FrameReader,
    ProtocolHeader,
    Undecodable,
    body_parts,
    encode_item,
    item_size,
)
from workbench.amqp091.methods import (
    BY_BROKER,
    BY_CLIENT,
    METHODS,
    BasicAck,
    BasicPublish,
    ConnectionUpdateSecret,
    Properties,
    QueueDeclare,
)
from workbench.amqp091.values import MAX_DEPTH, read_table, write_table

# Read off a wire by hand [4.2.3]: publish to routing key "q", mandatory.
PUBLISH = "01 0001 0000000a 003c0028 0000 00 0171 01 ce"
HEADER = "02 0001 00000011 003c 0000 0000000000000002 9000 0174 02 ce"
BODY = "03 0001 00000002 6869 ce"


def one(octets):
    """The only frame of these octets."""
    (raw,) = FrameReader(0, mid_stream=True).feed(octets)
    assert raw.raw == octets
    return raw.item


def test_a_message_is_three_frames_of_these_octets():
    """Method, content header with two properties, body; written by hand from the specification."""
    told = Properties(content_type="t", delivery_mode=2)
    frames = [
        Frame(1, BasicPublish(routing_key="q", mandatory=True)),
        Frame(1, ContentHeader(body_size=2, properties=told)),
        Frame(1, b"hi"),
    ]
    for frame, text in zip(frames, (PUBLISH, HEADER, BODY), strict=True):
        octets = bytes.fromhex(text.replace(" ", ""))
        assert encode_item(frame) == octets
        assert one(octets) == frame


@pytest.mark.parametrize("letter", LETTERS)
def test_a_value_is_written_by_its_letter(letter):
    """And read to the same type: a small number by a wide letter stays what it was."""
    value, octets = LETTERS[letter]
    inner = b"\x01n" + letter[0].encode() + bytes.fromhex(octets)
    table = len(inner).to_bytes(4, "big") + inner
    assert write_table({"n": value}) == table
    found, end = read_table(table, 0, len(table))
    assert (found, type(found["n"]), end) == ({"n": value}, type(value), len(table))


def test_every_frame_of_the_corpus_comes_back():
    """All methods, properties and letters; and their size is known without writing them."""
    for frame in corpus():
        octets = encode_item(frame)
        again = one(octets)
        assert again == frame
        assert encode_item(again) == octets
        assert item_size(frame) == len(octets)


@pytest.mark.filterwarnings("ignore:This command is deprecated:DeprecationWarning")
@pytest.mark.parametrize("kind", METHODS.values(), ids=lambda kind: kind.NAME)
def test_pamqp_pika_and_py_amqp_read_every_method(kind):
    """The values that we wrote."""
    said = filled(kind, PLAIN_TABLE)
    octets = encode_item(Frame(3, said))
    theirs = pamqp.commands.INDEX_MAPPING[kind.INDEX]
    names = theirs.attributes()
    wanted = [getattr(said, name) for name in kind.__struct_fields__]

    consumed, channel, method = pamqp.frame.unmarshal(octets)
    assert (consumed, channel, type(method)) == (len(octets), 3, theirs)
    assert [plain(getattr(method, name)) for name in names] == plain(wanted)

    letters = {
        "octet": "o", "short": "B", "long": "l", "longlong": "L", "shortstr": "s", "longstr": "S",
        "bit": "b", "table": "F",
    }  # fmt: skip
    form = "".join(letters[theirs.amqp_type(name)] for name in names)
    values, end = amqp.serialization.loads(form, octets[7:-1], 4)
    assert end == len(octets) - 8
    assert plain(values) == plain(wanted)

    if kind is ConnectionUpdateSecret:  # of which pika cannot make one without arguments
        return
    consumed, frame = pika.frame.decode_frame(octets)
    assert (consumed, frame.channel_number) == (len(octets), 3)
    assert frame.method.NAME.replace(".", "") == kind.__name__
    found = vars(frame.method)
    for name, value in zip(kind.__struct_fields__, wanted, strict=True):
        assert plain(found["global_qos" if name == "global_" else name]) == plain(value)


def plain(value):
    """Texts where another codec has them for octets, and the other way round."""
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("latin-1")
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def test_pika_and_py_amqp_read_the_properties():
    """And the size of the body."""
    said = properties(PLAIN_TABLE)
    octets = encode_item(Frame(3, ContentHeader(body_size=77, properties=said)))
    wanted = {name: plain(getattr(said, name)) for name in said.__struct_fields__}

    _, frame = pika.frame.decode_frame(octets)
    assert frame.body_size == 77
    found = {name: plain(value) for name, value in vars(frame.properties).items()}
    assert found == wanted

    message = amqp.basic_message.Message()
    message.inbound_header(octets[7:-1])
    assert message.body_size == 77
    wanted["application_headers"] = wanted.pop("headers")
    assert {name: plain(value) for name, value in message.properties.items()} == wanted


def test_what_pika_writes_is_read():
    """With our own types: pika writes the narrowest letter of a number."""
    theirs = pika.spec.Queue.Declare(queue="q", durable=True, arguments=dict(PLAIN_TABLE))
    found = one(pika.frame.Method(1, theirs).marshal()).payload
    assert found == QueueDeclare(queue="q", durable=True, arguments=found.arguments)
    assert plain(found.arguments) == plain(PLAIN_TABLE)


def test_reply_codes_are_those_of_pamqp():
    """Number by number, with the specification's names; and 200, which is no error."""
    named = {code.value: code.name.replace("_", "-") for code in ReplyCode}
    errors = {code: kind.name for code, kind in pamqp.exceptions.CLASS_MAPPING.items()}
    assert named == {200: "REPLY-SUCCESS", **errors}


def test_who_may_send_a_method_is_told_of_each():
    """The client, the broker, or both; from the specification's roles."""
    both = {kind.NAME for kind in METHODS.values()} - {k.NAME for k in BY_CLIENT | BY_BROKER}
    assert both == {
        "connection.close", "connection.close-ok", "channel.close", "channel.close-ok",
        "channel.flow", "channel.flow-ok", "basic.ack", "basic.nack", "basic.cancel",
        "basic.cancel-ok",
    }  # fmt: skip
    assert not BY_CLIENT & BY_BROKER
    assert len(BY_CLIENT) + len(BY_BROKER) + len(both) == len(METHODS) == 64


@pytest.mark.parametrize(
    ("payload", "code", "words"),
    [
        (b"\x00\x3c\x03\xe7", 540, "there is no method 999 of class 60"),
        (b"\x00\x4d\x00\x0a", 540, "there is no method 10 of class 77"),
        (b"\x00\x3c", 502, "a method has at least 4 octets"),
        (write_method(BasicAck())[:-1], 502, "basic.ack cannot be read: it is cut off"),
        (write_method(BasicAck()) + b"x", 502, "1 octets follow the basic.ack"),
        (b"\x00\x3c\x00\x28\x00\x00\x01\xff\x00\x00", 502, "a short string is no UTF-8"),
        (
            write_method(QueueDeclare(arguments={"n": b""})).replace(b"x", b"?"),
            502, "has the letter '?', which is none",
        ),
    ],
)  # fmt: skip
def test_a_method_that_cannot_be_read_is_told_and_passed_over(payload, code, words):
    """The frames around it can be read."""
    octets = b"\x01\x00\x05" + len(payload).to_bytes(4, "big") + payload + b"\xce"
    first, second = FrameReader(0, mid_stream=True).feed(octets + encode_item(Frame(0)))
    assert second.item == Frame(0)
    found = first.item.payload
    assert isinstance(found, Undecodable)
    assert (found.code, first.item.channel) == (code, 5)
    assert words in found.fault
    assert encode_item(first.item) == octets


def nested(depth):
    """Octets of an array in an array and so on, in a table."""
    inner = b""
    for _ in range(depth - 1):
        inner = b"A" + len(inner).to_bytes(4, "big") + inner
    inner = b"\x01n" + inner
    return len(inner).to_bytes(4, "big") + inner


def test_a_table_nests_so_deep_and_no_deeper():
    """A thousand levels would be no fault of ours, but of the stack."""
    octets = nested(MAX_DEPTH)
    table, _ = read_table(octets, 0, len(octets))
    assert write_table(table) == octets
    for octets in (nested(MAX_DEPTH + 1), nested(1000)):
        with pytest.raises(DecodeError, match="more than 32 deep") as caught:
            read_table(octets, 0, len(octets))
        assert caught.value.code is ReplyCode.SYNTAX_ERROR
    with pytest.raises(LocalProtocolError, match="more than 32 deep"):
        write_table({"n": [table["n"]]})


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (Frame(1, BasicPublish(routing_key="é" * 128)), "at most 255 octets"),
        (Frame(1, BasicAck(delivery_tag=-1)), "does not fit"),
        (Frame(1, QueueDeclare(arguments={"n": object()})), "a table holds no object"),
        (Frame(1, QueueDeclare(arguments={"n": 2**63})), "does not fit into a Long"),
        (Frame(1, ContentHeader(body_size=-1)), "does not fit"),
        (Frame(1, ContentHeader(body_size=1, properties=Properties(priority=256))), "not fit"),
        (Frame(65536, b""), "a channel is 0 to 65535"),
    ],
)
def test_what_does_not_fit_is_not_written(item, words):
    """A negative tag for one."""
    with pytest.raises(LocalProtocolError, match=words):
        encode_item(item)


@pytest.mark.parametrize(("size", "over"), [(4096, 0), (4104, 0), (4105, 1)])
def test_a_frame_may_be_a_little_above_frame_max(size, over):
    """By the 8 octets by which clients count wrong, and no more [rabbit_reader.erl]."""
    octets = encode_item(Frame(1, bytes(size - 8)))
    reader = FrameReader(4096, mid_stream=True)
    if not over:
        assert len(reader.feed(octets)) == 1
        return
    with pytest.raises(DecodeError, match=r"\{frame_too_large,4097,4088\}"):
        reader.feed(octets[:7])
    assert reader.pending == b""


def test_a_body_is_split_into_parts_that_fill_their_frames():
    """frame-max counts the 8 octets around a part; 0 is no limit, and no octets are no part."""
    assert [len(part) for part in body_parts(bytes(20_000), 8192)] == [8184, 8184, 3632]
    assert [len(part) for part in body_parts(bytes(20_000), 0)] == [20_000]
    assert list(body_parts(b"", 8192)) == []


def test_the_corpus_is_sound_before_it_is_damaged():
    """All its frames, and so the mutations of what is legal."""
    for raw in fuzz_frames.AMQP_0_9_1.corpus:
        assert fuzz_frames.check_091(raw, random.Random(0))


def test_a_damaged_number_that_is_none_is_the_same_in_pieces():
    """NaN equals nothing, itself included; the frame that holds it is sound all the same."""
    raw = encode_item(Frame(1, QueueDeclare(arguments={"n": math.nan})))
    assert fuzz_frames.check_091(raw, random.Random(0))


@pytest.mark.parametrize(
    "count", [1_500, pytest.param(20_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_damaged_frames_do_no_harm(count):
    """Wherever they are split they give the same frames, and what is read is written again."""
    checked, good = fuzz_frames.fuzz(seed=91, count=count, protocol=fuzz_frames.AMQP_0_9_1)
    assert checked == count
    assert 0.1 * count < good < 0.9 * count


def test_damaged_frames_raise_nothing_but_the_violation():
    """Both ends of a connection answer them, or drop them."""
    chooser = random.Random(91)
    talk = Talk()
    violations = undecodable = 0
    for _ in range(1000):
        raw = fuzz_frames.damaged(chooser, fuzz_frames.AMQP_0_9_1)
        reader = FrameReader(4096, mid_stream=True)
        try:
            items = reader.feed(raw)
        except DecodeError as error:
            items = error.completed
        for one in items:
            undecodable += isinstance(getattr(one.item, "payload", None), Undecodable)
            for side in (talk.client, talk.server):
                for event in side.connection.apply(one.item):
                    violations += isinstance(event, ProtocolViolation)
                    side.connection.answer(event)
        if talk.server.connection.error or talk.client.connection.error:
            talk = Talk()
    assert violations > 100
    assert undecodable > 50


def test_a_header_stands_at_the_beginning_alone():
    """It may come octet by octet."""
    header = encode_item(ProtocolHeader())
    reader = FrameReader()
    found = [raw.item for at in range(8) for raw in reader.feed(header[at : at + 1])]
    assert found == [ProtocolHeader(0, 0, 9, 1)]
    with pytest.raises(DecodeError, match="frame_too_large"):
        reader.feed(header)


def test_reading_a_method_goes_no_further_than_its_frame():
    """What stands behind it in the same octets is not its own."""
    octets = write_method(QueueDeclare(queue="q", arguments=TABLE))
    for end in range(4, len(octets)):
        with pytest.raises(DecodeError):
            read_method(octets, 0, end)
