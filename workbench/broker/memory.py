"""The memory alarm: what the broker holds is added up, and above a limit no more is let in.

RabbitMQ looks once a second how much its process uses (`vm_memory_monitor.erl`), and has no
hysteresis: the alarm is set above the limit and cleared at or below it. Here the process may be a
notebook's kernel, of which the broker is a small part, so what counts is what the broker holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from workbench.sim import Clock, Tap, Timer

MEMORY = "memory"
CHECK_INTERVAL_US = 1_000_000  # rabbit_memory.hrl: DEFAULT_MEMORY_CHECK_INTERVAL
CHECKS_PER_LIMIT = 32


class Alarmed(Protocol):
    """A broker, as far as its memory goes.

    Attributes:
        alarms: those that are on.
        clock: of the run.
    """

    alarms: list[str]
    clock: Clock

    def set_alarm(self, resource: str = MEMORY) -> None:
        """A resource runs short."""

    def clear_alarm(self, resource: str = MEMORY) -> None:
        """It is there again."""


class MemoryMonitor:
    """Sets and clears the broker's memory alarm.

    Everything that the broker holds has come over a connection. So it is added up whenever another
    32nd part of the limit has come, and while the alarm is on once a second; an idle broker needs
    no timer, and the limit is passed by a 32nd part at most before the alarm is set.

    Args:
        broker: whose alarm it is.
        held: returns how many octets are held.
        limit: octets that may be held.
        tap: takes a row for each look while the alarm is on.

    Attributes:
        limit: octets that may be held.
        on_change: told when the alarm is set (True) or cleared (False).
    """

    def __init__(self, broker: Alarmed, held: Callable[[], int], limit: int, tap: Tap) -> None:
        self.limit = limit
        self._held = held
        self._broker = broker
        self._step = max(1, limit // CHECKS_PER_LIMIT)
        self._unchecked = 0
        self.on_change: Callable[[bool], None] = lambda _on: None
        self._set = False  # by this monitor: an alarm that a person has set stays
        self._next_look: Timer | None = None  # at the memory, while the alarm is on
        self._note = tap.bind(broker.clock, vantage="broker").note

    def received(self, octets: int) -> None:
        """Count octets that have come in, and check the memory if they are many."""
        self._unchecked += octets
        if self._unchecked >= self._step:
            self.check()

    def check(self) -> None:
        """Compare what is held with the limit; set or clear the alarm accordingly."""
        self._unchecked = 0
        above = self._held() > self.limit
        if above and not self._set and MEMORY not in self._broker.alarms:
            self._set = True
            self._broker.set_alarm(MEMORY)
            self.on_change(True)
            self._look_again()
        elif self._set and not above:
            self._set = False
            if self._next_look is not None:
                self._next_look.cancel()
            self._broker.clear_alarm(MEMORY)
            self.on_change(False)

    def _look_again(self) -> None:
        clock = self._broker.clock
        self._next_look = clock.call_later(CHECK_INTERVAL_US, self._check_again, idle=True)

    def _check_again(self) -> None:
        self._note("note", MEMORY, extra={"held": self._held(), "limit": self.limit})
        self.check()
        if self._set:
            self._look_again()
