"""A learner's own copies of the lessons: in `my/`, beside `notebooks/`, which stays as it is.

Both folders lie side by side, so whatever a lesson names relatively is found from its copy as well:
captures in `../data`, and the other lessons, which are copies too.

A copy is in the learner's language, as far as `languages` has the lesson's prose in it.

A copy says in its metadata which text it was made from. Where the lesson has changed since, a copy
in which nothing was written is made anew; one that the learner has written in keeps what it holds,
under another name, and a new copy takes its place. So it goes with all of them for the next group
(`renew_next`): at the lab's next start, for now one of them may be open.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from workbench.languages import prose
from workbench.notebook import WrongValueError
from workbench.trace.whole import write_whole

from .shared_file import FOLDER, INDEX, NOTEBOOKS, beside_notebooks, say

KEY = "amqp_flow_workbench"
"""Name of our part of a copy's metadata."""
EARLIER = "_earlier"
MOST_EARLIER = 100
ANEW = ".anew"
"""Empty, in `my/`: all copies are to be made anew at the next start."""


def lessons_of(root: Path) -> list[Path]:
    """The lessons' own files, the index first."""
    return sorted((root / NOTEBOOKS).glob("*.ipynb"))


def make_copies(root: Path, *, renew: bool = False) -> list[str]:
    """Make the copies that are not there yet.

    Args:
        root: the folder that holds `notebooks/`.
        renew: also replace those whose lesson has changed since. Not while one may be open.

    Returns:
        A line for each copy that was kept under another name.

    Raises:
        OSError: if nothing can be written there.
        WrongValueError: if there are too many such copies already.
    """
    told = []
    mark = root / FOLDER / ANEW
    anew = renew and mark.exists()
    for lesson in lessons_of(root):
        copy = root / FOLDER / lesson.name
        if copy.exists() and not anew and not (renew and has_changed(lesson, copy)):
            continue
        if copy.exists() and _written_in(copy):
            kept = _free_name(copy)
            copy.rename(kept)
            now, before = f"{FOLDER}/{copy.name}", f"{FOLDER}/{kept.name}"
            told.append(
                say("copies.anew", now=now, before=before)
                if anew
                else say("copies.renewed", lesson=lesson.name, now=now, before=before)
            )
        copy.parent.mkdir(exist_ok=True)
        write_whole(copy, _copied(lesson), private=True)
    if anew:
        mark.unlink()
    return told


def renew_next(root: Path, *, wanted: bool = True) -> None:
    """Have all copies made anew at the lab's next start, or take that back.

    Raises:
        OSError: if nothing can be written there.
    """
    mark = root / FOLDER / ANEW
    if wanted and mark.parent.is_dir():
        mark.touch()
    elif not wanted:
        mark.unlink(missing_ok=True)


def has_changed(lesson: Path, copy: Path) -> bool:
    """Whether a lesson is another than the one that a copy was made from."""
    return _made_from(copy) != _digest(_lesson(lesson))


def earlier_copies(root: Path, name: str) -> list[str]:
    """Names of the copies of a lesson that had to make way for newer ones."""
    stem = name.removesuffix(".ipynb")
    return sorted(path.name for path in (root / FOLDER).glob(f"{stem}{EARLIER}*.ipynb"))


def _lesson(path: Path) -> dict[str, Any]:
    """A lesson with its prose in the learner's language, as far as that has it."""
    notebook, own = _notebook(path), prose(path.stem)
    for cell in notebook["cells"] if own else ():
        if cell["cell_type"] == "markdown" and cell["id"] in own:
            cell["source"] = own[cell["id"]].splitlines(keepends=True)
    return notebook


def _copied(lesson: Path) -> str:
    notebook = _lesson(lesson)
    notebook["metadata"][KEY] = {"made_from": _digest(notebook)}
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _notebook(path: Path) -> dict[str, Any]:
    loaded = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(loaded, dict) or not isinstance(loaded.get("metadata"), dict):
        raise WrongValueError(say("copies.no-notebook", path=path))
    return loaded


def _digest(notebook: dict[str, Any]) -> str:
    """What a notebook's author has written: its cells' texts, not what running them left there."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    return hashlib.sha256(json.dumps(cells).encode("utf-8")).hexdigest()


def _made_from(copy: Path) -> str | None:
    """The digest of the lesson from which a copy was made; None if it does not say."""
    try:
        digest = _notebook(copy)["metadata"][KEY]["made_from"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(digest)


def _written_in(copy: Path) -> bool:
    """Whether a copy's cells are not those that it was made with, or cannot be read."""
    try:
        return _digest(_notebook(copy)) != _made_from(copy)
    except (OSError, ValueError, KeyError, TypeError):
        return True


def _free_name(copy: Path) -> Path:
    for number in range(1, MOST_EARLIER):
        path = copy.with_stem(f"{copy.stem}{EARLIER}{'' if number == 1 else f'_{number}'}")
        if not path.exists():
            return path
    raise WrongValueError(say("copies.too-many", n=MOST_EARLIER, name=copy.name))


__all__ = [
    "FOLDER", "INDEX", "NOTEBOOKS", "beside_notebooks", "earlier_copies", "has_changed",
    "lessons_of", "make_copies", "renew_next",
]  # fmt: skip
