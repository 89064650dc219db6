"""Which frames in flight a hand holds back: a fold over the rows, as `fold` is for counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .fold import InFlight
from .schema import RECEIVED, SENT, Row

GATE_EVENTS = ("hold", "release", "action")

SENDER_OF = {"c2b": "client", "b2c": "broker"}
_Way = tuple[str, str]


class Gates:
    """Takes rows one after the other; a frame that waits holds those behind it on its way.

    Args:
        flying: frames in flight before the first row, none of them held.

    Attributes:
        flying: by frame_id, in order of sending, whether it is shown as held.
        closed: ways that are closed: connection, and the peer that sends that way.
    """

    def __init__(self, flying: Iterable[InFlight] = ()) -> None:
        self.flying: dict[int, bool] = {}
        self.closed: set[_Way] = set()
        self._ways: dict[int, _Way] = {}
        self._held: set[int] = set()  # frames that wait for a hand
        self._freed: set[int] = set()  # frames that a hand let through a closed gate
        self._act: Mapping[str, Any] = {}  # arguments of the latest act
        for frame in flying:
            self._depart(frame.frame_id, frame.connection, frame.from_peer)

    def apply(self, row: Row) -> list[tuple[int, bool]]:
        """Take in one row; returns the frames whose mark it changes, with the new mark."""
        if row.frame_id is not None and row.event == SENT:
            self._depart(row.frame_id, row.connection, row.from_peer)
        elif row.frame_id is not None and row.event == RECEIVED:
            self.flying.pop(row.frame_id, None)
            self._ways.pop(row.frame_id, None)
        elif row.event == "action":
            self._act = row.extra
        elif row.event in ("hold", "release"):
            self._gate(row)
        return self._changes()

    def _depart(self, frame_id: int, connection: str | None, peer: str | None) -> None:
        self.flying[frame_id] = False
        self._ways[frame_id] = connection or "", peer or ""

    def _gate(self, row: Row) -> None:
        extra = row.extra
        closes = row.event == "hold"
        frame_id = extra.get("frame_id", row.frame_id)
        if frame_id is not None:
            if closes:
                self._held.add(frame_id)
            else:
                self._let_through([frame_id])
            return
        direction = extra.get("direction")
        way = (row.connection or "", SENDER_OF.get(str(direction), str(direction)))
        flying = [number for number, its in self._ways.items() if its == way]
        if closes:
            self.closed.add(way)
        elif "count" in self._act:  # the learner let some through; the gate stays closed
            self._let_through(flying[: int(extra.get("count", 0))])
        else:
            self.closed.discard(way)
            self._held.difference_update(flying)

    def _let_through(self, frames: list[int]) -> None:
        self._held.difference_update(frames)
        self._freed.update(frames)

    def _changes(self) -> list[tuple[int, bool]]:
        if not (self.closed or self._held or any(self.flying.values())):
            return []
        changes: list[tuple[int, bool]] = []
        blocked: set[_Way] = set()
        for frame_id, before in self.flying.items():
            way = self._ways[frame_id]
            gated = way in self.closed and frame_id not in self._freed
            now = gated or frame_id in self._held or way in blocked
            if now:
                blocked.add(way)
            if now != before:
                self.flying[frame_id] = now
                changes.append((frame_id, now))
        return changes
