"""When a reader stops: credit between processes, alarms, and whether anything is published.

A connection that has a cause and has published nothing since is *blocking*: it goes on. With the
next frame of a message it is *blocked*: its reader takes nothing more off the socket, not even the
rest of that message. The client is told of alarms alone (`rabbit_reader.erl:control_throttle`,
`publish_received`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

FLOW = "flow"
RUNNING, BLOCKING, BLOCKED = "running", "blocking", "blocked"
NEVER = -(10**18)


class Told(Protocol):
    """Whom a throttle tells."""

    def reading(self, on: bool) -> None:
        """The reader stops (False) or goes on."""

    def tell_blocked(self, reason: str) -> None:
        """The client is to be told that nothing it publishes is taken."""

    def tell_unblocked(self) -> None:
        """It is to be told that this is over."""


class Throttle:
    """What holds one connection's reader.

    Args:
        owner: whom it tells.
        now_us: gives the time.
        shown_us: how long a connection is shown in flow from when credit has stopped its reader.

    Attributes:
        stops: how often the reader has stopped.
    """

    def __init__(self, owner: Told, now_us: Callable[[], int], shown_us: int) -> None:
        self._owner = owner
        self._now_us = now_us
        self._shown_us = shown_us
        self._causes: dict[str, None] = {}
        self._published = False  # since a cause came
        self._stopped = False
        self._told = False
        self._by_flow_us = NEVER  # when credit stopped it last, and no alarm came while it did
        self.stops = 0

    @property
    def blocked(self) -> bool:
        """The reader takes nothing off the socket."""
        return self._stopped

    @property
    def state(self) -> str:
        """`running`, `blocking`, `blocked` or `flow`, as an operator is shown it."""
        recently = self._now_us() - self._by_flow_us < self._shown_us
        if not self._resources and (FLOW in self._causes or recently):
            return FLOW
        if self._stopped:
            return BLOCKED
        return BLOCKING if self._causes else RUNNING

    def credit(self, blocked: bool) -> None:
        """A channel grants nothing more, or goes on."""
        if blocked:
            self._causes[FLOW] = None
        else:
            self._causes.pop(FLOW, None)
        self._control()

    def alarms(self, resources: list[str]) -> None:
        """These resources run short now."""
        flow = [FLOW] if FLOW in self._causes else []
        self._causes = dict.fromkeys([*flow, *resources])
        self._control()

    def published(self) -> None:
        """A content header or a part of a body was read."""
        if self._causes:
            self._published = True
            self._control()

    @property
    def _resources(self) -> list[str]:
        return [cause for cause in self._causes if cause != FLOW]

    def _control(self) -> None:
        """Stop, or go on, and tell the client what it has to know."""
        self._published = stop = self._published and bool(self._causes)
        alarm = self._resources
        if stop and alarm and not self._told:
            self._told = True
            self._owner.tell_blocked(f"low on {' & '.join(sorted(alarm))}")
        elif self._told and not alarm:
            self._told = False
            self._owner.tell_unblocked()
        if stop and alarm:
            self._by_flow_us = NEVER
        elif stop and not self._stopped:
            self._by_flow_us = self._now_us()
        if stop is not self._stopped:
            self._stopped = stop
            self.stops += stop
            self._owner.reading(not stop)
