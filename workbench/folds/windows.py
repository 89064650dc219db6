"""`windows`: the session window both ways; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.trace.schema import Row

from .counters import Counters
from .spells import Spells, over
from .vantage import ends, other, value


def windows(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One row per session and direction, in order of run, connection, session and sender."""
    found = []
    for end in ends(rows):
        counters = Counters(end)
        directions: dict[int, _Direction] = {}
        for step in counters.steps():
            row, limit = step.row, step.session
            if limit is None or row.session is None:
                if row.kind == "close":
                    over(row.t_us, (one.closed for one in directions.values()))
                continue
            one = directions.setdefault(row.session, _Direction())
            if row.kind == "transfer" and row.from_peer == end.peer:
                one.frames += 1
                one.messages += step.begins
            if row.kind == "begin" and row.from_peer == other(end.peer):
                one.first = value(row, "incoming_window")
            one.grants += step.opens and row.kind == "flow"
            left = limit.left
            if left is not None:
                one.least = left if one.least is None else min(one.least, left)
            one.closed.note(row.t_us, None if left is None else left == 0)
            if row.kind == "end":
                one.closed.finish(row.t_us)
        if end.rows:
            over(end.rows[-1].t_us, (one.closed for one in directions.values()))
        for session, one in directions.items():
            if not one.frames and one.least is None:
                continue
            found.append(
                {
                    "run": end.run,
                    "connection": end.connection,
                    "session": session,
                    "sender": end.peer,
                    "frames": one.frames,
                    "messages": one.messages,
                    "frames_per_message": one.frames / one.messages if one.messages else None,
                    "grants": one.grants,
                    "window_first": one.first,
                    "window_least": one.least,
                    "closed_times": one.closed.times,
                    "closed_us": one.closed.total_us,
                    "longest_closed_us": one.closed.longest_us,
                    "known": counters.sessions[session].started is not None
                    and one.first is not None,
                }
            )
    return sorted(
        found, key=lambda row: (row["run"], row["connection"], row["session"], row["sender"])
    )


class _Direction:
    """What is counted of a session in one direction."""

    def __init__(self) -> None:
        self.frames = self.messages = self.grants = 0
        self.first: int | None = None
        self.least: int | None = None
        self.closed = Spells()
