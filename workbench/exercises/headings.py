"""The sections of a lesson's notebook: their headings and their code."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from workbench.lessons.table import lesson_numbered

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
_HEADING = re.compile(r"^## (?:(\d+)\. )?(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Heading:
    """A section of a lesson.

    Attributes:
        number: as its heading has it; 0 for what comes before the first.
        title: of the heading.
        cells: the code of its cells, in order.
    """

    number: int
    title: str
    cells: list[str] = field(default_factory=list)


def is_live(lesson: str) -> bool:
    """Whether what a lesson shows happens on a live wire or in Spark, where nothing runs ahead.

    Raises:
        ValueError: if there is no such lesson.
        FileNotFoundError: if its notebook is not there.
    """
    return lesson_numbered(lesson).java or any(
        "serve(" in source for heading in sections_of(lesson) for source in heading.cells
    )


def sections_of(lesson: str) -> list[Heading]:
    """The numbered sections of a lesson's notebook, and before them what makes it ready.

    What stands below a heading without a number belongs to no section and is left out.

    Raises:
        ValueError: if there is no such lesson.
        FileNotFoundError: if its notebook is not there.
    """
    file = FOLDER / lesson_numbered(lesson).file
    found = [Heading(0, "")]
    numbered = True
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            if numbered:
                found[-1].cells.append(source)
            continue
        for number, title in _HEADING.findall(source):
            numbered = bool(number)
            if numbered:
                found.append(Heading(int(number), title))
    return found
