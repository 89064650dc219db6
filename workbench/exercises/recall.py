"""Asking again: up to three questions of lessons that were taken, at the start of another one.

A lesson makes its questions known to the later ones by `register`; how each is asked again, with
other numbers, is up to the maker. Every answer is worked out by a small run of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import import_module

from workbench.lessons.table import ground_of

from .progress import Progress, Record, progress
from .question import Question

QUESTIONS = 3

# The module of each lesson that registers its questions.
MODULES = {f"{n:02}": f"workbench.lessons.lesson_{n:02}" for n in range(1, 11)} | {
    "11": "workbench.exercises.museum"
}

# Makes the question in its n-th form; n is 0 or more, and any n must do.
Maker = Callable[[int], Question]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recallable:
    """A question that can be asked again.

    Attributes:
        lesson: whose it is.
        name: of the question, without the lesson.
        make: makes its n-th form; the question made has the name `lesson/name`.
    """

    lesson: str
    name: str
    make: Maker


_REGISTERED: dict[tuple[str, str], Recallable] = {}


def register(lesson: str, name: str) -> Callable[[Maker], Maker]:
    """Make a question known to later lessons.

    A decorator:

        @register("02", "both-cross")
        def _both_cross(form: int) -> Question:
            played = race(grants=(form + 2, form + 5))
            return both_cross(played)

    Args:
        lesson: whose question it is.
        name: the question's name without the lesson: wrong answers to it bring it back first.
    """

    def keep(make: Maker) -> Maker:
        _REGISTERED[lesson, name] = Recallable(lesson=lesson, name=name, make=make)
        return make

    return keep


def known(lessons: Collection[str]) -> list[Recallable]:
    """Every question of some lessons, in order of lesson and registration."""
    found: list[Recallable] = []
    for lesson, module in MODULES.items():
        if lesson not in lessons:
            continue
        import_module(module)
        found += [one for one in _REGISTERED.values() if one.lesson == lesson]
    return found


def asked_about(lesson: str, log: Progress) -> frozenset[str]:
    """The lessons of which a lesson asks again: those that were taken and do not build on it."""
    taken = {record.lesson for record in log.records if record.recalled_in is None}
    return frozenset(
        one for one in taken & MODULES.keys() if one != lesson and lesson not in ground_of(one)
    )


def choose(lesson: str, log: Progress, number: int = QUESTIONS) -> list[tuple[Recallable, int]]:
    """The questions to ask again, each with the number of its form.

    Of lessons that were taken alone: a lesson is taken when something was answered in it. First
    those that were answered wrong by somebody who was sure, then the other wrong ones, then the
    rest, of which those of the lessons on which this one builds come first. Among equals those come
    first that were asked again less often, and then the lessons take turns, the latest first, each
    with another question from lesson to lesson. What is answered in this recall changes nothing
    about it, so that the cell can be run again.
    """
    earlier = [one for one in log.records if one.recalled_in != lesson]
    ground = ground_of(lesson)
    ranked = []
    for of_lesson in _by_lesson(known(asked_about(lesson, log))):
        for place, one in enumerate(of_lesson):
            told = [record for record in earlier if record.name == f"{one.lesson}/{one.name}"]
            again = sum(record.recalled_in is not None for record in told)
            turn = (place - int(lesson)) % len(of_lesson)
            ranked.append((_urgency(told), one.lesson not in ground, again, turn, one))
    ranked.sort(key=lambda found: found[:-1])
    return [(one, int(lesson) + again) for _, _, again, _, one in ranked[:number]]


def _by_lesson(found: list[Recallable]) -> list[list[Recallable]]:
    """The questions of each lesson, the latest lesson first."""
    lessons = sorted({one.lesson for one in found}, reverse=True)
    return [[one for one in found if one.lesson == lesson] for lesson in lessons]


def _urgency(told: list[Record]) -> int:
    """0: sure and wrong, 1: wrong, 2: not asked or right; what was recalled rightly is settled."""
    last_right = max(
        (place for place, one in enumerate(told) if one.recalled_in and one.right), default=-1
    )
    open_ones = told[last_right + 1 :]
    if any(one.sure_and_wrong for one in open_ones):
        return 0
    if any(one.right is False for one in open_ones):
        return 1
    return 2


def questions(lesson: str, *, log: Progress = progress, number: int = QUESTIONS) -> list[Question]:
    """The questions that a lesson begins with, made anew."""
    return [one.make(form) for one, form in choose(lesson, log, number)]
