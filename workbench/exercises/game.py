"""The game “You are the scheduler” without any widget: moves, undo, verdicts, hints, words.

What can be done, and in how few moves, comes from the explorer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from workbench.scenarios.link_model import LinkState, LinkView
from workbench.scenarios.schedules import states_along

from .levels import Level, say
from .progress import Progress, progress

LESSON = "02"
CANNOT = "cannot be done"  # as the log keeps it


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
        self.moves: list[str] = []
        self.over = False
        self.follow([])

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
        return entry is not None and entry.right

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
            self.line = say("over")
        elif self.moves:
            self.line = say("made", n=len(self.moves), possible=self._possible())
        else:
            self.line = say("begin", possible=self._possible())

    def cannot(self) -> None:
        """The learner says that it cannot be done."""
        par = self.level.par
        if par is None and not self.level.found.complete:
            self.line = say("cannot-tell", proof=self.level.proof)
            return
        self._log.record(self.name, CANNOT, par is None, hints=self.hints)
        if par is None:
            self.over = True
            self.line = say("proved", proof=self.level.proof)
        else:
            self.line = say("disproved", n=par)

    def hint(self) -> None:
        """A little more with each asking, and in the end the whole schedule, or that none is."""
        way = self.level.from_here(self.state)
        if self.level.par is None and not self.level.found.complete:
            self.line = say("cannot-tell", proof=self.level.proof)
        elif self.level.par is None:
            self.hints += 1
            more = ("visited", "asks", "none")[min(self.hints, 3) - 1]
            self.line = say(f"hint.{more}", n=self.level.found.states)
        elif way is None:
            self.line = say("hint.too-late")
        elif not way:
            self.line = say("hint.there")
        else:
            self.hints += 1
            if self.hints == 1:
                self.line = say("hint.number", n=len(way))
            elif self.hints == 2:
                self.line = say("hint.next", move=in_words(way[:1]))
            else:
                self.line = say("hint.way", moves=in_words(way))

    def _won(self) -> None:
        self.over = True
        par, made = self.level.par, len(self.moves)
        self._log.record(self.name, f"{made} moves", True, hints=self.hints)
        believed = self.view.snd_link_credit
        self.line = say("won", n=made, believed=believed, granted=self.granted)
        if par == made:
            self.line += f" {say('shortest')}"
        elif par is not None:
            self.line += f" {say('shorter', n=par)}"

    def _possible(self) -> str:
        """What can happen next, in words."""
        moves = [name for name, why in self.legal().items() if why is None]
        return say("possible", moves=in_words(moves)) if moves else say("stuck")

    # -- in words -----------------------------------------------------------------------------

    @property
    def granted(self) -> int:
        """How many more may be sent by the furthest limit."""
        return max(0, self.view.allowed)

    @property
    def told(self) -> str:
        """How much the sender believes that it may send, and how much was granted: the goal."""
        view = self.view
        return say(
            "told",
            believed=view.snd_link_credit,
            sign=" ✕" if self.level.model.bad(self.state) else "",
            limit=view.furthest_limit,
            granted=self.granted,
        )

    def __str__(self) -> str:
        moves = say("moves", moves=in_words(self.moves)) if self.moves else say("no-moves")
        return "\n".join([f"{self.level.title}. {self.level.story}", self.told, moves, self.line])


def in_words(moves: Sequence[str]) -> str:
    """Moves, one after the other; one that is made several times in a row is said once."""
    told = [(say(f"move.{move}"), len([*again])) for move, again in groupby(moves)]
    return ", ".join(say("repeated", move=move, n=n) if n > 1 else move for move, n in told)
