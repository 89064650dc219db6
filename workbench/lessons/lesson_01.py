"""Lesson 01: what a run says about each of its questions, and its checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from workbench.exercises import measure
from workbench.exercises.checks import UNANSWERED, UNTOUCHED, not_yet, run_of, told
from workbench.exercises.compare import Comparison, compare_rules
from workbench.exercises.measure import arrival, many
from workbench.exercises.question import Verdict
from workbench.presets import Preset
from workbench.scenarios.credit import TOP_UP_AT_HALF
from workbench.scenarios.declare import ParameterError
from workbench.scenarios.run import Run, run
from workbench.trace.brakes import LINK_CREDIT
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, Row
from workbench.trace.words import count

from .declare import Declared, Facts, Found, facts

__all__ = [
    "arrival",
    "check",
    "compare_rules",
    "granted_again",
    "opening",
    "predict",
    "real_receiver",
    "same_flows",
]

lesson = Declared("01")
predict, check = lesson.predict, lesson.check


def _queue(messages: int) -> Run:
    return run("credit", parameters={"messages": messages})


def _ready(played: Run) -> int:
    return int(played.parameters["messages"] or 0)


# -- what is asked


@lesson.asks
def before_any_flow(run: Run) -> Found:
    """How many messages come before the receiver has granted anything?"""
    ready = _ready(run)
    yield {"ready": ready}
    return facts(
        measure.messages(run.rows),
        sender=measure.credit(run.rows, BROKER),
        receiver=measure.credit(run.rows, CLIENT),
        last=measure.step(run.last),
        wrong={"the queue pushes": ready, "one comes on trial": 1},
        seen=run.rows[run.start_seq],
    )


before_any_flow.again(lambda form: {"run": _queue(2 + form)})


@lesson.asks
def after_grant(run: Run, link_credit: int) -> Found:
    """How many transfers follow one flow?"""
    yield {"ready": _ready(run)}
    branch = run.act(run.start_seq, "grant", link_credit=link_credit)
    sent = measure.messages(branch.rows, after=run.start_seq)
    left = measure.counter(branch.rows, BROKER, "available") or 0
    return facts(
        sent,
        carried=measure.grants(branch.rows)[-1],
        credit=measure.credit(branch.rows, BROKER),
        left=left,
        wrong={"a flow opens the tap": sent + left, "one flow, one message": 1},
        seen=measure.last_frame(branch.rows, "transfer"),
    )


# No grant of 1 or less, which misconceptions answer.
after_grant.again(lambda form: {"run": _queue(2 * form + 7), "link_credit": 2 + form})


def granted_again(run: Run, grants: Sequence[int], publish: int) -> Run:
    """The run in which the receiver grants several times before there is anything to send."""
    for link_credit in grants:
        run = run.then("grant", link_credit=link_credit)
    return run.then("publish", count=publish)


@lesson.asks
def granted_twice(run: Run, link_credit: int, publish: int) -> Facts:
    """Do two grants add up?"""
    branch = granted_again(run, (link_credit, link_credit), publish)
    sent = measure.messages(branch.rows)
    flows = measure.frames(branch.rows, "flow", event=RECEIVED, from_peer=CLIENT)
    held = [measure.credit(branch.rows, BROKER, upto=row.seq) for row in flows]
    return facts(
        sent,
        held=", then ".join(map(str, held)),
        left=publish - sent,
        wrong={"adds": 2 * link_credit, "everything published": publish},
        seen=flows[-1],
    )


granted_twice.again(
    lambda form: {"run": _queue(0), "link_credit": 2 + form, "publish": 3 * (2 + form)}
)


def _stopped(run: Run, at: int) -> tuple[Run, int, int, int]:
    """The run in which credit was set to 0: what came, what was on the wire, when it was heard."""
    branch = run.act(at, "grant", link_credit=0)
    late = measure.messages(branch.rows, event=RECEIVED, after=at)
    flying = measure.in_flight(branch.rows, "transfer", at)
    flow = measure.frames(branch.rows, "flow", event=RECEIVED, from_peer=CLIENT, after=at)[-1]
    return branch, late, flying, measure.step(flow.seq)


@lesson.asks
def after_stop(run: Run, at: int) -> Found:
    """How many messages still arrive after the receiver has set its credit to zero?"""
    arrived = measure.messages(run.rows, event=RECEIVED, upto=at)
    yield {"arrived": arrived}
    branch, late, flying, reached = _stopped(run, at)
    return facts(
        late,
        flying=flying,
        more=late - flying,
        reached=reached,
        wrong={
            "takes back": 0,
            "only what is in flight": flying,
            "a grant stands": max(measure.grants(run.rows)) - arrived,
        },
        seen=measure.last_frame(branch.rows, "transfer", event=RECEIVED),
    )


@lesson.asks
def which_after_stop(run: Run, at: int) -> Found:
    """The same without a stepper beside it: which of them is the point, and not how many."""
    yield {"arrived": measure.messages(run.rows, event=RECEIVED, upto=at)}
    _, late, flying, reached = _stopped(run, at)
    answer = "none" if not late else "flying" if late <= flying else "more"
    return facts(
        answer,
        late=late,
        flying=flying,
        more=late - flying,
        reached=reached,
        wrong={"takes back": "none", "only what is in flight": "flying"},
    )


@which_after_stop.again
def _busy(form: int) -> dict[str, Any]:
    queue = _queue(60)
    busy = queue.act(queue.start_seq, "grant", link_credit=40 + form)
    return {"run": busy, "at": arrival(busy, 2 + form // 4)}


@lesson.asks
def fastest_rule(comparison: Comparison) -> Found:
    """Which rule fetches messages fastest?"""
    yield {"choices": tuple(comparison.runs)}
    ranked = sorted(comparison.results, key=lambda one: one.rate, reverse=True)
    best, worst = ranked[0], ranked[-1]
    return facts(
        best.rule,
        order=" > ".join(f"{one.rule} {one.rate:,.0f}/s" for one in ranked),
        worst=worst.rule,
        worst_held=worst.held,
        held=best.held,
        wrong={
            "waiting costs nothing": [
                facts(one.rule, rule=one.rule, held=one.held) for one in ranked[1:]
            ]
        },
    )


@lesson.asks
def after_acknowledging(run: Run) -> Found:
    """Does acknowledging bring more messages?"""
    unsettled = measure.messages(run.rows, event=RECEIVED)
    yield {"unsettled": unsettled}
    branch = run.then("acknowledge")
    settled = measure.frames(branch.rows, "disposition", event=RECEIVED, after=run.last)
    return facts(
        measure.messages(branch.rows, after=run.last),
        settled=len(settled),
        before=measure.credit(branch.rows, BROKER, upto=run.last),
        after=measure.credit(branch.rows, BROKER),
        wrong={"acknowledging grants": unsettled, "acknowledging renews one": 1},
        seen=settled[-1],
    )


@after_acknowledging.again
def _granted(form: int) -> dict[str, Any]:
    queue = _queue(2 * (2 + form))
    return {"run": queue.act(queue.start_seq, "grant", link_credit=2 + form)}


@lesson.asks
def proton_again(run: Run, count_each: int) -> Facts:
    """What does a real Proton receiver send when `receiver.flow(n)` is called twice?"""
    once = run.act(run.start_seq, "flow", count=count_each)
    flow = measure.seq_of(once.rows, "flow", event="sent")
    carried = measure.grants(once.act(flow, "flow", count=count_each).rows)
    return facts(
        carried[-1],
        carried=" and ".join(map(str, carried)),
        wrong={"sets": count_each},
        seen=once.rows[flow],
    )


@lesson.asks
def rabbit_flows(rows: Sequence[Row]) -> Found:
    """What did a real broker do about two equal flows?"""
    pair = same_flows(rows)
    first, second = (measure.step(row.seq) for row in pair)
    said = measure.numbers(pair[0], "link_credit", "delivery_count")
    yield {"credit": said["link_credit"], "first": first, "second": second}
    following = _until_next_grant(rows, pair[-1])
    return facts(
        measure.messages(following, event=OBSERVED),
        base=said["delivery_count"],
        wrong={"adds": 2 * said["link_credit"]},
        seen=following[-1],
    )


def same_flows(rows: Sequence[Row]) -> tuple[Row, Row]:
    """The first two grants of a capture that follow each other and say the same.

    Raises:
        ValueError: if there are none.
    """
    for first, second in pairwise(measure.observed_grants(rows)):
        same = _said(first) == _said(second)
        if same and not measure.messages(rows, event=OBSERVED, after=first.seq, upto=second.seq):
            return first, second
    raise ValueError("no two equal flows follow each other in this trace")


def _said(row: Row) -> dict[str, Any]:
    return measure.numbers(row, "handle", "delivery_count", "link_credit")


def _until_next_grant(rows: Sequence[Row], grant: Row) -> list[Row]:
    later = [row.seq for row in measure.observed_grants(rows) if row.seq > grant.seq]
    end = later[0] if later else rows[-1].seq
    return [row for row in rows if grant.seq < row.seq <= end]


# -- what is checked


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


@lesson.checks(scenarios=("credit",), hints=(_flying,))
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


def _at_most(desk: Any, link_credit: int) -> str:
    """A hint: all of them, so many at a time."""
    return (
        f"{many(_ready(run_of(desk)))} with at most {link_credit} at a time: grant, step to the end"
        " of the run, grant again. A rule can do it for you."
    )


@lesson.checks(scenarios=("credit",), hints=(_at_most,))
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


@lesson.checks(hints=(_way,))
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


# -- what the notebook needs besides


def opening(played: Run, duration_us: int) -> list[Row]:
    """The rows of a run up to so many microseconds after its set-up: for charts of equal length."""
    end_us = played.rows[played.start_seq].t_us + duration_us
    return [row for row in played.rows if row.t_us <= end_us]


def real_receiver(parameters: Mapping[str, Any] | None = None) -> Run | None:
    """The queue of this lesson with a python-qpid-proton receiver on it.

    Returns:
        None, after one line that says why, where that library is not installed.
    """
    from workbench.peers.proton_peer import ProtonMissingError

    try:
        return run("credit", parameters={**(parameters or {}), "client": "proton"})
    except ProtonMissingError as error:
        print(f"Skipped: {error}")  # noqa: T201  the lesson's own line, in its cell
        return None
