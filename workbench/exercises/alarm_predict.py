"""Questions of lesson 04 about alarms and second sessions; answers are read off a run."""

from __future__ import annotations

from workbench.scenarios.run import Run
from workbench.scenarios.windows import EXPRESS
from workbench.trace.schema import BROKER, CLIENT, RECEIVED
from workbench.trace.words import count

from .measure import many, step
from .predict import asks
from .question import Belief, Question, Solution
from .windows_runs import (
    FIRST,
    announced,
    arrived,
    at_start,
    condition,
    disobeyed,
    ends,
    field,
    session_flows,
    taken,
    transfers,
)

LESSON = "04"

WINDOW_STOPS_ALL = "a closed window stops everything"
WINDOW_OF_CONNECTION = "the window is the connection's"


@asks
def obeys(run: Run, publish: int) -> Question:
    """How many messages does a client send that heeds an alarm?"""

    def solve() -> Solution:
        branch = at_start(run, "alarm").then("publish", count=publish)
        sent = len(transfers(branch.rows, CLIENT))
        flow = session_flows(branch.rows, after=run.start_seq)[0]
        credit = next(
            (row.ledger or {})["link_credit"]
            for row in reversed(run.rows)
            if row.link_sender == CLIENT and "link_credit" in (row.ledger or {})
        )
        return Solution(
            answer=sent,
            reason=(
                f"The alarm made the broker send flow(incoming-window="
                f"{field(flow, 'incoming_window')}) at step {step(flow.seq)}, so"
                f" {count(sent, 'frame')} went out, although the link holds credit for {credit}."
            ),
            beliefs=(
                Belief(
                    name="credit is enough",
                    answer=min(publish, int(credit)),
                    because="a transfer needs credit and window, and the window is closed.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/obeys",
        text=(
            f"An alarm is on. The client's link has credit, and it wants to publish"
            f" {many(publish)}. How many transfers does it send?"
        ),
        solve=solve,
        hints=("The broker cannot take credit back in time. Which counter can it set to nothing?",),
    )


@asks
def tolerated(run: Run, publish: int) -> Question:
    """How many frames does the broker take from a client that ignores the alarm?"""
    window = announced(run.rows, BROKER)

    def solve() -> Solution:
        branch = disobeyed(run, publish)
        sent, came = len(transfers(branch.rows, CLIENT)), taken(branch)
        over = ends(branch.rows)
        words = f"The broker took {many(came)}"
        if over:
            words += (
                f" and ended the session with {condition(over[0])} at the next frame (step"
                f" {step(over[0].seq)}); {sent} had been sent by then"
            )
        return Solution(
            answer=came,
            reason=(
                f"{words}. What was on the wire when the window closed must not be punished, and"
                f" that can be as much as the window was: {window}."
            ),
            beliefs=(
                Belief(
                    name="the first frame too many ends it",
                    answer=0,
                    because=(
                        "frames that crossed the alarm's flow come from a client that has done"
                        " nothing wrong; the broker cannot tell them apart."
                    ),
                ),
                Belief(
                    name="nobody counts",
                    answer=publish,
                    because="then an alarm could not protect the broker.",
                ),
            ),
            seen=over[0] if over else branch.rows[-1],
        )

    return Question(
        name=f"{LESSON}/tolerated",
        text=(
            f"An alarm is on, the window is closed. A client that ignores it sends {publish} frames"
            f" all the same. The window was {window} before. How many does the broker take before"
            " it ends the session?"
        ),
        unit="frames",
        solve=solve,
        hints=(
            "How many frames may be on the wire, quite legally, when the window closes?",
            "A window that was full is the worst case.",
        ),
    )


@asks
def consumers(run: Run, link_credit: int) -> Question:
    """Do consumers of the same session go on under an alarm?"""
    ready = int(run.parameters["messages"] or 0)

    def solve() -> Solution:
        branch = at_start(run, "alarm").then("grant", link_credit=link_credit)
        came = arrived(branch, FIRST)
        return Solution(
            answer=came,
            reason=(
                f"{many(came).capitalize()} came. The broker has closed its own incoming-window:"
                " what it sends is governed by the client's, and flows and dispositions need no"
                " window at all. That is wanted: consumers free the memory that is short."
            ),
            beliefs=(
                Belief(
                    name=WINDOW_STOPS_ALL,
                    answer=0,
                    because="a session has two windows, one for each direction.",
                ),
                Belief(
                    name="an alarm empties the queue",
                    answer=ready,
                    because="it changes nothing about credit: what was granted comes.",
                ),
            ),
            seen=run.rows[run.start_seq],
        )

    return Question(
        name=f"{LESSON}/consumers",
        text=(
            f"The alarm is on, {many(ready)} are in the queue, and a consumer on the same session"
            f" grants link-credit {link_credit}. How many messages does it get?"
        ),
        solve=solve,
        hints=("Whose incoming-window did the alarm close?",),
    )


@asks
def express(run: Run) -> Question:
    """Does a second session get through beside one that is full?"""
    ready = int(run.parameters["express"] or 0)
    stuck = int(run.parameters["messages"] or 0) - arrived(run, FIRST)

    def solve() -> Solution:
        branch = run.then("begin_session")
        came = transfers(branch.rows, BROKER, RECEIVED, link=EXPRESS)
        number = came[-1].session if came else "?"
        sockets = len(branch.world.wires)
        return Solution(
            answer=len(came),
            reason=(
                f"{many(len(came)).capitalize()} came on session {number}, past the {stuck} that"
                f" wait. A session has windows of its own; the connection, {sockets} socket, is"
                " shared. For RabbitMQ a session is one process more, and cheap."
            ),
            beliefs=(
                Belief(
                    name=WINDOW_OF_CONNECTION,
                    answer=0,
                    because="the window that is closed belongs to the first session alone.",
                ),
                Belief(
                    name="the window is shared out",
                    answer=announced(run.rows, CLIENT),
                    because="each begin announces a window; nothing is shared.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/express",
        text=(
            f"The session's window is used up, and {stuck} messages wait for it. On the same"
            f" connection the client begins a second session and consumes from another queue with"
            f" {many(ready)}. How many of these come?"
        ),
        solve=solve,
        hints=("What is announced in a begin?",),
    )
