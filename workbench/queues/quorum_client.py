"""The client side of a quorum queue: a session or channel of the broker, as seen by the queue.

It numbers commands, keeps each until the queue has applied it, and sends all of them again to a new
leader. Four rules (`rabbit_fifo_client.erl`):

1. A command is `pending` until the answer comes; a message among them is then confirmed.
2. With `soft_limit` commands pending the next one turns the queue slow: *block* is told. With
   fewer it is no longer: *unblock*. A 0-9-1 channel heeds it; an AMQP 1.0 session does not, its
   publishers are held by `unconfirmed` alone.
3. While it is slow, settlements wait in a stash and go out at *unblock*, as few commands; those of
   a consumer that is detached go before that.
4. After `resend_us` without a word from the leader everything pending is sent again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from .base import DetachConsumer, Enqueue, QueueError, Reject, Release, Settle
from .quorum_commands import Logged, OutOfOrder, QuorumCommand, QuorumReply

SOFT_LIMIT = 32  # rabbit.quorum_commands_soft_limit since 3.8.4; 256 before
RESEND_US = 10_000_000  # rabbit_fifo_client.erl: TIMER_TIME


class ToLeader(NamedTuple):
    """Send these commands to the leader, in this order."""

    leader: str
    commands: tuple[Logged, ...]


class Replied(NamedTuple):
    """The queue has applied a command."""

    logged: Logged
    reply: QuorumReply


class Slow(NamedTuple):
    """Block (True) or unblock (False)."""

    slow: bool


class Timer(NamedTuple):
    """Start the resend timer anew, or stop it."""

    on: bool


ClientEffect = ToLeader | Replied | Slow | Timer


class QuorumClient:
    """One client of one queue.

    Args:
        name: of the client.
        soft_limit: pending commands at which the queue counts as slow.

    Raises:
        QueueError: if that is below 1.

    Attributes:
        leader: to whom commands go; None while nobody is known to lead.
        term: of that leader.
        pending: sent or to be sent, and not yet answered, by number.
        slow: blocked.
        resent: how many commands were sent again.
        most_pending: the most there ever were.
    """

    def __init__(self, name: str, *, soft_limit: int = SOFT_LIMIT) -> None:
        if soft_limit < 1:
            raise QueueError(f"soft_limit is {soft_limit}; legal: 1 or more pending commands")
        self.name = name
        self.soft_limit = soft_limit
        self.leader: str | None = None
        self.term = -1
        self.pending: dict[int, Logged] = {}
        self.slow = False
        self.resent = 0
        self.most_pending = 0
        self._next_seq = 1
        self._next_enqueue = 1
        self._stash: list[Settle | Reject | Release] = []

    @property
    def sent(self) -> int:
        """Commands numbered so far."""
        return self._next_seq - 1

    @property
    def stashed(self) -> int:
        """Settlements that wait for the queue to go on."""
        return len(self._stash)

    def send(self, command: QuorumCommand, t_us: int = 0) -> list[ClientEffect]:
        """Send a command, or put it aside while the queue is slow."""
        if self.slow and isinstance(command, Settle | Reject | Release):
            self._put_aside(command)
            return []
        effects: list[ClientEffect] = []
        if isinstance(command, DetachConsumer):
            aside = [one for one in self._stash if one.consumer == command.consumer]
            self._stash = [one for one in self._stash if one not in aside]
            for one in aside:
                effects += self._post(one, t_us)
        effects += self._post(command, t_us)
        return effects

    def _post(self, command: QuorumCommand, t_us: int) -> list[ClientEffect]:
        effects: list[ClientEffect] = []
        if not self.slow and len(self.pending) >= self.soft_limit:
            self.slow = True
            effects.append(Slow(True))
        logged = self._number(command, t_us)
        if not self.pending:
            effects.append(Timer(True))
        self.pending[logged.seq] = logged
        self.most_pending = max(self.most_pending, len(self.pending))
        if self.leader is not None:
            effects.append(ToLeader(self.leader, (logged,)))
        return effects

    def applied(
        self, answers: Iterable[tuple[int, QuorumReply]], t_us: int = 0
    ) -> list[ClientEffect]:
        """The leader has applied commands: their numbers, each with the reply."""
        effects: list[ClientEffect] = []
        gap = False
        for seq, reply in answers:
            if isinstance(reply, OutOfOrder):
                gap = True
                continue
            logged = self.pending.pop(seq, None)
            if logged is not None:  # else it was answered before: it was sent twice
                effects.append(Replied(logged, reply))
        effects.append(Timer(bool(self.pending)))
        if gap:
            effects += self._resend()
        if self.slow and len(self.pending) < self.soft_limit:
            self.slow = False
            effects.append(Slow(False))
            stash, self._stash = self._stash, []
            for command in stash:
                effects += self.send(command, t_us)
        return effects

    def heeds(self, term: int) -> bool:
        """Whether no leader of a later term is known."""
        return term >= self.term

    def leader_is(self, leader: str, term: int) -> list[ClientEffect]:
        """This replica leads, in that term: whatever is pending goes to it, in order."""
        if not self.heeds(term):
            return []
        self.leader, self.term = leader, term
        return self._resend()

    def not_leader(self, replica: str) -> list[ClientEffect]:
        """The replica to which commands were sent does not lead (any more)."""
        if replica == self.leader:
            self.leader = None
        return []

    def timer_expired(self) -> list[ClientEffect]:
        """Nothing was heard for long: send everything again."""
        if not self.pending:
            return []
        return [*self._resend(), Timer(True)]

    # -- inside -----------------------------------------------------------------------------

    def _number(self, command: QuorumCommand, t_us: int) -> Logged:
        seq, self._next_seq = self._next_seq, self._next_seq + 1
        enqueue_seq = 0
        if isinstance(command, Enqueue):
            enqueue_seq, self._next_enqueue = self._next_enqueue, self._next_enqueue + 1
        return Logged(self.name, seq, enqueue_seq, command, t_us)

    def _put_aside(self, command: Settle | Reject | Release) -> None:
        """Settlements of the same kind and consumer become one command."""
        for at, other in enumerate(self._stash):
            if type(other) is type(command) and other.consumer == command.consumer:
                self._stash[at] = replace(
                    other, message_ids=other.message_ids + command.message_ids
                )
                return
        self._stash.append(command)

    def _resend(self) -> list[ClientEffect]:
        if self.leader is None or not self.pending:
            return []
        self.resent += len(self.pending)
        return [ToLeader(self.leader, tuple(self.pending.values()))]
