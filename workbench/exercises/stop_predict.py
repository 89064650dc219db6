"""Questions of lesson 03 about echo, stop and `available`; answers are read off a run."""

from __future__ import annotations

from workbench.scenarios.run import Run
from workbench.trace.schema import BROKER, CLIENT, RECEIVED
from workbench.trace.words import count

from . import measure
from .drain_runs import number_in, stopped
from .measure import many
from .predict import asks
from .question import Belief, Question, Solution
from .show_me import asks_and_shows

LESSON = "03"

ECHO_GRANTS = "echo grants"


@asks_and_shows
def echo_brings(run: Run) -> Question:
    """How many messages follow an echo?"""
    at = run.last
    arrived = measure.messages(run.rows, event=RECEIVED)

    def solve() -> Solution:
        branch = run.act(at, "echo")
        sent = measure.messages(branch.rows, after=at)
        answers = measure.frames(branch.rows, "flow", from_peer=BROKER, after=at)
        asked = [row for row in answers if (row.frame or {}).get("echo")]
        told = number_in(answers[-1], "available") if answers else None
        ready = measure.counter(branch.rows, BROKER, "available")
        return Solution(
            answer=sent,
            reason=(
                f"The sender answered with {count(len(answers), 'flow')} that tells its state:"
                f" link-credit {measure.credit(branch.rows, BROKER)}, available {told}."
                f" echo is set in {len(asked)} of them, so the talk ends there."
                f" {count(sent, 'transfer').capitalize()} followed: echo asks what is so and"
                " changes nothing."
            ),
            beliefs=(
                Belief(
                    name=ECHO_GRANTS,
                    answer=arrived,
                    because=(
                        "the flow with the echo carries the receiver's credit as it stands, and"
                        " that is used up."
                    ),
                ),
                Belief(
                    name="an answer is a message",
                    answer=1,
                    because="the answer is a flow, not a transfer.",
                ),
                Belief(
                    name="echo empties the queue",
                    answer=int(ready or 0),
                    because="no credit, no transfer, whatever was asked.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/echo-brings",
        text=(
            f"{many(arrived).capitalize()} have arrived, credit is used up and more are ready. The"
            " receiver sends a flow with echo=true and otherwise unchanged. How many transfers"
            " follow?"
        ),
        solve=solve,
        hints=("Put the numbers of that flow into the formula.",),
    )


@asks
def after_echo(run: Run, at: int) -> Question:
    """How many messages come after the answer to a stop?"""

    def solve() -> Solution:
        branch = stopped(run, at)
        answer = measure.frames(branch.rows, "flow", event=RECEIVED, from_peer=BROKER, after=at)
        late = measure.messages(branch.rows, event=RECEIVED, after=at, upto=answer[-1].seq)
        beyond = measure.messages(branch.rows, event=RECEIVED, after=answer[-1].seq)
        flying = measure.in_flight(branch.rows, "transfer", at)
        return Solution(
            answer=beyond,
            reason=(
                f"{many(late).capitalize()} came after the stop was sent, all of them before the"
                f" answer (step {measure.step(answer[-1].seq)}), and {beyond} after it. No frame"
                " overtakes another, and the sender sent nothing once it had read link-credit 0:"
                " its answer is the last word [2.6.10]."
            ),
            beliefs=(
                Belief(
                    name="late is late",
                    answer=late,
                    because=(
                        "there are that many late ones, but they come before the answer; that is"
                        " what the echo is for."
                    ),
                ),
                Belief(
                    name="an answer overtakes",
                    answer=flying,
                    because="what was on the wire before the answer arrives before the answer.",
                ),
            ),
            seen=answer[-1],
        )

    arrived = measure.messages(run.rows, event=RECEIVED, upto=at)
    return Question(
        name=f"{LESSON}/after-echo",
        text=(
            f"{many(arrived).capitalize()} have arrived and more are on the wire when the receiver"
            " sends flow(link-credit=0, echo=true). Some come late, as in lesson 01. How many come"
            " after the sender's answer?"
        ),
        solve=solve,
        hints=(
            "What does the sender do first when the flow reaches it: answer, or send on?",
            "Can a transfer that was sent before the answer arrive after it?",
        ),
    )


@asks
def stale(run: Run) -> Question:
    """Is `available` what there is?"""

    def solve() -> Solution:
        told = measure.counter(run.rows, CLIENT, "available")
        there = measure.counter(run.rows, BROKER, "available")
        return Solution(
            answer=there,
            reason=(
                f"The receiver was told available {told}; when it read that, {many(there)} were"
                " ready. The number was right when it was sent. It is an estimate, good for a"
                " display or a decision that may be wrong, and no promise [2.6.7]."
            ),
            beliefs=(
                Belief(
                    name="available is what is there",
                    answer=told,
                    because="it travels, and the queue does not wait for it.",
                ),
            ),
        )

    told = measure.frames(run.rows, "flow", event=RECEIVED, from_peer=BROKER)
    extra = sum(
        int(action.arguments["count"]) for action in run.actions if action.name == "publish"
    )
    return Question(
        name=f"{LESSON}/stale",
        text=(
            f"The sender answers an echo with available={number_in(told[-1], 'available')}. While"
            f" the answer is on the wire, {many(extra)} are published. How many messages are ready"
            " when the receiver reads it?"
        ),
        solve=solve,
        hints=("The queue does not know that somebody is about to read a number.",),
    )
