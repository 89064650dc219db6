"""`windows`: the session window both ways; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from workbench.trace.schema import Row, other_peer

from .counters import Counters
from .intervals import Intervals, over
from .vantage import End, ends, value


def windows(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One row per session and direction, in order of run, connection, session and sender."""
    found = [
        {
            "run": one.end.run,
            "connection": one.end.connection,
            "session": one.session,
            "sender": one.end.peer,
            "frames": one.frames,
            "messages": one.messages,
            "frames_per_message": one.frames / one.messages if one.messages else None,
            "grants": one.grants,
            "window_first": one.first,
            "window_least": one.least,
            "closed_times": one.closed.times,
            "closed_us": one.closed.total_us,
            "longest_closed_us": one.closed.longest_us,
            "worst_seq": one.closed.worst_seq,
            "known": one.started and one.first is not None,
        }
        for one in directions(rows)
    ]
    return sorted(
        found, key=lambda row: (row["run"], row["connection"], row["session"], row["sender"])
    )


def directions(rows: Iterable[Row]) -> Iterator[Direction]:
    """Each session and direction in which a transfer or a window was seen."""
    for end in ends(rows):
        counters = Counters(end)
        found: dict[int, Direction] = {}
        for step in counters.steps():
            row, limit = step.row, step.session
            if limit is None or row.session is None:
                if row.kind == "close":
                    over(row, (one.closed for one in found.values()))
                continue
            one = found.setdefault(row.session, Direction(end, row.session))
            if row.kind == "transfer" and row.from_peer == end.peer:
                one.first_transfer = one.first_transfer or row
                one.frames += 1
                one.messages += step.begins
            if row.kind == "begin" and row.from_peer == other_peer(end.peer):
                one.first = value(row, "incoming_window")
            one.grants += step.opens and row.kind == "flow"
            left = limit.left
            if left is not None:
                one.least = left if one.least is None else min(one.least, left)
            one.closed.note(row, None if left is None else left == 0)
            if row.kind == "end":
                one.closed.finish(row)
        over(end.rows[-1], (one.closed for one in found.values()), lasts=True)
        for session, one in found.items():
            one.started = counters.sessions[session].started is not None
            if one.frames or one.least is not None:
                yield one


class Direction:
    """What is counted of a session in one direction.

    Attributes:
        end, session: who sends, and in which session.
        frames, messages: that it sent, `first_transfer` the first.
        grants: flows that raised the window's upper end.
        first, least: the window at first, and the smallest.
        started: the number with which the sender began was seen.
        closed: when the window was 0.
    """

    def __init__(self, end: End, session: int) -> None:
        self.end, self.session = end, session
        self.frames = self.messages = self.grants = 0
        self.first_transfer: Row | None = None
        self.first: int | None = None
        self.least: int | None = None
        self.started = False
        self.closed = Intervals()
