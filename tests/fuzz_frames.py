"""Throws damaged frames at a codec: `python -m tests.fuzz_frames --seconds 60 --seed 1`.

With `--protocol 0-9-1` at that of AMQP 0-9-1, with `0-10` at that of AMQP 0-10. Whatever the
octets, decoding them gives a value or a `DecodeError`, soon and in little memory. A failure prints
the seed, the number of the case and its octets.
"""

import argparse
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.amqp010.strategies import every_frame as corpus_010
from tests.amqp091.corpus import corpus as corpus_091
from workbench.amqp010 import errors as errors_010
from workbench.amqp010 import frame as frame_010
from workbench.amqp091 import errors as errors_091
from workbench.amqp091 import frame as frame_091
from workbench.amqp10 import messaging as m
from workbench.amqp10 import performatives as p
from workbench.amqp10.constructor import FORMAT_CODES
from workbench.amqp10.errors import DecodeError, LocalProtocolError
from workbench.amqp10.frame import Frame, ProtocolHeader, decode_frame, encode_item
from workbench.amqp10.framing import FrameReader
from workbench.amqp10.spans import field_spans
from workbench.amqp10.values import Array, Described, Symbol, UInt, ULong
from workbench.trace import schema
from workbench.trace.octets import places

OCTETS_PER_OCTET = 400
"""Memory that decoding may take for each octet of input: an array of nulls that take no octets is
the worst there is, at 64 pointers for 3 octets; a list of empty lists takes 64 for one."""

FIXED_MEMORY = 64 * 1024
"""What it may take besides: error texts, the reader itself, caches filled on first use."""

SECONDS_PER_CASE = 2.0
"""Of processor time, far above what a case takes; a hang is longer. What counts the memory makes
everything several times slower and is not in it."""

_message = m.encode_message(
    [
        m.Header(durable=True, priority=3, ttl=1000),
        m.DeliveryAnnotations({"x-a": ULong(5)}),
        m.MessageAnnotations({"x-b": [1, 2.5, None, b"octets"]}),
        m.Properties(message_id="id", to="/queues/q", creation_time=1_700_000_000_000),
        m.ApplicationProperties({"key": "value", "number": -5}),
        m.Data(b"x" * 40),
        m.Footer({"crc": UInt(7)}),
    ]
)
_attach = p.Attach(
    name="link",
    handle=3,
    role=p.Role.SENDER,
    snd_settle_mode=p.SenderSettleMode.UNSETTLED,
    source=m.Source(
        address="/queues/q",
        durable=m.TerminusDurability.CONFIGURATION,
        filter={"selector": Described(Symbol("apache.org:selector-filter:string"), "a > 1")},
        default_outcome=m.Modified(delivery_failed=True),
        outcomes=("amqp:accepted:list", "amqp:rejected:list"),
        dynamic_node_properties={"lifetime-policy": m.DeleteOnNoLinks()},
    ),
    target=m.Target(address="t", capabilities=("queue",)),
    unsettled={b"tag": m.Received(section_number=1, section_offset=2), b"other": None},
    initial_delivery_count=4294967290,
    properties={"paired": True, "many": Array("symbol", (Symbol("a"), Symbol("bc")))},
)
_error = p.Error(condition="amqp:not-found", description="no queue", info={"queue": "q"})

CORPUS: tuple[Frame, ...] = (
    Frame(0, p.SaslMechanisms(sasl_server_mechanisms=("PLAIN", "ANONYMOUS"))),
    Frame(0, p.SaslInit(mechanism="PLAIN", initial_response=b"\0user\0secret", hostname="h")),
    Frame(0, p.SaslChallenge(challenge=b"c")),
    Frame(0, p.SaslOutcome(code=p.SaslCode.OK)),
    Frame(
        0,
        p.Open(
            container_id="container",
            hostname="vhost:/",
            max_frame_size=131072,
            channel_max=63,
            idle_time_out=30000,
            offered_capabilities=("a", "b"),
            properties={"product": "broker", "version": [1, 2]},
        ),
    ),
    Frame(1, p.Begin(next_outgoing_id=0, incoming_window=400, outgoing_window=4294967295)),
    Frame(1, _attach),
    Frame(
        1,
        p.Flow(
            next_incoming_id=1,
            incoming_window=400,
            next_outgoing_id=0,
            outgoing_window=4294967295,
            handle=3,
            delivery_count=7,
            link_credit=100,
            drain=True,
            properties={"rabbitmq:active": True},
        ),
    ),
    Frame(1, p.Transfer(handle=3, delivery_id=300, delivery_tag=b"tag", settled=True), _message),
    Frame(1, p.Transfer(handle=3, state=m.Accepted(), more=True), b"x" * 30),
    Frame(1, p.Disposition(role=p.Role.RECEIVER, first=0, last=9, state=m.Rejected(error=_error))),
    Frame(1, p.Disposition(role=p.Role.RECEIVER, first=0, settled=True, state=m.Accepted())),
    Frame(1, p.Detach(handle=3, closed=True, error=_error)),
    Frame(1, p.End(error=_error)),
    Frame(0, p.Close()),
    Frame(0),
)

_EDGES = (0x00, 0x01, 0x7F, 0x80, 0xFF, 0x99)
_SIZES = (0, 1, 2, 3, 7, 8, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1)


@dataclass(frozen=True, kw_only=True)
class Fuzzed:
    """A protocol whose codec is fuzzed.

    Attributes:
        corpus: octets of sound frames.
        interesting: octets that mean something in them.
        mend: puts a frame's size right.
        check: decodes octets, whole and in pieces, and writes again what they were; tells whether
            they were a frame. An `AssertionError`: two ways disagree, or what was read is not what
            is written again. Any other error but the codec's `DecodeError` means that it is wrong.
        decode: decodes them, and nothing more; a `DecodeError` is swallowed.
    """

    corpus: tuple[bytes, ...]
    interesting: tuple[int, ...]
    mend: Callable[[bytearray], None]
    check: Callable[[bytes, random.Random], bool]
    decode: Callable[[bytes], object]


def damaged(chooser: random.Random, protocol: Fuzzed | None = None) -> bytes:
    """A frame of the corpus after one to four mutations; half the time its SIZE is put right."""
    protocol = protocol or AMQP_1_0
    raw = bytearray(chooser.choice(protocol.corpus))
    for _ in range(chooser.randint(1, 4)):
        _mutate(raw, chooser, protocol)
    if chooser.random() < 0.5 and len(raw) >= 8:
        protocol.mend(raw)
    return bytes(raw)


def _mutate(raw: bytearray, chooser: random.Random, protocol: Fuzzed) -> None:
    at = chooser.randrange(len(raw)) if raw else 0
    kind = chooser.randrange(8)
    if kind == 0 and raw:
        raw[at] ^= 1 << chooser.randrange(8)
    elif kind <= 2 and raw:
        raw[at] = chooser.choice(protocol.interesting)
    elif kind == 3:
        raw[at : at + 4] = chooser.choice(_SIZES).to_bytes(4, "big")
    elif kind == 4:
        del raw[at : at + chooser.randint(1, 8)]
    elif kind == 5:
        raw[at:at] = chooser.randbytes(chooser.randint(1, 8))
    elif kind == 6:
        piece = raw[at : at + chooser.randint(1, 40)]
        raw[at:at] = piece * chooser.choice((1, 2, 50))
    else:
        other = chooser.choice(protocol.corpus)
        raw[at:] = other[chooser.randrange(len(other)) :]


def check(raw: bytes, chooser: random.Random) -> bool:
    """Of AMQP 1.0; see `Fuzzed`."""
    frame = _outcome(decode_frame, raw)
    if isinstance(frame, Frame):
        _again(frame)
        if frame.payload:
            _outcome(m.decode_message, frame.payload)
    _in_pieces(raw, chooser)
    _tiled(raw, [(span.start, span.end) for span in field_spans(raw) if span.leaf])
    return isinstance(frame, Frame)


def check_091(raw: bytes, chooser: random.Random) -> bool:
    """Of AMQP 0-9-1; see `Fuzzed`."""
    items, _ = whole = _read_091([raw])
    cuts = sorted(chooser.randrange(len(raw) + 1) for _ in range(4))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    # As text: two NaN are equal there.
    assert repr(_read_091(pieces)) == repr(whole), "in pieces it reads differently"
    for one in items:
        try:
            octets = frame_091.encode_item(one.item)
        except errors_091.LocalProtocolError:
            continue  # such as a short string of a method that is longer as it is written here
        (again,), none = _read_091([octets])
        assert (repr(again.item), none) == (repr(one.item), None), "what is written reads otherwise"
        _tiled(one.raw, [(one.start, one.end) for one in places(one.raw, schema.AMQP_0_9_1)])
    return bool(items)


def _read_091(pieces: list[bytes]) -> tuple[list[frame_091.RawItem], str | None]:
    """Items of a stream, and the fault that ended it, if one did."""
    reader = frame_091.FrameReader(4096, mid_stream=True)
    items: list[frame_091.RawItem] = []
    try:
        for piece in pieces:
            items += reader.feed(piece)
            assert len(reader.pending) <= reader.frame_max + frame_091.FUDGE
    except errors_091.DecodeError as error:
        return items + list(error.completed), error.message
    return items, None


def check_010(raw: bytes, chooser: random.Random) -> bool:
    """Of AMQP 0-10; see `Fuzzed`."""
    items, _ = whole = _read_010([raw])
    cuts = sorted(chooser.randrange(len(raw) + 1) for _ in range(4))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    # As text: two NaN are equal there.
    assert repr(_read_010(pieces)) == repr(whole), "in pieces it reads differently"
    for one in items:
        try:
            octets = frame_010.encode_item(one.item)
        except errors_010.LocalProtocolError:
            continue  # such as a field whose value is legal and longer as it is written here
        (again,), none = _read_010([octets])
        assert (repr(again.item), none) == (repr(one.item), None), "what is written reads otherwise"
        _tiled(one.raw, [(one.start, one.end) for one in places(one.raw, schema.AMQP_0_10)])
    return bool(items)


def _read_010(pieces: list[bytes]) -> tuple[list[frame_010.RawItem], str | None]:
    """Items of a stream, and the fault that ended it, if one did."""
    reader = frame_010.FrameReader(mid_stream=True)
    items: list[frame_010.RawItem] = []
    try:
        for piece in pieces:
            items += reader.feed(piece)
            assert len(reader.pending) <= reader.max_frame_size
    except errors_010.DecodeError as error:
        return items + list(error.completed), str(error)
    return items, None


def _tiled(raw: bytes, spans: list[tuple[int, int]]) -> None:
    """Whether they lie one behind the other, from the first octet to the last."""
    at = 0
    for start, end in spans:
        assert start == at, "the leaves do not tile the frame"
        at = end
    assert at == len(raw), "the leaves do not cover the frame"


def _mend(raw: bytearray) -> None:
    raw[:4] = len(raw).to_bytes(4, "big")


def _mend_091(raw: bytearray) -> None:
    raw[3:7] = (len(raw) - frame_091.EMPTY_FRAME_SIZE).to_bytes(4, "big")
    raw[-1] = frame_091.FRAME_END


def _mend_010(raw: bytearray) -> None:
    raw[2:4] = min(len(raw), 0xFFFF).to_bytes(2, "big")


def _outcome(decode, raw):
    try:
        return decode(raw)
    except DecodeError as error:
        fault = error
    assert 0 <= fault.offset <= len(raw), "the offset is outside of the octets"
    return fault.message


def _again(frame: Frame) -> None:
    try:
        raw = encode_item(frame)
    except LocalProtocolError:
        return  # such as a key that is no ASCII where a symbol belongs: readable, not writable
    assert _shown(decode_frame(raw)) == _shown(frame), "what is written again reads differently"


def _shown(frame: Frame) -> str:
    """A frame's repr (NaN is NaN there), strings and symbols alike.

    A string as key of a `fields` map is read, and written again as the symbol it should be.
    """
    return repr(frame).replace("Symbol(", "").replace(")", "")


def _in_pieces(raw: bytes, chooser: random.Random) -> None:
    reader = FrameReader(4096, mid_stream=chooser.random() < 0.8)
    if chooser.random() < 0.5:
        raw = encode_item(ProtocolHeader()) + raw
    at = 0
    try:
        while at < len(raw):
            size = chooser.choice((1, 3, 8, 64, 4096))
            reader.feed(raw[at : at + size])
            at += size
            assert len(reader.pending) <= reader.max_frame_size
    except DecodeError:
        assert reader.pending == b""


AMQP_1_0 = Fuzzed(
    corpus=tuple(encode_item(frame) for frame in CORPUS),
    interesting=(*FORMAT_CODES, *_EDGES),
    mend=_mend,
    check=check,
    decode=lambda raw: _outcome(decode_frame, raw),
)
AMQP_0_9_1 = Fuzzed(
    corpus=tuple(frame_091.encode_item(frame) for frame in corpus_091()),
    interesting=(*b"tbBsuIilLfdDSxTVAF", frame_091.FRAME_END, *_EDGES),
    mend=_mend_091,
    check=check_091,
    decode=lambda raw: _read_091([raw]),
)
AMQP_0_10 = Fuzzed(
    corpus=tuple(raw for raw in map(frame_010.encode_item, corpus_010()) if len(raw) < 1_000),
    interesting=(*range(5), 0x0A, 0x48, 0x85, 0x95, 0xA8, 0xA9, 0xAA, *_EDGES),
    mend=_mend_010,
    check=check_010,
    decode=lambda raw: _read_010([raw]),
)
PROTOCOLS = {"1.0": AMQP_1_0, "0-9-1": AMQP_0_9_1, "0-10": AMQP_0_10}


def cases(seed: int, protocol: Fuzzed = AMQP_1_0) -> Iterator[tuple[int, bytes, random.Random]]:
    """Damaged frames without end; the same for the same seed."""
    chooser = random.Random(seed)
    number = 0
    while True:
        yield number, damaged(chooser, protocol), chooser
        number += 1


def fuzz(
    seed: int,
    *,
    count: int | None = None,
    seconds: float | None = None,
    protocol: Fuzzed = AMQP_1_0,
) -> tuple[int, int]:
    """Checks damaged frames until `count` of them, or `seconds`, are done.

    Every hundredth is decoded once more with its memory measured.

    Returns:
        How many were checked, and how many of them were frames all the same.

    Raises:
        AssertionError: a case failed; the text has all that is needed to repeat it.
    """
    begin = time.process_time()
    good = 0
    for number, raw, chooser in cases(seed, protocol):
        started = time.process_time()
        if number == count or (seconds is not None and started - begin > seconds):
            return number, good
        try:
            good += protocol.check(raw, chooser)
            assert time.process_time() - started < SECONDS_PER_CASE, "it took too long"
            if number % 100 == 0:
                check_memory(raw, protocol)
        except Exception as error:
            raise AssertionError(
                f"seed {seed}, case {number}: {type(error).__name__}: {error}\n{raw.hex()}"
            ) from error
    raise AssertionError("the cases ended")


def check_memory(raw: bytes, protocol: Fuzzed = AMQP_1_0) -> None:
    """Decodes octets with their memory measured.

    Raises:
        AssertionError: it is out of proportion to their number.
    """
    tracemalloc.start()
    try:
        protocol.decode(raw)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    allowed = FIXED_MEMORY + OCTETS_PER_OCTET * len(raw)
    assert peak <= allowed, f"{len(raw)} octets took {peak} octets of memory"


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_frames", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long; default 60")
    parser.add_argument("--count", type=int, default=None, help="or how many frames")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="1.0", help="default 1.0")
    chosen = parser.parse_args(arguments)
    seconds = None if chosen.count is not None else chosen.seconds
    try:
        count, good = fuzz(
            chosen.seed, count=chosen.count, seconds=seconds, protocol=PROTOCOLS[chosen.protocol]
        )
    except AssertionError as failure:
        sys.stdout.write(f"{failure}\n")
        return 1
    sys.stdout.write(f"{count} damaged frames, {good} of them still frames; no fault\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
