"""Lesson 05: what a run says about each of its questions, and its checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.exercises import measure
from workbench.exercises.checks import is_whole
from workbench.exercises.measure import number_in
from workbench.exercises.table import Table, table_of
from workbench.presets import Preset
from workbench.scenarios.beside import counted, decided
from workbench.scenarios.publishers import QUEUES
from workbench.scenarios.run import Run, run
from workbench.trace.braking import held_by, links_of
from workbench.trace.given import takes
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT, Row
from workbench.views.scene_valves import VALVES

from .declare import FORMS, Case, Declared, Facts, Found, case, facts
from .neighbours import beside_slow_target

FIRST = QUEUES[0]
PRESET = "rmq4.3"  # whose broker the lesson is about
BRAKES = VALVES  # what may hold an AMQP 1.0 sender that has a message

lesson = Declared("05")
predict, check, say = lesson.predict, lesson.check, lesson.say


# -- what is read off a run


@takes
def stalled(played: Run, publish: int, *, confirmed: int = 0) -> Run:
    """The run in which the first queue confirms some messages, stalls, and then more come.

    Args:
        played: a run of `publishers`.
        publish: how many messages the application wants to send to the stalled queue.
        confirmed: how many it sends before, and the queue confirms.
    """
    begun = played.then("publish", queue=FIRST, count=confirmed) if confirmed else played
    return begun.then("stall", queue=FIRST).then("publish", queue=FIRST, count=publish)


@takes
def waiting(preset: Preset | str, messages: int, **parameters: Any) -> Run:
    """A stalled queue with messages that wait for their confirm, and then go through at once."""
    given = {"service_us": "0", "rate": 0, **parameters}
    held = stalled(run("publishers", preset, given), messages)
    return held.then("resume", queue=FIRST)


def sent(rows: Sequence[Row], link: str = FIRST, *, event: str = SENT) -> int:
    """Messages that the client sent over a link, or that arrived (`event`)."""
    return len(_sent(rows, link, event=event))


def _sent(rows: Sequence[Row], link: str = FIRST, *, event: str = SENT) -> list[Row]:
    """The row of each of them."""
    found = measure.frames(rows, "transfer", event=event, from_peer=CLIENT)
    return [row for row in found if row.link == link and not (row.frame or {}).get("more")]


def _grants(rows: Sequence[Row], *, event: str = SENT, after: int = -1) -> list[Row]:
    """The broker's flows that grant credit on the first publisher's link that they name."""
    flows = [
        row
        for row in measure.frames(rows, "flow", event=event, from_peer=BROKER, after=after)
        if row.link_sender == CLIENT and (row.frame or {}).get("link_credit") is not None
    ]
    return [row for row in flows if row.link == flows[0].link]


def counter_before(rows: Sequence[Row], at: int, name: str, link: str = FIRST) -> int:
    """A counter of the broker's end of a publisher's link, as it was before a row."""
    told = (
        row.ledger[name]
        for row in reversed(rows[:at])
        if row.vantage == BROKER and row.link == link and row.link_sender == CLIENT
        if row.ledger and name in row.ledger
    )
    return int(next(told, 0))


def _dispositions(rows: Sequence[Row]) -> list[Row]:
    """The broker's outcomes for messages of publishers."""
    return [
        row
        for row in measure.frames(rows, "disposition", from_peer=BROKER)
        if (row.frame or {}).get("role") == "receiver"
    ]


# -- what is asked


def _publisher(form: int, *, settled: bool = False) -> dict[str, Any]:
    """A publisher with a credit of its own, and more messages than it may send."""
    credit = 20 + 2 * (form % FORMS)
    given = {"max_link_credit": credit, "settled": settled}
    return {"run": run("publishers", PRESET, given), "publish": 4 * credit}


def _first(run: Run) -> int:
    """The first grant of a run."""
    return number_in(_grants(run.rows)[0], "link_credit")


@lesson.asks
def regrant(run: Run, publish: int) -> Found:
    """How much credit is left when the broker grants again?"""
    first = _first(run)
    yield {"first": first}
    branch = run.then("publish", queue=FIRST, count=publish)
    again = _grants(branch.rows)[1]
    credit = [int((row.ledger or {})["link_credit"]) for row in _sent(branch.rows)]
    return facts(
        counter_before(branch.rows, again.seq, "link_credit"),
        case="goes-on" if all(credit[:-1]) else "runs-dry",
        again=measure.step(again),
        wrong={
            "waits until it is used up": 0,
            "below half": first // 2 - 1,
            "after every message": first - 1,
        },
        beside=counted(
            branch,
            say("left"),
            [row for row in _sent(branch.rows, event=RECEIVED) if row.seq < again.seq],
            end=again,
            full=first,
        ),
    )


regrant.again(_publisher)


def _looks(branch: Run) -> tuple[str, int | None]:
    """How many were unconfirmed when the broker granted again, and when it did not."""
    rows = branch.rows
    looks = [counter_before(rows, flow.seq, "unconfirmed") for flow in _grants(rows)[1:]]
    held = (
        row.ledger["unconfirmed"]
        for row in rows
        if row.event == "block" and row.kind == "unconfirmed" and row.link == FIRST and row.ledger
    )
    return lesson.joined("and", [str(look) for look in looks]), next(held, None)


def _held_back(branch: Run, **more: Any) -> Facts:
    """How many messages go out to a queue that hangs, and what the broker saw where it looked."""
    looks, unconfirmed = _looks(branch)
    if unconfirmed is None:
        how = "never-held" if looks else "never-looked"
    else:
        how = "held" if looks else "held-at-once"
    return facts(
        sent(branch.rows),
        case=how,
        looks=looks,
        unconfirmed=unconfirmed,
        gate=_first(branch),
        beside=counted(branch, say("sent"), _sent(branch.rows)),
        **more,
    )


@lesson.asks
def stall_takes(run: Run, publish: int) -> Found:
    """How many messages go out to a queue that never confirmed any?"""
    first = _first(run)
    yield {"first": first}
    branch = stalled(run, publish)
    return _held_back(
        branch,
        wrong={
            "the first grant is all": first,
            "nothing goes to a queue that stalls": 0,
            "credit is granted whatever waits": publish,
        },
        seen=measure.last_frame(branch.rows, "transfer"),
    )


stall_takes.again(_publisher)


@lesson.asks
def one_confirmed(run: Run, publish: int, confirmed: int) -> Found:
    """And if the queue had confirmed one before it hung?"""
    yield {"first": _first(run)}
    without = sent(stalled(run, publish).rows)
    branch = stalled(run, publish, confirmed=confirmed)
    more = sent(branch.rows) - without - confirmed
    return _held_back(
        branch,
        ending=say("worth", confirmed=confirmed) if more > 1 else "",
        wrong={
            "one more confirmed, one more sent": without + confirmed,
            "confirmed ones do not matter": without,
        },
    )


one_confirmed.again(lambda form: {**_publisher(form), "confirmed": 1})


@lesson.asks
def settled_takes(run: Run, publish: int) -> Found:
    """How many settled messages go out to a queue that hangs?"""
    yield {"first": _first(run)}
    branch = stalled(run, publish)
    return facts(
        sent(branch.rows),
        told=len(_dispositions(branch.rows)),
        wrong={"settled messages do not count": publish, "the first grant is all": _first(run)},
        beside=counted(branch, say("sent"), _sent(branch.rows)),
    )


settled_takes.again(lambda form: _publisher(form, settled=True))


@lesson.asks
def told_in(run: Run, messages: int) -> Facts:
    """How many dispositions tell of messages that are confirmed together?"""
    assert sent(run.rows) == messages
    told = len(_dispositions(run.rows))
    return facts(
        told,
        case="range" if told == 1 else "other",
        wrong={"one frame a message": messages, "confirms are silent": 0},
        beside=counted(run, say("told"), _dispositions(run.rows)),
    )


@lesson.asks
def beside_slow(fair: Run, slow: Run, link: str, slow_link: str) -> Facts:
    """How fast is a link whose neighbour's target is slow?"""
    return beside_slow_target(fair, slow, link, slow_link)


@lesson.asks
def both_ways(run: Run, link_credit: int) -> Found:
    """How many messages does a client get whose publishing is stopped?"""
    yield {"ready": int(run.parameters["ready"] or 0)}
    branch = run.then("grant", link_credit=link_credit)
    return facts(
        measure.messages(branch.rows, event=RECEIVED, after=run.last),
        wrong={"a stall holds the connection": 0},
        beside=counted(
            branch,
            say("come"),
            measure.handed_over(branch.rows, event=RECEIVED, after=run.last),
        ),
        seen=measure.last_frame(branch.rows, "transfer"),
    )


@lesson.asks
def changed_setting(run: Run, link_credit: int, publish: int) -> Found:
    """What does the next grant say when max_link_credit was changed meanwhile?"""
    yield {"first": _first(run)}
    lowered = run.then("set_max_link_credit", link_credit=link_credit)
    branch = lowered.then("publish", count=publish)
    flow = _grants(branch.rows, after=run.last)[0]
    return facts(
        number_in(flow, "link_credit"),
        step=measure.step(flow),
        wrong={"settings work at once": link_credit, "credit is taken back": 0},
        beside=decided(branch, say("next"), flow),
    )


@changed_setting.again
def _attached(form: int) -> dict[str, Any]:
    given = _publisher(form)
    return {**given, "run": given["run"].then("publish", count=1), "link_credit": 5 + form}


@lesson.asks
def real_regrant(rows: Sequence[Row]) -> Found:
    """After how many messages does a real broker grant again?"""
    begin, again = _grants(rows, event=OBSERVED)[:2]
    first, after = number_in(begin, "link_credit"), number_in(again, "delivery_count")
    yield {"first": first, "step": measure.step(begin)}
    return facts(
        after,
        again=measure.step(again),
        credit=number_in(again, "link_credit"),
        left=first - after,
        wrong={"below half": first - first // 2 + 1, "waits until it is used up": first},
        beside=decided(rows, say("after"), again),
        seen=again,
    )


# -- what is checked


@lesson.checks(scenarios=("publishers",), acted=True)
def collected(desk: Any) -> Case:
    """Was each brake the binding one at some step of this branch?

    Args:
        desk: a stage, or a run.
    """
    played = Run.shown_by(desk)
    seen: dict[str, int] = {}
    for link in links_of(played.rows, sender=CLIENT):
        for row, held in zip(played.rows, held_by(played.rows, link), strict=True):
            if (step := measure.step(row)) > 0:
                seen[held.brake] = min(step, seen.get(held.brake, step))
    bound = ", ".join(
        say("bound", brake=brake, step=seen[brake]) for brake in BRAKES if brake in seen
    )
    missing = ", ".join(brake for brake in BRAKES if brake not in seen)
    if missing:
        return case("wrong", bound=bound or say("none"), missing=missing)
    return case("right", bound=bound)


@lesson.checks()
def largest_credit(answer: Any, *, limit: int, publish: int, preset: Preset | str = PRESET) -> Case:
    """Is that the largest max_link_credit with which a stalled queue takes no more than a limit?

    Args:
        answer: a credit; `...` if there is none yet.
        limit: messages to a queue that stalls and has confirmed nothing.
        publish: how many the application wants to send.
        preset: whose rules.
    """
    if not is_whole(answer):
        return case("no-credit")
    took, more = (
        sent(stalled(run("publishers", preset, {"max_link_credit": credit}), publish).rows)
        for credit in (answer, answer + 1)
    )
    if took > limit:
        return case("too-many", took=took)
    return case("larger" if more <= limit else "right", took=took, next=answer + 1, more=more)


@lesson.checks()
def longest_brake(answer: Any, played: Run) -> Case:
    """Is that what blocked this run's first link the longest, while it had a message?

    Args:
        answer: a brake's name; `...` if there is none yet.
        played: the run.
    """
    if answer not in BRAKES:
        return case("no-brake", given=repr(answer), brakes=", ".join(BRAKES))
    total = measure.stalls_us(played, FIRST)
    if not total:
        return case("nothing")
    times = ", ".join(
        f"{brake} {measure.milliseconds(time):,.1f} ms" for brake, time in total.items()
    )
    return case("right" if answer == next(iter(total)) else "wrong", times=times)


# -- tables


@takes
def stall_table(
    confirmed: Sequence[int], *, preset: Preset | str, publish: int, **parameters: Any
) -> Table:
    """How many messages go out to a queue that confirmed some and then stalls; a row a run.

    Args:
        confirmed: how many it confirms before it stalls.
        preset: whose rules.
        publish: how many the application wants to send then.
        parameters: further ones of the scenario.
    """
    lines = []
    for before in confirmed:
        played = stalled(run("publishers", preset, parameters), publish, confirmed=before)
        flows = _grants(played.rows)
        lines.append(
            (
                say("messages", n=before),
                str(sent(played.rows)),
                str(counter_before(played.rows, played.last + 1, "unconfirmed")),
                str(len(flows)),
                ", ".join(str(number_in(row, "delivery_count")) for row in flows),
            )
        )
    return table_of("stalled", lines)
