"""A client of a quorum queue: a session or channel of the broker, as the queue sees it.

It numbers commands, keeps each until the queue has applied it, and sends all of them again to a new
leader. Rules 1 to 4 are those of `rabbit_fifo_client.erl`:

1. A command is `pending` until the answer comes; a message among them is then confirmed.
2. With `soft_limit` commands pending the next one turns the queue slow, and if that is a message
   its owner is told to block. With fewer it is told to go on. If it is a settlement the owner is
   not told, not even by what is published meanwhile. A 0-9-1 channel heeds it; an AMQP 1.0 session
   does not, its publishers are held by `unconfirmed` alone.
3. While it is slow, settlements wait in a stash and go out when it goes on, as few commands; those
   of a consumer that is detached go before that.
4. After `resend_us` without a word from the leader everything pending is sent again.
5. Deliveries and answers to credit reach the owner in order and once: what a leader handed out and
   lost is asked for again, and what comes twice is known by its number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from workbench import presets
from workbench.queues import DetachConsumer, Enqueue, QueueError, Reject, Release, Settle
from workbench.queues.quorum_fifo import (
    Active,
    Answered,
    Full,
    Handed,
    Logged,
    OutOfOrder,
    QuorumCommand,
    QuorumEffect,
    QuorumReply,
    Resume,
)
from workbench.sim import Clock, Timer

from .raft_group import Answers, RaftGroup

SOFT_LIMIT = presets.get("rmq4.3").quorum_soft_limit
RESEND_US = 10_000_000  # rabbit_fifo_client.erl: TIMER_TIME

_Actions = list[Callable[[], None]]


class ClientOwner(Protocol):
    """A session or channel, as its client of a queue sees it; what it leaves out does nothing."""

    def replied(self, logged: Logged, reply: QuorumReply) -> None:
        """The queue has applied this command; a message is confirmed with it."""
        return

    def handed(self, effect: Handed) -> None:
        """A message came for one of its consumers."""
        return

    def told(self, effect: QuorumEffect) -> None:
        """Any other effect: credit was answered, a consumer is active, the queue is full."""
        return

    def slowed(self, slow: bool, pending: int) -> None:
        """Block (True) or unblock (False), with that many commands pending."""
        return


@dataclass(slots=True)
class _Stream:
    """What has come for one consumer.

    Attributes:
        expected: number of the next delivery.
        answered: the last of its credit commands that was answered.
        early: answers that came before deliveries that were lost.
    """

    expected: int = 0
    answered: int = 0
    early: list[Answered] = field(default_factory=list)


class FifoClient:
    """One client of one queue.

    Args:
        group: the queue.
        clock: of the run.
        name: of the client, unique at the queue.
        place: node where it is.
        owner: hears of everything.
        soft_limit: pending commands at which the queue counts as slow.
        resend_us: silence after which everything pending is sent again.

    Raises:
        QueueError: if a number is not legal, or the place is not there.

    Attributes:
        leader: to which commands go; None while nobody is known to lead.
        term: of that leader.
        pending: sent or to be sent, and not yet answered, by number.
        sent: commands numbered so far.
        slow: settlements are put aside.
        blocks: the owner has been told to block.
        resent: how many commands were sent again.
        most_pending: the most there ever were.
    """

    def __init__(
        self,
        group: RaftGroup,
        clock: Clock,
        name: str,
        *,
        place: str,
        owner: ClientOwner,
        soft_limit: int = SOFT_LIMIT,
        resend_us: int = RESEND_US,
    ) -> None:
        if soft_limit < 1:
            raise QueueError(f"soft_limit is {soft_limit}; legal: 1 or more pending commands")
        if resend_us < 0:
            raise QueueError(f"resend_us is {resend_us}; legal: 0 or more")
        self.name = name
        self.place = place
        self.leader: str | None = None
        self.term = -1
        self.pending: dict[int, Logged] = {}
        self.sent = 0
        self.slow = self.blocks = False
        self.resent = 0
        self.most_pending = 0
        self._group = group
        self._clock = clock
        self._owner = owner
        self._soft_limit = soft_limit
        self._resend_us = resend_us
        self._timer: Timer | None = None
        self._enqueued = 0
        self._stash: list[Settle | Reject | Release] = []
        self._streams: dict[str, _Stream] = {}
        group.join(self)

    def send(self, command: QuorumCommand) -> None:
        """Send a command to the queue, or put it aside while that is slow."""
        actions: _Actions = []
        if isinstance(command, DetachConsumer):
            for one in [one for one in self._stash if one.consumer == command.consumer]:
                self._stash.remove(one)
                self._post(one, actions)
        self._put(command, actions)
        _carry_out(actions)

    def consume(self, consumer: str) -> None:
        """Deliveries for this consumer are expected from now on."""
        self._streams[consumer] = _Stream()

    def forget(self, consumer: str) -> None:
        """Deliveries and credit answers for this consumer are dropped from now on."""
        self._streams.pop(consumer, None)

    def close(self) -> None:
        """The client is no more."""
        self._group.leave(self.name)
        if self._timer is not None:
            self._timer.cancel()

    # -- said by the leader -------------------------------------------------------------------

    def heard(self, term: int, answers: Answers, effects: list[QuorumEffect]) -> None:
        """The leader of a term has applied commands.

        What an earlier leader answers or hands out is so, for it was committed; how the queue
        stands, a later one knows better.
        """
        outdated = term < self.term
        gaps: dict[str, int] = {}
        settled: dict[str, list[int]] = {}
        for effect in effects:
            if isinstance(effect, Handed):
                consumer = effect.deliver.consumer
                stream = self._streams.get(consumer)
                if stream is None or effect.number < stream.expected:
                    continue  # it is gone, or has this one
                if effect.number > stream.expected:
                    gaps[consumer] = stream.expected
                    continue
                stream.expected += 1
                if effect.deliver.settled:
                    settled.setdefault(consumer, []).append(effect.number)
                self._owner.handed(effect)
                while stream.early and stream.early[0].number <= stream.expected:
                    self._owner.told(stream.early.pop(0))
            elif isinstance(effect, Answered):
                stream = self._streams.get(effect.consumer)
                if stream is None or effect.seq <= stream.answered:
                    continue  # it is gone, or has this one
                stream.answered = effect.seq
                if effect.number > stream.expected:
                    gaps[effect.consumer] = stream.expected
                    stream.early.append(effect)
                else:
                    self._owner.told(effect)
            elif not (outdated and isinstance(effect, Active | Full)):
                self._owner.told(effect)
        if answers:
            self._applied(answers)
        for consumer, numbers in settled.items():
            self.send(Settle(consumer=consumer, message_ids=tuple(numbers)))
        for consumer, expected in gaps.items():
            self.send(Resume(consumer=consumer, number=expected))

    def leader_is(self, leader: str, term: int) -> None:
        """A replica leads: send again what is pending, and ask for what was lost on the way."""
        if term < self.term:
            return
        self.leader, self.term = leader, term
        actions: _Actions = []
        self._resend(actions)
        _carry_out(actions)
        for consumer, stream in self._streams.items():
            self.send(Resume(consumer=consumer, number=stream.expected))

    def not_leader(self, replica: str) -> None:
        """The replica does not lead: wait until one tells that it does."""
        if replica == self.leader:
            self.leader = None

    # -- inside -----------------------------------------------------------------------------

    def _applied(self, answers: Answers) -> None:
        """The leader has applied commands: their numbers, each with the reply.

        All is counted before the owner hears of anything: it may send more when it does.
        """
        actions: _Actions = []
        gap = False
        for seq, reply in answers:
            if isinstance(reply, OutOfOrder):
                gap = True
            elif seq in self.pending:  # else it was answered before: it was sent twice
                actions.append(partial(self._owner.replied, self.pending.pop(seq), reply))
        actions.append(partial(self._set_timer, on=bool(self.pending)))
        if gap:
            self._resend(actions)
        if self.slow and len(self.pending) < self._soft_limit:
            self.slow = False
            if self.blocks:
                actions.append(partial(self._tell, slow=False))
            stash, self._stash = self._stash, []
            for command in stash:
                self._put(command, actions)
        _carry_out(actions)

    def _put(self, command: QuorumCommand, actions: _Actions) -> None:
        """Post a command; while the queue is slow settlements of one kind become one, and wait."""
        if not self.slow or not isinstance(command, Settle | Reject | Release):
            self._post(command, actions)
            return
        for at, other in enumerate(self._stash):
            if type(other) is type(command) and other.consumer == command.consumer:
                ids = other.message_ids + command.message_ids
                self._stash[at] = replace(other, message_ids=ids)
                return
        self._stash.append(command)

    def _post(self, command: QuorumCommand, actions: _Actions) -> None:
        """Number a command; it is pending from now on."""
        if not self.slow and len(self.pending) >= self._soft_limit:
            self.slow = True
            if isinstance(command, Enqueue):
                actions.append(partial(self._tell, slow=True))
        if not self.pending:
            actions.append(partial(self._set_timer, on=True))
        self.sent += 1
        self._enqueued += isinstance(command, Enqueue)
        enqueue_seq = self._enqueued if isinstance(command, Enqueue) else 0
        logged = Logged(self.name, self.sent, enqueue_seq, command, self._clock.now_us)
        self.pending[logged.seq] = logged
        self.most_pending = max(self.most_pending, len(self.pending))
        if self.leader is not None:
            actions.append(partial(self._group.submit, self.place, self.leader, (logged,)))

    def _resend(self, actions: _Actions) -> None:
        """Everything pending goes to the leader once more."""
        if self.leader is not None and self.pending:
            self.resent += len(self.pending)
            pending = tuple(self.pending.values())
            actions.append(partial(self._group.submit, self.place, self.leader, pending))

    def _tell(self, *, slow: bool) -> None:
        self.blocks = slow
        self._owner.slowed(slow, len(self.pending))

    def _set_timer(self, *, on: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if on:
            # Idle: while nobody leads a run may rest.
            self._timer = self._clock.call_later(self._resend_us, self._silence, idle=True)

    def _silence(self) -> None:
        self._timer = None
        if self.pending:
            actions: _Actions = []
            self._resend(actions)
            _carry_out(actions)
            self._set_timer(on=True)


def _carry_out(actions: _Actions) -> None:
    for action in actions:
        action()
