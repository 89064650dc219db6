"""Octets of controls, commands and structs: the specification's table, a client's codec, ours."""

import math
import random
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import fuzz_frames
from workbench.amqp010.commands import ExecutionResult, MessageTransfer, QueueDeclare
from workbench.amqp010.composite import COMMANDS, CONTROLS, STRUCTS, UnknownStruct
from workbench.amqp010.controls import SessionCompleted
from workbench.amqp010.errors import DecodeError, LocalProtocolError
from workbench.amqp010.frame import (
    FrameReader,
    Headers,
    SegmentType,
    control_frame,
    decode_frame,
    decode_segment,
    encode_item,
    frames_of,
)
from workbench.amqp010.structs import DeliveryProperties, MessageProperties, ReplyTo
from workbench.amqp010.values import SequenceSet, read_map, write_map

from . import strategies as gen
from .qpid_python import FOLDER, load, needs_client


@given(gen.controls | gen.commands)
def test_what_is_written_is_read_as_it_was(method):
    """Every control and command, any field absent or present."""
    kind = SegmentType.CONTROL if method.CODE in CONTROLS else SegmentType.COMMAND
    assert decode_segment(kind, method.encode()) == method


@given(gen.headers)
@settings(max_examples=20)
def test_a_header_segment_keeps_its_structs(headers):
    """In their order, those of an unknown code among them."""
    more = Headers((*headers.structs, UnknownStruct(0x7F01, b"\x00\x00x")))
    assert decode_segment(SegmentType.HEADER, more.encode()) == more


# A uint8, a float, a datetime, a char, an array of one and a decimal; and 40,000 octets of Latin-1.
TYPED = (
    "02 75 38 02 05 01 66 23 3f 8c cc cd 04 77 68 65 6e 38 00 00 00 00 65 53 f1 00 03 63 68 72 27"
    " 00 00 00 41 03 61 72 72 aa 00 00 00 09 22 00 00 00 01 00 00 00 07 03 64 65 63 c8 02 00 00 00"
    " 07 01 74 94 9c 40" + " e9" * 40_000
)


def test_who_sends_a_header_on_keeps_the_types_of_its_values():
    """Only what is put in the place of another is written anew."""
    body = (7).to_bytes(4, "big") + bytes.fromhex(TYPED)
    place = [name for name, _ in MessageProperties.FIELDS].index("application_headers")
    flags = (1 << place).to_bytes(2, "little")
    properties = b"\x04\x03" + flags + len(body).to_bytes(4, "big") + body
    said = Headers((DeliveryProperties(routing_key="k"),)).encode()
    header = len(properties).to_bytes(4, "big") + properties
    read = decode_segment(SegmentType.HEADER, header + said)
    assert read.structs[0].application_headers["u8"] == 5
    assert read.encode() == header + said
    more = DeliveryProperties(routing_key="k", exchange="e")
    assert read.beginning_with(more).encode() == Headers((more,)).encode() + header
    assert read.beginning_with(more) == Headers((more, read.structs[0]))


@given(st.dictionaries(gen.texts, gen.values, max_size=4))
@settings(max_examples=40)
def test_a_map_keeps_its_values(value):
    """Values of any type that Python has for them."""
    more = {**value, "long": bytes(70_000), "wide": 2**63}
    raw = write_map(more)
    assert read_map(raw, 0, len(raw)) == (more, len(raw))


def test_golden_octets():
    """Frame header, code, session header, packing flags, fields."""
    command = MessageTransfer("amq.fanout", accept_mode=1, sync=True)
    headers = Headers((DeliveryProperties(routing_key="k", redelivered=True),))
    frames = frames_of(7, command, headers, b"hi")
    assert [encode_item(one).hex(" ") for one in frames] == [
        "0b 01 00 1e 00 01 00 07 00 00 00 00 04 01 01 01 03 00 0a 61 6d 71 2e 66 61 6e 6f 75 74 01",
        "03 02 00 16 00 01 00 07 00 00 00 00 00 00 00 06 04 01 04 02 01 6b",
        "07 03 00 0e 00 01 00 07 00 00 00 00 68 69",
    ]
    completed = control_frame(0, SessionCompleted(SequenceSet(((4294967295, 2),))))
    assert encode_item(completed).hex(" ") == (
        "0f 00 00 1a 00 00 00 00 00 00 00 00 02 0a 01 00 00 08 ff ff ff ff 00 00 00 02"
    )


def test_the_codec_of_a_command_can_be_read():
    """It is a few lines for each field."""
    assert "destination = data[begin:at].decode()" in MessageTransfer.SOURCE


@pytest.mark.parametrize(
    "value",
    [
        MessageTransfer("x" * 256),
        MessageTransfer(accept_mode=256),
        MessageTransfer(accept_mode=-1),
        SessionCompleted(SequenceSet(((0, 2**32),))),
        QueueDeclare("q", arguments={"a": object()}),
    ],
)
def test_a_value_that_does_not_fit_is_refused(value):
    """Nothing is written that could not be read."""
    with pytest.raises(LocalProtocolError):
        value.encode()


@pytest.mark.parametrize(
    ("kind", "octets", "words"),
    [
        (0, "02", "a code of 2"),
        (0, "02 ff 00 00", "no control has the code"),
        (1, "04 01 02 00 00 00", "session header"),
        (1, "04 01 01 00 08 00", "packing flags are 0x0008"),
        (1, "04 01 01 00 01 00 09 61", "behind what encloses it"),
        (1, "04 01 01 00 01 00 01 61 00", "its size says"),
        (1, "04 01 01 00 01 00 01 ff", "cannot be read"),
        (0, "02 0a 01 00 00 07 00 00 00 00 00 00 00", "a multiple of 8"),
        (2, "00 00 00 09 04 01 00 00", "octets"),
        (1, "08 01 01 00 40 00 ff ff ff ff", "behind what encloses it"),
        (1, "08 01 01 00 40 00 00 00 00 06 ff ff ff ff 00 00", "elements"),
        (0, "01 01 02 00 00 00 00 05 f0 ff ff ff ff", "elements"),
    ],
)
def test_octets_that_say_nothing_are_refused_in_words(kind, octets, words):
    """A size that lies, flags of fields that there are not, text that is none."""
    with pytest.raises(DecodeError, match=words):
        decode_segment(kind, bytes.fromhex(octets))


def test_values_are_nested_only_so_deep():
    """A map in a map in a map costs its sender little, and the stack of its reader nothing."""
    raw = b"\x00\x00\x00\x00"
    for _ in range(5_000):
        raw = b"\x00\x00\x00\x01\x00\xa8" + raw
        raw = len(raw).to_bytes(4, "big") + raw
    with pytest.raises(DecodeError, match="nested deeper"):
        read_map(raw, 0, len(raw))


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the specification's table is not here")
def test_fields_are_those_of_the_machine_readable_specification():
    """Names, codes, fields, their order and types."""
    root = ET.parse(FOLDER / "qpid/specs/amqp-0-10-qpid-errata-stripped.xml").getroot()
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
    domains = {}
    for owner in (root, *root.findall("class")):
        prefix = f"{owner.get('name')}." if owner is not root else ""
        domains |= {prefix + one.get("name"): one.get("type") for one in owner.findall("domain")}
    domains |= {"session.command-fragments": "array", "connection.amqp-host-array": "str16-array"}
    del domains["str16-array"]

    def told(owner, node):
        fields = []
        for one in node.findall("field"):
            kind = one.get("type")
            while f"{owner}.{kind}" in domains or kind in domains:
                kind = domains.get(f"{owner}.{kind}", domains.get(kind))
            fields.append((one.get("name").replace("-", "_"), kind))
        return tuple(fields)

    for table, tag in ((CONTROLS, "control"), (COMMANDS, "command"), (STRUCTS, "struct")):
        theirs = {}
        for owner in root.findall("class"):
            for node in owner.iter(tag):
                if node.get("code") and owner.get("name") not in ("file", "stream", "dtx", "tx"):
                    code = int(owner.get("code"), 16) << 8 | int(node.get("code"), 16)
                    prefix = "" if tag == "struct" else f"{owner.get('name')}."
                    theirs[code] = prefix + node.get("name"), told(owner.get("name"), node)
        assert {code: (kind.NAME, kind.FIELDS) for code, kind in table.items()} == {
            code: theirs[code] for code in table
        }
        left = {name for code, (name, _) in theirs.items() if code not in table}
        assert left <= {"message.resume", "message-resume-result"}


def plain(value):
    """A value of ours or of Qpid's client, as both can have it."""
    if hasattr(value, "FIELDS"):
        names = [one[0] if isinstance(one, tuple) else one.name for one in value.FIELDS]
        return {
            name: plain(getattr(value, name))
            for name in names
            if getattr(value, name) is not None and getattr(value, name) is not False
        }
    if isinstance(value, SequenceSet):
        return sorted(value.ranges)
    if hasattr(value, "ranges"):
        return sorted((one.lower.value, one.upper.value) for one in value.ranges)
    if type(value).__name__ == "Serial":
        return value.value
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


METHODS = [kind for kind in (*CONTROLS.values(), *COMMANDS.values()) if kind is not ExecutionResult]


@needs_client
@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.NAME)
@given(data=st.data())
@settings(max_examples=4)
def test_qpid_s_client_reads_what_we_write_and_writes_what_we_read(kind, data):
    """Through its own framing and back: the same fields with the same values."""
    load()
    from qpid import framing

    method = data.draw(gen.composites(kind))
    message = kind is MessageTransfer
    headers = Headers((DeliveryProperties(routing_key="k"), MessageProperties(
        reply_to=ReplyTo("e"), application_headers={"a": 1, "b": [True, None, "x"]},
    ))) if message else None  # fmt: skip
    if kind.CODE in CONTROLS:
        frames = [control_frame(3, method)]
    else:
        frames = list(frames_of(3, method, headers, b"body" * 60 if message else None,
                                max_frame_size=4096))  # fmt: skip
    ours = b"".join(map(encode_item, frames))
    into = framing.FrameDecoder(), framing.SegmentDecoder(), framing.OpDecoder()
    into[0].write(ours)
    into[1].write(*into[0].read())
    into[2].write(*into[1].read())
    (op,) = into[2].read()
    assert kind.NAME.replace(".", "_").replace("-", "_") == op.NAME
    ranges = [name for name, type_ in kind.FIELDS if type_ == "sequence-set"]
    here, there = plain(method), plain(op)
    for name in ranges:  # their sets join what touches
        here.pop(name, None), there.pop(name, None)
    assert there == here
    if message:
        assert op.payload == b"body" * 60
        assert [plain(one) for one in op.headers] == [plain(one) for one in headers.structs]
    out = framing.OpEncoder(), framing.SegmentEncoder(), framing.FrameEncoder()
    out[0].write(op)
    out[1].write(*out[0].read())
    out[2].write(*out[1].read())
    back = FrameReader(mid_stream=True).feed(out[2].read())
    for found, sent in zip(back, frames, strict=True):
        assert found.item.segment_type == sent.segment_type
        if not ranges and not message:
            assert plain(found.item.content) == plain(sent.content)
            assert decode_frame(found.raw) == found.item


def test_a_damaged_number_that_is_none_is_the_same_in_pieces():
    """NaN equals nothing, itself included; the frame that holds it is sound all the same."""
    (frame,) = frames_of(1, QueueDeclare("q", arguments={"n": math.nan}))
    assert fuzz_frames.check_010(encode_item(frame), random.Random(0))


@pytest.mark.parametrize(
    "count", [1_500, pytest.param(20_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_damaged_frames_do_no_harm(count):
    """Wherever they are split they give the same frames, and what is read is written again."""
    checked, good = fuzz_frames.fuzz(seed=10, count=count, protocol=fuzz_frames.AMQP_0_10)
    assert checked == count
    assert 0.1 * count < good < 0.9 * count
