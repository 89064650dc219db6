"""The virtual clock: a heap of things to do, keyed `(t_us, priority, seq)`.

Three rules hold everywhere in the workbench:

1. Time is an integer number of microseconds and never runs backwards.
2. Of two events due at the same microsecond the one with the smaller priority number goes first;
   of two with the same priority, the one scheduled first. So a run has exactly one order.
3. Nothing happens between two events: a person may look, or act, between any two of them.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Any


class Priority(IntEnum):
    """Order of events that are due at the same microsecond."""

    REACT = 0  # what an end does about the frame it has just applied: before the next frame arrives
    NORMAL = 1


class ClockError(Exception):
    """A wrong use of the clock, such as scheduling in the past."""


class Timer:
    """A scheduled call; `cancel()` takes it back."""

    __slots__ = ("_clock", "args", "callback", "done", "idle", "t_us")

    def __init__(
        self,
        clock: VirtualClock,
        t_us: int,
        callback: Callable[..., None],
        args: tuple[Any, ...],
        idle: bool,
    ) -> None:
        self._clock = clock
        self.t_us = t_us
        self.callback = callback
        self.args = args
        self.idle = idle  # an idle timer (heartbeat) does not keep a run awake
        self.done = False  # ran, or cancelled

    def cancel(self) -> None:
        """Take the call back; a timer that has run or was cancelled is left as it is."""
        if not self.done:
            self.done = True
            if not self.idle:
                self._clock._due -= 1


class VirtualClock:
    """Virtual time, advanced only by `step`.

    Attributes:
        now_us: microseconds since the start of the run.
        epoch_us: when that was, in microseconds since 1970: virtual time begins there.
    """

    epoch_us = 0

    def __init__(self) -> None:
        self.now_us = 0
        self._heap: list[tuple[int, int, int, Timer]] = []
        self._seq = 0  # breaks ties: first scheduled, first served
        self._due = 0  # timers that keep the run awake: neither idle nor done
        self._steps = 0
        self._after: deque[Callable[[], None]] = deque()

    @property
    def due(self) -> int:
        """How many events are waiting, idle timers not counted; 0 means the run rests."""
        return self._due

    @property
    def next_us(self) -> int | None:
        """When the next event is due (idle timers included), or None."""
        self._forget_cancelled()
        return self._heap[0][0] if self._heap else None

    def call_at(
        self,
        t_us: int,
        callback: Callable[..., None],
        *args: Any,
        priority: int = Priority.NORMAL,
        idle: bool = False,
    ) -> Timer:
        """Schedule `callback(*args)` at the virtual time `t_us`.

        Raises:
            ClockError: if `t_us` lies before `now_us`.
        """
        if t_us < self.now_us:
            raise ClockError(
                f"cannot schedule at {t_us} us: it is already {self.now_us} us, and time never"
                " runs backwards; schedule now or later"
            )
        timer = Timer(self, t_us, callback, args, idle)
        heapq.heappush(self._heap, (t_us, priority, self._seq, timer))
        self._seq += 1
        if not idle:
            self._due += 1
        return timer

    def call_later(
        self,
        delay_us: int,
        callback: Callable[..., None],
        *args: Any,
        priority: int = Priority.NORMAL,
        idle: bool = False,
    ) -> Timer:
        """Schedule `callback(*args)` after `delay_us` microseconds."""
        return self.call_at(self.now_us + delay_us, callback, *args, priority=priority, idle=idle)

    def call_soon(
        self, callback: Callable[..., None], *args: Any, priority: int = Priority.NORMAL
    ) -> Timer:
        """Schedule `callback(*args)` at the present microsecond, behind what is already due."""
        return self.call_at(self.now_us, callback, *args, priority=priority)

    def at_once(self, callback: Callable[[], None]) -> None:
        """Call when the event under way is done, before any other, as a part of it.

        To be used within an event. For runs that are counted, not stepped: nobody can act before.
        """
        self._after.append(callback)

    def end_event(self) -> int:
        """Do what was to be done at once, as if the event under way were over.

        To be used at the very end of an event that may go on at a later time; see `go_on`.

        Returns:
            The place in the order of scheduling that a call has which was scheduled before that.
        """
        place, self._seq = self._seq, self._seq + 1
        after = self._after
        while after:
            after.popleft()()
        return place

    def go_on(self, t_us: int, place: int, callback: Callable[[], None]) -> Timer | None:
        """Let the time be `t_us` at once, if nothing else is due until then; else call then.

        What happens is the same; the clock's heap is spared. For runs that are counted, not
        stepped, and after `end_event`, which gave the place.

        Returns:
            None if it is `t_us` now: whoever calls goes on. Else the call's timer.
        """
        heap = self._heap
        if not heap or heap[0][0] > t_us:
            self.now_us = t_us
            self._steps += 1
            return None
        timer = Timer(self, t_us, callback, (), False)
        heapq.heappush(heap, (t_us, Priority.NORMAL, place, timer))
        self._due += 1
        return timer

    def step(self) -> bool:
        """Run the next event; False if there was none."""
        heap = self._heap
        while heap:
            t_us, _, _, timer = heapq.heappop(heap)
            if timer.done:
                continue
            timer.done = True
            if not timer.idle:
                self._due -= 1
            self.now_us = t_us
            self._steps += 1
            timer.callback(*timer.args)
            while self._after:
                self._after.popleft()()
            return True
        return False

    def run_until_rest(self, max_events: int = 1_000_000) -> int:
        """Step until nothing is due but idle timers.

        Args:
            max_events: bound on the number of steps, so that a run that feeds itself ends.

        Returns:
            The number of events that ran; `due` is 0 afterwards unless the bound was met.
        """
        ran = 0
        heap, after, pop = self._heap, self._after, heapq.heappop
        while self._due and ran < max_events:
            # As `step`, written out: a long run does little else.
            t_us, _, _, timer = pop(heap)
            if timer.done:
                continue
            timer.done = True
            if not timer.idle:
                self._due -= 1
            self.now_us = t_us
            self._steps += 1
            ran += 1
            timer.callback(*timer.args)
            while after:
                after.popleft()()
        return ran

    def overview(self) -> dict[str, int]:
        """Flat picture of the clock: `now_us`, `due`, `steps`."""
        return {"now_us": self.now_us, "due": self._due, "steps": self._steps}

    def _forget_cancelled(self) -> None:
        while self._heap and self._heap[0][3].done:
            heapq.heappop(self._heap)
