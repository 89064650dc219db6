"""“You are the scheduler”: the learner decides what is sent and arrives, and tries to break it.

It is played on the stage: an action there is a move, and a branch is another try. What came of it
is told by `game.Game`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from workbench.scenarios.branches import Branches
from workbench.scenarios.link_model import MOVES
from workbench.scenarios.race import ACT_OF_MOVE
from workbench.scenarios.schedules import play_model
from workbench.trace.given import takes
from workbench.views.controls import named, status
from workbench.views.lattice_desk import LatticeDesk
from workbench.views.lattice_view import WITHIN, button
from workbench.views.stage_widget import StageWidget
from workbench.views.stills import Still

from .game import Game
from .levels import Level, levels, say
from .progress import Progress, progress

MOVE_OF_ACT = {ACT_OF_MOVE[move]: move for move in MOVES}


class Scheduler(Still, widgets.VBox):
    """The game.

    Args:
        chosen: levels to choose from.
        log: where outcomes are kept.

    Attributes:
        stage: the link, under the learner's hands.
        graph: all schedules of the level, once it is done and they were asked for.
    """

    def __init__(self, chosen: Sequence[Level], log: Progress = progress) -> None:
        self._games = {level.name: Game(level, log) for level in chosen}
        self._trees = {
            level.name: Branches(play_model(level.model, (), level.rule)) for level in chosen
        }
        choice = widgets.Dropdown(
            options=self._labels(), layout={"width": "auto", "max_width": WITHIN}
        )
        self.choice = named(choice, say("choice-tip"))
        self.story = widgets.HTML()
        self.line = widgets.HTML(layout={"min_height": "28px"})
        self.back = button(say("back"), say("back-tip"))
        self.reset = button(say("reset"), say("reset-tip"))
        self.hint = button(say("hint-button"), say("hint-button-tip"))
        self.cannot = button(say("cannot"), say("cannot-tip"))
        self.all = button(say("all"), say("all-tip"))
        self.place = widgets.VBox()
        self.stage = StageWidget(self._tree, title=self._title, acts=[*MOVE_OF_ACT])
        self.graph: LatticeDesk | None = None
        self._quiet = False
        row = {"flex_flow": "row wrap", "grid_gap": "4px 8px"}
        buttons = [self.choice, self.back, self.reset, self.hint, self.cannot, self.all]
        super().__init__(
            children=[
                self.story,
                widgets.Box(buttons, layout=row),
                self.line,
                self.stage,
                self.place,
            ]
        )
        self.stage.observe(lambda _change: self._do(self._follow), names="branch")
        self.back.on_click(lambda _button: self._go(self._tree.parent(self._tree.current)))
        self.reset.on_click(lambda _button: self._go(0))
        self.hint.on_click(lambda _button: self._do(self.game.hint))
        self.cannot.on_click(lambda _button: self._do(self.game.cannot))
        self.all.on_click(lambda _button: self._open_graph())
        self.choice.observe(lambda _change: self._picked(), names="value")
        self._show()

    @property
    def game(self) -> Game:
        """The level that is shown."""
        return self._games[self.choice.value]

    @property
    def _tree(self) -> Branches:
        return self._trees[self.choice.value]

    @property
    def _title(self) -> str:
        return say("title", level=self.game.level.title)

    def _labels(self) -> list[tuple[str, str]]:
        """The levels with their numbers; those that were ever done have a tick."""
        return [
            (f"{'✔ ' if game.done else ''}{number}. {game.level.title}", name)
            for number, (name, game) in enumerate(self._games.items(), start=1)
        ]

    def _picked(self) -> None:
        if not self._quiet:
            self.stage.show_run(self._tree, at=self._tree.run.last, title=self._title)
            self._do(lambda: None)

    def _follow(self) -> None:
        """The moves are those of the branch that is shown."""
        self.game.follow([MOVE_OF_ACT[action.name] for action in self.stage.run.actions])

    def _go(self, branch: int | None) -> None:
        """Show the end of a branch."""
        if branch is not None:
            run = self._tree.runs[branch]
            self.stage.show(branch, len(run.rows) - 1)

    def _do(self, what: Any) -> None:
        what()
        self._close_graph()
        self._show()

    def _show(self) -> None:
        game = self.game
        # Before, it would give the answer away.
        self.all.disabled = not game.done
        self.back.disabled = self.reset.disabled = not game.moves
        labels = self._labels()
        if list(self.choice.options) != labels:
            chosen, self._quiet = self.choice.value, True
            self.choice.options = labels
            self.choice.value = chosen
            self._quiet = False
        self.story.value = status(f"{game.level.story} {say('goal')}")
        self.line.value = status(f"{game.told} {game.line}")

    def _open_graph(self) -> None:
        self._close_graph()
        level = self.game.level
        self.graph = LatticeDesk(
            messages=level.messages,
            grants=level.grants,
            rules=[level.rule],
            initial_delivery_count=level.initial_delivery_count,
            first_credit=level.first_credit,
            path=self.game.moves,
        )
        self.place.children = (self.graph,)

    def _close_graph(self) -> None:
        if self.graph is not None:
            self.place.children = ()
            self.graph.close()
            self.graph = None

    def __repr__(self) -> str:
        return str(self.game)


@takes
def scheduler(chosen: Sequence[Level] | None = None) -> Scheduler:
    """The game.

    Args:
        chosen: levels; all of them if there are none.
    """
    return Scheduler(chosen or levels())


__all__ = ["Game", "Scheduler", "scheduler"]
