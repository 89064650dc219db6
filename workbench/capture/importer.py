"""Captures into traces: every AMQP 1.0 connection in a pcap or pcapng file, frame by frame.

What is made of a capture:

* one `observed` row per frame and protocol header, in the order in which each could be read;
* an internal row `gap` where octets are missing, and `error` where they cannot be read;
* a report of connections, links, losses, assumptions and of what cannot be known.

The counters come from `amqp.observer`, which sees the frames and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.capture.boundary import AMQP_1_0
from workbench.capture.connection import AmqpConversation
from workbench.capture.packet import segment_of
from workbench.capture.pcap import CaptureError, CaptureReader, Packet
from workbench.capture.proton_log import is_proton_log, read_proton_log
from workbench.capture.report import CaptureReport, ImportReport
from workbench.capture.rows import RowMaker
from workbench.capture.tcp import Piece, Reassembler
from workbench.trace.files import to_table
from workbench.trace.schema import Row

__all__ = [
    "CaptureError", "ImportResult", "Progress", "import_capture", "import_tables", "read_capture",
    "read_tables", "run_name",
]  # fmt: skip

Progress = Callable[[int, int], None]
"""Called now and then with the octets read so far and the size of all captures."""

_PROGRESS_PACKETS = 2_000
_HASH_DIGITS = 8
_BATCH_ROWS = 20_000
_SNIFFED = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """Rows and report of an import.

    Attributes:
        rows: by capture in the order given, then by `seq`.
        report: what was found.
    """

    rows: list[Row]
    report: ImportReport


def import_capture(
    paths: str | Path | Iterable[str | Path],
    *,
    port: int | None = None,
    redact: bool = False,
    progress: Progress | None = None,
) -> ImportResult:
    """Imports one capture or several.

    Args:
        paths: capture files, pcap or pcapng, or Proton's frame log; each becomes
            a run of its own, named by stem and content.
        port: the broker's TCP port. Only connections to it are read, and they are taken to be
            AMQP 1.0. Without it every connection is looked at.
        redact: replace SASL responses and message bodies by zeros.
        progress: told how far the reading is.

    Raises:
        CaptureError: no capture was good. Of several, those that are not are told in
            `report.failures`.
    """
    found, report = _imported(paths, port, redact, progress, by_tables=False)
    rows = [row for batches in found.values() for batch in batches for row in batch]
    return ImportResult(rows=rows, report=report)


def import_tables(
    paths: str | Path | Iterable[str | Path],
    *,
    port: int | None = None,
    redact: bool = False,
    progress: Progress | None = None,
) -> tuple[dict[str, list[Any]], ImportReport]:
    """The same rows as Arrow tables, in a fraction of the time and memory; arguments as there.

    Returns:
        By run, in the order given, the tables of its rows; and what was found.

    Raises:
        CaptureError: as there.
    """
    return _imported(paths, port, redact, progress, by_tables=True)


def _imported(
    paths: str | Path | Iterable[str | Path],
    port: int | None,
    redact: bool,
    progress: Progress | None,
    *,
    by_tables: bool,
) -> tuple[dict[str, list[Any]], ImportReport]:
    """Of each good capture, by its run, the rows in batches or in tables."""
    files = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    good: dict[str, list[Any]] = {}
    report = ImportReport()
    sizes = [_size(path) for path in files]
    done, total = 0, sum(sizes)
    for path, size in zip(files, sizes, strict=True):
        try:
            run = run_name(path)
            if run in good:
                raise CaptureError(f"{path.name}: the same capture was given twice")
            if _is_proton_log(path):
                rows, capture_report = _read_text(path, run, redact)
                found: list[Any] = [to_table(rows) if by_tables else rows]
            else:
                capture = Capture(path, run, port, redact)
                read = capture.tables if by_tables else capture.batches
                found = list(read(progress, done, total))
                capture_report = capture.report
        except CaptureError as error:
            report.failures.append(str(error))
        else:
            good[run] = found
            report.captures.append(capture_report)
        done += size
    if progress is not None:
        progress(total, total)
    if not report.captures:
        raise CaptureError("\n".join(report.failures) or "no capture was given")
    return good, report


def read_capture(
    path: Path, run: str, *, port: int | None = None, redact: bool = False
) -> Iterator[list[Row]]:
    """The rows of one capture as `import_capture` gives them, a batch at a time in memory.

    Args:
        path: the capture.
        run: name of its run; see `run_name`.
        port: the broker's TCP port, if it is not found by itself.
        redact: replace SASL responses and message bodies by zeros.

    Raises:
        CaptureError: the capture is not good; nothing was yielded then.
    """
    if _is_proton_log(path):
        rows, _ = _read_text(path, run, redact)
        for start in range(0, len(rows), _BATCH_ROWS):
            yield rows[start : start + _BATCH_ROWS]
    else:
        yield from Capture(path, run, port, redact).batches(None, 0, 0)


def read_tables(
    path: Path, run: str, *, port: int | None = None, redact: bool = False
) -> Iterator[Any]:
    """The rows that `read_capture` gives, as Arrow tables and much sooner; arguments as there.

    Raises:
        CaptureError: the capture is not good; nothing was yielded then but perhaps empty tables.
    """
    if _is_proton_log(path):
        for rows in read_capture(path, run, port=port, redact=redact):
            yield to_table(rows)
    else:
        yield from Capture(path, run, port, redact).tables(None, 0, 0)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def run_name(path: Path) -> str:
    """Stem and content hash: the same capture has the same name wherever it lies."""
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise CaptureError(f"{path.name}: {error.strerror or error}") from None
    stem = path.name.split(".")[0] if path.name.endswith(".gz") else path.stem
    return f"{stem}-{digest[:_HASH_DIGITS]}"


def _is_proton_log(path: Path) -> bool:
    with path.open("rb") as stream:
        head = stream.read(_SNIFFED)
    return b"\0" not in head[:4] and is_proton_log(head)


def _read_text(path: Path, run: str, redact: bool) -> tuple[list[Row], CaptureReport]:
    report = CaptureReport(file=path.name, run=run, redacted=redact)
    with path.open(encoding="utf-8", errors="surrogateescape") as stream:
        rows = read_proton_log(stream, report)
    if not rows:
        raise CaptureError(f"{path.name}: a log of Proton without one whole frame")
    return rows, report


class Capture:
    """The import of one file."""

    def __init__(self, path: Path, run: str, port: int | None, redact: bool) -> None:
        self.path = path
        self.port = port
        self._port_octets = (port or 0).to_bytes(2, "big")
        self.report = CaptureReport(file=path.name, run=run, redacted=redact)
        self.maker = RowMaker(run, redact=redact)
        self._reassembler = Reassembler()
        self._conversations: list[AmqpConversation] = []
        self._packets = 0

    def batches(self, progress: Progress | None, done: int, total: int) -> Iterator[list[Row]]:
        """Its rows, so many at a time; the report is whole behind the last."""
        with self.path.open("rb", buffering=1 << 20) as stream:
            reader = CaptureReader(stream, self.path.name)
            for packet in reader:
                self._packet(packet)
                if len(self.maker.rows) >= _BATCH_ROWS:
                    yield self.maker.take()
                if progress is not None and self._packets % _PROGRESS_PACKETS == 0:
                    progress(min(total, done + stream.tell()), total)
        self._end(reader)
        yield self.maker.take()

    def tables(self, progress: Progress | None, done: int, total: int) -> Iterator[Any]:
        """The same rows as tables."""
        return map(to_table, self.batches(progress, done, total))

    def _packet(self, packet: Packet) -> None:
        """Takes in one packet."""
        if not self._packets:
            self.maker.begin(packet.t_us)
        self._packets += 1
        segment = segment_of(packet)
        report = self.report
        if segment is None:
            report.other_packets += 1
        elif isinstance(segment, str):
            report.skipped[segment] = report.skipped.get(segment, 0) + 1
        elif self.port is None or self._wanted(segment.source, segment.destination):
            pieces = self._reassembler.feed(segment, packet.t_us, packet.number)
            if pieces:
                self._take(pieces)

    def _end(self, reader: CaptureReader) -> None:
        """The capture is over: what is left, and the report."""
        report = self.report
        report.packets = self._packets
        self._take(self._reassembler.finish())
        report.problems.extend(reader.problems)
        for conversation in self._conversations:
            conversation.finish()
        self._summarise()

    def _wanted(self, source: bytes, destination: bytes) -> bool:
        return source[-2:] == self._port_octets or destination[-2:] == self._port_octets

    def _take(self, pieces: Sequence[Piece]) -> None:
        conversations = self._conversations
        for piece in pieces:
            number = piece.direction.conversation.number
            while len(conversations) < number:
                found = self._reassembler.conversations[len(conversations)]
                conversations.append(AmqpConversation(found, self.maker, self.port))
            conversations[number - 1].take(piece)

    def _summarise(self) -> None:
        report = self.report
        while len(self._conversations) < len(self._reassembler.conversations):
            found = self._reassembler.conversations[len(self._conversations)]
            self._conversations.append(AmqpConversation(found, self.maker, self.port))
        report.connections = [each.report() for each in self._conversations]
        if not report.imported or not report.frames:
            raise CaptureError(f"{self.path.name}: no AMQP 1.0 in it: {self._contents()}")

    def _contents(self) -> str:
        """What the capture holds instead, in one line."""
        report = self.report
        if not report.packets:
            return "no packets" + (f" ({report.problems[0]})" if report.problems else "")
        kinds: dict[str, int] = {}
        for connection in report.connections:
            kinds[connection.protocol] = kinds.get(connection.protocol, 0) + 1
        if not kinds:
            where = f" with port {self.port}" if self.port is not None else ""
            skipped = "".join(f", {n} not used: {why}" for why, n in report.skipped.items())
            return f"{report.packets} packets, no TCP connection{where}{skipped}"
        names = {
            "tls": "TLS (encrypted; capture before encryption, or on the broker's plain port)",
            "amqp-0-9-1": "AMQP 0-9-1",
            "amqp-0-10": "AMQP 0-10",
            "empty": "no payload",
            "other": "another protocol",
            AMQP_1_0: "AMQP 1.0 without one whole frame",
        }
        parts = [f"{count} of {names.get(kind, kind)}" for kind, count in sorted(kinds.items())]
        many = sum(kinds.values())
        return f"{many} TCP connection{'s' if many != 1 else ''}: {', '.join(parts)}"
