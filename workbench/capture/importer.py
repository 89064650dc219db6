"""Captures into traces: every connection in a pcap or pcapng file that can be read, by frame.

What is made of a capture:

* one `observed` row per frame and protocol header, in the order in which each could be read;
* an internal row `gap` where octets are missing, and `error` where they cannot be read;
* a report of connections, links, losses, assumptions and of what cannot be known.

One capture or ten thousand, a batch of rows at a time is in memory.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from stat import S_ISREG
from typing import Any

from workbench.capture.brokers import Brokers, ConnectionAhead
from workbench.capture.columns import RowColumns
from workbench.capture.connection import DECODERS, AmqpConnection
from workbench.capture.packet import segment_of
from workbench.capture.pcap import CaptureError, CaptureReader, Packet
from workbench.capture.proton_log import ProtonLog, is_proton_log
from workbench.capture.report import UNKNOWN, CaptureReport, ImportReport, protocol_name
from workbench.capture.tcp import Conversation, Reassembler, StreamSegment
from workbench.trace.collector import seldom_collected
from workbench.trace.files import from_table, write_tables
from workbench.trace.given import Place, takes
from workbench.trace.schema import Row
from workbench.trace.words import alternatives, counted, encodable

__all__ = [
    "Capture", "CaptureError", "ImportResult", "Progress", "import_capture", "import_files",
    "part_name",
]  # fmt: skip

Progress = Callable[[int, int], None]
"""Called now and then with the octets read so far and the size of all captures."""

_PROGRESS_PACKETS = 2_000
_PROGRESS_LINES = 2_000
_MAX_LINE = 1 << 20
_HASH_DIGITS = 8
_SNIFFED = 1 << 16
_LINE_OCTETS = 256
"""Of a line that is cut by two looks; the beginning of a frame's line is shorter."""
_ODD = re.compile(r"[:\\/\[\]{}*?]")


class Capture:
    """One capture file: pcap, pcapng, either of them compressed, or Proton's frame log.

    Args:
        path: the file.
        port: the broker's TCP port. Only connections to it are read, and frames on them need no
            proof. Without it every connection is looked at.
        redact: replace SASL responses and message bodies by zeros.
        run: name of its run; else made of stem and content.

    Attributes:
        run: name of its run, the same wherever the file lies.
        report: what was found; whole when all tables were taken.

    Raises:
        CaptureError: the file cannot be read, or there is no such port.
    """

    def __init__(
        self, path: Path, *, port: int | None = None, redact: bool = False, run: str = ""
    ) -> None:
        if port is not None and not 0 < port < 1 << 16:
            raise CaptureError(f"port {port}: legal: 1 to 65535")
        self.path = path
        with self._opened() as stream:
            self._is_log = _is_log(stream)
            stream.seek(0)
            self.run = encodable(run or _name_of(path, stream))
        self.report = CaptureReport(file=encodable(path.name), run=self.run, redacted=redact)
        self._port = port
        self._port_octets = (port or 0).to_bytes(2, "big")
        self._rows = RowColumns(self.run, timed=not self._is_log)
        self._reassembler = Reassembler()
        self._connections: list[AmqpConnection] = []
        self._made_of: type[AmqpConnection] = AmqpConnection
        self._grows = False
        self._brokers: Brokers | None = None

    def tables(self, progress: Callable[[int], None] | None = None) -> Iterator[Any]:
        """Its rows as Arrow tables of a trace, a batch at a time; they can be taken once.

        Args:
            progress: called now and then with the octets read so far.

        Raises:
            CaptureError: there is nothing in it that can be read; no row was given then.
        """
        steps = self._lines if self._is_log else self._packets
        with seldom_collected():
            for place in steps():
                if self._rows.is_full:
                    yield self._rows.take()
                if progress is not None:
                    progress(place)
        if not self.report.frames:
            raise CaptureError(f"{self.path.name}: {self._contents()}")
        self.report.rows = self._rows.count
        yield self._rows.take()

    def growing(self) -> Iterator[Any]:
        """Its rows as tables while a pcap or pcapng file is written, without an end.

        Where the file ends for now, the rest of what there is comes as a table, which may be
        empty; asked for the next one, it looks whether more has come. Rows and their numbers are
        those of the whole file, however often one looks; only what comes later tells nothing of
        who is the client.

        Raises:
            CaptureError: it is no capture.
        """
        self._grows = True
        with self.path.open("rb", buffering=0) as stream:
            for packet in CaptureReader(stream, self.path.name, grows=True):
                if packet is not None:
                    self._packet(packet)
                if packet is None or self._rows.is_full:
                    yield self._rows.take()

    @contextmanager
    def _opened(self) -> Iterator[BufferedReader]:
        try:
            with self.path.open("rb") as stream:
                if not S_ISREG(os.fstat(stream.fileno()).st_mode):  # it may never end
                    kind = "a device" if stream.seekable() else "a pipe"
                    raise CaptureError(
                        f"{self.path.name}: is {kind}; save the capture to a file first"
                    )
                yield stream
        except OSError as error:
            raise CaptureError(f"{self.path.name}: {error.strerror or error}") from None

    def _lines(self) -> Iterator[int]:
        """Reads a log; gives how far it is in the file, now and then and when a table is full."""
        log = ProtonLog(self._rows, self.report)
        with self._opened() as stream:
            lines = TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape")
            for number, text in enumerate(iter(partial(lines.readline, _MAX_LINE), ""), 1):
                log.line(number, text)
                if self._rows.is_full or number % _PROGRESS_LINES == 0:
                    yield stream.tell()
        log.finish()

    def _packets(self) -> Iterator[int]:
        """Reads packets; gives how far it is in the file, now and then and when a table is full."""
        report = self.report
        with self._opened() as stream:
            reader = CaptureReader(stream, self.path.name)
            for packet in reader:
                assert packet is not None
                self._packet(packet)
                if self._rows.is_full or report.packets % _PROGRESS_PACKETS == 0:
                    yield stream.tell()
        self._take(self._reassembler.finish())
        report.problems.extend(reader.problems)
        report.merged = reader.merged
        if report.packets:
            report.lasted_us = max(report.lasted_us, reader.ended_us - report.begun_us)
        for connection in self._connections:
            connection.finish()
        report.connections = [connection.report() for connection in self._connections]

    def _packet(self, packet: Packet) -> None:
        """Takes in one packet."""
        report = self.report
        if not report.packets:
            self._rows.begin(packet.t_us)
            report.begun_us = packet.t_us
        elif packet.t_us - report.begun_us > report.lasted_us:
            report.lasted_us = packet.t_us - report.begun_us
        report.packets += 1
        segment = segment_of(packet)
        if segment is None:
            report.other_packets += 1
        elif isinstance(segment, str):
            report.skipped[segment] = report.skipped.get(segment, 0) + 1
            report.cut += bool(packet.missing)
        elif self._port is None or self._wanted(segment.source, segment.destination):
            if segment.missing:
                report.cut += 1
            if ready := self._reassembler.feed(segment, packet.t_us, packet.number):
                self._take(ready)

    def _wanted(self, source: bytes, destination: bytes) -> bool:
        return source[-2:] == self._port_octets or destination[-2:] == self._port_octets

    def _take(self, ready: Iterable[StreamSegment]) -> None:
        connections, conversations = self._connections, self._reassembler.conversations
        while len(connections) < len(conversations):
            found = conversations[len(connections)]
            connections.append(
                self._made_of(
                    found, self._rows, self._port, redact=self.report.redacted, ahead=self._ahead
                )
            )
        for segment in ready:
            connections[segment.direction.conversation.number - 1].take(segment)

    def _ahead(self, conversation: Conversation) -> tuple[bytes, str] | None:
        """Who is the client, as the whole file tells it: it is read once more for that.

        A file that grows is not whole, and one who looked again would be told otherwise.
        """
        if self._grows:
            return None
        if self._brokers is None:
            other = Capture(self.path, port=self._port, run=self.run)
            other._made_of = ConnectionAhead
            for _ in other._packets():
                pass
            self._brokers = Brokers(other._connections)
        return self._brokers.client(conversation)

    def _contents(self) -> str:
        """What the file holds instead of frames, in one line."""
        report = self.report
        if self._is_log:
            return "a log of Proton without one whole frame"
        kinds = Counter(connection.protocol for connection in report.connections)
        found = "can be read in it" if UNKNOWN in kinds else "in it"
        words = f"no {alternatives(map(protocol_name, DECODERS))} {found}"
        if not report.packets:
            return f"{words}: no packets" + (f" ({report.problems[0]})" if report.problems else "")
        if not kinds:
            where = f" with port {self._port}" if self._port is not None else ""
            skipped = "".join(f", {n:,} not used: {why}" for why, n in report.skipped.items())
            packets = counted(report.packets, report.unit)
            told = f"{words}: {packets}, no TCP connection{where}{skipped}"
        else:
            parts = [f"{count:,} of {protocol_name(kind)}" for kind, count in sorted(kinds.items())]
            told = f"{words}: {counted(kinds.total(), 'TCP connection')}: {', '.join(parts)}"
        return f"{told}; {report.in_part}" if report.in_part else told


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """Rows and report of an import.

    Attributes:
        rows: by capture in the order given, then by `seq`.
        report: what was found.
    """

    rows: list[Row]
    report: ImportReport


@takes
def import_capture(
    paths: Place | Iterable[Place],
    *,
    port: int | None = None,
    redact: bool = False,
    progress: Progress | None = None,
) -> ImportResult:
    """Imports one capture or several into memory; `import_files` writes a trace of any size.

    Args:
        paths: capture files, pcap or pcapng, or Proton's frame log; each becomes
            a run of its own, named by stem and content.
        port: see `Capture`.
        redact: replace SASL responses and message bodies by zeros.
        progress: told how far the reading is.

    Raises:
        CaptureError: no capture was good, or one could not be read to its end. Of several, those
            that are not good are told in `report.failures`.
    """
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    report = ImportReport()
    flow = _flow(files, report, port=port, redact=redact, progress=progress)
    return ImportResult(rows=[row for _, table in flow for row in from_table(table)], report=report)


def import_files(
    paths: Iterable[Place],
    target: Path,
    *,
    port: int | None = None,
    redact: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Imports captures into one Parquet file, which appears whole or not at all.

    Args:
        paths: capture files; see `import_capture`.
        target: the file to write.
        port: see `Capture`.
        redact: replace SASL responses and message bodies by zeros.
        strict: write nothing unless every capture is good; `report.failures` tells then.
        progress: told how far the reading is.

    Raises:
        CaptureError: no capture was good, or one of them could not be read to its end.
        TraceFileError: the target cannot be written.
    """
    report = ImportReport()
    flow = _flow(list(paths), report, port=port, redact=redact, progress=progress)

    def tables() -> Iterator[Any]:
        for _, table in flow:
            yield table
        if strict and report.failures:
            raise _NotAllGoodError

    with suppress(_NotAllGoodError):
        write_tables(target, tables())
    return report


class _NotAllGoodError(Exception):
    """Takes back what was written, because a capture is not good and all must be."""


def _flow(
    paths: Sequence[Place],
    report: ImportReport,
    *,
    port: int | None,
    redact: bool,
    progress: Progress | None,
) -> Iterator[tuple[Capture, Any]]:
    """The tables of one capture after the other; what is not good has a line in the report."""
    sizes = [_size(Path(path)) for path in paths]
    seen: set[str] = set()
    done, total = 0, sum(sizes)
    for path, size in zip(paths, sizes, strict=True):
        begun = False

        def tell(octets: int, done: int = done, size: int = size) -> None:
            if progress is not None:
                progress(done + min(size, octets), total)

        try:
            capture = Capture(Path(path), port=port, redact=redact)
            if capture.run in seen:
                raise CaptureError(f"{capture.path.name}: the same capture was given twice")
            for table in capture.tables(tell):
                begun = True
                yield capture, table
            report.captures.append(capture.report)
            seen.add(capture.run)
        except CaptureError as error:
            if begun:  # what was given of it already must not be taken for the whole
                raise
            report.failures += str(error).splitlines()
        done += size
        tell(size)
    if not report.captures:
        raise CaptureError("\n".join(report.failures) or "no capture was given")


def _is_log(stream: BufferedReader) -> bool:
    """Whether it is a text with a frame in it, however much else a program has printed before."""
    head = b""
    while part := stream.read(_SNIFFED):
        if is_proton_log(head + part):
            return b"\0" not in part[:4]
        if b"\0" in part:  # no text
            return False
        head = part[-_LINE_OCTETS:]
    return False


def _name_of(path: Path, stream: BufferedReader) -> str:
    """The name of a run: stem and content of its file."""
    stem = Path(path.name.removesuffix(".gz")).stem
    return f"{stem}-{hashlib.file_digest(stream, 'sha256').hexdigest()[:_HASH_DIGITS]}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def part_name(run: str) -> str:
    """The file of a run in a trace: Spark reads no name with a colon, and takes others apart."""
    name = _ODD.sub("_", run)
    hidden = name.startswith((".", "_"))  # nobody reads such a file of a trace
    return f"{'run' if hidden else ''}{name}.parquet"
