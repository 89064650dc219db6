"""The timer of a queue: when to look again for what is too old."""

from __future__ import annotations

from collections.abc import Callable

from workbench.sim import Clock, Timer


class QueueTimer:
    """One call at a time that may be put off or taken back.

    It is idle, as a heartbeat is: a run in which nothing else is due rests, and the messages grow
    old when somebody lets time pass.

    Args:
        clock: the run's clock.
        call: what to do then.
    """

    def __init__(self, clock: Clock, call: Callable[[], None]) -> None:
        self._clock = clock
        self._call = call
        self._timer: Timer | None = None
        self._over = False

    @property
    def armed(self) -> bool:
        """Whether a call is to come."""
        return self._timer is not None

    def set(self, deadline_us: int | None) -> None:
        """Call at that time, or at once if it has passed; None: not at all."""
        timer = self._timer
        if timer is not None:
            if timer.t_us == deadline_us and not timer.done:
                return
            timer.cancel()
            self._timer = None
        if deadline_us is not None and not self._over:
            at = max(deadline_us, self._clock.now_us)
            self._timer = self._clock.call_at(at, self._fire, idle=True)

    def stop(self) -> None:
        """Never call again."""
        self._over = True
        self.set(None)

    def _fire(self) -> None:
        self._timer = None
        self._call()
