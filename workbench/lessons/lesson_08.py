"""Lesson 08: what a run says about each of its questions, and its check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.broker.queue_process import MESSAGE_OCTETS
from workbench.exercises import measure
from workbench.exercises.checks import run_of
from workbench.exercises.table import Table
from workbench.scenarios.memory import BOTH, GROWING, LATER, OTHER, PUBLISHER
from workbench.scenarios.run import Run, run
from workbench.trace.schema import BROKER, CLIENT, RECEIVED, Row

from .declare import FORMS, Case, Declared, Facts, Found, case, facts

PRESET = "rmq4.3"  # whose broker the lesson is about
RUNNING, BLOCKING, BLOCKED = "running", "blocking", "blocked"

lesson = Declared("08")
predict, check = lesson.predict, lesson.check


# -- what is read off a run


def filled(played: Run, publish: int) -> Run:
    """The branch in which one client publishes more than the memory holds."""
    return played.then("publish", connection=PUBLISHER, count=publish)


def ready(played: Run, queue: str = GROWING) -> int:
    """Messages in a queue, when all has come to rest."""
    return int(played.world.broker.queues[queue].queue.ready)


def state(played: Run, connection: str) -> str:
    """A connection as an operator sees it, when all has come to rest."""
    return str(played.world.broker.connections[connection].overview()["state"])


def _alarms(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.event in ("alarm-set", "alarm-clear")]


def _deliveries(rows: Sequence[Row], connection: str) -> list[Row]:
    found = measure.frames(rows, "basic.deliver", event=RECEIVED, from_peer=BROKER)
    return [row for row in found if row.connection == connection]


# -- what is asked


def _memory(form: int, **more: Any) -> dict[str, Any]:
    given = {
        "limit_octets": 30_000 + 1_200 * (form % FORMS),
        "message_bytes": 300 + 10 * form,
        "ready": 10 + form,
        "prefetch": 3 + form % 4,
        "processing_us": 5_000,
        **more,
    }
    return {"run": run("memory", PRESET, given), "publish": 140 + form}


@lesson.asks
def fills(run: Run, publish: int) -> Found:
    """How many messages are in the queue when the alarm comes?"""
    limit, size = run.world.number("limit_octets"), run.world.number("message_bytes")
    held = run.world.broker.held_octets
    by_all, by_payload = (limit - held) // (size + MESSAGE_OCTETS), limit // size
    yield {
        "limit": limit, "size": size, "each": size + MESSAGE_OCTETS, "held": held,
        "by_all": by_all, "by_payload": by_payload,
    }  # fmt: skip
    branch = filled(run, publish)
    there = ready(branch)
    nearest = {"all": by_all, "payload": by_payload, "everything": publish}
    return facts(
        min(nearest, key=lambda name: abs(nearest[name] - there)),
        there=there,
        octets=branch.world.broker.held_octets,
        wrong={"payload is all that counts": "payload", "an alarm is a warning": "everything"},
        seen=(_alarms(branch.rows) or branch.rows)[-1],
    )


fills.again(_memory)


@lesson.asks
def who_is_told(run: Run, publish: int) -> Facts:
    """How many clients get connection.blocked when the alarm comes?"""
    branch = filled(run, publish)
    rows = branch.rows
    frames = measure.frames(rows, "connection.blocked", event=RECEIVED, from_peer=BROKER)
    return facts(
        len(frames),
        told=", ".join(str(row.connection) for row in frames) or "nobody",
        states=", ".join(f"{name} {state(branch, name)}" for name in branch.world.wires),
        wrong={"every connection is told": len(branch.world.wires), "nobody is told": 0},
        seen=frames[-1] if frames else None,
    )


@lesson.asks
def goes_on(run: Run, publish: int) -> Found:
    """How many messages does a client get that has not published since the alarm?"""
    there, prefetch = ready(run, OTHER), run.world.number("prefetch")
    yield {"there": there, "prefetch": prefetch}
    branch = filled(run, publish).then("consume", connection=BOTH)
    return facts(
        len(_deliveries(branch.rows, BOTH)),
        wrong={"an alarm stops every connection": 0, "nobody reads its acknowledgements": prefetch},
    )


goes_on.again(_memory)


@lesson.asks
def one_publish(run: Run, publish: int) -> Found:
    """And if it publishes one message before it begins to consume?"""
    there, prefetch = ready(run, OTHER), run.world.number("prefetch")
    yield {"there": there, "prefetch": prefetch}
    held = filled(run, publish).then("publish", connection=BOTH)
    branch = held.then("consume", connection=BOTH)
    return facts(
        len(_deliveries(branch.rows, BOTH)),
        state=state(branch, BOTH),
        wrong={"consuming is not publishing": there, "deliveries stop later": prefetch},
    )


one_publish.again(_memory)


@lesson.asks
def newcomer(run: Run, publish: int) -> Facts:
    """What becomes of a client that connects while the alarm is on?"""
    joined = filled(run, publish).then("connect")
    branch = joined.then("publish", connection=LATER, count=3)
    opened = bool(joined.world.peers[LATER].amqp.opened)
    first, then = state(joined, LATER), state(branch, LATER)
    return facts(
        "refused" if not opened else "at-once" if first == BLOCKED else "publish",
        first=first,
        then=then,
        wrong={"no connection can be opened": "refused", "it is blocked as it opens": "at-once"},
    )


# -- what is checked


@lesson.checks(scenarios=("memory",))
def over(desk: Any) -> Case:
    """Did the alarm end because the memory was there again?

    Args:
        desk: a stage, or a run.
    """
    played = run_of(desk)
    if not played.actions:
        return case("untouched")
    rows = _alarms(played.rows)
    if not rows:
        return case("never")
    by_hand = [row for row in played.rows if row.event == "action" and row.kind in _BY_HAND]
    if by_hand:
        return case("by-hand")
    cleared = [row for row in rows if row.event == "alarm-clear"]
    if not cleared:
        return case("wrong", held=played.world.broker.held_octets)
    return case("right", step=measure.step(cleared[0]))


_BY_HAND = ("alarm", "clear")


# -- tables


def memory_table(played: Run, publish: Sequence[int]) -> Table:
    """What the broker holds, and what each connection's state is, as more is published; a row each.

    Args:
        played: a run of `memory`.
        publish: how many messages `c1` publishes.
    """
    lines = []
    for number in publish:
        branch = filled(played, number)
        taken = measure.frames(branch.rows, "basic.publish", event=RECEIVED, from_peer=CLIENT)
        lines.append(
            (
                str(number),
                str(len(taken)),
                str(ready(branch)),
                f"{branch.world.broker.held_octets:,}",
                ", ".join(branch.world.broker.alarms) or "none",
                *(state(branch, name) for name in played.world.wires),
            )
        )
    head = ("published", "read", "in the queue", "octets held", "alarm", *played.world.wires)
    return Table(name="Memory fills", head=head, lines=lines)
