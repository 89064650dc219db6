"""Lesson 06: what a run says about each of its questions, its tables and its check."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from workbench.exercises import measure
from workbench.exercises.shared_socket import SharedSocket
from workbench.exercises.table import Table, table_of
from workbench.peers import Client091, Consumer091
from workbench.peers.leaving import GRACEFUL
from workbench.presets import get as preset_named
from workbench.scenarios import handover, handover_091, one_sender_one_receiver, two_senders
from workbench.scenarios.beside import Measured, counted, decided
from workbench.scenarios.chain import CONSUMER, QUEUES, STORE, twin
from workbench.scenarios.handover import CANCEL
from workbench.scenarios.handover_091 import CLOSE
from workbench.scenarios.run import Run, run
from workbench.scenarios.streaming import stream
from workbench.scenarios.two_senders import AMQP_0_9_1, AMQP_1_0, BOTH, CLASSIC, QUORUM
from workbench.scenarios.world import World
from workbench.trace.given import takes
from workbench.trace.schema import CLIENT, RECEIVED, SENT, Row

from .declare import FORMS, Case, Declared, Facts, Found, case, facts

SLOW, SECOND, _ = QUEUES

lesson = Declared("06")
predict, check, say = lesson.predict, lesson.check, lesson.say


# -- what is read off a run


@takes
def flooded(played: Run, publish: int, *, others: int = 0, process: str = SLOW) -> Run:
    """The branch in which a process hangs, and then a client publishes to the first queue.

    Args:
        played: a run of `chain`.
        publish: how many messages go to the first queue.
        others: how many go to the second queue after them.
        process: that hangs: a queue, or the message store.
    """
    more = [("publish", {"queue": SECOND, "count": others})] if others else []
    return played.act_each(
        [("stall", {"queue": process}), ("publish", {"queue": SLOW, "count": publish}), *more]
    )


@takes
def flooded_at_once(played: Run, publish: int) -> Run:
    """The same when everything begins, while a consumer is at work."""
    hung = played.act(played.start_seq, "stall", queue=SLOW)
    return hung.act(played.start_seq, "publish", queue=SLOW, count=publish)


def taken(rows: Sequence[Row]) -> int:
    """Messages that the reader has read."""
    return len(_read(rows))


def _read(rows: Sequence[Row]) -> list[Row]:
    return measure.frames(rows, "basic.publish", event=RECEIVED, from_peer=CLIENT)


def _unread(rows: Sequence[Row]) -> bool:
    """Whether messages for the first queue stand in the socket, unread."""
    read = {row.frame_id for row in _read(rows)}
    sent = measure.frames(rows, "basic.publish", event=SENT, from_peer=CLIENT)
    return any(row.frame_id not in read and row.fields.get("routing_key") == SLOW for row in sent)


def hop_credit(rows: Sequence[Row], vantage: str, queue: str | None = None) -> int | None:
    """What a process may still send to a queue, or to a channel, as it counts it itself."""
    told = (
        row.ledger["hop_credit"]
        for row in reversed(rows)
        if row.vantage == vantage and row.queue == queue and row.ledger
        if "hop_credit" in row.ledger
    )
    return next(told, None)


def ready(played: Run, queue: str) -> int:
    """Messages in a queue, when all has come to rest."""
    return int(played.world.broker.queues[queue].queue.ready)


def consumed(played: Run) -> int:
    """Messages that the consumer over AMQP 0-9-1 has got."""
    for client in played.world.peers.values():
        if isinstance(client, Client091) and CONSUMER in client.tasks:
            task = client.tasks[CONSUMER]
            assert isinstance(task, Consumer091)
            return task.received
    return 0


# -- what is asked


def _small(form: int, **more: Any) -> Run:
    """A chain with little credit, so that a run is short; the numbers differ from form to form."""
    more_after = 4 + form % FORMS
    credit = more_after * (2 + form % 3)
    given = {"message_bytes": 0, "credit": credit, "more_after": more_after}
    return run("chain", "rmq4.3", {**given, "max_link_credit": credit, **more})


def _credit(run: Run) -> int:
    return run.world.preset.process_credit


def _chained(form: int) -> dict[str, Any]:
    played = _small(form)
    return {"run": played, "publish": 4 * _credit(played)}


@lesson.asks
def chain_takes(run: Run, publish: int) -> Found:
    """How many messages does the reader read of those that go to a queue that hangs?"""
    credit = _credit(run)
    yield {"credit": credit, "more": run.world.preset.process_regrant_after}
    branch = flooded(run, publish)
    kept = [row for row in branch.rows if row.kind == "grant-kept"]
    assert taken(branch.rows) < publish
    return facts(
        taken(branch.rows),
        kept=len(kept),
        reader=hop_credit(branch.rows, "reader:c1"),
        below=abs(hop_credit(branch.rows, "channel:c1/1", SLOW) or 0),
        wrong={"one credit for the whole way": credit, "credit stops nobody": publish},
        beside=counted(branch, say("read"), _read(branch.rows)),
        seen=measure.frames(branch.rows, "basic.publish", event=RECEIVED)[-1],
    )


chain_takes.again(_chained)


def _stored(form: int) -> dict[str, Any]:
    more_after = 4 + form % FORMS
    credit, store = more_after * (2 + form % 3), more_after * (9 + form % 4)
    given = {
        "message_bytes": 4096, "persistent": True, "socket_octets": 0, "service_us": 0,
        "credit": credit, "more_after": more_after, "store_credit": store,
        "store_more_after": more_after,
    }  # fmt: skip
    return {"run": run("chain", "rmq4.3", given), "publish": 4 * credit + store}


@lesson.asks
def store_takes(run: Run, publish: int) -> Found:
    """And of those that a message store does not write?"""
    credit, store = _credit(run), run.world.preset.store_credit
    yield {"credit": credit, "store": store}
    branch = flooded(run, publish, process=STORE)
    assert taken(branch.rows) == store + 2 * credit < publish
    return facts(
        taken(branch.rows),
        wrong={"the store's credit is all": store, "it is as with the queue": 2 * credit},
        beside=counted(branch, say("read"), _read(branch.rows)),
        seen=measure.frames(branch.rows, "basic.publish", event=RECEIVED)[-1],
    )


store_takes.again(_stored)


def _beside(form: int) -> dict[str, Any]:
    played = _small(form, beside=True)
    return {"run": played, "publish": 4 * _credit(played), "others": 10 + form}


@lesson.asks
def other_lane(run: Run, publish: int, others: int) -> Found:
    """How many messages reach a queue whose neighbour hangs, over AMQP 0-9-1?"""
    yield {"credit": _credit(run)}
    branch = flooded(run, publish, others=others)
    assert ready(branch, SECOND) < others
    assert _unread(branch.rows)
    return facts(
        ready(branch, SECOND),
        wrong={"the slow channel alone stops": others},
        beside=counted(branch, say("second"), measure.taken_in(branch.rows, SECOND)),
    )


other_lane.again(_beside)


@lesson.asks
def other_link(run: Run, publish: int, others: int) -> Facts:
    """And over AMQP 1.0?"""
    branch = flooded(run, publish, others=others)
    last = measure.last_frame(branch.rows, "transfer")
    sent = measure.frames(branch.rows, "transfer", event=SENT, from_peer=CLIENT)
    assert len(sent) < publish + others
    assert others
    queue = twin(SECOND)
    return facts(
        ready(branch, queue),
        wrong={"a stall holds the connection": 0},
        seen=last,
        beside=counted(branch, say("second"), measure.taken_in(branch.rows, queue)),
    )


def _consuming(form: int) -> dict[str, Any]:
    more = {"prefetch": 3 + form % 7, "ready": 40 + form, "processing_us": 500}
    played = _small(form, beside=True, consume=True, **more)
    return {"run": played, "publish": 4 * _credit(played)}


@lesson.asks
def ack_behind(run: Run, publish: int) -> Found:
    """How many messages does a consumer get whose connection is blocked?"""
    there, prefetch = run.world.number("ready"), run.world.number("prefetch")
    yield {"there": there, "prefetch": prefetch, "credit": _credit(run)}
    branch = flooded_at_once(run, publish)
    acks = measure.frames(branch.rows, "basic.ack", from_peer=CLIENT)
    read = measure.frames(branch.rows, "basic.ack", event=RECEIVED, from_peer=CLIENT)
    got = consumed(branch)
    assert acks
    assert len(read) == len(acks) or _unread(branch.rows)
    return facts(
        got,
        case="read" if len(read) == len(acks) else "behind" if got < there else "enough",
        unread=len(acks) - len(read),
        acks=len(acks),
        wrong={
            "acknowledgements have a way of their own": there,
            "a blocked connection delivers nothing": 0,
        },
        seen=acks[-1] if acks else None,
        beside=counted(branch, say("got"), measure.deliveries(branch.rows)),
    )


ack_behind.again(_consuming)


@cache
def benchmark(name: str, **given: Any) -> World:
    """A benchmark of the article's, played once without a trace."""
    return stream(name, None, given).world


def _a_second(world: World) -> dict[tuple[str, str], int]:
    """What two senders bring in, messages a second, by protocol and kind of queue."""
    run_ms = world.number("run_ms")
    return {
        (one.protocol, one.kind): one.messages * 1000 // run_ms
        for one in two_senders.counted(world)
    }


@cache
def _consumed(protocol: str, **given: Any) -> int:
    """What a consumer gets over a protocol beside a publisher of batches, nobody else at work."""
    world = benchmark("one_sender_one_receiver", protocol=protocol, **given)
    (moved,) = one_sender_one_receiver.moved(world)
    return moved.consumed


@lesson.asks
def four_times(fsync_us: int, run_ms: int) -> Found:
    """How many times as much do two senders bring in over AMQP 1.0?"""
    yield {"fsync_ms": f"{fsync_us / 1000:g}", "run_ms": run_ms}
    world = benchmark("two_senders", run_ms=run_ms, protocol=BOTH, fsync_us=fsync_us)
    counts = _a_second(world)
    *_, ratio, blocks = two_senders.compared(world)
    old, new = (
        sum(each for (of, _), each in counts.items() if of == protocol)
        for protocol in (AMQP_0_9_1, AMQP_1_0)
    )
    assert round(blocks.model)
    return facts(
        round(ratio.model),
        ratio=f"{ratio.model:.2f}",
        blocks=f"{blocks.model:.0f}",
        slow=counts[AMQP_0_9_1, QUORUM],
        fast=counts[AMQP_0_9_1, CLASSIC],
        link_slow=counts[AMQP_1_0, QUORUM],
        link_fast=counts[AMQP_1_0, CLASSIC],
        wrong={
            "all wait for the same disk": 1,
            **({"one of two targets is free": 2} if round(ratio.model) > 2 else {}),
        },
        beside=Measured(
            unit=say("rate"),
            heights={"AMQP 0-9-1": old, "AMQP 1.0": new},
            yours={
                "all wait for the same disk": ("AMQP 1.0", old),
                "one of two targets is free": ("AMQP 1.0", 2 * old),
            },
        ),
    )


@lesson.asks
def receiver(batch: int, run_ms: int, preload: int) -> Found:
    """How does a consumer fare beside a publisher of batches?"""
    yield {"batch": batch, "preload": preload, "run_ms": run_ms}
    given = {"batch": batch, "run_ms": run_ms, "preload": preload}
    new, old = (_consumed(protocol, **given) for protocol in (AMQP_1_0, AMQP_0_9_1))
    ratio = new / max(1, old)
    limits = (("as-many", _ALIKE), ("some", _MANY))
    assert old
    assert ratio > 1 / _ALIKE  # else it is not the acknowledgements that decide
    found = next((name for name, limit in limits if ratio < limit), "ten")
    return facts(
        found,
        case="alike" if found == "as-many" else "fewer",
        old=old,
        new=new,
        wrong={"consuming costs no publishing": "as-many", "the two share the socket": "some"},
        beside=Measured(
            unit=say("consumed"),
            heights={"AMQP 0-9-1": old, "AMQP 1.0": new},
            yours={
                "consuming costs no publishing": ("AMQP 1.0", old),
                "the two share the socket": ("AMQP 1.0", _MANY * old),
            },
        ),
    )


_ALIKE, _MANY = 1.5, 10.0


def _limits(form: int) -> dict[str, Any]:
    preset = ("rmq4.0", "rmq4.3")[form % 2]
    return {"run": run("prefetch", preset, {"messages": 80}), "limit": 3 + form}


@lesson.asks
def too_late(run: Run, limit: int, later: int) -> Facts:
    """How many messages does a consumer hold whose limit is raised afterwards?"""
    branch = run.act_each(
        [("set_prefetch", {"count": limit}), "consume", ("set_prefetch", {"count": later})]
    )
    held = _delivered(branch)["a"]
    assert later
    assert held < run.world.number("messages")
    return facts(
        held,
        wrong={"a new limit holds at once": later, "limits add up": limit + later},
        beside=counted(branch, say("held"), measure.deliveries(branch.rows)),
    )


@too_late.again
def _raised(form: int) -> dict[str, Any]:
    given = _limits(form)
    return {**given, "later": given["limit"] + 2 + form % 5}


@lesson.asks
def in_all(run: Run, limit: int) -> Found:
    """How many messages do two consumers hold under a limit set with global=true?"""
    yield {"broker": run.world.preset.title}
    branch = run.act_each(
        [
            ("set_prefetch", {"count": limit, "shared": True}),
            "consume",
            ("consume", {"consumer": "b"}),
        ]
    )
    each = _delivered(branch)
    assert sum(each.values()) < run.world.number("messages")
    return facts(
        sum(each.values()),
        case="shared" if run.world.preset.shared_prefetch else "private",
        a=each["a"],
        b=each["b"],
        wrong={"the channel has one limit": limit, "each consumer has its own": 2 * limit},
        beside=counted(branch, say("held"), measure.deliveries(branch.rows)),
    )


in_all.again(_limits)


def _delivered(played: Run) -> dict[str, int]:
    """Deliveries by consumer."""
    return {name: len(measure.deliveries(played.rows, consumer=name)) for name in ("a", "b")}


@lesson.asks
def first_after(run: Run, way: str) -> Found:
    """Which message does the next consumer get first, when the one before has cancelled?"""
    prefetch, branch = run.world.number("prefetch"), run.then("leave", way=way)
    yield {
        "prefetch": prefetch,
        "last": prefetch - 1,
        "leaves": say("cancel" if way == CANCEL else "close"),
    }
    return facts(
        _got(branch)[0],
        case=way,
        wrong={"what was handed out goes back": 0, "what was handed out stays": prefetch},
        beside=decided(branch, say("first"), measure.deliveries(branch.rows, consumer="b")[0]),
    )


@first_after.again
def _handed(form: int) -> dict[str, Any]:
    played = run("handover_091", "rmq4.3", {"prefetch": 3 + form, "messages": 60})
    return {"run": played, "way": (CANCEL, CLOSE)[form % 2]}


def _got(played: Run) -> list[int]:
    """The messages that consumer b has got, in order of arrival."""
    return [one.message for one in handover_091.seen(played) if one.consumer == "b"]


def _words(numbers: Sequence[int]) -> str:
    """Message numbers as ranges: `5 to 9, 0 to 4, 10`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(a) if a == b else say("range", first=a, last=b) for a, b in ranges)


# -- what is checked


@lesson.checks(scenarios=("chain",), acted=True)
def passed(desk: Any, least: int) -> Case:
    """Did messages of the second publisher arrive although the first queue hangs?

    Args:
        desk: a stage, or a run.
        least: how many messages.
    """
    played = Run.shown_by(desk)
    rows = measure.frames(played.rows, "basic.publish", event=SENT, from_peer=CLIENT)
    hangs = [row for row in played.rows if row.vantage == f"queue:{SLOW}"
             and row.kind in ("stalled", "resumed")]  # fmt: skip
    if not hangs or hangs[-1].kind != "stalled":
        return case("works", limit=_limit(played))
    since = hangs[-1].seq
    if not _reader_stopped(played.rows):
        sent = sum(row.seq > since and row.fields.get("routing_key") == SLOW for row in rows)
        return case("few", sent=sent, limit=_limit(played))
    there = sum(row.seq > since for row in measure.taken_in(played.rows, SECOND))
    return case("wrong" if there < least else "right", there=there)


def _limit(played: Run) -> int:
    """How many messages a queue that hangs takes before a reader stops, in a run like this one."""
    again = run(played.scenario, played.preset, played.parameters)
    return taken(flooded(again, 4 * _credit(played)).rows)


def _reader_stopped(rows: Sequence[Row]) -> bool:
    """Whether a reader is stopped at the end."""
    last = {row.vantage: row.event for row in rows if row.event in ("block", "unblock")}
    return any(place.startswith("reader:") and told == "block" for place, told in last.items())


# -- tables


@takes
def senders_table(fsync_us: Sequence[int], *, run_ms: int) -> Table:
    """What two senders bring in over each protocol, by the time of an fsync; a row a run.

    Args:
        fsync_us: how long an fsync of the quorum queues takes, in us.
        run_ms: how long they publish, in virtual time.
    """
    lines = []
    for us in fsync_us:
        world = benchmark("two_senders", run_ms=run_ms, protocol=BOTH, fsync_us=us)
        counts = [f"{number:,}" for number in _a_second(world).values()]
        *_, ratio, blocks = two_senders.compared(world)
        lines.append((f"{us / 1000:g} ms", *counts, f"{ratio.model:.2f}", f"{blocks.model:.0f}"))
    whole = two_senders.ARTICLE
    sums = [sum(n for (of, _), n in whole.items() if of == one) for one in (AMQP_1_0, AMQP_0_9_1)]
    counts = [f"{number * 1000 // two_senders.ARTICLE_MS:,}" for number in whole.values()]
    ratio_text, blocks_text = f"{sums[0] / sums[1]:.2f}", f"{two_senders.ARTICLE_BLOCKS}"
    lines.append((say("article"), *counts, ratio_text, blocks_text))
    return table_of("two-senders", lines)


def receivers(**given: Any) -> SharedSocket:
    """What a consumer gets beside a publisher of batches, with a slider for each of two causes.

    Beside it stand bars of what it gets otherwise: among them those of smaller batches.

    Args:
        given: parameters of all runs; `batch` among them.
    """
    new, separate = _consumed(AMQP_1_0, **given), _consumed(AMQP_0_9_1, **given, separate=True)
    whole = one_sender_one_receiver.ARTICLE
    factor = whole[AMQP_1_0, CLASSIC] / whole[AMQP_0_9_1, CLASSIC]
    chosen = one_sender_one_receiver.one_sender_one_receiver.defaults(preset_named("blog2024"))
    places_ms = int(chosen["prefetch"] or 0) * given["run_ms"]
    emptied = separate == given.get("preload", chosen["preload"])

    def after(got: int) -> str:
        got = max(1, got)
        return say("place", part=new / got, factor=factor, ms=places_ms / got)

    return SharedSocket(
        lambda octets, share: _consumed(
            AMQP_0_9_1, **given, socket_octets=octets, publishes_per_ack=share
        ),
        beside={
            "AMQP 1.0": new,
            say("emptied" if emptied else "separate"): separate,
            **{
                say("batch", batch=batch): _consumed(AMQP_0_9_1, **{**given, "batch": batch})
                for batch in SMALLER
                if batch < given["batch"]
            },
        },
        sockets=sorted({*SOCKETS, int(chosen["socket_octets"] or 0)}),
        shares=sorted({*SHARES, int(chosen["publishes_per_ack"] or 0)}),
        octets=int(chosen["socket_octets"] or 0),
        share=int(chosen["publishes_per_ack"] or 0),
        after=after,
    )


SOCKETS = (4_000, 8_000, 65_536, 1_000_000)
SHARES = (1, 4, 50)
SMALLER = (400, 2_000)


@takes
def handover_table(prefetch: int = 5) -> Table:
    """What the second consumer gets, by the way in which the first one leaves; a row a run."""
    messages = 3 * prefetch
    given = {"prefetch": prefetch, "messages": messages}
    begun = run("handover_091", "rmq4.3", given)
    graceful = run(
        "handover",
        "rmq4.3",
        {
            "way": GRACEFUL,
            "leave_after": prefetch,
            "messages": messages,
            "link_credit": prefetch,
        },
    ).then("grant", consumer="b", link_credit=messages - prefetch)
    runs = {
        say("cancelled"): begun.then("leave").then("leave", way=CLOSE),
        say("closed"): begun.then("leave", way=CLOSE),
    }
    lines = []
    for words, played in runs.items():
        again = sum(one.again for one in handover_091.seen(played) if one.consumer == "b")
        lines.append((words, *_row(_got(played), again)))
    later = [one for one in handover.seen(graceful) if one.consumer == "b"]
    numbers, again = [one.message for one in later], sum(one.again for one in later)
    lines.append((say("graceful"), *_row(numbers, again)))
    return table_of("handing-over", lines)


def _row(numbers: Sequence[int], again: int) -> tuple[str, str, str]:
    kept = say("order-kept" if list(numbers) == sorted(numbers) else "order-lost")
    return _words(numbers), str(again), kept
