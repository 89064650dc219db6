"""Frames, segments and messages: cut anywhere, mixed, damaged."""

import random
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from workbench.amqp010.assembler import Assembler
from workbench.amqp010.commands import MessageTransfer
from workbench.amqp010.composite import COMMANDS, CONTROLS
from workbench.amqp010.controls import ConnectionHeartbeat, SessionFlush
from workbench.amqp010.errors import DecodeError
from workbench.amqp010.frame import (
    Frame,
    FrameReader,
    Headers,
    ProtocolHeader,
    SegmentType,
    control_frame,
    encode_item,
    frames_of,
    item_size,
)
from workbench.trace.packet_out import Address, PcapngWriter, TcpTalk

from . import strategies as gen

COMMAND, HEADER, BODY = SegmentType.COMMAND, SegmentType.HEADER, SegmentType.BODY


@given(st.lists(gen.command_frames() | gen.controls.map(lambda c: [control_frame(1, c)])),
       st.lists(st.integers(1, 40), min_size=1))  # fmt: skip
@settings(max_examples=12)
def test_a_stream_may_come_in_any_pieces(lists, sizes):
    """The frames are the same, whatever the octets that one call brings."""
    items = [ProtocolHeader(), *[frame for one in lists for frame in one]]
    raw = b"".join(map(encode_item, items))
    assert len(raw) == sum(map(item_size, items))
    reader, found, at = FrameReader(), [], 0
    while at < len(raw):
        size = sizes[len(found) % len(sizes)]
        found += reader.feed(raw[at : at + size])
        at += size
    assert [one.item for one in found] == items
    assert b"".join(one.raw for one in found) == raw
    assert [one.offset for one in found][1:] == [
        sum(map(item_size, items[:n])) for n in range(1, len(items))
    ]


@given(st.data())
@settings(max_examples=12)
def test_segments_of_several_channels_may_come_mixed(data):
    """Each channel's commands come out whole and in order; controls need not wait for them."""
    sent, queues = {}, {}
    for channel in range(3):
        methods = [
            (data.draw(gen.commands), data.draw(st.none() | gen.headers),
             data.draw(st.none() | st.binary(max_size=300)))
            for _ in range(data.draw(st.integers(0, 3)))
        ]  # fmt: skip
        sent[channel] = methods
        queues[channel] = [f for m in methods for f in frames_of(channel, *m, max_frame_size=70)]
    assembler, found = Assembler(10**6), {0: [], 1: [], 2: []}
    while any(queues.values()):
        channel = data.draw(st.sampled_from([c for c in queues if queues[c]]))
        done = assembler.add(queues[channel].pop(0))
        if done is not None:
            found[channel].append((done.method, done.headers, done.payload))
        control = assembler.add(control_frame(channel, SessionFlush(completed=True)))
        assert control.method == SessionFlush(completed=True)
    assert found == sent
    assert assembler.octets == 0


def transfer(**more):
    """The frames of a message of three body frames."""
    return list(frames_of(1, MessageTransfer("q"), Headers(), b"x" * 30, max_frame_size=22, **more))


def added(frames, most=1000):
    """Add frames to an assembler; gives it."""
    assembler = Assembler(most)
    for frame in frames:
        assembler.add(frame)
    return assembler


def test_octets_of_header_and_body_are_counted_for_credit():
    """Not the frames' headers, not the command."""
    assembler = Assembler(100)
    headers = Headers((gen.s.DeliveryProperties(routing_key="k"),))
    *_, done = map(assembler.add, frames_of(1, MessageTransfer("q"), headers, b"x" * 30))
    assert done.content_octets == len(headers.encode()) + 30


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frames: frames[1:], "later frame of a|first frame of a header"),
        (lambda frames: frames[:1] * 2, "legal: a segment behind|legal: more of"),
        (lambda frames: [frames[0], frames[-1]], "legal: "),
        (lambda frames: [*frames[:-1], replace(frames[-1], last_segment=False)], "differ"),
        (lambda frames: [Frame(1, 0, ConnectionHeartbeat(), last_segment=False)], "one segment"),
    ],
)
def test_a_frame_out_of_place_is_refused(change, words):
    """A later frame without its first, a segment twice, flags that contradict each other."""
    with pytest.raises(DecodeError, match=words):
        added(change(transfer()))


def test_what_is_unfinished_is_bounded():
    """Whoever begins messages on many channels and ends none is stopped."""
    begun = []
    for channel in range(40):
        begun += list(frames_of(channel, MessageTransfer("q"), Headers(), b"x"))[:-1]
        begun.append(Frame(channel, BODY, b"x" * 30, False, True, True, False))
    assert added(begun, 2000).octets == 40 * (len(MessageTransfer("q").encode()) + 30)
    with pytest.raises(DecodeError, match="unfinished commands hold 10"):
        added(begun)


GOOD = encode_item(control_frame(0, ConnectionHeartbeat()))


@pytest.mark.parametrize(
    ("octets", "words"),
    [
        (b"GET / HTTP/1.1", "the stream begins with"),
        (GOOD, "the stream begins with"),
        (b"AMQP\x01\x01\x00\x0a" + b"\x8f" + GOOD[1:], "version and reserved bits"),
        (b"AMQP\x01\x01\x00\x0a" + GOOD[:1] + b"\x04" + GOOD[2:], "segment type is 4"),
        (b"AMQP\x01\x01\x00\x0a" + GOOD[:2] + b"\x00\x0b" + GOOD[4:], "frame size is 11"),
        (b"AMQP\x01\x01\x00\x0a" + GOOD[:2] + b"\xff\xff" + GOOD[4:], "frame size is 65535"),
        (b"AMQP\x01\x01\x00\x0a" + GOOD[:4] + b"\x01" + GOOD[5:], "reserved octet"),
        (b"AMQP\x01\x01\x00\x0a" + GOOD[:5] + b"\x01" + GOOD[6:], "track is 1"),
        (b"AMQP\x01\x01\x00\x0a" + b"\x07" + GOOD[1:], "its flag is not set"),
        (b"AMQP\x01\x01\x00\x0aAMQP\x01\x01\x00\x0a" + GOOD, "flags are 0x41"),
    ],
)
def test_a_stream_that_is_none_ends_at_its_first_fault(octets, words):
    """A size that lies, impossible bits; what came before is given, later octets change nothing."""
    reader = FrameReader(4096)
    with pytest.raises(DecodeError, match=words) as caught:
        reader.feed(octets)
    assert len(caught.value.completed) == (octets.startswith(b"AMQP"))
    with pytest.raises(DecodeError, match=words):
        reader.feed(GOOD)


def test_damaged_frames_give_a_value_or_a_fault():
    """Whatever the octets: no other exception, and little is kept."""
    chooser = random.Random(18)
    sample = b"".join(
        encode_item(frame)
        for kind in (*COMMANDS.values(), *CONTROLS.values())
        for frame in (
            [control_frame(1, kind())]
            if kind.CODE in CONTROLS
            else frames_of(1, kind(), Headers((gen.s.MessageProperties(
                application_headers={"a": {"b": [1, "x", None]}}, reply_to=gen.s.ReplyTo("e")),)),
                b"body")
        )
    )  # fmt: skip
    refused = 0
    for _ in range(400):
        octets = bytearray(sample)
        for _ in range(chooser.choice((1, 1, 2, 5))):
            octets[chooser.randrange(len(octets))] = chooser.randrange(256)
        reader, assembler = FrameReader(mid_stream=True), Assembler(10_000)
        try:
            for one in reader.feed(octets):
                assembler.add(one.item)
        except DecodeError:
            refused += 1
        assert len(reader._buffer) <= len(sample)
    assert 200 < refused < 400


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_wireshark_reads_each_frame_that_we_write(tmp_path):
    """Every control and command, with fields and without, and a message over several frames."""
    # Wireshark 4.0 counts four octets of a resume-ttl before arguments, and misreads capabilities.
    misread = {"message.subscribe": {"resume_ttl"}, "connection.open": {"capabilities"}}

    def filled(kind):
        return gen.filled(kind, misread.get(kind.NAME, ()))

    frames = [control_frame(1, kind()) for kind in CONTROLS.values()]
    frames += [control_frame(1, filled(kind)) for kind in CONTROLS.values()]
    properties = Headers((filled(gen.s.DeliveryProperties), filled(gen.s.MessageProperties)))
    for kind in COMMANDS.values():
        frames += [*frames_of(1, kind()), *frames_of(1, filled(kind))]
    frames += frames_of(1, MessageTransfer("q"), properties, b"x" * 9000, max_frame_size=4096)
    path = tmp_path / "out.pcapng"
    with path.open("wb") as stream:
        talk = TcpTalk(
            PcapngWriter(stream),
            Address(ip="127.0.0.1", port=40000),
            Address(ip="127.0.0.1", port=5672),
        )
        talk.open(0)
        for n, item in enumerate([ProtocolHeader(), *frames], 1):
            talk.send(n, encode_item(item), from_client=True)
        talk.close(len(frames) + 2)
    out = subprocess.run(
        ["tshark", "-r", path, "-T", "fields", "-e", "_ws.expert.message", "-e", "_ws.col.Info"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    lines = [line.split("\t") for line in out.splitlines()]
    experts = {one[0] for one in lines if "TCP" not in one[1] and "[" not in one[1]}
    assert experts == {"", "Bad flag value"}  # of a name that the specification requires
    info = " ".join(one[1] for one in lines)
    assert [kind.NAME for kind in (*CONTROLS.values(), *COMMANDS.values())
            if kind.NAME not in info] == []  # fmt: skip
