"""A machine's memory: what the broker holds of it, what it has freed, and what others hold.

What a message took is free for others only after two steps: the Erlang machine collects its
garbage, and then gives the memory back to the system. Until the first it is garbage; between the
two it is the process's own, which takes it first when it needs more. Both steps take their time,
which is a parameter, and no prediction.

What is compared with the watermark depends on the release: RabbitMQ 1.5.0 looks at what is in use
on the machine (`rabbit_memsup_linux.erl`), 1.8.0 to 3.6.10 at what the Erlang machine counts itself
(`vm_memory_monitor.erl`: `erlang:memory(total)`), later ones at what the system counts for the
process. All look once a second, and know no hysteresis.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from workbench.sim import Tap, Timer

from .memory import CHECK_INTERVAL_US, MEMORY, Alarmed

MACHINE, USED = "machine", "used"
EXHAUSTION_STEPS = 256  # what came is added up so often on the way to the machine's last octet
ARTICLE_BEGAN = datetime(2008, 11, 9, 15, 13, 26, tzinfo=UTC)


class SystemMemoryError(ValueError):
    """A size or a watermark that cannot be; the text says what can."""


class Logged(NamedTuple):
    """An entry of the broker's log: the alarm was set, or cleared."""

    t_us: int
    on: bool


class Part(NamedTuple):
    """Octets on their way back to the system, and when the next step is over."""

    due_us: int
    octets: int


class SystemMemory:
    """Sets and clears the broker's memory alarm by a model of its machine.

    Args:
        broker: whose alarm it is.
        held: returns how many octets the broker holds.
        total: octets of the machine.
        others: octets that others hold.
        watermark: fraction of `total` above which the alarm is set.
        counts: what is compared with it: `machine`, `resident` or `used`.
        collected_us: how long after it was freed memory is garbage.
        reclaimed_us: how long after that it still counts for the process.
        tap: takes a row whenever a look finds a change.
        exhausted: called once, when the machine has no octet left.
        alarms: whether it sets any (`memory_alarms` in RabbitMQ 1.5.0's application file).

    Attributes:
        total, others, watermark: as given; they may change.
        log: what an operator reads.
        most: octets in use at most, whenever somebody looked.
        gone: the machine has had no octet left.

    Raises:
        SystemMemoryError: a size is below 0, or the watermark no fraction.
    """

    def __init__(
        self,
        broker: Alarmed,
        held: Callable[[], int],
        *,
        total: int,
        others: int,
        watermark: float,
        counts: str,
        collected_us: int,
        reclaimed_us: int,
        tap: Tap,
        exhausted: Callable[[], None],
        alarms: bool = True,
    ) -> None:
        self._alarms = alarms
        self.total = _size("total", total, least=1)
        self.others = _size("others", others)
        self.watermark = checked_watermark(watermark)
        self.log: list[Logged] = []
        self.most = others
        self.gone = False
        self._broker = broker
        self._held = held
        self._counts = counts
        self._collected_us = _size("collected_us", collected_us)
        self._reclaimed_us = _size("reclaimed_us", reclaimed_us)
        self._exhausted = exhausted
        self._note = tap.bind(broker.clock, vantage="broker").note
        self._last = 0  # held, when somebody looked
        self._garbage: deque[Part] = deque()
        self._spare: deque[Part] = deque()  # collected, and not given back
        self._step = max(1, total // EXHAUSTION_STEPS)
        self._unseen = 0
        self._told: dict[str, int] = {}
        self._on = False
        self._timer_idle = True
        self._timer: Timer = self._in(CHECK_INTERVAL_US, idle=True)

    # -- what there is ----------------------------------------------------------------------

    @property
    def garbage(self) -> int:
        """Octets that were freed, and not collected."""
        return sum(part.octets for part in self._garbage)

    @property
    def spare(self) -> int:
        """Octets that were collected, and not given back to the system."""
        return sum(part.octets for part in self._spare)

    @property
    def in_use(self) -> int:
        """Octets of the machine that are not free."""
        return self.others + self._last + self.garbage + self.spare

    @property
    def compared(self) -> int:
        """Octets that are compared with the watermark."""
        used = self._last + self.garbage
        if self._counts == USED:
            return used
        return used + self.spare + (self.others if self._counts == MACHINE else 0)

    @property
    def limit(self) -> float:
        """Octets above which the alarm is set."""
        return self.watermark * self.total

    # -- what changes it --------------------------------------------------------------------

    def set_watermark(self, fraction: float) -> None:
        """Change it; the next look goes by it (`memsup:set_sysmem_high_watermark`).

        Raises:
            SystemMemoryError: it is no fraction.
        """
        self.watermark = checked_watermark(fraction)
        self._awake()

    def set_others(self, octets: int) -> None:
        """Let others hold so much.

        Raises:
            SystemMemoryError: it is below 0.
        """
        self.others = _size("others", octets)
        self._awake()

    def received(self, octets: int) -> None:
        """So many octets have come over a connection: there will be something to see."""
        if self._timer_idle:
            self._awake()
        self._unseen += octets
        if self._unseen >= self._step:
            self._look()

    # -- looking ----------------------------------------------------------------------------

    def check(self) -> None:
        """Compare, and set or clear the alarm accordingly."""
        before = self._last
        self._look()
        above = self._alarms and self.compared > self.limit
        if above and not self._on and MEMORY not in self._broker.alarms:
            self._turn(True)
        elif self._on and not above:
            self._turn(False)
        self._tell()
        pending = bool(self._garbage or self._spare or self._last != before)
        if not self.gone:
            self._timer = self._in(CHECK_INTERVAL_US, idle=not pending)

    def _turn(self, on: bool) -> None:
        self._on = on
        self.log.append(Logged(self._broker.clock.now_us, on))
        (self._broker.set_alarm if on else self._broker.clear_alarm)(MEMORY)

    def _look(self) -> None:
        """Add up what is held now, and move on what is due."""
        self._unseen = 0
        now_us = self._broker.clock.now_us
        held = self._held()
        freed, self._last = self._last - held, held
        if freed > 0:
            self._garbage.append(Part(now_us + self._collected_us, freed))
        while self._garbage and self._garbage[0].due_us <= now_us:
            due_us, octets = self._garbage.popleft()
            self._spare.append(Part(due_us + self._reclaimed_us, octets))
        while self._spare and self._spare[0].due_us <= now_us:
            self._spare.popleft()
        while freed < 0 and self._spare:  # what it needs now it takes from its own first
            due_us, octets = self._spare.pop()
            freed += octets
            if freed > 0:
                self._spare.append(Part(due_us, freed))
        self.most = max(self.most, self.in_use)
        if self.in_use > self.total and not self.gone:
            self.gone = True
            self._timer.cancel()
            self._exhausted()

    def _tell(self) -> None:
        told = {
            "total": self.total,
            "others": self.others,
            "held": self._last,
            "garbage": self.garbage,
            "spare": self.spare,
            "compared": self.compared,
            "limit": int(self.limit),
        }
        if told != self._told:
            self._told = told
            self._note("note", MEMORY, extra=told)

    def _in(self, delay_us: int, *, idle: bool) -> Timer:
        self._timer_idle = idle
        return self._broker.clock.call_later(delay_us, self.check, idle=idle)

    def _awake(self) -> None:
        """Something happens: the run does not rest before the next look."""
        if self._timer_idle and not self.gone:
            self._timer.cancel()
            self._timer = self._in(self._timer.t_us - self._broker.clock.now_us, idle=False)

    # -- what an operator reads -------------------------------------------------------------

    def log_lines(self, began: datetime = ARTICLE_BEGAN) -> list[str]:
        """The broker's log about the alarm, two lines an entry, as error_logger writes them.

        Args:
            began: what the machine's clock showed when the run began.
        """
        name = f"{'system' if self._counts == MACHINE else 'vm'}_memory_high_watermark"
        lines = []
        for t_us, on in self.log:
            at = began + timedelta(microseconds=t_us)
            what = f"{{set,{{{name},[]}}}}" if on else f"{{clear,{name}}}"
            lines += [
                f"=INFO REPORT==== {at.day}-{at:%b-%Y}::{at:%H:%M:%S} ===",
                f"    alarm_handler: {what}",
            ]
        return lines

    def overview(self) -> dict[str, Any]:
        """Flat picture: what is held by whom, and the limit."""
        return {**self._told, "alarm": self._on, "gone": self.gone}


def checked_watermark(fraction: float) -> float:
    """The watermark, if it can be one.

    Raises:
        SystemMemoryError: it is not; the text says what is legal.
    """
    if not 0 < fraction <= 1:
        raise SystemMemoryError(
            f"watermark {fraction:g} is no part of the memory; legal: above 0, up to 1, such as"
            " 0.95"
        )
    return fraction


def _size(name: str, octets: int, least: int = 0) -> int:
    if octets < least:
        raise SystemMemoryError(f"{name} is {octets}; legal: {least} or more")
    return octets
