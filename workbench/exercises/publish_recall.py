"""Lesson 05 asked again: the same questions over runs with other numbers.

The numbers here are what is put in, never what comes out.
"""

from __future__ import annotations

from workbench.scenarios.run import Run, run

from .publish_predict import (
    LESSON,
    changed_setting,
    one_confirmed,
    regrant,
    settled_takes,
    stall_takes,
)
from .publish_runs import PRESET
from .question import Question
from .recall import register

# How many different forms there are before they begin anew.
FORMS = 20


def _publisher(form: int, *, settled: bool = False) -> tuple[Run, int]:
    """A publisher with a credit of its own, and more messages than it may send."""
    credit = 20 + 2 * (form % FORMS)
    played = run("publishers", PRESET, {"max_link_credit": credit, "settled": settled})
    return played, 4 * credit


@register(LESSON, "regrant")
def _regrant(form: int) -> Question:
    played, publish = _publisher(form)
    return regrant.question(played, publish)


@register(LESSON, "stall-takes")
def _stall_takes(form: int) -> Question:
    return stall_takes.question(*_publisher(form))


@register(LESSON, "one-confirmed")
def _one_confirmed(form: int) -> Question:
    return one_confirmed.question(*_publisher(form), confirmed=1)


@register(LESSON, "settled-takes")
def _settled_takes(form: int) -> Question:
    return settled_takes.question(*_publisher(form, settled=True))


@register(LESSON, "changed-setting")
def _changed_setting(form: int) -> Question:
    played, publish = _publisher(form)
    return changed_setting.question(
        played.then("publish", count=1), link_credit=5 + form, publish=publish
    )
