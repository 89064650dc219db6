"""The game “You are the scheduler” without any widget: moves, undo, verdicts, hints, words.

What can be done, and in how few moves, comes from the explorer.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.languages import count
from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
    LinkState,
    LinkView,
)
from workbench.scenarios.schedules import states_along

from .levels import Level
from .progress import Progress, progress

LESSON = "02"
CANNOT = "cannot be done"
MOVES = {
    SEND_FLOW: "the receiver sends the next flow",
    SEND_TRANSFER: "the sender sends a message",
    TRANSFER_ARRIVES: "the first transfer arrives",
    FLOW_ARRIVES: "the first flow arrives",
}


class Game:
    """One level being played.

    Attributes:
        level: which.
        moves: made so far.
        states: the state before each move, and the present one last.
        hints: how many were looked at.
        over: whether the learner has won or given the right proof.
        line: what to tell about the latest move.
    """

    def __init__(self, level: Level, log: Progress = progress) -> None:
        self.level = level
        self._log = log
        self.hints = 0
        self.reset()

    def reset(self) -> None:
        """Begin again; hints stay counted."""
        self.moves: list[str] = []
        self.states: list[LinkState] = [self.level.model.initial]
        self.over = False
        self.line = f"Choose who acts. {self._possible()}"

    @property
    def state(self) -> LinkState:
        """The present state."""
        return self.states[-1]

    @property
    def view(self) -> LinkView:
        """The present state with names."""
        return self.level.model.describe(self.state)

    @property
    def name(self) -> str:
        """Under which the outcome is kept."""
        return f"{LESSON}/level-{self.level.name}"

    @property
    def done(self) -> bool:
        """Whether the learner has ever done this level."""
        entry = self._log.entries.get(self.name)
        return entry is not None and any(record.right for record in entry.records)

    def legal(self) -> dict[str, str | None]:
        """For each move None if it is possible, else why not."""
        return self.level.model.legal(self.state)

    def follow(self, moves: Sequence[str]) -> None:
        """Go to where these moves lead: on by one, back, or to another branch.

        Raises:
            KeyError: if one of them is not possible when its turn comes.
        """
        made = len(self.moves)
        won = self.over
        self.moves, self.states = list(moves), states_along(self.level.model, moves)
        self.over = any(map(self.level.model.bad, self.states))
        if self.over and not won and len(moves) == made + 1:
            self._won()
        elif self.over:
            self.line = "This level is done. Go back, begin again, or take another."
        else:
            self.line = f"{count(len(self.moves), 'move')} made. {self._possible()}"

    def cannot(self) -> None:
        """The learner says that it cannot be done."""
        par = self.level.par
        if par is None and not self.level.found.complete:
            self.line = f"The explorer cannot tell: {self.level.proof}."
            return
        self._log.record(self.name, CANNOT, par is None, hints=self.hints)
        if par is None:
            self.over = True
            self.line = f"✔ Right, it cannot be done: {self.level.proof}."
        else:
            self.line = (
                "✘ It can be done: the explorer knows a schedule of"
                f" {count(par, 'move')}. A hint tells where it begins."
            )

    def hint(self) -> None:
        """A little more with each asking: the next move, and in the end the whole schedule."""
        way = self.level.from_here(self.state)
        if self.level.par is None:
            self.hints += 1
            self.line = (
                f"The explorer has visited {count(self.level.found.states, 'state')}. How many of"
                " them are bad? The button below the picture claims to know."
            )
        elif way is None:
            self.line = "From here it cannot be done any more: go back, or begin again."
        elif not way:
            self.line = "You are there."
        else:
            self.hints += 1
            told = f"Next: {MOVES[way[0]]}."
            if self.hints == 1:
                told = f"From here it takes {count(len(way), 'move')}."
            elif self.hints > 2:
                told = "From here: " + ", ".join(MOVES[one] for one in way) + "."
            self.line = told

    def _won(self) -> None:
        self.over = True
        par, made = self.level.par, len(self.moves)
        self._log.record(self.name, f"{made} moves", True, hints=self.hints)
        self.line = (
            f"✔ Done in {count(made, 'move')}: the sender believes that it may send"
            f" {count(self.view.snd_link_credit, 'message')} more; granted are {self.granted}."
        )
        if par == made:
            self.line += " That is the shortest possible: all schedules were searched."
        elif par is not None:
            self.line += f" {count(par, 'move')} are possible."

    def _possible(self) -> str:
        """What can happen next, in words."""
        names = [MOVES[name] for name, why in self.legal().items() if why is None]
        if not names:
            return "Nothing can happen any more: go back, or begin again."
        return f"Possible now: {', '.join(names)}."

    # -- in words -----------------------------------------------------------------------------

    @property
    def granted(self) -> int:
        """How many more may be sent by the furthest limit."""
        return max(0, self.view.allowed)

    @property
    def told(self) -> str:
        """How much the sender believes that it may send, and how much was granted: the goal."""
        view = self.view
        sign = " ✕" if self.level.model.bad(self.state) else ""
        return (
            f"The sender believes that it may send {view.snd_link_credit} more{sign}; by the"
            f" furthest limit ever granted, {view.furthest_limit}, it is {self.granted}."
        )

    def __str__(self) -> str:
        moves = ", ".join(MOVES[one] for one in self.moves) or "none"
        lines = [f"{self.level.title}. {self.level.story}", self.told, f"Moves: {moves}."]
        return "\n".join([*lines, self.line])
