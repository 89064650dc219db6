"""The slides of a lesson, from its sections: what they ask and show, and what the runs answer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

from workbench.languages import declared
from workbench.lessons.table import lesson_numbered
from workbench.notebook import WrongValueError
from workbench.views.presenter import Presentation, Slide
from workbench.views.stage_widget import StageWidget

from .question import NotYetError, Question, Solution, say
from .sections import Section, walked


def present(lesson: str, section: int = 1) -> Presentation:
    """A lesson for the room: large, by a remote's keys, the question before the picture.

    `present("01").save("lesson_01.html")` writes it for a laptop without Python.

    Args:
        lesson: its number, such as "01".
        section: at which it opens.

    Raises:
        WrongValueError: if there is no such lesson or section, or if what it shows happens live.
    """
    about = lesson_numbered(lesson)
    slides = [slide for one in walked(lesson) for slide in _slides(one)]
    there = sorted({slide.number for slide in slides})
    if section not in there:
        told = {"lesson": lesson, "section": repr(section), "there": ", ".join(map(str, there))}
        raise WrongValueError(say("no-section", **told))
    return Presentation(
        number=lesson, title=about.title, minutes=about.minutes, slides=slides, opens=section
    )


def _slides(section: Section) -> Iterator[Slide]:
    """A slide for each question, with the picture in which its answer is seen, then the others."""
    number = section.heading.number
    if not number:
        return
    told = {"number": number, "section": f"{number}. {section.heading.title}"}
    shown: set[int] = set()
    for view in section.asks:
        question = view.prediction.question
        try:
            solution = question.solve()
        except NotYetError:
            continue
        found = _seen(solution, section.shows)
        asked = _asked(question, solution)
        if found is None:
            yield Slide(**told, question=asked)
            continue
        place, decides = found
        picture = section.shows[place]
        doc = _scene(picture) | {"question": _curtain(question, solution, decides)}
        # Two questions about one picture: the second begins behind what the first has shown.
        yield Slide(**told, scene=doc, step=min(picture.cursor, decides - 1), question=asked)
        shown.add(place)
    for place, picture in enumerate(section.shows):
        if place not in shown:
            yield Slide(**told, scene=_scene(picture), step=picture.cursor)


def _seen(solution: Solution, pictures: list[StageWidget]) -> tuple[int, int] | None:
    """The picture in which the answer can be seen, and the place of the step there."""
    row = solution.seen
    if row is None:
        return None
    for number, picture in enumerate(pictures):
        rows = picture.run.rows if hasattr(picture.run, "rows") else picture.run
        for place, one in enumerate(rows):
            if (one.run, one.seq) == (row.run, row.seq) and place > 0:
                return number, place
    return None


def _scene(picture: StageWidget) -> dict[str, Any]:
    """The scene of a picture, without what only a kernel can do."""
    doc: dict[str, Any] = json.loads(gzip.decompress(picture.scene))
    return {key: value for key, value in doc.items() if key not in ("acts", "shares", "question")}


def _options(question: Question, solution: Solution) -> list[str]:
    """What is offered to a room: the choices, or the numbers that people think of, in order."""
    if question.choices:
        return list(question.choices)
    numbers = {int(solution.answer), *(int(belief.answer) for belief in solution.beliefs)}
    return [str(number) for number in sorted(numbers)]


def _asked(question: Question, solution: Solution) -> dict[str, Any]:
    return {
        "text": question.text,
        "options": _options(question, solution),
        "free": not question.choices,
        "answer": str(solution.answer),
        "reason": solution.reason,
        "wrong": [
            {"name": declared(belief.name), "answer": str(belief.answer), "because": belief.because}
            for belief in solution.beliefs
            if belief.answer != solution.answer
        ],
    }


def _curtain(question: Question, solution: Solution, decides: int) -> dict[str, Any]:
    """The stage's own question: its timeline has a curtain until somebody has answered."""
    right = {"right": True, "answer": str(solution.answer), "why": solution.reason}
    wrong = right | {"right": False}
    return {
        "text": question.text,
        "options": _options(question, solution),
        "free": not question.choices,
        "decides": decides,
        "verdicts": {
            "*": wrong,
            **{
                str(belief.answer): wrong | {"why": f"{belief.because} {solution.reason}"}
                for belief in solution.beliefs
            },
            str(solution.answer): right,
        },
    }


__all__ = ["present"]
