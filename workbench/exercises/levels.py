"""Levels of “You are the scheduler”: what is given, and what the explorer proves about it.

A level says what the sender's rule is, what the receiver grants, and where counting begins. The
goal is always the same: bring the sender to believe in more credit than was ever granted. Whether
that can be done, and in how few moves, is in no table: the explorer works it out when the level is
opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from workbench.scenarios.link_model import LinkModel, LinkState
from workbench.scenarios.rules import rule_named
from workbench.sim.explorer import Bounds, Exploration, explore

BOUNDS = Bounds(states=200_000, octets=200_000_000)


@dataclass(frozen=True, kw_only=True)  # no slots: cached_property needs a place
class Level:
    """One level.

    Attributes:
        name: under which its outcome is kept.
        title: what it is called.
        story: what is given, in a sentence or two, without the answer.
        rule: name of the sender's rule.
        messages: that the sender has.
        grants: link-credit of the receiver's flows.
        initial_delivery_count: with which the sender begins.
        first_credit: credit that both ends agree on at the beginning.
    """

    name: str
    title: str
    story: str
    rule: str
    messages: int
    grants: Sequence[int]
    initial_delivery_count: int = 0
    first_credit: int = 0

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
            return f"{found.stopped}; that is no proof"
        return (
            f"every state that any order can reach was visited, {found.states:,} of them, and in"
            " none may the sender send more than was granted"
        )


def levels() -> tuple[Level, ...]:
    """The levels, in the order in which they are meant to be taken."""
    return (
        Level(
            name="add",
            title="A sender that adds",
            story="The receiver grants twice. The sender adds each grant to what it has left.",
            rule="add",
            messages=10,
            grants=(3, 6),
        ),
        Level(
            name="set",
            title="A sender that sets",
            story="The same receiver. The sender takes the number in the flow as it stands.",
            rule="set",
            messages=10,
            grants=(3, 6),
        ),
        Level(
            name="once",
            title="One grant only",
            story="The same sender that adds, but the receiver grants once.",
            rule="add",
            messages=10,
            grants=(4,),
        ),
        Level(
            name="article",
            title="The article's race",
            story="Both ends hold delivery-count 20 and link-credit 3; the receiver grants 6. The"
            " sender sets.",
            rule="set",
            messages=10,
            grants=(6,),
            initial_delivery_count=20,
            first_credit=3,
        ),
        Level(
            name="rule",
            title="The specification's sender",
            story="The receiver of the first two levels. The sender works by 2.6.7.",
            rule="spec",
            messages=10,
            grants=(3, 6),
        ),
        Level(
            name="wrap",
            title="Past the largest number",
            story="The sender knows the formula, but subtracts as if numbers went on for ever. It"
            " begins just below 4294967296.",
            rule="naive",
            messages=6,
            grants=(3, 4),
            initial_delivery_count=4294967294,
        ),
        Level(
            name="less",
            title="Taking back",
            story="The receiver grants 6 and then only 2. The sender works by 2.6.7.",
            rule="spec",
            messages=8,
            grants=(6, 2),
        ),
        Level(
            name="back",
            title="Taking back from the wrong one",
            story="The receiver grants 6 and then only 3. The sender sets.",
            rule="set",
            messages=10,
            grants=(6, 3),
        ),
    )
