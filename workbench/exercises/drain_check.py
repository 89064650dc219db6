"""Checks of lesson 03: a run of the learner's own, or an answer, judged by running the model."""

from __future__ import annotations

from typing import Any

from workbench import serial
from workbench.scenarios.declare import ParameterError
from workbench.scenarios.run import Run
from workbench.scenarios.two_queues import BY_HAND, FIRST, QUEUES, SECOND
from workbench.trace.schema import BROKER, CLIENT, RECEIVED, SENT, Row

from . import measure
from .checks import UNANSWERED, UNTOUCHED, checks, not_yet, run_of, told
from .drain_predict import LESSON
from .drain_runs import message_numbers
from .measure import many
from .question import Verdict
from .timeout import CROSSED, IN_TIME, TimedGet, ending_of, explained


@checks(
    LESSON,
    "gave-back",
    scenarios=("credit", "asking"),
    hints=(
        "A drain gives back what finds no message. So which number must be the larger one, credit"
        " or what is ready?",
        "The queue may empty while you look: grant and drain at the same step, one after the other,"
        " or grant more than there is and drain when the last message has come.",
    ),
)
def gave_back(desk: Any) -> Verdict:
    """Has the learner made a drain that brings some messages and gives some credit back?

    Args:
        desk: a panel, or a run.
    """
    played = run_of(desk)
    if not played.actions:
        return not_yet(UNTOUCHED)
    requests = [row for row in _flows(played, CLIENT) if (row.frame or {}).get("drain")]
    if not requests:
        return told(played.name, False, "No flow in this branch sets drain.")
    request = requests[-1]
    where = f"The drain of step {measure.step(request.seq)}"
    credit = _credit(request)
    if not credit:
        text = (
            f"{where} was asked with link-credit 0: there was nothing to use up and nothing to give"
            " back. Grant first."
        )
        return told(played.name, False, text)
    sent = measure.messages(played.rows, after=request.seq)
    returned = _given_back(played, request)
    if not sent or not returned:
        text = (
            f"{where} had credit for {many(credit)}: {sent} came, {returned} of the credit was"
            " given back. Both shall be more than zero: how many messages must be ready?"
        )
        return told(played.name, False, text)
    text = (
        f"{where} brought {many(sent)} and gave back {returned}: delivery-count rose by"
        f" {sent + returned}."
    )
    return told(played.name, True, text)


@checks(
    LESSON,
    "paused",
    scenarios=("credit", "asking"),
    hints=(
        "The receiver knows that it is quiet when the sender's flow, the answer to its echo, has"
        " come. Step to that flow before you grant again.",
        "Grant a good number, step to the second message that arrives, stop, step to the flow that"
        " the receiver receives, and grant there what is left.",
    ),
)
def paused(desk: Any) -> Verdict:
    """Has the learner paused cleanly, and then resumed and fetched the rest?

    Args:
        desk: a panel, or a run.
    """
    played = run_of(desk)
    if not played.actions:
        return not_yet(UNTOUCHED)
    fault, text = _pause(played)
    return told(played.name, not fault, text)


def _pause(played: Run) -> tuple[bool, str]:
    """Whether something is wrong with a pause, and what there is to say."""
    stop = next((row for row in _flows(played, CLIENT) if _stops(row)), None)
    if stop is None:
        return True, "No flow in this branch carries link-credit 0 and echo, as stop sends it."
    where = f"The stop of step {measure.step(stop.seq)}"
    if not measure.messages(played.rows, event=RECEIVED, upto=stop.seq):
        return True, f"{where} comes before the first message: there was nothing to pause."
    answers = [row for row in _flows(played, BROKER, RECEIVED) if row.seq > stop.seq]
    resumes = [row for row in _flows(played, CLIENT) if row.seq > stop.seq and _credit(row)]
    if not resumes:
        return True, f"{where} paused the link; now resume it: grant again, in the same branch."
    resume = measure.step(resumes[0].seq)
    if not answers or resumes[0].seq < answers[0].seq:
        return True, (
            f"{where} was followed by a grant in step {resume}, before the answer had come: the"
            " link was never known to be quiet. Wait for the answer."
        )
    if left := measure.counter(played.rows, BROKER, "available"):
        return True, f"{many(left).capitalize()} still wait in the queue: grant enough for them."
    late = measure.messages(played.rows, event=RECEIVED, after=stop.seq, upto=answers[0].seq)
    quiet = measure.messages(played.rows, event=RECEIVED, after=answers[0].seq, upto=resumes[0].seq)
    numbers = message_numbers(played.world.peers["consumer"].payloads)
    order = "in the order of the queue" if numbers == sorted(numbers) else "out of order"
    return False, (
        f"{where}: {many(late)} came late, and {quiet} after the answer of step"
        f" {measure.step(answers[0].seq)}. The grant of step {resume} went on with the same link,"
        f" and all {many(len(numbers))} came, {order}."
    )


@checks(
    LESSON,
    "urgent-first",
    scenarios=("two_queues",),
    hints=(
        "While the ordinary queue's link has no credit, nothing comes from it.",
        "Grant the urgent link enough for its whole queue, go to the end, and grant the other one"
        " there.",
    ),
)
def urgent_first(desk: Any) -> Verdict:
    """Did every message of the first queue come before any of the second, and then all of those?

    Args:
        desk: a panel on the scenario `two_queues`, or a run of it.
    """
    played = run_of(desk)
    if not played.actions and played.parameters.get("policy") == BY_HAND:
        return not_yet(UNTOUCHED)
    came = [
        str(row.link)
        for row in measure.frames(played.rows, "transfer", event=RECEIVED, from_peer=BROKER)
        if not (row.frame or {}).get("more")
    ]
    left = {name: played.world.broker.queues[name].queue.ready for name in QUEUES}
    counted = ", ".join(f"{came.count(name)} {name}" for name in QUEUES)
    waiting = {name: number for name, number in left.items() if number}
    if waiting:
        words = " and ".join(f"{number} {name}" for name, number in waiting.items())
        return told(played.name, False, f"{counted} came; {words} still wait in their queue.")
    first_bulk = came.index(SECOND) if SECOND in came else len(came)
    late = came[first_bulk:].count(FIRST)
    if late:
        text = (
            f"All came ({counted}), but {many(late)} of {FIRST} after the first of {SECOND}: both"
            " links had credit at the same time."
        )
        return told(played.name, False, text)
    flows = len(measure.grants(played.rows))
    text = f"First every {FIRST} message, then every {SECOND} one ({counted}), with {flows} flows."
    return told(played.name, True, text)


@checks(
    LESSON,
    "shortest-timeouts",
    hints=(
        "In time: the message must have arrived. At all: it must be in the queue when the drain"
        " arrives.",
        lambda in_time, at_all, get, *, latency_us: (
            f"The queue takes {get.preset.queue_enqueue_us} µs to take a message in and"
            f" {get.preset.queue_deliver_us} µs to hand it out, and a frame is under way for"
            f" {latency_us} µs."
        ),
    ),
)
def shortest_timeouts(in_time: Any, at_all: Any, get: TimedGet, *, latency_us: int) -> Verdict:
    """Are those the shortest time-outs with which the message comes in time, and at all?

    Args:
        in_time: microseconds; `...` if there is no answer yet.
        at_all: the same.
        get: the get.
        latency_us: of the wire, each way.
    """
    if in_time is ... or at_all is ...:
        return not_yet(UNANSWERED)
    wanted = (("in time", in_time, (IN_TIME,)), ("at all", at_all, (IN_TIME, CROSSED)))
    said = []
    for name, answer, good in wanted:
        if not isinstance(answer, int) or isinstance(answer, bool) or answer < 0:
            return not_yet(f"{answer!r} is no time-out; give whole microseconds, 0 or more.")
        try:
            # At the very microsecond of a boundary either order of two events is right, so the
            # two microseconds beside it decide.
            comes = ending_of(get.play(answer + 1, latency_us)) in good
            sooner = answer > 0 and ending_of(get.play(answer - 1, latency_us)) in good
        except ParameterError as error:
            return not_yet(f"{error}.")
        if not comes:
            told_now = explained(get.play(answer, latency_us))
            said.append(f"{answer} µs is too short for {name}. {told_now}")
        elif sooner:
            said.append(f"{answer} µs is enough for {name}, but so is a shorter one.")
    answers = f"{in_time}, {at_all}"
    if said:
        return told(answers, False, " ".join(said))
    text = (
        f"{in_time} µs and {at_all} µs: a microsecond before it the ending is another. Between"
        f" them the frames cross, for as long as a round trip ({latency_us + latency_us} µs) and"
        " the queue's handing out take."
    )
    return told(answers, True, text)


def _flows(played: Run, peer: str, event: str = SENT) -> list[Row]:
    return measure.frames(played.rows, "flow", event=event, from_peer=peer, after=played.start_seq)


def _credit(row: Row) -> int:
    return int((row.frame or {}).get("link_credit") or 0)


def _stops(row: Row) -> bool:
    frame = row.frame or {}
    return frame.get("link_credit") == 0 and bool(frame.get("echo"))


def _given_back(played: Run, request: Row) -> int:
    """By how much the sender's answers to a drain moved delivery-count on."""
    moved = 0
    for row in _flows(played, BROKER):
        if row.seq > request.seq and (row.frame or {}).get("drain"):
            before = measure.counter(played.rows, BROKER, "delivery_count", upto=row.seq - 1)
            after = measure.counter(played.rows, BROKER, "delivery_count", upto=row.seq)
            moved += serial.diff(after, before)
    return moved


__all__ = ["gave_back", "paused", "shortest_timeouts", "urgent_first"]
