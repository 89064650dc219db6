"""One direction of an AMQP 1.0 connection: from octets, with gaps, to frames.

The rules of this file:

* What stands first decides: a protocol header, or another protocol. A direction that was caught in
  the middle is searched for frames.
* A place is believed to be a frame boundary when `SYNC_FRAMES` frames in a row can be decoded
  from there; one is enough where the connection is known to be AMQP 1.0.
* A frame that cannot be decoded is told with its offset and passed over by its size if a frame
  may begin there, else the next boundary is searched. Nothing read so far is given up for it.
* A size is believed up to `limit`; never more than about one frame of that size is held.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from workbench.amqp10.errors import DecodeError
from workbench.amqp10.frame import MAGIC, Frame, ProtocolHeader, decode_checked
from workbench.amqp10.performatives import Transfer, decode_performative
from workbench.capture.decoder import (
    MAX_FRAME,
    OTHER,
    SYNC_FRAMES,
    DecodedFrame,
    Found,
    Unreadable,
    protocol_of,
)
from workbench.trace.schema import AMQP_1_0

__all__ = ["FrameSplitter"]

MUCH = 64 * 1024
"""Octets in hand from which on a boundary is not searched anew with every packet."""

_SEARCH_FRAME = 1024 * 1024
"""Largest frame believed while no boundary is known."""

# A frame that begins with a performative: SIZE, DOFF 2, TYPE 0 or 1, channel, and the descriptor
# as small ulong, ulong or symbol; or one without any that is not followed by other octets. Frames
# with an extended header are rare enough to be missed when looking for a boundary; they are read
# like any other once one is found.
_FRAME_START = re.compile(
    rb"(?s)....\x02[\x00\x01]..\x00"
    rb"(?:\x53[\x10-\x18\x40-\x44]|\x80\x00{7}[\x10-\x18\x40-\x44]|\xa3.amqp:)"
    rb"|\x00\x00\x00\x08\x02\x00..(?=\Z|\x00\x00\x00\x08\x02\x00)"
)
_FRAME_START_SIZE = 18
_HEARTBEAT = re.compile(rb"(?s)\x00\x00\x00\x08\x02\x00..\Z")

_START, _FRAMES, _SEARCH, _FOREIGN = range(4)


@dataclass(slots=True, eq=False)
class FrameSplitter:
    """Splits the octets of one direction into frames.

    Args:
        from_start: the first octet fed is the first of the connection's direction.

    Attributes:
        trusted: the connection is known to be AMQP 1.0.
        limit: the largest frame believed, in octets.
        kind: protocol spoken, None until known.
        skipped: octets passed over before the first frame.
        synced_by: how many frames in a row made it AMQP 1.0; 0 where a header did.
        became: what follows a protocol header that changes to TLS.
        late: the last boundary was found behind octets that looked like one and were none, so its
            frames may be later than they should.
    """

    from_start: bool
    trusted: bool = False
    limit: int = MAX_FRAME
    kind: str | None = None
    skipped: int = 0
    synced_by: int = 0
    became: str | None = None
    late: bool = False
    offset: int = 0
    _state: int = field(init=False)
    _data: bytes = b""
    _parts: list[bytes] = field(default_factory=list)
    _have: int = 0
    _need: int = 1
    _skip: int = 0
    _began: bool = False

    def __post_init__(self) -> None:
        self._state = _START if self.from_start else _SEARCH

    def feed(self, data: bytes) -> list[Found]:
        """Takes the next octets and gives what they complete."""
        found: list[Found] = []
        if self._have or self._skip or self._state != _FRAMES:
            ready = self._collect(data)
            if ready is None:
                return found
            data = ready
        self._data = data
        self._have = len(data)
        self._work(found, final=False)
        return found

    def _collect(self, data: bytes) -> bytes | None:
        """Puts the octets behind those in hand; None while there are not enough of them."""
        if self._state == _FOREIGN:
            self.offset += len(data)
            return None
        if self._skip:
            passed = min(self._skip, len(data))
            self._skip -= passed
            self.offset += passed
            data = data[passed:]
            if not data:
                return None
        self._have += len(data)
        self._parts.append(data)
        if self._have < self._need:
            return None
        data = b"".join(self._parts)
        self._parts.clear()
        return data

    def gap(self, octets: int) -> list[Found]:
        """So many octets are lost here; gives what can be told of the frame they were in."""
        found: list[Found] = []
        if self._state == _FOREIGN:
            self.offset += octets
            return found
        inside = min(self._skip, octets)
        self._skip -= inside
        self.offset += inside
        left = octets - inside
        if self._have:
            self._data = b"".join(self._parts)
            left = self._gap_in_frame(left, found)
        if left:
            text = f"{left:,} octets are not in the capture"
            found.append(Unreadable(self.offset, left, text, True))
            self.offset += left
            self._state = _SEARCH
        return found

    def finish(self) -> list[Found]:
        """The stream ends; gives what is left and names what is cut."""
        found: list[Found] = []
        if self._have and self._state != _FOREIGN:
            self._data = b"".join(self._parts)
            self._parts.clear()
            self._work(found, final=True)
        if self._skip:
            text = f"the stream ends {self._skip:,} octets before the end of a frame"
            found.append(Unreadable(self.offset, 0, text, True))
        return found

    # -- what to do with the octets in hand

    def _keep(self, at: int, need: int) -> None:
        """Keeps the octets from `at` on until there are `need` of them."""
        rest = self._data[at:] if at else self._data
        self.offset += at
        self._data = b""
        self._parts = [rest] if rest else []
        self._have = len(rest)
        self._need = max(need, self._have + 1)

    def _go_on(self, at: int, state: int) -> None:
        """The octets from `at` on are looked at in another way."""
        self._keep(at, 8)
        self._data, self._state = b"".join(self._parts), state

    def _work(self, found: list[Found], *, final: bool) -> None:
        while True:
            state = self._state
            if state == _FRAMES:
                self._frames(found, final=final)
            elif state == _START:
                self._start(final=final)
            elif state == _SEARCH:
                self._search(found, final=final)
            if self._state == state or self._state == _FOREIGN:
                return

    def _start(self, *, final: bool) -> None:
        kind = protocol_of(self._data)
        if kind is None:
            self._keep(0, 8)
            if final:
                self._foreign(OTHER)
        elif kind == AMQP_1_0 or (self.trusted and self._data[:4] == MAGIC):
            # A broker may answer 1.0 with the header of a protocol that it would rather speak.
            self.kind, self.trusted, self._state = AMQP_1_0, True, _FRAMES
        else:
            self._foreign(kind)

    def _foreign(self, kind: str) -> None:
        if self.kind is None:
            self.kind = kind
        else:
            self.became = kind
        self._state = _FOREIGN
        self.offset += self._have
        self._data, self._have = b"", 0
        self._parts.clear()

    def _frames(self, found: list[Found], *, final: bool) -> None:
        data, at, base = self._data, 0, self.offset
        have = len(data)
        limit = self.limit
        self._began = True
        while have - at >= 8:
            size = int.from_bytes(data[at : at + 4], "big")
            if size > limit or size < 8 or data[at + 4] < 2 or data[at + 5] > 1:
                if data[at : at + 4] == MAGIC:
                    raw = data[at : at + 8]
                    header = ProtocolHeader(raw[4], raw[5], raw[6], raw[7])
                    found.append(DecodedFrame(base + at, raw, header, 8, 0))
                    at += 8
                    if header.protocol_id == 2:
                        # What follows is a TLS handshake, or the peer's refusal of it.
                        self._go_on(at, _START)
                        return
                    continue
                self._lose_boundary(found, at, _bad_header(data[at : at + 8], limit))
                return
            end = at + size
            if end > have:
                break
            raw = data[at:end]
            try:
                item = decode_checked(
                    raw, 0, size, data[at + 4], data[at + 5], data[at + 6] << 8 | data[at + 7]
                )
            except DecodeError as error:
                text = f"a frame of {size:,} octets cannot be decoded"
                if not _may_begin(data[end : end + 8], limit):
                    self._lose_boundary(found, at, text, error.reason)
                    return
                found.append(Unreadable(base + at, size, text, False, error.reason))
            else:
                found.append(DecodedFrame(base + at, raw, item, size, len(item.payload)))
            at = end
        left = have - at
        if not left:
            self.offset += have
            self._data, self._have, self._need = b"", 0, 8
            self._parts.clear()
            return
        if final:
            want = int.from_bytes(data[at : at + 4], "big") if left >= 4 else 0
            text = f"the stream ends in the middle of a frame: {left:,} of "
            text += f"{want:,} octets are there" if want else "its first 8 octets are there"
            found.append(Unreadable(base + at, left, text, True))
        need = int.from_bytes(data[at : at + 4], "big") if left >= 8 else 8
        self._keep(at, need)

    def _lose_boundary(self, found: list[Found], at: int, text: str, detail: str = "") -> None:
        """No frame here: the next boundary is searched one octet further on."""
        found.append(Unreadable(self.offset + at, 0, text, False, detail))
        self._go_on(at + 1, _SEARCH)

    def _gap_in_frame(self, left: int, found: list[Found]) -> int:
        """Octets are lost behind what is in hand; returns how many lie behind this frame."""
        data, offset = self._data, self.offset
        self._keep(len(data), 8)
        if self._state == _SEARCH:
            self.skipped += len(data)
            return left
        if self._state == _START or len(data) < 8:
            found.append(Unreadable(offset, len(data), "a frame was cut by a gap", False))
            return left
        size = int.from_bytes(data[:4], "big")
        missing = size - len(data)
        cut = _without_payload(data, offset, size)
        if cut is None:
            text = f"frame of {size:,} octets: {missing:,} of them are not in the capture"
            found.append(Unreadable(offset, len(data), text, True))
        else:
            found.append(cut)
        # The frame's end is known, so the boundary behind it is not lost.
        inside = min(left, missing)
        self.offset += inside
        self._skip = missing - inside
        return left - inside

    # -- looking for a frame boundary

    def _search(self, found: list[Found], *, final: bool) -> None:
        data = self._data
        if not self._began and protocol_of(data) == AMQP_1_0 and not self.offset:
            self._state = _START
            return
        waiting: int | None = None
        for match in _FRAME_START.finditer(data):
            start = match.start()
            need = 1 if self.trusted and waiting is None else SYNC_FRAMES
            frames, end = _chain(data, start, need)
            if frames >= need or (final and end == len(data) and frames >= min(need, 2)):
                self.late = waiting is not None
                self._synced(found, start, frames)
                return
            if frames >= 0 and waiting is None:
                waiting = start
        if final:
            self.skipped += len(data)
            if self._began or self.trusted:
                text = "no further frame boundary was found"
                found.append(Unreadable(self.offset, len(data), text, False))
            self._keep(len(data), 8)
            return
        if waiting is None or len(data) - waiting > _SEARCH_FRAME:
            waiting = max(0, len(data) - _FRAME_START_SIZE)
        self.skipped += waiting
        # With much in hand the next look is when the frame that may begin here is whole, so that
        # the work stays in proportion.
        much = len(data) - waiting > MUCH
        self._keep(waiting, int.from_bytes(data[waiting : waiting + 4], "big") if much else 0)

    def _synced(self, found: list[Found], start: int, frames: int) -> None:
        while start >= 8 and _HEARTBEAT.match(self._data[start - 8 : start]):
            start -= 8
        if self._began and start:
            text = f"{start:,} octets passed over up to the next frame boundary"
            found.append(Unreadable(self.offset, start, text, False))
        self.skipped += start
        if self.kind is None:
            self.synced_by = frames
        self.kind, self.trusted = AMQP_1_0, True
        self._go_on(start, _FRAMES)


def _without_payload(data: bytes, offset: int, size: int) -> DecodedFrame | None:
    """A transfer whose performative is there and whose payload is not, or not all of it."""
    body = 4 * data[4]
    if data[5] != 0 or not 8 <= body < len(data):
        return None
    try:
        performative, end = decode_performative(data, body, len(data))
    except DecodeError:
        return None
    if type(performative) is not Transfer:
        return None
    frame = Frame(int.from_bytes(data[6:8], "big"), performative)
    return DecodedFrame(offset, None, frame, size, size - end)


def _chain(data: bytes, at: int, want: int) -> tuple[int, int]:
    """How many whole frames stand in a row here, up to `want`; -1 if it is no boundary.

    The second value is where the last of them ends.
    """
    frames = 0
    while frames < want and len(data) - at >= 8:
        size = int.from_bytes(data[at : at + 4], "big")
        if protocol_of(data[at : at + 8]) == AMQP_1_0:
            size = 8
        elif not _may_begin(data[at : at + 8], _SEARCH_FRAME):
            return -1, at
        elif at + size > len(data):
            return frames, at
        elif not _is_frame(data, at, size):
            return -1, at
        frames += 1
        at += size
    if not _may_begin(data[at : at + 8], _SEARCH_FRAME):
        return -1, at
    return frames, at


def _is_frame(data: bytes, at: int, size: int) -> bool:
    """Whether a frame of this size stands here; reads it in place."""
    body = at + 4 * data[at + 4]
    if body >= at + size:
        return size == 8
    try:
        performative, end = decode_performative(data, body, at + size)
    except DecodeError:
        return False
    if data[at + 5] != performative.FRAME_TYPE:
        return False
    return end == at + size or type(performative) is Transfer


def _may_begin(head: bytes, limit: int) -> bool:
    """Whether a frame or protocol header may begin with these octets, as far as they are there."""
    if head[:4] == MAGIC:
        return True
    if len(head) < 8:
        return True
    return 8 <= int.from_bytes(head[:4], "big") <= limit and head[4] >= 2 and head[5] <= 1


def _bad_header(head: bytes, limit: int) -> str:
    """Why no frame begins with these octets, for a person."""
    size = int.from_bytes(head[:4], "big")
    if not 8 <= size <= limit:
        return f"no frame begins here: SIZE {size}, believed are 8 to {limit}"
    if head[4] < 2:
        return f"no frame begins here: DOFF {head[4]}, the least is 2"
    return f"no frame begins here: TYPE {head[5]}, legal are 0 (AMQP) and 1 (SASL)"
