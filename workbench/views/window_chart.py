"""A session's window over time: what its sender may still send, as each end has it.

The window counts transfer frames of all links of the session, one way. Time in which the sender
found it closed is shaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.trace.brakes import ALARM, SESSION_WINDOW
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, Row

from . import theme
from .time_chart import (
    Intervals,
    Look,
    Steps,
    finish,
    shade,
    step_line,
    time_figure,
    top_of,
)

RECEIVER, SENDER, HELD = "receiver's incoming-window", "sender's view of it", "held in the session"
LOOKS = {
    RECEIVER: Look(theme.RECEIVER),
    SENDER: Look(theme.SENDER, "dashed", 2.0),
    HELD: Look(theme.GREEN, "dotted", 2.5),
}


def window_steps(
    rows: Sequence[Row], receiver: str = BROKER, *, connection: str = "c1", session: int = 1
) -> dict[str, Steps]:
    """(time in us, value) at each change: the window at both ends, and messages that wait for it.

    Args:
        rows: of one run.
        receiver: `broker` or `client`: whose incoming-window it is.
        connection: of the session.
        session: its number on the connection.
    """
    found: dict[str, Steps] = {}
    for row in rows:
        if (row.connection, row.session) != (connection, session) or not row.ledger:
            continue
        for name, value in _values(row, receiver).items():
            steps = found.setdefault(name, [])
            if not steps or steps[-1][1] != value:
                steps.append((row.t_us, value))
    return {name: found[name] for name in LOOKS if name in found}


def _values(row: Row, receiver: str) -> dict[str, int]:
    """What a row says of the window."""
    ledger = row.ledger or {}
    if row.kind == "buffer" and receiver == CLIENT:
        return {HELD: int(ledger["mailbox"])}
    if row.event == OBSERVED or not row.is_frame:
        return {}
    peer = CLIENT if row.vantage.startswith(CLIENT) else BROKER
    field, name = (
        ("incoming_window", RECEIVER) if peer == receiver else ("remote_incoming_window", SENDER)
    )
    return {name: int(ledger[field])} if field in ledger else {}


def closed_intervals(rows: Sequence[Row], steps: Steps, receiver: str = BROKER) -> Intervals:
    """From when to when the sender found the window closed; put down to an alarm if one was on."""
    last = rows[-1].t_us if rows else 0
    found: Intervals = []
    ends = [*(time_us for time_us, _ in steps[1:]), last]
    for (begin, value), end in zip(steps, ends, strict=True):
        if value == 0 and end > begin:
            # An alarm closes the broker's windows only.
            alarmed = receiver == BROKER and _alarm_at(rows, begin)
            found.append((begin, end, ALARM if alarmed else SESSION_WINDOW))
    return found


def _alarm_at(rows: Sequence[Row], t_us: int) -> bool:
    """Whether a resource alarm was on at a time."""
    on: set[str] = set()
    for row in rows:
        if row.t_us > t_us:
            break
        if row.event == "alarm-set":
            on.add(row.kind or row.vantage)
        elif row.event == "alarm-clear":
            on.discard(row.kind or row.vantage)
    return bool(on)


def window_chart(
    trace: Any,
    receiver: str = BROKER,
    *,
    connection: str = "c1",
    session: int = 1,
    title: str = "",
    width: int = 900,
    height: int = 280,
) -> Any:
    """A session's window over time at both ends, with the time in which it was closed.

    Args:
        trace: a run (anything with `rows`), or rows in order of `seq`.
        receiver: `broker` or `client`: whose incoming-window it is.
        connection: of the session.
        session: its number on the connection.
        title: above the chart.
        width: in pixels.
        height: in pixels.

    Returns:
        A Bokeh figure: time in ms, frames (and messages held in the broker's session). Each line
        has a dash of its own.

    Raises:
        ValueError: the rows tell nothing of such a session.
    """
    rows = list(getattr(trace, "rows", trace))
    steps = window_steps(rows, receiver, connection=connection, session=session)
    if not steps:
        raise ValueError(f"no counters of session {session} on {connection} in these rows")
    chart = time_figure(
        title=title or f"Incoming-window of the {receiver}, session {session}",
        unit="transfer frames",
        width=width,
        height=height,
    )
    top = top_of(steps.values())
    shade(chart, closed_intervals(rows, steps.get(SENDER, []), receiver), top)
    lines = [
        step_line(chart, name, line, rows[-1].t_us, LOOKS[name]) for name, line in steps.items()
    ]
    finish(chart, lines, top)
    return chart
