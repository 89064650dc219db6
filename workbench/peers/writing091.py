"""Who writes next on an AMQP 0-9-1 client's connection, where several tasks share its socket."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from workbench.sim import Clock


class Writer091(Protocol):
    """A task, as what shares the socket out among tasks sees it.

    Attributes:
        publishes: what it writes are messages; otherwise acknowledgements.
        pause_us: which it needs before each message.
        scheduled: its next one is.
    """

    publishes: bool
    pause_us: int
    scheduled: bool

    @property
    def ready(self) -> bool:
        """It has something to write."""

    def write(self) -> None:
        """Writes one message or acknowledgement."""


class Socket091(Protocol):
    """A client, likewise."""

    clock: Clock

    @property
    def sends_at_once(self) -> bool:
        """Whether the socket takes something, and nothing waits for it."""

    @property
    def writers(self) -> Iterable[Writer091]:
        """Its tasks."""


class Sharing091(Protocol):
    """How tasks share the socket."""

    def go_on(self, client: Socket091, task: Writer091) -> None:
        """A task may have something to write, or the socket takes something again."""


class EachForItself:
    """Whoever has something writes it: a message in a clock event of its own, so that a person may
    act between two, and an acknowledgement at once. That one waits for the socket in the client,
    before any message that comes later.
    """  # noqa: D205

    def go_on(self, client: Socket091, task: Writer091) -> None:
        """Lets a task write, or schedules it."""
        if not task.publishes:
            while task.ready:
                task.write()
        elif not task.scheduled and task.ready and client.sends_at_once:
            task.scheduled = True
            client.clock.call_later(task.pause_us, self._write, client, task)

    def _write(self, client: Socket091, task: Writer091) -> None:
        task.scheduled = False
        if task.ready and client.sends_at_once:
            task.write()
        self.go_on(client, task)


class OneLock:
    """One lock: whoever has it writes one message or acknowledgement, and gives it up.

    Nobody gets it while the socket takes nothing. Publishers take turns. An acknowledgement waits
    while they publish: a thread that has just given up a lock and wants it again may be quicker
    than one that must be woken. How much quicker is a *hypothesis*.

    Args:
        publishes_per_ack: messages that go first while an acknowledgement waits.
        publish_us: how long the lock is held for a message.
        ack_us: how long for an acknowledgement. What needs no time is written at once, all of it
            in one clock event.
    """

    def __init__(self, publishes_per_ack: int = 1, *, publish_us: int = 0, ack_us: int = 0) -> None:
        self._publishes_per_ack = publishes_per_ack
        self._publish_us = publish_us
        self._ack_us = ack_us
        self._went_first = 0
        self._last: Writer091 | None = None  # who published last
        self._held = False

    def go_on(self, client: Socket091, task: Writer091) -> None:
        """Gives the lock to whoever is next, soon, if nobody has it."""
        if not self._held and task.ready and client.sends_at_once:
            self._held = True
            client.clock.call_soon(self._give, client)

    def _give(self, client: Socket091) -> None:
        while client.sends_at_once:
            task = self._next(client)
            if task is None:
                break
            us = self._publish_us if task.publishes else self._ack_us
            if us:
                client.clock.call_later(us, self._write, client, task)
                return
            task.write()
        self._held = False

    def _write(self, client: Socket091, task: Writer091) -> None:
        if task.ready:  # it may have been told to stop meanwhile
            task.write()
        self._give(client)

    def _next(self, client: Socket091) -> Writer091 | None:
        publishers, acknowledging = [], None
        for task in client.writers:
            if task.ready:
                if task.publishes:
                    publishers.append(task)
                else:
                    acknowledging = acknowledging or task
        if not publishers or (acknowledging and self._went_first >= self._publishes_per_ack):
            self._went_first = 0
            return acknowledging
        self._went_first += acknowledging is not None
        at = publishers.index(self._last) + 1 if self._last in publishers else 0
        self._last = publishers[at % len(publishers)]
        return self._last
