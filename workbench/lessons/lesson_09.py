"""Lesson 09: what a run says about each of its questions, and its checks."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.exercises import measure
from workbench.exercises.checks import is_whole
from workbench.exercises.predict import questions
from workbench.exercises.table import Table, table_of
from workbench.scenarios import two_faces
from workbench.scenarios.beside import Measured, counted, decided
from workbench.scenarios.qpid import CONNECTIONS, PRODUCERS, QUEUES
from workbench.scenarios.run import Run, run
from workbench.scenarios.two_faces import FACES, Face
from workbench.trace import brakes
from workbench.trace.braking import PublishingBraking, held_by, links_of
from workbench.trace.fold import held_in
from workbench.trace.given import takes
from workbench.trace.schema import BROKER, CLIENT, RECEIVED, SENT, Row

from .declare import FORMS, Case, Declared, Facts, Found, case, facts, largest, reached

__all__ = [
    "check",
    "faces",
    "faces_table",
    "full",
    "overloaded",
    "overloads_table",
    "predict",
    "questions",
    "together",
    "windows_table",
]

FIRST, SECOND = QUEUES
PRESET = "qpid-cpp"
RABBITMQ = "rmq4.3"
WIRE = CONNECTIONS[PRODUCERS[0]]
PROTOCOLS = ("AMQP 0-9-1", "AMQP 0-10", "AMQP 1.0")
PUBLISHES = ("basic.publish", "message.transfer", "transfer")

lesson = Declared("09")
predict, check, say = lesson.predict, lesson.check, lesson.say


# -- what is read off a run


def full(**parameters: Any) -> Run:
    """A run of producers and queues of Qpid's, with what differs from the scenario."""
    return run("qpid", PRESET, parameters)


@takes
def together(played: Run, *acts: tuple[str, dict[str, Any]]) -> Run:
    """The run in which all of this is begun at once."""
    return played.act_each(acts)


def _put(messages: int, queue: str = FIRST, **more: Any) -> tuple[str, dict[str, Any]]:
    return "publish", {"count": messages, "queue": queue, **more}


def _take(messages: int, every_us: int) -> tuple[str, dict[str, Any]]:
    return "accept", {"count": messages, "processing_us": every_us}


def _levels(rows: Sequence[Row], queue: str = FIRST) -> list[int]:
    """What a queue held, row for row of its own."""
    return [held_in(row) for row in rows if row.queue == queue and row.ledger] or [0]


def _turn(rows: Sequence[Row], event: str) -> Row | None:
    """The first row at which a queue is stopped (`block`), or goes on (`unblock`)."""
    return next((row for row in rows if (row.event, row.kind) == (event, "queue-flow")), None)


def _exception(rows: Sequence[Row]) -> Row | None:
    """The word that ended a producer's session."""
    found = measure.frames(rows, "execution.exception", event=RECEIVED, from_peer=BROKER)
    return found[0] if found else None


def _brakes(played: Run, connection: str = WIRE) -> Iterator[str]:
    """What holds a producer, without a link, after each row of a run."""
    braking = PublishingBraking(connection)
    for row in played.rows:
        braking.apply(row)
        yield braking.brake


def _brake(played: Run, connection: str = WIRE) -> str:
    """What holds it at the end."""
    return list(_brakes(played, connection))[-1]


def blocked(played: Run, producer: str = PRODUCERS[0]) -> bool:
    """Whether a producer is blocked by its window at the end of a run."""
    return _brake(played, CONNECTIONS[producer]) == brakes.QPID_WINDOW


def _sent(rows: Sequence[Row], connection: str = WIRE) -> int:
    """Messages that a producer sent."""
    found = measure.frames(rows, "message.transfer", event=SENT, from_peer=CLIENT)
    return sum(row.connection == connection for row in found)


def fate(played: Run) -> str:
    """What became of the first producer: `ended`, `waits` or `through`; a key of choices."""
    if _exception(played.rows) is not None:
        return "ended"
    return "waits" if blocked(played) else "through"


# -- the same overload in three protocols


class Overload:
    """A publisher whose queue hangs, in one protocol.

    Args:
        played: the run, to its end.

    Attributes:
        arrived: messages that the broker has when all stands still.
        said: frames that the broker has sent the publisher since the queue hangs, by kind.
        brake: what blocks the publisher in the end; `none` if nothing does.
    """

    def __init__(self, played: Run) -> None:
        rows = played.rows
        hangs = next(row.seq for row in rows if row.event == "action")
        mine = [row for row in rows if row.connection == WIRE]
        self.arrived = sum(
            row.kind in PUBLISHES
            and (row.vantage, row.from_peer, row.event) == (BROKER, CLIENT, RECEIVED)
            for row in mine
        )
        self.said = Counter(
            row.kind or ""
            for row in mine
            if row.seq > hangs and (row.event, row.from_peer) == (RECEIVED, BROKER)
        )
        links = links_of(rows, sender=CLIENT)
        self.brake = held_by(rows, links[0])[-1].brake if links else _brake(played)


@takes
def overloaded(publish: int, window: int) -> dict[str, Overload]:
    """A queue that hangs, and a publisher with so many messages, by protocol.

    Args:
        publish: how many it has.
        window: of the producer of AMQP 0-10; the last one has none.
    """
    chain = run("chain", RABBITMQ).then("stall").then("publish", count=publish)
    links = run("publishers", RABBITMQ).then("stall", queue=FIRST)
    qpid, old = (
        full(window=size).then("stall", queue=FIRST).then("publish", count=publish)
        for size in (window, 0)
    )
    played = (chain, qpid, links.then("publish", queue=FIRST, count=publish), old)
    return {name: Overload(one) for name, one in zip((*PROTOCOLS, say("old")), played, strict=True)}


# -- what is asked


@lesson.asks
def limit(run: Run, publish: int) -> Found:
    """What becomes of a producer that fills a queue which holds nothing back?"""
    yield {"most": run.parameters["most"]}
    assert not run.parameters["stop"]
    assert not run.parameters["window"]
    branch = together(run, _put(publish))
    ended = _exception(branch.rows)
    closed = measure.frames(branch.rows, "connection.close", event=RECEIVED, from_peer=BROKER)
    assert ended is not None
    return facts(
        "connection" if closed else "session",
        step=measure.step(ended),
        code=ended.fields["error_code"],
        held=max(_levels(branch.rows)),
        sent=_sent(branch.rows),
        wrong={
            "the client is disconnected": "connection",
            "the broker tells it to wait": "waits",
            "a full queue forgets the oldest": "dropped",
        },
        beside=decided(branch, say("producer"), ended),
        seen=ended,
    )


@lesson.asks
def stops_at(run: Run, publish: int) -> Found:
    """Which message is the first whose completion is held back?"""
    stop, resume = (int(run.parameters[name] or 0) for name in ("stop", "resume"))
    yield {"stop": stop, "resume": resume}
    branch = together(run, _put(publish))
    turn = _turn(branch.rows, "block")
    assert turn is not None
    return facts(
        held_in(turn),
        step=measure.step(turn),
        wrong={"at the mark": stop, "at the low mark": resume},
        beside=counted(
            branch,
            say("stops"),
            measure.taken_in(branch.rows[: turn.seq + 1], FIRST),
            end=turn,
        ),
        seen=turn,
    )


def _marks(form: int) -> dict[str, Any]:
    """Other watermarks, and more messages than the queue takes without a word."""
    stop = 6 + form % FORMS
    return {"run": full(stop=stop, resume=stop - 2 - form % 3), "publish": stop + 3}


stops_at.again(_marks)


@lesson.asks
def goes_on_at(run: Run, publish: int) -> Found:
    """How many messages are left when all that is held completes?"""
    stop, resume = (int(run.parameters[name] or 0) for name in ("stop", "resume"))
    resume = resume or stop
    yield {"stop": stop, "resume": resume}
    branch = together(run, _put(publish)).then("accept", queue=FIRST, count=publish)
    turn = _turn(branch.rows, "unblock")
    assert turn is not None
    return facts(
        held_in(turn),
        step=measure.step(turn),
        wrong={"at the low mark": resume, "at the high mark": stop},
        beside=decided(branch, say("completes"), turn),
    )


goes_on_at.again(_marks)


@lesson.asks
def free_queue(run: Run, publish: int, free: int) -> Found:
    """How many messages for an empty queue go out behind those for a full one?"""
    window = int(run.parameters["window"] or 0)
    yield {"window": window}
    branch = together(run, _put(publish)).then("publish", queue=SECOND, count=free)
    held, came = max(_levels(branch.rows)), max(_levels(branch.rows, SECOND))
    assert held == publish == int(run.parameters["stop"] or 0) + 1
    assert 0 < came < free
    return facts(
        came,
        full=held,
        wrong={
            "a free queue is not held": free,
            "a full queue holds at once": 0,
            "each queue has a window": min(window, free),
        },
        beside=counted(branch, say("q2"), measure.taken_in(branch.rows, SECOND)),
    )


@lesson.asks
def survives(run: Run, publish: int, every_us: int) -> Found:
    """What becomes of a producer that is faster than whoever consumes?"""
    window = int(run.parameters["window"] or 0)
    assert run.parameters["most"]
    assert run.parameters["stop"]
    yield {
        "kind": "window" if window else "old",
        "window": say("window" if window else "no-window", window=window),
        "every_ms": measure.milliseconds(every_us),
        "stop": run.parameters["stop"],
        "most": run.parameters["most"],
    }
    branch = together(run, _take(publish, every_us), _put(publish))
    became = fate(branch)
    assert window or became != "through"
    stops = sum(of == brakes.QPID_WINDOW for of, _ in itertools.groupby(_brakes(branch)))
    free = became == "through" and not stops
    return facts(
        became,
        case="free" if free else became,
        sent=_sent(branch.rows),
        top=max(_levels(branch.rows)),
        stops=stops,
        wrong={
            **({} if free else {"faster is too fast": "ended"}),
            "watermarks hold every producer": "waits",
            "watermarks save every producer": "through",
        },
        beside=decided(branch, say("producer"), _exception(branch.rows)),
    )


@lesson.asks
def overshoot(run: Run, publish: int) -> Found:
    """How many messages can two producers bring into one queue that nobody empties?"""
    windows = [int(run.parameters[name] or 0) for name in ("window", "second_window")]
    stop = int(run.parameters["stop"] or 0)
    yield {"stop": stop, "first": windows[0], "second": windows[1]}
    acts = [_put(publish, producer=producer) for producer in PRODUCERS]
    branch = together(run, *acts)
    assert all(blocked(branch, producer) for producer in PRODUCERS)
    top, most = max(_levels(branch.rows)), stop + sum(windows)
    return facts(
        top,
        case="most" if top == most else "fewer",
        beyond=top - stop,
        wrong={
            "the mark is the most": stop,
            "the larger window counts": stop + max(windows),
            **({"every window is unused": facts(most)} if top < most else {}),
        },
        beside=counted(branch, say("queue"), measure.taken_in(branch.rows, FIRST)),
    )


@overshoot.again
def _two(form: int) -> dict[str, Any]:
    window = 5 + form % 5
    given = {
        # So the first producer has used up a window, and been told so, when the queue stops.
        "stop": window * (4 + form % FORMS // 5),
        "resume": 10,
        "window": window,
        "second_window": 2 + form % 3,
    }
    return {"run": full(**given), "publish": 60 + form % FORMS}


@lesson.asks
def two_grants(run: Run, credit: int) -> Facts:
    """How many messages do two equal flows bring a subscriber?"""
    ready = run.then("set_flow_mode", mode="credit").then("flow", unit="octets", value=10_000_000)
    twice = ready.then("flow", value=credit).then("flow", value=credit)
    came = measure.frames(twice.rows, "message.transfer", event=RECEIVED, from_peer=BROKER)
    return facts(
        len(came),
        wrong={"the second sets": credit},
        beside=counted(twice, say("come"), came),
    )


two_grants.again(
    lambda form: {
        "run": run("qpid_credit", PRESET, {"messages": 30}),
        "credit": 2 + form % FORMS % 12,
    }
)


@lesson.asks
def holds_most(results: Mapping[str, Overload], publish: int) -> Found:
    """In which protocol has the broker the most when its queue hangs?"""
    names = [name for name in PROTOCOLS if name in results]
    yield {"choices": tuple(names)}
    found = {name: results[name].arrived for name in names}
    return facts(
        largest(found),
        told="; ".join(f"{name} {number:,}" for name, number in found.items()),
        wrong={
            "the newest gives the most credit": PROTOCOLS[2],
            "nobody stops a window": PROTOCOLS[1],
        },
        beside=Measured(unit=say("broker"), heights=found),
    )


@lesson.asks
def other_queue(both: Sequence[Face], other: int) -> Found:
    """Over which protocol do messages for an empty queue go out while another is too full?"""
    yield {}
    reached = {one.protocol: one.other for one in both}
    assert all(reached[name] in (0, other) for name in FACES)
    session, link = (reached[name] == other for name in FACES)
    return facts(
        ("both" if link else "session") if session else ("link" if link else "neither"),
        told="; ".join(f"{_spoken(name)} {number}" for name, number in reached.items()),
        wrong={
            "credit is credit": "neither",
            "a session holds nobody for another queue": "both",
            "1.0 stops a session": "session",
        },
        beside=Measured(
            unit=say("empty"),
            heights={_spoken(name): reached[name] for name in FACES},
            yours={
                "credit is credit": (_spoken(FACES[1]), 0),
                "a session holds nobody for another queue": (_spoken(FACES[0]), other),
                "1.0 stops a session": (_spoken(FACES[1]), 0),
            },
        ),
    )


# -- what is checked


def _worst(queue: Run, publish: int, *, emptied: bool = True) -> Run:
    """Of the runs in which some messages went before, the one in which the queue holds the most.

    A producer looks at its window now and then: how full that is when the queue stops depends on
    what it has sent before, and on whether some of that is gone again. If it loses its session in
    one of them, it is that run.

    Args:
        queue: the run in which nothing has been sent.
        publish: messages that come at once then.
        emptied: somebody may have taken one before.
    """
    befores = range(1, 2 * int(queue.parameters["window"] or 1))
    begun = [queue, *(together(queue, _put(before)) for before in befores)]
    if emptied:
        begun += [together(one, _take(1, 0)) for one in begun[1:]]
    found = [together(one, _put(publish)) for one in begun]
    return max(found, key=lambda one: (fate(one) == "ended", max(_levels(one.rows))))


@lesson.checks()
def stop_mark(answer: Any, *, burst: int, window: int, most: int) -> Case:
    """Does this high watermark let a burst through, and keep the queue below its limit?

    Args:
        answer: the watermark; `...` if there is none yet.
        burst: messages that come at once, and may not wait.
        window: of the producer.
        most: what the queue may hold.
    """
    if not is_whole(answer, most=most):
        return case("no-mark")
    queue = full(stop=answer, resume=0, most=most, window=window)
    held = _turn(together(queue, _put(burst)).rows, "block")
    if held is not None:
        return case("early", at=held_in(held))
    worst = _worst(queue, 2 * most)
    if fate(worst) == "ended":
        return case("late", sent=_sent(worst.rows))
    return case("right", top=max(_levels(worst.rows)))


@lesson.checks()
def largest_window(answer: Any, *, stop: int, most: int, publish: int) -> Case:
    """Is that the largest window that cannot reach the queue's limit?

    Args:
        answer: the window; `...` if there is none yet.
        stop: the high watermark.
        most: what the queue may hold.
        publish: messages that the producer has.
    """
    if not is_whole(answer, most=publish):
        return case("no-window")
    this, wider = (
        _worst(full(stop=stop, resume=0, most=most, window=size), publish)
        for size in (answer, answer + 1)
    )
    if fate(this) == "ended":
        return case("ended", sent=_sent(this.rows))
    top = max(_levels(this.rows))
    return case("right" if fate(wider) == "ended" else "larger", top=top)


# -- tables


@takes
def windows_table(windows: Sequence[int], *, publish: int, **parameters: Any) -> Table:
    """What windows of several sizes do at worst to a queue that nobody empties; a row a window.

    Args:
        windows: in transfers; 0: none.
        publish: messages that the producer has.
        parameters: of the scenario.
    """
    lines = []
    for window in windows:
        played = _worst(full(window=window, **parameters), publish, emptied=False)
        lines.append(
            (
                str(window) if window else say("none"),
                str(_sent(played.rows)),
                str(max(_levels(played.rows))),
                say(f"fate.{fate(played)}"),
            )
        )
    return table_of("windows", lines)


@takes
def overloads_table(results: Mapping[str, Overload]) -> Table:
    """What each protocol tells a publisher whose queue hangs, and what the broker has then."""
    lines = [
        (
            name,
            f"{one.arrived:,}",
            ", ".join(f"{kind} × {number}" for kind, number in one.said.items()) or say("nothing"),
            brakes.short(one.brake) if brakes.is_blocked(one.brake) else say("goes-on"),
        )
        for name, one in results.items()
    ]
    return table_of("hangs", lines)


def _spoken(protocol: str) -> str:
    return protocol.upper().replace("AMQP-", "AMQP ")


faces = takes(reached()(two_faces.faces))


@takes
def faces_table(both: Sequence[Face]) -> Table:
    """What Qpid's Java broker says and holds over each of its protocols; a row a protocol."""
    lines = [
        (
            _spoken(one.protocol),
            one.beforehand[0] if one.beforehand else say("nothing"),
            "; ".join(one.stops),
            str(one.top),
            str(one.other),
            str(one.goes_on_at),
            "; ".join(one.resumes),
        )
        for one in both
    ]
    return table_of("faces", lines)
