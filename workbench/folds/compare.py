"""`compare`: two traces side by side; see `data/README.md`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.trace.schema import Row

from .counters import Counters
from .grants import grants
from .latency import answers
from .vantage import LinkKey, ends
from .violations import violations
from .windows import windows

TOTALS = ("messages", "frames", "duration_us", "zero_us", "closed_us", "violations")
SAMPLES = ("gap_us", "settlement_us")


def compare(left: Iterable[Row], right: Iterable[Row]) -> list[dict[str, Any]]:
    """One row per measure: totals first, then samples."""
    sides = [list(left), list(right)]
    totals = [_totals(rows) for rows in sides]
    samples = [_samples(rows) for rows in sides]
    found = [_row(name, totals[0][name], totals[1][name]) for name in TOTALS]
    for name in SAMPLES:
        values = [one[name] for one in samples]
        left_mean, right_mean = map(_mean, values)
        found.append(_row(name, left_mean, right_mean, _effect(*values)))
    return found


def _row(
    measure: str, left: float | None, right: float | None, effect: float | None = None
) -> dict[str, Any]:
    both = left is not None and right is not None
    return {
        "measure": measure,
        "left": None if left is None else float(left),
        "right": None if right is None else float(right),
        "difference": float(right - left) if both else None,  # type: ignore[operator]
        "ratio": right / left if both and left else None,  # type: ignore[operator]
        "effect": effect,
    }


def _totals(rows: Sequence[Row]) -> dict[str, int]:
    directions = windows(rows)
    return {
        "messages": sum(row["messages"] for row in directions),
        "frames": sum(row["frames"] for row in directions),
        "duration_us": _duration(rows),
        "zero_us": sum(row["zero_us"] for row in grants(rows)),
        "closed_us": sum(row["closed_us"] for row in directions),
        "violations": len(violations(rows)),
    }


def _duration(rows: Sequence[Row]) -> int:
    """Each run from its first row to its last."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for row in rows:
        first.setdefault(row.run, row.t_us)
        last[row.run] = row.t_us
    return sum(last.values()) - sum(first.values())


def _samples(rows: Sequence[Row]) -> dict[str, list[int]]:
    gaps: list[int] = []
    for end in ends(rows):
        before: dict[LinkKey, int] = {}
        for step in Counters(end).steps():
            if step.begins and step.link is not None:
                if step.link.key in before:
                    gaps.append(step.row.t_us - before[step.link.key])
                before[step.link.key] = step.row.t_us
    settled = [time for times in answers(rows, "settlement").values() for time in times]
    return {"gap_us": gaps, "settlement_us": settled}


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


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
