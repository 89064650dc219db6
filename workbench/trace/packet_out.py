"""Making packets and pcapng blocks: what `pcapng_out` writes, and what tests build captures of.

One section, one Ethernet interface, microseconds. Packets are Ethernet, IPv4 and TCP with right
lengths and checksums, so that an analyser has nothing to complain about.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import BinaryIO

from workbench import serial

__all__ = [
    "ACK",
    "FIN",
    "MAX_PAYLOAD",
    "RST",
    "SYN",
    "Address",
    "PcapngWriter",
    "TcpTalk",
    "tcp_packet",
]

MAX_PAYLOAD = 60_000
"""Largest TCP payload of one packet; IPv4's total length has 16 bits."""

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
_WINDOW = 65_535
_TTL = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One end of a TCP connection.

    Attributes:
        ip: dotted IPv4 address.
        port: TCP port.
    """

    ip: str
    port: int

    @property
    def octets(self) -> bytes:
        """The four octets of the IP address."""
        return bytes(int(part) for part in self.ip.split("."))


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    return ~total & 0xFFFF


def tcp_packet(
    source: Address, destination: Address, seq: int, ack: int, flags: int, payload: bytes = b""
) -> bytes:
    """An Ethernet frame that carries one TCP segment over IPv4."""
    header = struct.pack(
        ">HHIIBBHHH", source.port, destination.port, seq, ack, 5 << 4, flags, _WINDOW, 0, 0
    )
    ends = source.octets + destination.octets
    pseudo = ends + struct.pack(">BBH", 0, 6, len(header) + len(payload))
    tcp_sum = struct.pack(">H", _checksum(pseudo + header + payload))
    segment = header[:16] + tcp_sum + header[18:] + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0x4000, _TTL, 6, 0) + ends
    ip = ip[:10] + struct.pack(">H", _checksum(ip)) + ip[12:]
    # Locally administered hardware addresses, made of the IP ones.
    ethernet = b"\x02\0" + destination.octets + b"\x02\0" + source.octets + b"\x08\0"
    return ethernet + ip + segment


class PcapngWriter:
    """Writes packets to a binary stream as pcapng."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
        self._block(1, struct.pack("<HHI", 1, 0, 0))

    def packet(self, t_us: int, data: bytes) -> None:
        """Adds one packet at ``t_us`` microseconds since the Unix epoch."""
        padding = bytes(-len(data) % 4)
        head = struct.pack("<IIIII", 0, t_us >> 32, t_us & 0xFFFF_FFFF, len(data), len(data))
        self._block(6, head + data + padding)

    def _block(self, kind: int, body: bytes) -> None:
        size = len(body) + 12
        self._stream.write(struct.pack("<II", kind, size) + body + struct.pack("<I", size))


class TcpTalk:
    """One TCP connection to be written: keeps both ends' sequence numbers.

    Args:
        writer: where the packets go.
        client: the end that opens the connection.
        broker: the end that accepts it.
        initial: initial sequence numbers of client and broker.
    """

    def __init__(
        self,
        writer: PcapngWriter,
        client: Address,
        broker: Address,
        initial: tuple[int, int] = (1_000, 5_000),
    ) -> None:
        self._writer = writer
        self._ends = (client, broker)
        self._next = list(initial)

    def open(self, t_us: int) -> None:
        """The three-way handshake, all at one time."""
        self.segment(t_us, from_client=True, flags=SYN)
        self.segment(t_us, from_client=False, flags=SYN | ACK)
        self.segment(t_us, from_client=True)

    def send(self, t_us: int, data: bytes, *, from_client: bool) -> None:
        """Octets of one end, in as few segments as fit."""
        for start in range(0, len(data), MAX_PAYLOAD):
            piece = data[start : start + MAX_PAYLOAD]
            self.segment(t_us, from_client=from_client, flags=ACK | PSH, payload=piece)

    def skip(self, octets: int, *, from_client: bool) -> None:
        """So many octets of one end are not in the capture; what follows stands behind them."""
        me = 0 if from_client else 1
        self._next[me] = serial.add(self._next[me], octets)

    def close(self, t_us: int) -> None:
        """FIN of both ends."""
        self.segment(t_us, from_client=True, flags=FIN | ACK)
        self.segment(t_us, from_client=False, flags=FIN | ACK)
        self.segment(t_us, from_client=True)

    def segment(
        self, t_us: int, *, from_client: bool, flags: int = ACK, payload: bytes = b""
    ) -> None:
        """One segment; the sender's sequence number moves on."""
        me, peer = (0, 1) if from_client else (1, 0)
        ack = self._next[peer] if flags & ACK else 0
        self._writer.packet(
            t_us,
            tcp_packet(self._ends[me], self._ends[peer], self._next[me], ack, flags, payload),
        )
        length = len(payload) + (1 if flags & (SYN | FIN) else 0)
        self._next[me] = serial.add(self._next[me], length)
