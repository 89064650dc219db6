"""Clients of `quorum_chaos` that speak to the queue itself, and know what they were promised."""

from __future__ import annotations

from collections.abc import Callable

from workbench.broker.quorum_client import ClientOwner, FifoClient
from workbench.broker.quorum_cluster import FRONT
from workbench.broker.raft_group import RaftGroup
from workbench.queues import Checkout, Credit, Enqueue, Message, Release, Settle
from workbench.queues.draws import Draws
from workbench.queues.quorum_fifo import Answered, Handed, Logged, QuorumEffect, QuorumReply
from workbench.queues.raft_referee import NOTHING_CONFIRMED_LOST, ONCE, ORDER, RETURNS
from workbench.sim import VirtualClock

CONSUMER = "c"
PUBLISHERS = ("p1", "p2")

Broken = Callable[[str, str], None]


class Publisher(ClientOwner):
    """Sends numbered messages, never more than `cap` unconfirmed."""

    def __init__(
        self, group: RaftGroup, clock: VirtualClock, name: str, count: int, cap: int, pace_us: int
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
        self.client = FifoClient(group, clock, name, place=FRONT, owner=self)
        clock.call_soon(self._go_on)

    def replied(self, logged: Logged, reply: QuorumReply) -> None:
        """A message is confirmed."""
        assert isinstance(logged.command, Enqueue)
        self.confirmed.add(logged.command.message.payload)
        if not self._waits:
            self._go_on()

    def slowed(self, slow: bool, pending: int) -> None:
        """It has a cap of its own, below every soft limit that matters."""
        self.slow = slow

    def _go_on(self) -> None:
        self._waits = False
        while self._left and self.sent - len(self.confirmed) < self._cap:
            self.sent += 1
            self._left -= 1
            payload = b"%s %d" % (self.name.encode(), self.sent)
            self.client.send(Enqueue(message=Message(payload=payload)))
        if self._left and not self._waits and self._pace_us:
            self._waits = True
            self._clock.call_later(self._pace_us, self._go_on)


class Consumer(ClientOwner):
    """Takes messages, settles them in twos and threes, gives each fifth back, two at a time."""

    def __init__(self, group: RaftGroup, clock: VirtualClock, broken: Broken) -> None:
        self.first: list[bytes] = []  # payloads in the order in which they first came
        self.given_back: list[bytes] = []
        self.again: list[bytes] = []
        self.numbers: set[int] = set()
        self._broken = broken
        self._hold: list[int] = []
        self._back: list[int] = []
        self._clock = clock
        self._wanted = 0
        self._counted = 0
        self.client = FifoClient(group, clock, CONSUMER, place=FRONT, owner=self)
        self.client.consume(CONSUMER)
        self.client.send(Checkout(consumer=CONSUMER))
        self._grant()

    def handed(self, effect: Handed) -> None:
        """A message came."""
        number, message = effect.number, effect.deliver.message
        if number in self.numbers:
            self._broken(ONCE, f"delivery {number} reached the consumer twice")
        self.numbers.add(number)
        self._counted += 1
        if message.acquired_count == 1:
            self.first.append(message.payload)
            if message.message_id % 5 == 4:
                self.given_back.append(message.payload)
                self._back.append(number)
                if len(self._back) == 2:
                    self._give_back()
                return
        else:
            self.again.append(message.payload)
            if self.again != self.given_back[: len(self.again)]:
                self._broken(RETURNS, f"given back: {self.given_back}; came again: {self.again}")
        self._hold.append(number)
        if len(self._hold) >= 2 + number % 2:
            self.settle()

    def told(self, effect: QuorumEffect) -> None:
        """Credit is renewed when it is used up."""
        if isinstance(effect, Answered) and effect.credited.link_credit == 0:
            self._grant()

    def _give_back(self) -> None:
        back, self._back = tuple(self._back), []
        self.client.send(Release(consumer=CONSUMER, message_ids=back))

    def finish(self) -> None:
        """Give back and settle what it holds."""
        if self._back:
            self._give_back()
        self.settle()

    def settle(self) -> None:
        """Settle what it holds."""
        if self._hold:
            held, self._hold = tuple(self._hold), []
            self.client.send(Settle(consumer=CONSUMER, message_ids=held))
        if self._counted >= self._wanted // 2:
            self._grant()

    def _grant(self) -> None:
        self._counted, self._wanted = 0, 20
        at = len(self.numbers)
        self.client.send(Credit(consumer=CONSUMER, delivery_count=at, link_credit=self._wanted))


class QueueClients:
    """All clients of one run: two publishers and a consumer.

    Args:
        group: the queue.
        clock: of the run.
        messages: of each publisher.
        draws: from which their pace is drawn.
        broken: told of an invariant that does not hold.
    """

    def __init__(
        self, group: RaftGroup, clock: VirtualClock, messages: int, draws: Draws, broken: Broken
    ) -> None:
        pick = draws.randrange
        self._group = group
        self._broken = broken
        self.consumer = Consumer(group, clock, broken)
        self.publishers = [
            Publisher(group, clock, name, messages, cap=pick(4, 24), pace_us=pick(20_000, 120_000))
            for name in PUBLISHERS
        ]

    @property
    def sent(self) -> int:
        """Commands that went to the queue."""
        clients = (self.consumer.client, *(publisher.client for publisher in self.publishers))
        return sum(client.sent for client in clients)

    @property
    def resent(self) -> int:
        """How many of the publishers' went again."""
        return sum(publisher.client.resent for publisher in self.publishers)

    def busy(self) -> None:
        """Something is to go wrong soon: they are busy anyway."""

    def calm(self) -> None:
        """All is mended: they go on as before."""

    def finish(self) -> None:
        """All is quiet: settle what is held."""
        self.consumer.finish()

    def check(self) -> None:
        """What publishers were promised, at the end of the run."""
        first = self.consumer.first
        came = set(first)
        here = {message.payload for message in self._group.front().ready_messages()}
        for publisher in self.publishers:
            lost = publisher.confirmed - came - here
            if lost:
                self._broken(
                    NOTHING_CONFIRMED_LOST,
                    f"{len(lost)} messages of {publisher.name}, such as {min(lost)!r}",
                )
            name = publisher.name.encode()
            order = [int(payload.split()[1]) for payload in first if payload.startswith(name)]
            if order != sorted(order):
                self._broken(ORDER, f"{publisher.name}: {order}")
            if len(set(order)) != len(order):
                self._broken(ONCE, f"{publisher.name}: {order}")
            if len(publisher.confirmed) != publisher.sent:
                self._broken(
                    NOTHING_CONFIRMED_LOST,
                    f"{publisher.name} sent {publisher.sent}, {len(publisher.confirmed)} were"
                    " confirmed although a majority is there again",
                )
