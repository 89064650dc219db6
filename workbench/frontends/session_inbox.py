"""A session's mailbox: frames of the client, messages of queues, and confirms, in one line.

Frames and messages cost the session its service time, each. A confirm costs it none of its own, but
it waits its turn like everything else: a session that has a hundred transfers before it hears of a
confirm when it has worked them off. It then keeps what it has heard, and tells it after the next
frame, or at once when nothing more waits (`rabbit_amqp_session.erl:handle_cast`, `noreply`,
`noreply_coalesce`).

A service time may have a part below a microsecond. What is left over is carried to the next one, so
that on a clock of whole microseconds a thousand frames take as long as they should.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, cast

from workbench.sim import Clock, Priority, Timer

NS_PER_US = 1_000
NORMAL, REACT = Priority.NORMAL, Priority.REACT
Task = Callable[[], None]


class SessionInbox:
    """One session at work.

    Args:
        clock: of the run.
        name: of the session in a trace.
        service_ns: what a frame of the client, or a message of a queue, takes.
        note: called when something came, or is about to be done, other than a confirm.
        rests: called when everything that came has been done and told.

    Attributes:
        tell: told all confirms that were heard since it was called last; set by whoever gathers
            them.
    """

    def __init__(
        self,
        clock: Clock,
        name: str,
        service_ns: int,
        *,
        note: Task,
        rests: Task,
    ) -> None:
        self.name = name
        self.tell: Callable[[list[Any]], None] = _nobody
        self._clock = clock
        self._service_ns = service_ns
        self._note = note
        self._rests = rests
        self._carry_ns = 0
        self._line: deque[Task | list[Any]] = deque()
        self._heard: list[Any] = []
        self._at_work = False
        self._timer: Timer | None = None
        self._waking = False

    @property
    def depth(self) -> int:
        """What waits or is being worked in; confirms that came one after the other are one."""
        return len(self._line)

    @property
    def busy(self) -> bool:
        """Something is still to be done, or to be told."""
        return self._at_work or self._waking or bool(self._line)

    def post(self, task: Task) -> None:
        """A frame or a message: done when its turn has come and its service time has passed."""
        self._line.append(task)
        if not self._at_work:
            self._begin()
        self._note()

    def confirm(self, confirm: Any) -> None:
        """A queue has decided on a message: the session hears of it in its turn."""
        line = self._line
        if not line and not self._at_work:
            self._heard.append(confirm)
            self._wake()
        elif line and type(line[-1]) is list:
            line[-1].append(confirm)
        else:
            line.append([confirm])

    def hear_all(self) -> None:
        """Tell every confirm that has come, before its turn: a link is about to end."""
        heard = [*self._heard]
        for item in self._line:
            if isinstance(item, list):
                heard += item
        self._heard = heard
        self._line = deque(item for item in self._line if not isinstance(item, list))
        self._tell()

    def clear(self) -> None:
        """The connection is gone: nothing of this is done."""
        self._line.clear()
        self._heard.clear()
        self._at_work = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        """Work begins on what is first in the line."""
        self._at_work = True
        ns = self._service_ns + self._carry_ns
        us = ns // NS_PER_US
        self._carry_ns = ns - us * NS_PER_US
        clock = self._clock
        priority = NORMAL if us else REACT
        self._timer = clock.call_at(clock.now_us + us, self._finish, priority=priority)

    def _finish(self) -> None:
        task: Any = self._line.popleft()
        assert type(task) is not list, "a confirm is never served"
        self._note()
        task()
        # The frame was worked in now, and is answered by an event of its own: after that.
        self._timer = self._clock.call_soon(self._next, priority=REACT)

    def _next(self) -> None:
        """What comes after a frame."""
        self._timer = None
        self._at_work = False
        if self._heard:
            self._tell()
        line = self._line
        while line and type(line[0]) is list:
            self._heard += cast(list[Any], line.popleft())
        if line:
            self._begin()
        elif self._heard:
            self._wake()
        else:
            self._rests()

    def _wake(self) -> None:
        """Nothing waits: what was heard is told as soon as what is due now has been done."""
        if not self._waking:
            self._waking = True
            self._clock.call_soon(self._idle)

    def _idle(self) -> None:
        self._waking = False
        if not self._at_work:
            self._tell()
            self._rests()

    def _tell(self) -> None:
        if self._heard:
            heard, self._heard = self._heard, []
            self.tell(heard)


def _nobody(confirms: list[Any]) -> None:
    raise AssertionError("confirms came for a session that has no publishers")
