"""The lessons in their order, as their TOML files describe them, for index, cards and recall."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from workbench.languages import ENGLISH, HERE, phrase, words
from workbench.notebook import WrongValueError

say_card = partial(phrase, "cards")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One notebook.

    Attributes:
        number: two digits, in the order in which they are meant to be taken.
        name: of the file, after the number.
        title: what a learner does in it.
        idea: what they know afterwards.
        minutes: how long it takes with stepping and predicting.
        java: it uses Spark, which needs Java.
        after: numbers of the lessons to take before.
        able: what a learner can do afterwards, one line each.
        instructors: notes for those who teach with it; `INSTRUCTORS.md` is made of them.
    """

    number: str
    name: str
    title: str
    idea: str
    minutes: int
    java: bool = False
    after: tuple[str, ...] = ()
    able: tuple[str, ...] = ()
    instructors: str = ""

    @property
    def file(self) -> str:
        """Name of the notebook."""
        return f"{self.number}_{self.name}.ipynb"


def words_of(number: str) -> dict[str, Any]:
    """What a lesson's TOML file holds, in the learner's language."""
    return words(f"lesson_{number}")


def room() -> dict[str, Any]:
    """What `room.toml` holds: of each lesson what a room needs, and `plan`."""
    return words("room")


def _lesson(number: str) -> Lesson:
    given = words_of(number)["lesson"]
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return Lesson(number=number, **{**given, **lists})


LESSONS: tuple[Lesson, ...] = tuple(
    _lesson(path.stem.removeprefix("lesson_"))
    for path in sorted((HERE / ENGLISH).glob("lesson_*.toml"))
)


def lesson_numbered(number: str) -> Lesson:
    """The lesson of that number.

    Raises:
        WrongValueError: if there is none; the text lists the numbers.
    """
    for lesson in LESSONS:
        if lesson.number == number:
            return lesson
    listed = ", ".join(lesson.number for lesson in LESSONS)
    raise WrongValueError(say_card("card.unknown", number=repr(number), listed=listed))


def ground_of(number: str) -> frozenset[str]:
    """Numbers of the lessons that a lesson builds on, directly or by way of another."""
    direct = lesson_numbered(number).after
    return frozenset(direct).union(*map(ground_of, direct))


def is_ready(lesson: Lesson, folder: Path) -> bool:
    """Whether its notebook is there."""
    return (folder / lesson.file).is_file()
