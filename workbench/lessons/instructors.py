"""`INSTRUCTORS.md`, made from the lessons' words: `python -m workbench.lessons.instructors`.

It is in English, whatever the language of the workbench is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.exercises.class_lock import section_of
from workbench.exercises.headings import is_live
from workbench.languages import ENGLISH, words_in

from .table import LESSONS, Lesson

FILE = Path(__file__).resolve().parents[2] / "INSTRUCTORS.md"
HERE_ALONE = " †"
AGAIN = "asked again"
_FACT = re.compile(r"\{\w+\}")
HEAD = """\
# Notes for instructors

Generated from the lessons' TOML files in [workbench/languages/en/](workbench/languages/en/) by
`python -m workbench.lessons.instructors`; edit it there. For each lesson it says how long it takes,
how to teach with it, and which wrong answers it knows by name: a learner who gives one of them is
told why the run says otherwise. Those in **bold** can be shown to be wrong: *Show me* plays the
misconception beside what happens, in the question's own run, and stops where the two part; or it
searches for the shortest schedule in which the sender's credit differs. No source says how often a
misconception occurs: count in your own room.

A question has the name that `classroom` takes after the lesson's number. One with a † can be shown
only in a cell of the lesson's own notebook, below the question: it happens live, or its section has
no number. What is *asked again*, with other numbers, comes at the start of a later lesson, and has
no code.

## In the room, without a server

- After *Commit* each learner sees a code of eight characters. Collect them in a chat or on paper;
  `classroom("01/after-grant")` in a notebook of yours takes the lines as they are, or the CSV file
  of a poll, and charts what the room says. A bar, or its button, plays that answer beside the right
  one. In a cell of the lesson's own notebook it works for every question above it. A code is read
  only with the numbers and in the language of its question: use those of the room.
- `present("01", section=4)` presents a lesson under the keys of a remote: Page Down and Page Up,
  `b` for black, a digit for a section; `.save("lesson_01.html")` makes a page for a laptop without
  Python. Lessons 10 and 11 happen live, and are shown in their notebooks.
- `section_code("01", 3)` is a code for the board: a learner who types it in the index, in the card
  of a lesson (from 02 on) or at a locked question stays with the class up to section 3, until the
  next code; `section_code("01")` opens the whole lesson.
- `handout("01").save("handout_01.html")` is a page to print.
- `reset_all()` is for the next group: it forgets answers, branches and locks. Then close the
  lessons and start the lab again: each is as new, and a copy that somebody has written in is kept
  beside it.
"""


def text() -> str:
    """The whole file."""
    told = ["\n".join(_lines(lesson)) for lesson in LESSONS if lesson.instructors]
    return "\n".join([HEAD, *_plans(), *told])


def _room() -> Mapping[str, Any]:
    """What a room needs, in English."""
    return words_in(ENGLISH, "room")


def _plans() -> Iterator[str]:
    """A table for each plan, with the minutes from the beginning."""
    for plan in _room()["plan"].values():
        yield f"## {plan['title']}"
        yield ""
        yield "| from | minutes | lesson | what |"
        yield "|---|---|---|---|"
        at = 0
        for number, minutes, what in plan["steps"]:
            yield f"| {at // 60}:{at % 60:02} | {minutes} | {number} | {what} |"
            at += minutes
        yield ""


def _lines(lesson: Lesson) -> Iterator[str]:
    """What is told of one lesson."""
    english = words_in(ENGLISH, f"lesson_{lesson.number}")
    about = english["lesson"]
    *some, last = lesson.after or [""]
    after = f"{', '.join(some)} and {last}" if some else last
    yield f"## {lesson.number}. {about['title']}"
    yield ""
    yield (
        f"[{lesson.file}](notebooks/{lesson.file}), about {lesson.minutes} minutes"
        f"{f', after {after}' if after else ''}: {about['idea']}."
    )
    yield ""
    yield about["instructors"]
    yield ""
    here = _room().get(lesson.number, {})
    if here:
        yield f"**When late**, leave out: {here['late']}"
        yield ""
        yield "**For the board:**"
        yield ""
        yield from (f"- {question}" for question in here["board"])
        yield ""
    yield "| question | misconceptions |"
    yield "|---|---|"
    for name, words in questions_of(lesson.number):
        names = ", ".join(names_of(lesson.number, name, words))
        yield f"| {names} | {'; '.join(_marked(words, one) for one in words['wrong'])} |"
    yield ""
    yield from _tasks(english.get("check", {}), here.get("solution", ()))


def questions_of(lesson: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The questions that have a line in the notes: those that somebody may be wrong about."""
    for name, words in words_in(ENGLISH, f"lesson_{lesson}").items():
        if isinstance(words.get("wrong"), dict):
            yield name, words


def names_of(lesson: str, name: str, words: Mapping[str, Any]) -> list[str]:
    """A question's names for `classroom`, each with a mark where it cannot ask it."""
    kept = words.get("kept_as", name)
    if kept != name and "{" not in kept:
        return [f"{kept}, {AGAIN}"]
    names = [_FACT.sub(form, kept) for form in words.get("forms", [""])]
    live = is_live(lesson)
    return [one + (HERE_ALONE if live or not section_of(lesson, one) else "") for one in names]


def _tasks(
    checks: Mapping[str, Mapping[str, Any]], solutions: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """The checks, their hints, and the solutions that are there, behind a fold."""
    if not checks:
        return
    solved = {one["check"]: one for one in solutions}
    yield "<details><summary>The tasks, and how they are solved</summary>"
    yield ""
    for name, words in checks.items():
        yield f"**{name}**"
        yield ""
        yield from (f"{place}. {hint}" for place, hint in enumerate(words.get("hints", ()), 1))
        yield ""
        solution = solved.get(name.replace("-", "_"))
        if solution is not None:
            yield solution["text"]
            yield ""
            if "code" in solution:
                yield from ("```python", solution["code"].strip(), "```", "")
    yield "</details>"
    yield ""


def _marked(words: Mapping[str, Any], misconception: str) -> str:
    """A misconception, in bold if it can be shown, else with the reason why it cannot be."""
    reasons = words.get("unshown", {}) | words.get("right_here", {})
    reason = reasons.get(misconception)
    return f"*{misconception}* ({reason.rstrip('.')})" if reason else f"**{misconception}**"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
