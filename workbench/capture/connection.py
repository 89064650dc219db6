"""One TCP connection of a capture: whose it is, what it speaks, and its frames as rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

from workbench.capture.amqp010 import Amqp010Decoder
from workbench.capture.amqp091 import Amqp091Decoder
from workbench.capture.amqp10 import Amqp10Decoder
from workbench.capture.columns import RowColumns
from workbench.capture.decoder import (
    OTHER,
    DecodedFrame,
    Decoder,
    Found,
    Unreadable,
    protocol_of,
)
from workbench.capture.packet import endpoint_text
from workbench.capture.report import UNKNOWN, ConnectionReport, DirectionReport
from workbench.capture.tcp import Conversation, Direction, StreamSegment
from workbench.trace.flatten import PROTOCOL_HEADER
from workbench.trace.schema import AMQP_0_9_1, AMQP_0_10, AMQP_1_0, BROKER, CLIENT

__all__ = ["DECODERS", "AmqpConnection"]

DECODERS: dict[str, Callable[..., Decoder]] = {
    AMQP_1_0: Amqp10Decoder,
    AMQP_0_9_1: Amqp091Decoder,
    AMQP_0_10: Amqp010Decoder,
}
"""What reads a protocol, by the protocol's name in the schema. Connections of others are named."""

KNOWN_PORTS = (5672, 5671)
"""Ports registered for AMQP, plain and over TLS."""

MAX_TROUBLES = 1_000
"""Unreadable places that the report tells of, per connection; the rest is only counted there."""

UNDECIDED = 1024 * 1024
"""Octets of a connection looked at before it counts as one that nobody here can read."""


class _Stream:
    """One direction: what stands first in it, and when which octets could be read."""

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.frames = 0
        # What it speaks by its first octets, once there are enough of them.
        self.protocol: str | None = None
        self._gap = False
        self._head = b""
        self._times: list[tuple[int, int]] = []  # no deque: an empty one takes 760 octets
        self._fed = 0
        self._last_us = 0

    def look(self, segment: StreamSegment) -> None:
        """Looks at what stands first, until it is known what that is."""
        if self.protocol is None:
            if segment.gap:
                self._head, self._gap = b"", True
            self._head += segment.data
            if self._head:
                self.protocol = protocol_of(self._head)

    @property
    def is_whole(self) -> bool:
        """The octets that stand first here are the first of the direction."""
        return self.direction.from_start and not self._gap

    def read(self, decoder: Decoder, side: int, segment: StreamSegment) -> list[Found]:
        """What the next octets, or a gap, make readable."""
        self._last_us = segment.t_us
        times, fed = self._times, self._fed
        if times and decoder.position(side) == fed:
            # All before this segment is done with, so its time is that of all that comes of it.
            times.clear()
        self._fed = fed = fed + (segment.gap or len(segment.data))
        found = _fed(decoder, side, segment)
        if times or decoder.position(side) != fed:
            times.append((fed, segment.t_us))
        return found

    def time_at(self, offset: int) -> int:
        """Packet time at which the stream could be read up to this offset."""
        times = self._times
        if len(times) > 1:
            del times[: min(bisect_left(times, (offset,)), len(times) - 1)]
        return times[0][1] if times else self._last_us

    def report(self, ended_us: int | None) -> DirectionReport:
        """What was found in it.

        Args:
            ended_us: when its connection was over; None if the capture ended before.
        """
        direction = self.direction
        since = direction.without_room_since
        still = [] if since is None else [(since, ended_us)]
        return DirectionReport(
            absent=not direction.shown,
            octets=direction.octets,
            checksum=direction.checksum,
            duplicates=direction.duplicates,
            out_of_order=direction.out_of_order,
            gaps=direction.gaps,
            lost_octets=direction.lost_octets,
            frames=self.frames,
            without_room=[*direction.without_room, *still],
        )


class AmqpConnection:
    """Follows one TCP connection and makes rows of its frames.

    Its first octets choose the decoder. Where the capture lacks them each decoder is tried, and the
    first that finds a frame reads all of it once more from the beginning.

    Args:
        conversation: the connection.
        rows: takes the rows.
        port: the broker's port, if the caller named one: frames need no proof then.
        redact: take secrets out.
        ahead: gives the client's end as the rest of the capture tells it, and why; None if it
            does not.

    Attributes:
        client: the client's end; None until it is known.
        protocol: what it speaks, as the schema names it; None until it is known.
    """

    def __init__(
        self, conversation: Conversation, rows: RowColumns, port: int | None, *, redact: bool,
        ahead: Callable[[Conversation], tuple[bytes, str] | None],
    ) -> None:  # fmt: skip
        self.conversation = conversation
        self.name = f"c{conversation.number}"
        self._rows = rows
        self._port = port
        self._redact = redact
        self._ahead = ahead
        first, second = conversation.directions
        self._streams = (_Stream(first), _Stream(second))
        self.client: bytes | None = conversation.opened_by
        self.protocol: str | None = None
        self._decoder: Decoder | None = None
        self._assumptions: list[str] = []
        self._guessed = ""
        self._problems: list[tuple[_Stream, str]] = []
        self._troubles = 0
        # What tries to read it, and what they have read, until one of them finds a frame; None
        # before the first octet: until then it may show that the capture has the beginning.
        self._candidates: dict[str, Decoder] | None = None
        self._undecided: list[StreamSegment] = []
        self._undecided_octets = 0

    def take(self, segment: StreamSegment) -> None:
        """The next octets, or a gap, of one direction."""
        side = 0 if segment.direction is self._streams[0].direction else 1
        if self._decoder is not None:
            found = self._streams[side].read(self._decoder, side, segment)
            if found:
                self._emit(side, found)
        else:
            if self._candidates is None:
                known = self._port is not None
                self._candidates = {
                    name: make(*self._from_start(), known=known, redact=self._redact)
                    for name, make in DECODERS.items()
                }
            if self._candidates:
                self._candidates = self._try(side, segment, self._candidates)

    def finish(self) -> None:
        """The capture is over."""
        for name, decoder in (self._candidates or {}).items():
            if _has_frame(decoder.finish(0) + decoder.finish(1)):
                self._decide(name, decoder)
                break
        if self._decoder is not None:
            for side in (0, 1):
                self._emit(side, self._decoder.finish(side))

    def _from_start(self) -> tuple[bool, bool]:
        first, second = self._streams
        return first.direction.from_start, second.direction.from_start

    def _try(
        self, side: int, segment: StreamSegment, candidates: dict[str, Decoder]
    ) -> dict[str, Decoder]:
        """Looks for the first frame; until it is found, nothing is known of whose it is.

        The segments of both directions are kept meanwhile and then read again in their order.

        Returns:
            What may still be able to read it.
        """
        stream = self._streams[side]
        stream.look(segment)
        if stream.is_whole and stream.protocol is not None:
            speaks = stream.protocol
            candidates = {speaks: candidates[speaks]} if speaks in candidates else {}
        self._undecided.append(segment)
        self._undecided_octets += len(segment.data)
        for name, decoder in candidates.items():
            if _has_frame(_fed(decoder, side, segment)):
                self._decide(name, decoder)
                return {}
        if self._undecided_octets > UNDECIDED:
            candidates = {}
        if not candidates:
            self._undecided = []
        return candidates

    def _decide(self, name: str, decoder: Decoder) -> None:
        segments, self._undecided = self._undecided, []
        self.protocol, self._decoder = name, decoder.restarted(*self._from_start())
        for segment in segments:
            self.take(segment)

    def _emit(self, side: int, found: Iterable[Found]) -> None:
        decoder, stream = self._decoder, self._streams[side]
        assert decoder is not None
        assert self.protocol is not None
        for each in found:
            if type(each) is DecodedFrame:
                if self.client is None:
                    self._recognise(side, decoder, each)
                from_client = stream.direction.source == self.client
                stream.frames += 1
                when = stream.time_at(each.offset + (each.size or 0))
                self._rows.frame(
                    decoder.observe(side, each, from_client), self.protocol, when,
                    CLIENT if from_client else BROKER, self.name,
                )  # fmt: skip
            elif type(each) is Unreadable and self.client is not None:
                self._unreadable(stream, decoder, each)

    def _recognise(self, side: int, decoder: Decoder, frame: DecodedFrame) -> None:
        """The first frame of a connection without a SYN: it must be said who is the client."""
        me = self._streams[side].direction.source
        peer = self._streams[1 - side].direction.source
        mine, theirs = int.from_bytes(me[-2:], "big"), int.from_bytes(peer[-2:], "big")
        guessed = False
        kind, author = decoder.kind(frame), decoder.author(frame)
        if author == CLIENT:
            self.client, why = me, f"it sends {kind}"
        elif author == BROKER:
            self.client, why = peer, f"the other sends {kind}"
        elif self._port is not None and mine != theirs:
            self.client, why = (peer if mine == self._port else me), f"{self._port} is the broker"
        elif (mine in KNOWN_PORTS) != (theirs in KNOWN_PORTS):
            known = mine if mine in KNOWN_PORTS else theirs
            self.client = peer if known == mine else me
            why = f"{known} is a port of AMQP"
        elif (shown := self._ahead(self.conversation)) is not None:
            self.client, why = shown
        elif kind == PROTOCOL_HEADER:
            self.client, why = me, "it sends the first protocol header"
        else:
            self.client = peer if mine < theirs else me
            guessed = True
            why = "the lower port is taken as the broker's (--port names another)"
        told = f"its SYN is not in the capture; {endpoint_text(self.client)} is the client: {why}"
        self._assumptions.append(told)
        if guessed:
            self._guessed = told

    def _unreadable(self, stream: _Stream, decoder: Decoder, place: Unreadable) -> None:
        from_client = stream.direction.source == self.client
        peer = CLIENT if from_client else BROKER
        decoder.lost(from_client)
        self._troubles += 1
        if self._troubles <= MAX_TROUBLES:
            told = f": {place.detail}" if place.detail and not self._redact else ""
            text = f"from {peer}, stream offset {place.offset}: {place.text}{told}"
            self._problems.append((stream, text))
        when = stream.time_at(place.offset + place.octets)
        self._rows.unreadable(place, when, peer, self.name)

    def report(self) -> ConnectionReport:
        """What was found of this connection."""
        first, second = self._streams
        conversation = self.conversation
        # For the lack of better knowledge the end with the higher port.
        guess = self.client or max(conversation.ends, key=lambda end: end[-2:])
        client_first = first.direction.source == guess
        client, broker = (first, second) if client_first else (second, first)
        ended_by, ended_us = conversation.ended_by or (None, None)
        report = ConnectionReport(
            name=self.name,
            client=endpoint_text(client.direction.source),
            broker=endpoint_text(broker.direction.source),
            protocol=self.protocol or self._foreign(),
            imported=self._decoder is not None,
            first_us=conversation.first_us,
            last_us=conversation.last_us,
            ended_by=None if ended_by is None else CLIENT if ended_by == guess else BROKER,
            ended_us=ended_us,
            from_client=client.report(ended_us),
            from_broker=broker.report(ended_us),
            assumptions=list(self._assumptions),
            guessed=self._guessed,
            problems=[text for stream, text in self._problems if stream.direction.shown],
        )
        if report.unheard is not None:
            report.problems.append(
                f"from {report.unheard}: nothing that it said is in the capture; capture both"
                " directions"
            )
        if self._troubles > MAX_TROUBLES:
            report.problems.append(f"{self._troubles - MAX_TROUBLES} more places")
        if self._decoder is not None:
            self._decoder.explain(report, (CLIENT, BROKER) if client_first else (BROKER, CLIENT))
        return report

    def _foreign(self) -> str:
        """What a connection speaks of which no frame was read."""
        for stream in self._streams:
            if stream.protocol not in (None, OTHER, *DECODERS):
                return str(stream.protocol)
        if any(stream.is_whole and stream.protocol is not None for stream in self._streams):
            return OTHER
        ends = self.conversation.directions
        return UNKNOWN if any(end.octets or end.lost_octets for end in ends) else "empty"


def _fed(decoder: Decoder, side: int, segment: StreamSegment) -> list[Found]:
    """What a decoder makes of the next octets, or of a gap."""
    return decoder.gap(side, segment.gap) if segment.gap else decoder.feed(side, segment.data)


def _has_frame(found: Iterable[Found]) -> bool:
    return any(type(each) is DecodedFrame for each in found)
