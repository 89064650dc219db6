"""Checks of lesson 01: an answer or a run of the learner's own, judged by running the model."""

from __future__ import annotations

from typing import Any

from workbench.presets import Preset
from workbench.scenarios.credit import TOP_UP_AT_HALF
from workbench.scenarios.declare import ParameterError
from workbench.scenarios.run import run
from workbench.trace.brakes import LINK_CREDIT
from workbench.trace.schema import BROKER, CLIENT, RECEIVED
from workbench.trace.words import count

from . import measure
from .checks import UNANSWERED, UNTOUCHED, checks, not_yet, run_of, told
from .credit_predict import LESSON, many
from .question import Verdict


def _flying(desk: Any) -> str:
    """A hint with the learner's own run: when is something on the wire?"""
    rows = run_of(desk).rows
    sent = measure.frames(rows, "transfer", from_peer=BROKER)
    if not sent:
        return "No transfer is on the wire in this branch: grant something first."
    return (
        f"In this branch the first transfer leaves at step {measure.step(sent[0].seq)}: go to a"
        " step soon after it and set link-credit to 0 there."
    )


@checks(
    LESSON,
    "late-arrivals",
    scenarios=("credit",),
    hints=(
        "What is on the wire when the receiver changes its mind cannot be called back.",
        _flying,
    ),
)
def late_arrivals(desk: Any) -> Verdict:
    """Has the learner made a run in which messages arrive although the receiver's credit is 0?

    Args:
        desk: a panel, or a run.
    """
    played = run_of(desk)
    if not played.actions:
        return not_yet(UNTOUCHED)
    stops = [
        row
        for row in measure.frames(played.rows, "flow", from_peer=CLIENT)
        if (row.frame or {}).get("link_credit") == 0
    ]
    if not stops:
        grants = ", ".join(map(str, measure.grants(played.rows))) or "none"
        return told(
            played.name,
            False,
            f"No flow in this branch sets link-credit to 0; those it has carry: {grants}.",
        )
    stop = stops[-1]
    late = measure.messages(played.rows, event=RECEIVED, after=stop.seq)
    if not late:
        flying = measure.in_flight(played.rows, "transfer", stop.seq)
        text = (
            f"The flow of step {measure.step(stop.seq)} sets link-credit to 0, but nothing"
            f" arrives after it: {many(flying)} were on the wire then, and the sender had no"
            " credit left to use."
            " Go back to a step where transfers are in flight and act there."
        )
        return told(played.name, False, text)
    text = (
        f"From step {measure.step(stop.seq)} on the receiver's link-credit is 0, and"
        f" {many(late)} arrive after it: sent before the sender could know."
    )
    return told(played.name, True, text)


@checks(
    LESSON,
    "never-more-than",
    scenarios=("credit",),
    hints=(
        "Credit that is used up may be granted again, as often as you like.",
        lambda desk, link_credit: (
            f"{many(int(run_of(desk).parameters['messages'] or 0))} with at most {link_credit} at a"
            " time: grant, step to the end of the run, grant again. A rule can do it for you."
        ),
    ),
)
def never_more_than(desk: Any, link_credit: int) -> Verdict:
    """Has the learner fetched every message without ever granting more than so many?

    Args:
        desk: a panel, or a run.
        link_credit: the most that the sender may hold.
    """
    played = run_of(desk)
    if not played.actions:
        return not_yet(UNTOUCHED)
    held = [
        (row.ledger["link_credit"], row.seq)
        for row in played.rows
        if row.vantage == BROKER and row.ledger and "link_credit" in row.ledger
    ]
    most, at = max(held, default=(0, 0), key=lambda pair: (pair[0], -pair[1]))
    arrived = measure.messages(played.rows, event=RECEIVED)
    left = measure.counter(played.rows, BROKER, "available") or 0
    if most > link_credit:
        text = (
            f"At step {measure.step(at)} the sender holds link-credit {most}; at most {link_credit}"
            " was asked for."
        )
        return told(played.name, False, text)
    if left or not arrived:
        text = f"{many(arrived)} arrived and {many(left)} wait in the queue: grant again."
        return told(played.name, False, text)
    flows = len(measure.grants(played.rows))
    text = (
        f"All {many(arrived)} arrived with {count(flows, 'flow')}, and the sender never held more"
        f" than link-credit {most}."
    )
    return told(played.name, True, text)


def _way(answer: Any, *, latency_us: int, messages: int, preset: Preset | str = "spec") -> str:
    """A hint: how long the sender waits for a grant, measured with N of one message."""
    given = {
        "policy": TOP_UP_AT_HALF,
        "n": 1,
        "latency_us": latency_us,
        "messages": messages,
    }
    rows = run("credit", preset, given).rows
    stops = measure.starvations(rows, LINK_CREDIT)
    sent = measure.frames(rows, "transfer", from_peer=BROKER)
    later = [row.t_us for row in sent if stops and row.seq > stops[0].seq]
    if not later:
        return "In this run the sender never waits, however small N is."
    return (
        f"From the last transfer to the next one a receiver with N = 1 lets"
        f" {measure.milliseconds(later[0] - stops[0].t_us):.1f} ms pass. How many messages does the"
        " queue hand out in that time? Half of N must cover them."
    )


@checks(
    LESSON,
    "smallest-n",
    hints=("The next grant leaves when half of N is left, and it takes its time.", _way),
)
def smallest_n(
    answer: Any,
    *,
    latency_us: int,
    messages: int,
    preset: Preset | str = "spec",
) -> Verdict:
    """Is that the smallest N with which top-up-at-half never lets the sender run out of credit?

    Args:
        answer: N, a whole number of 1 or more; `...` if there is none yet.
        latency_us: how long a frame is under way in each direction.
        messages: ready in the queue.
        preset: every other number.
    """
    if answer is ...:
        return not_yet(UNANSWERED)

    def stops(n: int) -> list[Any]:
        given = {
            "policy": TOP_UP_AT_HALF,
            "n": n,
            "latency_us": latency_us,
            "messages": messages,
        }
        return measure.starvations(run("credit", preset, given).rows, LINK_CREDIT)

    try:
        starved = stops(answer)
    except ParameterError as error:
        return not_yet(f"{error}.")
    if starved:
        text = (
            f"With N = {answer} the sender runs out of credit {count(len(starved), 'time')}, first"
            f" at {measure.milliseconds(starved[0].t_us):.1f} ms: the next flow is still under way."
            " Give it more."
        )
        return told(answer, False, text)
    if answer > 1 and not stops(answer - 1):
        text = f"N = {answer} is enough, and so is {answer - 1}: there is a smaller one."
        return told(answer, False, text)
    below = stops(answer - 1) if answer > 1 else []
    text = f"With N = {answer} the sender never runs out of credit while messages wait"
    if below:
        text += f"; with {answer - 1} it does, {count(len(below), 'time')}"
    text += ". N must last for the way of a flow and the way back of a transfer, from half on."
    return told(answer, True, text)


__all__ = ["late_arrivals", "never_more_than", "smallest_n"]
