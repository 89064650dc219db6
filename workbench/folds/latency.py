"""`latency`: from question to answer; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workbench import serial
from workbench.trace.schema import Row

from .counters import Counters
from .spells import Span, longest, took
from .vantage import End, LinkKey, from_receiver, is_set, link_key, percentile, value

MEASURES = ("settlement", "grant", "drain", "echo")


def latency(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One row per link and measure, in order of the link's key."""
    rows = list(rows)
    found = []
    for measure in MEASURES:
        begun = _begun(rows, measure)
        for key, (spans, unanswered) in begun.items():
            times = [took(span) for span in spans]
            found.append(
                {
                    **key._asdict(),
                    "measure": measure,
                    "count": len(times),
                    "p50_us": percentile(times, 50),
                    "p90_us": percentile(times, 90),
                    "p99_us": percentile(times, 99),
                    "max_us": max(times, default=None),
                    "unanswered": len(unanswered),
                    "worst_seq": _worst(spans, unanswered),
                }
            )
    names = (*LinkKey._fields, "measure")
    return sorted(found, key=lambda row: tuple(str(row[name]) for name in names))


def answers(rows: Iterable[Row], measure: str) -> dict[LinkKey, Sequence[int]]:
    """The times of one measure by link, in microseconds."""
    return {
        key: [took(span) for span in spans]
        for key, (spans, _) in _begun(list(rows), measure).items()
    }


def settlements(rows: Sequence[Row]) -> list[Span]:
    """From the last frame of each message to what settled it."""
    return [span for spans, _ in _begun(rows, "settlement").values() for span in spans]


_Begun = dict[LinkKey, tuple[list[Span], dict[int, Row]]]
"""By link: from question to answer, and by `seq` the questions that have none."""


def _worst(spans: Iterable[Span], unanswered: Iterable[int]) -> int | None:
    """Where the slowest began; if none was answered, the first that began."""
    slowest = longest(spans)
    return min(unanswered, default=None) if slowest is None else slowest[0].seq


def _begun(rows: Sequence[Row], measure: str) -> _Begun:
    found: _Begun = {}
    for end, receivers in from_receiver(rows):
        if measure == "settlement":
            found.update(_settlement(end))
        else:
            found.update(_asked(receivers, end.peer, measure))
    return found


def _settlement(end: End) -> _Begun:
    """From the last frame of an unsettled message to the disposition that settles it."""
    waiting: dict[tuple[int | None, int], tuple[LinkKey, Row]] = {}
    current: dict[LinkKey, tuple[int | None, bool]] = {}
    found: _Begun = {}
    for step in Counters(end).steps():
        row = step.row
        if row.kind == "transfer" and step.link is not None and row.from_peer == end.peer:
            key = step.link.key
            if step.begins:
                current[key] = value(row, "delivery_id"), False
            number, settled = current[key]
            settled = settled or is_set(row, "settled")
            current[key] = number, settled
            if step.ends and not settled and number is not None and not is_set(row, "aborted"):
                waiting[row.session, number] = key, row
                found.setdefault(key, ([], {}))[1][row.seq] = row
        elif row.kind == "disposition" and is_set(row, "settled") and _speaks(row, end.peer):
            for number in _covered(row, waiting):
                key, since = waiting.pop((row.session, number))
                spans, unanswered = found[key]
                spans.append((since, row))
                del unanswered[since.seq]
    return found


def _speaks(row: Row, sender: str) -> bool:
    """Whether a disposition is about what this peer has sent."""
    role = (row.frame or {}).get("role")
    return role == ("sender" if row.from_peer == sender else "receiver")


def _covered(row: Row, waiting: dict[tuple[int | None, int], Any]) -> list[int]:
    first = value(row, "first")
    last = value(row, "last")
    if first is None:
        return []
    size = 0 if last is None else serial.signed(last, first)
    return [
        number
        for session, number in list(waiting)
        if session == row.session and 0 <= serial.signed(number, first) <= size
    ]


def _asked(end: End, sender: str, measure: str) -> _Begun:
    """From a flow of the receiver to what answers it."""
    found: _Begun = {}
    open_since: dict[LinkKey, list[Row]] = {}
    draining: dict[LinkKey, bool] = {}
    for step in Counters(end).steps():
        row, key = step.row, link_key(step.row)
        if step.link is None or key is None:
            continue
        asked = open_since.setdefault(key, [])
        if row.from_peer != sender and row.kind == "flow" and value(row, "link_credit") is not None:
            drains = is_set(row, "drain")
            asks = {
                "grant": step.grants and step.credit_before == 0,
                "drain": drains and not draining.get(key, False),
                "echo": is_set(row, "echo"),
            }[measure]
            draining[key] = drains
            if measure == "grant" and step.grants:
                asked.clear()  # its answer would be another grant's
            if asks:
                asked.append(row)
                found.setdefault(key, ([], {}))[1][row.seq] = row
        elif row.from_peer == sender and asked:
            answers_it = step.begins if measure == "grant" else row.kind == "flow"
            if answers_it:
                spans, unanswered = found[key]
                for since in asked:
                    spans.append((since, row))
                    del unanswered[since.seq]
                asked.clear()
    return found
