"""A receiver that asks for one message at a time, and may give up waiting [2.6.8].

Figure 2.43: grant one credit and wait. Figure 2.44: the same with a time-out; when it runs out the
receiver sets drain, and only the sender's answer says how it ended. Either the message was on its
way and comes, or delivery-count has moved on and none will. Until then both are possible, so the
receiver waits until its credit is used up.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from workbench.amqp.errors import LocalProtocolError
from workbench.amqp.events import DeliveryReceived, Event, FlowReceived
from workbench.sim import Timer, VirtualClock

from .scripted import ScriptedReceiver


class Ending(Enum):
    """How a get ended."""

    MESSAGE = "message"
    LATE_MESSAGE = "message after the time-out"
    NOTHING = "nothing"


@dataclass(slots=True, kw_only=True)
class Get:
    """One asking.

    Attributes:
        asked_us: when credit was granted.
        timeout_us: how long it waits; None for ever.
        drained_us: when drain was set, if it was.
        ended_us: when it ended, if it has.
        ending: how it ended.
    """

    asked_us: int
    timeout_us: int | None = None
    drained_us: int | None = None
    ended_us: int | None = None
    ending: Ending | None = None


class Getter(ScriptedReceiver):
    """A receiver that can also get one message.

    Attributes:
        gets: every get so far; the last may be waiting.
    """

    def __init__(self, clock: VirtualClock, **arguments: Any) -> None:
        super().__init__(clock, **arguments)
        self.gets: list[Get] = []
        self._clock = clock
        self._timer: Timer | None = None

    @property
    def waiting(self) -> Get | None:
        """The get that has not ended."""
        return self.gets[-1] if self.gets and self.gets[-1].ending is None else None

    def get(self, timeout_us: int | None = None) -> Get:
        """Ask for one message.

        Args:
            timeout_us: after so many microseconds drain is set; None waits for ever.

        Raises:
            LocalProtocolError: a get is waiting, or the link has credit already: a message that
                comes could not be told from others.
        """
        if self.waiting is not None:
            raise LocalProtocolError(
                "a get is waiting for its message; legal now: wait, publish, or release what is"
                " held"
            )
        if self.link_credit:
            raise LocalProtocolError(
                f"the link has link-credit {self.link_credit}, so messages come without asking;"
                " legal now: stop or drain first"
            )
        asked = Get(asked_us=self._clock.now_us, timeout_us=timeout_us)
        self.grant(1)
        self.gets.append(asked)
        if timeout_us is not None:
            self._timer = self._clock.call_later(timeout_us, self._time_is_over, asked)
        return asked

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the receiver, with how its last get ended."""
        last = self.gets[-1].ending if self.gets else None
        ending = "waiting" if self.waiting is not None else (last.value if last else "")
        return {**super().overview(), "gets": len(self.gets), "ending": ending}

    # -- inside -------------------------------------------------------------------------------

    def _time_is_over(self, asked: Get) -> None:
        self._timer = None
        if asked.ending is None and self.attached:
            asked.drained_us = self._clock.now_us
            self.drain()

    def _handle(self, event: Event) -> None:
        waiting = self.waiting
        if waiting is not None:
            if isinstance(event, DeliveryReceived):
                in_time = waiting.drained_us is None
                self._end(waiting, Ending.MESSAGE if in_time else Ending.LATE_MESSAGE)
            elif isinstance(event, FlowReceived) and not self.link_credit:
                # delivery-count has moved on without a message: the credit is gone.
                self._end(waiting, Ending.NOTHING)
        super()._handle(event)

    def _end(self, asked: Get, ending: Ending) -> None:
        asked.ending = ending
        asked.ended_us = self._clock.now_us
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
