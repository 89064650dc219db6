"""Lesson 02 asked again: the same questions over links with other numbers.

The numbers here are what is put in, never what comes out.
"""

from __future__ import annotations

from workbench.presets import UINT_MAX
from workbench.scenarios.run import Run, run

from .audit import audited_run
from .count_predict import LESSON, naive
from .question import Question
from .race_predict import bad_states, crossing, passing_rules, which_order
from .recall import register

# How many different forms there are before they begin anew.
FORMS = 20


def _race(form: int) -> Run:
    """A race whose grant, first credit and beginning differ from form to form."""
    given = {
        "initial_delivery_count": 7 * (form % FORMS),
        "first_credit": 2 + form % 5,
        "grants": str(8 + form % FORMS),
    }
    return run("race", parameters=given)


@register(LESSON, "crossing")
def _crossing(form: int) -> Question:
    return crossing.question(_race(form))  # type: ignore[attr-defined, no-any-return]


@register(LESSON, "which-order")
def _which_order(form: int) -> Question:
    rule = ("add", "set")[form % 2]
    return which_order.question(_race(form), rule)  # type: ignore[attr-defined, no-any-return]


@register(LESSON, "bad-states-set")
def _bad_states(form: int) -> Question:
    grants = [2 + form % 3, 5 + form % 4]
    return bad_states.question(  # type: ignore[attr-defined, no-any-return]
        8 + form % 3, grants, "set"
    )


@register(LESSON, "passing-rules")
def _passing_rules(form: int) -> Question:
    grants = [2 + form % 4] if form % 2 else [2 + form % 3, 5 + form % 3]
    return passing_rules.question(8, grants)  # type: ignore[attr-defined, no-any-return]


@register(LESSON, "naive")
def _naive(form: int) -> Question:
    used = 2 + form % 4
    start = UINT_MAX - used if form % 2 else 1000 * (1 + form % FORMS)
    story = audited_run(used, initial_delivery_count=start)
    return naive.question(story)  # type: ignore[attr-defined, no-any-return]
