"""Questions of lesson 03 about drain; answers are read off a run.

Those about echo, stop and `available` are in `stop_predict`, those about a time-out and about
handing over in `hand_predict`; a lesson finds all of them here.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.scenarios.run import Run
from workbench.trace.schema import BROKER, OBSERVED, Row
from workbench.trace.words import count

from . import measure
from .drain_runs import drained, number_in, rabbit_drain
from .hand_predict import crossing, first_of_next
from .measure import many
from .predict import asks
from .question import Belief, Question, Solution
from .show_me import asks_and_shows
from .stop_predict import ECHO_GRANTS, after_echo, echo_brings, stale

LESSON = "03"

DRAIN_IS_PAUSE = "drain is pause"


def _frames_of_sender(run: Run, after: int) -> int:
    flows = measure.frames(run.rows, "flow", from_peer=BROKER, after=after)
    return len(flows) + measure.messages(run.rows, after=after)


@asks
def silence(run: Run, link_credit: int) -> Question:
    """What does an empty queue say to a grant?"""
    start = run.start_seq

    def solve() -> Solution:
        branch = run.act(start, "grant", link_credit=link_credit)
        said = _frames_of_sender(branch, start)
        held = measure.credit(branch.rows, BROKER)
        return Solution(
            answer=said,
            reason=(
                f"The grant arrived: the sender holds link-credit {held}. It has nothing to send"
                f" and nobody asked it to speak, so it sent {count(said, 'frame')}. A receiver that"
                " waits cannot tell an empty queue from a message that is on its way [2.6.8]."
            ),
            beliefs=(
                Belief(
                    name="a request is answered",
                    answer=1,
                    because="a grant is a permission and no request; nothing has to follow it.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/silence",
        text=(
            f"The queue is empty. The receiver sends flow(link-credit={link_credit}) and waits. How"
            " many frames does the sender send back, however long it waits?"
        ),
        unit="frames",
        solve=solve,
        hints=("Which rule makes a sender speak that has nothing to send and was not asked?",),
    )


@asks_and_shows
def drain_brings(run: Run, link_credit: int) -> Question:
    """How many messages does a drain bring?"""
    ready = int(run.parameters["messages"] or 0)
    start = run.start_seq

    def solve() -> Solution:
        branch = drained(run, link_credit)
        sent = measure.messages(branch.rows, after=start)
        answers = measure.frames(branch.rows, "flow", from_peer=BROKER, after=start)
        words = (
            f"a flow with delivery-count {number_in(answers[-1], 'delivery_count')} and link-credit"
            f" {number_in(answers[-1], 'link_credit')}"
            if answers
            else "nothing more, for its credit was used up"
        )
        return Solution(
            answer=sent,
            reason=(
                f"The sender used {sent} of its credit of {link_credit} for {many(sent)} and then"
                f" sent {words}. Drain means: use the credit up now, and give back what you cannot"
                " use [2.6.7]."
            ),
            beliefs=(
                Belief(
                    name=DRAIN_IS_PAUSE,
                    answer=0,
                    because=(
                        f"drain does not hold messages back, it hurries them: {many(sent)} came."
                        " To pause, grant zero."
                    ),
                ),
                Belief(
                    name="drain waits until credit is used",
                    answer=link_credit,
                    because=(
                        f"only {ready} were ready, and a drain waits for nothing: credit that finds"
                        " no message is given back at once."
                    ),
                ),
            ),
            seen=measure.last_frame(branch.rows, "flow", from_peer=BROKER, after=start),
        )

    return Question(
        name=f"{LESSON}/drain-brings",
        text=(
            f"{many(ready).capitalize()} are ready. The receiver grants {link_credit} and sets"
            " drain. How many transfers come?"
        ),
        solve=solve,
        hints=(
            "To drain a glass is to empty it: the glass is the credit.",
            "The sender does not wait for messages that are not there.",
        ),
    )


@asks
def drain_counts(run: Run, link_credit: int) -> Question:
    """Where does delivery-count stand after a drain?"""
    start = run.start_seq

    def solve() -> Solution:
        branch = drained(run, link_credit)
        before = measure.counter(branch.rows, BROKER, "delivery_count", upto=start)
        after = measure.counter(branch.rows, BROKER, "delivery_count")
        sent = measure.messages(branch.rows, after=start)
        left = measure.credit(branch.rows, BROKER)
        return Solution(
            answer=after,
            reason=(
                f"delivery-count went from {before} to {after} although {many(sent)} were sent, and"
                f" link-credit is {left}. The sender counts the credit it could not use as if it"
                " had been used: delivery-count and link-credit move together, so the limit that"
                " the receiver set stays where it was."
            ),
            beliefs=(
                Belief(
                    name="counts messages only",
                    answer=before + sent,
                    because=(
                        "then credit would have to shrink on its own, and a flow that crosses could"
                        " no longer be reckoned with."
                    ),
                ),
                Belief(
                    name="stays",
                    answer=before,
                    because="what was sent is counted, drain or not.",
                ),
                Belief(
                    name="starts anew",
                    answer=0,
                    because="delivery-count never goes back; it only wraps around.",
                ),
            ),
            seen=measure.last_frame(branch.rows, "flow", from_peer=BROKER, after=start),
        )

    return Question(
        name=f"{LESSON}/drain-counts",
        text=(
            "And the sender's delivery-count, when the drain is done? It was"
            f" {measure.counter(run.rows, BROKER, 'delivery_count')} before."
        ),
        unit="delivery-count",
        solve=solve,
        hints=(
            "delivery-count and link-credit move together: one up, one down.",
            "At the end link-credit is 0. What was it at first?",
        ),
    )


@asks_and_shows
def after_drain(run: Run, publish: int) -> Question:
    """Does a drained link send what is published later?"""
    at = run.last

    def solve() -> Solution:
        branch = run.then("publish", count=publish)
        sent = measure.messages(branch.rows, after=at)
        held = measure.credit(branch.rows, BROKER)
        granted = max(measure.grants(branch.rows), default=0)
        unused = granted - measure.messages(branch.rows, upto=at)
        return Solution(
            answer=sent,
            reason=(
                f"The drain left link-credit {held}, so {many(sent)} came. Credit that was given"
                " back is gone; whoever wants more grants again, with drain=false."
            ),
            beliefs=(
                Belief(
                    name=DRAIN_IS_PAUSE,
                    answer=min(publish, unused),
                    because=(
                        f"the {unused} that were left over are not kept for later: the answer to"
                        " the drain gave them back."
                    ),
                ),
                Belief(
                    name="drain is a mode",
                    answer=publish,
                    because="even in drain mode a transfer needs credit, and there is none.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/after-drain",
        text=(
            f"The drain is answered. Now {many(publish)} are published, and the receiver says"
            " nothing. How many of them come?"
        ),
        solve=solve,
        hints=("How much link-credit has the sender when the drain is answered?",),
    )


@asks
def real_drain(rows: Sequence[Row]) -> Question:
    """What did a real broker answer to a drain that finds too few messages?"""
    request, following = rabbit_drain(rows)

    def solve() -> Solution:
        answer = measure.frames(following, "flow", event=OBSERVED, from_peer=BROKER)[-1]
        sent = measure.messages(following, event=OBSERVED)
        base, credit = number_in(request, "delivery_count"), number_in(request, "link_credit")
        after = number_in(answer, "delivery_count")
        return Solution(
            answer=after,
            reason=(
                f"{many(sent).capitalize()} and then a flow (step {measure.step(answer.seq)}) with"
                f" delivery-count {after}, link-credit {number_in(answer, 'link_credit')}: RabbitMQ"
                " drains as the specification says."
            ),
            beliefs=(
                Belief(
                    name="counts messages only",
                    answer=base + sent,
                    because="the credit that was not used counts as well.",
                ),
                Belief(
                    name="counts credit only",
                    answer=credit,
                    because=f"it is counted on from the delivery-count in the flow, {base}.",
                ),
            ),
            seen=answer,
        )

    return Question(
        name=f"{LESSON}/real-drain",
        text=(
            f"In step {measure.step(request.seq)} of this capture the client sends"
            f" flow(delivery-count={number_in(request, 'delivery_count')},"
            f" link-credit={number_in(request, 'link_credit')}, drain=true), and fewer messages are"
            " ready. Which delivery-count does RabbitMQ's answer carry?"
        ),
        unit="delivery-count",
        solve=solve,
        hints=("It is the drain that you know, with another delivery-count to begin.",),
    )


__all__ = [
    "DRAIN_IS_PAUSE",
    "ECHO_GRANTS",
    "after_drain",
    "after_echo",
    "crossing",
    "drain_brings",
    "drain_counts",
    "echo_brings",
    "first_of_next",
    "real_drain",
    "silence",
    "stale",
]
