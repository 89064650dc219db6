"""`throughput`: rates by link over tumbling windows; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench.notebook import WrongValueError
from workbench.trace.fields import FRAME_PROTOCOLS
from workbench.trace.schema import AMQP_1_0, Row

from . import channels
from .counters import Counters, LinkState
from .intervals import Intervals, over
from .vantage import LinkKey, Way, ends, in_order, link_key, once

WINDOW_US = 1_000_000
EMPTY = 100_000
"""So many windows of a link without a row are listed in a row. A longer pause is left out: where a
clock has been set anew, or some packets have no time, it may be one of decades."""
MOST = 1_000_000
"""So many windows take 1.3 GB."""


def checked_us(window_us: int) -> int:
    """The length of a window, in microseconds.

    Raises:
        WrongValueError: if it has none.
    """
    if window_us < 1:
        raise WrongValueError(f"a window of {window_us} µs has no length; legal: 1 or more")
    return window_us


def throughput(rows: Iterable[Row], window_us: int = WINDOW_US) -> list[dict[str, Any]]:
    """One row per window and link, in order of run, window and link.

    Args:
        rows: of a trace.
        window_us: length of a window in microseconds, 1 or more.

    Raises:
        WrongValueError: if the window has no length, or there are too many of them.
    """
    window_us, rows = checked_us(window_us), list(rows)
    held_up = _head_of_line(rows)
    latest: dict[LinkKey, Window] = {}
    counted: list[tuple[LinkKey, int, list[int]]] = []
    for row in once(rows, *FRAME_PROTOCOLS):
        counted += past_windows(row, latest, window_us)
        if len(counted) > MOST:
            raise WrongValueError(
                f"more than {MOST:,} windows of {window_us:,} µs: take longer ones, or ask Spark"
            )
    counted += [(key, its.number, its.counts) for key, its in latest.items()]
    queues: dict[LinkKey, str] = {}
    for row in rows:
        key = link_key(row)
        if key is not None and row.queue is not None:
            queues.setdefault(key, row.queue)
    queued: dict[tuple[str, str, str | None, int], int] = {}
    together: dict[tuple[Way, int], list[int]] = {}
    for key, window, (messages, _, _) in counted:
        together.setdefault((key.way, window), []).append(messages)
        if key in queues:
            place = key.run, queues[key], key.link_sender, window
            queued[place] = queued.get(place, 0) + messages
    found = []
    for key, window, (messages, frames, octets) in counted:
        all_messages = together[key.way, window]
        total = sum(all_messages)
        squares = sum(one * one for one in all_messages)
        start = window * window_us
        held = held_up.get(key)
        queue = queues.get(key)
        there = None if queue is None else queued[key.run, queue, key.link_sender, window]
        found.append(
            {
                "window_start_us": start,
                **key._asdict(),
                "queue": queue,
                "messages": messages,
                "frames": frames,
                "body_bytes": octets,
                "rate": messages * 1e6 / window_us,
                "queue_rate": None if there is None else there * 1e6 / window_us,
                "connection_rate": total * 1e6 / window_us,
                "share": messages / total if total else None,
                "jain": total * total / (len(all_messages) * squares) if squares else None,
                "head_of_line_us": held.within(start, start + window_us) if held else 0,
            }
        )
    return in_order(found, "run", "window_start_us")


@dataclass(slots=True)
class Window:
    """A link's latest window: its number, and messages, frames and octets in it."""

    number: int
    counts: list[int] = field(default_factory=lambda: [0, 0, 0])
    in_message: bool = False


def past_windows(
    row: Row, latest: dict[LinkKey, Window], window_us: int
) -> Iterator[tuple[LinkKey, int, list[int]]]:
    """Adds a frame to the latest window of its link, or what stands for one.

    Gives windows of it that are past: links, numbers, and messages, frames and octets.
    """
    key = link_key(row) if row.protocol == AMQP_1_0 else channels.content_key(row)
    if key is None:
        return
    number = row.t_us // window_us
    window = latest.setdefault(key, Window(number))
    pause = number - window.number - 1 > EMPTY
    while window.number < number:  # those between have no row and no message
        yield key, window.number, window.counts
        window.number, window.counts = number if pause else window.number + 1, [0, 0, 0]
    carries = row.from_peer == key.link_sender and row.kind == "transfer"
    if key.link is None or carries:
        begins = not window.in_message if carries else channels.begins(row)
        its = (begins, 1, row.body_bytes or 0)
        window.counts = [had + more for had, more in zip(window.counts, its, strict=True)]
        window.in_message = carries and row.goes_on


def _head_of_line(rows: Iterable[Row]) -> dict[LinkKey, Intervals]:
    """When each link had credit while its session's window was closed."""
    found: dict[LinkKey, Intervals] = {}
    for end in ends(rows):
        counters = Counters(end)
        shut: dict[int | None, bool] = {}
        of_session: dict[int | None, dict[LinkKey, LinkState]] = {}
        for step in counters.steps():
            row, link = step.row, step.link
            if row.kind in ("close", "end"):
                gone = counters.links if row.kind == "close" else of_session.pop(row.session, ())
                over(row, (found[key] for key in gone if key in found))
                continue
            here = of_session.setdefault(row.session, {})
            if link is not None:
                here[link.key] = link
            turned = [] if link is None else [link]
            now = step.session is not None and step.session.left == 0
            if now != shut.get(row.session, False):
                turned, shut[row.session] = list(here.values()), now
            for one in turned:
                found.setdefault(one.key, Intervals()).note(row, now and bool(one.credit))
            if link is not None and row.kind == "detach":
                found[link.key].finish(row)
                del here[link.key]  # no turn of the window is one of it any more
        over(end.rows[-1], (found[key] for key in counters.links if key in found))
    return found
