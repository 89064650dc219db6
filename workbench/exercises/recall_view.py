"""The recall at the start of a lesson: a few questions of others, one below the other."""

from __future__ import annotations

import html

import ipywidgets as widgets

from workbench.trace.given import takes
from workbench.views.stills import Still

from .class_box import ClassBox
from .lesson_pages import LessonCard
from .predict import PredictionView
from .progress import Progress, progress
from .progress_view import browser_copy
from .question import Prediction, say
from .recall import QUESTIONS, questions


class RecallView(Still, widgets.VBox):
    """Questions of lessons that were taken, in a fresh form.

    Args:
        lesson: that asks, two digits.
        log: what was answered so far, and where the answers are kept.
        card: of the lesson, shown above the questions.

    Attributes:
        asked: a view for each question.
    """

    still_is_prose = True

    def __init__(
        self,
        lesson: str,
        log: Progress = progress,
        *,
        card: LessonCard | None = None,
    ) -> None:
        self.card = card
        self.asked = [
            PredictionView(Prediction(question), log, recalled_in=lesson)
            for question in questions(lesson, log=log, number=QUESTIONS)
        ]
        # One name for the group, so that a screen reader does not meet three boxes out of nowhere.
        asked = len(self.asked)
        head = say("recall-one" if asked == 1 else "recall" if asked else "recall-none", all=asked)
        super().__init__(
            children=[
                *([widgets.HTML(card._repr_html_()), ClassBox()] if card is not None else []),
                widgets.HTML(f"<strong>{html.escape(head)}</strong>"),
                *self.asked,
                browser_copy(log),
            ],
            layout={"grid_gap": "8px"},
        )

    def __repr__(self) -> str:
        told = "\n\n".join(map(repr, self.asked)) or say("recall-none")
        return told if self.card is None else f"{self.card}\n\n{told}"


@takes
def recall(lesson: str, card: LessonCard | None = None) -> RecallView:
    """Up to three questions of lessons that were taken; those answered wrong come back first.

    Args:
        lesson: that begins, such as "02".
        card: of the lesson, shown above the questions.
    """
    return RecallView(lesson, card=card)
