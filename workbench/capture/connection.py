"""One TCP connection of a capture: whose it is, what it speaks, and its frames as rows."""

from __future__ import annotations

from collections import Counter, deque

from workbench.amqp10.frame import Frame, ProtocolHeader
from workbench.amqp10.observer import ConnectionObserver
from workbench.amqp10.performatives import Open
from workbench.capture.boundary import AMQP_1_0, OTHER
from workbench.capture.packet import endpoint_text
from workbench.capture.redact import Redactor
from workbench.capture.report import ConnectionReport, DirectionReport, LinkReport
from workbench.capture.rows import RowMaker
from workbench.capture.splitter import MAX_FRAME, Cut, Found, FrameCutter, Trouble
from workbench.capture.tcp import Conversation, Direction, Piece
from workbench.trace.schema import BROKER, CLIENT

__all__ = ["AmqpConversation", "Side", "link_reports"]

KNOWN_PORTS = (5672, 5671)
"""Ports registered for AMQP, plain and over TLS."""

SMALLEST_LIMIT = 64 * 1024
"""A frame of this size is believed even where the peer's max-frame-size is smaller: a peer that
breaks the limit is worth seeing."""

MAX_TROUBLES = 1_000
"""Unreadable places that get a row, per connection; the rest is only counted."""

UNDECIDED = 1024 * 1024
"""Octets of a connection looked at before it counts as no AMQP 1.0."""

_BY_BROKER = frozenset({"sasl-mechanisms", "sasl-challenge", "sasl-outcome"})
_BY_CLIENT = frozenset({"sasl-init", "sasl-response"})


class Side:
    """One direction: its cutter, and when which octets could be read."""

    def __init__(self, direction: Direction, *, trusted: bool) -> None:
        self.direction = direction
        self.cutter = FrameCutter(direction.from_start, trusted=trusted)
        self.frames = 0
        self.without_payload = 0
        self.synced_by = 0
        self.first_kind: str | None = None
        self._times: deque[tuple[int, int]] = deque()
        self._fed = 0
        self._last_us = 0

    def take(self, piece: Piece) -> list[Found]:
        """What the next octets, or a gap, make readable."""
        cutter = self.cutter
        self._last_us = piece.t_us
        if self._times and cutter.offset == self._fed:
            # All before this piece is done with, so its time is that of all that comes of it.
            self._times.clear()
        self._fed += piece.gap or len(piece.data)
        found = cutter.gap(piece.gap) if piece.gap else cutter.feed(piece.data)
        if self._times or cutter.offset != self._fed:
            self._times.append((self._fed, piece.t_us))
        return found

    @property
    def is_between_frames(self) -> bool:
        """The next octet of this direction begins a frame."""
        return self.cutter.is_between_frames

    def passed(self, octets: int) -> None:
        """So many octets, of whole frames, were read by other means."""
        self._times.clear()
        self._fed += octets
        self.cutter.offset += octets

    def time_at(self, offset: int) -> int:
        """Packet time at which the stream could be read up to this offset."""
        times = self._times
        while len(times) > 1 and times[0][0] < offset:
            times.popleft()
        return times[0][1] if times else self._last_us


class AmqpConversation:
    """Follows one TCP connection and makes rows of its frames.

    Args:
        conversation: the connection.
        maker: makes and keeps the rows.
        port: the broker's port, if the caller named one; the connection then is AMQP 1.0.
    """

    def __init__(self, conversation: Conversation, maker: RowMaker, port: int | None) -> None:
        self.conversation = conversation
        self.name = f"c{conversation.number}"
        self._maker = maker
        self._port = port
        first, second = conversation.directions
        self._sides = (
            Side(first, trusted=port is not None),
            Side(second, trusted=port is not None),
        )
        self._client: bytes | None = conversation.opened_by
        self._observer: ConnectionObserver | None = None
        self._redactor = Redactor() if maker.redact else None
        self._assumptions: list[str] = []
        self._problems: list[str] = []
        self._unknown: Counter[str] = Counter()
        self._troubles = 0
        # Pieces seen before it was known what the connection speaks; None once that is known.
        self._undecided: list[Piece] | None = []
        self._undecided_octets = 0

    @property
    def observer(self) -> ConnectionObserver | None:
        """Follows the connection's frames; None until its first frame was found."""
        return self._observer

    @property
    def client(self) -> bytes | None:
        """The end that is the client; None while nobody knows."""
        return self._client

    def side_of(self, direction: Direction) -> Side:
        """The side of a direction."""
        first, second = self._sides
        return first if direction is first.direction else second

    def take(self, piece: Piece) -> None:
        """The next octets, or a gap, of one direction."""
        if self._observer is not None:
            side = self.side_of(piece.direction)
            found = side.take(piece)
            if found:
                self._emit(side, found)
        elif self._undecided is not None:
            self._probe(piece)

    def finish(self) -> None:
        """The capture is over."""
        if self._undecided is not None:
            self._decide([each for side in self._sides for each in side.cutter.finish()])
        if self._observer is not None:
            for side in self._sides:
                self._emit(side, side.cutter.finish())

    def _probe(self, piece: Piece) -> None:
        """Looks for the first frame; until it is found, nothing is known of whose it is.

        The pieces of both directions are kept meanwhile and then read again in their order.
        """
        assert self._undecided is not None
        self._undecided.append(piece)
        self._undecided_octets += len(piece.data)
        side = self.side_of(piece.direction)
        found = side.take(piece)
        kind = side.cutter.kind
        if found:
            self._decide(found)
        if self._observer is None and (
            kind not in (None, AMQP_1_0) or self._undecided_octets > UNDECIDED
        ):
            self._undecided = None

    def _decide(self, found: list[Found]) -> None:
        first = next((each for each in found if type(each) is Cut), None)
        if first is None:
            return
        pieces, self._undecided = self._undecided or [], None
        probes = self._sides
        self._sides = (
            Side(probes[0].direction, trusted=True),
            Side(probes[1].direction, trusted=True),
        )
        for side, probe in zip(self._sides, probes, strict=True):
            side.synced_by = probe.cutter.synced_by
        self._observer = ConnectionObserver()
        for piece in pieces:
            self.take(piece)

    def _emit(self, side: Side, found: list[Found]) -> None:
        if side.cutter.late and self._observer is not None:
            # What the other end said meanwhile came first here and did not come first there.
            side.cutter.late = False
            self._observer.lost(True)
            self._observer.lost(False)
        for each in found:
            if type(each) is Cut:
                if self._client is None:
                    self._recognise(side, each)
                self._frame(side, each)
            elif type(each) is Trouble:
                if self._client is None:
                    continue
                self._trouble(side, each)

    def _recognise(self, side: Side, cut: Cut) -> None:
        """The first frame of a connection without a SYN: it must be said who is the client."""
        me = side.direction.source
        peer = self.conversation.other(side.direction).source
        mine, theirs = int.from_bytes(me[-2:], "big"), int.from_bytes(peer[-2:], "big")
        kind = _kind(cut)
        if kind in _BY_CLIENT:
            self._client, why = me, f"it sends {kind}"
        elif kind in _BY_BROKER:
            self._client, why = peer, f"the other sends {kind}"
        elif self._port is not None and mine != theirs:
            self._client, why = (peer if mine == self._port else me), f"{self._port} is the broker"
        elif (mine in KNOWN_PORTS) != (theirs in KNOWN_PORTS):
            known = mine if mine in KNOWN_PORTS else theirs
            self._client = peer if known == mine else me
            why = f"{known} is a port of AMQP"
        elif kind == "protocol-header":
            self._client, why = me, "it sends the first protocol header"
        else:
            self._client = peer if mine < theirs else me
            why = "the lower port is taken as the broker's"
        self._assumptions.append(
            f"its SYN is not in the capture; {endpoint_text(self._client)} is the client: {why}"
        )

    def _frame(self, side: Side, cut: Cut) -> None:
        observer = self._observer
        from_client = side.direction.source == self._client
        peer = CLIENT if from_client else BROKER
        assert observer is not None
        if side.first_kind is None:
            side.first_kind = _kind(cut)
            if side.first_kind != "protocol-header":
                observer.lost(from_client)
        side.frames += 1
        raw, item = cut.raw, cut.item
        if self._redactor is not None:
            raw, item = self._redactor.frame(raw, item, from_client)
            cut = cut._replace(raw=raw, item=item)
        if raw is None:
            side.without_payload += 1
        elif type(item) is Frame and type(item.performative) is Open:
            largest = item.performative.max_frame_size
            first, second = self._sides
            other = second if side is first else first
            other.cutter.limit = min(MAX_FRAME, max(SMALLEST_LIMIT, largest or MAX_FRAME))
        scope = observer.see(item, from_client)
        if scope.unknown:
            self._unknown.update(scope.unknown)
        self._maker.frame(cut, side.time_at(cut.offset + cut.size), peer, self.name, scope)

    def _trouble(self, side: Side, trouble: Trouble) -> None:
        assert self._observer is not None
        from_client = side.direction.source == self._client
        peer = CLIENT if from_client else BROKER
        self._observer.lost(from_client)
        self._troubles += 1
        if self._troubles > MAX_TROUBLES:
            return
        detail = f": {trouble.detail}" if trouble.detail and not self._maker.redact else ""
        self._problems.append(
            f"from {peer}, stream offset {trouble.offset}: {trouble.text}{detail}"
        )
        when = side.time_at(trouble.offset + trouble.octets)
        self._maker.trouble(trouble, when, peer, self.name)

    # -- report

    def report(self) -> ConnectionReport:
        """What was found of this connection."""
        first, second = self._sides
        conversation = self.conversation
        guess = self._client or _lower_port_last(conversation)
        client, broker = (first, second) if first.direction.source == guess else (second, first)
        report = ConnectionReport(
            name=self.name,
            client=endpoint_text(client.direction.source),
            broker=endpoint_text(broker.direction.source),
            protocol=self._protocol(),
            imported=self._observer is not None,
            first_us=conversation.first_us,
            last_us=conversation.last_us,
            from_client=_direction_report(client),
            from_broker=_direction_report(broker),
            assumptions=list(self._assumptions),
            problems=list(self._problems),
        )
        if self._troubles > MAX_TROUBLES:
            report.problems.append(f"{self._troubles - MAX_TROUBLES} more places without rows")
        if self._observer is not None:
            self._explain(report, ((client, CLIENT), (broker, BROKER)))
        return report

    def _explain(self, report: ConnectionReport, sides: tuple[tuple[Side, str], ...]) -> None:
        assert self._observer is not None
        for side, peer in sides:
            cutter = side.cutter
            if side.synced_by or cutter.synced_by:
                frames = side.synced_by or cutter.synced_by
                report.assumptions.append(
                    f"from {peer}: no protocol header; {frames} valid frames in a row "
                    f"make it AMQP 1.0, {cutter.skipped} octets before them are passed over"
                )
            if cutter.became is not None:
                what = "encrypted" if cutter.became == "tls" else "not AMQP 1.0"
                report.unknown.append(
                    f"from {peer}: from stream offset {cutter.offset} on it is "
                    f"{cutter.became}, {what}"
                )
            if side.without_payload:
                report.unknown.append(
                    f"from {peer}: payload of {side.without_payload} transfers, "
                    "which the capture kept only in part"
                )
        report.assumptions.extend(self._observer.assumptions)
        for name, count in sorted(self._unknown.items()):
            report.unknown.append(f"{name.replace('_', '-')} at {count} frames")
        report.links = link_reports(self._observer)

    def _protocol(self) -> str:
        if self._observer is not None:
            return AMQP_1_0
        kinds = [side.cutter.kind or side.cutter.guess for side in self._sides]
        for kind in kinds:
            if kind not in (None, OTHER, AMQP_1_0):
                return str(kind)
        octets = sum(side.direction.octets + side.direction.lost_octets for side in self._sides)
        return OTHER if octets else "empty"


def link_reports(observer: ConnectionObserver) -> list[LinkReport]:
    """The links that an observer has seen, in order of first appearance."""
    return [
        LinkReport(
            session=link.session,
            name=link.name,
            sender=_peer(link.sender_is_client),
            attach_no=link.attach_no,
            source=link.source,
            target=link.target,
            deliveries=link.deliveries,
        )
        for link in observer.links
    ]


def _peer(is_client: bool | None) -> str | None:
    return None if is_client is None else CLIENT if is_client else BROKER


def _kind(cut: Cut) -> str:
    if isinstance(cut.item, ProtocolHeader):
        return "protocol-header"
    performative = cut.item.performative
    return "heartbeat" if performative is None else performative.NAME


def _lower_port_last(conversation: Conversation) -> bytes:
    """The end with the higher port, for the lack of better knowledge."""
    return max(conversation.ends, key=lambda end: end[-2:])


def _direction_report(side: Side) -> DirectionReport:
    direction = side.direction
    return DirectionReport(
        octets=direction.octets,
        duplicates=direction.duplicates,
        out_of_order=direction.out_of_order,
        gaps=direction.gaps,
        lost_octets=direction.lost_octets,
        frames=side.frames,
    )
