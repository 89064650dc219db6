"""Checks of lesson 05: a run of the learner's own, or an answer, judged by running the model."""

from __future__ import annotations

from typing import Any

from workbench.presets import Preset
from workbench.scenarios.run import Run, run
from workbench.trace import brakes
from workbench.trace.braking import held_by, links_of
from workbench.trace.schema import CLIENT

from . import measure
from .checks import UNANSWERED, UNTOUCHED, checks, not_yet, run_of, told
from .measure import many
from .publish_predict import LESSON
from .publish_runs import PRESET, sent, stalled, stalls_us
from .question import Verdict

# What may hold an AMQP 1.0 sender that has a message.
WANTED = (
    brakes.UNCONFIRMED,
    brakes.LINK_CREDIT,
    brakes.ALARM,
    brakes.SESSION_WINDOW,
    brakes.TCP,
)


@checks(
    LESSON,
    "largest-credit",
    hints=(
        "A queue that never confirmed takes one and a half times the credit, or a little more:"
        " half of an odd number is rounded.",
        "Try the numbers round two thirds of the limit in a cell of your own, with"
        " `stall_table` of section two.",
    ),
)
def largest_credit(
    answer: Any, *, limit: int, publish: int, preset: Preset | str = PRESET
) -> Verdict:
    """Is that the largest max_link_credit with which a stalled queue takes no more than a limit?

    Args:
        answer: a credit; `...` if there is none yet.
        limit: messages to a queue that stalls and has confirmed nothing.
        publish: how many the application wants to send.
        preset: whose rules.
    """
    if answer is ...:
        return not_yet(UNANSWERED)
    if not isinstance(answer, int) or isinstance(answer, bool) or answer < 1:
        return not_yet("max_link_credit is a whole number from 1 on.")
    took, more = (_taken(preset, credit, publish) for credit in (answer, answer + 1))
    if took > limit:
        text = f"With {answer} the stalled queue takes {many(took)}, more than {limit}."
        return told(answer, False, text)
    if more <= limit:
        text = (
            f"With {answer} it takes {many(took)}; but with {answer + 1} no more than {limit}"
            f" either ({more}): there is a larger one."
        )
        return told(answer, False, text)
    text = f"With {answer} it takes {many(took)}, with {answer + 1} already {more}."
    return told(answer, True, text)


def _taken(preset: Preset | str, credit: int, publish: int) -> int:
    played = run("publishers", preset, {"max_link_credit": credit})
    return sent(stalled(played, publish).rows)


@checks(
    LESSON,
    "collected",
    scenarios=("publishers",),
    hints=(
        "unconfirmed: stall. alarm: alarm, and publish. session-window: the moment after an alarm"
        " has been cleared. tcp: hold the direction c2b and publish.",
        "link-credit alone: the grant must be on its way while the credit is used up. A large"
        " latency, or a rate of 0, brings that about.",
    ),
)
def collected(desk: Any) -> Verdict:
    """Was each brake the binding one at some step of this branch?

    Args:
        desk: a panel, or a run.
    """
    played = run_of(desk)
    if not played.actions:
        return not_yet(UNTOUCHED)
    seen = _bound(played)
    missing = [brake for brake in WANTED if brake not in seen]
    words = ", ".join(f"{brake} (step {seen[brake]})" for brake in WANTED if brake in seen)
    if missing:
        text = f"Bound so far: {words or 'none'}. Not yet in this branch: {', '.join(missing)}."
        return told(played.name, False, text)
    return told(played.name, True, f"All of them, one after the other: {words}.")


def _bound(played: Run) -> dict[str, int]:
    """The first step at which each brake bound some link of the client."""
    seen: dict[str, int] = {}
    for link in links_of(played.rows, sender=CLIENT):
        for row, held in zip(played.rows, held_by(played.rows, link), strict=True):
            step = measure.step(row.seq)
            seen[held.brake] = min(step, seen.get(held.brake, step))
    return seen


@checks(
    LESSON,
    "longest-brake",
    hints=(
        "The chart of this run shades each brake with a hatch of its own; the words below the chart"
        " give the times.",
    ),
)
def longest_brake(answer: Any, played: Run) -> Verdict:
    """Is that the brake that held this run's first link the longest, while it had a message?

    Args:
        answer: a brake's name; `...` if there is none yet.
        played: the run.
    """
    if answer is ...:
        return not_yet(UNANSWERED)
    total = stalls_us(played)
    if answer not in WANTED:
        return not_yet(f"{answer!r} is no brake's name; there are: {', '.join(WANTED)}.")
    longest = next(iter(total), None)
    words = ", ".join(
        f"{brake} {measure.milliseconds(time):,.1f} ms" for brake, time in total.items()
    )
    return told(answer, answer == longest, f"{words or 'Nothing'} held it in this run.")


__all__ = ["collected", "largest_credit", "longest_brake"]
