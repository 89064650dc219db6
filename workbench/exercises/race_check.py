"""Checks of lesson 02: a branch or a sender of the learner's own, judged by running the model."""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from typing import Any

from workbench.scenarios.run import Run
from workbench.trace.schema import BROKER, CLIENT, RECEIVED, SENT
from workbench.trace.words import count

from . import measure
from .checks import UNANSWERED, UNTOUCHED, checks, not_yet, run_of, told
from .question import Verdict
from .trial import Trial

LESSON = "02"


def _runs_of(desk: Any) -> list[Run]:
    """Every branch that the learner made at a panel; a run alone is the only one."""
    model = getattr(desk, "model", None)
    if model is None:
        return [run_of(desk)]
    return [run for tree in model.trees for run in tree.runs]


def crosses(run: Run) -> bool:
    """Whether a flow and a transfer are on the wire at the same time, and both have landed."""
    flights = []
    for kind, by in (("flow", CLIENT), ("transfer", BROKER)):
        gone = measure.frames(run.rows, kind, event=SENT, from_peer=by, after=run.start_seq)
        came = {
            row.frame_id: row.seq
            for row in measure.frames(run.rows, kind, event=RECEIVED, from_peer=by)
        }
        flights.append([(row.seq, came[row.frame_id]) for row in gone if row.frame_id in came])
    flows, transfers = flights
    return any(
        left < other_landed and other_left < landed
        for left, landed in flows
        for other_left, other_landed in transfers
    )


@checks(
    LESSON,
    "crossed",
    scenarios=("race",),
    hints=(
        "Neither frame may land before the other has left.",
        "Send flow, send transfer; only then let them arrive.",
    ),
)
def crossed(desk: Any) -> Verdict:
    """Has the learner made a flow and a transfer cross, and let both land?

    Args:
        desk: a panel on the race, or a run of it.
    """
    runs = _runs_of(desk)
    if not any(run.actions for run in runs):
        return not_yet(UNTOUCHED)
    made = [run for run in runs if crosses(run)]
    if not made:
        text = (
            "A flow and a transfer were on the wire at the same time, and landed, in none of your"
            f" {count(len(runs), 'branch', 'branches')}."
        )
        return told(run_of(desk).name, False, text)
    sender, receiver = (measure.credit(made[-1].rows, end) for end in (BROKER, CLIENT))
    rule = made[-1].parameters["rule"]
    same = "both ends hold" if sender == receiver else "and the ends differ:"
    credits = f"link-credit {sender}" if sender == receiver else f"{sender} and {receiver}"
    text = (
        f"They crossed in {count(len(made), 'branch', 'branches')}. With rule “{rule}” {same}"
        f" {credits} in the last of them."
    )
    return told(made[-1].name, True, text)


SENDER_HINTS = (
    "What has the sender sent that the receiver did not know of when it wrote the flow?",
    "The difference of two delivery-counts is what was in flight.",
    "frame.delivery_count is how far the receiver had got; state.delivery_count is how far you"
    " are. And the numbers wrap around: serial.diff(a, b) is the difference that knows it.",
)


@checks(LESSON, "half-worked-sender", hints=SENDER_HINTS)
def half_worked_sender(
    on_flow: Callable[..., Any], *, messages: int, grants: Sequence[int]
) -> Verdict:
    """Is the sender that was given in part right in every order?

    Args:
        on_flow: the learner's function of the sender's state and the flow.
        messages: that the sender has.
        grants: link-credit of each flow; none may take back what an earlier one gave.
    """
    return _judged(on_flow, messages, grants, starts=(0,))


@checks(LESSON, "sender", hints=SENDER_HINTS)
def sender(
    on_flow: Callable[..., Any],
    *,
    messages: int,
    grants: Sequence[int],
    starts: Sequence[int] = (0,),
) -> Verdict:
    """Is that sender never entitled to too much, and never content with too little?

    Args:
        on_flow: the learner's function of the sender's state and the flow.
        messages: that the sender has.
        grants: link-credit of each flow; none may take back what an earlier one gave.
        starts: initial delivery-counts to try.
    """
    return _judged(on_flow, messages, grants, starts)


def _judged(
    on_flow: Callable[..., Any], messages: int, grants: Sequence[int], starts: Sequence[int]
) -> Verdict:
    """What every order from every beginning says of a sender."""
    if _unanswered(on_flow):
        return not_yet(UNANSWERED)
    if not starts:
        return not_yet("Name at least one initial delivery-count in starts.")
    name = getattr(on_flow, "__name__", "on_flow")
    visited = 0
    for start in starts:
        trial = Trial(on_flow, messages=messages, grants=grants, initial_delivery_count=start)
        if not trial.passed:
            text = trial.text.removeprefix("✘ ").removeprefix("… ")
            again = (
                f"try_sender({name}, messages={messages}, grants={list(grants)},"
                f" initial_delivery_count={start})"
            )
            opened = "" if trial.fault else f" {again} opens it in the stepper."
            return told(name, False, f"Beginning at delivery-count {start}: {text}{opened}")
        visited += trial.found.states if trial.found is not None else 0
    tried = ", ".join(map(str, starts))
    text = (
        f"{count(visited, 'state')} visited, beginning at delivery-count {tried}: in none of them"
        " is the sender entitled to more than was granted, and with an empty wire it always holds"
        " what the receiver allows."
    )
    return told(name, True, text)


def _unanswered(on_flow: Callable[..., Any]) -> bool:
    """Whether a `...` still stands in the function."""
    code = getattr(on_flow, "__code__", None)
    if code is None:
        return False
    # A body that is only `...` is compiled to nothing at all; a loop leaves a jump behind.
    empty = code.co_consts == (None,) and not code.co_names
    jumps = any("JUMP" in step.opname for step in dis.get_instructions(code))
    return Ellipsis in code.co_consts or (empty and not jumps)


__all__ = ["crossed", "crosses", "half_worked_sender", "sender"]
