"""The state graph to work with: a rule to choose, a state to choose, its schedule on the stage.

However a state is chosen, a shortest schedule to it is played on the real broker and opens beside
the graph, or below it where the page is narrow: who chooses sees what comes of it.
While that is stepped through, the ring in the graph moves along.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from workbench.notebook import WrongValueError
from workbench.scenarios.link_model import LinkModel
from workbench.scenarios.race import ACT_OF_MOVE, YOURS, plans_of
from workbench.scenarios.rules import CreditRule, rule_named
from workbench.scenarios.run import Run
from workbench.scenarios.schedules import play
from workbench.sim.explorer import Bounds, Exploration, explore
from workbench.trace.given import takes

from .controls import status
from .lattice import path_of
from .lattice_view import LatticeView
from .lattice_words import BAD, overrun, say, verdict, words
from .stage_widget import StageWidget
from .stills import Still

# About two seconds of searching.
BOUNDS = Bounds(states=200_000, octets=200_000_000)
LONGEST = 200  # moves that are played
_GRAPH = {"flex": "1 1 330px", "min_width": "0"}
_STAGE = {"flex": "1.5 1 470px", "min_width": "0"}


class LatticeDesk(Still, widgets.VBox):
    """All schedules of one small link, under one rule at a time, to look at and to choose from.

    Args:
        messages: that the sender has.
        grants: link-credit of the receiver's flows, in order.
        rules: names of the rules to choose from; the first is shown first.
        initial_delivery_count: with which the sender begins.
        first_credit: that both ends have agreed on before the first move.
        rule_function: a learner's rule, instead of named ones.
        path: moves of the learner's own, drawn on top.

    Raises:
        GivenError: an argument is not what is wanted.
        WrongValueError: no such rule.

    Attributes:
        view: the lattice of the chosen rule.
        stage: the schedule to the chosen state; None before one was chosen.
    """

    @takes
    def __init__(
        self,
        *,
        messages: int = 10,
        grants: Sequence[int] = (3, 6),
        rules: Sequence[str] = ("set", "add", "spec"),
        initial_delivery_count: int = 0,
        first_credit: int = 0,
        rule_function: CreditRule | None = None,
        path: Sequence[str] = (),
    ) -> None:
        self._given: dict[str, Any] = {
            "messages": messages,
            "grants": tuple(grants),
            "initial_delivery_count": initial_delivery_count,
            "first_credit": first_credit,
        }
        self._function = rule_function
        self._path = tuple(path)
        self._ends: list[int] = []  # steps at which each move begins
        names = [] if rule_function is not None else list(rules)
        self.rule = widgets.ToggleButtons(
            options=[(say("desk.rule", name=name), name) for name in names]
            or [(say("desk.your-rule"), YOURS)],
            tooltips=[rule_named(name).doc for name in names],
            style={"button_width": "110px"},
        )
        self.schedule = widgets.HTML()
        self.place = widgets.VBox()
        self.stage: StageWidget | None = None
        self.view: LatticeView
        super().__init__()
        self.rule.observe(lambda _change: self._explore(), names="value")
        self._explore()

    @property
    def found(self) -> Exploration[Any, Any]:
        """What was explored under the chosen rule."""
        return self.view.found

    def model(self) -> LinkModel:
        """The link under the chosen rule."""
        rule = self._function or rule_named(self.rule.value).rule
        return LinkModel(rule=rule, **self._given)

    def _explore(self) -> None:
        self._close_stage()
        found = explore(self.model(), BOUNDS)
        old = getattr(self, "view", None)
        self.view = LatticeView(found, path=self._path, on_select=self._chosen)
        choice = [self.rule] if len(self.rule.options) > 1 else []
        self.schedule.value = status(say("desk.choose"))
        graph = widgets.VBox([self.view, self.schedule], layout=_GRAPH)
        sides = widgets.Box(
            [graph, self.place], layout={"flex_flow": "row wrap", "grid_gap": "8px"}
        )
        self.children = (*choice, sides)
        if old is not None:
            old.close()

    # -- the chosen state -----------------------------------------------------------------------

    def _chosen(self, moves: tuple[str, ...]) -> None:
        found, index = self.found, self.view.index or 0
        told = [say("desk.moves" if moves else "desk.begins", n=len(moves), moves=", ".join(moves))]
        if verdict(found, index) == BAD:
            view = found.model.describe(found.ordered[index])  # type: ignore[attr-defined]
            told.append(say("desk.bad", why=overrun(view)))
        if len(moves) > LONGEST:
            self._close_stage()
            told.append(say("desk.too-long", n=LONGEST))
        else:
            self._open(moves)
        self.schedule.value = status(" ".join(told))

    def _open(self, moves: Sequence[str]) -> None:
        rule = str(self.rule.value)
        title = say("desk.by-your-rule" if rule == YOURS else "desk.by-rule", name=rule)
        played = play(moves, rule=rule, rule_function=self._function, **self._given)
        self._ends = [step for step, row in enumerate(played.rows) if row.event == "action"]
        if self.stage is None:
            self.stage = StageWidget(played, at=played.last, title=title, acts=[])
            self.stage.observe(lambda change: self._follow(change.new), names="cursor")
            self.place.children, self.place.layout = (self.stage,), _STAGE
        else:
            self.stage.show_run(played, at=played.last, title=title)

    def _follow(self, step: int) -> None:
        """Put the ring where the stage stands: after the moves that have been made there."""
        if self.view.index is None:
            return
        made = bisect.bisect_right(self._ends, step)
        path = path_of(self.found, self.found.schedule_to(self.view.index))
        self.view.picture.stand(path[min(made, len(path) - 1)])

    def _close_stage(self) -> None:
        if self.stage is not None:
            self.place.children, self.place.layout = (), {}
            self.stage.close()
            self.stage = None

    # -- without a kernel -----------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"{say('desk.now', name=self.rule.value)} {words(self.found)}"


@takes
def lattice_of(desk: Run) -> LatticeDesk:
    """All schedules of the link of a race, with the path of the branch that is shown on top.

    Args:
        desk: a stage with a race, or a run of it.

    Raises:
        GivenError: it is neither.
        WrongValueError: the model has no such link; the text says what it cannot show.
    """
    if desk.scenario.name != "race":
        raise WrongValueError(say("desk.no-race", scenario=desk.scenario.name))
    given = desk.parameters
    plans = plans_of(str(given["grants"]))
    if any(plan.drain or plan.echo for plan in plans) or given["other_credit"]:
        raise WrongValueError(say("desk.one-link"))
    code = desk.code.get("rule")
    first = str(given["rule"])
    others = [name for name in ("set", "add", "spec") if name != first]
    move_of = {act: move for move, act in ACT_OF_MOVE.items()}
    return LatticeDesk(
        messages=int(given["messages"]),
        grants=tuple(plan.link_credit for plan in plans),
        rules=[first, *others] if code is None else (),
        initial_delivery_count=int(given["initial_delivery_count"]),
        first_credit=int(given["first_credit"]),
        rule_function=code,
        path=[move_of[action.name] for action in desk.actions if action.name in move_of],
    )
