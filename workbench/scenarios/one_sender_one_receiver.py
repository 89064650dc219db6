"""The article's benchmark one_sender_one_receiver: a publisher and a consumer on one connection.

The consumer empties a full classic queue, and acknowledges each message; the publisher fills a
quorum queue in batches, the next one when each message of the last is confirmed. Over AMQP 0-9-1
both share one channel, and one socket, in which an acknowledgement waits behind whatever was
published before it. Over AMQP 1.0 they share one session. What was consumed and published when time
is up is what the article counted ("Ten Benefits of AMQP 1.0 Flow Control", Benchmark: One sender,
one receiver).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Annotated, Any

from workbench.amqp10.credit import TopUpAtHalf
from workbench.broker.quorum_node import SyncTime
from workbench.frontends import BrokerConnection, BrokerConnection091, message_of
from workbench.peers import (
    AtOnce,
    Client091,
    Consumer,
    Consumer091,
    Publisher,
    Publisher091,
    Task091,
)
from workbench.queues import QueueArguments

from .credit import client_of
from .declare import PRESET, Whole, scenario
from .parameters import Latency, SmallMessageBytes
from .publishers import address
from .quorum import Fsync
from .two_senders import (
    AMQP_0_9_1,
    AMQP_1_0,
    ARTICLE_MS,
    BOTH,
    CLASSIC,
    LONGEST_MS,
    MEANT_FOR,
    PERSISTENT,
    QUORUM,
    US_PER_MS,
    Compared,
    Protocol,
    body_of,
    encoded,
    lock_of,
    protocols_of,
    put_in,
    queue_name,
    say,
)
from .world import World, after_all

ARTICLE = {
    (AMQP_0_9_1, CLASSIC): 9_068,
    (AMQP_0_9_1, QUORUM): 172_800,
    (AMQP_1_0, CLASSIC): 663_771,
    (AMQP_1_0, QUORUM): 130_000,
}
"""What the article counted after ten seconds: consumed from the classic queues, published to the
quorum queues. Data, of which nothing here is made."""
MEASURED = {350: (17.7, 21.9), 5_350: (38.3, 44.6), 20_350: (128.0, 165.0)}
"""Ratios of what was consumed, by microseconds of an fsync: the least and the most of three runs
of the same programs on RabbitMQ 4.3.6, two cores, client and broker on the same machine."""
BATCH, PREFETCH = 10_000, 200
DEEP = 1_000_000  # octets: a batch of 10,000 messages has 810,000 over 0-9-1
MOST_PRELOADED = 1_000_000
CONSUMER, PUBLISHER = "consumer", "publisher"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What one of the clients has done.

    Attributes:
        protocol: that it spoke.
        consumed: messages that it has acknowledged, and the broker has heard of.
        published: messages that are in the quorum queue.
        left: messages in the classic queue; with 0 it had less to consume than it could.
    """

    protocol: str
    consumed: int
    published: int
    left: int


def moved(world: World) -> list[Moved]:
    """What each client has done, from what is in the queues now.

    Args:
        world: of a run of this scenario.
    """
    found = []
    for protocol in protocols_of(world):
        left = world.broker.queues[queue_name(CLASSIC, protocol)].queue.ready
        found.append(
            Moved(
                protocol=protocol,
                consumed=world.number("preload") - left,
                published=world.broker.queues[queue_name(QUORUM, protocol)].queue.ready,
                left=left,
            )
        )
    return found


def compared(world: World) -> list[Compared]:
    """What was consumed and published beside the article's counts, and the ratio of the former."""
    share = world.number("run_ms") / ARTICLE_MS
    found = []
    done = moved(world)
    for one in done:
        for kind, what, count in (
            (CLASSIC, say("compared.consumed", protocol=one.protocol), one.consumed),
            (QUORUM, say("compared.published", protocol=one.protocol), one.published),
        ):
            article = ARTICLE[one.protocol, kind] * share
            found.append(Compared(what=what, model=count, article=article))
    if len(done) == len((AMQP_1_0, AMQP_0_9_1)):
        new, old = done
        found.append(
            Compared(
                what=say("compared.consumed-ratio"),
                model=new.consumed / max(1, old.consumed),
                article=ARTICLE[AMQP_1_0, CLASSIC] / ARTICLE[AMQP_0_9_1, CLASSIC],
            )
        )
    return found


def told(world: World) -> list[str]:
    """What was put in, what came out beside the article, and what real brokers were measured at."""
    lines = put_in(world)
    lines += [
        say(f"put-in.{name}", value=world.number(name))
        for name in ("socket_octets", "publishes_per_ack", "batch", "prefetch")
    ]
    lines += [one.told(5) for one in compared(world)]
    lines += [
        say("compared.empty", protocol=one.protocol, preload=world.number("preload"))
        for one in moved(world)
        if not one.left
    ]
    lines += [
        say("compared.measured", ms=us / 1_000, least=least, most=most)
        for us, (least, most) in MEASURED.items()
    ]
    return lines


class BatchPublisher(Publisher):
    """An AMQP 1.0 publisher that sends a batch, and the next one when each is settled.

    Args:
        name: of the link.
        address: of its target.
        message: that it publishes, again and again.
        batch: messages.
    """

    def __init__(self, name: str, address: str, message: bytes, batch: int) -> None:
        super().__init__(name, address)
        self._message = message
        self._batch = batch
        self._open = 0

    def begin(self) -> None:
        """Sends the first batch."""
        super().begin()
        self._next()

    def settled(self, delivery: Any, state: object) -> None:
        """Counts what is settled; with the last of a batch the next one goes."""
        super().settled(delivery, state)
        self._open -= 1
        if not self._open:
            self._next()

    def _next(self) -> None:
        self._open = self._batch
        self.publish(repeat(self._message, self._batch))


def _ends(world: World, connections: Iterable[str]) -> None:
    """When time is up the program ends: what the broker has not read by then is lost."""

    def over() -> None:
        for name in connections:
            connection = world.broker.connections[name]
            assert isinstance(connection, BrokerConnection | BrokerConnection091)
            connection.lost()

    world.clock.call_later(world.number("run_ms") * US_PER_MS, over)


def _amqp_10(world: World, begun: Callable[[str], None]) -> None:
    """The AMQP 1.0 half: a link to publish and a link to consume on one session."""

    def attached() -> None:
        begun(AMQP_1_0)
        _ends(world, ["c1"])

    client = client_of(
        world,
        Consumer(
            CONSUMER,
            address(queue_name(CLASSIC)),
            policy=TopUpAtHalf(world.number("prefetch")),
            auto_settle=True,
        ),
        BatchPublisher(
            PUBLISHER, address(queue_name(QUORUM)), encoded(world), world.number("batch")
        ),
        name="app",
        sending=AtOnce(),
        on_attached=attached,
    )
    world.connect(client, "c1", peer="client")


def _amqp_091(world: World, begun: Callable[[str], None]) -> None:
    """The AMQP 0-9-1 half: both on one channel, or each on a connection of its own."""
    tasks: list[Task091] = [
        Consumer091(CONSUMER, queue_name(CLASSIC, AMQP_0_9_1), prefetch=world.number("prefetch")),
        Publisher091(
            PUBLISHER,
            queue_name(QUORUM, AMQP_0_9_1),
            body=body_of(world),
            properties=PERSISTENT,
            mandatory=True,
            batch=world.number("batch"),
        ),
    ]
    together = [[task] for task in tasks] if world.parameters["separate"] else [tasks]
    names = [f"c{number}" for number in range(2, 2 + len(together))]

    def start() -> None:
        begun(AMQP_0_9_1)
        _ends(world, names)

    opened = after_all(names, start)

    for name, ours in zip(names, together, strict=True):
        sharing = lock_of(world, world.number("publishes_per_ack"))
        client = Client091(
            world.clock,
            ours,
            name=f"app-{name}",
            sharing=sharing,
            on_open=partial(opened, name),
        )
        world.connect(client, name, world.number("socket_octets"), peer=f"client-{name}")


@scenario(
    "The article's benchmark: one sender and one receiver on one connection",
    preset=MEANT_FOR,
    long=True,
    told=told,
)
def one_sender_one_receiver(
    world: World,
    run_ms: Annotated[
        int, Whole(1, LONGEST_MS, "ms"), "how long each client runs, in virtual time"
    ] = 500,
    preload: Annotated[
        int, Whole(1, MOST_PRELOADED, "messages"), "ready in each classic queue at the beginning"
    ] = 100_000,
    protocol: Protocol = BOTH,
    separate: Annotated[
        bool, "over 0-9-1, publisher and consumer have a connection of their own each"
    ] = False,
    socket_octets: Annotated[
        int,
        Whole(1_000, 100_000_000, "octets"),
        "what TCP takes of a 0-9-1 client before it is read; a batch of 10,000 has 810,000",
    ] = DEEP,
    publishes_per_ack: Annotated[
        int,
        Whole(0, 100_000, "messages"),
        "hypothesis: so many messages are written while an acknowledgement waits for the writer",
    ] = 20,
    batch: Annotated[
        int, Whole(1, 100_000, "messages"), "published before the next batch may be confirmed"
    ] = BATCH,
    prefetch: Annotated[
        int,
        Whole(1, 65_535, "messages"),
        "deliveries ahead of acknowledgement over 0-9-1; credit, renewed at half, over 1.0",
    ] = PREFETCH,
    fsync_us: Fsync = PRESET,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A client consumes from a full classic queue and publishes to a quorum queue in batches.

    Over AMQP 1.0 on one session, over 0-9-1 on one channel or on two connections. Two parameters
    decide how the 0-9-1 consumer fares: how much the socket takes, and how often an acknowledgement
    comes in between.
    """
    world.broker.make_cluster(1, fsync=SyncTime.constant(fsync_us))
    message = message_of(encoded(world))
    protocols = protocols_of(world)
    for one in protocols:
        queue = world.broker.declare(queue_name(CLASSIC, one))
        world.clock.call_soon(queue.fill, repeat(message, preload))
        arguments = QueueArguments(queue_type=QUORUM)
        world.broker.declare(queue_name(QUORUM, one), arguments, replicas=1)
    begun = after_all(protocols, world.mark_start)
    if AMQP_1_0 in protocols:
        _amqp_10(world, begun)
    if AMQP_0_9_1 in protocols:
        _amqp_091(world, begun)
