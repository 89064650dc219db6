"""Checks of lesson 07: a run of the learner's own, or an answer, judged by running the model."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from workbench.scenarios.run import Run
from workbench.trace.replicas import CONFIRMED, DOWN, LEADER, Replicas

from . import measure
from .checks import UNANSWERED, UNTOUCHED, checks, not_yet, run_of, told
from .measure import many
from .question import Verdict
from .quorum_predict import LESSON
from .quorum_runs import arrivals, deciders, newest, on_disk_when, pipelined


@checks(
    LESSON,
    "recovered",
    scenarios=("quorum",),
    hints=(
        "Crash nodes, or cut every way of some, until fewer than a majority reach each other; then"
        " publish.",
        "To come back: restart, or heal without naming an end; each act at the last step.",
    ),
)
def recovered(desk: Any) -> Verdict:
    """Was there a time without a majority, with messages waiting, and was all confirmed later?

    Args:
        desk: a panel, or a run.
    """
    played = run_of(desk)
    if not played.actions:
        return not_yet(UNTOUCHED)
    story = Replicas(played.rows)
    begun, waited = 0, False
    changes = [*zip(story.stall.steps, story.stall.values, strict=True), (len(story.rows) + 1, "")]
    came = [measure.step(row.seq) for row in arrivals(story.rows)]
    for (step, why), (until, _) in pairwise(changes):
        if not why:
            continue
        begun = begun or step
        before = sum(1 for at in came if at < step)
        waited = waited or before > story.confirmed.at(step)
        waited = waited or any(step <= at < until for at in came)
    if not begun:
        text = "In this branch a majority always reached each other: nothing ever stood still."
        return told(played.name, False, text)
    if not waited:
        text = f"From step {begun} on there was no majority; but no message was waiting then."
        return told(played.name, False, text)
    left = len(came) - story.confirmed.now
    if left:
        text = (
            f"From step {begun} on there was no majority, and {many(left)} still wait for a confirm"
            " at the end of this branch. Bring a majority back."
        )
        return told(played.name, False, text)
    text = (
        f"From step {begun} on nothing could be committed; in the end all of {many(len(came))} are"
        " confirmed, and the publisher sent none of them twice."
    )
    return told(played.name, True, text)


@checks(
    LESSON,
    "smallest-cap",
    hints=(
        "Rate is what is in flight, divided by how long it is in flight: one to two fsyncs.",
        "Begin with rate times two fsyncs, and try numbers round it.",
    ),
)
def smallest_cap(answer: Any, *, rate: int, fsync_us: int) -> Verdict:
    """Is that the smallest cap with which a pipelined publisher reaches a rate?

    Args:
        answer: how many may be unconfirmed; `...` if there is none yet.
        rate: messages a second.
        fsync_us: time of an fsync.
    """
    if answer is ...:
        return not_yet(UNANSWERED)
    if not isinstance(answer, int) or isinstance(answer, bool) or answer < 1:
        return not_yet("A cap is a whole number from 1 on.")
    if answer > rate:
        return not_yet(f"Nobody needs more than {rate:,} unconfirmed for that; try a smaller one.")
    reached = pipelined(answer, fsync_us).rate
    if reached < rate:
        text = f"With {answer} it reaches {reached:,.0f} a second, fewer than {rate:,}."
        return told(answer, False, text)
    less = pipelined(answer - 1, fsync_us).rate if answer > 1 else 0
    if less >= rate:
        text = (
            f"With {answer} it reaches {reached:,.0f} a second; with {answer - 1} still"
            f" {less:,.0f}: there is a smaller one."
        )
        return told(answer, False, text)
    text = (
        f"With {answer} it reaches {reached:,.0f} a second, with {answer - 1} only {less:,.0f}."
        " More would only make every message wait longer."
    )
    return told(answer, True, text)


@checks(
    LESSON,
    "decides",
    hints=(
        "Step to the commit, and look which disks were told of before it.",
        "The leader hears of another disk one way's latency after its fsync; of its own at once.",
    ),
)
def decides(answer: Any, played: Run) -> Verdict:
    """Is that the node whose fsync was the last one needed for the newest message's confirm?

    Args:
        answer: a node's name; `...` if there is none yet.
        played: the run.
    """
    if answer is ...:
        return not_yet(UNANSWERED)
    story = Replicas(played.rows)
    if answer not in story.nodes:
        return not_yet(f"{answer!r} is no node; there are: {', '.join(story.nodes)}.")
    heard = on_disk_when(story, newest(story))
    at = measure.step(newest(story).done[CONFIRMED] - 1)
    down = [name for name, node in story.nodes.items() if node.role.at(at) == DOWN]
    leader = [name for name, node in story.nodes.items() if node.role.at(at) == LEADER]
    words = f"; {', '.join(down)} down" if down else ""
    text = (
        f"At the commit the leader, {', '.join(leader)}, knew of the disks of {', '.join(heard)},"
        f" in this order{words}."
    )
    return told(answer, answer in deciders(story, newest(story)), text)


__all__ = ["decides", "recovered", "smallest_cap"]
