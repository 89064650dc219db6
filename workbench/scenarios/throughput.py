"""The four top-up rules side by side: the same queue, the same wire, another rule each time."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.presets import Preset

from .credit import ARTICLE, BATCH_THEN_WAIT, ONE_AT_A_TIME, TOP_UP_AT_HALF
from .run import Run, run

RULES = (ONE_AT_A_TIME, BATCH_THEN_WAIT, TOP_UP_AT_HALF, ARTICLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What one rule achieved, taken from its run's trace.

    Attributes:
        policy: name of the rule.
        messages: transfers that arrived.
        duration_us: from the first flow sent to the last transfer received.
        per_second: messages per virtual second.
        run: the run itself.
    """

    policy: str
    messages: int
    duration_us: int
    per_second: float
    run: Run


def measured(policy: str, played: Run) -> Throughput:
    """The throughput of a run, from its rows alone."""
    rows = played.rows
    first = next((row.t_us for row in rows if row.kind == "flow" and row.event == "sent"), 0)
    arrivals = [row.t_us for row in rows if row.kind == "transfer" and row.event == "received"]
    duration_us = arrivals[-1] - first if arrivals else 0
    per_second = len(arrivals) * 1_000_000 / duration_us if duration_us else 0.0
    return Throughput(
        policy=policy,
        messages=len(arrivals),
        duration_us=duration_us,
        per_second=per_second,
        run=played,
    )


def credit_throughput(
    *,
    latency_us: int | None = None,
    n: int | None = None,
    messages: int = 500,
    preset: Preset | str = "spec",
) -> tuple[Throughput, ...]:
    """Run every rule over the same wire.

    Args:
        latency_us: how long a frame is under way, each direction; None takes the preset's.
        n: N of the two rules that have one; None takes the preset's.
        messages: ready in the queue at the beginning.
        preset: a preset or its name.

    Raises:
        ParameterError: if one of them is out of its range.
    """
    given = {"messages": messages, "latency_us": latency_us, "n": n}
    parameters = {name: value for name, value in given.items() if value is not None}
    return tuple(
        measured(policy, run("credit", preset, {**parameters, "policy": policy}))
        for policy in RULES
    )
