"""A client's way to a quorum queue: numbers, resends and gaps are seen to here.

What is left for its owner is what a session or channel wants to know: a command was answered, a
message came, the queue is slow. Deliveries and answers to credit reach the owner in order and once:
what a leader handed out and lost is asked for again, and what comes twice is known by its number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from workbench.queues import QueueError, Settle
from workbench.queues.quorum_client import (
    RESEND_US,
    SOFT_LIMIT,
    ClientEffect,
    QuorumClient,
    Replied,
    Slow,
    Timer,
    ToLeader,
)
from workbench.queues.quorum_commands import (
    Active,
    Answered,
    Full,
    Handed,
    Logged,
    QuorumCommand,
    QuorumEffect,
    QuorumReply,
    Resume,
)
from workbench.sim import Timer as ClockTimer
from workbench.sim import VirtualClock

if TYPE_CHECKING:
    from .quorum_group import QuorumGroup
    from .quorum_roles import Answers


class PortOwner(Protocol):
    """A session or channel, as its port sees it."""

    def replied(self, logged: Logged, reply: QuorumReply) -> None:
        """The queue has applied this command; a message is confirmed with it."""

    def handed(self, effect: Handed) -> None:
        """A message came for one of its consumers."""

    def told(self, effect: QuorumEffect) -> None:
        """Any other effect: credit was answered, a consumer is active, the queue is full."""

    def slowed(self, slow: bool, pending: int) -> None:
        """Block (True) or unblock (False), with so many commands pending."""


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


class QueuePort:
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
    """

    def __init__(
        self,
        group: QuorumGroup,
        clock: VirtualClock,
        name: str,
        *,
        place: str,
        owner: PortOwner,
        soft_limit: int = SOFT_LIMIT,
        resend_us: int = RESEND_US,
    ) -> None:
        if resend_us < 0:
            raise QueueError(f"resend_us is {resend_us}; legal: 0 or more")
        self.client = QuorumClient(name, soft_limit=soft_limit)
        self.place = place
        self._group = group
        self._clock = clock
        self._owner = owner
        self._resend_us = resend_us
        self._timer: ClockTimer | None = None
        self._streams: dict[str, _Stream] = {}
        group.join(self)

    def send(self, command: QuorumCommand) -> None:
        """Send a command to the queue."""
        self._carry(self.client.send(command, self._clock.now_us))

    def consume(self, consumer: str) -> None:
        """Deliveries for this consumer are expected from now on."""
        self._streams[consumer] = _Stream()

    def forget(self, consumer: str) -> None:
        """What still comes for this consumer is nobody's."""
        self._streams.pop(consumer, None)

    def close(self) -> None:
        """The client is no more."""
        self._group.leave(self.client.name)
        if self._timer is not None:
            self._timer.cancel()

    # -- said by the leader -------------------------------------------------------------------

    def heard(self, term: int, answers: Answers, effects: list[QuorumEffect]) -> None:
        """The leader of a term has applied commands.

        What an earlier leader answers or hands out is so, for it was committed; how the queue
        stands, a later one knows better.
        """
        outdated = not self.client.heeds(term)
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
            self._carry(self.client.applied(answers, self._clock.now_us))
        for consumer, numbers in settled.items():
            self.send(Settle(consumer=consumer, message_ids=tuple(numbers)))
        for consumer, expected in gaps.items():
            self.send(Resume(consumer=consumer, number=expected))

    def leader_is(self, leader: str, term: int) -> None:
        """A replica leads: send again what is pending, and ask for what was lost on the way."""
        if not self.client.heeds(term):
            return
        self._carry(self.client.leader_is(leader, term))
        for consumer, stream in self._streams.items():
            self.send(Resume(consumer=consumer, number=stream.expected))

    def not_leader(self, replica: str) -> None:
        """The replica does not lead: wait until one tells that it does."""
        self._carry(self.client.not_leader(replica))

    # -- inside -----------------------------------------------------------------------------

    def _carry(self, effects: list[ClientEffect]) -> None:
        for effect in effects:
            match effect:
                case ToLeader(leader=leader, commands=commands):
                    self._group.submit(self.place, leader, commands)
                case Replied(logged=logged, reply=reply):
                    self._owner.replied(logged, reply)
                case Slow(slow=slow):
                    self._owner.slowed(slow, len(self.client.pending))
                case Timer(on=on):
                    self._set_timer(on=on)

    def _set_timer(self, *, on: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if on:
            # Idle: while nobody leads a run may rest.
            self._timer = self._clock.call_later(self._resend_us, self._silence, idle=True)

    def _silence(self) -> None:
        self._timer = None
        self._carry(self.client.timer_expired())
