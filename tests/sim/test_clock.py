"""The virtual clock: one order, never backwards."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.sim import ClockError, Priority, VirtualClock


def test_events_run_in_order_of_time_then_priority_then_scheduling() -> None:
    """The key is (t_us, priority, seq)."""
    clock = VirtualClock()
    ran: list[str] = []
    clock.call_at(20, ran.append, "late")
    clock.call_at(10, ran.append, "first of two")
    clock.call_at(10, ran.append, "second of two")
    clock.call_at(10, ran.append, "urgent", priority=Priority.REACT)
    clock.run_until_rest()
    assert ran == ["urgent", "first of two", "second of two", "late"]
    assert clock.now_us == 20


def test_scheduling_in_the_past_is_refused_and_changes_nothing() -> None:
    """Time never runs backwards."""
    clock = VirtualClock()
    clock.call_at(10, lambda: None)
    clock.step()
    with pytest.raises(ClockError, match=r"cannot schedule at 9 us: it is already 10 us"):
        clock.call_at(9, lambda: None)
    assert clock.due == 0


def test_an_idle_timer_does_not_keep_a_run_awake() -> None:
    """A run rests when nothing is due but idle timers; the clock does not move on to them."""
    clock = VirtualClock()
    ran: list[str] = []
    clock.call_at(5, ran.append, "early heartbeat", idle=True)
    clock.call_at(10, ran.append, "work")
    clock.call_at(1000, ran.append, "heartbeat", idle=True)
    clock.run_until_rest()
    assert ran == ["early heartbeat", "work"]
    assert clock.now_us == 10
    assert clock.next_us == 1000


def test_a_cancelled_timer_neither_runs_nor_counts() -> None:
    """Cancelling takes an event back, once."""
    clock = VirtualClock()
    ran: list[str] = []
    timer = clock.call_later(5, ran.append, "never")
    timer.cancel()
    timer.cancel()
    assert clock.due == 0
    assert clock.step() is False
    assert ran == []
    assert clock.next_us is None


def test_run_until_rest_stops_at_its_bound() -> None:
    """An event that feeds itself cannot run for ever."""
    clock = VirtualClock()

    def again() -> None:
        clock.call_later(1, again)

    again()
    assert clock.run_until_rest(max_events=100) == 100
    assert clock.due == 1


EVENT = st.tuples(st.integers(0, 3), st.sampled_from(Priority))
"""After how many microseconds, and how urgent."""


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(EVENT, max_size=12), st.lists(st.lists(EVENT, max_size=3), max_size=20))
def test_time_never_decreases_and_ties_keep_their_order(
    plan: list[tuple[int, Priority]], more: list[list[tuple[int, Priority]]]
) -> None:
    """What events schedule, for now or later, runs in the order of (t_us, priority, seq)."""
    clock = VirtualClock()
    ran: list[tuple[int, int, int]] = []
    waiting: list[tuple[int, int, int]] = []  # what a heap of the keys would hold
    later = iter(more)

    def schedule(events: list[tuple[int, Priority]]) -> None:
        for delay_us, priority in events:
            key = (clock.now_us + delay_us, int(priority), len(ran) + len(waiting))
            waiting.append(key)
            clock.call_later(delay_us, work, key, priority=priority)

    def work(key: tuple[int, int, int]) -> None:
        assert key == min(waiting)
        waiting.remove(key)
        ran.append(key)
        assert clock.now_us == key[0]
        schedule(next(later, []))

    schedule(plan)
    clock.run_until_rest()
    assert waiting == []
    assert [key[0] for key in ran] == sorted(key[0] for key in ran)
