"""From frames to controls and commands: segments over frames, messages over segments.

A command's segments come in this order: the command, at most one header, at most one body. Those
of different channels may come mixed; a control never waits for a command, for it has a track of
its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct

from .composite import Command, Control
from .errors import DecodeError
from .frame import Content, Frame, Headers, SegmentType, decode_segment, octets_of

__all__ = ["Assembled", "Assembler"]


class Assembled(Struct, frozen=True, gc=False):
    """A control or command with all that belongs to it.

    Attributes:
        channel: on which session.
        method: the control or command.
        headers: of a message; None: it came without.
        payload: of a message; None: it came without a body.
        content_octets: of header and body segments, which is what byte credit counts.
    """

    channel: int
    method: Control | Command
    headers: Headers | None = None
    payload: bytes | None = None
    content_octets: int = 0


@dataclass(slots=True)
class _Unfinished:
    """What has come of an assembly.

    Attributes:
        segment_type: of the segment that is coming, or came last.
        last_segment: that it is the last one.
        open: frames of that segment are still to come.
        parts: its octets so far.
        segments: what came before, by type.
        octets: of all.
        content_octets: of header and body.
    """

    segment_type: int
    last_segment: bool
    open: bool = False
    parts: list[bytes] = field(default_factory=list)
    segments: dict[int, Content] = field(default_factory=dict)
    octets: int = 0
    content_octets: int = 0


class Assembler:
    """Puts the frames of one direction of a connection together.

    Args:
        most: octets that the unfinished assemblies of all channels may hold.

    Attributes:
        octets: that they hold.
    """

    def __init__(self, most: int) -> None:
        self.octets = 0
        self._most = most
        self._unfinished: dict[tuple[int, bool], _Unfinished] = {}

    def add(self, frame: Frame) -> Assembled | None:
        """Takes a frame; gives what it completes.

        Raises:
            DecodeError: the frame cannot come here, its segment cannot be read, or too much is
                unfinished.
        """
        key = frame.channel, frame.segment_type == SegmentType.CONTROL
        whole = frame.first_frame and frame.last_frame
        if whole and frame.last_segment and not isinstance(frame.content, bytes | Headers):
            if key in self._unfinished:
                self._out_of_place(frame, self._unfinished[key])
            return Assembled(frame.channel, frame.content)
        found = self._unfinished.get(key)
        if frame.first_frame:
            found = self._begin_segment(frame, found)
            self._unfinished[key] = found
        elif found is None or not found.open or found.segment_type != frame.segment_type:
            self._out_of_place(frame, found)
        elif found.last_segment != frame.last_segment:
            raise DecodeError("frames of one segment differ in the flag of the last segment", 0)
        assert found is not None
        self._take(frame, found)
        if found.open or not found.last_segment:
            return None
        del self._unfinished[key]
        self.octets -= found.octets
        method, headers = found.segments[min(found.segments)], found.segments.get(2)
        payload = found.segments.get(SegmentType.BODY)
        assert isinstance(method, Control | Command)
        assert headers is None or isinstance(headers, Headers)
        assert payload is None or isinstance(payload, bytes)
        return Assembled(frame.channel, method, headers, payload, found.content_octets)

    def forget(self, channel: int) -> None:
        """Drops what has come of a command on a channel whose session is no more."""
        found = self._unfinished.pop((channel, False), None)
        if found is not None:
            self.octets -= found.octets

    def _begin_segment(self, frame: Frame, found: _Unfinished | None) -> _Unfinished:
        kind = frame.segment_type
        if found is None:
            if not frame.first_segment:
                self._out_of_place(frame, found)
            found = _Unfinished(kind, frame.last_segment)
        elif found.open or frame.first_segment or kind <= found.segment_type:
            self._out_of_place(frame, found)
        if kind == SegmentType.CONTROL and not frame.last_segment:
            raise DecodeError("a control has one segment; the flag of the last one is not set", 0)
        found.segment_type, found.last_segment, found.open = kind, frame.last_segment, True
        found.parts = []
        return found

    def _take(self, frame: Frame, found: _Unfinished) -> None:
        octets = octets_of(frame.content)
        found.octets += len(octets)
        self.octets += len(octets)
        if self.octets > self._most:
            raise DecodeError(
                f"unfinished commands hold {self.octets} octets on this connection; legal:"
                f" {self._most}",
                0,
            )
        if frame.segment_type in (SegmentType.HEADER, SegmentType.BODY):
            found.content_octets += len(octets)
        if frame.first_frame and frame.last_frame:
            found.segments[frame.segment_type] = frame.content
            found.open = False
            return
        found.parts.append(octets)
        if frame.last_frame:
            data, found.parts = b"".join(found.parts), []
            found.segments[frame.segment_type] = decode_segment(frame.segment_type, data)
            found.open = False

    def _out_of_place(self, frame: Frame, found: _Unfinished | None) -> None:
        kind = SegmentType(frame.segment_type).name.lower()
        if found is None:
            legal = "a first segment's first frame"
        elif found.open:
            legal = f"more of the {SegmentType(found.segment_type).name.lower()} segment"
        else:
            legal = f"a segment behind the {SegmentType(found.segment_type).name.lower()}"
        place = "first" if frame.first_frame else "later"
        raise DecodeError(
            f"a {place} frame of a {kind} segment on channel {frame.channel}; legal: {legal}", 0
        )
