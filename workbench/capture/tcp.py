"""TCP reassembly: from segments in capture order to two streams of octets per connection.

The rules of this file:

* Octets leave in stream order, each segment with the time of the packet that made it readable.
* The first copy of an octet wins; repeated ones are counted and dropped.
* A hole shows in a segment that lies behind it, or in an acknowledgement of octets not yet seen. It
  is waited for until it is proved lost: it was acknowledged and `PATIENCE` further segments of
  the connection did not bring it, or more than `buffer_limit` octets wait because of it, or the
  capture ended. Then the hole is handed on as a gap.
* While one direction has a hole the other waits too: what it says may answer what is missing,
  and a gap has to stand before it. So do all other connections, for what waits is of an earlier
  time than what they bring: else one lost packet would look like a clock that went back.
* Octets that come behind their acknowledgement were there before it, and stand there.
* A SYN with another initial number is another connection, whatever its ports were before.
* Octets far behind the next ones are of another connection, too, whose SYN is not there: nobody
  sends again what is so old. Far ahead they are that once the connection has ended.
* A direction whose first packet is no SYN begins wherever its first segment begins. One that shows
  none begins where the other first acknowledges it: a capture may have one direction alone.
* An end that has no room says so by a window of 0 [RFC 9293, 3.8.6]. It has room again when it says
  so, or when the other sends more than the octet by which it may ask.

Sequence numbers are 32 bits and wrap (RFC 9293, 3.4), compared by the same serial arithmetic as
AMQP's own; stream offsets are plain integers from 0.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from operator import attrgetter
from typing import NamedTuple
from zlib import crc32

from msgspec import Struct
from msgspec.structs import astuple, replace

from workbench import serial
from workbench.capture.packet import Segment
from workbench.trace.packet_out import ACK, FIN, RST, SYN

__all__ = ["BUFFER_LIMIT", "Conversation", "Direction", "Reassembler", "StreamSegment"]

BUFFER_LIMIT = 4 * 1024 * 1024
"""Octets of a connection held because of a hole before the hole counts as lost."""

PATIENCE = 64
"""Segments of a connection seen after a hole was acknowledged before it counts as lost."""

MAX_UNSEEN = 16 * 1024 * 1024
"""An acknowledgement further ahead than this is not believed."""

MAX_WAITING = 8192
"""Segments held per direction behind a hole, whatever their size; and of other connections."""


class StreamSegment(Struct, frozen=True):
    """Octets of one direction, in order.

    Attributes:
        direction: the stream they belong to.
        t_us: packet time at which they could be read, microseconds since the epoch.
        data: the octets; may be empty when there is only a gap.
        gap: octets that are lost for good just before ``data``.
        place: order among the segments of a connection: the number of the packet that made them
            readable, and for a gap a little less than that of the packet that showed it.
    """

    direction: Direction
    t_us: int
    data: bytes
    gap: int
    place: float


class _Waiting(NamedTuple):
    offset: int
    packet: int
    t_us: int
    data: bytes
    missing: int


@dataclass(slots=True, eq=False)
class Direction:
    """One direction of a connection.

    Attributes:
        conversation: the connection.
        source: the end that sends (address and port octets).
        next_offset: octets of this stream handed on so far, gaps included.
        shown: a packet of it was seen; until then it stands where the other acknowledges it.
        duplicates: segments that brought nothing new.
        out_of_order: segments that came after one that belongs behind them.
        checksum: of the octets handed on.
        gaps: holes handed on as lost.
        lost_octets: octets in those holes.
        from_start: the SYN was seen, so offset 0 is the first octet ever sent.
        waiting: segments that lie behind a hole, by offset.
        acks: acknowledgements of octets not seen so far: offset, packet and its time; rising.
        without_room: when this end had none, from when to when.
        without_room_since: since when it has none; None if it has some.
    """

    conversation: Conversation
    source: bytes
    next_offset: int = 0
    shown: bool = False
    octets: int = 0
    checksum: int = 0
    duplicates: int = 0
    out_of_order: int = 0
    gaps: int = 0
    lost_octets: int = 0
    from_start: bool = False
    initial: int | None = None
    next_seq: int | None = None
    acks: list[tuple[int, int, int]] = field(default_factory=list)
    finished: bool = False
    waiting: list[_Waiting] = field(default_factory=list)
    waiting_octets: int = 0
    patience: int = PATIENCE
    last_place: float = 0
    without_room: list[tuple[int, int]] = field(default_factory=list)
    without_room_since: int | None = None

    @property
    def proved(self) -> bool:
        """Its first hole is acknowledged."""
        acks, waiting = self.acks, self.waiting
        return bool(acks) and (not waiting or acks[-1][0] >= waiting[0].offset)

    def room(self, t_us: int, *, there: bool) -> None:
        """It has some, or none, from now on."""
        if there and self.without_room_since is not None:
            self.without_room.append((self.without_room_since, t_us))
            self.without_room_since = None
        elif not there and self.without_room_since is None:
            self.without_room_since = t_us


@dataclass(slots=True, eq=False)
class Conversation:
    """One TCP connection.

    Attributes:
        number: from 1, in order of the first packet.
        first_us, last_us: packet times, microseconds since the epoch.
        opened_by: the end that sent the SYN; None when the capture begins later.
        ended_by: the end that was first to send FIN or RST, and when; None before.
        directions: the stream of the end that was seen first, then the other's.
    """

    number: int
    first_us: int
    last_us: int
    ends: tuple[bytes, bytes]
    opened_by: bytes | None = None
    ended_by: tuple[bytes, int] | None = None
    held: list[StreamSegment] = field(default_factory=list)
    held_octets: int = 0
    directions: tuple[Direction, Direction] = field(init=False)

    def __post_init__(self) -> None:
        self.directions = (Direction(self, self.ends[0]), Direction(self, self.ends[1]))

    @property
    def incomplete(self) -> bool:
        """A direction has a hole that may still be filled."""
        return any(side.waiting or side.acks for side in self.directions)

    @property
    def lost(self) -> bool:
        """A hole of it is acknowledged: what is missing will hardly come."""
        return any(side.proved for side in self.directions)

    def other(self, direction: Direction) -> Direction:
        """The opposite direction."""
        first, second = self.directions
        return second if direction is first else first


class Reassembler:
    """Puts the segments of any number of connections in order.

    Args:
        buffer_limit: octets held per direction behind a hole.

    Attributes:
        conversations: every connection seen, in order of first packet.
    """

    def __init__(self, buffer_limit: int = BUFFER_LIMIT) -> None:
        self.conversations: list[Conversation] = []
        self._buffer_limit = buffer_limit
        self._current: dict[bytes, Direction] = {}
        # Connections with a hole, each with the packet that showed it, and what waits for them.
        self._holes: dict[Conversation, int] = {}
        self._behind: list[tuple[float, int, StreamSegment]] = []
        self._behind_octets = 0
        self._put = 0

    def feed(self, segment: Segment, t_us: int, packet: int) -> list[StreamSegment]:
        """What can be read now that this segment has come, in order of `place`."""
        source, destination, seq, ack, flags, payload, missing, window = astuple(segment)
        direction = self._current.get(source + destination)
        ready: list[StreamSegment] = []
        if direction is None:
            direction = self._open(source, destination, t_us)
        elif _is_new(direction, seq) if flags & SYN else payload and _is_foreign(direction, seq):
            ready.extend(self._flush(direction.conversation))
            direction = self._open(source, destination, t_us)
        conversation = direction.conversation
        if t_us > conversation.last_us:
            conversation.last_us = t_us
        if flags & SYN:
            self._begin(direction, seq, flags)
            seq = serial.add(seq, 1)
        if not direction.shown:
            direction.shown = True
            if not direction.next_offset:  # the capture has it from here on
                direction.next_seq, direction.acks = seq, []
        had = direction.octets
        # What a reset brings is no part of the stream but may tell its reason [RFC 9293, 3.5.3].
        if (payload or missing) and not flags & RST:
            if seq == direction.next_seq and not direction.waiting:
                since_us, place = _there(direction, t_us, packet)
                self._take(direction, since_us, payload, missing, place, ready)
                _forget(direction)
            else:
                self._place(direction, seq, t_us, payload, missing, packet, ready)
        first, second = conversation.directions
        other = second if direction is first else first
        if not window or direction.without_room_since is not None:
            direction.room(t_us, there=bool(window or flags & (SYN | RST)))
        if other.without_room_since is not None and direction.octets - had > 1:
            other.room(t_us, there=True)
        if flags & ACK and other.next_seq is None:
            other.next_seq = ack
        elif flags & ACK and ack != other.next_seq:
            # A FIN takes a sequence number and is no octet; one that the capture lacks is answered
            # by a FIN.
            extra = 1 if other.finished or flags & FIN else 0
            self._acknowledged(other, ack, extra, t_us, packet)
        if flags & FIN:
            direction.finished = True
        if flags & (FIN | RST) and conversation.ended_by is None:
            conversation.ended_by = source, t_us
        if first.waiting or second.waiting or conversation.held or first.acks or second.acks:
            ready = self._hold(conversation, ready)
            if conversation.incomplete:
                self._holes.setdefault(conversation, packet)
                return self._in_turn(ready)
        if self._holes or self._behind:
            self._holes.pop(conversation, None)
            return self._in_turn(ready)
        return ready

    def finish(self) -> list[StreamSegment]:
        """The capture is over: hands on what waited behind holes, as gaps."""
        for conversation in self.conversations:
            self._wait(self._flush(conversation))
        return self._in_turn([])

    def _wait(self, ready: Iterable[StreamSegment]) -> None:
        for one in ready:
            self._put += 1
            self._behind_octets += len(one.data)
            heappush(self._behind, (one.place, self._put, one))

    def _in_turn(self, ready: Iterable[StreamSegment]) -> list[StreamSegment]:
        """Keeps what lies behind the first hole of any connection; gives what lies before it."""
        self._wait(ready)
        passed = False
        while (
            self._holes
            and not passed
            and (self._behind_octets > self._buffer_limit or len(self._behind) > MAX_WAITING)
        ):
            first = next(iter(self._holes))
            if first.lost:
                self._wait(self._flush(first))
            else:
                passed = True  # what is late may still come, and the others have waited enough
        bound = inf if passed or not self._holes else next(iter(self._holes.values())) - 0.5
        found = []
        while self._behind and self._behind[0][0] < bound:
            found.append(heappop(self._behind)[2])
            self._behind_octets -= len(found[-1].data)
        return found

    def _hold(self, conversation: Conversation, ready: list[StreamSegment]) -> list[StreamSegment]:
        """Keeps both directions back while there is a hole in one of them."""
        held = conversation.held
        held.extend(ready)
        conversation.held_octets += sum(len(one.data) for one in ready)
        for side in conversation.directions:
            if side.waiting or side.acks:
                self._lose_patience(side)
        return [] if conversation.incomplete else self._release(conversation)

    def _release(self, conversation: Conversation) -> list[StreamSegment]:
        ready, conversation.held, conversation.held_octets = conversation.held, [], 0
        ready.sort(key=attrgetter("place"))
        return ready

    def _open(self, source: bytes, destination: bytes, t_us: int) -> Direction:
        number = len(self.conversations) + 1
        conversation = Conversation(number, t_us, t_us, (source, destination))
        self.conversations.append(conversation)
        direction, other = conversation.directions
        self._current[source + destination] = direction
        self._current[destination + source] = other
        return direction

    def _begin(self, direction: Direction, seq: int, flags: int) -> None:
        conversation = direction.conversation
        if direction.initial is None:
            direction.initial = seq
            direction.from_start = direction.next_offset == direction.octets
        if conversation.opened_by is None:
            other = conversation.other(direction).source
            conversation.opened_by = other if flags & ACK else direction.source

    def _take(
        self,
        direction: Direction,
        t_us: int,
        payload: bytes,
        missing: int,
        place: float,
        ready: list[StreamSegment],
    ) -> None:
        """Hands on octets that begin exactly at the stream's next offset."""
        size = len(payload)
        direction.last_place = place
        assert direction.next_seq is not None
        direction.next_seq = serial.add(direction.next_seq, size + missing)
        direction.next_offset += size + missing
        direction.octets += size
        direction.checksum = crc32(payload, direction.checksum)
        if payload:
            ready.append(StreamSegment(direction, t_us, payload, 0, place))
        if missing:
            # Cut by the snapshot length: a retransmission would be cut at the same place.
            direction.gaps += 1
            direction.lost_octets += missing
            ready.append(StreamSegment(direction, t_us, b"", missing, place))

    def _place(
        self,
        direction: Direction,
        seq: int,
        t_us: int,
        payload: bytes,
        missing: int,
        packet: int,
        ready: list[StreamSegment],
    ) -> None:
        """Keeps a segment that is not the next one, or trims one that repeats old octets."""
        assert direction.next_seq is not None
        try:
            distance = serial.diff(seq, direction.next_seq)
        except serial.SerialError:
            return
        if distance > 0:
            offset = direction.next_offset + distance
            if not direction.waiting:
                direction.patience = PATIENCE
            elif offset < direction.waiting[-1].offset:
                direction.out_of_order += 1
            insort(direction.waiting, _Waiting(offset, packet, t_us, payload, missing))
            direction.waiting_octets += len(payload)
            return
        if len(payload) + missing + distance <= 0:
            direction.duplicates += 1
            return
        if direction.waiting:
            direction.out_of_order += 1
        if distance:
            direction.duplicates += 1
            missing = min(missing, len(payload) + missing + distance)
            payload = payload[-distance:]
        t_us, place = _there(direction, t_us, packet)
        self._take(direction, t_us, payload, missing, place, ready)
        self._drain(direction, t_us, place, ready)
        _forget(direction)

    def _drain(
        self, direction: Direction, t_us: int, place: float, ready: list[StreamSegment]
    ) -> None:
        """Hands on what waited and now is next; it was not readable before this packet."""
        waiting = direction.waiting
        while waiting and waiting[0].offset <= direction.next_offset:
            item = waiting.pop(0)
            direction.waiting_octets -= len(item.data)
            old = direction.next_offset - item.offset
            if old >= len(item.data) + item.missing:
                direction.duplicates += 1
                continue
            missing = min(item.missing, len(item.data) + item.missing - old)
            t_us, place = max(t_us, item.t_us), max(place, item.packet)
            self._take(direction, t_us, item.data[old:], missing, place, ready)

    def _acknowledged(
        self, direction: Direction, ack: int, extra: int, t_us: int, packet: int
    ) -> None:
        """Notes an acknowledgement of octets that have not been seen."""
        if direction.next_seq is None:
            return
        try:
            ahead = serial.diff(ack, direction.next_seq) - extra
        except serial.SerialError:
            return
        offset, acks = direction.next_offset + ahead, direction.acks
        if 0 < ahead <= MAX_UNSEEN and (not acks or acks[-1][0] < offset):
            if not acks and not direction.waiting:
                direction.patience = PATIENCE
            acks.append((offset, packet, t_us))

    def _lose_patience(self, direction: Direction) -> None:
        conversation, waiting = direction.conversation, direction.waiting
        proved = direction.proved
        if proved:
            direction.patience -= 1
        if (
            (proved and direction.patience <= 0)
            or direction.waiting_octets + conversation.held_octets > self._buffer_limit
            or len(waiting) + len(conversation.held) > MAX_WAITING
        ):
            self._give_up(direction)
            direction.patience = PATIENCE

    def _give_up(self, direction: Direction) -> None:
        """Declares the first hole lost; what follows it takes its place among what is held.

        Of a hole that was acknowledged bit by bit each bit is a gap where it was missing, if the
        other end said something in between.
        """
        bits = [ack for ack in direction.acks if ack[0] > direction.next_offset]
        if direction.waiting:
            end, packet, t_us, *_ = direction.waiting[0]
            # What was acknowledged before a segment behind it came was missing already then.
            bits = [(min(ack[0], end), *ack[1:]) for ack in bits if ack[1] < packet]
            bits.append((end, packet, t_us))
        ready, other = direction.conversation.held, direction.conversation.other(direction)
        said = [one.place for one in ready if one.direction is other]
        said = sorted([*said, *(one.packet for one in other.waiting)])
        gaps: list[StreamSegment] = []
        for end, packet, t_us in bits:
            hole = end - direction.next_offset
            place = packet - 0.5
            if place <= direction.last_place:
                place = direction.last_place + 0.25
            if gaps and bisect(said, gaps[-1].place) == bisect(said, place):
                gaps[-1] = replace(gaps[-1], gap=gaps[-1].gap + hole)
            elif hole:
                gaps.append(StreamSegment(direction, t_us, b"", hole, place))
            direction.lost_octets += hole
            direction.next_offset = end
            assert direction.next_seq is not None
            direction.next_seq = serial.add(direction.next_seq, hole)
        direction.gaps += len(gaps)
        ready.extend(gaps)
        if gaps:
            self._drain(direction, gaps[-1].t_us, gaps[-1].place, ready)
        _forget(direction)

    def _flush(self, conversation: Conversation) -> list[StreamSegment]:
        for direction in conversation.directions:
            while direction.waiting or direction.acks:
                self._give_up(direction)
        self._holes.pop(conversation, None)
        return self._release(conversation)


def _there(direction: Direction, t_us: int, packet: int) -> tuple[int, float]:
    """When the next octets of a direction were there, and their place among the others.

    They come with this packet. An acknowledgement of theirs that came sooner proves that the other
    end had them by then: the capture has the packets in another order.
    """
    if not direction.acks:
        return t_us, packet
    _, acknowledged, acknowledged_us = direction.acks[0]
    return min(t_us, acknowledged_us), max(acknowledged - 0.5, direction.last_place)


def _forget(direction: Direction) -> None:
    """Leaves out the acknowledgements of octets that have come; what came is not yet lost."""
    if direction.acks:
        direction.acks = [ack for ack in direction.acks if ack[0] > direction.next_offset]
        direction.patience = PATIENCE


def _is_new(direction: Direction, seq: int) -> bool:
    """Whether a SYN opens another connection on the same pair of addresses and ports."""
    if direction.initial is None:
        # No SYN of this end yet: the answering SYN of an opening connection, one that the capture
        # has too late, or a reuse of the ports of one that was caught in the middle.
        if direction.next_seq is None or not direction.octets:
            return False
        return serial.add(seq, 1 + direction.next_offset) != direction.next_seq
    return direction.initial != seq


def _is_foreign(direction: Direction, seq: int) -> bool:
    """Whether octets are of another connection on the same ports, whose SYN is not there."""
    if direction.next_seq is None:
        return False
    try:
        distance = serial.diff(seq, direction.next_seq)
    except serial.SerialError:
        return True
    ended = direction.conversation.ended_by is not None
    return distance < -MAX_UNSEEN or (ended and distance > MAX_UNSEEN)
