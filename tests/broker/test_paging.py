"""The memory monitor: when queues page, how much, and what they are told."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import presets
from workbench.broker import Broker
from workbench.broker.paging import PagingMonitor
from workbench.queues import (
    Deliver,
    Message,
    Prefetch,
    QueueArguments,
    Reject,
    Release,
    Settle,
)
from workbench.sim import NoTap, VirtualClock
from workbench.trace.taps import Recorder

RMQ355 = presets.get("rmq3.5.5")
S = 1_000_000


class Told:
    """A queue that has so many seconds of its traffic in RAM."""

    def __init__(self, clock: VirtualClock, duration: float | None = 4.0) -> None:
        self.clock, self.duration = clock, duration
        self.told: list[tuple[int, float]] = []

    def ram_duration(self) -> float | None:
        return self.duration

    def set_ram_duration(self, seconds: float) -> None:
        self.told.append((self.clock.now_us, round(seconds, 3)))


class Rig:
    """A monitor of 1,000 octets, and how much of them is used."""

    def __init__(self, used: int = 0, **numbers: Any) -> None:
        self.clock, self.used, self.alarms = VirtualClock(), used, list[str]()
        preset = replace(RMQ355, **numbers)
        self.monitor = PagingMonitor(
            self.clock, preset, lambda: self.used, 1_000, self.alarms, NoTap()
        )

    def queue(self, duration: float | None = 4.0) -> Told:
        found = Told(self.clock, duration)
        self.monitor.watch(found)
        return found

    def until(self, t_us: int) -> None:
        until(self.clock, t_us)


def until(clock: VirtualClock, t_us: int) -> None:
    """Let time pass, up to and with that microsecond."""
    clock.call_at(t_us + 1, str)
    clock.run_until_rest()


@pytest.mark.parametrize(
    ("used", "desired"),
    [(499, math.inf), (500, 10.0), (800, 6.25), (949, 5.269), (950, 4.211), (2_000, 2.0)],
)
def test_from_half_of_the_limit_on_there_is_a_duration(used, desired) -> None:
    """The mean of what was reported, a second more below 95 %, over the part that is used."""
    rig = Rig(used)
    queue = rig.queue(4.0)
    rig.until(7 * S + S // 2)
    assert rig.monitor.desired_s == pytest.approx(desired, abs=0.001)
    assert queue.told[0] == (5 * S, math.inf)  # the answer to its report, worked out before


def test_a_shorter_duration_is_told_at_once_and_a_longer_one_with_the_next_report() -> None:
    """Every 2.5 s and every 5 s."""
    rig = Rig(2_000)
    queue = rig.queue(4.0)
    rig.until(8 * S)
    assert queue.told == [(5 * S, math.inf), (5 * S, 2.0)]  # the answer, then the monitor's turn
    rig.used = 1_000  # a longer one from now on: 4 s
    rig.until(9 * S)
    assert (rig.monitor.desired_s, len(queue.told)) == (2.0, 2)
    rig.until(14 * S)
    assert (rig.monitor.desired_s, queue.told[2:]) == (4.0, [(10 * S, 2.0)])
    rig.until(15 * S)
    assert queue.told[3:] == [(15 * S, 4.0)]


def test_a_queue_that_has_less_than_is_wanted_is_left_alone() -> None:
    """Only one whose duration, told or had, is longer than the one that is wanted."""
    rig = Rig(1_000)
    short, long = rig.queue(1.0), rig.queue(9.0)
    rig.until(8 * S)
    assert rig.monitor.desired_s == 5.0
    assert (len(short.told), long.told[-1]) == (1, (5 * S, 5.0))


def test_without_room_on_the_disk_nothing_is_paged() -> None:
    """The duration is endless at once."""
    rig = Rig(2_000)
    queue = rig.queue(4.0)
    rig.until(8 * S)
    queue.told.clear()
    rig.alarms.append("disk")
    rig.monitor.check()
    assert (rig.monitor.desired_s, queue.told) == (math.inf, [(8 * S + 1, math.inf)])


def test_a_queue_that_hangs_does_not_answer_and_one_that_is_deleted_is_forgotten() -> None:
    """Neither is told anything."""
    rig = Rig(1_000)
    hangs, gone = rig.queue(None), rig.queue(4.0)
    rig.monitor.forget(gone)
    rig.until(20 * S)
    assert hangs.told == gone.told == []


def test_no_limit_at_all_pages_everything() -> None:
    """A watermark of 0."""
    rig = Rig()
    rig.monitor.limit = 0
    rig.queue()
    rig.until(3 * S)
    assert rig.monitor.desired_s == 0.0


@pytest.mark.parametrize(("preset", "pages"), [("rmq3.5.5", True), ("rmq4.3", False)])
def test_a_queue_of_a_broker_short_of_memory_pages_by_its_own_rates(preset, pages) -> None:
    """1,000 messages of 10,000 octets in 10 s, and a limit of 12 MB: they leave the memory."""
    clock = VirtualClock()
    recorder = Recorder("test", now=lambda: clock.now_us)
    broker = Broker(clock, replace(presets.get(preset), index_embeds_below=4_096), recorder)
    broker.watch_memory(12_000_000)
    queue: Any = broker.declare("q")
    for number in range(1_000):
        message = Message(payload=bytes(10_000), durable=False)
        clock.call_at(10_000 * number, queue.publish, message)
    until(clock, 10 * S)
    before = broker.held_octets
    until(clock, 60 * S)
    written = broker.stores.transient.written
    assert (broker.paging is not None) is pages
    assert (written > 100) is pages
    assert before - broker.held_octets == 10_000 * (written - _written_until(recorder, 10 * S))


class Anybody:
    """A consumer that takes all it can get, and holds it."""

    def __init__(self) -> None:
        self.held: list[int] = []

    def deliver(self, effect: Deliver) -> None:
        self.held.append(effect.message.message_id)

    def can_take(self) -> bool:
        return True

    def limits_size(self) -> bool:
        return False

    def available(self, count: int) -> None:
        """Nothing."""

    def noticed(self) -> None:
        """Nothing."""


WORDS = ("publish", "attach", "detach", "settle", "release", "reject", "purge", "target")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 9)), min_size=10, max_size=30),
    st.booleans(),
)
def test_whatever_happens_to_a_queue_its_book_has_the_same_messages(words, short) -> None:
    """In the same order, ready or handed out; also where a limit drops the head."""
    clock = VirtualClock()
    broker = Broker(clock, replace(RMQ355, store_credit=5, store_regrant_after=2, store_io_batch=1))
    arguments = QueueArguments(max_length=6) if short else QueueArguments()
    queue: Any = broker.declare("q", arguments)
    taker: Anybody | None = None
    for word, number in [("publish", 9), ("attach", 4), *words]:
        if word == "publish":
            for size in range(number):
                queue.publish(Message(payload=bytes(4_000 + 100 * size), durable=number % 2 == 0))
        elif word == "attach" and taker is None:
            taker = Anybody()
            queue.attach("t", taker, mode=Prefetch(number + 1), settled=number == 0)
        elif word == "detach" and taker is not None:
            queue.detach("t")
            taker = None
        elif word in ("settle", "release", "reject") and taker is not None and number < 9:
            ids = tuple(one for one in queue.queue.unsettled_ids("t"))[:number]
            kinds = {"settle": Settle, "release": Release, "reject": Reject}
            queue.command(kinds[word](consumer="t", message_ids=ids))
        elif word == "purge":
            queue.purge(lambda _count: None)
        elif word == "target":
            queue.set_ram_target(None if number == 9 else number)
        if number % 3:
            clock.run_until_rest()
        places = queue.book.messages()
        told = [one.number for name in ("q4", "q3", "delta", "q2", "q1") for one in places[name]]
        assert told == [one.message_id for one in queue.queue.ready_messages()]
        assert queue.book.counts().acks == queue.queue.unsettled


def _written_until(recorder: Recorder, t_us: int) -> int:
    return sum(
        row.extra["messages"] for row in recorder.rows if row.kind == "paged" and row.t_us <= t_us
    )
