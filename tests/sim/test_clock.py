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


def test_what_is_called_at_once_belongs_to_the_event_under_way() -> None:
    """Before any other event of that microsecond, in order, and no step of its own."""
    for step in (VirtualClock.step, VirtualClock.run_until_rest):
        clock = VirtualClock()
        ran: list[str] = []

        def first(clock: VirtualClock = clock, ran: list[str] = ran) -> None:
            clock.call_soon(ran.append, "urgent", priority=Priority.REACT)
            clock.at_once(lambda: ran.append("a"))
            clock.at_once(lambda: clock.at_once(lambda: ran.append("b")))
            ran.append("first")

        clock.call_later(3, first)
        step(clock)
        if step is VirtualClock.step:
            assert ran == ["first", "a", "b"]
            assert clock.due == 1
            clock.step()
        assert ran == ["first", "a", "b", "urgent"]
        assert clock.overview() == {"now_us": 3, "due": 0, "steps": 2}


def test_run_until_rest_stops_at_its_bound() -> None:
    """An event that feeds itself cannot run for ever."""
    clock = VirtualClock()

    def again() -> None:
        clock.call_later(1, again)

    again()
    assert clock.run_until_rest(max_events=100) == 100
    assert clock.due == 1


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3)), max_size=40))
def test_time_never_decreases_and_ties_keep_their_order(plan: list[tuple[int, int]]) -> None:
    """For any plan the executed keys are the sorted keys."""
    clock = VirtualClock()
    ran: list[tuple[int, int, int]] = []
    for seq, (t_us, priority) in enumerate(plan):
        key = (t_us, priority, seq)
        clock.call_at(t_us, lambda key=key: ran.append(key), priority=priority)
    clock.run_until_rest()
    assert ran == sorted(ran)
    assert len(ran) == len(plan)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    works=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    others=st.lists(st.integers(0, 20), max_size=6),
    soon=st.lists(st.integers(0, 3), max_size=8),
)
def test_an_event_that_goes_on_is_what_a_call_at_that_time_would_have_been(
    works: list[int], others: list[int], soon: list[int]
) -> None:
    """Same order, same times, whatever else is due; only the heap is spared."""

    def played(sparing: bool) -> list[tuple[int, str]]:
        clock = VirtualClock()
        log: list[tuple[int, str]] = []
        left, later = list(works), list(soon)

        def tell(what: str) -> None:
            log.append((clock.now_us, what))

        def at_the_end() -> None:
            tell("at the end")
            if later:
                clock.call_later(later.pop(0), tell, "later")

        def work() -> None:
            going = True
            while going:
                tell(f"work {len(left)}")
                clock.at_once(at_the_end)
                if not left:
                    return
                done_us = clock.now_us + left.pop(0)
                if sparing:
                    going = clock.go_on(done_us, clock.end_event(), work) is None
                else:
                    clock.call_at(done_us, work)
                    going = False

        for t_us in others:
            clock.call_at(t_us, tell, "other")
        clock.call_at(0, work)
        clock.run_until_rest()
        assert clock.due == 0
        return log

    assert played(True) == played(False)
