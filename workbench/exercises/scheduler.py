"""“You are the scheduler”: the learner decides what is sent and arrives, and tries to break it.

`game.Game` plays; the widget shows it and has a button for everything that can be done.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from workbench.scenarios.schedules import play_model
from workbench.views.lattice_desk import LatticeDesk
from workbench.views.lattice_view import button, status
from workbench.views.stepper_widget import StepperWidget, stepper
from workbench.views.stills import Still

from .game import BUTTONS, CANNOT, Game
from .levels import Level, levels
from .progress import Progress, progress

GOAL = "Bring the sender to believe in more than was ever granted, or say that it cannot be done."


class Scheduler(Still, widgets.VBox):
    """The game with buttons.

    Args:
        chosen: levels to choose from.
        log: where outcomes are kept.

    Attributes:
        buttons: by move. Those that are possible now are coloured, and named below; the others can
            be pressed as well and say why not.
        shown: what is open below: the moves in the stepper, or all schedules.
    """

    def __init__(self, chosen: Sequence[Level], log: Progress = progress) -> None:
        self._games = {level.name: Game(level, log) for level in chosen}
        self.choice = widgets.Dropdown(
            options=self._labels(), description="level", layout={"width": "340px"}
        )
        self.story = widgets.HTML()
        self.board = widgets.HTML()
        self.line = widgets.HTML(layout={"min_height": "28px"})
        self.buttons = {move: button(text, move) for move, text in BUTTONS.items()}
        self.undo = button("Undo", "take the latest move back")
        self.reset = button("Begin again", "no move made")
        self.hint = button("Hint", "a little help; ask again for more")
        self.cannot = button("Cannot be done", "no schedule reaches the goal")
        self.open_button = button(
            "Open in stepper", "play these moves on the real broker, frame by frame"
        )
        self.all = button("All schedules", "the lattice with your path, once the level is done")
        self.place = widgets.VBox()
        self.shown: StepperWidget | LatticeDesk | None = None
        self._quiet = False
        super().__init__(
            children=[
                self.choice,
                self.story,
                self.board,
                _row([*self.buttons.values()]),
                _row(
                    [self.undo, self.reset, self.hint, self.cannot, self.open_button, self.all],
                ),
                self.line,
                self.place,
            ],
            layout={"border": "1px solid #8a94a0", "padding": "8px 14px", "max_width": "72em"},
        )
        for move, each in self.buttons.items():
            each.on_click(lambda _button, move=move: self._do(lambda: self.game.move(move)))
        self.undo.on_click(lambda _button: self._do(self.game.undo))
        self.reset.on_click(lambda _button: self._do(self.game.reset))
        self.hint.on_click(lambda _button: self._do(self.game.hint))
        self.cannot.on_click(lambda _button: self._do(self.game.cannot))
        self.open_button.on_click(lambda _button: self._put(self._stepper()))
        self.all.on_click(lambda _button: self._put(self._lattice()))
        self.choice.observe(lambda _change: self._picked(), names="value")
        self._show()

    @property
    def game(self) -> Game:
        """The level that is shown."""
        return self._games[self.choice.value]

    def _labels(self) -> list[tuple[str, str]]:
        """The levels with their numbers; those that were ever done have a tick."""
        return [
            (f"{'✔ ' if game.done else ''}{number}. {game.level.title}", name)
            for number, (name, game) in enumerate(self._games.items(), start=1)
        ]

    def _picked(self) -> None:
        if not self._quiet:
            self._do(lambda: None)

    def _do(self, what: Callable[[], None]) -> None:
        what()
        self._put(None)
        self._show()

    def _show(self) -> None:
        game = self.game
        for move, why in game.legal().items():
            self.buttons[move].tooltip = why or f"move: {move}"
            possible = why is None and not game.over
            self.buttons[move].button_style = "primary" if possible else ""
        self.open_button.disabled = not game.moves
        # Before, it would give the answer away.
        self.all.disabled = not game.over
        self._relabel()
        self.story.value = status(f"{game.level.title}. {game.level.story} {GOAL}")
        self.board.value = _board(game)
        self.line.value = status(game.line)

    def _relabel(self) -> None:
        labels = self._labels()
        if list(self.choice.options) != labels:
            chosen, self._quiet = self.choice.value, True
            self.choice.options = labels
            self.choice.value = chosen
            self._quiet = False

    # -- what opens below -----------------------------------------------------------------------

    def _stepper(self) -> StepperWidget:
        game = self.game
        played = play_model(game.level.model, game.moves, game.level.rule)
        return stepper(played, at=played.last, title=f"{game.level.title}: your schedule")

    def _lattice(self) -> LatticeDesk:
        level = self.game.level
        return LatticeDesk(
            messages=level.messages,
            grants=level.grants,
            rules=[level.rule],
            initial_delivery_count=level.initial_delivery_count,
            first_credit=level.first_credit,
            path=self.game.moves,
        )

    def _put(self, widget: StepperWidget | LatticeDesk | None) -> None:
        """One thing at a time; nothing after another move."""
        old, self.shown = self.shown, widget
        self.place.children = () if widget is None else (widget,)
        if old is not None:
            old.close()

    # -- without a kernel -----------------------------------------------------------------------

    def __repr__(self) -> str:
        return str(self.game)


def _row(children: list[Any]) -> Any:
    return widgets.Box(children, layout={"flex_flow": "row wrap", "grid_gap": "4px 8px"})


def _board(game: Game) -> str:
    """Both ledgers, and beside them what is on the wire."""
    cell = "padding:2px 14px;text-align:right;font-variant-numeric:tabular-nums"
    lines = "".join(
        f'<tr><th scope="row" style="text-align:left;padding:2px 14px 2px 0;font-weight:normal">'
        f'{name}</th><td style="{cell}">{mine}</td><td style="{cell}">{other}</td></tr>'
        for name, mine, other in game.ledgers
    )
    transfers, flows = game.wire
    moves = ", ".join(game.moves) or "none yet"
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:10px 40px;align-items:flex-start;'
        'line-height:1.4">'
        '<table aria-label="Ledgers" style="border-collapse:collapse;font-size:100%">'
        f'<thead><tr><td></td><th scope="col" style="{cell}">sender</th>'
        f'<th scope="col" style="{cell}">receiver</th></tr></thead><tbody>{lines}</tbody></table>'
        '<div style="line-height:1.7;max-width:34em;white-space:normal">'
        f"<strong>On the wire</strong><br>● to the receiver: {html.escape(transfers)}<br>"
        f"◆ to the sender: {html.escape(flows)}<br>"
        f"<strong>Moves</strong> ({len(game.moves)}): {html.escape(moves)}</div></div>"
    )


def scheduler(chosen: Sequence[Level] | None = None, log: Progress = progress) -> Scheduler:
    """The game.

    Args:
        chosen: levels; all of them if None.
        log: where outcomes are kept.
    """
    return Scheduler(levels() if chosen is None else chosen, log)


__all__ = ["BUTTONS", "CANNOT", "Game", "Scheduler", "scheduler"]
