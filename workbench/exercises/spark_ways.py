"""What the checks of lesson 10 compare with: known wrong sums, and rates of the archive's link."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from workbench.scenarios.run import run

from . import measure

LONGEST_LINE = 200
"""Characters of an error that a learner is shown."""

# The archive's link with fewer messages, enough to fill the wire several times.
ARCHIVE = {"messages": 1_200, "latency_us": 40_000}
BATCH, HALF = "batch-then-wait", "top-up-at-half"


def known_ways(stalls: list[dict[str, Any]]) -> list[tuple[str, str, Mapping[Any, Any]]]:
    """Ways to go wrong, each worked out from the same stalls: name, words, and what comes of it."""
    groups: dict[tuple[str, str, str], list[int]] = {}
    ends: dict[tuple[str, str, str], int] = {}
    waiting: dict[tuple[str, str, str], int] = {}
    for row in stalls:
        key = (row["run"], row["link"], row["brake"])
        groups.setdefault(key, []).append(row["end_us"] - row["start_us"])
        ends[key] = ends.get(key, 0) + row["end_us"]
        waiting[key] = waiting.get(key, 0) + row["messages_waiting"]
    return [
        (
            "the longest",
            "These are the longest stalls, not the time in all: max takes one of them, sum takes"
            " each.",
            {key: max(times) for key, times in groups.items()},
        ),
        (
            "how often",
            "These are how many stalls there were. The question is how long they were.",
            {key: len(times) for key, times in groups.items()},
        ),
        (
            "the mean",
            "These are means. A link held often and briefly has a small one, and loses much.",
            {key: sum(times) / len(times) for key, times in groups.items()},
        ),
        (
            "in milliseconds",
            "Right but for the unit: lost_us counts microseconds.",
            {key: sum(times) / 1000 for key, times in groups.items()},
        ),
        (
            "the wrong way round",
            "The times are below 0: end_us less start_us.",
            {key: -sum(times) for key, times in groups.items()},
        ),
        (
            "when, not how long",
            "You summed up moments. How long a stall lasts is end_us less start_us.",
            ends,
        ),
        (
            "messages, not time",
            "These are messages that waited; the question is how long.",
            waiting,
        ),
    ]


@cache
def archive_rate(rule: str, link_credit: int) -> float:
    """Messages a second over the archive's link.

    Args:
        rule: how its receiver grants.
        link_credit: how many it grants.
    """
    given = {**ARCHIVE, "policy": rule, "n": link_credit, "acknowledge": "auto"}
    rows = run("credit", "rmq4.3", given).rows
    times = [row.t_us for row in measure.frames(rows, "transfer", event="received")]
    return (len(times) - 1) / (times[-1] - times[0]) * measure.MICROSECONDS
