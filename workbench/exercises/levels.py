"""Levels of “You are the scheduler”: what is given, and what the explorer proves about it.

A level says what the sender's rule is, what the receiver grants, and where counting begins. The
goal is always the same: bring the sender to believe in more credit than was ever granted. Whether
that can be done, and in how few moves, is in no table: the explorer works it out when the level is
opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from workbench.languages import phrase
from workbench.scenarios.link_model import LinkModel, LinkState
from workbench.scenarios.rules import rule_named
from workbench.sim.explorer import Bounds, Exploration, explore

BOUNDS = Bounds(states=200_000, octets=200_000_000)

say = partial(phrase, "game")


@dataclass(frozen=True, kw_only=True)  # no slots: cached_property needs a place
class Level:
    """One level.

    Attributes:
        name: under which its outcome is kept, and its words stand in `game.toml`.
        rule: name of the sender's rule.
        messages: that the sender has.
        grants: link-credit of the receiver's flows.
        initial_delivery_count: with which the sender begins.
        first_credit: credit that both ends agree on at the beginning.
    """

    name: str
    rule: str
    messages: int
    grants: Sequence[int]
    initial_delivery_count: int = 0
    first_credit: int = 0

    @property
    def title(self) -> str:
        """What it is called."""
        return say(f"level.{self.name}.title")

    @property
    def story(self) -> str:
        """What is given, in a sentence or two, without the answer."""
        return say(f"level.{self.name}.story")

    @property
    def model(self) -> LinkModel:
        """The link."""
        return LinkModel(
            messages=self.messages,
            grants=tuple(self.grants),
            rule=rule_named(self.rule).rule,
            initial_delivery_count=self.initial_delivery_count,
            first_credit=self.first_credit,
        )

    @cached_property
    def found(self) -> Exploration[LinkState, str]:
        """Everything that can happen in this level."""
        return explore(self.model, BOUNDS)

    @property
    def par(self) -> int | None:
        """Fewest moves that win; None if it cannot be done."""
        shortest = self.found.shortest
        return None if shortest is None else len(shortest)

    def from_here(self, state: LinkState) -> tuple[str, ...] | None:
        """A shortest way to win from a state; None if there is none."""
        model = self.model

        class Here:
            initial = state
            successors = staticmethod(model.successors)
            bad = staticmethod(model.bad)

        return explore(Here(), BOUNDS, stop_at_bad=True).shortest

    @property
    def proof(self) -> str:
        """Why it cannot be done."""
        found = self.found
        if not found.complete:
            return say("no-proof", stopped=found.stopped)
        return say("proof", states=found.states)


def levels() -> tuple[Level, ...]:
    """The levels, in the order in which they are meant to be taken."""
    return (
        Level(name="add", rule="add", messages=10, grants=(3, 6)),
        Level(name="set", rule="set", messages=10, grants=(3, 6)),
        Level(name="once", rule="add", messages=10, grants=(4,)),
        Level(
            name="article",
            rule="set",
            messages=10,
            grants=(6,),
            initial_delivery_count=20,
            first_credit=3,
        ),
        Level(name="rule", rule="spec", messages=10, grants=(3, 6)),
        Level(
            name="wrap", rule="naive", messages=6, grants=(3, 4), initial_delivery_count=4294967294
        ),
        Level(name="less", rule="spec", messages=8, grants=(6, 2)),
        Level(name="back", rule="set", messages=10, grants=(6, 3)),
    )
