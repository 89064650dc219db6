"""Lesson 10 asked again: idle or held, and what a long wire costs; runs with fresh numbers.

The numbers here are what is put in, never what comes out.
"""

from __future__ import annotations

from itertools import pairwise

from workbench.scenarios.run import Run, run
from workbench.trace.schema import SENT

from . import measure
from .question import Belief, Question, Solution
from .recall import register
from .spark_predict import LESSON
from .spark_traces import folded_stalls
from .spark_ways import BATCH, archive_rate

# How many different forms there are before they begin anew.
FORMS = 20
PAUSE_S = 1
QUEUE = "q1"

HELD = "yes: it had messages, and something held it"
IDLE = "no: it had nothing to send"
DOUBLE, LITTLE = "nearly doubles", "grows by a little"
SAME = "stays: the wire is as long as before"


def _paused(rate: int, *, alarm: bool) -> Run:
    """A publisher whose rate is 0 for a second: an alarm holds it, or nothing is published.

    A second link goes on publishing all the time, so that time goes by.
    """
    begun = run("publishers", "rmq4.3", {"queues": 2, "rate": rate, "service_us": "100"})
    both = {"queue": "all", "count": rate * PAUSE_S}
    if alarm:
        return begun.act_each(
            [("publish", both), ("alarm", {}), ("publish", both), ("clear", {}), ("publish", both)]
        )
    other = {"queue": "q2", "count": rate * PAUSE_S}
    return begun.act_each([("publish", both), ("publish", other), ("publish", both)])


@register(LESSON, "nobody")
def _nobody(form: int) -> Question:
    rate = 20 + form % FORMS
    played = _paused(rate, alarm=form % 2 == 0)
    times = [
        row.t_us
        for row in measure.frames(played.rows, "transfer", event=SENT, from_peer="client")
        if row.link == QUEUE
    ]
    back = next(
        after for before, after in pairwise(times)
        if after - before > PAUSE_S * measure.MICROSECONDS // 2
    )  # fmt: skip
    at_once = sum(back <= time < back + 100_000 for time in times)

    def solve() -> Solution:
        held = [one for one in folded_stalls(played.rows) if one.link == QUEUE]
        worst = max(held, key=lambda one: one.end_us - one.start_us, default=None)
        long = worst is not None and worst.end_us - worst.start_us > measure.MICROSECONDS // 2
        reason = (
            f"{at_once} messages in the first tenth of a second, where {rate / 10:g} are usual."
        )
        return Solution(
            answer=HELD if long else IDLE,
            reason=(
                f"{reason} They had waited, and {worst.brake} had held them."
                if long and worst is not None
                else f"{reason} Nothing had waited."
            ),
            beliefs=(
                Belief(
                    name="nothing is sent, so it is held",
                    answer=HELD,
                    because="a sender without messages is not held, whatever its credit is.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/nobody",
        text=(
            f"A publisher sends {rate} messages a second, then none for about a second. In the"
            f" first tenth of a second after that it sends {at_once}. Was it held?"
        ),
        choices=(HELD, IDLE),
        solve=solve,
        hints=("What would come at once if messages had waited?",),
    )


@register(LESSON, "credit")
def _credit(form: int) -> Question:
    link_credit = 10 + 5 * (form % FORMS)

    def solve() -> Solution:
        once, twice = archive_rate(BATCH, link_credit), archive_rate(BATCH, 2 * link_credit)
        answer = DOUBLE if twice > 1.5 * once else SAME if twice < 1.1 * once else LITTLE
        return Solution(
            answer=answer,
            reason=(
                f"With {link_credit} the link carries {once:,.0f} messages a second, with"
                f" {2 * link_credit} {twice:,.0f}: a batch waits for one round trip, whatever is in"
                " it."
            ),
            beliefs=(
                Belief(
                    name="a long wire costs what it costs",
                    answer=SAME,
                    because="it costs a round trip for each batch, and there are fewer batches.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/credit",
        text=(
            f"Over a long wire a receiver grants {link_credit}, waits until all have come, and"
            " grants again. If it grants twice as many, its rate"
        ),
        choices=(DOUBLE, LITTLE, SAME),
        solve=solve,
        hints=("How often does the sender wait, and for how long?",),
    )
