"""The dips of a throughput: how long a sender was held in each, and what came right after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.views.rate_chart import Dip, dips

from . import measure
from .spark_answers import Answer


def named(dip: Dip) -> str:
    """A dip as a choice: its letter and when it begins."""
    return f"in {dip.name}, at {dip.start_us / measure.MICROSECONDS:.0f} s"


def dips_of(rates: Answer) -> list[Dip]:
    """The dips of an answer to `rates`."""
    return dips([(row["window_start_us"], row["messages"]) for row in rates.rows])


def _overlap(dip: Dip, row: Any) -> int:
    return max(0, min(dip.end_us, row["end_us"]) - max(dip.start_us, row["start_us"]))


def held_in(found: Sequence[Dip], stalls: Answer) -> dict[str, int]:
    """For each dip the longest stall that belongs to it, microseconds, from its begin to its end.

    A stall that is there all the time belongs to no dip: only those do that are no shorter in it
    than outside of it.
    """
    longest = {}
    for dip in found:
        inside = [(_overlap(dip, row), row["end_us"] - row["start_us"]) for row in stalls.rows]
        longest[dip.name] = max((whole for part, whole in inside if 2 * part >= whole), default=0)
    return longest


def peak_after(dip: Dip, rates: Answer) -> float:
    """The highest rate in the two windows right after a dip, messages a second."""
    rows = [(row["window_start_us"], row["messages"]) for row in rates.rows]
    size = rows[1][0] - rows[0][0]
    after = [count for start, count in rows if dip.end_us <= start < dip.end_us + 2 * size]
    return max(after, default=0) * measure.MICROSECONDS / size
