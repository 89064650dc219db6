"""Checks of lesson 04: a run of the learner's own, or an answer, judged by running the model."""

from __future__ import annotations

from typing import Any

from workbench.presets import Preset
from workbench.scenarios.declare import ParameterError
from workbench.scenarios.run import Run, run
from workbench.scenarios.windows import EXPRESS
from workbench.trace.brakes import SESSION_WINDOW
from workbench.trace.schema import CLIENT
from workbench.trace.words import count

from . import measure
from .checks import UNANSWERED, UNTOUCHED, checks, not_yet, run_of, told
from .measure import many
from .question import Verdict
from .windows_predict import LESSON
from .windows_runs import (
    FIRST,
    PRESET,
    arrived,
    ends,
    field,
    in_queue,
    ledger,
    transfers,
)


def _windows_told(played: Run) -> list[int]:
    """incoming-window of the client's flows, in order, from the first act on."""
    flows = measure.frames(played.rows, "flow", from_peer=CLIENT, after=played.start_seq)
    return [field(row, "incoming_window") for row in flows]


@checks(
    LESSON,
    "in-helpings",
    scenarios=("windows",),
    hints=(
        "A window that is told anew is no addition: count what has come since.",
        "Open it, let everything come to rest, and open it again.",
    ),
)
def in_helpings(desk: Any, frames: int) -> Verdict:
    """Has the whole message come through windows of at most so many frames?

    Args:
        desk: a panel, or a run.
        frames: the most that any flow of the client may announce.
    """
    played = run_of(desk)
    if not played.actions:
        return not_yet(UNTOUCHED)
    told_windows = _windows_told(played)
    largest = max(told_windows, default=0)
    if largest > frames:
        text = f"A flow in this branch announces {largest}; {frames} is the most allowed here."
        return told(played.name, False, text)
    ready = int(played.parameters["messages"] or 0)
    came, sent = arrived(played, FIRST), len(transfers(played.rows))
    if came < ready:
        text = (
            f"{many(came).capitalize()} of {ready} came completely, in {count(sent, 'frame')}."
            " Does the window stand closed, or is credit missing?"
        )
        return told(played.name, False, text)
    text = (
        f"{many(came).capitalize()} in {count(sent, 'frame')}, and no flow announced more than"
        f" {largest}. The credit was granted once for the message, the window again and again."
    )
    return told(played.name, True, text)


@checks(
    LESSON,
    "under-alarm",
    scenarios=("windows",),
    hints=(
        "Set the alarm first. Which acts still have an effect?",
        "Grant to the consumer, and acknowledge what has come. Publish, and see it wait.",
    ),
)
def under_alarm(desk: Any) -> Verdict:
    """Has the queue been emptied under an alarm while something published waits?

    Args:
        desk: a panel, or a run.
    """
    played = run_of(desk)
    if not played.actions:
        return not_yet(UNTOUCHED)
    alarm = next((row for row in played.rows if row.event == "alarm-set"), None)
    if alarm is None:
        return told(played.name, False, "No alarm was set in this branch.")
    if any(row.event == "alarm-clear" for row in played.rows):
        return told(played.name, False, "The alarm was cleared; it shall stay on to the end.")
    if ends(played.rows):
        text = "The broker has ended the session: somebody published over the closed window."
        return told(played.name, False, text)
    left, came = in_queue(played), measure.messages(played.rows, after=alarm.seq)
    asked = any(
        row.event == "action" and row.kind == "publish" and row.seq > alarm.seq
        for row in played.rows
    )
    sent = len(transfers(played.rows, CLIENT, after=alarm.seq))
    if left or not came:
        text = (
            f"{many(came).capitalize()} came under the alarm, {left} are still in the queue. A"
            " consumer needs credit, alarm or not."
        )
        return told(played.name, False, text)
    unsettled = _unsettled(played)
    if unsettled:
        text = (
            f"The queue has handed everything out, but {unsettled} are not acknowledged: the"
            " broker must keep them, and its memory stays short."
        )
        return told(played.name, False, text)
    if not asked:
        return told(played.name, False, "Publish something too, and see what becomes of it.")
    text = (
        f"{many(came).capitalize()} came and were settled under the alarm; of what was published"
        f" meanwhile {count(sent, 'frame')} left. Consumers free what publishers would use up."
    )
    return told(played.name, True, text)


def _unsettled(played: Run) -> int:
    """Messages handed out and not settled, by the queue's last row."""
    found = 0
    for row in played.rows:
        if row.queue == played.world.broker.queues["q"].name and row.vantage.startswith("queue:"):
            found = int((row.ledger or {}).get("queue_unsettled", found))
    return found


@checks(
    LESSON,
    "overtakes",
    scenarios=("windows",),
    hints=(
        "What belongs to a session stops with it. What belongs to the connection does not.",
        "Grant much to the first link, let its window run out, and begin a second session.",
    ),
)
def overtakes(desk: Any) -> Verdict:
    """Has an express message come while the first session stood still at its window?

    Args:
        desk: a panel, or a run.
    """
    played = run_of(desk)
    if not played.actions:
        return not_yet(UNTOUCHED)
    sent = transfers(played.rows)
    full = next(
        (row for row in sent if row.link == FIRST and not ledger(row, "remote_incoming_window")),
        None,
    )
    if full is None:
        text = "The first session's window was never used up in this branch: grant more."
        return told(played.name, False, text)
    later = [row for row in sent if row.link == EXPRESS and row.seq > full.seq]
    again = [row for row in sent if row.link == FIRST and row.seq > full.seq]
    if not later:
        text = (
            f"The window of the first session is used up at step {measure.step(full.seq)}, but"
            " nothing came on another session after that."
        )
        return told(played.name, False, text)
    if again and again[0].seq < later[0].seq:
        return told(played.name, False, "The first session went on before: its window was opened.")
    text = (
        f"The first session stands still from step {measure.step(full.seq)} on; at step"
        f" {measure.step(later[0].seq)} the other one sends. Two sessions, two windows, one"
        " socket."
    )
    return told(played.name, True, text)


@checks(
    LESSON,
    "smallest-window",
    hints=(
        "Half the window must last from one flow of the client to the frames that it brings.",
        "A round trip, in frames: how many leave the queue in that time?",
    ),
)
def smallest_window(
    answer: Any, *, latency_us: int, messages: int, preset: Preset | str = PRESET
) -> Verdict:
    """Is that the smallest window, opened at half, with which the sender never finds it closed?

    Args:
        answer: transfer frames, 1 or more; `...` if there is none yet.
        latency_us: how long a frame is under way in each direction.
        messages: ready in the queue, of one frame each, with credit for all.
        preset: every other number.
    """
    if answer is ...:
        return not_yet(UNANSWERED)

    def closed(window: int) -> int:
        given = {
            "client_window": window,
            "reopens": True,
            "latency_us": latency_us,
            "messages": messages,
            "link_credit": messages + messages,
        }
        played = run("windows", preset, given)
        return len(measure.starvations(played.rows, SESSION_WINDOW))

    try:
        times = closed(answer)
    except ParameterError as error:
        return not_yet(f"{error}.".replace("client_window", "your window"))
    if times:
        text = (
            f"With a window of {answer} the sender finds it closed {count(times, 'time')}: the next"
            " flow is still under way. Open it wider."
        )
        return told(answer, False, text)
    if answer > 1 and not closed(answer - 1):
        text = f"A window of {answer} is enough, and so is {answer - 1}: there is a smaller one."
        return told(answer, False, text)
    text = f"With a window of {answer} the sender never finds it closed"
    if answer > 1:
        text += f"; with {answer - 1} it does, {count(closed(answer - 1), 'time')}"
    text += ". It is the same reckoning as for credit in lesson 01, in frames instead of messages."
    return told(answer, True, text)


__all__ = ["in_helpings", "overtakes", "smallest_window", "under_alarm"]
