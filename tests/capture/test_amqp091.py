"""Captures of AMQP 0-9-1: a row for every frame, the channel's books, and what cannot be known."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.amqp091.corpus import corpus
from tests.amqp091.streams import ERRORS, FOLDER, NAMES, listing
from tests.capture.capture_builder import Burst
from tests.capture.test_importer import record, shortened
from workbench.amqp091.frame import ContentHeader, Frame, ProtocolHeader, encode_item
from workbench.amqp091.methods import (
    METHODS,
    BasicAck,
    BasicConsume,
    BasicDeliver,
    BasicQos,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
)
from workbench.capture.amqp091 import Amqp091Decoder, FrameSplitter091
from workbench.capture.importer import import_capture
from workbench.trace.pcapng_out import export
from workbench.trace.rebuild import item_of
from workbench.trace.transcript import transcript
from workbench.trace.wire_items import codec_of

PREFETCH = "rmq43_q1_amqp091_prefetch_and_ack"
CONFIRMS = "rmq43_k1_amqp091_client_pika"
SPLIT = "rmq43_c1_amqp091_get_and_passive_declare"


def rows_of(name, **options):
    return import_capture(FOLDER / f"{name}.pcapng", **options).rows


def counted(name):
    """Frames of the listing: who sent them, and what they are."""
    return Counter(
        (line.from_client, line.kind.replace("unknown.method", "undecodable"))
        for lines in listing(name).values()
        for line in lines
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_frame_is_on_one_row(name):
    """As many of each kind as the listing has; only a frame with a wrong end is none."""
    rows = rows_of(name)
    found = Counter(
        (row.from_peer == "client", row.kind)
        for row in rows
        if row.is_frame and row.kind not in ("protocol-header", "heartbeat")
    )
    wanted = counted(name)
    wrong = [row for row in rows if not row.is_frame]
    assert len(wrong) == (name == ERRORS)
    if wrong:
        wanted.subtract({(True, "unknown.class"): wanted[True, "unknown.class"]})
        assert "invalid_frame_end_marker,205" in wrong[0].details["text"]
        assert sum((wanted - found).values()) == 1
        found += wanted - found
    assert found == +wanted
    # One client of the errors asks for AMQP 0-10, and is told that there is none.
    headers = {row.protocol for row in rows if row.kind == "protocol-header"}
    assert headers <= {"amqp-0-9-1", *(["amqp-0-10"] if name == ERRORS else [])}
    rest = {row.protocol for row in rows if row.kind != "protocol-header"}
    assert rest <= {"amqp-0-9-1", "internal"}


def test_a_consumer_never_holds_more_than_its_limit():
    """Prefetch 3: the deliveries that fill it have the brake, and acknowledgements let it go."""
    rows = [row for row in rows_of(PREFETCH) if row.kind == "basic.deliver" and row.session == 1]
    told = [(row.ledger["unacknowledged"], row.ledger["prefetch_count"]) for row in rows]
    assert told[:7] == [(1, 3), (2, 3), (3, 3), (3, 3), (3, 3), (2, 3), (3, 3)]
    assert [row.brake for row in rows[:4]] == ["none", "none", "prefetch", "prefetch"]
    assert {row.consumer for row in rows} == {"c"}
    assert {row.ledger_source for row in rows} == {"observed"}


def test_confirms_are_counted():
    """300 publishes, each confirmed before the next; then one more, under an alarm."""
    rows = [row for row in rows_of(CONFIRMS) if row.kind in ("basic.publish", "basic.ack")]
    told = [(row.ledger["published"], row.ledger["confirmed"]) for row in rows if row.session == 1]
    assert told[:4] == [(1, 0), (1, 1), (2, 1), (2, 2)]
    assert max(published - confirmed for published, confirmed in told) == 1


def test_a_message_in_several_frames_is_counted_once():
    """One basic.get-ok, one header, three body frames with 20,000 octets in all."""
    rows = rows_of(SPLIT)
    (at,) = [i for i, row in enumerate(rows) if (row.frame_091 or {}).get("body_size") == 20_000
             and row.from_peer == "broker"]  # fmt: skip
    kinds = [row.kind for row in rows[at - 1 : at + 4]]
    assert kinds == ["basic.get-ok", "content-header", *["content-body"] * 3]
    assert [row.body_bytes for row in rows[at : at + 4]] == [None, 8184, 8184, 3632]
    assert rows[at - 1].body_bytes is None


def test_a_redacted_capture_has_no_secret_and_the_same_sizes():
    """Password and bodies are zeros; all else is as it was."""
    whole, clean = rows_of(PREFETCH), rows_of(PREFETCH, redact=True)
    text = b"".join(row.raw for row in clean)
    assert b"guest" not in text
    assert b"guest" in b"".join(row.raw for row in whole)
    for before, after in zip(whole, clean, strict=True):
        assert before.frame_bytes == after.frame_bytes == len(after.raw)
        if before.kind == "content-body":
            assert after.raw[7:-1] == bytes(before.body_bytes)
        elif before.kind != "connection.start-ok":
            assert before.raw == after.raw


def test_the_transcript_tells_what_happens():
    """A line each, in words."""
    lines = list(transcript(rows_of(PREFETCH)))
    assert lines[19].endswith(
        "The broker delivers message 3 to consumer “c”; 3 of 3 are unacknowledged, so no more are "
        "delivered to it for now."
    )
    assert "The client returns all deliveries up to 7 to the queue." in lines[41]
    assert "response=" in lines[2]
    assert "guest" not in lines[2]


def stream(first=0):
    """The corpus as octets, and the frames from one on."""
    frames = [encode_item(frame) for frame in corpus()]
    return b"".join(frames[first:]), frames[first:]


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_a_stream_in_any_pieces_gives_the_same_frames(size):
    """From its beginning, with a protocol header."""
    octets, frames = stream()
    octets = encode_item(ProtocolHeader()) + octets
    splitter = FrameSplitter091(True, trusted=False)
    found = [
        one for at in range(0, len(octets), size) for one in splitter.feed(octets[at : at + size])
    ]
    assert [one.raw for one in found[1:]] == frames
    assert splitter.finish() == []
    assert splitter.offset == len(octets)


def test_a_stream_caught_in_the_middle_is_found_again():
    """Three frames in a row prove a boundary; the octets before it are passed over."""
    octets, frames = stream(70)
    alike = b"\x08\x00\x00\x00\x00\x00\x00\xceno frame follows"
    splitter = FrameSplitter091(False, trusted=False)
    cut = alike + frames[0][5:]
    found = splitter.feed(cut + octets[len(frames[0]) :]) + splitter.finish()
    assert [one.raw for one in found] == frames[1:]
    assert splitter.skipped == len(cut)


def test_a_gap_loses_the_frame_that_it_is_in():
    """Of a body at least its size is known, and what follows it is read at once."""
    body, after = encode_item(corpus()[-2]), encode_item(corpus()[0])
    splitter = FrameSplitter091(True, trusted=True)
    assert splitter.feed(body[:8]) == []
    (cut,) = splitter.gap(2)
    assert (cut.raw, cut.size, cut.body_bytes) == (None, len(body), 4)
    (read,) = splitter.feed(body[10:] + after)
    assert read.raw == after


@pytest.mark.parametrize("size", [8, 100])
def test_a_body_cut_by_the_snapshot_length_costs_no_counter(tmp_path, size):
    """Nothing but octets of a message is missing, and its frame tells how many they are."""
    said = [
        (True, ChannelOpen()),
        (True, BasicQos(prefetch_count=2)),
        (True, BasicConsume(queue="q", consumer_tag="c")),
    ]
    for tag in (1, 2):
        deliver = BasicDeliver(consumer_tag="c", delivery_tag=tag)
        said += [(False, deliver), (False, ContentHeader(body_size=400)), (False, bytes(400))]
    said.append((True, BasicAck(delivery_tag=2, multiple=True)))
    octets = [(side, encode_item(Frame(1, each))) for side, each in said]
    tape, _ = record(
        [Burst(0, 500 + at, side, data, (len(data),)) for at, (side, data) in enumerate(octets)]
    )
    truth = import_capture(tape.write(tmp_path / "whole.pcapng"), port=5672).rows
    short = shortened(tmp_path, tape, lambda kept: kept - 400 + size if kept > 400 else kept)
    result = import_capture(short, port=5672)
    bodies = [row for row in result.rows if row.kind == "content-body"]
    assert [(row.raw, row.body_bytes) for row in bodies] == [(None, 400)] * 2
    assert [row.ledger for row in result.rows] == [row.ledger for row in truth]
    assert all(row.unknown == () for row in result.rows)
    assert "payload of 2 frames" in result.report.text()


def test_what_cannot_be_read_is_quoted_in_the_report_alone():
    """And there only where secrets may stay."""
    quoted = "0,20,0,20,1"
    for redact in (False, True):
        result = import_capture(FOLDER / f"{ERRORS}.pcapng", redact=redact)
        (wrong,) = [row for row in result.rows if not row.is_frame]
        assert quoted not in wrong.details["text"]
        assert (quoted in result.report.text()) != redact


def test_without_a_channels_beginning_its_counters_are_unknown(tmp_path):
    """A capture begun in the middle says so, row by row and in the report."""
    said = [
        BasicQos(prefetch_count=3),
        BasicConsume(queue="q", consumer_tag="c"),
        ChannelClose(),
        ChannelCloseOk(),
        ChannelOpen(),
        BasicQos(prefetch_count=5),
    ]
    octets = b"".join(encode_item(Frame(2, one)) for one in said)
    tape, _ = record([Burst(0, 500, True, octets, (len(octets),))])
    result = import_capture(tape.write(tmp_path / "middle.pcapng", tape.packets[3:]))
    assert [row.kind for row in result.rows] == [one.NAME for one in said]
    assert [row.ledger for row in result.rows[:3]] == [None] * 3
    assert result.rows[1].unknown == ("prefetch_count", "unacknowledged")
    assert result.rows[5].ledger == {"prefetch_count": 5, "unacknowledged": 0}
    assert [row.session for row in result.rows] == [1, 1, 1, 1, 2, 2]
    text = result.report.text()
    assert "channel 2 was opened before its first frame here" in text
    assert "prefetch-count at 4 frames" in text


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_wireshark_reads_what_is_written(tmp_path):
    """Every method of the corpus by its name, and nothing malformed; without stored octets, too."""
    rows = rows_of(PREFETCH)
    for at, row in enumerate(rows):
        row.raw = None
        rebuilt = item_of(row)
        assert codec_of(rebuilt).fields(rebuilt) == (row.kind, row.frame_091), at
    path = tmp_path / "again.pcapng"
    assert export(rows, path).rebuilt == len(rows)
    text = subprocess.run(
        ["tshark", "-r", path, "-Y", "amqp", "-T", "fields", "-e", "_ws.malformed",
         "-e", "amqp.method.method"],
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    columns = [line.split("\t") for line in text.splitlines()]
    assert not any(malformed for malformed, _ in columns)
    methods = sum(len(found.split(",")) for _, found in columns if found)
    assert methods == sum("." in row.kind for row in rows)


SPECIFICATION = Path("/usr/share/amqp/specs/0-9-1/amqp0-9-1.stripped.xml")
# RabbitMQ's: confirms and cancelled consumers go both ways, and some methods are new.
BOTH_WAYS = {"basic.ack", "basic.cancel", "basic.cancel-ok"}
OF_CLIENTS = {"confirm.select", "exchange.bind", "exchange.unbind", "connection.update-secret"}
OF_BROKERS = {f"{kind}-ok" for kind in OF_CLIENTS} | {"connection.blocked", "connection.unblocked"}


@pytest.mark.skipif(
    not SPECIFICATION.exists(), reason="Debian's package amqp-specs is not installed"
)
def test_who_sends_a_method_is_what_the_specification_says():
    """By that a connection is told whose beginning a capture lacks; a method has who takes it."""
    takers = {}
    for of_class in ElementTree.parse(SPECIFICATION).getroot().iter("class"):
        for method in of_class.iter("method"):
            kind = f"{of_class.get('name')}.{method.get('name')}"
            takers[kind] = {chassis.get("name") for chassis in method.findall("chassis")}
    for ours, taker, more in (
        (Amqp091Decoder.client_kinds, "server", OF_CLIENTS),
        (Amqp091Decoder.broker_kinds, "client", OF_BROKERS),
    ):
        theirs = {kind for kind, its in takers.items() if its == {taker}} - BOTH_WAYS
        assert ours == theirs | more
    assert ours <= {kind.NAME for kind in METHODS.values()}
