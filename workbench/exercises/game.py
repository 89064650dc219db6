"""The game “You are the scheduler” without any widget: moves, undo, verdicts, hints, words.

What can be done, and in how few moves, comes from the explorer.
"""

from __future__ import annotations

from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
    LinkState,
    LinkView,
)
from workbench.trace.words import count

from .levels import Level
from .progress import Progress, progress

LESSON = "02"
CANNOT = "cannot be done"
BUTTONS = {
    SEND_FLOW: "receiver sends its next flow",
    SEND_TRANSFER: "sender sends a message",
    TRANSFER_ARRIVES: "oldest transfer arrives",
    FLOW_ARRIVES: "oldest flow arrives",
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

    def move(self, move: str) -> None:
        """Make a move, or say why it is not possible."""
        if self.over:
            self.line = "This level is done. Undo, begin again, or take another."
            return
        why = self.legal().get(move, "there is no such move")
        if why is not None:
            self.line = f"Not possible: {why}. {self._possible()}"
            return
        self.states.append(self.level.model.after(self.state, move))
        self.moves.append(move)
        if self.level.model.bad(self.state):
            self._won()
        else:
            self.line = f"{count(len(self.moves), 'move')} made. {self._possible()}"

    def undo(self) -> None:
        """Take the latest move back."""
        if not self.moves:
            self.over = False
            self.line = f"There is nothing to undo. {self._possible()}"
            return
        self.moves.pop()
        self.states.pop()
        self.over = False
        self.line = f"Taken back. {self._possible()}"

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
                " them are bad? One of the buttons claims to know."
            )
        elif way is None:
            self.line = "From here it cannot be done any more: undo, or begin again."
        elif not way:
            self.line = "You are there."
        else:
            self.hints += 1
            told = f"Next: {BUTTONS[way[0]]}."
            if self.hints == 1:
                told = f"From here {count(len(way), 'move')} are enough."
            elif self.hints > 2:
                told = "From here: " + ", ".join(BUTTONS[one] for one in way) + "."
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
            self.line += " That is the par: no schedule is shorter, all were searched."
        elif par is not None:
            self.line += f" {count(par, 'move')} are possible."

    def _possible(self) -> str:
        """What can happen next, in words."""
        names = [BUTTONS[name] for name, why in self.legal().items() if why is None]
        if not names:
            return "Nothing can happen any more: undo, or begin again."
        return f"Possible now: {', '.join(names)}."

    # -- in words -----------------------------------------------------------------------------

    @property
    def granted(self) -> int:
        """How many more may be sent by the furthest limit."""
        return max(0, self.view.allowed)

    @property
    def ledgers(self) -> list[tuple[str, str, str]]:
        """Counter, at the sender, at the receiver."""
        view = self.view
        too_much = " ✕" if self.level.model.bad(self.state) else ""
        return [
            ("delivery-count", str(view.snd_delivery_count), str(view.rcv_delivery_count)),
            ("furthest limit ever granted", "", str(view.furthest_limit)),
            ("may still be sent (credit)", f"{view.snd_link_credit}{too_much}", str(self.granted)),
            ("messages left", str(view.messages_left), ""),
            ("flows still to send", "", str(len(self.level.grants) - view.grants_issued)),
        ]

    @property
    def wire(self) -> tuple[str, str]:
        """What is on its way to the receiver, and to the sender."""
        view = self.view
        flows = ", ".join(
            f"flow(delivery-count={counted}, link-credit={credit})"
            for counted, credit in view.flows_in_flight
        )
        transfers = count(view.transfers_in_flight, "transfer") if view.transfers_in_flight else "–"
        return transfers, flows or "–"

    def __str__(self) -> str:
        transfers, flows = self.wire
        lines = [f"{self.level.title}. {self.level.story}", ""]
        lines += [f"{name:<28} sender {mine:>11}   receiver {other:>11}"
                  for name, mine, other in self.ledgers]  # fmt: skip
        lines += [
            f"on the wire to the receiver: {transfers}",
            f"on the wire to the sender: {flows}",
            f"moves: {', '.join(self.moves) or 'none'}",
            self.line,
        ]
        return "\n".join(lines)
