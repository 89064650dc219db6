"""The memory monitor: how long a stretch of their traffic classic queues may have in RAM.

Every 2.5 s it compares the memory that is used with the limit of the memory alarm. From half of the
limit on (`paging_ratio`) it works out a duration, in seconds: the mean of what queues have told,
less by as much as memory is short. Each queue makes a number of messages out of it by its own rates
(`VariableQueue.set_duration`), so busy queues may keep more. Queues are told at once when it
becomes less, and otherwise with the answer to their own report, every 5 s. While the disk is short
nothing is to be paged out (`rabbit_memory_monitor.erl`).

Its timers are idle, as those of ages: a run rests while memory is short, and goes on paging when
time passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Protocol

from workbench.presets import Preset
from workbench.sim import Clock, Tap

DISK = "disk"
NEARLY_ALL, MORE_S = 0.95, 1.0
"""Below so much of the limit the sum of durations is raised by so much: queues that were paged out
whole would else never get any (SUM_INC_THRESHOLD, SUM_INC_AMOUNT)."""


class PagingQueue(Protocol):
    """A queue at work that pages messages out."""

    def ram_duration(self) -> float | None:
        """For how many seconds of its traffic it has messages in RAM; None: it does not answer."""

    def set_ram_duration(self, seconds: float) -> None:
        """Let messages for so many seconds of its traffic be in RAM, and page out the others."""


class _Told:
    """What a queue and the monitor have told each other; endless before."""

    def __init__(self) -> None:
        self.reported = self.sent = math.inf


class PagingMonitor:
    """One broker's.

    Args:
        clock: of the run.
        preset: from which part of the limit on queues page, and how often who looks.
        used: returns how many octets are used.
        limit: octets at which the memory alarm is set.
        alarms: those that are on.
        tap: observer of what happens inside.

    Attributes:
        limit: see above.
        desired_s: the duration that is wanted now, in seconds; endless: any.
    """

    def __init__(
        self,
        clock: Clock,
        preset: Preset,
        used: Callable[[], int],
        limit: int,
        alarms: Collection[str],
        tap: Tap,
    ) -> None:
        self.limit = limit
        self.desired_s = math.inf
        self._clock = clock
        self._preset = preset
        self._used = used
        self._alarms = alarms
        self._note = tap.bind(clock, vantage="broker").note
        self._queues: dict[PagingQueue, _Told] = {}
        self._ticks = False

    def watch(self, queue: PagingQueue) -> None:
        """A queue was declared."""
        if not self._ticks:
            self._ticks = True
            self._clock.call_later(self._preset.paging_check_us, self._tick, idle=True)
        self._queues[queue] = _Told()
        self._clock.call_later(self._preset.paging_report_us, self._report, queue, idle=True)

    def forget(self, queue: PagingQueue) -> None:
        """It was deleted."""
        self._queues.pop(queue, None)

    def check(self) -> None:
        """Work out the duration anew, and tell queues what may not wait."""
        before, self.desired_s = self.desired_s, self._desired()
        now = self.desired_s
        if now != before:
            told = None if now == math.inf else int(now * 1_000)
            self._note(
                "note",
                "ram-duration",
                extra={"duration_ms": told, "used": self._used(), "limit": self.limit},
            )
        if not self._presses(before):
            return
        for queue, told_to in list(self._queues.items()):
            if self._presses(told_to.sent) and self._presses(told_to.reported):
                told_to.sent = now
                queue.set_ram_duration(now)

    def _presses(self, than: float) -> bool:
        """Whether the duration that is wanted is a reason to speak to whom another was told.

        A shorter one is, so that memory becomes free in time; without room on the disk a longer
        one is, so that writing ends.
        """
        return self.desired_s > than if DISK in self._alarms else self.desired_s < than

    def _desired(self) -> float:
        if DISK in self._alarms:
            return math.inf
        if self.limit <= 0:
            return 0.0
        ratio = self._used() / self.limit
        reported = [one.reported for one in self._queues.values() if one.reported < math.inf]
        if ratio < self._preset.paging_ratio or not reported:
            return math.inf
        more = MORE_S if ratio < NEARLY_ALL else 0.0
        return (sum(reported) + more) / len(reported) / ratio

    def _tick(self) -> None:
        self._ticks = bool(self._queues)
        if self._ticks:
            self.check()
            self._clock.call_later(self._preset.paging_check_us, self._tick, idle=True)

    def _report(self, queue: PagingQueue) -> None:
        """A queue's own turn: it tells, and does what it is told."""
        told = self._queues.get(queue)
        if told is None:
            return
        duration = queue.ram_duration()
        if duration is not None:
            told.reported, told.sent = duration, self.desired_s
            queue.set_ram_duration(self.desired_s)
        self._clock.call_later(self._preset.paging_report_us, self._report, queue, idle=True)
