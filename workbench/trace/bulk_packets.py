"""Many packets at once, as columns: where they are in the file, and what their headers say.

What is read here are TCP segments over IPv4 or IPv6 in their usual form, none of them cut short.
All else (a SYN, an IP option, another IP version than the first packet's) is only marked: `pcap`
and `packet` read it one by one. A test holds both ways against each other.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .packet import ACK, FIN, RST, SYN
from .pcap import MAX_BLOCK, CaptureReader, Likeness, Packet

__all__ = ["PADDING", "Packets", "Segments", "packets_ahead", "segments"]

AHEAD = 4 << 20
"""Octets of the file that are looked at."""
PADDING = 256
"""Zero octets behind them, so that a header that is cut short can be read without a check."""

_ENHANCED_PACKET = 6
_BLOCK_HEAD, _RECORD_HEAD = 28, 16
_LINK: dict[int, tuple[int, int | None]] = {
    1: (14, 12), 113: (16, 14), 276: (20, 0), 0: (4, None), 108: (4, None),
    12: (0, None), 14: (0, None), 101: (0, None), 228: (0, None), 229: (0, None),
}  # fmt: skip
"""By link type: octets of the link header, and where in it the kind of what follows is told."""
_IPV4, _IPV6, _TCP = 0x0800, 0x86DD, 6


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets that come next in a file, of which none is read yet.

    Attributes:
        octets: of the file from here on, and `PADDING`.
        data: the same as `bytes`.
        ends: where in them each packet's block or record ends.
        start: where its octets begin.
        size: how many the capture kept.
        missing: how many it did not keep.
        t_us: microseconds since the Unix epoch.
        linktype: of all of them.
    """

    octets: Any
    data: bytes
    ends: Any
    start: Any
    size: Any
    missing: Any
    t_us: Any
    linktype: int

    @property
    def count(self) -> int:
        """How many."""
        return len(self.ends)

    def packet(self, place: int, number: int) -> Packet:
        """One of them by itself.

        Args:
            place: which.
            number: its number in the file.
        """
        start, size = int(self.start[place]), int(self.size[place])
        data = self.data[start : start + size]
        return Packet(number, int(self.t_us[place]), self.linktype, data, int(self.missing[place]))


class Segments(NamedTuple):
    """The TCP segments in packets.

    Attributes:
        plain: which packets have one that can be read here; of the others nothing is told.
        width: octets of each key.
        keys: of each the addresses of source and destination, then their ports.
        seq: sequence number of the first octet of payload, uint32.
        ack: acknowledgement number, uint32.
        payload: where the payload begins.
        size: its octets.
    """

    plain: Any
    width: int
    keys: bytes
    seq: Any
    ack: Any
    payload: Any
    size: Any


def packets_ahead(reader: CaptureReader) -> Packets | None:
    """What can be read at once; None if the next block or record is none of this kind.

    Args:
        reader: between two packets of its iteration.
    """
    like = reader.likeness()
    if like is None or like.linktype not in _LINK:
        return None
    if like.blocks and reader.ahead(4) != struct.pack(like.order + "I", _ENHANCED_PACKET):
        return None
    data = reader.ahead(AHEAD)
    starts, end = _blocks(data, like) if like.blocks else _records(data, like)
    if not starts:
        return None
    octets = np.frombuffer(data + bytes(PADDING), np.uint8)
    at = np.array(starts, np.int64)
    ends = np.append(at[1:], end)
    if like.blocks:
        number, high, low, kept, length = _numbers(octets, at + 8, 5, like.order)
        ticks = (high << 32) | low
        t_us = ticks // like.divisor + like.offset_us
        good = (number < reader.interfaces) & (kept <= ends - at - 32) & (high < 1 << 31)
        start = at + _BLOCK_HEAD
    else:
        seconds, fraction, kept, length = _numbers(octets, at, 4, like.order)
        t_us = seconds * 1_000_000 + fraction // like.divisor
        good = np.ones(len(at), bool)
        start = at + _RECORD_HEAD
    count = len(at) if good.all() else int(np.argmin(good))
    if not count:
        return None
    missing = np.maximum(length - kept, 0)
    return Packets(
        octets, data, ends[:count], start[:count], kept[:count], missing[:count], t_us[:count],
        like.linktype,
    )  # fmt: skip


def _blocks(data: bytes, like: Likeness) -> tuple[list[int], int]:
    """Where packet blocks begin, one behind the other; and where the last of them ends."""
    head = struct.Struct(like.order + "II").unpack_from
    starts: list[int] = []
    at, last = 0, len(data) - 32
    while at <= last:
        kind, size = head(data, at)
        if kind != _ENHANCED_PACKET or not 32 <= size <= MAX_BLOCK or at + size > len(data):
            break
        starts.append(at)
        at += size
    return starts, at


def _records(data: bytes, like: Likeness) -> tuple[list[int], int]:
    kept_of = struct.Struct(like.order + "I").unpack_from
    starts: list[int] = []
    at, last = 0, len(data) - _RECORD_HEAD
    while at <= last:
        (kept,) = kept_of(data, at + 8)
        if kept > MAX_BLOCK or at + _RECORD_HEAD + kept > len(data):
            break
        starts.append(at)
        at += _RECORD_HEAD + kept
    return starts, at


def _numbers(octets: Any, at: Any, count: int, order: str) -> list[Any]:
    """So many numbers of 32 bits that stand behind each other, at each place."""
    found = stretches(octets, at, 4 * count)
    return list(found.view(order + "u4").astype(np.int64).T)


def stretches(octets: Any, at: Any, size: int) -> Any:
    """So many octets from each place on: one row for each."""
    return np.lib.stride_tricks.sliding_window_view(octets, size)[at]


def u16(octets: Any, at: Any) -> Any:
    """A number of 16 bits, most significant octet first, at each place."""
    return octets[at].astype(np.int64) << 8 | octets[at + 1]


def u32(octets: Any, at: Any) -> Any:
    """A number of 32 bits, most significant octet first, at each place, as uint32."""
    return stretches(octets, at, 4).view(">u4")[:, 0].astype(np.uint32)


def segments(packets: Packets, first: int, last: int) -> Segments:
    """The TCP segments of some packets.

    Args:
        packets: which.
        first: the first of them.
        last: behind the last of them.
    """
    octets = packets.octets
    start, size = packets.start[first:last], packets.size[first:last]
    head, kind_at = _LINK[packets.linktype]
    ip = start + head
    six = bool(octets[ip[0]] >> 4 == 6)  # the first one's kind is taken as that of all
    if six:
        plain = octets[ip] >> 4 == 6
        plain &= octets[ip + 6] == _TCP
        tcp, addresses, width = ip + 40, 8, 36
        length = u16(octets, ip + 4)
        end = tcp + length
        plain &= length > 0
    else:
        plain = octets[ip] == 0x45
        plain &= (octets[ip + 9] == _TCP) & (u16(octets, ip + 6) & 0x3FFF == 0)
        tcp, addresses, width = ip + 20, 12, 12
        length = u16(octets, ip + 2)
        end = ip + length
        plain &= length > 0
    if kind_at is not None:
        plain &= u16(octets, start + kind_at) == (_IPV6 if six else _IPV4)
    plain &= end <= start + size
    header = (octets[tcp + 12] >> 4).astype(np.int64) * 4
    payload = tcp + header
    plain &= (header >= 20) & (payload <= end)
    plain &= octets[tcp + 13] & (SYN | FIN | RST | ACK) == ACK
    # Addresses and ports stand side by side.
    keys = stretches(octets, ip + addresses, width).tobytes()
    return Segments(
        plain, width, keys, u32(octets, tcp + 4), u32(octets, tcp + 8), payload, end - payload
    )
