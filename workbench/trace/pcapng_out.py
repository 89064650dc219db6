"""Any trace as a pcapng file that Wireshark reads.

One TCP connection per connection of the trace, with handshake (unless its beginning is not in the
trace), sequence numbers, checksums, and FIN where a close is there; the broker has port 5672.
Octets that the trace lacks are missing in the capture, too, so that no more is believed of it. Of a
frame that was logged at both ends one row is taken: the one that was observed on the wire, else the
one that was sent. Times are those of the trace, from the packet clock of a capture, or from
2020-01-01 for a virtual run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.amqp010.errors import LocalProtocolError as MisfitError010
from workbench.amqp091.errors import AmqpError as AmqpError091
from workbench.amqp10.errors import AmqpError
from workbench.notebook import PlainError
from workbench.trace.flatten import PROTOCOL_HEADER
from workbench.trace.packet_out import Address, PcapngWriter, TcpTalk
from workbench.trace.rebuild import RebuildError, item_of
from workbench.trace.schema import CLIENT, FRAME_COLUMNS, Row, once
from workbench.trace.whole import WriteError, written_whole
from workbench.trace.wire_items import codec_of

__all__ = ["ExportError", "ExportResult", "export"]

BROKER_PORT = 5672
START_US = 1_577_836_800_000_000
"""2020-01-01T00:00:00Z, when every virtual run begins."""

_ENDS = frozenset({"close", "connection.close", "connection.close-ok"})
_LACKS = frozenset({"gap", "error"})
"""Events of octets that are missing, or gave no frame."""
_FIRST_CLIENT_PORT = 40_000
_CLIENT_PORTS = 20_000


class ExportError(PlainError, ValueError):
    """The trace cannot be written as a capture; the text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What was written.

    Attributes:
        frames: frames and protocol headers.
        connections: TCP connections.
        rebuilt: frames that had no octets in the trace and were made from their fields; their
            payload is zeros.
    """

    frames: int
    connections: int
    rebuilt: int


def export(rows: Sequence[Row], path: str | os.PathLike[str]) -> ExportResult:
    """Writes the frames of a trace as pcapng; the file appears whole or not at all.

    Args:
        rows: a trace of one run or several, in order.
        path: the file to write.

    Raises:
        ExportError: there is no frame, a frame has neither octets nor fields enough, or the file
            cannot be written.
    """
    frames = [row for row in rows if row.is_frame and row.protocol in FRAME_COLUMNS]
    for row in frames:
        if row.connection is None or row.from_peer is None:
            raise ExportError(f"row {row.seq}: a frame without connection or sender")
    if not frames:
        raise ExportError("the trace has no frames to export")
    try:
        with written_whole(path) as file:
            return _write(rows, once(frames), PcapngWriter(file))
    except WriteError as error:
        raise ExportError(str(error)) from None


def _write(rows: Sequence[Row], frames: list[Row], writer: PcapngWriter) -> ExportResult:
    talks: dict[tuple[str, str | None], TcpTalk] = {}
    starts: dict[str, int] = {}
    for row in frames:
        # Less where the packets' clock went back, which the time of a run does not.
        # A gate's clock begins with the run, so it tells no date.
        start = (row.t_raw_us or 0) - row.t_us
        start = start if start > 0 else START_US
        starts[row.run] = max(start, starts.get(row.run, 0))
    begun: set[str] = set()
    ended: set[tuple[str, str | None]] = set()
    rebuilt, end = 0, 0
    known = {(row.run, row.connection) for row in frames}
    others = [
        row
        for row in rows
        if row.event in _LACKS | {"disconnect"} and (row.run, row.connection) in known
    ]
    for row in sorted([*frames, *others], key=lambda row: (row.run, row.seq)):
        first_of_run = row.run not in begun
        begun.add(row.run)
        start = starts[row.run]
        end = max(end, start + row.t_us)
        key = (row.run, row.connection)
        talk = talks.get(key)
        if talk is None:
            talk = talks[key] = TcpTalk(writer, *_ends(len(talks)))
            # The first packet of a run is its time 0, so that reading it back gives its times.
            begun_us = start if first_of_run else start + row.t_us
            if row.kind == PROTOCOL_HEADER:
                talk.open(begun_us)
            else:  # what lacks its beginning is no connection that is just opened
                talk.segment(begun_us, from_client=True)
        if row.event == "disconnect" or row.kind in _ENDS:
            ended.add(key)
        if row.is_frame:
            octets = row.raw
            if octets is None:
                rebuilt += 1
                octets = _octets(row)
            talk.send(start + row.t_us, octets, from_client=row.from_peer == CLIENT)
        elif row.event in _LACKS and row.details and "from_peer" in row.details:
            missing = row.details.get("octets") or 1
            talk.skip(missing, from_client=row.details["from_peer"] == CLIENT)
    for key, talk in talks.items():
        if key in ended:  # of another nobody knows that it has ended
            talk.close(end)
    return ExportResult(frames=len(frames), connections=len(talks), rebuilt=rebuilt)


def _octets(row: Row) -> bytes:
    try:
        item = item_of(row)
        return codec_of(item).encode(item)
    except RebuildError as error:
        raise ExportError(f"{error}; the trace has no octets of it either") from None
    except (AmqpError, AmqpError091, MisfitError010) as error:
        raise ExportError(
            f"row {row.seq}: {row.kind} cannot be encoded ({error}) and has no octets in the trace"
        ) from None


def _ends(number: int) -> tuple[Address, Address]:
    """Addresses of the n-th connection, from 0."""
    host, port = divmod(number, _CLIENT_PORTS)
    client = Address(ip=f"10.0.{host // 250}.{host % 250 + 1}", port=_FIRST_CLIENT_PORT + port)
    return client, Address(ip="10.1.0.1", port=BROKER_PORT)
