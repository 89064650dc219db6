"""`compare`: two traces side by side; see `data/README.md`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.trace.schema import Row

from . import channels
from .counters import Counters
from .grants import gathered
from .intervals import Moment, Span, longest, took
from .latency import settlements
from .vantage import LinkKey, ends
from .violations import violations
from .windows import directions

TOTALS = ("messages", "frames", "duration_us", "zero_us", "closed_us", "violations")
SAMPLES = ("gap_us", "settlement_us")


def compare(left: Iterable[Row], right: Iterable[Row]) -> list[dict[str, Any]]:
    """One row per measure: totals first, then samples."""
    sides = [_side(list(left)), _side(list(right))]
    return [_row(name, *(side[name] for side in sides)) for name in (*TOTALS, *SAMPLES)]


@dataclass(frozen=True, slots=True)
class _Told:
    """A measure of one trace.

    Attributes:
        values: of a total its value, of a sample all of them.
        place: run and seq of the row that shows it most.
    """

    values: Sequence[int]
    place: tuple[str | None, int | None]

    @property
    def mean(self) -> float | None:
        return sum(self.values) / len(self.values) if self.values else None


def _row(measure: str, left: _Told, right: _Told) -> dict[str, Any]:
    both = left.mean is not None and right.mean is not None
    return {
        "measure": measure,
        "left": left.mean,
        "right": right.mean,
        "difference": right.mean - left.mean if both else None,  # type: ignore[operator]
        "ratio": right.mean / left.mean if both and left.mean else None,  # type: ignore[operator]
        "effect": _effect(left.values, right.values),
        "left_run": left.place[0],
        "left_seq": left.place[1],
        "right_run": right.place[0],
        "right_seq": right.place[1],
    }


def _side(rows: Sequence[Row]) -> dict[str, _Told]:
    sessions = list(directions(rows))
    on_channels = channels.carried(rows)
    counted = {
        name: [(getattr(one, name), one.first_transfer) for one in sessions]
        + [(getattr(one, name), one.first) for one in on_channels]
        for name in ("messages", "frames")
    }
    broken = violations(rows)
    first_broken = (broken[0]["run"], broken[0]["seq"]) if broken else (None, None)
    runs = _runs(rows)
    longest_run = longest(runs)
    return {
        **{name: _count(counts) for name, counts in counted.items()},
        "duration_us": _Told([sum(map(took, runs))], _place(longest_run and longest_run[1])),
        "zero_us": _total([span for one in gathered(rows).values() for span in one.zero.intervals]),
        "closed_us": _total([span for one in sessions for span in one.closed.intervals]),
        "violations": _Told([len(broken)], first_broken),
        "gap_us": _sample([*_gaps(rows), *channels.gaps(rows)]),
        "settlement_us": _sample(settlements(rows)),
    }


def _count(counts: Sequence[tuple[int, Row | None]]) -> _Told:
    order = sorted((-count, row.run, row.seq) for count, row in counts if count and row)
    return _Told([sum(count for count, _ in counts)], order[0][1:] if order else (None, None))


def _total(spans: Sequence[Span]) -> _Told:
    return _Told([sum(map(took, spans))], _start(spans))


def _sample(spans: Sequence[Span]) -> _Told:
    return _Told([took(span) for span in spans], _start(spans))


def _start(spans: Sequence[Span]) -> tuple[str | None, int | None]:
    most = longest(spans)
    return _place(most and most[0])


def _place(row: Moment | None) -> tuple[str | None, int | None]:
    return (None, None) if row is None else (row.run, row.seq)


def _runs(rows: Sequence[Row]) -> list[Span]:
    """Each run from its first row to its last."""
    first: dict[str, Row] = {}
    last: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row.run, row)
        last[row.run] = row
    return [(first[run], last[run]) for run in first]


def _gaps(rows: Sequence[Row]) -> list[Span]:
    """From one message of a link to the next."""
    gaps: list[Span] = []
    for end in ends(rows):
        before: dict[LinkKey, Row] = {}
        for step in Counters(end).steps():
            if step.begins and step.link is not None:
                if step.link.key in before:
                    gaps.append((before[step.link.key], step.row))
                before[step.link.key] = step.row
    return gaps


def _variance(values: Sequence[int]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _effect(left: Sequence[int], right: Sequence[int]) -> float | None:
    """Cohen's d."""
    if len(left) < 2 or len(right) < 2:
        return None
    weights = (len(left) - 1) * _variance(left) + (len(right) - 1) * _variance(right)
    pooled = math.sqrt(weights / (len(left) + len(right) - 2))
    difference = sum(right) / len(right) - sum(left) / len(left)
    return difference / pooled if pooled else None
