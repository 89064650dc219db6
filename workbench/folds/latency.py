"""`latency`: from question to answer; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench import serial
from workbench.trace.schema import Row

from . import channels
from .channels import Begun
from .counters import Counters
from .intervals import Span, longest, took
from .vantage import End, LinkKey, ends, from_receiver, is_set, link_key, percentile, value

ASKED = ("grant", "drain", "echo")
"""Measures that begin with a flow of the receiver."""


def latency(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One row per link and measure, in order of the link's key."""
    rows = list(rows)
    begun: dict[str, Begun] = answered(rows) | {measure: {} for measure in ASKED}
    for end, receivers in from_receiver(rows):
        for measure, its in _asked(receivers, end.peer).items():
            begun[measure].update(its)
    found = []
    for measure in begun:
        for key, (spans, unanswered) in begun[measure].items():
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


def round_trips(rows: Sequence[Row]) -> dict[LinkKey, list[int]]:
    """By link the times from a grant at credit 0 to the next message, in microseconds."""
    return {
        key: [took(span) for span in spans]
        for end, receivers in from_receiver(rows)
        for key, (spans, _) in _asked(receivers, end.peer)["grant"].items()
    }


def settlements(rows: Sequence[Row]) -> list[Span]:
    """From the last frame of each message to what settled it; of 0-9-1 from its method."""
    its = answered(rows).values()
    return [span for begun in its for spans, _ in begun.values() for span in spans]


def answered(rows: Sequence[Row]) -> dict[str, Begun]:
    """By measure what was settled, confirmed, acknowledged or completed, and what never was."""
    settled = {key: its for end in ends(rows) for key, its in _settlement(end).items()}
    return {"settlement": settled, **channels.answered(rows)}


def _worst(spans: Iterable[Span], unanswered: Iterable[int]) -> int | None:
    """Where the slowest began; if none was answered, the first that began."""
    slowest = longest(spans)
    return min(unanswered, default=None) if slowest is None else slowest[0].seq


def _settlement(end: End) -> Begun:
    """From the last frame of an unsettled message to the disposition that settles it."""
    waiting: dict[int | None, dict[int, tuple[LinkKey, Row]]] = {}  # by session and delivery-id
    of_link: dict[LinkKey | None, set[int]] = {}
    current: dict[LinkKey, tuple[int | None, bool]] = {}
    found: Begun = {}
    for step in Counters(end).steps():
        row = step.row
        if row.kind == "transfer" and step.link is not None and row.from_peer == end.peer:
            key = step.link.key
            if step.begins:
                current[key] = value(row, "delivery_id"), False
            number, settled = current.get(key, (None, False))
            settled = settled or is_set(row, "settled")
            current[key] = number, settled
            if step.ends and not settled and number is not None and not is_set(row, "aborted"):
                waiting.setdefault(row.session, {})[number] = key, row
                of_link.setdefault(key, set()).add(number)
                found.setdefault(key, ([], set()))[1].add(row.seq)
        elif row.kind == "disposition" and is_set(row, "settled") and _speaks(row, end.peer):
            its = waiting.get(row.session, {})
            for number in _covered(row, its):
                key, since = its.pop(number)
                of_link[key].discard(number)
                spans, unanswered = found[key]
                spans.append((since, row))
                unanswered.remove(since.seq)
        # What follows is not about messages of what is gone.
        elif row.kind == "close":
            waiting.clear()
        elif row.kind == "end":
            waiting.pop(row.session, None)
        elif row.kind == "detach":
            its, gone = waiting.get(row.session, {}), link_key(row)
            for number in of_link.pop(gone, ()):
                if number in its and its[number][0] == gone:
                    del its[number]
    return found


def _speaks(row: Row, sender: str) -> bool:
    """Whether a disposition is about what this peer has sent."""
    role = (row.frame or {}).get("role")
    return role == ("sender" if row.from_peer == sender else "receiver")


def _covered(row: Row, waiting: Mapping[int, object]) -> list[int]:
    first = value(row, "first")
    last = value(row, "last")
    if first is None:
        return []
    size = 0 if last is None else serial.signed(last, first)
    if size < len(waiting):
        numbers = (serial.steps(first, -n) for n in range(size + 1))
        return [number for number in numbers if number in waiting]
    return [number for number in waiting if 0 <= serial.signed(number, first) <= size]


def _asked(end: End, sender: str) -> dict[str, Begun]:
    """From a flow of the receiver to what answers it, for each measure that asks so."""
    found: dict[str, Begun] = {measure: {} for measure in ASKED}
    waiting: dict[str, dict[LinkKey, list[Row]]] = {measure: {} for measure in found}
    draining: dict[LinkKey, bool] = {}
    for step in Counters(end).steps():
        row, link = step.row, step.link
        if link is None:
            continue
        key = link.key
        if row.from_peer != sender and row.kind == "flow" and value(row, "link_credit") is not None:
            drains = is_set(row, "drain")
            asks = {
                "grant": step.grants and step.credit_before == 0,
                "drain": drains and not draining.get(key, False),
                "echo": is_set(row, "echo"),
            }
            draining[key] = drains
            if step.grants:  # what answers another grant does not answer this one
                waiting["grant"].pop(key, None)
            for measure, its in found.items():
                if asks[measure]:
                    waiting[measure].setdefault(key, []).append(row)
                    its.setdefault(key, ([], set()))[1].add(row.seq)
        elif row.from_peer == sender:
            answered = (["grant"] if step.begins else []) + (
                ["drain", "echo"] if row.kind == "flow" else []
            )
            for measure in answered:
                asked = waiting[measure].pop(key, None)
                if asked is not None:
                    spans, unanswered = found[measure][key]
                    spans += [(since, row) for since in asked]
                    unanswered.difference_update(since.seq for since in asked)
    return found
