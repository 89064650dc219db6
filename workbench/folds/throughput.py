"""`throughput`: rates by link over tumbling windows; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.trace.fields import FRAME_PROTOCOLS
from workbench.trace.schema import AMQP_1_0, Row

from . import channels
from .counters import Counters, LinkState
from .intervals import Intervals, over
from .vantage import LinkKey, ends, in_order, link_key, once

WINDOW_US = 1_000_000
EMPTY = 100_000
"""So many windows of a link without a row are listed in a row. A longer pause is left out: where a
clock has been set anew, or some packets have no time, it may be one of decades."""

_Connection = tuple[str, str, str | None]


def throughput(rows: Iterable[Row], window_us: int = WINDOW_US) -> list[dict[str, Any]]:
    """One row per window and link, in order of run, window and link.

    Args:
        rows: of a trace.
        window_us: length of a window in microseconds, 1 or more.

    Raises:
        ValueError: if the window has no length.
    """
    if window_us < 1:
        raise ValueError(f"a window of {window_us} µs has no length; legal: 1 or more")
    rows = list(rows)
    held_up = _head_of_line(rows)
    links = _counted(once(rows, *FRAME_PROTOCOLS), window_us)
    queues: dict[LinkKey, str] = {}
    for row in rows:
        key = link_key(row)
        if key is not None and row.queue is not None:
            queues.setdefault(key, row.queue)
    queued: dict[tuple[str, str, str | None, int], int] = {}
    together: dict[tuple[_Connection, int], list[int]] = {}
    for key, counts in links.items():
        for window, (messages, _, _) in counts.items():
            together.setdefault((_connection(key), window), []).append(messages)
            if key in queues:
                place = key.run, queues[key], key.link_sender, window
                queued[place] = queued.get(place, 0) + messages
    found = []
    for key, counts in links.items():
        for window, (messages, frames, octets) in sorted(counts.items()):
            all_messages = together[_connection(key), window]
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


def _connection(key: LinkKey) -> _Connection:
    return key.run, key.connection, key.link_sender


def _counted(rows: Iterable[Row], window_us: int) -> dict[LinkKey, dict[int, list[int]]]:
    """Messages, frames and octets by link and window, with the empty windows of short pauses."""
    found: dict[LinkKey, dict[int, list[int]]] = {}
    inside: set[LinkKey] = set()
    for row in rows:
        key = counting_key(row)
        if key is None:
            continue
        windows = found.setdefault(key, {})
        window = row.t_us // window_us
        before = max(windows, default=window)
        for between in range(before, window if window - before - 1 <= EMPTY else before):
            windows.setdefault(between, [0, 0, 0])
        windows.setdefault(window, [0, 0, 0])
        if count(row, key, windows[window], inside=key in inside):
            inside.add(key)
        else:
            inside.discard(key)
    return found


def counting_key(row: Row) -> LinkKey | None:
    """The link to which a row belongs, or what stands for one."""
    return link_key(row) if row.protocol == AMQP_1_0 else channels.content_key(row)


def count(row: Row, key: LinkKey, counts: list[int], *, inside: bool) -> bool:
    """Adds a frame to messages, frames and octets.

    Returns:
        Whether the link is in the middle of a message after it; it was `inside` one before.
    """
    carries = row.from_peer == key.link_sender and row.kind == "transfer"
    if key.link is not None and not carries:
        return inside
    counts[0] += not inside if carries else channels.begins(row)
    counts[1] += 1
    counts[2] += row.body_bytes or 0
    return carries and row.goes_on


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
                gone = (key for key in counters.links
                        if row.kind == "close" or key.session == row.session)  # fmt: skip
                over(row, (found[key] for key in gone))
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
        over(end.rows[-1], (found[key] for key in counters.links))
    return found
