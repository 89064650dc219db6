"""The mailbox of a replica's process: clients' commands wait until it takes some of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from workbench.queues.quorum_commands import Logged
from workbench.sim import VirtualClock

COMMANDS_PER_TURN = 16  # ra_server_proc.erl: FLUSH_COMMANDS_SIZE

Commands = tuple[Logged, ...]


class Intake:
    """Takes some commands at a time; each costs the process a service time.

    Args:
        clock: of the run.
        command_us: service time of one command.
        take: what is done with those that are taken.

    Attributes:
        suspended: nothing is taken.
        closed: the process is gone.
    """

    __slots__ = ("_clock", "_command_us", "_inbox", "_take", "_turn", "closed", "suspended")

    def __init__(
        self, clock: VirtualClock, command_us: int, take: Callable[[Commands], None]
    ) -> None:
        self.suspended = False
        self.closed = False
        self._clock = clock
        self._command_us = command_us
        self._take = take
        self._inbox: deque[Logged] = deque()
        self._turn = 0  # commands that the process is at work on

    def post(self, commands: Commands) -> None:
        """Commands have come."""
        self._inbox.extend(commands)
        self.go_on()

    def go_on(self) -> None:
        """Take what waits, when its time is over."""
        if not self._turn and self._inbox and not self.suspended:
            self._turn = min(len(self._inbox), COMMANDS_PER_TURN)
            self._clock.call_later(self._turn * self._command_us, self._taken)

    def withdraw(self) -> Commands:
        """Take out all that waits."""
        rest = tuple(self._inbox)
        self._inbox.clear()
        return rest

    def _taken(self) -> None:
        # Where commands cost nothing, all that come at one instant go into the log together.
        count = self._turn if self._command_us else len(self._inbox)
        self._turn = 0
        if self.closed:
            return
        self._take(tuple(self._inbox.popleft() for _ in range(count)))
        self.go_on()
