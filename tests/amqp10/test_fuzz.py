import gc
import random
import time

import pytest

from tests import fuzz_frames
from workbench.amqp10.decoder import decode
from workbench.amqp10.errors import DecodeError
from workbench.amqp10.frame import encode_item
from workbench.amqp10.framing import FrameReader
from workbench.amqp10.messaging import decode_message


@pytest.mark.slow
def test_twenty_thousand_damaged_frames_do_no_harm():
    """Each is a value or a DecodeError, the same by every path; none hangs or eats memory."""
    count, good = fuzz_frames.fuzz(seed=20120730, count=20_000)
    assert count == 20_000
    assert 1_000 < good < 15_000  # the damage is neither fatal always nor never


def test_the_corpus_is_sound_before_it_is_damaged():
    """All frames of the corpus, and so the mutations of what is legal."""
    for frame in fuzz_frames.CORPUS:
        assert fuzz_frames.check(encode_item(frame), random.Random(0))


def test_a_failure_can_be_repeated_from_what_is_printed(monkeypatch, capsys):
    """Seed, number and octets of the case are in the text, and the command says 1."""

    def broken(raw):
        raise ValueError("broken on purpose")

    monkeypatch.setattr(fuzz_frames, "decode_frame", broken)
    assert fuzz_frames.main(["--seed", "5", "--count", "3"]) == 1
    text = capsys.readouterr().out
    octets = next(fuzz_frames.cases(5))[1].hex()
    assert "seed 5, case 0: ValueError: broken on purpose" in text
    assert octets in text


def compound(code8, code32, count, body):
    if len(body) < 255 and count < 256:
        return bytes((code8, len(body) + 1, count)) + body
    return bytes((code32,)) + (len(body) + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + body


BOMBS = {
    "nulls that take no octets": compound(0xE0, 0xF0, 2**32 - 1, b"\x40"),
    "arrays of 64 nulls": compound(0xE0, 0xF0, 20_000, b"\xe0" + b"\x02\x40\x40" * 20_000),
    "empty lists": compound(0xC0, 0xD0, 60_000, b"\x45" * 60_000),
    "empty maps": compound(0xC0, 0xD0, 20_000, b"\xc1\x01\x00" * 20_000),
    "a list that claims everything": compound(0xC0, 0xD0, 2**32 - 1, b"\x40" * 1000),
    "a string that claims everything": b"\xb1\xff\xff\xff\xff" + b"x" * 1000,
    "descriptors without end": b"\x00" * 60_000,
    "lists in lists": b"\xd0\x00\x00\xff\xff\x00\x00\x00\x01" * 7_000,
    "one long duplicated key": compound(
        0xC1, 0xD1, 4, (b"\xb1\x00\x00\x75\x30" + b"k" * 30_000 + b"\x40") * 2
    ),
    "keys that collide": compound(
        0xC1,
        0xD1,
        8_000,
        b"".join(b"\x80" + (n << 40).to_bytes(8, "big") + b"\x40" for n in range(4000)),
    ),
}


@pytest.fixture
def nothing_left():
    """What other tests have left is none of the collector's business meanwhile: it takes time."""
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("name", BOMBS)
def test_octets_made_to_do_harm_are_read_or_refused_soon_and_in_little_memory(name):
    """Counts, sizes and nesting that promise more than there is."""
    raw = BOMBS[name]
    frame = (8 + 3 + len(raw) + 9).to_bytes(4, "big") + bytes((2, 0, 0, 0)) + b"\x00\x53\x10"
    frame += b"\xd0" + (len(raw) + 4).to_bytes(4, "big") + (1).to_bytes(4, "big") + raw
    began = time.process_time()
    for octets, read in ((raw, decode), (b"\x00\x53\x77" + raw, decode_message)):
        try:
            text = repr(read(octets)[:1])[:500]
        except DecodeError as error:
            text = error.message
        assert len(text) <= 500
    fuzz_frames.check(frame, random.Random(0))
    assert time.process_time() - began < fuzz_frames.SECONDS_PER_CASE
    fuzz_frames.check_memory(frame)


@pytest.mark.usefixtures("nothing_left")
def test_a_large_frame_in_small_pieces_takes_no_time_that_grows_with_its_square():
    """Octets of an unfinished frame are kept, not read again with every piece."""
    size = 400_000
    frame = (size).to_bytes(4, "big") + bytes((2, 0, 0, 0)) + bytes.fromhex("0053 14c0 0201 43")
    frame += bytes(size - len(frame))
    reader = FrameReader(size, mid_stream=True)
    began = time.process_time()
    items = [item for n in range(0, size, 10) for item in reader.feed(frame[n : n + 10])]
    assert time.process_time() - began < fuzz_frames.SECONDS_PER_CASE
    assert len(items[0].item.payload) == size - 15
