"""AMQP 0-10 in captures: what a run exports is read back, and tshark reads it."""

import random
import shutil
import subprocess

import pytest

from workbench.amqp010.frame import Frame
from workbench.capture.amqp010 import FrameSplitter010
from workbench.capture.decoder import DecodedFrame
from workbench.capture.importer import import_capture
from workbench.scenarios import run
from workbench.trace.pcapng_out import export

RUNS = {
    "qpid": [("publish", {"count": 14}), ("accept", {"count": 6})],
    "qpid_credit": [
        ("flow", {"unit": "octets", "value": 200}), ("flow", {"value": 4}),
        ("complete", {"count": 2}), ("set_flow_mode", {"mode": "credit"}), ("stop", {}),
    ],
}  # fmt: skip
ENDED = {"stop": 0, "resume": 0, "most": 5, "window": 0}
COUNTERS = ("incomplete_commands", "credit_messages", "credit_octets")


def played(name, **parameters):
    """A run in which something happens."""
    found = run(name, parameters=parameters)
    for act, arguments in RUNS[name]:
        found = found.then(act, **arguments)
    return found


@pytest.fixture(
    params=[("qpid", {}), ("qpid", ENDED), ("qpid_credit", {})], ids=str, scope="module"
)
def exported(request, tmp_path_factory):
    """A run of one connection's frames, its capture, and what is read of that."""
    name, parameters = request.param
    rows = [row for row in played(name, **parameters).rows if row.connection in (None, "c1")]
    path = tmp_path_factory.mktemp("exported") / f"{name}.pcapng"
    export(rows, path)
    return [row for row in rows if row.event == "sent"], path, import_capture(path)


def test_every_frame_is_read_back_with_its_fields_and_octets(exported):
    """Kind, session and fields are the run's, and so is what it knew of incomplete commands.

    But for what a client says as soon as it is told: more may be on the way to it by then.
    """
    sent, _, read = exported
    assert [row.kind for row in read.rows] == [row.kind for row in sent]
    assert [row.raw for row in read.rows] == [row.raw for row in sent]
    assert [row.frame_010 for row in read.rows] == [row.frame_010 for row in sent]
    assert read.report.connections[0].problems == []
    attached = 0
    for mine, theirs in zip(sent, read.rows, strict=True):
        told = {name: (mine.ledger or {}).get(name) for name in COUNTERS[:1]}
        attached += mine.kind == "session.command-point"
        if attached == 2 and mine.ledger and mine.kind != "session.known-completed":
            assert {name: theirs.ledger[name] for name in told} == told, mine.seq
    assert "the window of a producer" in " ".join(read.report.connections[0].unknown)


def test_credit_is_counted_as_the_broker_does(exported):
    """After a message's last octet both balances are those of the broker's end."""
    sent, _, read = exported
    told = [row.ledger for row in sent if row.link and row.from_peer == "broker"]
    seen = [row.ledger for row in read.rows if row.link and row.from_peer == "broker"]
    assert [one["credit_messages"] for one in seen] == [one["credit_messages"] for one in told]
    # The octets of a message are known when they have come: one message later than at the broker.
    octets = [[one["credit_octets"] for one in found] for found in (told, seen)]
    assert octets[0][:2] == octets[1][1:3]
    assert len(octets[0]) == len(octets[1])


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_every_frame_and_finds_none_malformed(exported):
    """Wireshark's dissector is another implementation."""
    sent, path, _ = exported
    told = subprocess.run(
        ["tshark", "-r", path, "-d", "tcp.port==5672,amqp", "-T", "fields",
         "-e", "_ws.col.Protocol", "-e", "_ws.malformed"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert [line for line in told if line.partition("\t")[2]] == []
    assert sum(line.startswith("AMQP") for line in told) == len(sent)


def test_in_any_pieces_and_from_any_place_the_frames_are_the_same(exported):
    """Split anywhere; from the middle three frames in a row are believed."""
    sent, _, _ = exported
    octets = b"".join(row.raw for row in sent if row.from_peer == "client")
    whole = FrameSplitter010(True, trusted=False).feed(octets)
    assert all(type(one) is DecodedFrame for one in whole)
    dice = random.Random(7)
    for _ in range(5):
        splitter = FrameSplitter010(True, trusted=False)
        found, at = [], 0
        while at < len(octets):
            size = dice.randint(1, 40)
            found += splitter.feed(octets[at : at + size])
            at += size
        assert found == whole
    frames = [one for one in whole if isinstance(one.item, Frame)]
    later = FrameSplitter010(False, trusted=False)
    found = later.feed(octets[frames[2].offset + 1 :]) + later.finish()
    assert [one.raw for one in found] == [one.raw for one in frames[3:]]
    assert later.synced_by == 3


def test_damaged_octets_are_told_and_what_follows_is_read(exported):
    """A frame whose header cannot be is passed over up to the next boundary."""
    sent, _, _ = exported
    raws = [row.raw for row in sent if row.from_peer == "client"]
    bad = bytearray(raws[6])
    bad[0] |= 0xF0
    splitter = FrameSplitter010(True, trusted=True)
    found = splitter.feed(b"".join([*raws[:6], bytes(bad), *raws[7:]])) + splitter.finish()
    assert [one.raw for one in found if type(one) is DecodedFrame] == [*raws[:6], *raws[7:]]
    told = [one for one in found if type(one) is not DecodedFrame]
    assert [one.octets for one in told] == [0, len(bad) - 1]
    assert "frame flags" in told[0].text


def test_a_redacted_capture_has_no_secret_and_no_body(exported, tmp_path):
    """Zeros of the same length, in octets and in fields."""
    _, path, read = exported
    clean = import_capture(path, redact=True)
    for mine, theirs in zip(read.rows, clean.rows, strict=True):
        assert len(mine.raw) == len(theirs.raw)
        if mine.kind == "body":
            assert not any(theirs.raw[12:])
