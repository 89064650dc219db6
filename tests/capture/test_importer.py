"""Import: the network's disturbances change nothing, and what cannot be known is never guessed."""

import dataclasses
import gzip
import itertools
import random
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.capture.capture_builder import (
    BODY,
    PASSWORD,
    Burst,
    Script,
    Tape,
    behind_attach,
    bursts,
    record,
)
from workbench.amqp10.frame import Frame, ProtocolHeader, encode_item
from workbench.amqp10.performatives import Detach, Flow, Open, Transfer
from workbench.capture import columns, connection
from workbench.capture.decoder import DecodedFrame, FrameRecord, Unreadable
from workbench.capture.importer import Capture, CaptureError, import_capture, import_files
from workbench.cli.looking import look
from workbench.trace import files
from workbench.trace.packet_out import Address, TcpTalk
from workbench.trace.schema import Row

TLS = b"\x16\x03\x01\x00\x05hello"
OLD_HEADER = b"AMQP\x00\x00\x09\x01"
QPID_HEADER = b"AMQP\x01\x01\x00\x0a"
WEB = b"GET / HTTP/1.1\r\n\r\n"
OLD_START = b"\x01\x00\x00\x00\x00\x00\x03abc\xce"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("captures")


def facts(rows: list[Row]) -> list[dict]:
    """Rows without the name of the run, which has the file's hash in it."""
    return [{k: v for k, v in _columns(row).items() if k != "run"} for row in rows]


def _columns(row: Row) -> dict:
    return {f.name: getattr(row, f.name) for f in dataclasses.fields(row) if f.name != "item"}


def frames(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.event == "observed"]


def plan(talks: int = 1, **script) -> list[Burst]:
    """Bursts of several connections, interleaved in time."""
    found = [
        burst
        for talk in range(talks)
        for burst in bursts(Script(name=f"q{talk}", **script).frames(), talk, 1_000 + 3 * talk)
    ]
    return sorted(found, key=lambda burst: burst.t_us)


def clean(folder, the_plan: list[Burst], **how) -> list[Row]:
    tape, _ = record(the_plan, **how)
    return import_capture(tape.write(folder / "clean.pcapng")).rows


@settings(derandomize=True, max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), talks=st.integers(1, 3))
def test_cut_repeated_and_reordered_segments_give_the_rows_of_the_clean_capture(
    folder, seed, talks
):
    """Segments cut anywhere, sent again and out of order at one time change no row."""
    chance = random.Random(seed)
    the_plan = plan(talks)
    want = clean(folder, the_plan, frame_by_frame=True)
    tape, groups = record(the_plan, cut=chance)
    order = [n for n in range(len(tape.packets)) if not any(n in group for group in groups)]
    for group in groups:
        again = [n for n in group if chance.random() < 0.3]
        mixed = group + again
        chance.shuffle(mixed)
        order += mixed
    order.sort(key=lambda n: tape.packets[n][0])
    path = tape.write(folder / "dirty.pcapng", (tape.packets[n] for n in order))
    result = import_capture(path)
    assert facts(result.rows) == facts(want)
    assert all(not connection.problems for connection in result.report.connections)


def test_a_capture_of_all_three_witnesses_counts_what_it_should(folder):
    """Frames, links, deliveries, repeated segments: the report has the numbers of the script."""
    tape, _ = record(plan(2))
    packets = [packet for packet in tape.packets for _ in range(2)]
    report = import_capture(tape.write(folder / "twice.pcapng", packets)).report
    first = report.connections[0]
    assert (first.name, first.client, first.broker) == ("c1", "10.0.0.1:40000", "10.0.0.2:5672")
    assert first.from_client.frames + first.from_broker.frames == len(Script().frames())
    assert first.from_client.duplicates > 0
    assert [(link.name, link.sender, link.deliveries) for link in first.links] == [
        ("q0", "broker", 12),
        ("q0", "client", 6),
    ]
    text = report.text()
    assert "2 connections of 2" in text
    assert "repeated segment" in text


def known_values_are_true(rows: list[Row], truth: list[Row]) -> int:
    """Every known counter equals that of the same frame in the whole capture; how many."""
    waiting: dict = {}
    for row in frames(truth):
        waiting.setdefault((row.connection, row.from_peer), []).append(row)
    checked = 0
    for row in frames(rows):
        queue = waiting[row.connection, row.from_peer]
        while (queue[0].kind, queue[0].frame) != (row.kind, row.frame):
            queue.pop(0)
        true = queue.pop(0)
        for name, value in (row.ledger or {}).items():
            # Without the link's sender the session counters are those of the other end.
            if row.link_sender == true.link_sender or name in ("link_credit", "delivery_count"):
                assert (true.ledger or {}).get(name) == value, (row.seq, row.kind, name)
                checked += 1
        for name in row.unknown:
            assert name not in (row.ledger or {})
    return checked


@settings(derandomize=True, max_examples=60, deadline=None)
@given(start=st.integers(0, 70))
def test_nothing_is_guessed_in_a_capture_that_begins_in_the_middle(folder, start):
    """From any packet on: what is known is what the whole capture knows, the rest is listed."""
    the_plan = plan()
    tape, _ = record(the_plan, frame_by_frame=True)
    truth = import_capture(tape.write(folder / "whole.pcapng")).rows
    path = tape.write(folder / "middle.pcapng", tape.packets[3 + start :])
    try:
        rows = import_capture(path).rows
    except CaptureError:
        assert len(tape.packets) - 3 - start <= 3  # too few frames to be sure
        return
    known_values_are_true(rows, truth)


def test_a_link_attached_before_the_capture_goes_by_its_handle(folder):
    """From its first transfer on, which shows who sends; then no row is without it."""
    tape, _ = record(bursts(behind_attach(3)), handshake=False)
    result = import_capture(tape.write(folder / "behind.pcapng"))
    grant, *rows = [row for row in frames(result.rows) if row.kind in ("flow", "transfer")]
    assert (grant.link, grant.link_sender) == (None, None)
    assert {(row.link, row.link_sender, row.attach_no) for row in rows} == {
        ("handle 0", "broker", None)
    }
    assert "session 1 link on handle 0 from broker: - -> -, 9 deliveries" in result.report.text()
    # The second grant comes when the first is known to be used up: the numbers of both ends agree.
    known = [row.ledger["link_credit"] for row in rows if "link_credit" not in row.unknown]
    assert known == [3, 2, 1, 0]


@settings(derandomize=True, max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_nothing_is_guessed_where_segments_are_lost(folder, seed):
    """Segments that the capture lost: the frames that remain are read, no counter is wrong."""
    chance = random.Random(seed)
    tape, _ = record(plan(rounds=5), cut=chance)
    truth = import_capture(tape.write(folder / "whole.pcapng")).rows
    kept = [p for n, p in enumerate(tape.packets) if n < 3 or chance.random() > 0.08]
    result = import_capture(tape.write(folder / "lossy.pcapng", kept))
    known_values_are_true(result.rows, truth)
    connection = result.report.connections[0]
    lost = connection.from_client.gaps + connection.from_broker.gaps
    assert bool(lost) == any(row.event == "gap" for row in result.rows) or not lost
    for row in result.rows:
        if row.protocol == "internal":
            assert row.frame is None
            assert row.details["from_peer"] in ("client", "broker")
            assert row.details["text"]


def is_transfer(item):
    """Whose frame counts although its payload is lost."""
    return isinstance(item, Frame) and isinstance(item.performative, Transfer)


def shortened(folder, tape, keep) -> Path:
    """A capture that has of each packet as many octets as `keep` gives for its size."""
    data, place = bytearray(), tape.write(folder / "short.pcapng")
    for t_us, packet in tape.packets:
        kept = packet[: keep(len(packet))]
        head = struct.pack("<IIIII", 0, 0, t_us, len(kept), len(packet))
        body = head + kept + bytes(-len(kept) % 4)
        data += struct.pack("<II", 6, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
    place.write_bytes(place.read_bytes()[: 28 + 20] + data)
    return place


@pytest.mark.parametrize("size", [10, 60, 100])
def test_payload_cut_by_the_snapshot_length_costs_no_counter(folder, size):
    """A transfer whose performative was kept counts, though its body was not."""
    said = Script(rounds=2).frames()
    said = [
        (side, structs.replace(item, payload=bytes(400)) if is_transfer(item) else item)
        for side, item in said
    ]
    tape, _ = record(bursts(said), frame_by_frame=True)
    truth = import_capture(tape.write(folder / "whole.pcapng")).rows
    transfers = sum(len(packet) > 400 for _, packet in tape.packets)
    result = import_capture(
        shortened(folder, tape, lambda octets: octets - 400 + size if octets > 400 else octets)
    )
    assert [row.ledger for row in frames(result.rows)] == [row.ledger for row in frames(truth)]
    assert all(row.unknown == () for row in frames(result.rows))
    cut = [row for row in result.rows if row.kind == "transfer"]
    assert {row.raw for row in cut} == {None}
    assert [row.body_bytes for row in cut] == [400] * len(cut)
    assert "payload of" in result.report.text()
    assert result.report.captures[0].cut == transfers
    assert f"{transfers} packets kept only in part; capture whole packets" in result.report.text()


def test_rows_of_gaps_hold_as_many_octets_as_the_capture_lost(folder):
    """Those that a frame is short of, not those of it that are there."""
    said = [(side, item) for side, item in Script().frames() if not is_transfer(item)]
    tape, _ = record(bursts(said), frame_by_frame=True)
    result = import_capture(shortened(folder, tape, lambda octets: min(octets, 54 + 24)))
    (report,) = result.report.connections
    for peer, way in (("client", report.from_client), ("broker", report.from_broker)):
        lost = [
            row.extra["octets"]
            for row in result.rows
            if row.event == "gap" and row.extra["from_peer"] == peer
        ]
        assert sum(lost) == way.lost_octets > 0


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (40, r"no .*cut inside the .*"),
        # A protocol header of which six octets are there may be any of AMQP's.
        (54 + 6, r"no AMQP 1.0, AMQP 0-9-1 or AMQP 0-10 can be read in it: 1 TCP connection:"
                 r" 1 of an unknown protocol; \d+ packets kept only in part"),
    ],
    ids=["inside their headers", "behind them"],
)  # fmt: skip
def test_what_to_do_is_told_where_packets_were_cut_too_short_to_be_read(folder, kept, words):
    """And they are not taken for those of another protocol."""
    tape, _ = record(plan())
    with pytest.raises(CaptureError) as caught:
        import_capture(shortened(folder, tape, lambda octets: min(octets, kept)))
    todo = r"; capture whole packets \(tcpdump -s 0\)"
    assert re.fullmatch(f"short.pcapng: {words}{todo}", str(caught.value))


@pytest.mark.parametrize("before", [behind_attach(2), []])
def test_the_detach_of_each_end_is_of_one_link_though_its_attach_is_not_there(folder, before):
    """By the number, as of other frames; a third detach is of a link that nobody has seen."""
    ends = [(side, Frame(0, Detach(handle=0, closed=True))) for side in (True, False, True)]
    for detaches, links in ((ends[:2], 1), (ends, 2)):
        tape, _ = record(bursts([*before, *detaches]), handshake=False)
        report = import_capture(tape.write(folder / "end.pcapng"), port=5672).report
        (connection,) = report.connections
        assert [link.name for link in connection.links] == ["handle 0"] * links
        assert sum("handle 0 was attached" in text for text in connection.assumptions) == links


def test_one_octet_that_is_lost_is_told_as_one(folder):
    """Every frame lacks its last."""
    said = [(side, item) for side, item in Script().frames() if not is_transfer(item)]
    tape, _ = record(bursts(said), frame_by_frame=True)
    short = shortened(folder, tape, lambda octets: octets - 1 if octets > 80 else octets)
    problems = import_capture(short).report.connections[0].problems
    assert any(text.endswith(" octets: 1 of them is not in the capture") for text in problems)
    assert not any(" 1 of them are " in text or " 1 octets " in text for text in problems)


def test_a_segment_lost_inside_a_payload_costs_that_payload_alone(folder):
    """The frame's size tells where the next one begins: nothing is searched, no counter lost."""
    said = Script(rounds=1).frames()
    at = next(n for n, (_, item) in enumerate(said) if is_transfer(item))
    said[at] = (said[at][0], structs.replace(said[at][1], payload=b"\x01" * 3_000))
    the_plan = bursts(said)
    tape, _ = record(the_plan)
    truth = import_capture(tape.write(folder / "whole.pcapng")).rows
    talk = next(b for b in the_plan if len(b.data) > 3_000)
    three = [talk.data[:1_000], talk.data[1_000:2_000], talk.data[2_000:]]
    again = [dataclasses.replace(talk, data=part, sizes=(len(part),)) for part in three]
    where = the_plan.index(talk)
    cut, groups = record(the_plan[:where] + again + the_plan[where + 1 :])
    kept = [packet for n, packet in enumerate(cut.packets) if n not in groups[where + 1]]
    result = import_capture(cut.write(folder / "hole.pcapng", kept))
    assert [row.ledger for row in frames(result.rows)] == [row.ledger for row in frames(truth)]
    assert [row.event for row in result.rows if row.event != "observed"] == []
    assert [row.raw for row in result.rows].count(None) == 1


def test_a_lost_segment_changes_no_row_of_other_connections_nor_their_order(folder):
    """They wait until it is known for lost, so that no row is told at a later time than its own."""
    the_plan = plan(3)
    want = clean(folder, the_plan, frame_by_frame=True)
    tape, groups = record(the_plan, frame_by_frame=True)
    lost = groups[len(groups) // 2][0]
    packets = [packet for n, packet in enumerate(tape.packets) if n != lost]
    rows = import_capture(tape.write(folder / "lost.pcapng", packets)).rows
    (name,) = {row.connection for row in rows if row.event == "gap"}
    assert [row.t_raw_us for row in rows] == sorted(row.t_raw_us for row in rows)
    others = [
        [(row.t_us, row.raw) for row in its if row.connection != name] for its in (rows, want)
    ]
    assert others[0] == others[1] != []


def test_time_is_the_running_maximum_of_the_packet_clock(folder):
    """A clock that steps back shows in t_raw_us; t_us never decreases."""
    tape, _ = record(plan())
    packets = [(t - 500 if 20 < n < 30 else t, data) for n, (t, data) in enumerate(tape.packets)]
    rows = import_capture(tape.write(folder / "clock.pcapng", packets)).rows
    assert [row.t_us for row in rows] == sorted(row.t_us for row in rows)
    assert any(a.t_raw_us > b.t_raw_us for a, b in itertools.pairwise(rows))
    assert [row.seq for row in rows] == list(range(len(rows)))


@pytest.mark.parametrize("port", [5672, 61616, 443])
def test_any_port_is_found_by_its_protocol_header(folder, port):
    """No port is needed: the header says AMQP 1.0, the SYN says who is the client."""
    rows = clean(folder, plan(), port=port)
    assert len(frames(rows)) == len(Script().frames())
    assert rows[0].from_peer == "client"


def test_frames_in_a_row_stand_in_for_a_header_and_the_report_counts_them(folder):
    """Without header and SYN three valid frames make a connection AMQP 1.0, by lower port."""
    tape, _ = record(plan(), port=7777, frame_by_frame=True, handshake=False)
    result = import_capture(tape.write(folder / "mid.pcapng", tape.packets[20:]))
    text = result.report.text()
    assert "3 valid frames in a row" in text
    assert "lower port is taken as the broker's" in text
    assert result.report.connections[0].broker == "10.0.0.2:7777"


def cut_late(folder, name, tape, *others):
    """The report of a capture with the last packets of a tape, and then others."""
    return import_capture(tape.write(folder / name, [*tape.packets[-30:], *others])).report


HIGH = 60_000
"""A port of a broker above those of its clients, as a container's may be."""


def test_a_port_that_several_connections_share_is_the_brokers(folder):
    """No SYN, no header, and the broker's port is the higher one: the connections tell it."""
    tape, _ = record(plan(talks=2), port=HIGH, frame_by_frame=True, handshake=False)
    report = cut_late(folder, "shared.pcapng", tape)
    assert {one.broker for one in report.connections} == {"10.0.0.2:60000"}
    assert [one.guessed for one in report.connections] == ["", ""]
    assert report.text().count("the client: 2 connections share port 60000") == 2


def test_what_proves_the_broker_on_one_connection_proves_it_on_another_before(folder):
    """A SYN to the same address and port, which comes later, settles who is whose client."""
    tape, _ = record(plan(), port=HIGH, frame_by_frame=True, handshake=False)
    later, _ = record([dataclasses.replace(one, talk=1) for one in plan()], port=HIGH)
    report = cut_late(folder, "elsewhere.pcapng", tape, *((t + 10**6, d) for t, d in later.packets))
    assert [one.broker for one in report.connections] == ["10.0.0.2:60000"] * 2
    why = "another connection shows that 10.0.0.2:60000 is the broker"
    assert f"10.0.0.1:40000 is the client: {why}" in report.text()


def test_what_only_a_client_does_proves_who_it_is_however_late(folder):
    """The first frames are of both ends; then a session is begun, which no broker does."""
    begun = Script().frames()
    said = [*behind_attach(3), *(one for one in begun if "Begin" in str(one))]
    tape, _ = record(bursts(said), port=HIGH, frame_by_frame=True, handshake=False)
    report = cut_late(folder, "begun.pcapng", tape)
    assert report.connections[0].broker == "10.0.0.2:60000"
    assert "10.0.0.1:40000 is the client: later frames of it show it" in report.text()


def test_where_nothing_tells_the_lower_port_is_told_as_a_guess(folder):
    """One connection alone, cut late, with frames that both ends send."""
    tape, _ = record(bursts(behind_attach(3)), port=HIGH, frame_by_frame=True, handshake=False)
    path = tape.write(folder / "alone.pcapng")
    assert "the lower port is taken as the broker's" in look(path).about[0]


def test_the_ports_of_amqp_tell_the_broker_when_the_syn_is_missing(folder):
    """5672 is the broker even where it is the higher port."""
    tape, _ = record(plan(), frame_by_frame=True, handshake=False)
    swapped = [(t, d[:34] + b"\x01\x00" + d[36:]) if d[34:36] != b"\x16\x28" else
               (t, d[:36] + b"\x01\x00" + d[38:]) for t, d in tape.packets[16:]]  # fmt: skip
    report = import_capture(tape.write(folder / "known.pcapng", swapped)).report
    assert report.connections[0].broker == "10.0.0.2:5672"
    assert "5672 is a port of AMQP" in report.text()


def test_sasl_tells_the_broker_when_the_syn_is_missing(folder):
    """Mechanisms are offered by the server, whatever the ports are."""
    said = [entry for entry in Script().frames() if not isinstance(entry[1], ProtocolHeader)]
    tape, _ = record(bursts(said), port=60_000, frame_by_frame=True, handshake=False)
    report = import_capture(tape.write(folder / "sasl.pcapng")).report
    assert report.connections[0].broker == "10.0.0.2:60000"
    assert "sasl-mechanisms" in report.text()


def test_a_named_port_needs_no_header(folder):
    """With port=N one frame is enough, and other connections are not looked at."""
    tape, _ = record(plan(), port=7777, frame_by_frame=True, handshake=False)
    path = tape.write(folder / "port.pcapng", tape.packets[40:42])
    assert len(frames(import_capture(path, port=7777).rows)) == 2
    with pytest.raises(CaptureError, match="no TCP connection with port 1234"):
        import_capture(path, port=1234)


# -- bad input


def other(talk: int, client: bytes, broker: bytes = b"") -> list[Burst]:
    found = [Burst(talk, 500, True, client, (len(client),))]
    return [*found, Burst(talk, 501, False, broker, (len(broker),))] if broker else found


@pytest.mark.parametrize(
    ("burst", "message"),
    [
        (other(0, TLS, TLS), "no AMQP 1.0, AMQP 0-9-1 or AMQP 0-10 in it: 1 TCP connection: 1"),
        (other(0, WEB), "1 of another protocol"),
        (other(0, TLS) + other(1, WEB), "2 TCP connections: 1 of another protocol, 1 of TLS"),
    ],
)
def test_a_capture_without_amqp_that_is_read_says_what_it_holds(folder, burst, message):
    """One line names the protocols that are there instead."""
    tape, _ = record(burst)
    with pytest.raises(CaptureError, match=message) as caught:
        import_capture(tape.write(folder / "none.pcapng"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"no capture at all", b"\x00" * 100, b"\x7fELF" + bytes(90)]
)
def test_what_is_no_capture_is_refused(folder, content):
    """Empty files and files of other kinds give one line."""
    path = folder / "none.bin"
    path.write_bytes(content)
    with pytest.raises(CaptureError) as caught:
        import_capture(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(CaptureError, match="No such file"):
        import_capture(folder / "missing.pcapng")


def test_a_mixed_capture_gives_the_connections_it_reads_and_lists_the_others(folder):
    """Connections keep the number of their first packet; what nobody reads is named."""
    mixed = other(0, TLS, TLS) + other(1, WEB, WEB) + plan(3)[0:0]
    mixed += [dataclasses.replace(burst, talk=2) for burst in plan()]
    result = import_capture(record(mixed)[0].write(folder / "mixed.pcapng"))
    assert {row.connection for row in result.rows} == {"c3"}
    assert [c.protocol for c in result.report.connections] == ["tls", "other", "amqp-1.0"]
    first, second, _ = result.report.connections
    assert f"c2  {second.client} -> {second.broker}  other, not imported" in (result.report.text())
    told = result.report.captures[0].others
    assert told.startswith("mixed.pcapng: 2 connections not imported; TLS ")
    assert "; another protocol: c2 " in told
    assert f"{first.client} -> {first.broker}" in told


def test_a_header_outweighs_the_port_that_was_named(folder):
    """A connection that begins with the header of 0-10 is not read as 1.0 on any port."""
    mixed = other(1, QPID_HEADER, QPID_HEADER) + plan()
    path = record(mixed)[0].write(folder / "port.pcapng")
    result = import_capture(path, port=5672)
    assert result.rows == import_capture(path).rows
    told = [(row.connection, row.protocol) for row in result.rows if row.kind == "protocol-header"]
    assert set(told) == {("c1", "amqp-0-10"), ("c2", "amqp-1.0")}


class Methods:
    """A decoder of 0-9-1 as plain as can be: what came together is a method."""

    def __init__(self, first, second, *, known=False, redact=False):
        self.read = [0, 0]
        self.gaps = 0

    def restarted(self, first, second):
        return Methods(first, second)

    def feed(self, side, data):
        self.read[side] += len(data)
        return [DecodedFrame(self.read[side] - len(data), data, data, len(data), 0)]

    def gap(self, side, octets):
        self.read[side] += octets
        return [Unreadable(self.read[side] - octets, octets, "octets are lost", octets)]

    def finish(self, side):
        return []

    def position(self, side):
        return self.read[side]

    def kind(self, frame):
        return "protocol-header" if frame.raw[:4] == b"AMQP" else "connection.start"

    def author(self, frame):
        return None if frame.raw[:4] == b"AMQP" else "broker"

    def observe(self, side, frame, from_client):
        return FrameRecord(
            self.kind(frame), {"channel": side}, None, None, None, None, None, (), None, (),
            None, frame.size, frame.raw, None,
        )  # fmt: skip

    def lost(self, from_client):
        self.gaps += 1

    def explain(self, report, peers):
        report.unknown.append(f"{peers[0]} lost {self.gaps}")


def test_another_protocol_needs_no_more_than_an_entry(folder, monkeypatch):
    """Its connections become rows beside those of 1.0, in the column of their protocol."""
    monkeypatch.setitem(connection.DECODERS, "amqp-0-9-1", Methods)
    mixed = other(0, OLD_HEADER, OLD_START) + other(1, TLS)
    mixed += [dataclasses.replace(burst, talk=2) for burst in plan()]
    tape = record(mixed)[0]
    result = import_capture(tape.write(folder / "both.pcapng"))
    found = [row for row in result.rows if row.connection == "c1"]
    assert [(row.protocol, row.from_peer, row.kind) for row in found] == [
        ("amqp-0-9-1", "client", "protocol-header"), ("amqp-0-9-1", "broker", "connection.start"),
    ]  # fmt: skip
    assert [row.frame_091 for row in found] == [{"channel": 0}, {"channel": 1}]
    assert all(row.frame is None and row.ledger is None for row in found)
    assert {row.connection for row in result.rows} == {"c1", "c3"}
    assert "AMQP 0-9-1 and AMQP 1.0 on 2 connections of 3" in result.report.text()
    # Caught in the middle: each decoder is tried, and the first that finds a frame has it.
    old = [at for at, (_, data) in enumerate(tape.packets) if data.endswith(OLD_START)]
    result = import_capture(tape.write(folder / "both.pcapng", tape.packets[old[0] :]))
    assert {row.protocol for row in result.rows} >= {"amqp-0-9-1"}
    assert "it sends" in result.report.text() or "the other sends" in result.report.text()


def test_a_broker_that_answers_with_another_protocol_is_shown(folder):
    """A client's 1.0 header answered by 0-9-1 is a conversation of two headers."""
    burst = other(0, b"AMQP\x03\x01\x00\x00", OLD_HEADER)
    rows = import_capture(record(burst)[0].write(folder / "refused.pcapng")).rows
    assert [(row.from_peer, row.frame["minor"]) for row in rows] == [("client", 0), ("broker", 9)]


def test_amqp_over_tls_after_its_own_header_is_named(folder):
    """Protocol id 2 changes to TLS: the header is shown, the rest is encrypted."""
    burst = other(0, b"AMQP\x02\x01\x00\x00", b"AMQP\x02\x01\x00\x00")
    burst += [Burst(0, 600, True, TLS, (len(TLS),))]
    result = import_capture(record(burst)[0].write(folder / "upgrade.pcapng"))
    assert len(result.rows) == 2
    assert "it is tls, encrypted" in result.report.text()


@settings(derandomize=True, max_examples=40, deadline=None)
@given(cut=st.integers(1, 400))
def test_a_capture_cut_in_a_frame_gives_all_whole_frames_and_names_the_offset(folder, cut):
    """The stream may end anywhere; the report has the offset of the frame that is not whole."""
    said = Script().frames()
    octets = b"".join(encode_item(item) for side, item in said if not side)
    kept, at, whole = octets[:-cut], 0, 0
    for side, item in said:
        size = len(encode_item(item))
        if not side and at + size <= len(kept):
            at, whole = at + size, whole + 1
        elif not side:
            break
    tape, _ = record(other(0, encode_item(ProtocolHeader(3)), kept))
    result = import_capture(tape.write(folder / "cut.pcapng"))
    assert sum(row.from_peer == "broker" for row in frames(result.rows)) == whole
    problems = result.report.connections[0].problems
    if at < len(kept):
        assert f"stream offset {at}" in problems[0]
        assert "ends in the middle of a frame" in problems[0]
    else:
        assert problems == []


BROKEN = {
    "unknown descriptor": b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x99\x45",
    "wrong type": b"\x00\x00\x00\x0f\x02\x00\x00\x00\x00\x53\x17\xc0\x02\x01\x41",
    "huge size": b"\x7f\xff\xff\xff\x02\x00\x00\x00\x00\x53\x17\x45",
    "size below 8": b"\x00\x00\x00\x03\x02\x00\x00\x00\x00\x53\x17\x45",
    "doff below 2": b"\x00\x00\x00\x0c\x01\x00\x00\x00\x00\x53\x17\x45",
    "type unknown": b"\x00\x00\x00\x0c\x02\x09\x00\x00\x00\x53\x17\x45",
    "size too small for its frame": b"\x00\x00\x00\x0b\x02\x00\x00\x00\x00\x53\x17\x45",
    "size swallows what follows": b"\x00\x00\x01\x00\x02\x00\x00\x00\x00\x53\x17\x45",
}


@pytest.mark.parametrize("octets", BROKEN.values(), ids=BROKEN)
def test_an_undecodable_frame_is_named_and_the_rest_is_read(folder, octets):
    """A broken frame in the middle: reported with its offset, every frame around it is kept."""
    said = Script(rounds=4).frames()
    the_plan = bursts(said)
    at = next(n for n, b in enumerate(the_plan) if not b.from_client and n > 15)
    burst = the_plan[at]
    offset = sum(len(b.data) for b in the_plan[:at] if not b.from_client) + burst.sizes[0]
    data = burst.data[: burst.sizes[0]] + octets + burst.data[burst.sizes[0] :]
    the_plan[at] = dataclasses.replace(burst, data=data)
    result = import_capture(record(the_plan)[0].write(folder / "broken.pcapng"))
    assert len(frames(result.rows)) == len(said)
    problems = result.report.connections[0].problems
    assert f"from broker, stream offset {offset}:" in problems[0]
    assert any(row.event == "error" for row in result.rows)


def test_lying_sizes_do_not_take_memory(folder):
    """A frame that says it has 2 GB is not waited for."""
    said = [(True, ProtocolHeader()), (False, ProtocolHeader())]
    burst = bursts(said) + [
        Burst(0, 2_000 + n, True, b"\x7f\xff\xff\xff" * 200, (800,)) for n in range(300)
    ]
    result = import_capture(record(burst)[0].write(folder / "liar.pcapng"))
    assert len(frames(result.rows)) == 2
    assert len(result.report.connections[0].problems) < 10


@settings(derandomize=True, max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_octets_changed_at_random_never_crash_the_import(folder, seed):
    """Whatever stands in a file: rows, or one line."""
    chance = random.Random(seed)
    data = bytearray(record(plan(), cut=chance)[0].write(folder / "fuzz.pcapng").read_bytes())
    for _ in range(chance.randint(1, 40)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if chance.random() < 0.3:
        del data[chance.randrange(len(data)) :]
    path = folder / "fuzz.pcapng"
    path.write_bytes(data)
    try:
        result = import_capture(path)
    except CaptureError as error:
        refusal = str(error)
    else:
        refusal = ""
        assert [row.seq for row in result.rows] == list(range(len(result.rows)))
        assert result.report.text()
    assert "\n" not in refusal


# -- several captures, progress, redaction


def test_good_captures_are_kept_and_bad_ones_listed(folder):
    """Of many files the good ones are imported, each skipped one gets a line."""
    good = record(plan())[0].write(folder / "good.pcapng")
    bad = folder / "bad.pcapng"
    bad.write_bytes(b"bad")
    result = import_capture([good, bad, good])
    assert len(result.report.captures) == 1
    assert len(result.report.failures) == 2
    assert "bad.pcapng: not a capture" in result.report.failures[0]
    assert "given twice" in result.report.failures[1]
    assert "not imported: bad.pcapng" in result.report.text()


@pytest.mark.parametrize(
    ("limit", "most", "size"),
    [("BATCH_ROWS", 20, lambda table: table.num_rows),
     ("BATCH_OCTETS", 1_000, lambda table: sum(map(len, table["raw"].drop_null().to_pylist())))],
)  # fmt: skip
def test_no_more_than_a_batch_is_in_memory(folder, monkeypatch, limit, most, size):
    """A capture comes in tables, each as soon as it is full, and they are all its rows."""
    path = record(plan(3))[0].write(folder / "long.pcapng")
    whole = import_capture(path).rows
    monkeypatch.setattr(columns, limit, most)
    capture = Capture(path)
    tables = list(capture.tables())
    assert most <= max(map(size, tables)) < 2 * most
    assert len(tables) > 3
    assert [row for table in tables for row in files.from_table(table)] == whole
    assert capture.report.rows == len(whole)


def test_many_captures_go_to_one_file(folder, tmp_path):
    """What is bad takes no good one with it; but for --strict, which writes nothing then."""
    paths = [record(plan(n))[0].write(folder / f"{n}.pcapng") for n in (1, 2)]
    bad = folder / "bad.pcapng"
    bad.write_bytes(b"bad")
    alone = import_capture(paths).rows
    report = import_files([*paths, bad], tmp_path / "all.parquet")
    assert files.read(tmp_path / "all.parquet") == alone
    assert report.rows == len(alone)
    assert len(report.failures) == 1
    assert import_files([*paths, bad], tmp_path / "strict.parquet", strict=True).failures
    assert [path.name for path in tmp_path.glob("*.parquet*")] == ["all.parquet"]


def test_a_run_is_named_by_stem_and_content(folder):
    """The same octets under another folder are the same run; other octets are not."""
    one = record(plan())[0].write(folder / "name.pcapng")
    name = import_capture(one).rows[0].run
    assert name.startswith("name-")
    record(plan(rounds=2))[0].write(folder / "name.pcapng")
    assert import_capture(one).rows[0].run != name


def test_a_packed_capture_keeps_its_whole_name(folder):
    """Dots and all: what `.gz` says is not part of it."""
    path = record(plan())[0].write(folder / "rabbit-3.12_2024.05.01.pcapng")
    packed = folder / f"{path.name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for one in (path, packed):
        assert import_capture(one).rows[0].run.startswith("rabbit-3.12_2024.05.01")


@pytest.mark.parametrize("strict", [False, True])
def test_of_a_capture_that_cannot_be_read_to_its_end_nothing_is_kept(tmp_path, monkeypatch, strict):
    """What it gave until then is no trace of it."""
    whole, path = (
        record(plan(rounds=n))[0].write(tmp_path / name)
        for n, name in ((3, "a.pcapng"), (2, "b.pcapng"))
    )
    tables = Capture.tables

    def broken(self, progress=None):
        yield from tables(self, progress)
        if self.path == path:
            raise CaptureError("b.pcapng: it went away")

    monkeypatch.setattr(Capture, "tables", broken)
    with pytest.raises(CaptureError, match=r"b\.pcapng: it went away"):
        import_files([whole, path], tmp_path / "one.parquet", strict=strict)
    with pytest.raises(CaptureError, match=r"b\.pcapng: it went away"):
        import_capture([whole, path])
    assert not (tmp_path / "one.parquet").exists()


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_that_there_is_not_is_named(folder, port):
    path = record(plan())[0].write(folder / "port.pcapng")
    with pytest.raises(CaptureError, match=f"port {port}: legal: 1 to 65535"):
        import_capture(path, port=port)


def test_progress_tells_how_far_the_reading_is(folder):
    """The callback gets octets done of octets in all and ends at all."""
    seen = []
    path = record(plan(3))[0].write(folder / "progress.pcapng")
    import_capture(path, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_redacted_rows_hold_no_secret_and_keep_every_size_and_counter(folder):
    """SASL responses and bodies become zeros in fields, octets and JSON; all else is unchanged."""
    path = record(plan(), frame_by_frame=True)[0].write(folder / "secret.pcapng")
    plain, result = import_capture(path).rows, import_capture(path, redact=True)
    everything = repr(facts(result.rows)).encode() + b"".join(r.raw or b"" for r in result.rows)
    for secret in (BODY[5:], PASSWORD, b"pa55word", b"secret-body"):
        assert secret not in everything
        assert any(secret in (row.raw or b"") for row in plain)
    for row, original in zip(result.rows, plain, strict=True):
        assert len(row.raw) == len(original.raw)
        same = ("kind", "ledger", "unknown", "frame_bytes", "body_bytes", "brake", "t_us")
        assert all(getattr(row, name) == getattr(original, name) for name in same)
        if row.kind != "sasl-init":
            assert row.frame == original.frame
    assert "redacted" in result.report.text()


def test_every_part_of_a_message_is_redacted_whole(folder):
    """A last part that looks like a message of its own is no message of its own."""
    said = Script(rounds=1).frames()
    last = b"\x00\x53\x74\xc1\x09\x02\xa1\x01k\xa1\x03top\x00\x53\x75\xa0\x02hi"
    at = next(n for n, (_, item) in enumerate(said) if getattr(item, "payload", b""))
    for n, (payload, more) in enumerate([(b"\x00\x53\x75\xa0\x40", True), (last, None)]):
        part = Transfer(handle=0, delivery_id=90, delivery_tag=b"z", more=more)
        said.insert(at + n, (False, Frame(2, part, payload)))
    path = record(bursts(said))[0].write(folder / "parts.pcapng")
    assert any(b"top" in (row.raw or b"") for row in import_capture(path).rows)
    assert not any(b"top" in (row.raw or b"") for row in import_capture(path, redact=True).rows)


def test_redacted_frames_are_still_valid(folder):
    """What was zeroed decodes again: a message with a body of zeros of the same size."""
    from workbench.amqp10.frame import decode_frame
    from workbench.amqp10.messaging import decode_message

    path = record(plan(), frame_by_frame=True)[0].write(folder / "secret.pcapng")
    for row in import_capture(path, redact=True).rows:
        if row.kind not in ("protocol-header", "heartbeat"):
            frame = decode_frame(row.raw)
            if row.kind == "transfer" and row.from_peer == "client":
                assert decode_message(frame.payload)


def test_credit_of_2_to_the_32_and_far_away_counts_do_not_crash(folder):
    """Numbers that serial arithmetic cannot compare leave the counters unknown or floored."""
    said = Script(rounds=1).frames()
    wild = Flow(
        next_incoming_id=2**31, incoming_window=2**32 - 1, next_outgoing_id=5, outgoing_window=0,
        handle=7, delivery_count=2**31 - 3, link_credit=2**32 - 1,
    )  # fmt: skip
    said.insert(20, (True, Frame(5, wild)))
    rows = clean(folder, bursts(said))
    assert len(frames(rows)) == len(said)


def test_a_frame_larger_than_the_announced_maximum_is_still_shown(folder):
    """The peer's max-frame-size bounds what is believed, but not below 64 KiB."""
    said = Script(rounds=1).frames()
    said = [
        (s, Frame(0, Open(container_id="b", max_frame_size=512)))
        if isinstance(i, Frame) and isinstance(i.performative, Open) and s
        else (s, i)
        for s, i in said
    ]
    said.insert(30, (False, Frame(2, Transfer(handle=0, delivery_id=99), bytes(9_000))))
    assert any(row.body_bytes == 9_000 for row in clean(folder, bursts(said)))


def beside_a_proxy(tmp_path, *, broker="10.0.0.3", said=None, later_us=50):
    """A client's connection to a proxy, and the proxy's to a broker, in one capture."""
    packets = []
    for ends, again in (
        (("10.0.0.1", "10.0.0.2"), Script().frames()),
        (("10.0.0.2", broker), said or Script().frames()),
    ):
        tape = Tape()
        client, server = ends
        talk = TcpTalk(tape, Address(ip=client, port=40_000), Address(ip=server, port=5672))
        talk.open(0)
        for burst in bursts(again):
            talk.send(burst.t_us, burst.data, from_client=burst.from_client)
        packets += [(t_us + (later_us if packets else 0), data) for t_us, data in tape.packets]
    return Tape().write(tmp_path / "both.pcapng", sorted(packets, key=lambda pair: pair[0]))


def test_a_connection_on_both_sides_of_a_proxy_is_told_as_one_that_is_there_twice(tmp_path):
    """All that is said of it is said of both; sums over connections count it twice."""
    report = import_capture(beside_a_proxy(tmp_path)).report
    (capture,) = report.captures
    words = (
        "c1 and c2 carry the same octets, as on both sides of a proxy: what is told of both"
        " happened once"
    )
    assert capture.seen_twice == words
    assert words in report.text()
    assert words in look(tmp_path / "both.pcapng").about[0]


@pytest.mark.parametrize(
    "other",
    [
        {"broker": "10.0.0.2"}, {"said": Script(name="other").frames()},
        {"said": Script(rounds=2).frames()}, {"later_us": 10_000_000},
    ],
)  # fmt: skip
def test_connections_that_are_alike_are_not_taken_for_one(tmp_path, other):
    """Two clients of one broker, another link's name, other frames, one after the other."""
    (capture,) = import_capture(beside_a_proxy(tmp_path, **other)).report.captures
    assert len(capture.imported) == 2
    assert capture.seen_twice == ""
