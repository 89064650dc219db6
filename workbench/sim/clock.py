"""The virtual clock: things to do in the order of `(t_us, priority, seq)`.

Three rules hold everywhere in the workbench:

1. Time is an integer number of microseconds and never runs backwards.
2. Of two events due at the same microsecond the one with the smaller priority number goes first;
   of two with the same priority, the one scheduled first. So a run has exactly one order.
3. Nothing happens between two events: a person may look, or act, between any two of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any, Protocol

from msgspec import Struct


class Priority(IntEnum):
    """Order of events that are due at the same microsecond."""

    REACT = 0  # what an end does about the frame it has just applied: before the next frame arrives
    NORMAL = 1


REACT, NORMAL = Priority.REACT, Priority.NORMAL


class ClockError(Exception):
    """A wrong use of the clock, such as scheduling in the past."""


class Timer(Protocol):
    """A scheduled call.

    Attributes:
        t_us: when.
        done: it has run, or was cancelled.
    """

    t_us: int
    done: bool

    def cancel(self) -> None:
        """Take the call back; a timer that has run or was cancelled is left as it is."""


class Clock(Protocol):
    """Time, as whatever runs in it sees it: virtual, or that of an event loop.

    Attributes:
        epoch_us: when the clock's time was 0, in microseconds since 1970.
    """

    epoch_us: int

    @property
    def now_us(self) -> int:
        """Microseconds since the beginning."""

    def call_at(
        self,
        t_us: int,
        callback: Callable[..., None],
        *args: Any,
        priority: int = NORMAL,
        idle: bool = False,
    ) -> Timer:
        """Schedule `callback(*args)` at a time; an idle call does not keep a run awake."""

    def call_later(
        self,
        delay_us: int,
        callback: Callable[..., None],
        *args: Any,
        priority: int = NORMAL,
        idle: bool = False,
    ) -> Timer:
        """Schedule `callback(*args)` after `delay_us` microseconds."""

    def call_soon(self, callback: Callable[..., None], *args: Any, priority: int = NORMAL) -> Timer:
        """Schedule `callback(*args)` now, behind what is already due."""


class VirtualTimer(Struct, eq=False):
    """A scheduled call of a virtual clock; `cancel()` takes it back.

    Attributes:
        clock: that will call.
        t_us: when.
        callback: what is called.
        args: with what.
        idle: it does not keep a run awake, as a heartbeat.
        done: it ran, or was cancelled.
    """

    clock: VirtualClock
    t_us: int
    callback: Callable[..., None]
    args: tuple[Any, ...]
    idle: bool
    done: bool = False

    def cancel(self) -> None:
        """Take the call back; a timer that has run or was cancelled is left as it is."""
        if not self.done:
            self.done = True
            if not self.idle:
                self.clock._due -= 1


class VirtualClock:
    """Virtual time, advanced only by `step`.

    Attributes:
        now_us: microseconds since the start of the run.
        epoch_us: when that was, in microseconds since 1970: virtual time begins there.
    """

    epoch_us = 0

    def __init__(self) -> None:
        self.now_us = 0
        self._heap: list[tuple[int, int, int, VirtualTimer]] = []
        self._seq = 0  # breaks ties: first scheduled, first served
        self._due = 0  # timers that keep the run awake: neither idle nor done
        self._steps = 0
        # What is due at the present microsecond and was scheduled in it, by priority.
        self._present: tuple[deque[VirtualTimer], deque[VirtualTimer]] = (deque(), deque())

    @property
    def due(self) -> int:
        """How many events are waiting, idle timers not counted; 0 means the run rests."""
        return self._due

    @property
    def next_us(self) -> int | None:
        """When the next event is due (idle timers included), or None."""
        for waiting in self._present:
            if any(not timer.done for timer in waiting):
                return self.now_us
        while self._heap and self._heap[0][3].done:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def call_at(
        self,
        t_us: int,
        callback: Callable[..., None],
        *args: Any,
        priority: int = NORMAL,
        idle: bool = False,
    ) -> VirtualTimer:
        """Schedule `callback(*args)` at the virtual time `t_us`.

        Raises:
            ClockError: if `t_us` lies before `now_us`.
        """
        if t_us < self.now_us:
            raise ClockError(
                f"cannot schedule at {t_us} us: it is already {self.now_us} us, and time never"
                " runs backwards; schedule now or later"
            )
        timer = VirtualTimer(self, t_us, callback, args, idle)
        if t_us == self.now_us:
            self._present[priority].append(timer)
        else:
            heappush(self._heap, (t_us, priority, self._seq, timer))
            self._seq += 1
        if not idle:
            self._due += 1
        return timer

    def call_later(
        self,
        delay_us: int,
        callback: Callable[..., None],
        *args: Any,
        priority: int = NORMAL,
        idle: bool = False,
    ) -> VirtualTimer:
        """Schedule `callback(*args)` after `delay_us` microseconds."""
        return self.call_at(self.now_us + delay_us, callback, *args, priority=priority, idle=idle)

    def call_soon(
        self, callback: Callable[..., None], *args: Any, priority: int = NORMAL
    ) -> VirtualTimer:
        """Schedule `callback(*args)` at the present microsecond, behind what is already due."""
        return self.call_at(self.now_us, callback, *args, priority=priority)

    def step(self) -> bool:
        """Run the next event; False if there was none."""
        return self._run(1, idle=True) == 1

    def run_until_rest(self, max_events: int = 1_000_000) -> int:
        """Step until nothing is due but idle timers.

        Args:
            max_events: bound on the number of steps, so that a run that feeds itself ends.

        Returns:
            The number of events that ran; `due` is 0 afterwards unless the bound was met.
        """
        return self._run(max_events, idle=False)

    def overview(self) -> dict[str, int]:
        """Flat picture of the clock: `now_us`, `due`, `steps`."""
        return {"now_us": self.now_us, "due": self._due, "steps": self._steps}

    def _run(self, most: int, *, idle: bool) -> int:
        """Run events until nothing is due, or with `idle` until no timer waits; returns how many.

        What was scheduled for the present microsecond when it had come stands behind what was
        scheduled for it before, priority by priority.
        """
        heap, (react, normal) = self._heap, self._present
        ran = 0
        while ran < most and (self._due or idle):
            if react and not (heap and heap[0][0] == self.now_us and heap[0][1] == REACT):
                timer = react.popleft()
            elif normal and not (heap and heap[0][0] == self.now_us):
                timer = normal.popleft()
            elif heap:
                timer = heappop(heap)[3]
            else:
                break
            if timer.done:
                continue  # it was cancelled
            timer.done = True
            if not timer.idle:
                self._due -= 1
            self.now_us = timer.t_us
            self._steps += 1
            ran += 1
            timer.callback(*timer.args)
        return ran
