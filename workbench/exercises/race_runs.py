"""Runs and searches that several cells of lesson 02 share: the race in every order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
    LinkModel,
    LinkState,
)
from workbench.scenarios.race import ACT_OF_MOVE
from workbench.scenarios.rules import rule_named
from workbench.scenarios.run import Run, run
from workbench.sim.explorer import Exploration, explore
from workbench.trace.schema import BROKER, CLIENT

from . import measure
from .levels import BOUNDS
from .table import Table, Tabled

# The rules that lesson 02 sets side by side; `naive` has a section of its own.
RULES = ("spec", "set", "add")

# One flow and one message, in the orders in which they can be sent and can land.
ORDERS: Mapping[str, tuple[str, ...]] = {
    "one after the other": (SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER, TRANSFER_ARRIVES),
    "crossing, the flow lands first": (SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES, TRANSFER_ARRIVES),
    "crossing, the transfer lands first": (
        SEND_FLOW,
        SEND_TRANSFER,
        TRANSFER_ARRIVES,
        FLOW_ARRIVES,
    ),
}
CROSSING = tuple(order for order in ORDERS if order.startswith("crossing"))


def acted(played: Run, moves: Sequence[str]) -> Run:
    """The run after some moves, each made when the one before has come to rest."""
    for move in moves:
        played = played.then(ACT_OF_MOVE[move])
    return played


def under(race: Run, rule: str) -> Run:
    """The same race with another rule at the sender."""
    return run(race.scenario, race.preset, {**race.parameters, "rule": rule}, seed=race.seed)


@dataclass(frozen=True, repr=False, kw_only=True)  # no slots: cached_property needs a place
class Orders(Tabled):
    """One race under several rules, in every order.

    Attributes:
        runs: by rule and order; each opens in the stepper.
    """

    runs: Mapping[tuple[str, str], Run]

    @cached_property
    def credits(self) -> dict[tuple[str, str], tuple[int | None, int | None]]:
        """What the sender and the receiver hold when the wire is empty, by rule and order."""
        return {
            key: (measure.credit(played.rows, BROKER), measure.credit(played.rows, CLIENT))
            for key, played in self.runs.items()
        }

    @property
    def table(self) -> Table:
        """A row for each rule and order: both ends' credit, and whether they agree."""
        return Table(
            name="The race under each rule, in each order",
            head=("rule", "order", "credit of the sender", "of the receiver", ""),
            lines=[
                (rule, order, str(sender), str(receiver), "=" if sender == receiver else "≠ differ")
                for (rule, order), (sender, receiver) in self.credits.items()
            ],
        )

    def differing(self, rule: str) -> list[str]:
        """The orders in which the two ends disagree in the end under that rule."""
        return [
            order
            for (name, order), (sender, receiver) in self.credits.items()
            if name == rule and sender != receiver
        ]


def orders(race: Run, rules: Sequence[str] = RULES) -> Orders:
    """Play the race in every order under every rule.

    Args:
        race: the run as it began; its `rule` is replaced.
        rules: names of rules.
    """
    return Orders(
        runs={
            (rule, order): acted(under(race, rule), moves)
            for rule in rules
            for order, moves in ORDERS.items()
        }
    )


def searched(
    *,
    messages: int,
    grants: Sequence[int],
    rule: str = "spec",
    initial_delivery_count: int = 0,
) -> Exploration[LinkState, str]:
    """Visit every state of a small link.

    Args:
        messages: that the sender has.
        grants: link-credit of each flow, in order.
        rule: name of a rule.
        initial_delivery_count: with which the sender begins.

    Raises:
        ValueError: the link is too large to be searched whole, so nothing could be said of it.
    """
    # What is told about all schedules is worked out from all of them, or not told.
    found = explore(
        LinkModel(
            messages=messages,
            grants=tuple(grants),
            rule=rule_named(rule).rule,
            initial_delivery_count=initial_delivery_count,
        ),
        BOUNDS,
    )
    if not found.complete:
        raise ValueError(
            f"{messages} messages with grants {', '.join(map(str, grants))} are too many to visit"
            f" every state ({found.stopped}), and a part of them proves nothing; choose fewer"
            " messages or smaller grants"
        )
    return found
