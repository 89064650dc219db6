"""The publishers and the consumer of `quorum_chaos`: clients that know what they were promised."""

from __future__ import annotations

from workbench.broker.quorum_cluster import FRONT
from workbench.broker.quorum_group import QuorumGroup
from workbench.broker.quorum_port import QueuePort
from workbench.queues import Checkout, Credit, Enqueue, Release, Settle
from workbench.queues.quorum_commands import Answered, Handed, Logged, QuorumEffect, QuorumReply
from workbench.queues.raft_referee import ONCE, InvariantBrokenError
from workbench.sim import VirtualClock

CONSUMER = "c"


class Publisher:
    """Sends numbered messages, never more than `cap` unconfirmed."""

    def __init__(
        self, group: QuorumGroup, clock: VirtualClock, name: str, count: int, cap: int, pace_us: int
    ) -> None:
        self.name = name
        self.sent = 0
        self.confirmed: set[bytes] = set()
        self.slow = False
        self._left = count
        self._cap = cap
        self._pace_us = pace_us
        self._clock = clock
        self._waits = False
        self.port = QueuePort(group, clock, name, place=FRONT, owner=self)
        clock.call_soon(self._go_on)

    def replied(self, logged: Logged, reply: QuorumReply) -> None:
        """A message is confirmed."""
        assert isinstance(logged.command, Enqueue)
        self.confirmed.add(logged.command.payload)
        if not self._waits:
            self._go_on()

    def handed(self, effect: Handed) -> None:
        """It consumes nothing."""

    def told(self, effect: QuorumEffect) -> None:
        """Nothing that it heeds."""

    def slowed(self, slow: bool, pending: int) -> None:
        """It has a cap of its own, below every soft limit that matters."""
        self.slow = slow

    def _go_on(self) -> None:
        self._waits = False
        while self._left and self.sent - len(self.confirmed) < self._cap:
            self.sent += 1
            self._left -= 1
            self.port.send(Enqueue(payload=b"%s %d" % (self.name.encode(), self.sent)))
        if self._left and not self._waits and self._pace_us:
            self._waits = True
            self._clock.call_later(self._pace_us, self._go_on)


class Consumer:
    """Takes messages, settles them in twos and threes, gives every eleventh back once."""

    def __init__(self, group: QuorumGroup, clock: VirtualClock) -> None:
        self.first: list[bytes] = []  # payloads in the order in which they first came
        self.again = 0
        self.numbers: set[int] = set()
        self._hold: list[int] = []
        self._clock = clock
        self._wanted = 0
        self._counted = 0
        self.port = QueuePort(group, clock, CONSUMER, place=FRONT, owner=self)
        self.port.consume(CONSUMER)
        self.port.send(Checkout(consumer=CONSUMER))
        self._grant()

    def replied(self, logged: Logged, reply: QuorumReply) -> None:
        """Settlements and credit were applied."""

    def handed(self, effect: Handed) -> None:
        """A message came."""
        number, message = effect.number, effect.deliver.message
        if number in self.numbers:
            raise InvariantBrokenError(ONCE, f"delivery {number} reached the consumer twice")
        self.numbers.add(number)
        self._counted += 1
        if message.acquired_count == 1:
            self.first.append(message.payload)
            if message.message_id % 11 == 10:
                self.port.send(Release(consumer=CONSUMER, message_ids=(number,)))
                return
        else:
            self.again += 1
        self._hold.append(number)
        if len(self._hold) >= 2 + number % 2:
            self.settle()

    def told(self, effect: QuorumEffect) -> None:
        """Credit is renewed when it is used up."""
        if isinstance(effect, Answered) and effect.credited.link_credit == 0:
            self._grant()

    def slowed(self, slow: bool, pending: int) -> None:
        """Its settlements wait; nothing else does."""

    def settle(self) -> None:
        """Settle what it holds."""
        if self._hold:
            held, self._hold = tuple(self._hold), []
            self.port.send(Settle(consumer=CONSUMER, message_ids=held))
        if self._counted >= self._wanted // 2:
            self._grant()

    def _grant(self) -> None:
        self._counted, self._wanted = 0, 20
        at = len(self.numbers)
        self.port.send(Credit(consumer=CONSUMER, delivery_count=at, link_credit=self._wanted))
