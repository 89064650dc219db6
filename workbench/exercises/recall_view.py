"""The recall at the start of a lesson: a few questions of earlier lessons, one below the other."""

from __future__ import annotations

import html

import ipywidgets as widgets

from workbench.views.stills import Still

from .lesson_pages import LessonCard
from .predict import PredictionView
from .progress import Progress, progress
from .question import Prediction
from .recall import QUESTIONS, questions

_NOTHING = "No earlier lesson has a question for this one."


class RecallView(Still, widgets.VBox):
    """Questions of earlier lessons, in a fresh form.

    Args:
        lesson: that asks, two digits.
        log: what was answered so far, and where the answers are kept.
        number: how many questions.
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
        number: int = QUESTIONS,
        card: LessonCard | None = None,
    ) -> None:
        self.card = card
        self.asked = [
            PredictionView(Prediction(question), log, recalled_in=lesson)
            for question in questions(lesson, log=log, number=number)
        ]
        # One name for the group, so that a screen reader does not meet three boxes out of nowhere.
        head = f"Recall: {len(self.asked)} questions before you begin." if self.asked else _NOTHING
        super().__init__(
            children=[
                *([widgets.HTML(card._repr_html_())] if card is not None else []),
                widgets.HTML(f"<strong>{html.escape(head)}</strong>"),
                *self.asked,
            ],
            layout={"grid_gap": "8px"},
        )

    def __repr__(self) -> str:
        told = "\n\n".join(map(repr, self.asked)) or _NOTHING
        return told if self.card is None else f"{self.card}\n\n{told}"


def recall(lesson: str, card: LessonCard | None = None) -> RecallView:
    """Three questions of earlier lessons; those that were answered wrong come back first.

    Args:
        lesson: that begins, such as "02".
        card: of the lesson, shown above the questions.
    """
    return RecallView(lesson, card=card)
