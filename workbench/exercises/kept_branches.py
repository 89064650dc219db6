"""A desk whose branches are there again when its notebook is opened and run another day.

They lie in `branches.json`, beside the answers: for each desk what it began with and, in order, the
act that made each branch. A run is a function of its acts, so acts are all that has to be kept; the
runs are played again. Nothing in the file is ever executed.

    {"format": "amqp-flow-workbench/branches", "version": 1, "desks": {
     "01_credit/desk/credit-5d41402a": {"tree": 0, "cursor": 24, "trees": [
      {"preset": null, "parameters": {}, "current": 1,
       "branches": [[0, 21, "grant", {"link_credit": 3}]]}]}}}

A desk is known by its notebook, its cell, and the name of the run that it began with, which stands
for scenario, preset, parameters, acts and seed: a cell that begins with something else has branches
of its own. `[0, 21, "grant", ...]` is made from branch 0 by an act after row 21.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import notebook
from workbench.trace.whole import write_whole

from .shared_file import ProgressError, SharedFile, say, standard_folder

if TYPE_CHECKING:
    from workbench.scenarios.branches import Branches
    from workbench.views.stage_widget import StageWidget

FORMAT, VERSION = "amqp-flow-workbench/branches", 1
FILE_NAME = "branches.json"
LARGEST_FILE = 16_000_000  # octets
NO_NAME = "-"
AS_IT_WAS = "/as it was"
"""Behind a desk's name: what could not all be played again."""


class BranchFile:
    """The branches of all desks of a learner, in one file that several kernels may share.

    Args:
        file: where they are kept.
    """

    def __init__(self, file: Path) -> None:
        self._shared = SharedFile(file)

    def read(self) -> tuple[dict[str, Any], str]:
        """The desks by their names, and what was wrong with the file.

        Raises:
            OSError, ProgressError: if it cannot be read now.
        """
        with self._shared.locked():
            return self._read()

    def change(self, change: Callable[[dict[str, Any]], None]) -> str:
        """Change the desks in the file, as it is by now; gives what was wrong with the file.

        Raises:
            OSError, ProgressError: if it cannot be written now.
        """
        file = self._shared.file
        file.parent.mkdir(parents=True, exist_ok=True)
        with self._shared.locked():
            desks, problem = self._read()
            change(desks)
            whole = {"format": FORMAT, "version": VERSION, "desks": desks}
            write_whole(file, json.dumps(whole, indent=1, ensure_ascii=False) + "\n", private=True)
        return problem

    def _read(self) -> tuple[dict[str, Any], str]:
        file = self._shared.file
        if not file.exists():
            return {}, ""
        try:
            with file.open("rb") as source:
                text = source.read(LARGEST_FILE + 1)
            whole = json.loads(text) if len(text) <= LARGEST_FILE else None
            if (whole["format"], whole["version"]) == (FORMAT, VERSION):
                return dict(whole["desks"]), ""
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        aside = self._shared.aside()
        return {}, say("branches.unreadable", file=file, aside=aside.name)


def standard_file() -> BranchFile | None:
    """The file of this kernel's learner; None where nothing can be kept."""
    folder = standard_folder()
    return None if folder is None else BranchFile(folder / FILE_NAME)


class Keeper:
    """Keeps a stage's branches from now on, after putting back those that were kept before.

    Args:
        stage: whose branches.
        name: of the desk.
        file: where they are kept.
    """

    def __init__(self, stage: StageWidget, name: str, file: BranchFile) -> None:
        self._stage, self._name, self._file = stage, name, file
        self._as_it_was: Any = None
        self._put_back()
        stage.observe(lambda _change: self._keep(), names=["branch", "tree"])

    def _put_back(self) -> None:
        try:
            desks, problem = self._file.read()
        except (OSError, ProgressError) as error:
            self._tell(error)
            return
        kept = desks.get(self._name)
        told = [problem] if problem else []
        if kept is not None:
            again, refused = put_back(self._stage, kept)
            if again:
                told.append(say("branches.again", n=again))
            if refused:
                self._as_it_was = kept
                told.append(say("branches.refused", n=refused))
        if told:
            self._stage.told = " ".join(told)

    def _keep(self) -> None:
        def change(desks: dict[str, Any]) -> None:
            if self._as_it_was is not None:
                desks[self._name + AS_IT_WAS] = self._as_it_was
            desks[self._name] = kept(self._stage)

        try:
            problem = self._file.change(change)
        except (OSError, ProgressError) as error:
            self._tell(error)
            return
        self._as_it_was = None
        if problem:
            self._stage.told = problem

    def _tell(self, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or str(error)
        self._stage.told = say("branches.not-kept", reason=reason)


def kept(stage: StageWidget) -> dict[str, Any]:
    """All trees of a stage as plain JSON values: what began each, its acts, and the step shown.

    Steps count from 1, which shows the first row.
    """
    trees = []
    for number, tree in enumerate(stage.trees):
        root = tree.runs[0]
        trees.append(
            {
                "preset": root.preset.name if number else None,  # the cell says what the first is
                "parameters": dict(root.parameters) if number else {},
                "current": tree.current,
                "branches": [
                    [tree.parent(branch), act.after_seq, act.name, dict(act.arguments)]
                    for branch, run in enumerate(tree.runs[1:], start=1)
                    for act in [run.actions[-1]]
                ],
            }
        )
    return {"tree": stage.tree, "cursor": stage.cursor + 1, "trees": trees}


def put_back(stage: StageWidget, desk: Any) -> tuple[int, int]:
    """Play the branches of a desk again, as far as they are legal.

    Returns:
        How many there are again, and how many are not.
    """
    again, refused = 0, 0
    here: list[tuple[int, list[int | None]]] = []  # of each kept tree: its place, and its branches'
    for number, tree in enumerate(_list(desk, "trees")):
        acts = _list(tree, "branches")
        if number and not _begun(stage, tree):
            refused += len(acts) + 1
            here.append((0, [0]))
            continue
        again += bool(number)
        branches = stage.branches
        there = len(branches.runs)
        places: list[int | None] = [*range(there)]  # those of a shared run are there already
        for act in acts[there - 1 :]:
            place = _grown(branches, act, places)
            places.append(place)
            again, refused = again + (place is not None), refused + (place is None)
        branches.select(_at(places, _value(tree, "current")) or 0)
        here.append((stage.tree, places))
    tree_place = _at([place for place, _ in here], _value(desk, "tree"))
    stage.turn(tree_place or 0)
    step = _value(desk, "cursor")
    known = isinstance(step, int) and 0 <= step <= len(stage.branches.run.rows)
    stage.show(stage.branches.current, max(0, step - 1) if known else stage.cursor)
    return again, refused


def _begun(stage: StageWidget, tree: Any) -> bool:
    """Begin another tree of a stage; False if its values are not legal any more."""
    preset, parameters = _value(tree, "preset"), _value(tree, "parameters")
    if not isinstance(preset, str) or not isinstance(parameters, dict):
        return False
    try:
        stage.begin({**parameters, "preset": preset})
    except Exception:  # whatever stands in the file or has changed in a model: the rest goes on
        return False
    return True


def _grown(branches: Branches, act: Any, places: list[int | None]) -> int | None:
    """Make a branch again; its number, or None if it is not legal any more."""
    try:
        parent, after, name, arguments = act
        branches.select(_at(places, parent))  # type: ignore[arg-type]
        branches.act(after, name, **arguments)
    except Exception:  # whatever stands in the file or has changed in a model: the rest goes on
        return None
    return branches.current


def _at(places: list[Any], number: Any) -> Any:
    return places[number] if isinstance(number, int) and 0 <= number < len(places) else None


def _value(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, dict) else None


def _list(given: Any, name: str) -> list[Any]:
    value = _value(given, name)
    return value if isinstance(value, list) else []


def forget(lesson: str) -> dict[str, Any]:
    """Forget the branches made in a lesson; gives them, for `remember`.

    Raises:
        OSError, ProgressError: if they cannot be forgotten now.
    """
    gone: dict[str, Any] = {}
    file = standard_file()
    if file is not None and any(_of_lesson(name, lesson) for name in file.read()[0]):

        def change(desks: dict[str, Any]) -> None:
            for name in [name for name in desks if _of_lesson(name, lesson)]:
                gone[name] = desks.pop(name)

        file.change(change)
    return gone


def remember(desks: dict[str, Any]) -> None:
    """Put back what was forgotten, as far as nothing else has taken its place.

    Raises:
        OSError, ProgressError: if it cannot be put back now.
    """
    file = standard_file()
    if file is not None and desks:
        file.change(lambda there: there.update({**desks, **there}))


def _of_lesson(name: str, lesson: str) -> bool:
    return name.startswith(f"{lesson}_")


def keep(stage: StageWidget) -> None:
    """Keep a stage's branches, if it stands in a notebook and there is a place for them."""
    file = standard_file() if notebook.kernel_shell() is not None else None
    if file is not None:
        where = (notebook.file_stem() or NO_NAME, notebook.cell_id() or NO_NAME, stage.run.name)
        Keeper(stage, "/".join(where), file)
