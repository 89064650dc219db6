"""One direction of a connection: from octets, with gaps, to frames, whatever its protocol.

The rules of this file:

* A direction whose beginning is there is read from there; one that was caught in the middle is
  searched for frames.
* A place is believed to be a frame boundary when `SYNC_FRAMES` frames in a row can be decoded
  from there; one is enough where the connection is known to speak the protocol.
* A frame that cannot be decoded is told with its offset and passed over by its size if a frame
  may begin there, else the next boundary is searched. Nothing read so far is given up for it.
* Of a message whose octets are lost the frame still counts, for its size tells where it ends.
* A size is believed up to `limit`; never more than about one frame of that size is held.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from workbench.capture.decoder import (
    MAX_FRAME,
    SYNC_FRAMES,
    TLS,
    DecodedFrame,
    Found,
    Unreadable,
    protocol_of,
)
from workbench.stream.cutter import UnreadableError
from workbench.trace.words import counted

__all__ = ["FrameSplitter"]

MAGIC = b"AMQP"
LEAST = 8
"""Octets of a protocol header; no protocol has a smaller frame."""

MUCH = 64 * 1024
"""Octets in hand from which on a boundary is not searched anew with every packet."""

SEARCH_FRAME = 1024 * 1024
"""Largest frame believed while no boundary is known."""

START_SIZE = 18
"""Octets behind which every `start` has been seen."""

_START, _FRAMES, _SEARCH, _FOREIGN = range(4)


@dataclass(slots=True, eq=False)
class FrameSplitter:
    """Splits the octets of one direction into frames. What they look like a protocol's own says.

    Args:
        from_start: the first octet fed is the first of the connection's direction.

    Attributes:
        protocol: its name in the schema.
        header_size: octets of a frame that tell its size, and whether it may be one.
        start: how a frame begins, for the search; frames that begin otherwise are read once a
            boundary is found.
        at_end: how many frames in a row are believed where the stream ends with them.
        header: makes a protocol header of its last four octets.
        trusted: the connection is known to speak the protocol.
        limit: the largest frame believed, in octets.
        offset: stream offset up to which all octets are done with.
        skipped: octets passed over before the first frame.
        synced_by: how many frames in a row showed the protocol; 0 where a beginning did.
        encrypted: what follows is TLS.
        late: the last boundary was found behind octets that looked like one and were none, so its
            frames may be later than they should.
    """

    protocol: ClassVar[str]
    header_size: ClassVar[int]
    start: ClassVar[re.Pattern[bytes]]
    at_end: ClassVar[int]
    header: ClassVar[type[Any]]

    from_start: bool
    trusted: bool = False
    limit: int = MAX_FRAME
    offset: int = 0
    skipped: int = 0
    synced_by: int = 0
    encrypted: bool = False
    late: bool = False
    _state: int = field(init=False)
    _data: bytes = b""
    _parts: list[bytes] = field(default_factory=list)
    _have: int = 0
    _need: int = 1
    _skip: int = 0
    _began: bool = False

    def __post_init__(self) -> None:
        self._state = _START if self.from_start else _SEARCH

    # -- what a protocol says of its frames

    def size(self, data: bytes, at: int, limit: int) -> int:
        """Octets of the frame that begins here, up to `limit`; its first `header_size` are there.

        Raises:
            UnreadableError: none can begin here.
        """
        raise NotImplementedError

    def read(self, raw: bytes) -> tuple[Any, int | None]:
        """A whole frame, and the octets of a message in it.

        Raises:
            UnreadableError: it cannot be decoded.
        """
        raise NotImplementedError

    def is_frame(self, raw: bytes) -> bool:
        """Whether it can be decoded whole."""
        try:
            self.read(raw)
        except UnreadableError:
            return False
        return True

    def without_body(self, have: bytes, size: int) -> tuple[Any, int] | None:
        """A frame of a message whose octets are lost, and how many they are; None for others.

        Args:
            have: what is there, `header_size` octets at least.
            size: of the whole frame.
        """
        raise NotImplementedError

    def fault(self, size: int, reason: str) -> tuple[str, str]:
        """What is wrong with a frame of this size, and what of it may quote its octets."""
        return f"a frame of {size:,} octets cannot be decoded", reason

    # -- octets in, frames out

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
            text = f"{counted(left, 'octet')} {_are(left)} not in the capture"
            found.append(Unreadable(self.offset, left, text, left))
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
            found.append(Unreadable(self.offset, 0, text, self._skip))
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
        self._keep(at, LEAST)
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
        """At the beginning, and behind a protocol header, TLS may come instead of frames."""
        if protocol_of(self._data) == TLS:
            self.encrypted, self._state = True, _FOREIGN
            self._keep(self._have, LEAST)
        elif self._have < 3 and not final:
            self._keep(0, 3)
        else:
            self.trusted, self._state = True, _FRAMES

    def _frames(self, found: list[Found], *, final: bool) -> None:
        data, at, base = self._data, 0, self.offset
        have, need = len(data), LEAST
        self._began = True
        while have - at >= LEAST:
            if data[at : at + 4] == MAGIC:
                raw = data[at : at + LEAST]
                found.append(DecodedFrame(base + at, raw, self.header(*raw[4:]), LEAST, None))
                self._go_on(at + LEAST, _START)
                return
            if have - at < self.header_size:
                break
            try:
                size = self.size(data, at, self.limit)
            except UnreadableError as error:
                self._lose_boundary(found, at, f"no frame begins here: {error.reason}")
                return
            end = at + size
            if end > have:
                need = size
                break
            raw = data[at:end]
            try:
                item, body = self.read(raw)
            except UnreadableError as error:
                text, detail = self.fault(size, error.reason)
                if self._next(end, self.limit) is None:
                    self._lose_boundary(found, at, text, detail)
                    return
                found.append(Unreadable(base + at, size, text, None, detail))
            else:
                found.append(DecodedFrame(base + at, raw, item, size, body))
            at = end
        left = have - at
        if left and final:
            whole = f"{need:,}" if need > LEAST else f"its first {self.header_size}"
            text = f"the stream ends in the middle of a frame: {left:,} of {whole} octets are there"
            lost = need - left if need > LEAST else 0
            found.append(Unreadable(base + at, left, text, lost))
        self._keep(at, need)

    def _lose_boundary(self, found: list[Found], at: int, text: str, detail: str = "") -> None:
        """No frame here: the next boundary is searched one octet further on."""
        found.append(Unreadable(self.offset + at, 0, text, None, detail))
        self._go_on(at + 1, _SEARCH)

    def _gap_in_frame(self, left: int, found: list[Found]) -> int:
        """Octets are lost behind what is in hand; returns how many lie behind this frame."""
        data, offset = self._data, self.offset
        size = self._next(0, self.limit) if len(data) >= self.header_size else 0
        self._keep(len(data), LEAST)
        if self._state == _SEARCH:
            self.skipped += len(data)
            return left
        if self._state == _START or not size:
            found.append(Unreadable(offset, len(data), "a frame was cut by a gap", None))
            return left
        # The frame's end is known, so the boundary behind it is not lost.
        missing = size - len(data)
        inside = min(left, missing)
        cut = self.without_body(data, size)
        if cut is None:
            text = f"frame of {size:,} octets: {inside:,} of them {_are(inside)} not in the capture"
            found.append(Unreadable(offset, len(data), text, inside))
        else:
            found.append(DecodedFrame(offset, None, cut[0], size, cut[1]))
        self.offset += inside
        self._skip = missing - inside
        return left - inside

    # -- looking for a frame boundary

    def _search(self, found: list[Found], *, final: bool) -> None:
        data = self._data
        begins = data[:4] == MAGIC and protocol_of(data) == self.protocol
        if begins and not self._began and not self.offset:
            self._state = _START
            return
        waiting: int | None = None
        at = 0
        while match := self.start.search(data, at):
            start = match.start()
            at = start + 1
            need = 1 if self.trusted and waiting is None else SYNC_FRAMES
            frames, end = self._chain(start, need)
            if frames >= need or (final and end == len(data) and frames >= min(need, self.at_end)):
                self.late = waiting is not None
                self._synced(found, start, frames)
                return
            if frames >= 0 and waiting is None:
                waiting = start
        if final:
            self.skipped += len(data)
            if self._began or self.trusted:
                text = "no further frame boundary was found"
                found.append(Unreadable(self.offset, len(data), text, None))
            self._keep(len(data), LEAST)
            return
        if waiting is None or len(data) - waiting > SEARCH_FRAME:
            waiting = max(0, len(data) - START_SIZE)
        self.skipped += waiting
        # With much in hand the next look is when the frame that may begin here is whole, so that
        # the work stays in proportion.
        much = len(data) - waiting > MUCH
        self._keep(waiting, self._next(waiting, SEARCH_FRAME) or 0 if much else 0)

    def _synced(self, found: list[Found], start: int, frames: int) -> None:
        if self._began and start:
            text = f"{start:,} octets passed over up to the next frame boundary"
            found.append(Unreadable(self.offset, start, text, None))
        self.skipped += start
        if not self._began:
            self.synced_by = frames
        self.trusted = True
        self._go_on(start, _FRAMES)

    def _chain(self, at: int, want: int) -> tuple[int, int]:
        """How many whole frames stand in a row here, up to `want`; -1 if it is no boundary.

        The second value is where the last of them ends.
        """
        frames = 0
        while (size := self._next(at, SEARCH_FRAME)) is not None:
            raw = self._data[at : at + size]
            if frames == want or not size or len(raw) < size:
                return frames, at
            if not (protocol_of(raw) == self.protocol if raw[:4] == MAGIC else self.is_frame(raw)):
                break
            frames += 1
            at += size
        return -1, at

    def _next(self, at: int, limit: int) -> int | None:
        """Octets of the frame or protocol header that begins here; None if none can.

        0 if too few octets are there to tell.
        """
        data = self._data
        if data[at : at + 4] == MAGIC:
            return LEAST
        if len(data) - at < self.header_size:
            return 0
        try:
            return self.size(data, at, limit)
        except UnreadableError:
            return None


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
