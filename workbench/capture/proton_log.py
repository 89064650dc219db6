"""Proton's frame log (`PN_TRACE_FRM=1`) as a trace.

A line tells the connection (an address in memory), the direction as the logging process saw it
(`->` sent, `<-` received), the channel and the performative:

    [0x55bc23e79ca0]: AMQP:FRAME:0 -> @flow(19) [next-incoming-id=0x0, ...]

What the log does not carry is null: octets, sizes of frames, packet times. `t_us` counts the
frames, so that they stay apart; the report says so. Proton cuts a line at 1,024 characters: the
fields before the cut are kept, and the report names those lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from workbench.amqp10.frame import Frame, ProtocolHeader, WireItem
from workbench.amqp10.observer import ConnectionObserver
from workbench.capture.connection import link_reports
from workbench.capture.proton_notation import NotationError, parse_composite
from workbench.capture.redact import SECRETS
from workbench.capture.report import CaptureReport, ConnectionReport
from workbench.trace.rebuild import RebuildError, performative_of
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, WIRE_VANTAGE, Row
from workbench.trace.taps import frame_row

__all__ = ["is_proton_log", "read_proton_log"]

_LINE = re.compile(
    r"\[(?P<pointer>[^\]\s]+)\]\s*:\s*(?:(?P<layer>AMQP|SASL|SSL|IO)\s*:FRAME:\s*)?(?P<channel>\d+)?\s*"
    r"(?P<arrow><-|->)\s+(?P<rest>@.*|AMQP|SASL|TLS|EOS|\(EMPTY FRAME\)).*"
)
_TRUNCATED = " ... (truncated)"
_PAYLOAD = re.compile(r" \((\d+)\) ")
_HEADERS = {"AMQP": 0, "TLS": 2, "SASL": 3}
_MAX_LINE = 1 << 20


def is_proton_log(head: bytes) -> bool:
    """Whether a file that begins so holds a frame log."""
    text = head.decode("utf-8", "replace")
    return any(_LINE.search(line) for line in text.splitlines())


@dataclass(slots=True, eq=False)
class _Logged:
    """One connection of the log."""

    name: str
    pointer: str
    logger_is_client: bool
    observer: ConnectionObserver = field(default_factory=ConnectionObserver)
    closed: bool = False
    headers: set[tuple[str, str]] = field(default_factory=set)
    frames: dict[str, int] = field(default_factory=lambda: {CLIENT: 0, BROKER: 0})
    unknown: set[str] = field(default_factory=set)
    assumptions: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class _Log:
    """Makes rows of the lines of one log."""

    def __init__(self, report: CaptureReport) -> None:
        self.report = report
        self.rows: list[Row] = []
        self.connections: list[_Logged] = []
        self._by_pointer: dict[str, _Logged] = {}

    def line(self, number: int, text: str) -> None:
        match = _LINE.search(text)
        if match is None:
            self.report.other_packets += 1
            return
        arrow, rest = match["arrow"], match["rest"]
        connection = self._connection(match["pointer"], arrow, rest)
        if rest == "EOS":
            return
        from_client = (arrow == "->") == connection.logger_is_client
        try:
            item, body, cut = _item(rest, int(match["channel"] or 0))
        except (NotationError, RebuildError) as error:
            connection.problems.append(f"line {number}: {error}")
            connection.observer.lost(from_client)
            return
        if cut:
            connection.problems.append(
                f"line {number}: Proton cut it at 1,024 characters; fields behind the cut are null"
            )
        self._frame(connection, item, body, from_client)

    def _connection(self, pointer: str, arrow: str, rest: str) -> _Logged:
        connection = self._by_pointer.get(pointer)
        again = connection is not None and (
            (arrow, rest) in connection.headers or (connection.closed and rest in _HEADERS)
        )
        if connection is None or again:
            connection = _Logged(
                f"c{len(self.connections) + 1}", pointer, _logger_is_client(arrow, rest)
            )
            self.connections.append(connection)
            self._by_pointer[pointer] = connection
            if rest not in _HEADERS:
                connection.observer.lost(True)
                connection.observer.lost(False)
                connection.assumptions.append(
                    "the log begins in the middle; its process is taken as the "
                    + ("client" if connection.logger_is_client else "broker")
                )
        if rest in _HEADERS:
            connection.headers.add((arrow, rest))
        connection.closed = connection.closed or rest.startswith("@close(")
        return connection

    def _frame(
        self, connection: _Logged, item: WireItem, body: int | None, from_client: bool
    ) -> None:
        peer = CLIENT if from_client else BROKER
        if self.report.redacted:
            item = _redacted(item)
        scope = connection.observer.see(item, from_client)
        connection.unknown.update(scope.unknown)
        number = len(self.rows)
        row = frame_row(
            item,
            run=self.report.run,
            seq=number,
            t_us=number,
            vantage=WIRE_VANTAGE,
            event=OBSERVED,
            frame_id=number,
            from_peer=peer,
            connection=connection.name,
            scope=scope,
            ledger_source=OBSERVED,
        )
        row.item = None
        row.frame_bytes = None
        row.body_bytes = body
        connection.frames[peer] += 1
        self.rows.append(row)

    def finish(self) -> None:
        for connection in self.connections:
            found = ConnectionReport(
                name=connection.name,
                client="the logging process" if connection.logger_is_client else "its peer",
                broker="its peer" if connection.logger_is_client else "the logging process",
                protocol="amqp-1.0",
                imported=sum(connection.frames.values()) > 0,
                assumptions=[*connection.assumptions, *connection.observer.assumptions],
                problems=connection.problems,
                links=link_reports(connection.observer),
            )
            found.from_client.frames = connection.frames[CLIENT]
            found.from_broker.frames = connection.frames[BROKER]
            found.unknown = ["times, sizes of frames and octets: the log does not carry them"]
            found.unknown += sorted(name.replace("_", "-") for name in connection.unknown)
            self.report.connections.append(found)


def read_proton_log(lines: Iterable[str], report: CaptureReport) -> list[Row]:
    """Makes rows of a frame log and fills in its report.

    Args:
        lines: the lines of the log; others than those of frames are passed over.
        report: of this file; `run` and `redacted` are taken from it.
    """
    report.unit = "line"
    log = _Log(report)
    for number, text in enumerate(_bounded(lines), 1):
        report.packets = number
        log.line(number, text)
    log.finish()
    return log.rows


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line[:_MAX_LINE]


def _logger_is_client(arrow: str, rest: str) -> bool:
    """The end whose header or SASL choice comes first is the client."""
    if rest.startswith(("@sasl-mechanisms", "@sasl-challenge", "@sasl-outcome")):
        return arrow == "<-"
    return arrow == "->"


def _item(rest: str, channel: int) -> tuple[WireItem, int | None, bool]:
    """The frame of a line, octets of its payload, and whether the line was cut."""
    if rest in _HEADERS:
        return ProtocolHeader(_HEADERS[rest]), None, False
    if rest.startswith("(EMPTY"):
        return Frame(channel), None, False
    truncated = rest.endswith(_TRUNCATED)
    text = rest.removesuffix(_TRUNCATED) if truncated else rest
    name, fields, end, cut = parse_composite(text)
    if cut and not truncated:
        raise NotationError(f"the line ends in the middle of {name}")
    body = None
    if name == "transfer" and not cut:
        payload = _PAYLOAD.match(text, end)
        body = int(payload[1]) if payload else 0
    return Frame(channel, performative_of(name, fields)), body, cut


def _redacted(item: WireItem) -> WireItem:
    if not isinstance(item, Frame) or item.performative is None:
        return item
    present = item.performative.present()
    zeros = {name: bytes(len(value)) for name, value in present.items()
             if name in SECRETS and isinstance(value, bytes)}  # fmt: skip
    return Frame(item.channel, type(item.performative)(**(present | zeros))) if zeros else item
