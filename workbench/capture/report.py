"""What an import found: connections, links, what was lost, assumed and cannot be known.

The report is plain data; ``text()`` is the page that a person reads. Names in it come from the
capture and are text: whoever shows them escapes them for where they are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from workbench.trace.schema import BROKER, CLIENT
from workbench.trace.words import counted, times

__all__ = [
    "UNKNOWN", "CaptureReport", "ConnectionReport", "DirectionReport", "ImportReport",
    "LinkReport", "protocol_name",
]  # fmt: skip

MAX_LINES = 50
"""Problems listed per connection and file; the rest is counted."""

MAX_ENDS = 3
"""Connections named in the one line about those that were not imported."""

UNKNOWN = "unknown"
"""What a connection speaks of which there is too little to tell."""

_NAMES = {
    "amqp-1.0": "AMQP 1.0",
    "amqp-0-9-1": "AMQP 0-9-1",
    "amqp-0-10": "AMQP 0-10",
    "tls": "TLS (encrypted; capture before encryption, or on the broker's plain port)",
    "empty": "no payload",
    "other": "another protocol",
    UNKNOWN: "an unknown protocol",
}


def protocol_name(protocol: str) -> str:
    """What a connection speaks, for a person."""
    return _NAMES.get(protocol, protocol)


@dataclass(slots=True, kw_only=True)
class LinkReport:
    """One link of a connection.

    Attributes:
        session: ordinal of the session on its connection, from 1.
        name: the link's name, or its handle where its attach is not in the capture.
        sender: the peer that sends messages over it, ``client`` or ``broker``.
        attach_no: 1, 2, ... each time the link is attached again.
        source, target: addresses, None where null or not seen.
        deliveries: messages seen on it; a message of several transfers counts once.
    """

    session: int | None
    name: str
    sender: str | None
    attach_no: int | None
    source: str | None = None
    target: str | None = None
    deliveries: int = 0

    def line(self) -> str:
        """One line of the report."""
        again = f", attach {self.attach_no}" if (self.attach_no or 1) > 1 else ""
        name = f"on {self.name}" if self.attach_no is None else repr(self.name)
        ends = f"{self.source or '-'} -> {self.target or '-'}"
        return (
            f"session {_known(self.session)} link {name} from {_known(self.sender)}{again}: "
            f"{ends}, {counted(self.deliveries, 'delivery', 'deliveries')}"
        )


@dataclass(slots=True, kw_only=True)
class DirectionReport:
    """One direction of a TCP connection: what came twice, late or never.

    Attributes:
        absent: the capture has no packet of it.
        checksum: of its octets.
        without_room: when the end that sends it had no room for what the other sends, its window
            being 0: from when to when, microseconds since the Unix epoch; None: to the end of the
            capture.
    """

    absent: bool = False
    octets: int = 0
    checksum: int = 0
    duplicates: int = 0
    out_of_order: int = 0
    gaps: int = 0
    lost_octets: int = 0
    frames: int = 0
    without_room: list[tuple[int, int | None]] = field(default_factory=list)

    def line(self) -> str:
        """One line of the report."""
        parts = [counted(self.frames, "frame"), counted(self.octets, "octet")]
        if self.duplicates:
            parts.append(counted(self.duplicates, "repeated segment"))
        if self.out_of_order:
            parts.append(f"{counted(self.out_of_order, 'segment')} out of order")
        if self.gaps:
            parts.append(
                f"{counted(self.lost_octets, 'octet')} lost in {counted(self.gaps, 'gap')}"
            )
        if self.without_room:
            parts.append(f"TCP window of 0 {times(len(self.without_room))}")
        return ", ".join(parts)


@dataclass(slots=True, kw_only=True)
class ConnectionReport:
    """One TCP connection.

    Attributes:
        name: ``c1``, ``c2``, ... in order of the first packet.
        client, broker: endpoints as ``address:port``.
        protocol: ``amqp-1.0``, ``amqp-0-9-1``, ``tls`` and so on; ``empty`` without payload,
            ``unknown`` if the capture has too little of it.
        imported: frames of it are in the trace.
        first_us, last_us: packet times, microseconds since the Unix epoch.
        ended_by: who was first to close or reset it (FIN, RST): `client` or `broker`; None: nobody.
        ended_us: when.
        assumptions: what was taken to be so without proof.
        guessed: that of them which says who the client is, if the ports alone tell; else empty.
        problems: damage found in it, with stream offsets.
        unknown: what cannot be known from this capture.
    """

    name: str
    client: str
    broker: str
    protocol: str = "empty"
    imported: bool = False
    first_us: int = 0
    last_us: int = 0
    ended_by: str | None = None
    ended_us: int | None = None
    from_client: DirectionReport = field(default_factory=DirectionReport)
    from_broker: DirectionReport = field(default_factory=DirectionReport)
    links: list[LinkReport] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    guessed: str = ""
    problems: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def unheard(self) -> str | None:
        """The peer that has said something, and no packet of it is there; None: neither is that."""
        for peer, side in ((CLIENT, self.from_client), (BROKER, self.from_broker)):
            if side.absent and side.lost_octets:
                return peer
        return None

    def lines(self, told: Collection[str] = ()) -> Iterator[str]:
        """The connection's part of the report; see `CaptureReport.lines`."""
        seconds = (self.last_us - self.first_us) / 1_000_000
        state = "" if self.imported else ", not imported"
        ends = f"{self.client} -> {self.broker}"
        yield f"{self.name}  {ends}  {self.protocol}{state}, {seconds:.3f} s"
        if self.protocol != "empty":
            yield f"    from client: {self.from_client.line()}"
            yield f"    from broker: {self.from_broker.line()}"
        for link in self.links:
            yield f"    {link.line()}"
        for title, texts in (
            ("assumed", self.assumptions),
            ("problem", self.problems),
            ("cannot be known", self.unknown),
        ):
            yield from _listed(title, [text for text in texts if text not in told], "    ")


@dataclass(slots=True, kw_only=True)
class CaptureReport:
    """What the import of one capture found.

    Attributes:
        file: name of the capture.
        run: name of its run in the trace.
        packets: packets read; of a text, lines.
        unit: `packet` or `line`.
        other_packets: packets that carry no TCP.
        skipped: packets that could not be used, by reason.
        cut: packets of TCP of which the capture has only the beginning.
        problems: damage of the files themselves.
        rows: rows made of it.
        begun_us: time of its first packet, microseconds since the Unix epoch.
        lasted_us: from its first packet to its last, or until it was stopped, if it says when; 0
            where packets have no times.
        redacted: secrets and message bodies were replaced.
        merged: the file was made of several captures, which may have ended at different times.
    """

    file: str
    run: str
    packets: int = 0
    unit: str = "packet"
    other_packets: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    cut: int = 0
    problems: list[str] = field(default_factory=list)
    rows: int = 0
    begun_us: int = 0
    lasted_us: int = 0
    redacted: bool = False
    merged: bool = False
    connections: list[ConnectionReport] = field(default_factory=list)

    @property
    def frames(self) -> int:
        """Frames imported in all."""
        return sum(c.from_client.frames + c.from_broker.frames for c in self.connections)

    @property
    def imported(self) -> list[ConnectionReport]:
        """The connections whose frames are in the trace."""
        return [connection for connection in self.connections if connection.imported]

    @property
    def still_open(self) -> frozenset[str]:
        """Names of the connections that nobody had ended when the capture did."""
        return frozenset(one.name for one in self.imported if one.ended_by is None)

    @property
    def ended(self) -> dict[str, tuple[int, str]]:
        """When the others were closed or reset, microseconds since the capture began; by whom."""
        return {
            one.name: (one.ended_us - self.begun_us, one.ended_by)
            for one in self.imported
            if one.ended_by is not None and one.ended_us is not None
        }

    @property
    def unheard(self) -> dict[str, str]:
        """By connection the peer that has said something, and no packet of it is there."""
        return {one.name: one.unheard for one in self.imported if one.unheard is not None}

    @property
    def without_room(self) -> dict[tuple[str, str], list[tuple[int, int | None]]]:
        """When nobody could send on a connection to an end without room, by connection and sender.

        From when to when, microseconds since the capture began; None: to its end.
        """
        return {
            (one.name, sender): [
                (begin - self.begun_us, None if end is None else end - self.begun_us)
                for begin, end in direction.without_room
            ]
            for one in self.imported
            for sender, direction in ((BROKER, one.from_client), (CLIENT, one.from_broker))
            if direction.without_room
        }

    @property
    def in_part(self) -> str:
        """How many packets were cut, and what to do about it; empty if none was."""
        what = f"{counted(self.cut, 'packet')} kept only in part"
        return f"{what}; capture whole packets (tcpdump -s 0)" if self.cut else ""

    @property
    def put_together(self) -> str:
        """That nobody knows when the capture of a connection ended; empty if it is known."""
        text = "Mergecap made it of several captures: a wait that lasts to its end is known only"
        return f"{text} up to the end of its own capture" if self.merged else ""

    @property
    def untimed(self) -> str:
        """That there are no times, and what stands for them; empty if there are."""
        return "it has no times: a microsecond stands for a frame" if self.unit == "line" else ""

    @property
    def seen_twice(self) -> str:
        """Connections that are one, captured on both sides of a proxy; empty if there are none.

        They lead to different brokers at the same time, and each end says the same octets on both.
        """
        pairs: list[str] = []
        seen: dict[tuple[object, ...], ConnectionReport] = {}
        for one in sorted(self.imported, key=lambda one: one.first_us):
            its = one.protocol, *(
                (way.frames, way.octets, way.checksum) for way in (one.from_client, one.from_broker)
            )  # fmt: skip
            before = seen.get(its)
            seen[its] = one
            if before and before.broker != one.broker and one.first_us <= before.last_us:
                pairs.append(f"{before.name} and {one.name}")
        if not pairs:
            return ""
        more = f" and {len(pairs) - MAX_ENDS} more pairs" if len(pairs) > MAX_ENDS else ""
        return (
            f"{', '.join(pairs[:MAX_ENDS])}{more} carry the same octets, as on both sides of a"
            " proxy: what is told of both happened once"
        )

    @property
    def remarks(self) -> list[str]:
        """What is not in the trace, or is damaged: a line each, with the file's name."""
        damaged = (
            f"{self.file}: {one.name}: {text}" for one in self.connections for text in one.problems
        )
        return [*filter(None, [self.others]), *self.problems, *damaged]

    @property
    def others(self) -> str:
        """The connections that are not in the trace, in one line; empty if all with octets are."""
        left = [one for one in self.connections if not one.imported and one.protocol != "empty"]
        if not left:
            return ""
        kinds: dict[str, list[str]] = {}
        for one in left:
            ends = kinds.setdefault(protocol_name(one.protocol), [])
            ends.append(f"{one.name} {one.client} -> {one.broker}")
        told = [
            f"{name}: {', '.join(ends[:MAX_ENDS])}"
            + (f" and {len(ends) - MAX_ENDS} more" if len(ends) > MAX_ENDS else "")
            for name, ends in sorted(kinds.items())
        ]
        return f"{self.file}: {counted(len(left), 'connection')} not imported; {'; '.join(told)}"

    def lines(self, told: Collection[str] = ()) -> Iterator[str]:
        """The capture's part of the report.

        Args:
            told: what is said elsewhere and left out here.
        """
        names = sorted({protocol_name(connection.protocol) for connection in self.imported})
        yield f"{self.file}: {counted(self.packets, self.unit)}, " + (
            f"{counted(self.frames, 'frame')} of {' and '.join(names)} on "
            f"{counted(len(self.imported), 'connection')} of {len(self.connections):,}"
        )
        if self.redacted:
            yield (
                "redacted: SASL responses and message bodies are zeros of the same length; "
                "names, addresses, properties and annotations are kept"
            )
        if self.other_packets:
            other = "of other protocols than TCP" if self.unit == "packet" else "without a frame"
            yield f"{counted(self.other_packets, self.unit)} {other}"
        for reason, count in sorted(self.skipped.items()):
            yield f"{counted(count, self.unit)} not used: {reason}"
        for text in (self.in_part, self.put_together, self.untimed, self.seen_twice):
            if text and text not in told:
                yield text
        yield from _listed("problem", [text for text in self.problems if text not in told])
        for connection in self.connections:
            yield from connection.lines(told)


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What an import found.

    Attributes:
        captures: one report per capture imported, in the order given.
        failures: one line per capture that could not be used.
    """

    captures: list[CaptureReport] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def frames(self) -> int:
        """Frames imported in all."""
        return sum(capture.frames for capture in self.captures)

    @property
    def rows(self) -> int:
        """Rows made in all."""
        return sum(capture.rows for capture in self.captures)

    @property
    def connections(self) -> list[ConnectionReport]:
        """Every connection of every capture."""
        return [each for capture in self.captures for each in capture.connections]

    def text(self) -> str:
        """The report as a page of text, ending with a newline."""
        lines = [line for capture in self.captures for line in capture.lines()]
        lines += [f"not imported: {failure}" for failure in self.failures]
        return "\n".join(lines) + "\n"


def _listed(title: str, texts: list[str], indent: str = "") -> Iterator[str]:
    for text in texts[:MAX_LINES]:
        yield f"{indent}{title}: {text}"
    if len(texts) > MAX_LINES:
        yield f"{indent}{title}: {len(texts) - MAX_LINES} more"


def _known(value: object) -> object:
    return "?" if value is None else value
