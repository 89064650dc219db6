"""Proton's frame log (`PN_TRACE_FRM=1`) as a trace.

A line tells the connection (an address in memory), the direction as the logging process saw it
(`->` sent, `<-` received), the channel and the performative:

    [0x55bc23e79ca0]: AMQP:FRAME:0 -> @flow(19) [next-incoming-id=0x0, ...]

What the log does not carry is null: octets, sizes of frames, packet times. `t_us` counts the
frames, so that they stay apart; the report says so. Proton cuts a line at 1,024 characters: the
fields before the cut are kept, and the report names those lines.

Values are read back as `flatten.plain` makes them: octets as `{"binary": hex}`, composites with
their `type`, described values with `descriptor` and `value`. Proton tells unsigned from signed
numbers (hexadecimal against decimal) and symbols from strings, but not their widths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from workbench.amqp10.frame import Frame, ProtocolHeader, WireItem
from workbench.amqp10.observer import ConnectionObserver
from workbench.capture.amqp10 import frame_record, link_reports
from workbench.capture.columns import RowColumns
from workbench.capture.decoder import DecodedFrame
from workbench.capture.report import CaptureReport, ConnectionReport
from workbench.trace.flatten import plain
from workbench.trace.rebuild import RebuildError, performative_of
from workbench.trace.schema import AMQP_1_0, BROKER, CLIENT
from workbench.trace.secret_fields import without_secret

__all__ = ["NotationError", "ProtonLog", "is_proton_log", "parse_composite"]

_LINE = re.compile(
    r"\[(?P<pointer>[^\[\]\s]++)\]\s*+:\s*+(?:(?:AMQP|SASL|SSL|IO)\s*+:FRAME:\s*+)?(?P<channel>\d{1,5})?\s*+"
    r"(?P<arrow><-|->)\s++(?P<rest>@.*|AMQP|SASL|TLS|EOS|\(EMPTY FRAME\)).*"
)
_TRUNCATED = " ... (truncated)"
_PAYLOAD = re.compile(r" \((\d{1,18})\) ")
_HEADERS = {"AMQP": 0, "TLS": 2, "SASL": 3}


def is_proton_log(head: bytes) -> bool:
    """Whether a file that begins so holds a frame log."""
    text = head.decode("utf-8", "replace")
    return any(_LINE.search(line) for line in text.splitlines())


@dataclass(slots=True, eq=False)
class _Logged:
    """One connection of the log."""

    report: ConnectionReport
    logger_is_client: bool
    observer: ConnectionObserver = field(default_factory=ConnectionObserver)
    closed: bool = False
    headers: set[tuple[str, str]] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)


class ProtonLog:
    """Makes rows of the lines of one log.

    Args:
        rows: takes the rows.
        report: of this file, to be filled in; `redacted` is taken from it.
    """

    def __init__(self, rows: RowColumns, report: CaptureReport) -> None:
        self.report = report
        report.unit = "line"
        self._rows = rows
        self._connections: list[_Logged] = []
        self._by_pointer: dict[str, _Logged] = {}

    def line(self, number: int, text: str) -> None:
        """Takes in a line; others than those of frames are passed over.

        Args:
            number: of the line, from 1.
            text: the line.
        """
        self.report.packets = number
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
            told = "what it says is no frame" if self.report.redacted else error
            connection.report.problems.append(f"line {number}: {told}")
            connection.observer.lost(from_client)
            return
        if cut:
            connection.report.problems.append(
                f"line {number}: Proton cut it at 1,024 characters; fields behind the cut are null"
            )
        self._frame(connection, item, body, from_client)

    def _connection(self, pointer: str, arrow: str, rest: str) -> _Logged:
        connection = self._by_pointer.get(pointer)
        again = connection is not None and (
            (arrow, rest) in connection.headers or (connection.closed and rest in _HEADERS)
        )
        if connection is None or again:
            connection = _begun(f"c{len(self._connections) + 1}", _logger_is_client(arrow, rest))
            self._connections.append(connection)
            self._by_pointer[pointer] = connection
            if rest not in _HEADERS:
                connection.observer.lost(True)
                connection.observer.lost(False)
                connection.report.assumptions.append(
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
        report = connection.report
        peer, way = (CLIENT, report.from_client) if from_client else (BROKER, report.from_broker)
        if self.report.redacted and isinstance(item, Frame):
            item = Frame(item.channel, without_secret(item.performative))
        scope = connection.observer.see(item, from_client)
        connection.unknown.update(scope.unknown)
        frame = DecodedFrame(0, None, item, None, body)
        number = self._rows.count
        self._rows.frame(frame_record(frame, scope, peer), AMQP_1_0, number, peer, report.name)
        way.frames += 1

    def finish(self) -> None:
        """The log is over."""
        for connection in self._connections:
            found = connection.report
            found.imported = found.from_client.frames + found.from_broker.frames > 0
            found.assumptions += connection.observer.assumptions
            found.links = link_reports(connection.observer)
            found.unknown = ["times, sizes of frames and octets: the log does not carry them"]
            found.unknown += sorted(name.replace("_", "-") for name in connection.unknown)
            self.report.connections.append(found)


def _begun(name: str, logger_is_client: bool) -> _Logged:
    client, broker = "the logging process", "its peer"
    if not logger_is_client:
        client, broker = broker, client
    report = ConnectionReport(name=name, client=client, broker=broker, protocol=AMQP_1_0)
    return _Logged(report, logger_is_client)


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


# -- values in Proton's notation

MAX_DEPTH = 64
MAX_DIGITS = 64
"""Characters of a whole number; the widest of AMQP, an `ulong`, has 20."""


class NotationError(ValueError):
    """This is not Proton's notation."""


class CutShortError(NotationError):
    """The text ends before the value does."""


_NUMBER = re.compile(r"0x[0-9a-fA-F]+|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
_WORD = re.compile(r"[^\s,=\[\]{}\"]*")
_FIELD = re.compile(r"([a-z][a-z0-9-]*)=")
_COMPOSITE = re.compile(r"@([a-z][a-z0-9-]*)\((\d+)\) \[")
_ARRAY = re.compile(r"@(?:<[^>]*>|PN_[A-Z0-9]+)\[")
"""Older versions name the type as their C enumeration does: `@PN_SYMBOL[`."""
_CLOSING = re.compile(r'"(?=, |[\]}= ]|$)')
"""The quote behind which a value ends: those versions print one that is data as it is."""
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})|\\(.)", re.DOTALL)
_WORDS: dict[str, Any] = {"null": None, "true": True, "false": False}


def parse_composite(text: str) -> tuple[str, dict[str, Any], int, bool]:
    """Reads a performative.

    Args:
        text: begins with `@`.

    Returns:
        Its name, the fields that are whole (names in snake_case), where it ends in the text,
        and whether the text was cut before that.

    Raises:
        NotationError: it is no performative.
    """
    match = _COMPOSITE.match(text)
    if match is None:
        raise NotationError("no performative")
    reader = _Reader(text)
    fields: dict[str, Any] = {}
    reader.at = match.end()
    try:
        reader.fields(fields, 1)
    except CutShortError:
        return match[1], fields, len(text), True
    return match[1], fields, reader.at, False


class _Reader:
    """Reads values from `text`, from `at` on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fields(self, fields: dict[str, Any], depth: int) -> None:
        """Named fields up to the closing bracket; those read before a cut stay in `fields`."""
        while not self._take("]"):
            match = _FIELD.match(self.text, self.at)
            if match is None:
                self._fail()
            self.at = match.end()
            value = self._value(depth)
            if self.at >= len(self.text):
                raise CutShortError  # the value may go on behind the cut
            fields[match[1].replace("-", "_")] = value
            self._separator("]")

    def _fail(self) -> NoReturn:
        if self.at >= len(self.text) - 32 and "=" not in self.text[self.at :]:
            raise CutShortError
        raise NotationError(f"cannot be read from character {self.at} on")

    def _take(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def _separator(self, closing: str) -> None:
        if not self._take(", ") and not self.text.startswith(closing, self.at):
            self._fail()

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotationError(f"nested more than {MAX_DEPTH} deep")
        text, at = self.text, self.at
        if at >= len(text):
            raise CutShortError
        first = text[at]
        if first == '"':
            return self._quoted().decode("utf-8", "replace")
        if first == "b" and text.startswith('b"', at):
            self.at += 1
            return {"binary": self._quoted().hex()}
        if first == ":":
            self.at += 1
            quoted = text.startswith('"', self.at)
            return self._quoted().decode("latin-1") if quoted else self._word()
        if first == "@":
            return self._described(depth)
        if first == "[":
            self.at += 1
            return self._list(depth)
        if first == "{":
            self.at += 1
            return self._map(depth)
        match = _NUMBER.match(text, at)
        if match is not None:
            self.at = match.end()
            return _number(match[0])
        word = self._word()
        return _WORDS.get(word, word)

    def _word(self) -> str:
        match = _WORD.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return match[0]

    def _quoted(self) -> bytes:
        start = self.at + 1
        closing = _CLOSING.search(self.text, start)
        if closing is None:
            raise CutShortError
        end, self.at = closing.start(), closing.end()
        octets = self.text[start:end].encode("utf-8", "surrogateescape")
        return _ESCAPE.sub(lambda m: bytes.fromhex(m[1].decode()) if m[1] else m[2], octets)

    def _described(self, depth: int) -> Any:
        match = _COMPOSITE.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            fields: dict[str, Any] = {"type": match[1]}
            self.fields(fields, depth + 1)
            return fields
        match = _ARRAY.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            return self._list(depth)
        self.at += 1
        descriptor = self._value(depth + 1)
        if not self._take(" "):
            raise CutShortError
        return {"descriptor": descriptor, "value": self._value(depth + 1)}

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while not self._take("]"):
            items.append(self._value(depth + 1))
            self._separator("]")
        return items

    def _map(self, depth: int) -> Any:
        pairs: list[tuple[Any, Any]] = []
        while not self._take("}"):
            key = self._value(depth + 1)
            if not self._take("="):
                raise CutShortError
            pairs.append((key, self._value(depth + 1)))
            self._separator("}")
        if all(isinstance(key, str) for key, _ in pairs) and len(dict(pairs)) == len(pairs):
            return dict(pairs)
        return {"map": [[key, value] for key, value in pairs]}


def _number(text: str) -> Any:
    hexadecimal = text.startswith("0x")
    if not hexadecimal and not text.lstrip("-").isdigit():
        return plain(float(text))
    if len(text) > MAX_DIGITS:  # no text in decimal can be made of it, for a table or an error
        raise NotationError(f"a number of {len(text):,} characters is no number of AMQP")
    return int(text, 16 if hexadecimal else 10)
