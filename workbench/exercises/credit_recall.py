"""Lesson 01 asked again: the same questions over runs with other numbers.

The numbers here are what is put in, never what comes out.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.scenarios.run import Run, run

from . import measure
from .credit_predict import (
    LESSON,
    after_acknowledging,
    after_grant,
    after_stop,
    before_any_flow,
    granted_twice,
    many,
)
from .question import Question, Solution
from .recall import register

# How many different forms there are before they begin anew.
FORMS = 20


def _queue(messages: int) -> Run:
    return run("credit", parameters={"messages": messages})


def _credit(form: int) -> int:
    """A small grant, different from form to form and never 0 or 1, which beliefs answer."""
    return 2 + form % FORMS


@register(LESSON, "before-any-flow")
def _before_any_flow(form: int) -> Question:
    return before_any_flow.question(_queue(messages=2 + form % FORMS))


@register(LESSON, "after-grant")
def _after_grant(form: int) -> Question:
    link_credit = _credit(form)
    queue = _queue(messages=2 * link_credit + 3)
    ready = many(int(queue.parameters["messages"] or 0))
    return replace(
        after_grant.question(queue, link_credit),
        text=(
            f"{ready} are ready in a queue, and nothing has been granted yet. The receiver sends"
            f" one flow(link-credit={link_credit}). How many transfers follow it?"
        ),
    )


@register(LESSON, "granted-twice")
def _granted_twice(form: int) -> Question:
    link_credit = _credit(form)
    return granted_twice.question(_queue(messages=0), link_credit, 3 * link_credit)


NONE, FLYING, MORE = "none", "only what was on the wire", "what was on the wire, and more"


@register(LESSON, "after-stop")
def _after_stop(form: int) -> Question:
    """The lesson asks for the number; without a stepper beside it, which of them is the point."""
    busy = _queue(messages=60)
    busy = busy.act(busy.start_seq, "grant", link_credit=40 + form % FORMS)
    at = measure.seq_of(busy.rows, "transfer", 2 + form % FORMS // 4)
    asked = after_stop.question(busy, at)

    def solve() -> Solution:
        flying = measure.in_flight(busy.rows, "transfer", at)
        solution = asked.solve()
        late = int(solution.answer)
        answer = NONE if not late else FLYING if late <= flying else MORE
        choice = {"takes back": NONE, "only what is in flight": FLYING}
        beliefs = [
            replace(belief, answer=choice[belief.name])
            for belief in solution.beliefs
            if belief.name in choice
        ]
        return Solution(
            answer=answer,
            reason=f"{many(late)} arrived. {solution.reason}",
            beliefs=tuple(beliefs),
        )

    return replace(
        asked,
        text=(
            f"{asked.text.split(' How many')[0]} The queue goes on sending as long as it may, and"
            " every frame takes a while. Which messages arrive after that?"
        ),
        choices=(NONE, FLYING, MORE),
        solve=solve,
    )


@register(LESSON, "after-acknowledging")
def _after_acknowledging(form: int) -> Question:
    link_credit = _credit(form)
    queue = _queue(messages=2 * link_credit)
    return after_acknowledging.question(
        queue.act(queue.start_seq, "grant", link_credit=link_credit)
    )
