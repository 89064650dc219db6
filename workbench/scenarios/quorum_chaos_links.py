"""AMQP 1.0 clients of a quorum queue for `quorum_chaos`, over the links of RabbitMQ 4.3.

Two publishers, and consumers that grant, drain, settle with every outcome, go away and come back;
now and then somebody purges the queue, which may have a single active consumer, or refuse when it
is full. What dies goes to a classic queue. A book is kept of what each message has met with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from workbench import presets
from workbench.amqp10.credit import BatchThenWait
from workbench.amqp10.events import DeliveryReceived, Event, FlowReceived
from workbench.amqp10.messaging import Accepted, Data, encode_message
from workbench.amqp10.performatives import SenderSettleMode
from workbench.amqp10.sender import OutgoingDelivery, SenderLink
from workbench.amqp10.values import Symbol
from workbench.broker.quorum_process import QuorumProcess
from workbench.frontends.rabbit_outgoing_link import ACTIVE, RabbitOutgoingLink
from workbench.peers import Client, ClientLink, Consumer, Publisher
from workbench.queues import QueueArguments
from workbench.queues.draws import Draws
from workbench.queues.raft_referee import (
    CREDIT,
    DEAD_LETTERS,
    NOTHING_CONFIRMED_LOST,
    ONCE,
    STANDING,
)

from .quorum_chaos_clients import PUBLISHERS, Broken
from .world import World

QUEUE, DEAD = "q", "dead"
# Small batches of credit between session and queue: there are more of them to go wrong.
PRESET = replace(presets.get("rmq4.3"), max_queue_credit=16)
SETTLED = {"snd_settle_mode": SenderSettleMode.SETTLED}
WAY_US = 300
CONSUMERS = ("c1", "c2", "c3")
FULL_AT = 25
OUTCOMES = ("accepted",) * 5 + ("released", "released", "modified", "rejected")


@dataclass(slots=True)
class Book:
    """What has become of the messages, each known by its body."""

    broken: Broken
    sent: set[bytes] = field(default_factory=set)
    confirmed: set[bytes] = field(default_factory=set)
    accepted: set[bytes] = field(default_factory=set)
    rejected: set[bytes] = field(default_factory=set)
    before_purge: set[bytes] = field(default_factory=set)

    def came(self, payload: bytes) -> None:
        """A message has come to a consumer."""
        if body(payload) in self.accepted:
            self.broken(ONCE, f"{body(payload)!r} came again after it was accepted")


def body(payload: bytes) -> bytes:
    """What names a message, in whatever sections it is."""
    found = re.search(rb"<(p\d \d+)>", payload)
    assert found is not None, "every message here has a name"
    return found[1]


class BurstPublisher(Publisher):
    """Publishes so many messages, a few at a time."""

    def __init__(self, world: World, book: Book, name: str, messages: int, draws: Draws) -> None:
        super().__init__(address=QUEUE)
        self.left = messages
        self._world = world
        self._book = book
        self._draws = draws
        self._prefix = name.encode()
        self._messages = messages
        self._open: dict[int, bytes] = {}

    def begin(self) -> None:
        """Publishes the first burst."""
        super().begin()
        self._next()

    def burst(self) -> None:
        """Publish some messages, if there are more and the link is there."""
        if not self.attached:
            return
        count = min(self.left, self._draws.randrange(1, 7))
        first = self._messages - self.left + 1
        self.left -= count
        self.publish(
            encode_message([Data(b"<%s %d>" % (self._prefix, number))])
            for number in range(first, first + count)
        )

    def _next(self) -> None:
        self.burst()
        if self.left:
            self._world.clock.call_later(self._draws.randrange(10_000, 300_000), self._next)

    def transmit(self, link: SenderLink, payload: bytes) -> OutgoingDelivery:
        """Sends a message and keeps its name until it is settled."""
        delivery = super().transmit(link, payload)
        self._open[delivery.delivery_id] = body(payload)
        self._book.sent.add(body(payload))
        return delivery

    def settled(self, delivery: OutgoingDelivery, state: object) -> None:
        """Notes what is confirmed."""
        super().settled(delivery, state)
        name = self._open.pop(delivery.delivery_id)
        if isinstance(state, Accepted):
            self._book.confirmed.add(name)

    @property
    def unconfirmed(self) -> int:
        """Messages of which nobody has said what became of them."""
        return self.left + self.backlog + len(self._open)


class FitfulConsumer(Consumer):
    """Does what is drawn, for as long as it is to; then takes all there is.

    One that gets messages settled does not go away: messages that its session still holds
    would be lost.
    """

    def __init__(self, world: World, book: Book, name: str, draws: Draws, *, settled: bool) -> None:
        super().__init__(name, QUEUE, terms=SETTLED if settled else None)
        self.active: bool | None = None  # as the broker has told
        self._world = world
        self._book = book
        self._draws = draws
        self._first_name = name
        self._times = 0
        self._away = False
        self._calm = False
        world.clock.call_later(100_000, self._act)

    def begin(self) -> None:
        """Makes its first grant."""
        super().begin()
        self.grant(self._draws.randrange(1, 40))

    def calm(self) -> None:
        """Nothing is drawn any more."""
        self._calm = True
        if self._away:
            self._attach_again()

    def take_all(self) -> None:
        """Take and accept whatever there is."""
        self._settle(None, "accepted")
        self.auto_settle = True
        self.grant(10_000)

    def _act(self) -> None:
        if not self._calm:
            self._world.clock.call_later(self._draws.randrange(5_000, 150_000), self._act)
            self.act()

    def act(self) -> None:
        """Do one thing."""
        draw = self._draws.randrange
        if self._away:
            self._attach_again()
        if not self.attached:
            return
        kind = draw(0, 12)
        if kind < 4:
            self.grant(draw(0, 60))
        elif kind < 5:
            self.drain()
        elif kind < 11:
            self._settle(draw(1, 9), OUTCOMES[draw(0, len(OUTCOMES))])
        elif not self.terms:
            self._away = True
            self.detach()

    def _settle(self, count: int | None, outcome: str) -> None:
        assert self.link is not None
        known = {"accepted": self._book.accepted, "rejected": self._book.rejected}.get(outcome)
        if known is not None:
            chosen = list(self.link.unsettled.values())[:count]
            known.update(body(delivery.payload) for delivery in chosen)
        self.acknowledge(count, outcome)

    def _attach_again(self) -> None:
        assert self.link is not None
        self._away = False
        self._times += 1
        self.name = f"{self._first_name}-{self._times}"
        self.active = None
        self.attach(self.link.session)

    def handle(self, event: Event) -> None:
        """Keeps the book."""
        if isinstance(event, DeliveryReceived):
            self._book.came(event.delivery.payload)
            if event.delivery.settled or self.auto_settle:
                self._book.accepted.add(body(event.delivery.payload))
        elif isinstance(event, FlowReceived):
            properties = event.frame.properties
            if isinstance(properties, dict) and ACTIVE in properties:
                self.active = bool(properties[Symbol(ACTIVE)])
        super().handle(event)


class LinkClients:
    """All clients of one run.

    Args:
        world: whose broker has the cluster.
        replicas: of the queue.
        messages: of each publisher.
        draws: from which all is drawn.
        broken: told of an invariant that does not hold.
    """

    def __init__(
        self, world: World, replicas: int, messages: int, draws: Draws, broken: Broken
    ) -> None:
        draw = draws.randrange
        self._world = world
        self._broken = broken
        self._draws = draws
        single_active, refuses = draw(0, 3) == 0, draw(0, 3) == 0
        arguments = QueueArguments(
            queue_type="quorum",
            single_active_consumer=single_active,
            dead_letter_exchange="",
            dead_letter_routing_key=DEAD,
            max_length=FULL_AT if refuses else None,
            overflow="reject-publish" if refuses else "drop-head",
        )
        queue = world.broker.declare(QUEUE, arguments, replicas=replicas)
        assert isinstance(queue, QuorumProcess)
        self.queue = queue
        world.broker.declare(DEAD)
        self.book = Book(broken)
        self.publishers = [
            BurstPublisher(world, self.book, name, messages, draws) for name in PUBLISHERS
        ]
        names = CONSUMERS[: draw(1, 4)]
        self.consumers = [
            FitfulConsumer(world, self.book, name, draws, settled=draw(0, 4) == 0) for name in names
        ]
        self._dead = Consumer(address=DEAD, policy=BatchThenWait(10_000), terms=SETTLED)
        links: list[ClientLink] = [*self.publishers, *self.consumers, self._dead]
        for name, link in zip((*PUBLISHERS, *names, DEAD), links, strict=True):
            world.connect(Client(world.clock, [link], name=name), name)

    @property
    def sent(self) -> int:
        """Commands that went to the queue."""
        return self.queue.sent

    @property
    def resent(self) -> int:
        """How many of them went again."""
        return self.queue.client.resent

    def _purge(self) -> None:
        self.book.before_purge |= self.book.sent
        self.queue.purge(lambda count: None)

    def busy(self) -> None:
        """Something is to go wrong soon: see that much is on its way then."""
        for consumer in self.consumers:
            consumer.act()
        if self._draws.randrange(0, 3) == 0:
            self._purge()
        for publisher in self.publishers:
            publisher.burst()

    def calm(self) -> None:
        """All is mended: nothing more is drawn."""
        for consumer in self.consumers:
            consumer.calm()

    def finish(self) -> None:
        """All is quiet: look at the credit, then take all there is."""
        self._check_credit()
        for consumer in self.consumers:
            consumer.take_all()

    def check(self) -> None:
        """What clients were promised, when all is quiet again."""
        self._check_credit()
        book, machine = self.book, self.queue.group.front()
        ready = [body(message.payload) for message in machine.ready_messages()]
        dead = [body(payload) for payload in self._dead.payloads]
        if len(set(dead)) < len(dead):
            twice = sorted({name for name in dead if dead.count(name) > 1})
            self._broken(DEAD_LETTERS, f"there is more than one of {twice}")
        if len(set(ready)) < len(ready) or book.accepted & set(ready):
            self._broken(ONCE, f"in the queue are {sorted(ready)}")
        known = book.accepted | book.rejected | set(ready) | set(dead) | book.before_purge
        if lost := book.confirmed - known:
            self._broken(NOTHING_CONFIRMED_LOST, f"{len(lost)} messages, such as {min(lost)!r}")
        for publisher in self.publishers:
            if publisher.unconfirmed:
                self._broken(
                    NOTHING_CONFIRMED_LOST,
                    f"{publisher.vantage} waits for {publisher.unconfirmed} confirms although a"
                    " majority is there again",
                )

    def _check_credit(self) -> None:
        """Both ends, the session and the queue know one number, who is active, what is full."""
        machine = self.queue.group.front()
        hosts = {
            host.link.name: host
            for host in self.queue.links
            if isinstance(host, RabbitOutgoingLink)
        }
        for consumer in self.consumers:
            link = consumer.link
            assert link is not None
            host = hosts.pop(link.name)
            queue, session = machine.consumer(host.name), host.overview()
            ends = (link.credit, link.delivery_count), (host.link.credit, host.link.delivery_count)
            if ends[0] != ends[1]:
                self._broken(CREDIT, f"{link.name}: the ends have (credit, count) {ends}")
            if session["in_flight"] or session["buffered"]:
                self._broken(CREDIT, f"{link.name}: its session waits for the queue: {session}")
            if session["queue_credit"] != queue.link_credit:
                self._broken(
                    CREDIT,
                    f"{link.name}: the queue knows a credit of {queue.link_credit}, its session"
                    f" one of {session['queue_credit']}",
                )
            if link.credit and machine.has_for(host.name):
                self._broken(
                    CREDIT, f"{link.name}: {machine.ready} are ready beside {link.credit} credit"
                )
            is_active = not machine.single_active or machine.active == host.name
            if consumer.active is not None and consumer.active != is_active:
                self._broken(STANDING, f"{link.name} was told active: {consumer.active}")
        if hosts:
            self._broken(CREDIT, f"the queue still serves {', '.join(hosts)}")
        if self.queue.full != machine.full:
            self._broken(STANDING, f"publishers were told full: {self.queue.full}")
