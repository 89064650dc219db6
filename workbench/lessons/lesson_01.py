"""Lesson 01: what a run says about each of its questions, and its checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from workbench.exercises import measure
from workbench.exercises.compare import Comparison, compare_rules
from workbench.exercises.measure import arrival
from workbench.notebook import WrongValueError
from workbench.presets import Preset
from workbench.scenarios.beside import Measured, counted, decided
from workbench.scenarios.credit import TOP_UP_AT_HALF
from workbench.scenarios.declare import ParameterError
from workbench.scenarios.run import Run, run
from workbench.trace.brakes import LINK_CREDIT
from workbench.trace.given import takes
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, Row

from .declare import Case, Declared, Facts, Found, case, facts, largest

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
predict, check, say = lesson.predict, lesson.check, lesson.say


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
        last=measure.step(run.rows[-1]),
        wrong={"the queue pushes": ready, "one comes on trial": 1},
        beside=counted(run, say("sent"), measure.handed_over(run.rows)),
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
        beside=counted(
            branch,
            say("transfers"),
            measure.handed_over(branch.rows, after=run.start_seq),
        ),
        shown=branch,
        seen=measure.last_frame(branch.rows, "transfer"),
    )


# No grant of 1 or less, which misconceptions answer.
after_grant.again(lambda form: {"run": _queue(2 * form + 7), "link_credit": 2 + form})


@takes
def granted_again(run: Run, grants: Sequence[int], publish: int) -> Run:
    """The run in which the receiver grants several times before there is anything to send."""
    for link_credit in grants:
        run = run.then("grant", link_credit=link_credit)
    return run.then("publish", count=publish)


@lesson.asks
def granted_twice(run: Run, link_credit: int, publish: int) -> Facts:
    """Do two grants add up?"""
    assert not _ready(run)
    branch = granted_again(run, (link_credit, link_credit), publish)
    sent = measure.messages(branch.rows)
    flows = measure.frames(branch.rows, "flow", event=RECEIVED, from_peer=CLIENT)
    held = [measure.credit(branch.rows, BROKER, upto=row.seq) for row in flows]
    return facts(
        sent,
        held=lesson.joined("then", held),
        left=publish - sent,
        wrong={"adds": 2 * link_credit, "everything published": publish},
        beside=counted(branch, say("sent"), measure.handed_over(branch.rows)),
        shown=branch,
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
    return branch, late, flying, measure.step(flow)


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
        beside=counted(
            branch, say("late"), measure.handed_over(branch.rows, event=RECEIVED, after=at)
        ),
        shown=branch,
        seen=measure.last_frame(branch.rows, "transfer", event=RECEIVED),
    )


@lesson.asks
def which_after_stop(run: Run, at: int) -> Found:
    """The same without a picture beside it: which of them is the point, and not how many."""
    yield {"arrived": measure.messages(run.rows, event=RECEIVED, upto=at)}
    branch, late, flying, reached = _stopped(run, at)
    answer = "none" if not late else "flying" if late <= flying else "more"
    return facts(
        answer,
        late=late,
        flying=flying,
        more=late - flying,
        reached=reached,
        wrong={"takes back": "none", "only what is in flight": "flying"},
        beside=decided(
            branch,
            say("late"),
            measure.last_frame(branch.rows, "transfer", event=RECEIVED, after=at),
        ),
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
        largest({one.rule: one.rate for one in ranked}),
        order=" > ".join(f"{one.rule} {one.rate:,.0f}/s" for one in ranked),
        worst=worst.rule,
        worst_held=worst.held,
        held=best.held,
        wrong={
            "waiting costs nothing": [
                facts(one.rule, rule=one.rule, held=one.held)
                for one in ranked[1:]
                if one.rule != TOP_UP_AT_HALF
            ]
        },
        beside=Measured(unit=say("rate"), heights={one.rule: one.rate for one in ranked}),
    )


@lesson.asks
def after_acknowledging(run: Run) -> Found:
    """Does acknowledging bring more messages?"""
    unsettled = measure.messages(run.rows, event=RECEIVED)
    yield {"unsettled": unsettled}
    before = measure.credit(run.rows, BROKER)
    assert not before
    assert measure.counter(run.rows, BROKER, "available")
    branch = run.then("acknowledge")
    settled = measure.frames(branch.rows, "disposition", event=RECEIVED, after=run.last)
    return facts(
        measure.messages(branch.rows, after=run.last),
        settled=len(settled),
        before=before,
        after=measure.credit(branch.rows, BROKER),
        wrong={"acknowledging grants": unsettled, "acknowledging renews one": 1},
        beside=counted(
            branch,
            say("acknowledged"),
            measure.handed_over(branch.rows, after=run.last),
        ),
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
    twice = once.act(flow, "flow", count=count_each)
    carried = measure.grants(twice.rows)
    return facts(
        carried[-1],
        carried=lesson.joined("and", carried),
        wrong={"sets": count_each},
        beside=decided(
            twice,
            say("second"),
            measure.last_frame(twice.rows, "flow", from_peer=CLIENT),
        ),
        seen=once.rows[flow],
    )


@lesson.asks
def rabbit_flows(rows: Sequence[Row]) -> Found:
    """What did a real broker do about two equal flows?"""
    pair = same_flows(rows)
    first, second = (measure.step(row) for row in pair)
    said = measure.numbers(pair[0], "link_credit", "delivery_count")
    yield {"credit": said["link_credit"], "first": first, "second": second}
    following = _until_next_grant(rows, pair[-1])
    return facts(
        measure.messages(following, event=OBSERVED),
        base=said["delivery_count"],
        wrong={"adds": 2 * said["link_credit"]},
        seen=following[-1],
    )


@takes
def same_flows(rows: Sequence[Row]) -> tuple[Row, Row]:
    """The first two grants of a capture that follow each other and say the same.

    Raises:
        WrongValueError: if there are none.
    """
    for first, second in pairwise(measure.observed_grants(rows)):
        same = _said(first) == _said(second)
        if same and not measure.messages(rows, event=OBSERVED, after=first.seq, upto=second.seq):
            return first, second
    raise WrongValueError(say("no-equal-flows"))


def _said(row: Row) -> dict[str, Any]:
    return measure.numbers(row, "handle", "delivery_count", "link_credit")


def _until_next_grant(rows: Sequence[Row], grant: Row) -> list[Row]:
    later = [row.seq for row in measure.observed_grants(rows) if row.seq > grant.seq]
    end = later[0] if later else rows[-1].seq
    return [row for row in rows if grant.seq < row.seq <= end]


# -- what is checked


def _flying(desk: Any) -> Case:
    """A hint with the learner's own run: when is something on the wire?"""
    sent = measure.frames(Run.shown_by(desk).rows, "transfer", from_peer=BROKER)
    return case("flying", first=measure.step(sent[0])) if sent else case("nothing")


@lesson.checks(scenarios=("credit",), acted=True, hints=(_flying,))
def late_arrivals(desk: Any) -> Case:
    """Has the learner made a run in which messages arrive although the receiver's credit is 0?

    Args:
        desk: a stage, or a run.
    """
    played = Run.shown_by(desk)
    flows = measure.frames(played.rows, "flow", from_peer=CLIENT)
    stops = [row for row in flows if (row.frame or {}).get("link_credit") == 0]
    grants = [row for row in flows if (row.frame or {}).get("link_credit")]
    listed = ", ".join(map(str, measure.grants(played.rows))) or say("none")
    fault = case("no-stop", grants=listed)
    for stop in stops:
        # What comes after the next grant may have been sent because of it.
        grant = next((row for row in grants if row.seq > stop.seq), None)
        upto = grant.seq if grant else None
        late = measure.messages(played.rows, event=RECEIVED, after=stop.seq, upto=upto)
        flying = measure.in_flight(played.rows, "transfer", stop.seq)
        step = measure.step(stop)
        if late:
            return case("right", step=step, late=late)
        if grant:
            again = measure.step(grant)
            fault = case("granted-again", step=step, flying=flying, again=again)
        else:
            fault = case("nothing-late", step=step, flying=flying)
    return fault


def _at_most(desk: Any, link_credit: int) -> Case:
    """A hint: all of them, so many at a time."""
    return case("ready", ready=_ready(Run.shown_by(desk)))


@lesson.checks(scenarios=("credit",), acted=True, hints=(_at_most,))
def never_more_than(desk: Any, link_credit: int) -> Case:
    """Has the learner fetched every message without ever granting more than so many?

    Args:
        desk: a stage, or a run.
        link_credit: the most that the sender may hold.
    """
    played = Run.shown_by(desk)
    held = [
        (row.ledger["link_credit"], -row.seq)
        for row in played.rows
        if row.vantage == BROKER and row.ledger and "link_credit" in row.ledger
    ]
    most, at = max(held, default=(0, 0))
    arrived = measure.messages(played.rows, event=RECEIVED)
    left = measure.counter(played.rows, BROKER, "available") or 0
    if most > link_credit:
        return case("too-much", step=measure.step(played.rows[-at]), most=most)
    if left or not arrived:
        return case("left", arrived=arrived, left=left)
    return case("right", arrived=arrived, flows=len(measure.grants(played.rows)), most=most)


def _topped_up(n: Any, latency_us: int, messages: int, preset: Preset | str) -> Run:
    """A queue whose receiver grants N, and again when half of it is left."""
    given = {"policy": TOP_UP_AT_HALF, "n": n, "latency_us": latency_us, "messages": messages}
    return run("credit", preset, given)


def _way(answer: Any, *, latency_us: int, messages: int, preset: Preset | str = "spec") -> Case:
    """A hint: how long the sender waits for a grant, measured with N of one message."""
    rows = _topped_up(1, latency_us, messages, preset).rows
    stops = measure.starvations(rows, LINK_CREDIT)
    sent = measure.frames(rows, "transfer", from_peer=BROKER)
    later = [row.t_us for row in sent if stops and row.seq > stops[0].seq]
    if not later:
        return case("never-waits")
    return case("waits", pause=measure.milliseconds(later[0] - stops[0].t_us))


@lesson.checks(hints=(_way,))
def smallest_n(
    answer: Any, *, latency_us: int, messages: int, preset: Preset | str = "spec"
) -> Case:
    """Is that the smallest N with which top-up-at-half never lets the sender run out of credit?

    Args:
        answer: N, a whole number of 1 or more; `...` if there is none yet.
        latency_us: how long a frame is under way in each direction.
        messages: ready in the queue.
        preset: every other number.
    """

    def stops(n: int) -> list[int]:
        """When the sender ran out of credit, as a stage counts time."""
        played = _topped_up(n, latency_us, messages, preset)
        starved = measure.starvations(played.rows, LINK_CREDIT)
        return [row.t_us - played.start_us for row in starved]

    try:
        starved = stops(answer)
    except ParameterError as error:
        return case("illegal", why=error)
    if starved:
        first = measure.milliseconds(starved[0])
        return case("starved", times=len(starved), first=first)
    if answer == 1:
        return case("one")
    less = answer - 1
    times = len(stops(less))
    return case("smallest", less=less, times=times) if times else case("larger", less=less)


# -- what the notebook needs besides


@takes
def opening(played: Run, duration_us: int) -> Run:
    """A run, cut so many microseconds after its set-up: for charts of equal length."""
    end_us = played.start_us + duration_us
    rows = sum(row.t_us <= end_us for row in played.rows)
    told = (played.scenario, played.preset, played.parameters, played.actions, played.seed)
    return run(*told, max_rows=rows)


@takes
def real_receiver(parameters: Mapping[str, Any] | None = None) -> Run | None:
    """The queue of this lesson with a python-qpid-proton receiver on it.

    Returns:
        None, after one line that says why, where that library is not installed.
    """
    from workbench.peers.proton_peer import ProtonMissingError

    try:
        return run("credit", parameters={**(parameters or {}), "client": "proton"})
    except ProtonMissingError as error:
        print(say("skipped", why=error))  # noqa: T201  the lesson's own line, in its cell
        return None
