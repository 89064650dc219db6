"""The tree of runs that a learner makes by going back and acting differently."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.languages import phrase
from workbench.notebook import PlainError

from .action import ActionError, refusal

say = partial(phrase, "runs")

if TYPE_CHECKING:
    from .run import Run

# A run with more than this to play again is not taken apart into its branches.
MOST_ROWS_PLAYED = 200_000


class NoBranchError(PlainError, IndexError):
    """No branch has this number; the text says which numbers there are."""


class Branches:
    """Every run made so far, and the one that is looked at.

    Branch 0 is the first run. An act makes a new branch and goes there; no branch is ever lost. An
    act that is not legal raises and leaves everything as it was.

    Attributes:
        runs: all branches, in the order in which they were made.
        current: number of the branch that is looked at.
    """

    def __init__(self, root: Run) -> None:
        self.runs: list[Run] = [root]
        self._parents: list[int | None] = [None]
        self.current = 0

    @property
    def run(self) -> Run:
        """The run that is looked at."""
        return self.runs[self.current]

    def act(self, after_seq: int, name: str, **arguments: Any) -> Run:
        """Act at a row of the current branch; the new branch becomes the current one.

        It takes the place of all that was done later. It begins in the branch that the row is from,
        so that a branch which is acted in before its own act is shown stays beside the new one.

        Raises:
            ActionError: if the act is not legal then; the current branch stays.
        """
        parent = self.owner(self.current, after_seq)
        return self.add(
            parent, self.runs[parent].until(after_seq).act(after_seq, name, **arguments)
        )

    def add(self, parent: int, run: Run) -> Run:
        """Add a branch, the run of one act more than its parent's; it becomes the current one."""
        self.runs.append(run)
        self._parents.append(parent)
        self.current = len(self.runs) - 1
        return run

    def undo(self) -> Run:
        """Go to the parent of the current branch; the first branch has none and stays."""
        parent = self._parents[self.current]
        if parent is not None:
            self.current = parent
        return self.run

    def select(self, number: int) -> Run:
        """Go to a branch.

        Raises:
            NoBranchError: if there is no branch of that number.
        """
        if not 0 <= number < len(self.runs):
            raise NoBranchError(refusal("row.no-branch", number=number, last=len(self.runs) - 1))
        self.current = number
        return self.run

    def parent(self, number: int) -> int | None:
        """The branch that this one was made from."""
        return self._parents[number]

    def children(self, number: int) -> tuple[int, ...]:
        """The branches made from this one, in order."""
        return tuple(child for child, parent in enumerate(self._parents) if parent == number)

    def path(self, number: int) -> tuple[int, ...]:
        """From the first branch to this one, both included."""
        found = [number]
        while (parent := self._parents[found[-1]]) is not None:
            found.append(parent)
        return tuple(reversed(found))

    def fork(self, number: int) -> int | None:
        """The last row that this branch shares with its parent (-1: none); None for the first."""
        if self._parents[number] is None:
            return None
        return self.runs[number].actions[-1].after_seq

    def owner(self, number: int, row: int) -> int:
        """The branch that a row of this one is from: itself, or one that it was made from."""
        forks = ((one, self.fork(one)) for one in reversed(self.path(number)))
        return next(one for one, fork in forks if fork is None or row > fork)

    def label(self, number: int) -> str:
        """What was done to get this branch, such as `grant(link_credit=3) after row 21`."""
        fork = self.fork(number)
        if fork is None:
            return say("branch.first")
        return say("branch.act", act=self.runs[number].actions[-1], row=fork)

    def lines(self) -> list[str]:
        """The tree as text, one branch per line, the current one marked with `>`."""
        listed: list[str] = []

        def walk(number: int, depth: int) -> None:
            mark = ">" if number == self.current else " "
            listed.append(f"{mark} {'  ' * depth}{number}: {self.label(number)}")
            for child in self.children(number):
                walk(child, depth + 1)

        walk(0, 0)
        return listed


def grown(run: Run) -> Branches:
    """The tree that leads to a run that came from elsewhere: a branch for each of its acts.

    A long run is the first one of its tree itself, so that nobody has to wait.
    """
    from .run import run as play

    alone = Branches(run)
    if not run.actions or len(run.actions) * len(run.rows) > MOST_ROWS_PLAYED:
        return alone
    tree = Branches(
        play(run.scenario, run.preset, run.parameters, (), run.seed, run.max_rows, code=run.code)
    )
    try:
        for action in run.actions:
            # Not `tree.act`: of several acts at one row that would keep the last alone.
            tree.add(tree.current, tree.run.act(action.after_seq, action.name, **action.arguments))
    except ActionError:
        return alone
    return tree if tree.run.identity() == run.identity() else alone
