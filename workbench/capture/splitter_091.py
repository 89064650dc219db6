"""One direction of an AMQP 0-9-1 connection: from octets, with gaps, to frames.

The rules of this file:

* A direction whose beginning is there begins with a protocol header or a frame; one that was caught
  in the middle is searched for frames.
* A place is believed to be a frame boundary when `SYNC_FRAMES` frames in a row can be decoded from
  there; one is enough where the connection is known to be AMQP 0-9-1.
* What is no frame is told with its offset and passed over by its size if a frame may begin there,
  else the next boundary is searched. Nothing read so far is given up for it.

How a frame begins and what it says is asked of methods that AMQP 0-10 has of its own.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from workbench.amqp091.errors import DecodeError
from workbench.amqp091.frame import (
    EMPTY_FRAME_SIZE,
    Frame,
    ProtocolHeader,
    Undecodable,
    read_frame,
)
from workbench.capture.decoder import MAX_FRAME, SYNC_FRAMES, DecodedFrame, Found, Unreadable

__all__ = ["FrameSplitter091"]

SEARCH_FRAME = 256 * 1024
"""Largest frame believed while no boundary is known."""

_START = re.compile(rb"(?s)[\x01\x02\x03\x08]..\x00")


class FrameSplitter091:
    """Splits the octets of one direction into frames.

    Args:
        from_start: the first octet fed is the first of the connection's direction.
        trusted: the connection is known to be AMQP 0-9-1.

    Attributes:
        offset: stream offset up to which all octets are done with.
        skipped: octets passed over before the first frame.
        synced: the first frame was found without the direction's beginning.
    """

    protocol: ClassVar[str] = "AMQP 0-9-1"
    header_size: ClassVar[int] = 7
    """Octets of a frame that tell its size."""
    start: ClassVar[re.Pattern[bytes]] = _START
    error: ClassVar[type[Exception]] = DecodeError
    protocol_header: ClassVar[type] = ProtocolHeader

    def __init__(self, from_start: bool, *, trusted: bool) -> None:
        self.offset = 0
        self.skipped = 0
        self.synced = False
        self._trusted = trusted
        self._header = from_start  # a protocol header may come
        self._search = not from_start
        self._begun = from_start
        self._data = b""
        self._at = 0  # of the next frame in them
        self._later: list[bytes] = []  # what came since and did not complete it
        self._lacks = 0  # octets without which it is not whole
        self._pass = 0  # octets of a frame that is told already, or cannot be read

    def feed(self, data: bytes) -> list[Found]:
        """Takes the next octets and gives what they complete."""
        if self._pass:
            passed = min(self._pass, len(data))
            self._pass -= passed
            self.offset += passed
            data = data[passed:]
        self._later.append(data)
        self._lacks -= len(data)
        found: list[Found] = []
        if self._lacks > 0:
            return found
        self._data = self._taken()
        while self._step(found):
            pass
        self._data, self._at = self._data[self._at :], 0
        return found

    def _taken(self) -> bytes:
        """All octets in hand, which are then nowhere else."""
        whole = b"".join((self._data, *self._later))
        self._later.clear()
        self._data, self._lacks = b"", 0
        return whole

    def gap(self, octets: int) -> list[Found]:
        """So many octets are lost here; gives what can be told of the frame they were in."""
        have = self._taken()
        found: list[Found] = []
        begin = self.offset
        self.offset += len(have) + octets
        size = self.size(have) or 0
        rest = size - len(have) - octets
        cut = self.without_body(have, size) if size and rest >= 0 and not self._search else None
        if cut is not None:
            item, body = cut
            found.append(DecodedFrame(begin, None, item, size, body))
            self._pass = rest
        elif self._pass > octets:
            self._pass -= octets
        else:
            if have and not self._search:
                found.append(Unreadable(begin, len(have), "the frame is cut by a gap", False))
            self._pass = 0
            self._search = True
        self._header = False
        found.append(Unreadable(begin + len(have), octets, "octets are lost", True))
        return found

    def finish(self) -> list[Found]:
        """The stream ends; gives what is left."""
        found: list[Found] = []
        if self._search:
            self._data = self._taken()
            self._find(final=True)
            while not self._search and self._step(found):
                pass
            self._data, self._at = self._data[self._at :], 0
        have = self._taken()
        if have and self._begun:
            found.append(Unreadable(self.offset, len(have), "the stream ends in a frame", True))
        self.offset += len(have)
        return found

    def _step(self, found: list[Found]) -> bool:
        """Takes one frame, or searches one; False if more octets are needed."""
        if self._search:
            return self._find(final=False)
        data, at = self._data, self._at
        if self._header:
            head = data[:8]
            if b"AMQP".startswith(head[:4]) and len(head) < 8:
                return False
            self._header = False
            if head[:4] == b"AMQP":
                item = self.protocol_header(*head[4:])
                found.append(DecodedFrame(self.offset, head, item, 8, None))
                self._pass_over(8)
                return True
        if len(data) - at < self.header_size:
            return False
        size = self.size(data, at)
        if size is None or size > MAX_FRAME:
            text = f"no frame of {self.protocol} begins here: {data[at : at + 8].hex(' ')}"
            return self._lose(text, found)
        end = at + size
        if len(data) < end:
            self._lacks = end - len(data)
            return False
        try:
            item, octets = self.read(data, at, end)
        except self.error as error:
            reason: str = error.reason  # type: ignore[attr-defined]
            if end + self.header_size <= len(data) and self.size(data, end) is None:
                return self._lose(reason, found)
            found.append(Unreadable(self.offset, size, reason, False))
        else:
            found.append(DecodedFrame(self.offset, data[at:end], item, size, octets))
        self._pass_over(size)
        return True

    def _lose(self, text: str, found: list[Found]) -> bool:
        """What stands here is no frame: the next boundary is searched."""
        found.append(Unreadable(self.offset, 1, text, False))
        self._pass_over(1)
        self._search = True
        return True

    def _find(self, *, final: bool) -> bool:
        """Looks for a boundary; what lies before it is passed over."""
        data = self._data
        needed = 1 if self._trusted or self._begun else SYNC_FRAMES
        at = self._at
        while match := self.start.search(data, at):
            at = match.start()
            frames, complete = self._chain(data, at, needed)
            if frames >= needed or (final and frames):
                self._pass_over(at - self._at)
                if not self._begun:
                    self.skipped, self.synced, self._begun = self.offset, True, True
                self._search = False
                return True
            if not complete and not final:  # it may become one
                self._pass_over(at - self._at)
                return False
            at += 1
        self._pass_over(max(0, len(data) - self.header_size - self._at))
        return False

    def _pass_over(self, octets: int) -> None:
        self.offset += octets
        self._at += octets

    def _chain(self, data: bytes, at: int, needed: int) -> tuple[int, bool]:
        """How many whole frames follow each other, up to `needed`; whether octets were enough."""
        count = 0
        while count < needed:
            size = self.size(data, at)
            if size is None:
                return (count, False) if len(data) - at < self.header_size else (0, True)
            if size > SEARCH_FRAME:
                return 0, True
            if at + size > len(data):
                return count, False
            if not self.is_frame(data, at, at + size):
                return 0, True
            count += 1
            at += size
        return count, True

    # -- what AMQP 0-9-1 says of its frames -----------------------------------------------------

    def size(self, data: bytes, at: int = 0) -> int | None:
        """Octets of the frame that begins here; None if none does, or its header is not there."""
        if len(data) - at < 7 or data[at] not in (1, 2, 3, 8):
            return None
        return int.from_bytes(data[at + 3 : at + 7], "big") + EMPTY_FRAME_SIZE

    def read(self, data: bytes, at: int, end: int) -> tuple[Any, int | None]:
        """A whole frame, and the octets of a body in it; raises `error`."""
        item = read_frame(data, at, end)
        return item, len(item.payload) if isinstance(item.payload, bytes) else None

    def is_frame(self, data: bytes, at: int, end: int) -> bool:
        """Whether what stands here can be decoded whole."""
        try:
            return not isinstance(read_frame(data, at, end).payload, Undecodable)
        except DecodeError:
            return False

    def without_body(self, have: bytes, size: int) -> tuple[Any, int] | None:
        """A frame of a body whose octets are lost, and how many they are; None for other frames."""
        if have[0] != 3:
            return None
        return Frame(int.from_bytes(have[1:3], "big"), b""), size - EMPTY_FRAME_SIZE
