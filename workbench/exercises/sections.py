"""The sections of a lesson: what each asks and shows, found by running the lesson's own cells.

Nothing about a section is written down twice: its heading, its questions and its pictures are those
of the notebook.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from IPython.utils.capture import capture_output

from workbench.notebook import WrongValueError
from workbench.views.stage_widget import StageWidget

from .headings import FOLDER, Heading, is_live, sections_of
from .predict import PredictionView
from .question import say
from .show_me import ShowMe


@dataclass(frozen=True, slots=True)
class Section:
    """A section whose cells have run, or some of them.

    Attributes:
        heading: its number, title and cells.
        asks: its questions.
        shows: its pictures.
    """

    heading: Heading
    asks: list[ShowMe | PredictionView] = field(default_factory=list)
    shows: list[StageWidget] = field(default_factory=list)


def walked(lesson: str) -> Iterator[Section]:
    """Run a lesson's cells in this process and give each section when all its cells have run.

    Raises:
        WrongValueError: as `stepped`.
    """
    for _, after_cells in groupby(stepped(lesson), key=lambda section: section.heading.number):
        *_, section = after_cells
        yield section


def stepped(lesson: str) -> Iterator[Section]:
    """Run a lesson's cells in this process and give after each its section, as far as it has run.

    The cells run one after the other in names of their own, where the lesson's files lie. What they
    print or display is dropped: it may hold what somebody who looks on is asked first.

    Raises:
        WrongValueError: if there is no such lesson, or what it shows happens on a live wire or in
            Spark.
    """
    if is_live(lesson):
        raise WrongValueError(say("live", lesson=lesson))
    names: dict[str, Any] = {"__name__": f"lesson_{lesson}"}
    for heading in sections_of(lesson):
        section = Section(heading)
        for source in heading.cells:
            with contextlib.chdir(FOLDER), capture_output(stderr=False):
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
