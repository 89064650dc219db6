"""The same queue under each top-up rule: runs, their throughput, and a table of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from workbench.presets import Preset
from workbench.scenarios.credit import ARTICLE, MANUAL, POLICIES
from workbench.scenarios.run import Run, run
from workbench.trace.brakes import LINK_CREDIT
from workbench.trace.given import takes

from . import measure
from .table import Table, Tabled, say, table_of

RULES = tuple(policy for policy in POLICIES if policy not in (MANUAL, ARTICLE))
"""The rules that grant as many as they are told to: the article's has a number of its own, and with
that number it is another rule of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one rule achieved.

    Attributes:
        rule: name of the top-up rule.
        messages: that arrived.
        flows: sent by the receiver.
        time_us: from the first flow to the last arrival.
        rate: messages a second.
        held: part of the link's time up to the last arrival in which link-credit blocked the
            sender, 0 to 1.
    """

    rule: str
    messages: int
    flows: int
    time_us: int
    rate: float
    held: float


def result(played: Run, rule: str) -> Result:
    """Measure one run."""
    return Result(
        rule=rule,
        messages=measure.messages(played.rows, event="received"),
        flows=len(measure.grants(played.rows)),
        time_us=measure.duration_us(played.rows),
        rate=measure.rate(played.rows),
        held=measure.blocked_share(played.rows, LINK_CREDIT),
    )


@dataclass(frozen=True, kw_only=True, repr=False)  # no slots: cached_property needs a place
class Comparison(Tabled):
    """One run for each rule, alike in everything else.

    Attributes:
        runs: by rule; each opens on the stage.
    """

    runs: dict[str, Run] = field(repr=False)

    @cached_property
    def results(self) -> list[Result]:
        """What each rule achieved, in the order of the rules."""
        return [result(played, rule) for rule, played in self.runs.items()]

    @property
    def rates(self) -> dict[str, float]:
        """Messages a second by rule: what `bar_chart` draws."""
        return {one.rule: one.rate for one in self.results}

    @property
    def table(self) -> Table:
        """A row for each rule."""
        return table_of(
            "rules",
            [
                (
                    one.rule,
                    f"{one.messages:,}",
                    f"{one.flows:,}",
                    f"{measure.milliseconds(one.time_us):,.1f}",
                    f"{one.rate:,.0f}",
                    say("rules.held", share=one.held),
                )
                for one in self.results
            ],
        )


@takes
def compare_rules(
    *,
    latency_us: int | None = None,
    messages: int,
    n: int | None = None,
    preset: Preset | str = "spec",
    rules: Sequence[str] = RULES,
) -> Comparison:
    """Let each top-up rule fetch the same messages over the same wire.

    Args:
        latency_us: how long a frame is under way in each direction; the preset's if None.
        messages: ready in the queue.
        n: the N of the rules that have one; the preset's if None.
        preset: every other number.
        rules: names of top-up rules.

    Raises:
        ParameterError: if one of them is not legal.
    """
    given: dict[str, Any] = {"messages": messages, "latency_us": latency_us, "n": n}
    given = {name: value for name, value in given.items() if value is not None}
    runs = {rule: run("credit", preset, {**given, "policy": rule}) for rule in rules}
    return Comparison(runs=runs)
