"""Questions of lesson 03 about a time-out and about handing a queue over, read off runs."""

from __future__ import annotations

from workbench.scenarios.run import Run
from workbench.trace.schema import BROKER, CLIENT, RECEIVED

from . import measure
from .hand_runs import Handover
from .measure import many
from .predict import asks
from .question import Belief, Question, Solution
from .timeout import TimedGet, explained

LESSON = "03"

MESSAGE, FLOW = "the message", "a flow that gives the credit back"
BOTH, NEITHER = "the message, and credit that is left over", "nothing at all"


@asks
def crossing(get: TimedGet, timeout_us: int, latency_us: int) -> Question:
    """What comes when the message crosses the drain?"""

    def solve() -> Solution:
        played = get.play(timeout_us, latency_us)
        start = played.start_seq
        came = measure.messages(played.rows, event=RECEIVED, after=start)
        flows = measure.frames(played.rows, "flow", event=RECEIVED, from_peer=BROKER, after=start)
        left = measure.credit(played.rows, CLIENT)
        with_message = BOTH if left else MESSAGE
        without = FLOW if flows else NEITHER
        answer = with_message if came else without
        return Solution(
            answer=answer,
            reason=(
                f"{explained(played)} The drain finds a sender whose credit is used up: there is"
                " nothing to give back."
            ),
            beliefs=(
                Belief(
                    name="a time-out is the end",
                    answer=FLOW,
                    because=(
                        "the sender knows of no time-out; what it sent before the drain reached it"
                        " is on its way, and it paid with the credit."
                    ),
                ),
                Belief(
                    name="drain takes back",
                    answer=NEITHER,
                    because="nothing on the wire can be taken back.",
                ),
                Belief(
                    name="drain grants",
                    answer=BOTH,
                    because="the flow with drain repeats the credit as it was; it adds none.",
                ),
            ),
            seen=played.rows[-1],
        )

    return Question(
        name=f"{LESSON}/crossing",
        text=(
            "The receiver has granted 1, its time-out is over and its drain is on the wire. At the"
            " same time the sender sends the message. What does the receiver get in the end?"
        ),
        choices=(FLOW, MESSAGE, BOTH, NEITHER),
        solve=solve,
        hints=("How much credit has the sender when the drain reaches it?",),
    )


@asks
def first_of_next(played: Run) -> Question:
    """Which message does the next consumer get first?"""
    story = Handover(played)

    def solve() -> Solution:
        first = story.of_next[0].message
        return Solution(
            answer=first,
            reason=(
                f"{story.leaver} held {many(len(story.of_leaver))} and had acknowledged none, so"
                " they went back to their old places in the queue before anybody else was served."
                f" {story.heir} gets message {first} first, and {story.again} in all for the second"
                " time."
            ),
            beliefs=(
                Belief(
                    name="what was sent is done",
                    answer=len(story.of_leaver),
                    because=(
                        "arriving is not acknowledging; to the queue they are still to be"
                        " delivered."
                    ),
                ),
                Belief(
                    name="only what was in flight comes back",
                    answer=story.arrived_before_leaving,
                    because="those that had arrived were not settled either.",
                ),
            ),
            seen=played.rows[-1],
        )

    return Question(
        name=f"{LESSON}/first-of-next",
        text=(
            f"Messages are numbered from 0. Consumer {story.leaver} is the active one and"
            f" {story.heir} waits, both with credit. When {many(story.arrived_before_leaving)} have"
            f" come to {story.leaver}, more are on the wire to it, and it detaches without"
            f" acknowledging any. Which is the number of the first message that {story.heir} gets?"
        ),
        unit="message number",
        maximum=int(played.parameters["messages"] or 0) - 1,
        solve=solve,
        hints=("To whom belongs a message that nobody has acknowledged?",),
    )


__all__ = ["crossing", "first_of_next"]
