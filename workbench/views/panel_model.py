"""The panel without widgets: branches of runs, a cursor, and one line of message.

Everything a learner can do to a run is a method here. Whatever goes wrong becomes the message, and
nothing else changes.
"""

from __future__ import annotations

from typing import Any

import traitlets

from workbench.scenarios.action import ActionError
from workbench.scenarios.branches import Branches
from workbench.scenarios.declare import ParameterError
from workbench.trace.fold import fold

from .frames import summary
from .stepper_doc import build


class PanelModel(traitlets.HasTraits):
    """What the panel shows.

    A *tree* is a run and everything that acts made of it; other parameters begin another tree.
    No tree and no branch is ever lost.

    Attributes:
        cursor: the step shown, 0 to the number of rows of the current run.
        shown: counts up whenever another run is shown.
        message: one line: what happened, or why something could not be done.
        failed: whether the message tells of something that could not be done.
        follow: after an act the step shown is the last one, where all has come to rest; else it is
            the act itself, and what it causes lies ahead. For runs in which each frame waits for a
            hand.
    """

    cursor = traitlets.Int(0)
    shown = traitlets.Int(0)
    message = traitlets.Unicode("")
    failed = traitlets.Bool(False)

    def __init__(self, run: Any, *, follow: bool = False) -> None:
        super().__init__()
        self.follow = follow
        self.trees: list[Branches] = [run if isinstance(run, Branches) else Branches(run)]
        self.tree = 0
        self._docs: dict[int, dict[str, Any]] = {}
        self.cursor = self.run.start_seq + 1

    @property
    def branches(self) -> Branches:
        """The tree that is looked at."""
        return self.trees[self.tree]

    @property
    def run(self) -> Any:
        """The run that is looked at."""
        return self.branches.run

    @property
    def doc(self) -> dict[str, Any]:
        """The current run's StepperDoc; made once per run."""
        run = self.run
        if id(run) not in self._docs:
            note = run.note
            if len(self.picks()) > 1:
                note = "; ".join(filter(None, (f"branch {self.here()}", note)))
            self._docs[id(run)] = build(
                run.rows, title=run.scenario.title, note=note, begin=run.start_seq
            )
        return self._docs[id(run)]

    @property
    def after_seq(self) -> int:
        """The row after which an act at the cursor happens; -1 is before the first."""
        return self.cursor - 1

    # -- acting -----------------------------------------------------------------------------

    def act(self, name: str, **arguments: Any) -> bool:
        """Act at the cursor; the branch that comes of it is shown at its first own row.

        Returns:
            False if it was not legal: the message says what would be, and all stays as it was.
        """
        after = self.after_seq
        try:
            run = self.branches.act(after, name, **arguments)
        except (ActionError, ParameterError) as error:
            return self._refuse(str(error))
        except Exception as error:
            return self._refuse(f"{name} failed in the workbench itself: {error!r}")
        label = f"Branch {self.here()}: {_label(self.branches, self.branches.current)}."
        if self.follow:
            self._show(len(run.rows), f"{label} ◀ goes back through what came of it.")
        else:
            self._show(_first_own_step(run, after), f"{label} ▶ shows what it causes.")
        return True

    def restart(self, preset: str | None = None, **parameters: Any) -> bool:
        """Begin another tree with other parameters (or another preset).

        Returns:
            False if one of them was not legal: the message says what would be.
        """
        from workbench.scenarios.run import run as play

        root = self.branches.runs[0]
        try:
            run = play(
                root.scenario,
                preset or root.preset,
                {**root.parameters, **parameters},
                seed=root.seed,
            )
        except (ActionError, ParameterError, ValueError) as error:
            return self._refuse(str(error))
        self.trees.append(Branches(run))
        self.tree = len(self.trees) - 1
        self._show(run.start_seq + 1, "A new run with these parameters; the earlier ones stay.")
        return True

    def undo(self) -> bool:
        """Go to the parent of the current branch, at the row where they part."""
        fork = self.branches.fork(self.branches.current)
        if fork is None:
            return self._refuse("This is the run as it began: there is nothing to undo.")
        self.branches.undo()
        self._show(fork + 1, f"Back in branch {self.branches.current}; the other branch stays.")
        return True

    def pick(self, tree: int, branch: int) -> None:
        """Go to a branch; the cursor stays where it is as far as that run goes."""
        if (tree, branch) == (self.tree, self.branches.current):
            return
        self.tree = tree
        self.branches.select(branch)
        self._show(min(self.cursor, len(self.run.rows)), f"Branch {self.here()}.")

    def tell(self, message: str, *, failed: bool = False) -> None:
        """Show a message; nothing else changes."""
        with self.hold_trait_notifications():
            self.message, self.failed = message, failed

    # -- for the view -----------------------------------------------------------------------

    def here(self) -> str:
        """Tree and branch that are looked at, in short: `0` or `2.0`."""
        number = str(self.branches.current)
        return f"{self.tree + 1}.{number}" if len(self.trees) > 1 else number

    def picks(self) -> list[tuple[str, tuple[int, int]]]:
        """Every branch of every tree with its label, indented below what it was made from."""
        listed = []
        for tree, branches in enumerate(self.trees):
            for number in _in_order(branches, 0):
                depth = len(branches.path(number)) - 1
                prefix = f"{tree + 1}." if len(self.trees) > 1 else ""
                label = _label(branches, number)
                if depth == 0 and tree:
                    label = f"{label} ({_changed(self.trees[0].runs[0], branches.runs[0])})"
                stem = "\u2003" * (depth - 1) + "└ " if depth else ""
                listed.append((f"{stem}{prefix}{number}: {label}", (tree, number)))
        return listed

    def in_flight(self) -> list[tuple[str, int]]:
        """Frames on the wire at the cursor: what each carries and where it goes, and its number."""
        rows = self.run.rows
        ways = {"client": "client → broker", "broker": "broker → client"}
        listed = []
        for flying in fold(rows, upto=self.after_seq).in_flight.values():
            words = f"{flying.kind} {summary(rows[flying.seq])}".strip()
            listed.append((f"{words} ({ways.get(flying.from_peer or '', '')})", flying.frame_id))
        return listed

    # -- inside -----------------------------------------------------------------------------

    def _show(self, step: int, message: str) -> None:
        with self.hold_trait_notifications():
            self.cursor = step
            self.message, self.failed = message, False
            self.shown += 1

    def _refuse(self, message: str) -> bool:
        with self.hold_trait_notifications():
            self.message, self.failed = " ".join(message.split()), True
        return False


def _label(branches: Branches, number: int) -> str:
    """What was done to get a branch, with the number of the step that the stepper shows there."""
    fork = branches.fork(number)
    if fork is None:
        return branches.label(number)
    return f"{branches.runs[number].actions[-1]} after step {fork + 1}"


def _first_own_step(run: Any, after: int) -> int:
    """The step that shows the act which made this branch."""
    last = None
    for place, row in enumerate(run.rows):
        if row.event == "action":
            last = place + 1
    return last if last is not None else after + 1


def _in_order(branches: Branches, number: int) -> list[int]:
    found = [number]
    for child in branches.children(number):
        found += _in_order(branches, child)
    return found


def _changed(first: Any, other: Any) -> str:
    texts = [
        f"{name}={value}"
        for name, value in other.parameters.items()
        if first.parameters.get(name) != value
    ]
    if first.preset.name != other.preset.name:
        texts.insert(0, f"preset {other.preset.name}")
    return ", ".join(texts) or "the same parameters"
