"""Capture files as a stream of packets: classic pcap and pcapng.

Both formats are read in both byte orders, with any timestamp resolution, and no more than a few
megabytes are held. A packet is cut where the capture cut it (``missing`` octets were on the wire
but not kept). A damaged file ends the stream with a line in ``problems``; only a file that is no
capture at all raises.

No library does this here: the two that read pcapng in Python, dpkt 1.9.8 and python-pcapng 2.1.1,
both had their last release in August 2022, and neither reads a file that ends in mid-block without
an exception that loses the reason. The part of the formats that a TCP capture uses is small.

Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from msgspec import Struct

from workbench.notebook import PlainError
from workbench.trace.words import counted

__all__ = ["CaptureError", "CaptureReader", "Packet"]

MAX_BLOCK = 16 * 1024 * 1024
"""Largest block believed, in octets: 64 times the largest snapshot length of tcpdump."""
_LEAST_BLOCK = 12
"""Of pcapng: its type, and its length twice."""

_PCAP_MAGIC = {
    b"\xa1\xb2\xc3\xd4": (">", 1),
    b"\xd4\xc3\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1000),
}
_SECTION = b"\x0a\x0d\x0d\x0a"
_SECTION_TYPE = int.from_bytes(_SECTION, "big")
_BYTE_ORDER = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _STATISTICS, _ENHANCED_PACKET = 1, 2, 3, 5, 6
_BEFORE_DATA = 20
"""Octets of a block's body before those of its packet, whether the block is old or enhanced."""
_OPTION_END, _OPTION_ENDTIME, _OPTION_WRITER, _OPTION_TSRESOL, _OPTION_TSOFFSET = 0, 3, 4, 9, 14
_MERGER = b"Mergecap"
_MICROSECONDS = 1_000_000
_TIMES = range(1 << 63)
"""Microseconds since the epoch that a trace can hold, and with them the time between any two."""
_STEP_OCTETS = 1 << 20


class CaptureError(PlainError, ValueError):
    """A capture that cannot be used; the text is one line that says what it holds instead."""


class Packet(Struct, frozen=True, gc=False):
    """One captured packet.

    Attributes:
        number: from 1, in the order of the file (Wireshark's frame number).
        t_us: microseconds since the Unix epoch, rounded down.
        linktype: LINKTYPE_* of the interface it was captured on.
        data: the octets that were kept.
        missing: octets that were on the wire and were not kept (snapshot length).
    """

    number: int
    t_us: int
    linktype: int
    data: bytes
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interface:
    linktype: int
    snaplen: int
    ticks_per_second: int
    offset_us: int

    def time_us(self, ticks: int) -> int:
        """Microseconds since the Unix epoch, rounded down."""
        scale = self.ticks_per_second
        return (
            ticks if scale == _MICROSECONDS else ticks * _MICROSECONDS // scale
        ) + self.offset_us


class CaptureReader:
    """Reads one capture; iterate over it once.

    Args:
        stream: a binary stream at its start that can seek; gzip is recognised.
        name: how messages call the file.
        grows: the file is still being written: where it ends for now, None stands for a packet.

    Attributes:
        problems: one line for each thing that was wrong with the file, filled while reading.
        ended_us: when the capturing was stopped, microseconds since the Unix epoch, by what the
            file says of its interfaces, as dumpcap and Wireshark write it; 0 where it says nothing.
        merged: it says that Mergecap made it; when each capture in it was stopped is not in it.

    Raises:
        CaptureError: the stream is empty or is no pcap or pcapng file.
    """

    def __init__(self, stream: BinaryIO, name: str = "capture", *, grows: bool = False) -> None:
        self.name = name
        self._grows = grows
        self.problems: list[str] = []
        self.ended_us = 0
        self.merged = False
        self._number = 0
        self._last_us = 0
        self._untimed: Counter[str] = Counter()
        self._undescribed: Counter[int] = Counter()
        self._interfaces: list[_Interface] = []
        self._stream = _Octets(stream, name, self.problems)
        self._read = self._stream.read
        head = self._stream.look(24)
        magic = head[:4]
        if not magic:
            raise CaptureError(f"{name}: the file is empty")
        if magic in _PCAP_MAGIC:
            if len(head) < 24:
                raise CaptureError(f"{name}: not a capture: the pcap header is cut short")
            self._packets = self._pcap(*_PCAP_MAGIC[magic])
        elif magic == _SECTION:
            if head[8:12] not in _BYTE_ORDER:
                raise CaptureError(
                    f"{name}: not a capture: a pcapng section header without its byte-order magic"
                )
            self._packets = self._pcapng(_BYTE_ORDER[head[8:12]])
        elif magic.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise CaptureError(
                f"{name}: a text in UTF-16, as Windows PowerShell writes it; save it as UTF-8"
            )
        else:
            raise CaptureError(
                f"{name}: not a capture: it begins with {magic.hex(' ')}, "
                "pcap begins with d4 c3 b2 a1 (or one of its 3 variants), pcapng with 0a 0d 0d 0a"
            )

    def __iter__(self) -> Iterator[Packet | None]:
        return self._packets

    def _is_cut(self, size: int, whole: Callable[[bytes], int]) -> bool:
        """Whether what comes next in a file that grows is not all there yet.

        Args:
            size: of its head.
            whole: its size in all, told by its head.
        """
        head = self._stream.look(size)
        if len(head) == size:
            size = min(whole(head), MAX_BLOCK)
        return len(self._stream.look(size)) < size

    def _cut(self, what: str, at: int, want: int, got: int) -> None:
        self.problems.append(
            f"{self.name}: the file ends in the middle of {what} that begins at offset {at} "
            f"({got} of {want} octets are there)"
        )

    # -- pcap

    def _pcap(self, order: str, divisor: int) -> Iterator[Packet | None]:
        first, linktype_of = self._read(24), struct.Struct(order + "I").unpack
        linktype = linktype_of(first[20:])[0] & 0xFFFF
        unpack = struct.Struct(order + "IIII").unpack
        at = 24
        while True:
            while self._grows and self._is_cut(16, lambda head: 16 + unpack(head)[2]):
                yield None
            head = self._read(16)
            if len(head) < 16:
                if head:
                    self._cut("a packet header", at, 16, len(head))
                return
            if head[:8] == first[:8]:  # of a capture that `cat` has put behind
                linktype = linktype_of(self._read(8)[4:].ljust(4, b"\0"))[0] & 0xFFFF
                at += 24
                continue
            seconds, fraction, kept, length = unpack(head)
            if kept > MAX_BLOCK:
                self._lying(at, kept)
                return
            data = self._read(kept)
            if len(data) < kept:
                self._cut("a packet", at, kept, len(data))
                return
            at += 16 + kept
            self._number += 1
            t_us = seconds * _MICROSECONDS + fraction // divisor
            yield Packet(self._number, t_us, linktype, data, max(0, length - kept))

    def _lying(self, at: int, size: int, least: int = 0) -> None:
        self.problems.append(
            f"{self.name}: what stands at offset {at} says that it is {size} octets long; "
            f"{least} to {MAX_BLOCK} are believed, and reading ends there"
        )

    # -- pcapng

    def _pcapng(self, order: str) -> Iterator[Packet | None]:
        head_of = struct.Struct(order + "II").unpack
        enhanced = struct.Struct(order + "IIIII").unpack_from
        at = 0
        while True:
            while self._grows and self._is_cut(8, lambda head, size_of=head_of: size_of(head)[1]):  # type: ignore[misc]
                yield None
            head = self._read(8)
            if len(head) < 8:
                if head:
                    self._cut("a block header", at, 8, len(head))
                break
            if head[:4] == _SECTION:
                magic = self._stream.look(4)
                if magic not in _BYTE_ORDER:
                    self.problems.append(f"{self.name}: bad section header at offset {at}")
                    break
                order = _BYTE_ORDER[magic]
                head_of = struct.Struct(order + "II").unpack
                enhanced = struct.Struct(order + "IIIII").unpack_from
            block_type, size = head_of(head)
            if size < _LEAST_BLOCK or size > MAX_BLOCK:
                self._lying(at, size, _LEAST_BLOCK)
                break
            body = self._read(size - 8)
            if len(body) < size - 8:
                what = "a section header" if head[:4] == _SECTION else "a block"
                self._cut(what, at, size, len(body) + 8)
                break
            at += size
            packet = None
            if block_type == _ENHANCED_PACKET and size >= 32:
                index, high, low, kept, length = enhanced(body)
                packet = self._timed(index, high << 32 | low, body, kept, length)
            elif block_type == _SECTION_TYPE:
                self._interfaces = []
                written = dict(_options(order, body, 16)).get(_OPTION_WRITER, b"")
                self.merged = self.merged or written.startswith(_MERGER)
            elif block_type == _INTERFACE and size >= 20:
                self._interfaces.append(_interface(order, body))
            elif block_type == _OLD_PACKET and size >= 32:
                index, _, high, low, kept, length = struct.unpack_from(order + "HHIIII", body)
                packet = self._timed(index, high << 32 | low, body, kept, length)
            elif block_type == _SIMPLE_PACKET and size >= 16:
                packet = self._simple(order, body)
            elif block_type == _STATISTICS and size >= 24:
                self._statistics(order, body)
            if packet is not None:
                yield packet
        for index, count in self._undescribed.items():
            self.problems.append(
                f"{self.name}: {counted(count, 'packet')} left out: the file has not described"
                f" interface {index} by then"
            )
        for words, count in self._untimed.items():
            self.problems.append(
                f"{self.name}: {count} {words}; each got that of the packet before it"
            )

    def _timed(self, index: int, ticks: int, body: bytes, kept: int, length: int) -> Packet | None:
        self._number += 1
        holds = len(body) - _BEFORE_DATA - 4
        if index >= len(self._interfaces):
            self._undescribed[index] += 1
            return None
        if kept > holds:
            self.problems.append(
                f"{self.name}: packet {self._number} says it keeps {kept} octets, "
                f"its block holds {holds}; it is left out"
            )
            return None
        interface = self._interfaces[index]
        t_us = interface.time_us(ticks)
        if t_us in _TIMES:
            self._last_us = t_us
        else:
            self._untimed["packets carry a time before 1970, or too late for 64 bits"] += 1
        data = body[_BEFORE_DATA : _BEFORE_DATA + kept]
        missing = length - kept
        return Packet(
            self._number, self._last_us, interface.linktype, data, missing if missing > 0 else 0
        )

    def _statistics(self, order: str, body: bytes) -> None:
        """Reads when an interface was left, so that silence up to then is known to be one."""
        index = struct.unpack_from(order + "I", body)[0]
        if index >= len(self._interfaces):
            return
        interface = self._interfaces[index]
        for code, value in _options(order, body, 12):
            if code == _OPTION_ENDTIME and len(value) == 8:
                high, low = struct.unpack(order + "II", value)
                ticks = high << 32 | low
                ended_us = interface.time_us(ticks)
                if ended_us < self._last_us // 2:  # dumpcap 4.0 counts microseconds here, always
                    ended_us = ticks + interface.offset_us
                if ended_us in _TIMES:
                    self.ended_us = max(self.ended_us, ended_us)

    def _simple(self, order: str, body: bytes) -> Packet | None:
        self._number += 1
        if not self._interfaces:
            self._undescribed[0] += 1
            return None
        self._untimed["simple packet blocks carry no time"] += 1
        interface = self._interfaces[0]
        length = struct.unpack_from(order + "I", body)[0]
        kept = min(length, interface.snaplen or length, len(body) - 8)
        data = body[4 : 4 + kept]
        return Packet(self._number, self._last_us, interface.linktype, data, length - kept)


def _interface(order: str, body: bytes) -> _Interface:
    """Reads an interface description block; unknown and broken options are passed over."""
    linktype, _, snaplen = struct.unpack_from(order + "HHI", body)
    ticks, offset_us = _MICROSECONDS, 0
    for code, value in _options(order, body, 8):
        if code == _OPTION_TSRESOL and len(value) == 1:
            # The top bit chooses the base: 10 to the minus n, or 2 to the minus n.
            power = value[0] & 0x7F
            ticks = 2**power if value[0] & 0x80 else 10**power
        elif code == _OPTION_TSOFFSET and len(value) == 8:
            offset_us = struct.unpack(order + "q", value)[0] * _MICROSECONDS
    return _Interface(
        linktype=linktype, snaplen=snaplen, ticks_per_second=ticks, offset_us=offset_us
    )


def _options(order: str, body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """The options of a block from there on: code and value."""
    while at + 4 <= len(body) - 4:
        code, length = struct.unpack_from(order + "HH", body, at)
        if code == _OPTION_END:
            return
        yield code, body[at + 4 : at + 4 + length]
        at += 4 + length + (-length % 4)


class _Octets:
    """Octets of a file, gzip undone.

    Args:
        stream: a binary stream at its start.
        name: how messages call the file.
        problems: gets a line if it cannot be read to its end.
    """

    def __init__(self, stream: BinaryIO, name: str, problems: list[str]) -> None:
        self._name = name
        self._problems = problems
        self._more: Callable[[int], bytes] = stream.read
        self._damage = "it cannot be read any further"
        self._held = b""
        self._at = 0
        packed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        if packed:
            # Little at a time, so that damage takes no more with it than that little.
            self._more = gzip.GzipFile(fileobj=stream).read1
            self._damage = "the compressed data is damaged"

    def read(self, size: int) -> bytes:
        """The next octets; fewer than `size` only at the end."""
        end = self._at + size
        if end > len(self._held):
            data = self.look(size)
            self._at += len(data)
        else:
            data = self._held[self._at : end]
            self._at = end
        return data

    def look(self, size: int) -> bytes:
        """The same octets, which come again."""
        if len(self._held) - self._at < size:
            self._fetch(size)
        return self._held[self._at : self._at + size]

    def _fetch(self, size: int) -> None:
        parts = [self._held[self._at :]]
        have = len(parts[0])
        self._at = 0
        while have < size:
            try:
                data = self._more(max(_STEP_OCTETS, size - have))
            except (EOFError, OSError, zlib.error) as error:
                self._problems.append(f"{self._name}: {self._damage}: {error}")
                self._more = lambda size: b""
                break
            if not data:
                break
            parts.append(data)
            have += len(data)
        self._held = b"".join(parts)
