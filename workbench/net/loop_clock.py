"""The wall clock as a `Clock`, so that the same broker runs on a socket.

It keeps the virtual clock's three rules as far as a real clock can: whole microseconds that never
run backwards, reactions before other events of the same moment, first come first served. It is
used from its event loop's thread alone.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from workbench.sim import Priority

US_PER_S = 1_000_000
EVENTS_PER_TURN = 200
"""So many events run before the loop looks at its sockets again: no connection starves another."""


class LoopTimer:
    """A scheduled call; `cancel()` takes it back."""

    __slots__ = ("args", "callback", "done", "handle", "idle", "t_us")

    def __init__(
        self, t_us: int, callback: Callable[..., None], args: tuple[Any, ...], idle: bool
    ) -> None:
        self.t_us = t_us
        self.callback = callback
        self.args = args
        self.idle = idle
        self.done = False
        self.handle: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        """Take the call back; a timer that has run or was cancelled is left as it is."""
        self.done = True
        if self.handle is not None:
            self.handle.cancel()
            self.handle = None


class LoopClock:
    """Time of an asyncio loop, in microseconds since this clock was made.

    Args:
        loop: whose time it is, and which runs what is scheduled.
        on_error: told of an exception that a scheduled call lets escape; the clock goes on.

    Attributes:
        epoch_us: when it was made, in microseconds since 1970.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_error: Callable[[BaseException], None] | None = None,
    ) -> None:
        self._loop = loop
        self._origin = loop.time()
        self.epoch_us = time.time_ns() // 1000
        self._react: deque[LoopTimer] = deque()
        self._normal: deque[LoopTimer] = deque()
        self._turn_due = False
        self._on_error = on_error

    @property
    def now_us(self) -> int:
        """Microseconds since this clock was made."""
        return int((self._loop.time() - self._origin) * US_PER_S)

    def call_at(
        self,
        t_us: int,
        callback: Callable[..., None],
        *args: Any,
        priority: int = Priority.NORMAL,
        idle: bool = False,
    ) -> LoopTimer:
        """Schedule `callback(*args)` at a time; one that has passed means now."""
        return self.call_later(t_us - self.now_us, callback, *args, priority=priority, idle=idle)

    def call_later(
        self,
        delay_us: int,
        callback: Callable[..., None],
        *args: Any,
        priority: int = Priority.NORMAL,
        idle: bool = False,
    ) -> LoopTimer:
        """Schedule `callback(*args)` after `delay_us` microseconds."""
        if delay_us <= 0:
            timer = LoopTimer(0, callback, args, idle)
            self._enqueue(timer, priority)
            return timer
        timer = LoopTimer(self.now_us + delay_us, callback, args, idle)
        timer.handle = self._loop.call_later(delay_us / US_PER_S, self._enqueue, timer, priority)
        return timer

    def call_soon(
        self, callback: Callable[..., None], *args: Any, priority: int = Priority.NORMAL
    ) -> LoopTimer:
        """Schedule `callback(*args)` behind what is already due."""
        return self.call_later(0, callback, *args, priority=priority)

    def overview(self) -> dict[str, int]:
        """Flat picture of the clock: `now_us`, and `due`, the events that wait for their turn."""
        return {"now_us": self.now_us, "due": len(self._react) + len(self._normal)}

    # -- inside -----------------------------------------------------------------------------

    def _enqueue(self, timer: LoopTimer, priority: int) -> None:
        timer.handle = None
        (self._react if priority == Priority.REACT else self._normal).append(timer)
        if not self._turn_due:
            self._turn_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        react, normal = self._react, self._normal
        for _ in range(EVENTS_PER_TURN):
            if not react and not normal:
                break
            timer = (react or normal).popleft()
            if timer.done:
                continue
            timer.done = True
            try:
                timer.callback(*timer.args)
            except Exception as error:  # one connection's mishap must not stop the others
                if self._on_error is None:
                    raise
                self._on_error(error)
        self._turn_due = bool(react or normal)
        if self._turn_due:
            self._loop.call_soon(self._turn)
