"""A learner's sender tried in every order that a small link allows, by the explorer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

from workbench.languages import phrase
from workbench.scenarios.link_model import LinkModel
from workbench.scenarios.rules import rule_named
from workbench.scenarios.sandbox import GuardedRule, LearnerCodeError, guarded
from workbench.scenarios.schedules import play_model, seq_of_move
from workbench.serial import HALF
from workbench.sim.explorer import Bounds, Exploration, explore
from workbench.views.lattice_words import sentences
from workbench.views.stage_widget import StageWidget

# The rules that lesson 02 sets side by side; `naive` has a section of its own.
RULES = ("spec", "set", "add")
BOUNDS = Bounds(states=100_000, octets=200_000_000)
OnFlow = Callable[..., Any]

say = partial(phrase, "senders")


class Trial:
    """A learner's sender, tried in every order.

    Args:
        on_flow: the learner's function of `state` and `frame`.
        messages: that the sender has.
        grants: link-credit of the receiver's flows, in order.
        initial_delivery_count: with which the sender begins.

    Attributes:
        given: the link: messages, grants, initial delivery-count.
        found: what the explorer found; None if the function failed.
        fault: what is wrong with the function itself, in words; else empty.
    """

    def __init__(
        self,
        on_flow: OnFlow,
        *,
        messages: int,
        grants: Sequence[int],
        initial_delivery_count: int = 0,
    ) -> None:
        self.on_flow = on_flow
        self.given: dict[str, Any] = {
            "messages": messages,
            "grants": tuple(grants),
            "initial_delivery_count": initial_delivery_count,
        }
        self.found: Exploration[Any, str] | None = None
        self.fault = ""
        self.rule: GuardedRule | None = None
        try:
            self.rule = guarded(on_flow)
            self.found = explore(self.model, BOUNDS)
        except LearnerCodeError as error:
            self.fault = str(error)

    @property
    def model(self) -> LinkModel:
        """The link with this sender."""
        assert self.rule is not None
        return LinkModel(rule=self.rule, **self.given)

    @property
    def grants(self) -> tuple[int, ...]:
        """Link-credit of the receiver's flows."""
        return tuple(self.given["grants"])

    @property
    def passed(self) -> bool:
        """Every state was visited, none is bad, and in none does the sender wait for nothing."""
        return self.found is not None and self.found.complete and self.breaking is None

    @cached_property
    def timid(self) -> int | None:
        """Place of the nearest state in which the sender holds less than it was granted.

        Only states with an empty wire count, for there nothing will ever tell it; and only before a
        grant that is less than the one before: until then the furthest limit is the present one.
        """
        if self.found is None:
            return None
        falls = (at for at, (one, other) in enumerate(pairwise(self.grants), 1) if other < one)
        rising = next(falls, len(self.grants))
        for place, state in enumerate(self.found.ordered):
            view = self.model.describe(state)
            if view.transfers_in_flight or view.flows_in_flight or view.grants_issued > rising:
                continue
            if view.snd_link_credit < view.allowed:
                return place
        return None

    @property
    def breaking(self) -> tuple[str, ...] | None:
        """The shortest schedule that breaks it: too much, or else too little; None if none does."""
        if self.found is None:
            return None
        if self.found.shortest is not None:
            return self.found.shortest
        return None if self.timid is None else self.found.schedule_to(self.timid)

    @property
    def text(self) -> str:
        """The verdict in words."""
        if self.fault:
            return f"✘ {self.fault}"
        assert self.found is not None
        states = self.found.states
        if self.found.shortest is not None:
            moves = self.found.shortest
            view = self.model.describe(self.found.bad_states[0])
            return say(
                "broken",
                n=len(moves),
                moves=", ".join(moves),
                believed=view.snd_link_credit,
                allowed=max(0, view.allowed),
                states=states,
                bad=self.found.bad,
            )
        if not self.found.complete:
            return say("unfinished", stopped=self.found.stopped)
        if self.timid is not None:
            return f"✘ {self._waiting(self.timid)}"
        return say("passed", grants=len(self.grants), states=states)

    def _waiting(self, place: int) -> str:
        """That the sender is safe and useless, with the way to where it shows."""
        assert self.found is not None
        view = self.model.describe(self.found.ordered[place])
        moves = ", ".join(self.found.schedule_to(place))
        return say("timid", moves=moves, allowed=view.allowed, held=view.snd_link_credit)

    @property
    def story(self) -> list[str]:
        """The shortest schedule that breaks it, a sentence for each move."""
        return [] if self.breaking is None else sentences(self.model, self.breaking)

    @property
    def printed(self) -> str:
        """The beginning of what the function has printed."""
        return self.rule.printed if self.rule is not None else ""

    # -- what a green verdict is worth ------------------------------------------------------------

    @cached_property
    def alike(self) -> tuple[str, ...]:
        """Names of the rules with which this link can reach exactly the same states."""
        if self.found is None:
            return ()
        mine = set(self.found.ordered)
        return tuple(
            name
            for name in RULES
            if set(explore(LinkModel(rule=rule_named(name).rule, **self.given), BOUNDS).ordered)
            == mine
        )

    @property
    def blind(self) -> bool:
        """It passed, and other rules cannot be told from it by this link."""
        return self.passed and len(self.alike) > 1

    def further(self) -> Trial:
        """The same sender with one grant more, twice the latest as far as it can be counted."""
        most = HALF - 1 - self.given["messages"]
        given = {**self.given, "grants": (*self.grants, min(2 * self.grants[-1], most))}
        return Trial(self.on_flow, **given)

    @property
    def worth(self) -> str:
        """What this verdict proves, in words."""
        assert self.found is not None
        names = ", ".join(f"“{name}”" for name in self.alike)
        return say("worth", names=names, n=self.found.states)

    # -- seeing it --------------------------------------------------------------------------------

    def broken(self) -> StageWidget | None:
        """The shortest schedule that breaks it, played on the real broker; None if none does."""
        moves = self.breaking
        if moves is None:
            return None
        played = play_model(self.model, moves)
        return StageWidget(
            played,
            at=seq_of_move(played, len(moves) - 1) if moves else None,
            title=say("broken-title"),
            acts=[],
        )

    def __str__(self) -> str:
        lines = [self.text, *self.story]
        if self.printed:
            lines.append(f"{say('printed')}:\n{self.printed}")
        return "\n".join(lines)

    __repr__ = __str__
