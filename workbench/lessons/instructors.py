"""`INSTRUCTORS.md`, made of the lessons' TOML files: `python -m workbench.lessons.instructors`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .table import LESSONS, Lesson, words_of

FILE = Path(__file__).resolve().parents[2] / "INSTRUCTORS.md"
HEAD = """\
# Notes for instructors

Made of the lessons' TOML files in [workbench/lessons/](workbench/lessons/) by
`python -m workbench.lessons.instructors`; change it there. Of each lesson you find how long it
takes, how to teach with it, and which wrong answers it knows by name: a learner who gives one of
them is told why the run says otherwise.
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
            yield f"| {name} | {'; '.join(f'*{one}*' for one in wrong)} |"
    yield ""


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
