"""A frame that waits at a live gate, in words."""

from __future__ import annotations

from typing import Any, Protocol

from workbench.trace.octets import places
from workbench.trace.schema import Row
from workbench.trace.taps import frame_row
from workbench.trace.words import spec_name

from .frames import summary

# Octets that hold a frame together and say nothing by themselves.
SCAFFOLDING = ("descriptor", "list", "map", "array")
WAYS = {"c2b": "client → broker", "b2c": "broker → client"}


class HeldFrame(Protocol):
    """What a live server says of a frame that waits."""

    @property
    def frame_id(self) -> int:
        """Its number in the trace."""

    @property
    def direction(self) -> str:
        """`c2b` or `b2c`."""

    @property
    def kind(self) -> str:
        """`transfer`, `flow`, ..."""

    @property
    def item(self) -> Any:
        """The frame as a value."""

    @property
    def octets(self) -> bytes:
        """The frame as it is on the wire."""


def row_of(frame: HeldFrame) -> Row | None:
    """The frame as a row of a trace, without counters; None for octets that nobody can read."""
    if hasattr(frame.item, "why"):
        return None
    return frame_row(
        frame.item,
        run="",
        seq=0,
        t_us=0,
        vantage="wire",
        event="observed",
        frame_id=frame.frame_id,
        from_peer="client" if frame.direction == "c2b" else "broker",
        connection="",
        raw=frame.octets,
    )


def carries(frame: HeldFrame) -> str:
    """What the frame carries, in the fewest words; why, if it cannot be read."""
    row = row_of(frame)
    return str(frame.item.why) if row is None else summary(row)


def in_a_line(frame: HeldFrame) -> str:
    """Kind, what it carries, and its size."""
    words = carries(frame)
    size = f"{len(frame.octets)} octets"
    return f"{frame.kind} ({words}), {size}" if words else f"{frame.kind}, {size}"


def fields(frame: HeldFrame, most: int) -> list[list[Any]]:
    """[name, type, encoding, start, end, value] of each field that lies in the first octets.

    What the frame says comes first, and its header, which every frame has, last.

    Args:
        frame: the frame.
        most: how many octets are looked at.
    """
    found = [
        place
        for place in places(frame.octets)
        if place.start < most and place.path.rpartition(".")[2] not in SCAFFOLDING
    ]
    found.sort(key=lambda place: place.path.partition(".")[0] == "frame")
    return [
        [spec_name(place.path), place.type_name, place.constructor, *place[3:5], place.text]
        for place in found
    ]
