"""Capture files: every variant of the two formats gives the same packets; damage is named."""

import gzip
import io
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from workbench.capture.importer import import_capture
from workbench.capture.packet import Segment, segment_of
from workbench.capture.pcap import CaptureError, CaptureReader, Packet
from workbench.cli.looking import look
from workbench.trace.packet_out import ACK, Address, PcapngWriter, tcp_packet

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
SAMPLE = CAPTURES / "rmq43_b_consumer_credit.pcapng"
A = Address(ip="10.0.0.1", port=40_000)
B = Address(ip="10.0.0.2", port=5672)
FRAME = tcp_packet(A, B, 7, 9, ACK, b"hello")


def read(data: bytes) -> tuple[list[Packet], list[str]]:
    reader = CaptureReader(io.BytesIO(data), "x")
    return list(reader), reader.problems


def pcapng(*packets: tuple[int, bytes]) -> bytes:
    stream = io.BytesIO()
    writer = PcapngWriter(stream)
    for t_us, data in packets:
        writer.packet(t_us, data)
    return stream.getvalue()


def pcap(order: str, magic: int, unit: int, *packets: tuple[int, bytes]) -> bytes:
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
    for t_us, data in packets:
        seconds, fraction = divmod(t_us, 1_000_000)
        out += struct.pack(order + "IIII", seconds, fraction * unit, len(data), len(data)) + data
    return out


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(order: str = "<", options: bytes = b"", linktype: int = 1, snaplen: int = 0) -> bytes:
    return block(1, struct.pack(order + "HHI", linktype, 0, snaplen) + options, order)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit"), [(0xA1B2C3D4, 1), (0xA1B23C4D, 1000)])
def test_pcap_is_read_in_both_byte_orders_and_both_resolutions(order, magic, unit):
    """The magic number tells byte order and whether fractions are micro- or nanoseconds."""
    packets, problems = read(pcap(order, magic, unit, (1_000_007, FRAME), (2_000_000, b"x" * 60)))
    assert [(p.number, p.t_us, p.linktype) for p in packets] == [
        (1, 1_000_007, 1),
        (2, 2_000_000, 1),
    ]
    assert packets[0].data == FRAME
    assert problems == []


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("resolution", "ticks"),
    [(b"", 1_500_000), (b"\x09", 1_500_000_000), (b"\x03", 1_500), (b"\x8a", 1536)],
)
def test_pcapng_times_follow_the_interface_resolution(order, resolution, ticks):
    """if_tsresol is a power of ten, or of two with its top bit set; without it microseconds."""
    options = b""
    if resolution:
        options = struct.pack(order + "HH", 9, 1) + resolution + bytes(3) + bytes(4)
    body = struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(FRAME), len(FRAME))
    data = section(order) + interface(order, options) + block(6, body + FRAME, order)
    packets, problems = read(data)
    assert [p.t_us for p in packets] == [1_500_000]
    assert packets[0].data == FRAME
    assert problems == []


def test_pcapng_offset_option_moves_every_time_of_its_interface():
    """if_tsoffset is in seconds and is added to every timestamp of the interface."""
    options = struct.pack("<HHq", 14, 8, 100)
    body = struct.pack("<IIIII", 0, 0, 5, len(FRAME), len(FRAME))
    packets, _ = read(section() + interface(options=options) + block(6, body + FRAME))
    assert packets[0].t_us == 100_000_005


def test_pcapng_packets_of_several_interfaces_and_sections_keep_their_own_linktype():
    """Interfaces are numbered anew in each section, which may have another byte order."""
    head = struct.pack("<IIIII", 1, 0, 1, 4, 4)
    tail = struct.pack(">IIIII", 0, 0, 2, 4, 4)
    data = section() + interface() + interface(linktype=101) + block(6, head + b"abcd")
    data += section(">") + interface(">", linktype=113) + block(6, tail + b"efgh", ">")
    packets, problems = read(data)
    assert [(p.number, p.linktype, p.data) for p in packets] == [
        (1, 101, b"abcd"),
        (2, 113, b"efgh"),
    ]
    assert problems == []


def test_old_and_simple_packet_blocks_are_read_and_missing_times_are_told():
    """The obsolete packet block has a time; the simple packet block has none."""
    old = struct.pack("<HHIIII", 0, 0, 0, 77, 4, 4) + b"abcd"
    simple = struct.pack("<I", 10) + b"0123456789"
    data = section() + interface(snaplen=6) + block(2, old) + block(3, simple)
    packets, problems = read(data)
    assert [(p.t_us, p.data, p.missing) for p in packets] == [(77, b"abcd", 0), (77, b"012345", 4)]
    assert problems == [
        "x: 1 simple packet blocks carry no time; each got that of the packet before it"
    ]


@pytest.mark.parametrize(("resolution", "offset_s"), [(0, 0), (6, -1), (6, 2**62)])
def test_a_time_that_no_trace_can_hold_is_told_and_replaced(resolution, offset_s):
    """Whole seconds, an offset that leads before 1970, and one that leads out of 64 bits."""
    options = struct.pack("<HHB3xHHq", 9, 1, resolution, 14, 8, offset_s)
    ticks = 2**46 if resolution == 0 else 5
    wrong = struct.pack("<IIIII", 1, ticks >> 32, ticks & 0xFFFFFFFF, 4, 4) + b"abcd"
    right = struct.pack("<IIIII", 0, 0, 7, 4, 4) + b"abcd"
    stopped = struct.pack("<IIIHHII", 1, 0, 0, 3, 8, ticks >> 32, ticks & 0xFFFFFFFF)
    data = section() + interface() + interface(options=options)
    reader = CaptureReader(io.BytesIO(data + block(6, right) + block(6, wrong) + block(5, stopped)))
    assert [packet.t_us for packet in reader] == [7, 7]
    assert reader.ended_us == 0
    assert reader.problems == [
        "capture: 1 packets carry a time before 1970, or too late for 64 bits;"
        " each got that of the packet before it"
    ]


def test_unknown_blocks_are_passed_over():
    """Name resolution, statistics and private blocks carry no packets."""
    data = section() + interface() + block(4, bytes(16)) + block(0x80000001, b"secret..")
    body = struct.pack("<IIIII", 0, 0, 1, 4, 4)
    packets, problems = read(data + block(6, body + b"abcd"))
    assert len(packets) == 1
    assert problems == []


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_cut_file_gives_all_whole_packets_and_names_the_cut(kind):
    """Every whole packet before the cut is kept and the message tells the offset."""
    both = ((1, FRAME), (2, FRAME))
    data = pcapng(*both) if kind == "pcapng" else pcap("<", 0xA1B2C3D4, 1, *both)
    packets, problems = read(data[:-7])
    assert len(packets) == 1
    assert len(problems) == 1
    assert "ends in the middle of" in problems[0]
    assert "offset" in problems[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x: the file is empty"),
        ("[0x1]:0 -> @open".encode("utf-16"), "a text in UTF-16, as Windows PowerShell"),
        (b"PK\x03\x04zip", "not a capture: it begins with 50 4b 03 04"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "the pcap header is cut short"),
        (b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00ABCD" + bytes(16), "without its byte-order magic"),
        (b"\x0a\x0d", "not a capture"),
    ],
)
def test_what_is_no_capture_is_refused_in_one_line(data, message):
    """The message is one line and says what the file begins with."""
    with pytest.raises(CaptureError, match=message) as caught:
        read(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("size", [0, 8, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_lying_block_length_ends_the_file_without_taking_memory(size):
    """A length that cannot be is not believed; what came before it is kept."""
    packets, problems = read(pcapng((1, FRAME)) + struct.pack("<II", 6, size) + bytes(40))
    assert len(packets) == 1
    assert len(problems) == 1
    assert f"{size} octets long" in problems[0]


def test_a_lying_packet_length_inside_a_block_leaves_out_that_packet_alone():
    """A captured length beyond the block is that packet's problem."""
    body = struct.pack("<IIIII", 0, 0, 1, 4000, 4000) + b"abcd"
    packets, problems = read(section() + interface() + block(6, body) + pcapng((5, FRAME)))
    assert [p.t_us for p in packets] == [5]
    assert "says it keeps 4000 octets" in problems[0]


def test_packets_of_an_interface_that_is_not_described_are_left_out():
    """Without its interface a packet has neither link type nor clock; one line tells of all."""
    body = struct.pack("<IIIII", 3, 0, 1, 4, 4) + b"abcd"
    packets, problems = read(section() + interface() + 500 * block(6, body))
    assert packets == []
    assert problems == ["x: 500 packets left out: the file has not described interface 3 by then"]


@pytest.mark.parametrize("order", ["<", ">"])
def test_captures_that_were_put_together_are_read_all(order):
    """`cat` leaves the header of the second one in the middle."""
    raw_ip = pcap(order, 0xA1B2C3D4, 1, (9, b"y" * 60))[:20] + struct.pack(order + "I", 101)
    both = pcap(order, 0xA1B2C3D4, 1, (7, FRAME)) + raw_ip + pcap(order, 0, 1, (9, b"y" * 60))[24:]
    packets, problems = read(both)
    assert [(p.number, p.t_us, p.linktype) for p in packets] == [(1, 7, 1), (2, 9, 101)]
    assert problems == []


def test_a_length_of_0_is_that_of_the_wire():
    """A card that cuts segments itself leaves it; the capture may have the beginning alone."""
    cut = segment_of(Packet(1, 0, 1, FRAME[:16] + b"\0\0" + FRAME[18:-2], 2))
    assert isinstance(cut, Segment)
    assert (cut.payload, cut.missing) == (b"hel", 2)


def test_gzip_is_read_and_its_damage_is_named():
    """A compressed capture is read as it comes; a cut one keeps its whole packets."""
    data = pcapng(*((n, FRAME) for n in range(2000)))
    packed = gzip.compress(data)
    assert len(read(packed)[0]) == 2000
    packets, problems = read(packed[: len(packed) // 2])
    assert len(packets) < 2000
    assert any("compressed data is damaged" in problem for problem in problems)


@pytest.mark.skipif(shutil.which("editcap") is None, reason="editcap (Wireshark) is not installed")
@pytest.mark.parametrize("kind", ["pcap", "nsecpcap", "pcapng"])
def test_every_format_that_editcap_writes_gives_the_packets_of_the_original(kind, tmp_path):
    """A file rewritten by Wireshark's own tool has the same packets at the same microseconds."""
    out = tmp_path / "out"
    subprocess.run(["editcap", "-F", kind, SAMPLE, out], check=True, capture_output=True)
    original, _ = read(SAMPLE.read_bytes())
    copy, problems = read(out.read_bytes())
    assert [(p.t_us, p.data) for p in copy] == [(p.t_us, p.data) for p in original]
    assert problems == []


IP_AND_TCP = FRAME[14:]


@pytest.mark.parametrize(
    ("linktype", "data"),
    [
        (1, FRAME),
        (1, FRAME[:12] + b"\x81\x00\x00\x05\x88\xa8\x00\x06\x08\x00" + IP_AND_TCP),
        (1, FRAME + bytes(6)),
        (113, bytes(14) + b"\x08\x00" + IP_AND_TCP),
        (276, b"\x08\x00" + bytes(18) + IP_AND_TCP),
        (113, bytes(14) + b"\x81\x00\x00\x05\x08\x00" + IP_AND_TCP),
        (276, b"\x81\x00" + bytes(18) + b"\x00\x05\x08\x00" + IP_AND_TCP),
        (101, IP_AND_TCP),
        (228, IP_AND_TCP),
        (0, b"\x02\x00\x00\x00" + IP_AND_TCP),
        (108, b"\x00\x00\x00\x02" + IP_AND_TCP),
    ],
)
def test_the_segment_is_found_under_every_link_layer(linktype, data):
    """Ethernet and cooked (v1, v2), with tags and without, raw IP and loopback carry a segment."""
    segment = segment_of(Packet(1, 0, linktype, data, 0))
    assert (segment.seq, segment.ack, segment.payload, segment.missing) == (7, 9, b"hello", 0)
    assert segment.source == bytes([10, 0, 0, 1]) + (40_000).to_bytes(2, "big")


def carried(protocol: int, within: bytes) -> bytes:
    """An IPv4 packet from one machine to another, of any protocol."""
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(within), 0, 0, 64, protocol, 0)
    return head + bytes([192, 168, 0, 1, 192, 168, 0, 2]) + within


def datagram(port: int, within: bytes) -> bytes:
    return struct.pack(">HHHH", 50_000, port, 8 + len(within), 0) + within


TUNNELS = {
    "IP in IP": carried(4, IP_AND_TCP),
    "GRE": carried(47, b"\x00\x00\x08\x00" + IP_AND_TCP),
    "GRE, bridged, with checksum, key and number": carried(
        47, b"\xb0\x00\x65\x58" + bytes(12) + FRAME
    ),
    "VXLAN": carried(17, datagram(4789, b"\x08" + bytes(7) + FRAME)),
    "VXLAN at Linux's own port": carried(17, datagram(8472, b"\x08" + bytes(7) + FRAME)),
    "Geneve with an option": carried(
        17, datagram(6081, b"\x02\x00\x65\x58" + bytes(4) + bytes(8) + FRAME)
    ),
}


@pytest.mark.parametrize("data", TUNNELS.values(), ids=TUNNELS)
def test_the_segment_is_found_in_a_tunnel(data):
    """Nodes of a cluster send each other their pods' packets this way; the ends are the pods."""
    segment = segment_of(Packet(1, 0, 101, data, 0))
    assert segment == segment_of(Packet(1, 0, 1, FRAME, 0))
    assert segment_of(Packet(1, 0, 101, carried(4, data), 0)) is None
    for size in range(len(data)):
        cut = segment_of(Packet(1, 0, 101, data[:size], len(data) - size))
        assert not isinstance(cut, Segment) or cut.missing == len(data) - size


@pytest.mark.parametrize("data", TUNNELS.values(), ids=TUNNELS)
def test_a_later_fragment_is_not_taken_for_a_tunnel(data):
    """It begins in the middle of what was sent, whatever stands there."""
    for offset in (1, 0x1FFF):
        later = data[:6] + offset.to_bytes(2, "big") + data[8:]
        assert segment_of(Packet(1, 0, 101, later, 0)) is None


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark (Wireshark) is not installed")
@pytest.mark.parametrize("data", TUNNELS.values(), ids=TUNNELS)
def test_wireshark_finds_the_same_segment_in_a_tunnel(data, tmp_path):
    """Ports and payload, of the packet that the tunnel carries."""
    file = tmp_path / "tunnel.pcap"
    file.write_bytes(pcap("<", 0xA1B2C3D4, 1, (0, FRAME[:14] + data)))
    fields = [word for name in ("tcp.srcport", "tcp.payload") for word in ("-e", name)]
    vxlan = ["-d", "udp.port==8472,vxlan"]
    told = subprocess.run(
        ["tshark", "-r", file, *vxlan, "-T", "fields", *fields],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert told.split() == ["40000", b"hello".hex()]


def ipv6(*extensions: bytes, kind: int = 6) -> bytes:
    """An IPv6 packet: each extension's first octet names what follows it."""
    tcp = IP_AND_TCP[20:]
    body = b"".join(extensions) + tcp
    return (
        struct.pack(">IHBB", 6 << 28, len(body), kind, 64)
        + bytes(15)
        + b"\1"
        + bytes(15)
        + b"\2"
        + body
    )


@pytest.mark.parametrize(
    "data",
    [
        ipv6(),
        ipv6(bytes([60]) + bytes(7), bytes([6, 1]) + bytes(14), kind=0),
        ipv6(bytes([6, 0, 0, 0]) + bytes(4), kind=44),
    ],
)
def test_the_segment_is_found_behind_ipv6_extension_headers(data):
    """Hop-by-hop, destination options and an atomic fragment stand before the TCP header."""
    segment = segment_of(Packet(1, 0, 101, data, 0))
    assert segment.payload == b"hello"
    assert len(segment.source) == 18


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (IP_AND_TCP[:6] + b"\x20\x00" + IP_AND_TCP[8:], "IPv4 fragment"),
        (ipv6(bytes([6, 0, 0, 9]) + bytes(4), kind=44), "IPv6 fragment"),
        (IP_AND_TCP[:30], "cut inside the TCP header"),
        (IP_AND_TCP[:10], "cut inside the IP header"),
    ],
)
def test_what_cannot_be_used_is_named(data, reason):
    """Fragments and headers cut by the snapshot length are counted by reason."""
    assert segment_of(Packet(1, 0, 101, data, 0)) == reason


def test_octets_cut_by_the_snapshot_length_are_counted_as_missing():
    """The IP header tells how long the payload was on the wire."""
    segment = segment_of(Packet(1, 0, 101, IP_AND_TCP[:-3], 3))
    assert (segment.payload, segment.missing) == (b"he", 3)


def test_other_traffic_is_no_segment():
    """ARP and UDP are passed over without a word."""
    assert segment_of(Packet(1, 0, 1, bytes(12) + b"\x08\x06" + bytes(28), 0)) is None
    udp = IP_AND_TCP[:9] + b"\x11" + IP_AND_TCP[10:]
    assert segment_of(Packet(1, 0, 101, udp, 0)) is None


@pytest.mark.parametrize("per_second", [1_000_000, 1_000_000_000])
def test_when_a_capture_was_stopped_is_read_in_either_unit(per_second):
    """The draft counts in the interface's ticks, here nanoseconds; dumpcap 4.0 in microseconds."""
    stopped_us = 0x0006_615A_B212_9826
    data = (Path(__file__).parent / "data" / "stalled_to_the_end.pcapng").read_bytes()
    ticks = stopped_us * per_second // 1_000_000
    told = [struct.pack("<II", one >> 32, one % 2**32) for one in (stopped_us, ticks)]
    assert data.count(told[0]) == 1
    reader = CaptureReader(io.BytesIO(data.replace(*told)))
    assert [reader.ended_us, len(list(reader)), reader.ended_us] == [0, 41, stopped_us]


def test_a_capture_that_was_merged_says_that_its_parts_may_have_ended_sooner(tmp_path):
    """Mergecap leaves out when each part was stopped; the head names who wrote the file."""
    data = (Path(__file__).parent / "data" / "stalled_to_the_end.pcapng").read_bytes()
    size = struct.unpack_from("<I", data, 4)[0]
    writer = b"Mergecap (Wireshark) 4.0.17\0"
    head = b"\x0a\x0d\x0d\x0a" + struct.pack("<I", 28 + 4 + 28 + 4)
    head += data[8:24] + struct.pack("<HH", 4, 27) + writer + bytes(4) + head[4:]
    merged, alone = tmp_path / "merged.pcapng", tmp_path / "alone.pcapng"
    merged.write_bytes(head + data[size:])
    alone.write_bytes(data)
    words = "a wait that lasts to its end is known only up to the end of its own capture"
    assert words in import_capture(merged).report.text()
    assert words in look(merged).about[0]
    assert words not in import_capture(alone).report.text()
