"""`INSTRUCTORS.md`, made of the lessons' TOML files: `python -m workbench.lessons.instructors`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.scenarios.beliefs import BELIEFS

from .table import LESSONS, Lesson, words_of

FILE = Path(__file__).resolve().parents[2] / "INSTRUCTORS.md"
HEAD = """\
# Notes for instructors

Made of the lessons' TOML files in [workbench/lessons/](workbench/lessons/) by
`python -m workbench.lessons.instructors`; change it there. Of each lesson you find how long it
takes, how to teach with it, and which wrong answers it knows by name: a learner who gives one of
them is told why the run says otherwise. Those in **bold** can be seen contradicted: *Show me*
searches the shortest schedule in which the sender's credit is another, and opens it on the stage.
"""


def text() -> str:
    """The whole file."""
    told = ["\n".join(_lines(lesson)) for lesson in LESSONS if lesson.instructors]
    return "\n".join([HEAD, *told])


def _lines(lesson: Lesson) -> Iterator[str]:
    """What is told of one lesson."""
    after = " and ".join(lesson.after)
    yield f"## {lesson.number}. {lesson.title}"
    yield ""
    yield (
        f"[{lesson.file}](notebooks/{lesson.file}), about {lesson.minutes} minutes"
        f"{f', after {after}' if after else ''}: {lesson.idea}."
    )
    yield ""
    yield lesson.instructors
    yield ""
    yield "| question | misconceptions |"
    yield "|---|---|"
    for name, words in words_of(lesson.number).items():
        wrong = words.get("wrong")
        if isinstance(wrong, dict):
            yield f"| {name} | {'; '.join(_marked(words, one) for one in wrong)} |"
    yield ""


def _marked(words: Mapping[str, Any], misconception: str) -> str:
    """A misconception, in bold if a schedule can be searched that contradicts it."""
    known_as = words.get("known_as", {}).get(misconception, misconception)
    searched = words.get("search", True) and known_as in BELIEFS
    return f"**{misconception}**" if searched else f"*{misconception}*"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
