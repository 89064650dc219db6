"""A client's way to a quorum queue: numbers, resends and gaps are seen to here.

What is left for its owner is what a session or channel wants to know: a command was answered, a
message came, the queue is slow. Deliveries reach the owner in order and once: what a leader handed
out and lost is asked for again, and what comes twice is known by its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from workbench.queues import QueueError
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
        self._seen: dict[str, int] = {}  # per consumer, the number of the next delivery
        group.join(self)

    def send(self, command: QuorumCommand) -> None:
        """Send a command to the queue."""
        self._carry(self.client.send(command, self._clock.now_us))

    def consume(self, consumer: str) -> None:
        """Deliveries for this consumer are expected from now on."""
        self._seen[consumer] = 0

    def forget(self, consumer: str) -> None:
        """What still comes for this consumer is nobody's."""
        self._seen.pop(consumer, None)

    def close(self) -> None:
        """The client is no more."""
        self._group.leave(self.client.name)
        if self._timer is not None:
            self._timer.cancel()

    # -- said by the leader -------------------------------------------------------------------

    def heard(self, answers: Answers, effects: list[QuorumEffect]) -> None:
        """The leader has applied commands."""
        gaps: dict[str, int] = {}
        for effect in effects:
            if not isinstance(effect, Handed):
                self._owner.told(effect)
                continue
            consumer = effect.deliver.consumer
            expected = self._seen.get(consumer)
            if expected is None or effect.number < expected:
                continue  # it is gone, or has this one
            if effect.number > expected and not effect.deliver.settled:
                gaps[consumer] = expected
                continue
            self._seen[consumer] = effect.number + 1
            self._owner.handed(effect)
        if answers:
            self._carry(self.client.applied(answers, self._clock.now_us))
        for consumer, expected in gaps.items():
            self.send(Resume(consumer=consumer, number=expected))

    def leader_is(self, leader: str, term: int) -> None:
        """A replica leads: send again what is pending, and ask for what was lost on the way."""
        self._carry(self.client.leader_is(leader, term))
        for consumer, number in self._seen.items():
            self.send(Resume(consumer=consumer, number=number))

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
