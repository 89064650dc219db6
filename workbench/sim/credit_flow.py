"""RabbitMQ's credit between processes: who is sent too much grants nothing until it has caught up.

A process may send `initial` messages to another; for each `more_after` that the other has handled
it gets as many more. Both numbers are the receiver's: a message store gives its queues more than a
queue gives its channels. One that is blocked itself keeps what it would grant to itself, and that
is what stops the chain, process by process, up to the one that reads a socket (`credit_flow.erl`).

Only who owns a socket looks at `blocked` and stops. Others go on with what they have, so a counter
may fall below 0. `block` and `unblock` with the name of a quorum queue are the same brake without
counters: the soft limit.

At any time, for each pair: what the sender may still send, what waits at the receiver, what it has
handled and not yet granted for, and grants kept back or on their way are `initial` together.
"""

from __future__ import annotations

from typing import NamedTuple

INITIAL, MORE_AFTER = 400, 200  # rabbit.credit_flow_default_credit since 3.6.7


class Grant(NamedTuple):
    """So much more credit for a process that sends here."""

    to: str
    credit: int


class CreditFlow:
    """One process's counters.

    Args:
        initial: messages that each other process may send here before its first grant.
        more_after: messages of it handled for each grant.

    Attributes:
        initial: see above.
        credit_from: per receiver, how many more it may be sent, once it was sent anything.
        kept: grants not given while blocked, in order.

    Raises:
        ValueError: if a grant would never come, or two would come at once.
    """

    def __init__(self, *, initial: int = INITIAL, more_after: int = MORE_AFTER) -> None:
        if not 0 < more_after <= initial:
            raise ValueError(
                f"credit of {initial} with grants of {more_after}; legal: grants of 1 to {initial}"
            )
        self.initial = initial
        self.credit_from: dict[str, int] = {}
        self.kept: list[Grant] = []
        self._more_after = more_after
        self._credit_to: dict[str, int] = {}
        self._blocked_by: dict[str, None] = {}

    @property
    def blocked(self) -> bool:
        """Somebody downstream must go on first."""
        return bool(self._blocked_by)

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """Who that is, in order of blocking."""
        return tuple(self._blocked_by)

    def send(self, to: str, initial: int) -> None:
        """A message goes to another process; with the last credit for it this one is blocked.

        Args:
            to: the other process.
            initial: that it gives to each that sends to it.
        """
        credit = self.credit_from.get(to, initial)
        self.credit_from[to] = credit - 1
        if credit == 1:
            self._blocked_by[to] = None

    def handled(self, sender: str) -> list[Grant]:
        """A message was handled; returns what is to be granted now."""
        left = self._credit_to.get(sender, self._more_after) - 1
        self._credit_to[sender] = left or self._more_after
        if left:
            return []
        grant = Grant(sender, self._more_after)
        if self.blocked:
            self.kept.append(grant)
            return []
        return [grant]

    def granted(self, by: str, credit: int) -> list[Grant]:
        """More credit has come; returns what may be granted in turn."""
        before = self.credit_from[by]
        self.credit_from[by] = before + credit
        return self.unblock(by) if before <= 0 < before + credit else []

    def block(self, by: str) -> None:
        """A quorum queue is slow."""
        self._blocked_by[by] = None

    def unblock(self, by: str) -> list[Grant]:
        """It no longer is; returns the grants kept back, if nobody else is in the way."""
        self._blocked_by.pop(by, None)
        if self.blocked:
            return []
        kept, self.kept = self.kept, []
        return kept

    def lost(self, process: str) -> list[Grant]:
        """A process is gone: whatever it held up goes on, and it is granted nothing."""
        self.credit_from.pop(process, None)
        self._credit_to.pop(process, None)
        self.kept = [grant for grant in self.kept if grant.to != process]
        return self.unblock(process)
