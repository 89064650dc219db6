"""Lesson 03 asked again: the same questions over runs with other numbers.

The numbers here are what is put in, never what comes out.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.scenarios.run import Run, run

from .drain_predict import LESSON, after_drain, drain_brings, drain_counts, echo_brings
from .drain_runs import drained
from .question import Question
from .recall import register

# How many different forms there are before they begin anew.
FORMS = 20


def _queue(form: int) -> tuple[Run, int]:
    """A queue, and a grant that is larger than what is ready."""
    ready = 2 + form % FORMS
    first = 7 * ready + 1
    queue = run("credit", parameters={"messages": ready, "initial_delivery_count": first})
    return queue, 2 * ready + 3


@register(LESSON, "drain-brings")
def _drain_brings(form: int) -> Question:
    return drain_brings.question(*_queue(form))


@register(LESSON, "drain-counts")
def _drain_counts(form: int) -> Question:
    queue, link_credit = _queue(form)
    ready = queue.parameters["messages"]
    asked = drain_counts.question(queue, link_credit)
    first = queue.parameters["initial_delivery_count"]
    return replace(
        asked,
        text=(
            f"{ready} messages are ready, and the sender's delivery-count is {first}. The receiver"
            f" grants {link_credit} and sets drain. What is delivery-count when the drain is done?"
        ),
    )


@register(LESSON, "after-drain")
def _after_drain(form: int) -> Question:
    queue, link_credit = _queue(form)
    return after_drain.question(drained(queue, link_credit), publish=link_credit + 2)


@register(LESSON, "echo-brings")
def _echo_brings(form: int) -> Question:
    link_credit = 2 + form % FORMS
    queue = run("credit", parameters={"messages": 2 * link_credit + 3})
    return echo_brings.question(queue.act(queue.start_seq, "grant", link_credit=link_credit))
