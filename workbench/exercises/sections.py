"""The sections of a lesson: what each asks and shows, found by running the lesson's own cells.

Nothing about a section is written down twice: its heading, its questions and its pictures are those
of the notebook.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.lessons.table import lesson_numbered
from workbench.views.stage_widget import StageWidget

from .predict import PredictionView
from .show_me import ShowMe

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
_HEADING = re.compile(r"^## (?:(\d+)\. )?(.+)$", re.MULTILINE)


@dataclass(slots=True)
class Section:
    """A section of a lesson.

    Attributes:
        number: as its heading has it; 0 for what comes before the first.
        title: of the heading.
        cells: the code of its cells, in order.
        asks: its questions, once its cells have run.
        shows: its pictures, likewise.
    """

    number: int
    title: str
    cells: list[str] = field(default_factory=list)
    asks: list[ShowMe | PredictionView] = field(default_factory=list)
    shows: list[StageWidget] = field(default_factory=list)


def sections_of(lesson: str) -> list[Section]:
    """The numbered sections of a lesson's notebook, and before them what makes it ready.

    What stands below a heading without a number belongs to no section and is left out.

    Raises:
        ValueError: if there is no such lesson.
        FileNotFoundError: if its notebook is not there.
    """
    file = FOLDER / lesson_numbered(lesson).file
    found = [Section(0, "")]
    open_now = True
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            if open_now:
                found[-1].cells.append(source)
            continue
        for number, title in _HEADING.findall(source):
            open_now = bool(number)
            if open_now:
                found.append(Section(int(number), title))
    return found


def walked(lesson: str) -> Iterator[Section]:
    """Run a lesson's cells in this process and give each section when its cells have run.

    The cells run one after the other in names of their own, where the lesson's files lie; what they
    print is dropped.

    Raises:
        ValueError: if there is no such lesson, or what it shows happens on a live wire or in Spark.
    """
    if lesson_numbered(lesson).java or any(
        "serve(" in source for section in sections_of(lesson) for source in section.cells
    ):
        raise ValueError(f"lesson {lesson} happens live: show its notebook")
    names: dict[str, Any] = {"__name__": f"lesson_{lesson}"}
    for section in sections_of(lesson):
        for source in section.cells:
            with contextlib.chdir(FOLDER), contextlib.redirect_stdout(io.StringIO()):
                _collect(_value(source, names), section)
        yield section


def _value(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; gives the value of its last line, where that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


def _collect(value: Any, section: Section) -> None:
    """Find questions and pictures in what a cell shows."""
    if isinstance(value, ShowMe | PredictionView):
        section.asks.append(value)
    elif isinstance(value, StageWidget):
        section.shows.append(value)
    else:
        for child in getattr(value, "children", ()):
            _collect(child, section)
