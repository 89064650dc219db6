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

from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.events import DeliveryReceived, Event, FlowReceived
from workbench.sim import Timer

from .links import Consumer, Overview


class Ending(Enum):
    """How a get ended: in time, with a message that crossed the drain, or without one."""

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
        ending: how it ended.
    """

    asked_us: int
    timeout_us: int | None = None
    drained_us: int | None = None
    ending: Ending | None = None


class Getter(Consumer):
    """A consumer that can also get one message.

    However it ends (in time, by drain, by a stop or a detach of somebody's hand) a get ends once,
    with its message or with nothing, and with nothing only when none can come any more.

    Attributes:
        gets: every get so far; the last may be waiting.
    """

    def __init__(self, *where: str, **arguments: Any) -> None:
        super().__init__(*where, **arguments)
        self.gets: list[Get] = []
        self._timer: Timer | None = None
        self._echoes = 0  # asked for and not yet answered
        self._count = 0  # delivery-count after the last event

    @property
    def waiting(self) -> Get | None:
        """The get that has not ended."""
        return self.gets[-1] if self.gets and self.gets[-1].ending is None else None

    @property
    def may_get(self) -> bool:
        """Whether no get is waiting and no credit is left, so that a get would be unambiguous."""
        return self.waiting is None and not self.link_credit

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
        asked = Get(asked_us=self.client.clock.now_us, timeout_us=timeout_us)
        self.grant(1)
        self.gets.append(asked)
        if timeout_us is not None:
            self._timer = self.client.clock.call_later(timeout_us, self._time_is_over, asked)
        return asked

    def drain(self) -> None:
        """Ask for the present credit to be used up or given back; a get waits no longer."""
        super().drain()
        if self.waiting is not None and self.waiting.drained_us is None:
            self.waiting.drained_us = self.client.clock.now_us

    def echo(self) -> None:
        """Ask for the sender's state."""
        super().echo()
        self._echoes += 1

    def stop(self) -> None:
        """Credit 0 and echo: after the answer nothing more comes [2.6.10]."""
        super().stop()
        self._echoes += 1

    def detach(self) -> None:
        """Close the link; what a get asked for is taken back by the sender."""
        super().detach()
        self.lost()

    def overview(self) -> Overview:
        """Flat picture of the consumer, with how its last get ended."""
        last = self.gets[-1].ending if self.gets else None
        ending = "waiting" if self.waiting is not None else (last.value if last else "")
        return {**super().overview(), "gets": len(self.gets), "ending": ending}

    # -- inside -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Notes where the sender's delivery-count begins."""
        assert self.link is not None
        self._count = self.link.delivery_count or 0
        super().begin()

    def lost(self) -> None:
        """Without a link nothing can come any more."""
        if self.waiting is not None:
            self._end(self.waiting, Ending.NOTHING)

    def _time_is_over(self, asked: Get) -> None:
        self._timer = None
        if asked.ending is None and asked.drained_us is None and self.attached:
            self.drain()

    def handle(self, event: Event) -> None:
        """Sees whether a get has ended."""
        assert self.link is not None
        moved = self.link.delivery_count != self._count
        self._count = self.link.delivery_count or 0
        if isinstance(event, FlowReceived):
            # Only a sender that drains moves its count on in a flow [2.6.7]. Any other flow answers
            # an echo, and the answer to an earlier echo is not yet the answer to the stop.
            if not moved:
                self._echoes = max(0, self._echoes - 1)
            last_word = not self.link_credit and (moved or self._echoes == 0)
            if self.waiting is not None and last_word:
                self._end(self.waiting, Ending.NOTHING)
        elif isinstance(event, DeliveryReceived) and self.waiting is not None:
            in_time = self.waiting.drained_us is None
            self._end(self.waiting, Ending.MESSAGE if in_time else Ending.LATE_MESSAGE)
        super().handle(event)

    def _end(self, asked: Get, ending: Ending) -> None:
        asked.ending = ending
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
