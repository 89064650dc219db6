"""Checks of lesson 01: an answer or a run of the learner's own, judged by running the model."""

from __future__ import annotations

from typing import Any

from workbench.presets import Preset
from workbench.scenarios.credit import TOP_UP_AT_HALF
from workbench.scenarios.declare import ParameterError
from workbench.scenarios.run import Run, run
from workbench.trace.brakes import LINK_CREDIT
from workbench.trace.schema import BROKER, CLIENT, RECEIVED
from workbench.trace.words import count

from . import measure
from .credit_predict import LESSON, many
from .progress import Progress, progress
from .question import Verdict

UNANSWERED = "Put your answer in place of the ... and run this cell again."


def late_arrivals(desk: Any, *, log: Progress = progress) -> Verdict:
    """Has the learner made a run in which messages arrive although the receiver's credit is 0?

    Args:
        desk: a panel, or a run.
        log: where the outcome is kept.
    """
    played = _run_of(desk)
    if not played.actions:
        return _not_yet("Act in the panel first: this run is as it began.")
    stops = [
        row
        for row in measure.frames(played.rows, "flow", from_peer=CLIENT)
        if (row.frame or {}).get("link_credit") == 0
    ]
    if not stops:
        grants = ", ".join(map(str, measure.grants(played.rows))) or "none"
        return _told(
            "late-arrivals",
            played.name,
            False,
            f"No flow in this branch sets link-credit to 0; those it has carry: {grants}.",
            log,
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
        return _told("late-arrivals", played.name, False, text, log)
    text = (
        f"From step {measure.step(stop.seq)} on the receiver's link-credit is 0, and"
        f" {many(late)} arrive after it: sent before the sender could know."
    )
    return _told("late-arrivals", played.name, True, text, log)


def never_more_than(desk: Any, link_credit: int, *, log: Progress = progress) -> Verdict:
    """Has the learner fetched every message without ever granting more than so many?

    Args:
        desk: a panel, or a run.
        link_credit: the most that the sender may hold.
        log: where the outcome is kept.
    """
    played = _run_of(desk)
    if not played.actions:
        return _not_yet("Act in the panel first: this run is as it began.")
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
        return _told("never-more-than", played.name, False, text, log)
    if left or not arrived:
        text = f"{many(arrived)} arrived and {many(left)} wait in the queue: grant again."
        return _told("never-more-than", played.name, False, text, log)
    flows = len(measure.grants(played.rows))
    text = (
        f"All {many(arrived)} arrived with {count(flows, 'flow')}, and the sender never held more"
        f" than link-credit {most}."
    )
    return _told("never-more-than", played.name, True, text, log)


def smallest_n(
    answer: Any,
    *,
    latency_us: int,
    messages: int,
    preset: Preset | str = "spec",
    log: Progress = progress,
) -> Verdict:
    """Is that the smallest N with which top-up-at-half never lets the sender run out of credit?

    Args:
        answer: N, a whole number of 1 or more; `...` if there is none yet.
        latency_us: how long a frame is under way in each direction.
        messages: ready in the queue.
        preset: every other number.
        log: where the outcome is kept.
    """
    if answer is ...:
        return _not_yet(UNANSWERED)

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
        return _not_yet(f"{error}.")
    if starved:
        text = (
            f"With N = {answer} the sender runs out of credit {count(len(starved), 'time')}, first"
            f" at {measure.milliseconds(starved[0].t_us):.1f} ms: the next flow is still under way."
            " Give it more."
        )
        return _told("smallest-n", answer, False, text, log)
    if answer > 1 and not stops(answer - 1):
        text = f"N = {answer} is enough, and so is {answer - 1}: there is a smaller one."
        return _told("smallest-n", answer, False, text, log)
    below = stops(answer - 1) if answer > 1 else []
    text = f"With N = {answer} the sender never runs out of credit while messages wait"
    if below:
        text += f"; with {answer - 1} it does, {count(len(below), 'time')}"
    text += ". N must last for the way of a flow and the way back of a transfer, from half on."
    return _told("smallest-n", answer, True, text, log)


def _run_of(desk: Any) -> Run:
    """The run that a panel shows, or the run itself."""
    model = getattr(desk, "model", None)
    found = desk if model is None else model.run
    if not hasattr(found, "rows") or not hasattr(found, "actions"):
        raise TypeError(f"a panel or a run is wanted here, not {type(desk).__name__}")
    return found


def _not_yet(text: str) -> Verdict:
    return Verdict(right=None, text=text)


def _told(name: str, answer: object, right: bool, text: str, log: Progress) -> Verdict:
    log.record(f"{LESSON}/{name}", answer, right)
    return Verdict(right=right, text=text)


__all__ = ["late_arrivals", "never_more_than", "smallest_n"]
