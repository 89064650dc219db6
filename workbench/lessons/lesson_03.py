"""Lesson 03: what a run says about each of its questions, and its checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from workbench import serial
from workbench.exercises import measure
from workbench.exercises.checks import is_whole
from workbench.exercises.measure import arrival, number_in
from workbench.exercises.table import Table, table_of
from workbench.exercises.timeout import (
    TimedGet,
    ending_of,
    explained,
    named,
    timed_get,
)
from workbench.notebook import WrongValueError
from workbench.peers.getter import Ending
from workbench.presets import Preset
from workbench.scenarios.beside import counted, decided
from workbench.scenarios.declare import ParameterError
from workbench.scenarios.handover import Seen, seen
from workbench.scenarios.run import Run, run
from workbench.scenarios.two_queues import BY_HAND, FIRST, QUEUES, SECOND
from workbench.trace.given import takes
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT, Row

from .declare import Case, Declared, Facts, Found, case, facts, reached

__all__ = [
    "arrival",
    "check",
    "drain_cases",
    "drained",
    "handovers",
    "outdated",
    "predict",
    "rabbit_drain",
    "rabbit_stop",
    "stopped",
    "timed_get",
]

lesson = Declared("03")
predict, check, say = lesson.predict, lesson.check, lesson.say


# -- what is read off a run


@takes
def drained(played: Run, link_credit: int) -> Run:
    """The run in which the receiver grants so much and sets drain at the same moment."""
    granted = played.act(played.start_seq, "grant", link_credit=link_credit)
    flow = measure.frames(granted.rows, "flow", from_peer=CLIENT, after=played.start_seq)[0]
    return granted.act(flow.seq, "drain")


@takes
def stopped(played: Run, at: int) -> Run:
    """The run in which the receiver stops the link after row `at`: link-credit 0 and echo."""
    return played.act(at, "stop")


@takes
def outdated(played: Run, publish: int) -> Run:
    """The run in which messages are published while the answer to an echo is on the wire.

    It ends where the receiver has read the answer: it has not been told of them.
    """
    asked = played.then("echo")
    answer = measure.frames(asked.rows, "flow", from_peer=BROKER, after=played.last)[0]
    return asked.act(answer.seq, "publish", count=publish)


def _message_numbers(payloads: Iterable[bytes]) -> list[int]:
    """Which messages of a run these are: each body begins with `message` and its number."""
    found = (re.search(rb"message (\d+)", payload) for payload in payloads)
    return [int(match[1]) for match in found if match is not None]


def _flows(played: Run, peer: str, event: str = SENT) -> list[Row]:
    """A peer's flows since the links were attached."""
    return measure.frames(played.rows, "flow", event=event, from_peer=peer, after=played.start_seq)


def _next_grant(played: Run, row: Row) -> Row | None:
    """The receiver's next flow that raises its credit; an echo or a drain repeats it."""
    for flow in _flows(played, CLIENT):
        held = measure.credit(played.rows, CLIENT, upto=flow.seq - 1) or 0
        if flow.seq > row.seq and number_in(flow, "link_credit") > held:
            return flow
    return None


@takes
def rabbit_drain(rows: Sequence[Row]) -> tuple[Row, list[Row]]:
    """The first drain of a capture that finds messages, but too few: request, and what follows.

    The rows that follow end before the client's next flow on that connection.

    Raises:
        WrongValueError: if there is none.
    """
    flows = measure.frames(rows, "flow", event=OBSERVED, from_peer=CLIENT)
    for request in flows:
        if not _drains(request):
            continue
        here = [row for row in rows if row.connection == request.connection]
        later = [flow.seq for flow in flows if flow.seq > request.seq and flow in here]
        end = later[0] if later else rows[-1].seq + 1
        following = [row for row in here if request.seq < row.seq < end]
        if 0 < measure.messages(following, event=OBSERVED) < number_in(request, "link_credit"):
            return request, following
    raise WrongValueError(say("no-drain"))


def rabbit_stop(rows: Sequence[Row]) -> Row:
    """The first flow of a capture that stops a link: link-credit 0 with echo, after messages.

    Raises:
        WrongValueError: if there is none.
    """
    for row in measure.observed_grants(rows):
        if _stops(row) and number_in(row, "delivery_count"):
            return row
    raise WrongValueError(say("no-stop"))


def _drains(row: Row) -> bool:
    return bool((row.frame or {}).get("drain"))


def _stops(row: Row) -> bool:
    frame = row.frame or {}
    return frame.get("link_credit") == 0 and bool(frame.get("echo"))


class Handover:
    """What happened in a run of the scenario `handover` in which the first consumer leaves.

    Attributes:
        leaver: who had the queue first.
        heir: who had it next.
        of_leaver, of_next: the messages that came to each, in order.
        again: how many came a second time.
    """

    def __init__(self, played: Run) -> None:
        self.played = played
        self.leaver, self.heir = map(str, list(played.world.peers)[:2])
        arrivals = seen(played)
        self.of_leaver = [one for one in arrivals if one.consumer == self.leaver]
        self.of_next = [one for one in arrivals if one.consumer != self.leaver]
        self.again = sum(one.again for one in arrivals)

    @property
    def arrived_before_leaving(self) -> int:
        """How many had come to the first consumer when it began to leave."""
        rows = self.played.rows
        stops = [
            row.seq
            for kind in ("flow", "detach")
            for row in measure.frames(rows, kind, from_peer=CLIENT, after=self.played.start_seq)
            if row.vantage == f"{CLIENT}:{self.leaver}" and not number_in(row, "link_credit")
        ]
        end = min(stops, default=rows[-1].seq)
        return sum(one.seq <= end for one in self.of_leaver)

    @property
    def in_order(self) -> bool:
        """Whether everybody who was served was served in the queue's order."""
        parts = [[one.message for one in part] for part in (self.of_leaver, self.of_next)]
        return all(part == sorted(part) for part in parts)


def _larger_grant(form: int) -> dict[str, Any]:
    """A queue, and a grant that is larger than what is ready."""
    ready = 2 + form
    given = {"messages": ready, "initial_delivery_count": 7 * ready + 1}
    return {"run": run("credit", parameters=given), "link_credit": 2 * ready + 3}


# -- what is asked


@lesson.asks
def silence(run: Run, link_credit: int) -> Found:
    """What does an empty queue say to a grant?"""
    yield {"ready": int(run.parameters["messages"] or 0)}
    start = run.start_seq
    branch = run.act(start, "grant", link_credit=link_credit)
    flows = measure.frames(branch.rows, "flow", from_peer=BROKER, after=start)
    sent = measure.frames(branch.rows, "transfer", event=SENT, from_peer=BROKER, after=start)
    assert sent or not run.parameters["messages"]
    return facts(
        len(flows) + len(sent),
        case="sent" if sent else "silent",
        held=measure.credit(branch.rows, BROKER),
        wrong={"a request is answered": 1},
        beside=counted(
            branch,
            say("answers"),
            sorted([*flows, *sent], key=lambda row: row.seq),
        ),
    )


@lesson.asks
def drain_brings(run: Run, link_credit: int) -> Found:
    """How many messages does a drain bring?"""
    yield {"ready": int(run.parameters["messages"] or 0)}
    start = run.start_seq
    branch = drained(run, link_credit)
    sent = measure.messages(branch.rows, after=start)
    answers = measure.frames(branch.rows, "flow", from_peer=BROKER, after=start)
    return facts(
        sent,
        case="answered" if answers else "silent",
        sent=sent,
        count=number_in(answers[-1], "delivery_count") if answers else None,
        left=number_in(answers[-1], "link_credit") if answers else None,
        wrong={"drain is pause": 0, "drain waits until credit is used": link_credit},
        shown=branch,
        seen=measure.last_frame(branch.rows, "flow", from_peer=BROKER, after=start),
    )


drain_brings.again(_larger_grant)


@lesson.asks
def drain_counts(run: Run, link_credit: int) -> Found:
    """Where does delivery-count stand after a drain?"""
    before = measure.counter(run.rows, BROKER, "delivery_count")
    yield {"before": before, "ready": int(run.parameters["messages"] or 0)}
    start = run.start_seq
    branch = drained(run, link_credit)
    sent = measure.messages(branch.rows, after=start)
    return facts(
        measure.counter(branch.rows, BROKER, "delivery_count"),
        case="unused" if sent < link_credit else "used",
        sent=sent,
        left=measure.credit(branch.rows, BROKER),
        wrong={"counts messages only": before + sent, "stays": before, "starts anew": 0},
        beside=decided(
            branch,
            say("count"),
            measure.last_frame(branch.rows, "flow", from_peer=BROKER, after=start),
        ),
        seen=measure.last_frame(branch.rows, "flow", from_peer=BROKER, after=start),
    )


drain_counts.again(_larger_grant)


@lesson.asks
def after_drain(run: Run, publish: int) -> Facts:
    """Does a drained link send what is published later?"""
    branch = run.then("publish", count=publish)
    granted = max(measure.grants(branch.rows), default=0)
    unused = granted - measure.messages(branch.rows, upto=run.last)
    return facts(
        measure.messages(branch.rows, after=run.last),
        held=measure.credit(branch.rows, BROKER),
        unused=unused,
        wrong={"drain is pause": min(publish, unused), "drain is a mode": publish},
        beside=counted(
            branch,
            say("after"),
            measure.handed_over(branch.rows, after=run.last),
        ),
        shown=branch,
    )


@after_drain.again
def _drained(form: int) -> dict[str, Any]:
    given = _larger_grant(form)
    return {"run": drained(given["run"], given["link_credit"]), "publish": given["link_credit"] + 2}


@lesson.asks
def real_drain(rows: Sequence[Row]) -> Found:
    """What did a real broker answer to a drain that finds too few messages?"""
    request, following = rabbit_drain(rows)
    base, credit = number_in(request, "delivery_count"), number_in(request, "link_credit")
    yield {"step": measure.step(request), "base": base, "credit": credit}
    answer = measure.frames(following, "flow", event=OBSERVED, from_peer=BROKER)[-1]
    sent = measure.messages(following, event=OBSERVED)
    return facts(
        number_in(answer, "delivery_count"),
        sent=sent,
        answered=measure.step(answer),
        left=number_in(answer, "link_credit"),
        wrong={"counts messages only": base + sent, "counts credit only": credit},
        beside=decided(rows, say("answered"), answer),
        seen=answer,
    )


@lesson.asks
def crossing(get: TimedGet, timeout_us: int, latency_us: int) -> Found:
    """What comes when the message crosses the drain?"""
    played = get.play(timeout_us, latency_us)
    start = played.start_seq
    came = measure.messages(played.rows, event=RECEIVED, after=start)
    drains = measure.frames(played.rows, "flow", event=SENT, from_peer=CLIENT, after=start)
    drained = any(row.fields.get("drain") for row in drains)
    met = ("crossed" if drained else "in-time") if came else "too-late"
    yield {"when": say(f"meets.{met}")}
    flows = measure.frames(played.rows, "flow", event=RECEIVED, from_peer=BROKER, after=start)
    left = measure.credit(played.rows, CLIENT)
    with_message = "both" if left else "message"
    without = "flow" if flows else "neither"
    return facts(
        with_message if came else without,
        case="crossed" if met == "crossed" else "other",
        ending=explained(played),
        wrong={
            "a time-out is the end": "flow",
            "drain takes back": "neither",
            "drain grants": "both",
        }
        if drained
        else {},
        beside=decided(played, say("comes")),
        shown=played,
        seen=played.rows[-1],
    )


@lesson.asks
def first_of_next(played: Run) -> Found:
    """Which message does the next consumer get first?"""
    story = Handover(played)
    how = str(played.parameters["way"])
    yield {
        "leaver": story.leaver,
        "heir": story.heir,
        "arrived": story.arrived_before_leaving,
        "maximum": int(played.parameters["messages"] or 0) - 1,
        "how": say(f"leaves.{how}"),
    }
    return facts(
        story.of_next[0].message,
        case=how,
        held=len(story.of_leaver),
        again=story.again,
        wrong={
            "what was sent is done": len(story.of_leaver),
            "only what was in flight comes back": story.arrived_before_leaving,
        }
        if how == "outright"
        else {},
        beside=decided(played, say("first")),
        seen=played.rows[-1],
    )


@lesson.asks
def echo_brings(run: Run) -> Found:
    """How many messages follow an echo?"""
    arrived = measure.messages(run.rows, event=RECEIVED)
    yield {"arrived": arrived}
    assert not measure.credit(run.rows, BROKER)
    assert measure.counter(run.rows, BROKER, "available")
    branch = run.then("echo")
    answers = measure.frames(branch.rows, "flow", from_peer=BROKER, after=run.last)
    return facts(
        measure.messages(branch.rows, after=run.last),
        answers=len(answers),
        credit=measure.credit(branch.rows, BROKER),
        told=number_in(answers[-1], "available") if answers else None,
        asked=sum(bool((row.frame or {}).get("echo")) for row in answers),
        wrong={
            "echo grants": arrived,
            "an answer is a message": 1,
            "echo empties the queue": measure.counter(branch.rows, BROKER, "available") or 0,
        },
        beside=counted(
            branch,
            say("echo"),
            measure.handed_over(branch.rows, after=run.last),
        ),
    )


@echo_brings.again
def _used_up(form: int) -> dict[str, Any]:
    queue = run("credit", parameters={"messages": 2 * form + 7})
    return {"run": queue.act(queue.start_seq, "grant", link_credit=2 + form)}


@lesson.asks
def after_echo(run: Run, at: int) -> Found:
    """How many messages come after the answer to a stop?"""
    yield {"arrived": measure.messages(run.rows, event=RECEIVED, upto=at)}
    branch = stopped(run, at)
    answer = measure.frames(branch.rows, "flow", event=RECEIVED, from_peer=BROKER, after=at)[-1]
    late = measure.messages(branch.rows, event=RECEIVED, after=at, upto=answer.seq)
    return facts(
        measure.messages(branch.rows, event=RECEIVED, after=answer.seq),
        late=late,
        answered=measure.step(answer),
        wrong={
            "late is late": late,
            "an answer overtakes": measure.in_flight(branch.rows, "transfer", at),
        },
        beside=counted(
            branch,
            say("later"),
            measure.handed_over(branch.rows, event=RECEIVED, after=answer.seq),
        ),
        seen=answer,
    )


@lesson.asks
def stale(run: Run) -> Found:
    """Is `available` what there is?"""
    answers = measure.frames(run.rows, "flow", event=RECEIVED, from_peer=BROKER)
    acts = [action.arguments["count"] for action in run.actions if action.name == "publish"]
    yield {
        "said": number_in(answers[-1], "available"),
        "extra": sum(int(count or 0) for count in acts),
    }
    assert not measure.credit(run.rows, BROKER)  # with some, what is published is sent
    told = measure.counter(run.rows, CLIENT, "available")
    return facts(
        measure.counter(run.rows, BROKER, "available"),
        told=told,
        wrong={"available is what is there": told},
        beside=decided(run, say("there")),
    )


# -- what is checked


@lesson.checks(scenarios=("credit", "asking"), acted=True)
def gave_back(desk: Any) -> Case:
    """Has the learner made a drain that brings some messages and gives some credit back?

    Args:
        desk: a stage, or a run.
    """
    played = Run.shown_by(desk)
    fault = case("no-drain")
    for request in filter(_drains, _flows(played, CLIENT)):
        step, credit = measure.step(request), number_in(request, "link_credit")
        # What the receiver hears until it grants again: so much it knows, whoever sent it when.
        grant = _next_grant(played, request)
        end = grant.seq if grant else None
        came = measure.messages(played.rows, event=RECEIVED, after=request.seq, upto=end)
        before = measure.counter(played.rows, CLIENT, "delivery_count", upto=request.seq)
        after = measure.counter(played.rows, CLIENT, "delivery_count", upto=end)
        moved = serial.diff(after, before)
        returned = moved - came
        if came and returned:
            return case("right", step=step, came=came, returned=returned, moved=moved)
        if credit:
            fault = case("one-sided", step=step, credit=credit, came=came, returned=returned)
        else:
            fault = case("no-credit", step=step)
    return fault


@lesson.checks(scenarios=("credit", "asking"), acted=True)
def paused(desk: Any) -> Case:
    """Has the learner paused cleanly, and then resumed and fetched the rest?

    Args:
        desk: a stage, or a run.
    """
    played = Run.shown_by(desk)
    fault = case("no-stop")
    for stop in filter(_stops, _flows(played, CLIENT)):
        found = _pause(played, stop)
        if found.name in ("in-order", "out-of-order"):
            return found
        fault = found
    return fault


def _pause(played: Run, stop: Row) -> Case:
    """What became of one stop: of the pause that it asks for, and of what came after it."""
    step = measure.step(stop)
    if not measure.messages(played.rows, event=RECEIVED, upto=stop.seq):
        return case("too-soon", step=step)
    if not measure.credit(played.rows, CLIENT, upto=stop.seq - 1):
        return case("used-up", step=step)
    grant = _next_grant(played, stop)
    if grant is None:
        return case("not-resumed", step=step)
    resume = measure.step(grant)
    # An echo that was asked before is answered first, and with the credit that there still was.
    answers = [
        row
        for row in _flows(played, BROKER, RECEIVED)
        if stop.seq < row.seq < grant.seq and (row.frame or {}).get("link_credit") == 0
    ]
    if not answers:
        return case("unanswered-stop", step=step, resume=resume)
    if not measure.counter(played.rows, BROKER, "available", upto=grant.seq):
        return case("nothing-left", step=step, resume=resume)
    if left := measure.counter(played.rows, BROKER, "available"):
        return case("left", left=left)
    numbers = _message_numbers(played.world.peers["consumer"].payloads)
    quiet = answers[0].seq
    return case(
        "in-order" if numbers == sorted(numbers) else "out-of-order",
        step=step,
        late=measure.messages(played.rows, event=RECEIVED, after=stop.seq, upto=quiet),
        quiet=measure.messages(played.rows, event=RECEIVED, after=quiet, upto=grant.seq),
        answered=measure.step(answers[0]),
        resume=resume,
        came=len(numbers),
    )


@lesson.checks(scenarios=("two_queues",))
def urgent_first(desk: Any) -> Case:
    """Did every message of the first queue come before any of the second, and then all of those?

    Args:
        desk: a stage with the scenario `two_queues`, or a run of it.
    """
    played = Run.shown_by(desk)
    if not played.actions and played.parameters.get("policy") == BY_HAND:
        return case("untouched")
    came = [
        str(row.link)
        for row in measure.frames(played.rows, "transfer", event=RECEIVED, from_peer=BROKER)
        if not (row.frame or {}).get("more")
    ]
    left = {name: played.world.broker.queues[name].queue.ready for name in QUEUES}
    counted = ", ".join(f"{came.count(name)} {name}" for name in QUEUES)
    waiting = " and ".join(f"{number} {name}" for name, number in left.items() if number)
    if waiting:
        return case("left", counted=counted, waiting=waiting)
    late = came[came.index(SECOND) :].count(FIRST) if SECOND in came else 0
    if late:
        return case("mixed", counted=counted, late=late, first=FIRST, second=SECOND)
    flows = len(measure.grants(played.rows))
    return case("right", counted=counted, flows=flows, first=FIRST, second=SECOND)


def _ways(in_time: Any, at_all: Any, get: TimedGet, *, latency_us: int) -> Case:
    """A hint: what takes time."""
    taking, giving = get.preset.queue_enqueue_us, get.preset.queue_deliver_us
    return case("ways", taking=taking, giving=giving)


@lesson.checks(hints=(_ways,))
def shortest_timeouts(
    in_time: Any, at_all: Any, get: TimedGet, *, latency_us: int
) -> Case | tuple[Case, ...]:
    """Are those the shortest time-outs with which the message comes in time, and at all?

    Args:
        in_time: microseconds; `...` if there is no answer yet.
        at_all: the same.
        get: the get.
        latency_us: of the wire, each way.
    """
    about = f"{in_time}, {at_all}"
    faults = []
    for name, answer, good in (
        (say("in-time"), in_time, (named(Ending.MESSAGE),)),
        (say("at-all"), at_all, (named(Ending.MESSAGE), named(Ending.LATE_MESSAGE))),
    ):
        if not is_whole(answer, least=0):
            return case("no-timeout", given=repr(answer))
        try:
            # At the very microsecond of a boundary either order of two events is right, so the
            # two microseconds beside it decide.
            comes = ending_of(get.play(answer + 1, latency_us)) in good
            sooner = answer > 0 and ending_of(get.play(answer - 1, latency_us)) in good
        except ParameterError as error:
            return case("illegal", why=error)
        if not comes:
            ending = explained(get.play(answer, latency_us))
            faults.append(case("short", about=about, given=answer, name=name, ending=ending))
        elif sooner:
            faults.append(case("long", about=about, given=answer, name=name))
    return tuple(faults) or case("right", about=about, trip=2 * latency_us)


# -- tables


def drain_line(ready: int, played: Run) -> tuple[str, ...]:
    """What came of a drain, as `drain_cases` shows it."""
    start = played.start_seq
    sent = measure.messages(played.rows, after=start)
    answers = _flows(played, BROKER)
    before = measure.counter(played.rows, BROKER, "delivery_count", upto=start)
    after = measure.counter(played.rows, BROKER, "delivery_count")
    said = measure.numbers(answers[-1], "delivery_count", "link_credit") if answers else {}
    words = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in said.items())
    flow = words or say("no-flow")
    return (
        say("messages", n=ready),
        str(sent),
        str(serial.diff(after, before) - sent),
        f"{before} → {after}",
        str(measure.credit(played.rows, BROKER)),
        flow if played.rested else say("cut", note=played.note),
    )


@takes
def drain_cases(
    ready: Sequence[int], *, link_credit: int, preset: Preset | str = "spec", **parameters: Any
) -> Table:
    """Grant and drain on a queue with none, some, too many ready messages.

    Args:
        ready: how many messages are ready, one run each.
        link_credit: granted and drained.
        preset: every other number.
        parameters: further ones of the scenario.
    """
    queues = {one: run("credit", preset, {**parameters, "messages": one}) for one in ready}
    lines = [drain_line(one, drained(queue, link_credit)) for one, queue in queues.items()]
    return table_of("drains", lines)


@takes
@reached()
def handovers(*runs: Run) -> Table:
    """Ways of handing a queue over, a line each.

    Args:
        runs: of the scenario `handover`.
    """
    stories = map(Handover, runs)
    return table_of(
        "ways-to-hand-over",
        [
            (
                str(story.played.parameters["way"]),
                _range(story.of_leaver),
                _range(story.of_next),
                say("messages", n=story.again) if story.of_next else "–",
                say("kept" if story.in_order else "violated"),
            )
            for story in stories
        ],
    )


def _range(arrivals: list[Seen]) -> str:
    numbers = [one.message for one in arrivals]
    if numbers and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return say("range", first=numbers[0], last=numbers[-1])
    return ", ".join(map(str, numbers)) or say("none")
