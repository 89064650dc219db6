"""Every question in twenty forms, and the file that holds what the runs answer to them.

`golden.json.gz` keeps, for each form, the answer, the step at which it can be seen, the reason, and
each misconception with its answer and its reason. Form 0 of a question is the one its lesson asks.

    python -m tests.exercises.golden                     says what differs from the file
    python -m tests.exercises.golden --reword            takes new words up, answers never
    python -m tests.exercises.golden --reword credit/    the same for questions of that beginning

A new question is taken up with `--reword`, too. Where answers are to be others, because a number
behind them is: look at what differs, remove the file, and make it anew with `--reword`.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from workbench import import_capture
from workbench.exercises import museum, recall
from workbench.exercises.audit import audited_run
from workbench.exercises.compare import compare_rules
from workbench.exercises.question import Question, Solution
from workbench.exercises.spark_answers import RECORDED, Answer, recorded
from workbench.exercises.spark_traces import cannot_tell
from workbench.exercises.timeout import timed_get
from workbench.lessons import (
    lesson_01,
    lesson_02,
    lesson_03,
    lesson_04,
    lesson_05,
    lesson_06,
    lesson_07,
    lesson_08,
    lesson_09,
    lesson_10,
    lesson_11,
)
from workbench.lessons.lesson_03 import drained, outdated
from workbench.lessons.lesson_04 import GENEROUS, at_start
from workbench.lessons.lesson_05 import stalled, waiting
from workbench.lessons.lesson_07 import disks, race
from workbench.lessons.lesson_09 import overloaded
from workbench.presets import UINT_MAX
from workbench.scenarios.run import Run, run
from workbench.scenarios.two_faces import faces
from workbench.trace.schema import OBSERVED, RECEIVED, SENT, Row
from workbench.trace.unknowns import unknowns

FILE = Path(__file__).with_name("golden.json.gz")
CAPTURES = Path(__file__).resolve().parents[2] / "data" / "captures"
NUMBER = 20
NEEDS_PROTON = ("credit/proton_again",)

Form = Callable[[int], Question]


@cache
def play(scenario: str, preset: str = "spec", **given: Any) -> Run:
    """A run, played once."""
    return run(scenario, preset, given)


@cache
def captured(name: str) -> Sequence[Row]:
    """The rows of a capture that comes with the project."""
    return import_capture(CAPTURES / f"{name}.pcapng").rows


def replaced(row: Row, **changes: Any) -> Row:
    """The row with some columns changed."""
    return dataclasses.replace(row, **changes)


def observed(played: Run) -> list[Row]:
    """A run as a recorder in the middle of its wire would have seen it."""
    seen = [row for row in played.rows if row.event == SENT]
    return [replaced(row, run="capture", seq=seq, event=OBSERVED) for seq, row in enumerate(seen)]


def queue(messages: int, **more: Any) -> Run:
    return play("credit", messages=messages, **more)


def granted(played: Run, link_credit: int) -> Run:
    return played.act(played.start_seq, "grant", link_credit=link_credit)


def arrival(played: Run, number: int) -> int:
    """`seq` of the row at which that message arrives."""
    rows = [row for row in played.rows if row.kind == "transfer" and row.event == RECEIVED]
    return rows[number - 1].seq


# -- lesson 01


def after_stop(i: int) -> Question:
    busy = granted(queue(60, latency_us=1000 + 100 * i), 40 - i % 7)
    return lesson_01.predict.after_stop.question(busy, arrival(busy, 2 + i % 5))


def fastest_rule(i: int) -> Question:
    given = (400, 1000, 20) if i == 0 else (40 + i, 200 * i, 2 + i)
    messages, latency_us, n = given
    return lesson_01.predict.fastest_rule.question(
        compare_rules(messages=messages, latency_us=latency_us, n=n)
    )


def rabbit_flows(i: int) -> Question:
    if i < 2:
        name = ("rmq43_b_consumer_credit", "rmq40_b_consumer_credit")[i]
        return lesson_01.predict.rabbit_flows.question(captured(name))
    empty = queue(0, initial_delivery_count=i)
    twice = lesson_01.granted_again(empty, (i, i), publish=i + i % 3)
    return lesson_01.predict.rabbit_flows.question(observed(twice))


CREDIT: dict[str, Form] = {
    "before_any_flow": lambda i: lesson_01.predict.before_any_flow.question(queue(10 + i)),
    "after_grant": lambda i: lesson_01.predict.after_grant.question(queue(10 + i % 3), 3 + i),
    "granted_twice": lambda i: lesson_01.predict.granted_twice.question(
        queue(0, initial_delivery_count=i), 50 - i, 120 - 5 * i
    ),
    "after_stop": after_stop,
    "after_acknowledging": lambda i: lesson_01.predict.after_acknowledging.question(
        granted(queue(10 + 2 * i), 3 + i)
    ),
    "fastest_rule": fastest_rule,
    "proton_again": lambda i: lesson_01.predict.proton_again.question(
        queue(30 + i, client="proton"), 10 + i
    ),
    "rabbit_flows": rabbit_flows,
}

# -- lesson 02


def a_race(i: int) -> Run:
    given = (20, 3, 6) if i == 0 else (UINT_MAX - i, 1 + i % 5, 5 + i % 9)
    start, first, grant = given
    return play("race", initial_delivery_count=start, first_credit=first, grants=str(grant))


def grants(i: int) -> list[int]:
    return [[3, 6], [3], [2, 7], [4, 5], [5]][i % 5]


STARTS = (4294967291, 20, 0, 2147483646, UINT_MAX, UINT_MAX - 2, 1000)

RACE: dict[str, Form] = {
    "crossing": lambda i: lesson_02.predict.crossing.question(a_race(i)),
    "which_order": lambda i: lesson_02.predict.which_order.question(
        a_race(i), ("set", "add")[i % 2]
    ),
    "sentence": lambda i: lesson_02.predict.sentence.question(),
    "bad_states": lambda i: lesson_02.predict.bad_states.question(
        10 - i % 4, grants(i), ("set", "add", "spec")[i % 3]
    ),
    "passing_rules": lambda i: lesson_02.predict.passing_rules.question(10 - i % 4, grants(i + 1)),
    "naive": lambda i: lesson_02.predict.naive.question(
        audited_run(4 - i % 3, initial_delivery_count=STARTS[i % len(STARTS)])
    ),
    "atm": lambda i: lesson_02.predict.atm.question(
        audited_run(3 + i, initial_delivery_count=20) if i % 2 == 0 else granted(queue(5), i)
    ),
    "noticed": lambda i: lesson_02.predict.noticed.question(
        audited_run(3 + i // 2, initial_delivery_count=STARTS[(i + 1) % len(STARTS)]),
        ("counts from zero", "believes the flow")[i % 2],
    ),
}

# -- lesson 03


def few(i: int) -> Run:
    return queue(3 + i, initial_delivery_count=20 + i)


def after_echo(i: int) -> Question:
    busy = granted(queue(60), 40 - i)
    return lesson_03.predict.after_echo.question(busy, arrival(busy, 2 + i % 5))


def asking(i: int) -> Run:
    return granted(play("asking", messages=10 + i), 4 + i % 5)


def real_drain(i: int) -> Question:
    if i < 2:
        return lesson_03.predict.real_drain.question(
            captured(("rmq43_c_drain", "rmq40_c_drain")[i])
        )
    return lesson_03.predict.real_drain.question(observed(drained(queue(i), 2 * i)))


DRAIN: dict[str, Form] = {
    "silence": lambda i: lesson_03.predict.silence.question(queue(0, latency_us=1000 + i), 1 + i),
    "drain_brings": lambda i: lesson_03.predict.drain_brings.question(few(i), 10 + i % 3),
    "drain_counts": lambda i: lesson_03.predict.drain_counts.question(few(i), 10 + i % 3),
    "after_drain": lambda i: lesson_03.predict.after_drain.question(drained(few(i), 10), 12 + i),
    "real_drain": real_drain,
    "crossing": lambda i: lesson_03.predict.crossing.question(
        timed_get(publish_at_us=5000), 4500 if i == 0 else 3000 + 250 * i, 1000 + 50 * (i % 3)
    ),
    "first_of_next": lambda i: lesson_03.predict.first_of_next.question(
        play("handover", way="outright", leave_after=3 if i == 0 else 1 + i % 4, link_credit=5 + i)
    ),
    "echo_brings": lambda i: lesson_03.predict.echo_brings.question(asking(i)),
    "after_echo": after_echo,
    "stale": lambda i: lesson_03.predict.stale.question(outdated(asking(i), publish=5 + i)),
}

# -- lesson 04


def cut(i: int) -> Run:
    return play(
        "windows", "rmq4.3",
        messages=1, message_bytes=4500 + 10 * i,
        max_frame_size=512 + 8 * i, client_window=3 + i % 5,
    )  # fmt: skip


def flowing(i: int) -> Run:
    return play(
        "windows", "rmq4.3",
        messages=30, client_window=10 + i, link_credit=30, broker_first_id=(4294967290 + i) % 2**32,
    )  # fmt: skip


def both(i: int) -> Run:
    return play("windows", "rmq4.3", publisher=True, publish_us=100, messages=20 + i)


def small_window(i: int) -> Run:
    return play(
        "windows", "rmq4.3",
        consumers=0, publisher=True, publish_us=100, broker_window=400 if i == 0 else 10 + 2 * i,
    )  # fmt: skip


def real_split(i: int) -> Question:
    if i == 0:
        return lesson_04.predict.real_split.question(captured("rmq43_e_large_message_split"))
    begun = cut(i)
    stopped = at_start(begun, "grant", link_credit=1)
    taken = stopped.then("grant", link_credit=0)
    opened = taken.then("open_window", frames=50)
    return lesson_04.predict.real_split.question(observed(opened))


WINDOWS: dict[str, Form] = {
    "stops_at": lambda i: lesson_04.predict.stops_at.question(cut(i), link_credit=1),
    "more_credit": lambda i: lesson_04.predict.more_credit.question(
        at_start(cut(i), "grant", link_credit=1), 5 + i
    ),
    "worked_out": lambda i: lesson_04.predict.worked_out.question(flowing(i), 4 + i % 5, 8 + i),
    "reopens_at": lambda i: lesson_04.predict.reopens_at.question(
        small_window(i), 1000 if i == 0 else 40 + 4 * i
    ),
    "held": lambda i: lesson_04.predict.held.question(
        play(
            "windows", "rmq4.3",
            messages=1000 - 20 * i, client_window=5 + i, link_credit=GENEROUS,
        )
    ),
    "real_split": real_split,
    "obeys": lambda i: lesson_04.predict.obeys.question(both(i), publish=50 + i),
    "tolerated": lambda i: lesson_04.predict.tolerated.question(
        both(i), publish=1000 if i == 0 else 300 + 50 * (i % 7)
    ),
    "consumers": lambda i: lesson_04.predict.consumers.question(both(i), 10 + i),
    "express": lambda i: lesson_04.predict.express.question(
        play("windows", "rmq4.3", messages=100 + i, client_window=5 + i % 4, link_credit=100)
    ),
}  # fmt: skip

# -- lesson 05


def alone(i: int) -> Run:
    return play("publishers", "rmq4.3", max_link_credit=170 if i == 0 else 20 + 3 * i)


def many(i: int) -> int:
    """More than one grant's worth."""
    return 600 if i == 0 else 90 + 10 * i


def beside_slow(i: int) -> Question:
    slow_us, number = (2000, 500) if i == 0 else (300 + 100 * i, 400 + 10 * i)
    fair, slow = (
        play("publishers", "rmq4.3", queues=3, service_us=pace).then("publish", count=number)
        for pace in ("50", f"50,50,{slow_us}")
    )
    return lesson_05.predict.beside_slow.question(fair, slow, "q1", "q3")


def real_regrant(i: int) -> Question:
    if i < 2:
        name = ("rmq43_a_publisher_grants", "rmq40_a_publisher_grants")[i]
        return lesson_05.predict.real_regrant.question(captured(name))
    return lesson_05.predict.real_regrant.question(
        observed(alone(i).then("publish", count=many(i)))
    )


PUBLISH: dict[str, Form] = {
    "regrant": lambda i: lesson_05.predict.regrant.question(alone(i), 400 if i == 0 else many(i)),
    "stall_takes": lambda i: lesson_05.predict.stall_takes.question(alone(i), many(i)),
    "one_confirmed": lambda i: lesson_05.predict.one_confirmed.question(alone(i), many(i), 1 + i),
    "settled_takes": lambda i: lesson_05.predict.settled_takes.question(
        play(
            "publishers", "rmq4.3",
            settled=True, **({} if i == 0 else {"max_link_credit": 20 + 3 * i}),
        ),
        many(i),
    ),
    "told_in": lambda i: lesson_05.predict.told_in.question(waiting("rmq4.3", 40 + i), 40 + i),
    "beside_slow": beside_slow,
    "both_ways": lambda i: lesson_05.predict.both_ways.question(
        stalled(play("publishers", "rmq4.3", consumer=True, ready=500 - 20 * i), 600),
        500 if i == 0 else 30 * i,
    ),
    "changed_setting": lambda i: lesson_05.predict.changed_setting.question(
        alone(i).then("publish", count=400 if i == 0 else many(i)), 10 + i, 200 + i
    ),
    "real_regrant": real_regrant,
}  # fmt: skip

# -- lesson 06


def chain(i: int, **more: Any) -> Run:
    """A chain with other credits in every form."""
    credit = (4 + i) * (2 + i % 3)
    given = {"message_bytes": 0, "credit": credit, "more_after": 4 + i, "max_link_credit": credit}
    return play("chain", "rmq4.3", **given, **more)


def stored(i: int) -> Run:
    store = {"persistent": True, "store_credit": (4 + i) * (9 + i % 4), "store_more_after": 4 + i}
    return chain(i, **store, service_us=0, socket_octets=0) if i else early_store()


def early_store() -> Run:
    """The notebook's: with few credits, and messages that are too large for the index."""
    given = {"credit": 8, "more_after": 4, "store_credit": 24, "store_more_after": 4}
    large = {"persistent": True, "message_bytes": 4096, "service_us": 0, "socket_octets": 0}
    return play("chain", "rmq3.5.5", **given, **large)


def mixed(i: int) -> Question:
    more = {"beside": True, "consume": True, "processing_us": 500}
    played = chain(i, **more, prefetch=3 + i % 7, ready=40 + i)
    return lesson_06.predict.ack_behind.question(played, 300 + i)


AMQP091: dict[str, Form] = {
    "chain_takes": lambda i: lesson_06.predict.chain_takes.question(
        play("chain", "rmq3.5.5", message_bytes=0) if i == 0 else chain(i), 450 + i
    ),
    "store_takes": lambda i: lesson_06.predict.store_takes.question(
        run("chain", "rmq4.3", {**stored(i).parameters, "message_bytes": 4096}), 400 + i
    ),
    "other_lane": lambda i: lesson_06.predict.other_lane.question(
        chain(i, beside=True), 240 + i, 12 + i
    ),
    "other_link": lambda i: lesson_06.predict.other_link.question(
        chain(i, beside=True), 240 + i, 12 + i
    ),
    "ack_behind": mixed,
    "four_times": lambda i: lesson_06.predict.four_times.question(6_250 - 150 * i, 40 + i),
    "receiver": lambda i: lesson_06.predict.receiver.question(2_000 + i, 60, 3_000 + i),
    "too_late": lambda i: lesson_06.predict.too_late.question(
        play("prefetch", "rmq4.3", messages=80), 5 + i, 20 + 2 * i
    ),
    "in_all": lambda i: lesson_06.predict.in_all.question(
        play("prefetch", ("rmq4.3", "rmq4.0")[i % 2], messages=80), 5 + i
    ),
    "first_after": lambda i: lesson_06.predict.first_after.question(
        play("handover_091", "rmq4.3", prefetch=5 + i, messages=60), ("cancel", "close")[i % 2]
    ),
}

# -- lesson 07


def replicas(i: int) -> Run:
    return play("quorum", "rmq4.3", replicas="5" if i % 2 == 0 else "3")


def times(i: int) -> dict[str, int]:
    if i == 0:
        return {"n1": 3, "n2": 9, "n3": 1, "n4": 40, "n5": 7}
    return {f"n{node}": 1 + (7 * i + 11 * node) % 37 for node in range(1, 6)}


SLOW = (["n1"], ["n2", "n4"], ["n1", "n2", "n3"], ["n5"], ["n2", "n3", "n4"])


@cache
def ways(n: int, fsync_us: int, send_us: int, virtual_us: int) -> Any:
    return race(n=n, fsync_us=fsync_us, send_us=send_us, virtual_us=virtual_us)


def best_way(i: int) -> Question:
    n = 100 if i == 0 else 4 + i % 5
    given = (5000, 100, 500_000) if i == 0 else (1000 + 500 * (i % 5), 50 + 10 * i, 60_000)
    return lesson_07.predict.best_way.question(ways(n, *given), n=n)


def beside(i: int) -> Question:
    # So slow that the quorum link is told from the other one: both send their first credit at once.
    slow_us = 20000 if i == 0 else max(18000, 9000 * i)
    fast_us, number = (1000, 500) if i == 0 else (500 * i, 400 + 5 * i)
    fast, slow = (
        play("two_targets", "rmq4.3", fsync_us=pace).then("publish", count=number)
        for pace in (fast_us, slow_us)
    )
    return lesson_07.predict.beside.question(fast, slow, "classic", "quorum")


QUORUM: dict[str, Form] = {
    "trigger": lambda i: lesson_07.predict.trigger.question(
        disks(play("quorum", "rmq4.3", replicas="5"), times(i))
    ),
    "slow_disks": lambda i: lesson_07.predict.slow_disks.question(
        play("quorum", "rmq4.3", replicas="5"), SLOW[i % len(SLOW)], 50 + i
    ),
    "who_resends": lambda i: lesson_07.predict.who_resends.question(replicas(i), pending=40 - i),
    "twice": lambda i: lesson_07.predict.twice.question(replicas(i), pending=40 - i),
    "beside": beside,
    "slower_sync": lambda i: lesson_07.predict.slower_sync.question(
        170 if i == 0 else 40 + 4 * i, 5000 if i == 0 else 4000 + 400 * i, 2 + i % 2 * 2
    ),
    "credit_bound": lambda i: lesson_07.predict.credit_bound.question(
        play(
            "quorum", "rmq4.3",
            replicas="1", fsync_us=0, latency_us=10000 if i == 0 else 500 * i,
        ),
        2500 if i == 0 else 300 + 50 * i,
    ),
    "best_way": best_way,
    "soft_limit": lambda i: lesson_07.predict.soft_limit.question(32 + i, 600 - 10 * i),
    "overshoot": lambda i: lesson_07.predict.overshoot.question(32 + i, 600 - 10 * i),
}  # fmt: skip

# -- lesson 08


def memory(i: int) -> Run:
    """Memory and messages of another size in every form."""
    given = {"limit_octets": 40_000 + 1_500 * i, "message_bytes": 400 + 10 * i, "ready": 20 + i}
    return play("memory", "rmq4.3", **given, prefetch=5 + i % 3, processing_us=5_000)


def all_clear(i: int) -> Question:
    size = 1_000 + 25 * i
    given = {"message_bytes": size, "messages": -(-60_000 // size)}
    times = {
        "processing_us": (4 + i % 2) * 1_000_000,
        "collected_us": (2 + i % 4) * 1_000_000,
        "reclaimed_us": (3 + i % 3) * 1_000_000,
    }
    return lesson_08.predict.all_clear.question(play("emergency_brake", "rmq1.5", **given, **times))


def first_go(i: int) -> Question:
    """As the lesson has it, and with fewer messages; every second time some are handed out."""
    given = {"messages": 20_000, "target": 8_000}
    if i:
        given = {"messages": 800 + 40 * i, "target": 300 + 10 * i, "store_credit": 60 + i}
        given |= {"store_regrant_after": 15 + 2 * i, "held": i % 2 * (500 + 30 * i)}
    return lesson_08.predict.first_go.question(play("paging", "rmq3.5.5", **given))


ALARMS: dict[str, Form] = {
    "fills": lambda i: lesson_08.predict.fills.question(memory(i), 140 + i),
    "who_is_told": lambda i: lesson_08.predict.who_is_told.question(memory(i), 140 + i),
    "goes_on": lambda i: lesson_08.predict.goes_on.question(memory(i), 140 + i),
    "one_publish": lambda i: lesson_08.predict.one_publish.question(memory(i), 140 + i),
    "newcomer": lambda i: lesson_08.predict.newcomer.question(memory(i), 140 + i),
    "heedless": lambda i: lesson_08.predict.heedless.question(
        play("emergency_brake", "rmq1.5", client="heedless", messages=60 + i)
        if i % 2 == 0
        else play("emergency_brake", "rmq1.8", client="silent", messages=60 + i)
    ),
    "all_clear": all_clear,
    "answers": lambda i: lesson_08.predict.answers.question(60 + i),
    "first_go": first_go,
    "lost_mirror": lambda i: lesson_08.predict.lost_mirror.question(
        play(
            "mirrors", "rmq3.5.5",
            credit=20 + 2 * i, more_after=5 + i % 4, mirror_death_us=(5 + i % 7) * 1_000_000,
        ),
        publish=70 + 5 * i,
    ),
}  # fmt: skip

# -- lesson 09


def qpid(i: int, **first: Any) -> Run:
    """Queues of Qpid's: the first as the lesson has them, the others with other marks."""
    if i == 0:
        return play("qpid", "qpid-cpp", **first)
    stop = 6 + i
    return play("qpid", "qpid-cpp", **{**first, "stop": stop, "resume": stop - 1 - i % 3})


def survives(i: int) -> Question:
    window, most = (6, 14) if i == 0 else ((3 + i % 4) * (i % 3 > 0), 15 + 2 * i)
    return lesson_09.predict.survives.question(
        qpid(i, window=window, most=most), publish=40 + i, every_us=2000 + 100 * i
    )


hung = cache(overloaded)


def holds_most(i: int) -> Question:
    publish, window = 1000 - 50 * (i % 3), 50 - 10 * (i % 3)
    return lesson_09.predict.holds_most.question(hung(publish, window), publish=publish)


QPID: dict[str, Form] = {
    "limit": lambda i: lesson_09.predict.limit.question(
        play("qpid", "qpid-cpp", stop=0, resume=0, most=10 + i, window=0), publish=14 + 2 * i
    ),
    "stops_at": lambda i: lesson_09.predict.stops_at.question(qpid(i), publish=12 + i),
    "goes_on_at": lambda i: lesson_09.predict.goes_on_at.question(qpid(i), publish=12 + i),
    "free_queue": lambda i: lesson_09.predict.free_queue.question(
        qpid(i, window=4 + i % 3), publish=qpid(i).parameters["stop"] + 1, free=6 + i % 5
    ),
    "survives": survives,
    "overshoot": lambda i: lesson_09.predict.overshoot.question(
        play(
            "qpid", "qpid-cpp", pause_us=10,
            stop=100 - 4 * i, resume=20, window=50 - 2 * i, second_window=15 + i % 4,
        ),
        publish=400 - 10 * i,
    ),
    "two_grants": lambda i: lesson_09.predict.two_grants.question(
        play("qpid_credit", "qpid-cpp", messages=20 + 2 * i), credit=4 + i % 8
    ),
    "holds_most": holds_most,
    "other_queue": lambda i: lesson_09.predict.other_queue.question(
        faces(40 + i, 2 + i % 5, most=5 + i), other=2 + i % 5
    ),
}  # fmt: skip

# -- lesson 10


def answer(name: str, rows: Iterable[Any]) -> Answer:
    return Answer(question=name, rows=list(rows), path=RECORDED)


def part(name: str, i: int) -> Answer:
    """The recorded answer, of its first rows some left out."""
    rows = recorded("shift", name)
    return answer(name, rows[i:] if name == "stalls" else rows)


def evidence(i: int) -> Question:
    rows = recorded("captures", "stalls")
    return lesson_10.predict.evidence.question(answer("stalls", rows[i % (len(rows) - 1) :]))


def claim(i: int) -> Question:
    if i == 0:
        return lesson_10.predict.claim.question(cannot_tell())
    played = play("publishers", "rmq4.3", settled=bool(i % 2), max_link_credit=20 + i)
    return lesson_10.predict.claim.question(
        unknowns(observed(played.then("publish", count=30 + i)))
    )


MILLION: dict[str, Form] = {
    "evidence": evidence,
    "longest": lambda i: lesson_10.predict.longest.question(
        part("rates", 0), {"stalls": part("stalls", i)}
    ),
    "nobody": lambda i: lesson_10.predict.nobody.question(
        part("rates", 0), {"stalls": part("stalls", i)}
    ),
    "most_lost": lambda i: lesson_10.predict.most_lost.question(
        part("stalls", i), {"lost": part("lost", 0)}
    ),
    "claim": claim,
}

# -- lesson 11: runs in place of a live server, whose rows differ from time to time


def server(i: int, *, source: str = "own", held: bool = False) -> Any:
    """What the questions read of a live server: its rows; `held`: no message arrives."""
    played = queue(10 + i)
    if held:
        played = played.then("hold", direction="b2c")
    played = granted(played, 4 + i)
    played = played.then("grant", link_credit=7 + 2 * i)
    rows = [
        replaced(row, ledger_source=source) if row.vantage.startswith("client") else row
        for row in played.rows
    ]
    stop = next(row.seq for row in rows if row.kind == "transfer") - 1 + i % 5
    words = json.dumps({"breakpoint": f"link_credit <= {i}"})
    rows[stop] = replaced(rows[stop], event="hold", connection="c1", frame={"extra_json": words})
    live = [replaced(row, run="live") for row in rows]
    return SimpleNamespace(rows=lambda: live)


CLIENT: dict[str, Form] = {
    "first_frame": lambda i: lesson_11.predict.first_frame.question(server(i)),
    "before_attach": lambda i: lesson_11.predict.before_attach.question(server(i)),
    "first_credit": lambda i: lesson_11.predict.first_credit.question(server(i), credit=4 + i),
    "brought": lambda i: lesson_11.predict.brought.question(server(i)),
    "next_credit": lambda i: lesson_11.predict.next_credit.question(server(i, held=True)),
    "stopped_at": lambda i: lesson_11.predict.stopped_at.question(server(i)),
    "whose_ledger": lambda i: lesson_11.predict.whose_ledger.question(
        server(i, source=("shadow", "own")[i % 2])
    ),
    "rows_per_frame": lambda i: lesson_11.predict.rows_per_frame.question(
        SimpleNamespace(rows=lambda: observed(queue(10 + i)) if i % 2 == 0 else queue(10 + i).rows)
    ),
}

MUSEUM: dict[str, Form] = {
    "piece": lambda i: museum.question(list(museum.PIECES)[i % len(museum.PIECES)]),
}

LESSONS: dict[str, tuple[ModuleType, dict[str, Form]]] = {
    "credit": (lesson_01, CREDIT),
    "race": (lesson_02, RACE),
    "drain": (lesson_03, DRAIN),
    "windows": (lesson_04, WINDOWS),
    "publish": (lesson_05, PUBLISH),
    "amqp091": (lesson_06, AMQP091),
    "quorum": (lesson_07, QUORUM),
    "alarms": (lesson_08, ALARMS),
    "qpid": (lesson_09, QPID),
    "million": (lesson_10, MILLION),
    "client": (lesson_11, CLIENT),
}
"""Lesson 12 asks of a mystery that a seed draws: `tests/lessons/test_lesson_12.py`."""


def asked() -> dict[str, Form]:
    """Every question by its name: those of the lessons, and those that are asked again later."""
    found = {}
    for lesson, (_, forms) in LESSONS.items():
        found |= {f"{lesson}/{name}": make for name, make in forms.items()}
    found |= {f"museum/{name}": make for name, make in MUSEUM.items()}
    for one in recall.known(recall.MODULES):
        found[f"recall/{one.lesson}/{one.name}"] = one.make
    return found


def facts(question: Question, solution: Solution) -> dict[str, Any]:
    """What a solution says, without its words."""
    return {
        "choices": len(question.choices),
        "answer": solution.answer,
        "seen": None if solution.seen is None else solution.seen.seq,
        "wrong": {belief.name: belief.answer for belief in solution.beliefs},
    }


def words(question: Question, solution: Solution) -> list[str]:
    """The words of a question and of its solution."""
    told = [question.text, *question.choices, solution.reason]
    return [*told, *(belief.because for belief in solution.beliefs)]


def form(make: Form, number: int) -> dict[str, Any]:
    """One form of a question as the file has it."""
    question = make(number)
    return entry(question, question.solve())


def entry(question: Question, solution: Solution) -> dict[str, Any]:
    """A question and its solution as the file has them."""
    return {**facts(question, solution), "words": words(question, solution)}


def kept() -> dict[str, list[dict[str, Any]]]:
    """What the file holds: by question, one entry a form."""
    with gzip.open(FILE, "rt", encoding="utf-8") as source:
        found: dict[str, list[dict[str, Any]]] = json.load(source)
    return found


def write(whole: dict[str, list[dict[str, Any]]]) -> None:
    """Write the file; the same answers give the same octets."""
    text = json.dumps(whole, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))


def differing(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """What differs between two entries."""
    for name in old.keys() | new.keys():
        if old.get(name) != new.get(name):
            yield f"{name}: {old.get(name)!r} was kept, it is {new.get(name)!r}"


def main() -> int:
    """Compare forms with the file; with `--reword`, take up words and what is new."""
    old = kept() if FILE.exists() else {}
    beginnings = tuple(one for one in sys.argv[1:] if one != "--reword") or ("",)
    new: dict[str, list[dict[str, Any]]] = {}
    refused = 0
    there = asked()
    for name, make in there.items():
        if name in old and not name.startswith(beginnings):
            new[name] = old[name]
            continue
        new[name] = [form(make, number) for number in range(NUMBER)]
        for number, (before, after) in enumerate(zip(old.get(name, []), new[name], strict=False)):
            # A new misconception changes no answer; one that is gone, or answered otherwise, does.
            more = before["wrong"].items() <= after["wrong"].items()
            for line in differing(before, after):
                refused += not line.startswith(("words: ", "wrong: ") if more else "words: ")
                sys.stdout.write(f"{name}, form {number}: {line}\n")
    gone = sorted(old.keys() - there.keys())
    gone_words = ", ".join(gone) or "none"
    sys.stdout.write(f"{len(new)} questions; gone: {gone_words}; answers differ: {refused}\n")
    if "--reword" in sys.argv and not refused and not gone:
        write(new)
    return 1 if refused or gone else 0


if __name__ == "__main__":
    raise SystemExit(main())
