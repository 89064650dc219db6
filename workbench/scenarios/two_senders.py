"""The article's benchmark two_senders: as fast as possible into a classic and a quorum queue.

One client has an AMQP 1.0 connection and session with a link to each queue, and another one an AMQP
0-9-1 connection and channel that both its publishers share. Each publishes as fast as it may for
some time: settled messages over 1.0, without confirms over 0-9-1. What is in the queues then is
what the article counted ("Ten Benefits of AMQP 1.0 Flow Control", Benchmark: Two senders). This is
a run to be counted: what is due at one instant happens in one clock event.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from workbench import presets
from workbench.amqp091.methods import Properties
from workbench.amqp10.messaging import Data, encode_message
from workbench.broker.quorum_node import SyncTime
from workbench.frontends import BrokerConnection091
from workbench.languages import phrase
from workbench.peers import AtOnce, Client091, OneLock, Publisher, Publisher091
from workbench.queues import QueueArguments

from .action import refusal
from .credit import client_of
from .declare import PRESET, OneOf, ParameterError, Whole, scenario
from .parameters import Latency, SmallMessageBytes
from .publishers import address
from .quorum import Fsync
from .world import World

say = partial(phrase, "runs")

MEANT_FOR = "blog2024"
AMQP_1_0, AMQP_0_9_1, BOTH = "amqp-10", "amqp-091", "both"
CLASSIC, QUORUM = "classic", "quorum"
KINDS = (CLASSIC, QUORUM)
LONGEST_MS = 60_000
US_PER_MS = 1_000
ARTICLE_MS = 10_000
ARTICLE = {
    (AMQP_1_0, CLASSIC): 1_089_075,
    (AMQP_1_0, QUORUM): 148_580,
    (AMQP_0_9_1, CLASSIC): 159_077,
    (AMQP_0_9_1, QUORUM): 155_782,
}
"""What the article counted after ten seconds: data, of which nothing here is made."""
ARTICLE_BLOCKS = 80
"""How often in a second its 0-9-1 connection was blocked, "around": likewise."""
PAYLOAD = b"some payload"
PERSISTENT = Properties(delivery_mode=2)
CONNECTION_091 = "c2"
TAKEN = 190_000  # octets that 4.3.6 was measured to take after its reader had stopped
INPUTS = (
    "fsync_us",
    "session_us",
    "session_ns",
    "channel_us",
    "client_publish_us",
    "client_ack_us",
    "process_credit",
    "process_regrant_after",
    "quorum_soft_limit",
    "publisher_credit",
)
"""Numbers of the preset that decide the counts: all that was put in."""

Protocol = Annotated[
    str, OneOf(AMQP_1_0, AMQP_0_9_1, BOTH), "whose client publishes: one connection for each"
]


def body_of(world: World) -> bytes:
    """The body of the benchmarks' message, `message_bytes` long."""
    size = world.number("message_bytes")
    return PAYLOAD.ljust(size, b".")[:size]


def encoded(world: World) -> bytes:
    """The benchmarks' message, as AMQP 1.0 has it."""
    return encode_message([Data(body_of(world))])


def queue_name(kind: str, protocol: str = AMQP_1_0) -> str:
    """The queue of a protocol's sender, named as in the article."""
    return f"{kind}-queue-{protocol}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What came into one queue.

    Attributes:
        kind: of the queue, `classic` or `quorum`.
        protocol: of the sender.
        messages: in the queue at the end.
        article: how many the article counted, for as long a time as the run took.
    """

    kind: str
    protocol: str
    messages: int
    article: float

    @property
    def residual(self) -> float:
        """How far the model is from the article, as a share of the article's count."""
        return self.messages / self.article - 1


def counted(world: World) -> list[Counted]:
    """What is in the queues now, beside the article's counts.

    Args:
        world: of a run of this scenario.
    """
    share = world.number("run_ms") / ARTICLE_MS
    return [
        Counted(
            kind=kind,
            protocol=protocol,
            messages=world.broker.queues[queue_name(kind, protocol)].queue.ready,
            article=count * share,
        )
        for (protocol, kind), count in ARTICLE.items()
        if queue_name(kind, protocol) in world.broker.queues
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What came of a whole run, beside what the article has for it.

    Attributes:
        what: in words.
        model: what came out.
        article: the article's number.
    """

    what: str
    model: float
    article: float

    @property
    def residual(self) -> float:
        """How far the model is from the article, as a share of the article's number."""
        return self.model / self.article - 1

    def told(self, digits: int) -> str:
        """The line of it, both numbers with so many digits."""
        return say(
            "compared.figure",
            what=self.what,
            model=f"{self.model:,.{digits}g}",
            article=f"{self.article:,.{digits}g}",
            residual=self.residual,
        )


def compared(world: World) -> list[Compared]:
    """Sums, their ratio, and how often a second the 0-9-1 connection was blocked.

    Args:
        world: of a run of this scenario; of both halves, or the ratio is left out.
    """
    counts = counted(world)
    sums: dict[str, Compared] = {}
    for protocol in dict.fromkeys(one.protocol for one in counts):
        ours = [one for one in counts if one.protocol == protocol]
        sums[protocol] = Compared(
            what=say("compared.sum", protocol=protocol),
            model=sum(one.messages for one in ours),
            article=sum(one.article for one in ours),
        )
    found = [*sums.values()]
    if len(sums) == len((AMQP_1_0, AMQP_0_9_1)):
        one, other = sums[AMQP_1_0], sums[AMQP_0_9_1]
        found.append(
            Compared(
                what=say("compared.sums"),
                model=one.model / max(1, other.model),
                article=one.article / other.article,
            )
        )
    if AMQP_0_9_1 in sums:
        found.append(
            Compared(
                what=say("compared.blocks"),
                model=stops(world) * 1_000 / world.number("run_ms"),
                article=ARTICLE_BLOCKS,
            )
        )
    return found


def stops(world: World) -> int:
    """How often the reader of the 0-9-1 connection has stopped."""
    connection = world.broker.connections[CONNECTION_091]
    assert isinstance(connection, BrokerConnection091)
    return connection.throttle.stops


def put_in(world: World) -> list[str]:
    """The numbers that decide the counts, in words, each with its source in the preset."""
    numbers = {number.name: number for number in presets.describe(world.preset)}
    return [
        say(
            "compared.put-in",
            name=name,
            value=numbers[name].value,
            unit=numbers[name].unit,
            source=numbers[name].source,
        )
        for name in INPUTS
    ]


def told(world: World) -> list[str]:
    """The counts in words; with the 0-9-1 half what was put in, and what came of it all."""
    counts = [
        say(
            "compared.queue",
            queue=queue_name(one.kind, one.protocol),
            messages=one.messages,
            article=one.article,
            residual=one.residual,
        )
        for one in counted(world)
    ]
    if CONNECTION_091 not in world.broker.connections:
        return counts
    whole = [one.told(4) for one in compared(world)]
    return [*put_in(world), *counts, *whole]


def _amqp_10(world: World) -> None:
    """The AMQP 1.0 half: one connection, one session, a link to each queue."""

    def attached() -> None:
        world.mark_start()
        world.clock.call_later(world.number("run_ms") * US_PER_MS, client.stop)

    message = encoded(world)
    links = [
        Publisher(kind, address(queue_name(kind)), settled=True, endless=message) for kind in KINDS
    ]
    client = client_of(world, *links, name="app", sending=AtOnce(), on_attached=attached)
    world.connect(client, "c1", peer="client")


def lock_of(world: World, publishes_per_ack: int = 1) -> OneLock:
    """How the tasks of the 0-9-1 client share its socket: by one lock, which takes its time."""
    preset = world.preset
    return OneLock(
        publishes_per_ack, publish_us=preset.client_publish_us, ack_us=preset.client_ack_us
    )


def _amqp_091(world: World) -> None:
    """The AMQP 0-9-1 half: one connection, one channel, a publisher for each queue."""

    def opened() -> None:
        if AMQP_1_0 not in protocols_of(world):
            world.mark_start()
        world.clock.call_later(world.number("run_ms") * US_PER_MS, over)

    def over() -> None:
        """The program ends: what the broker has not read by then is not counted."""
        client.stop()
        connection = world.broker.connections[CONNECTION_091]
        assert isinstance(connection, BrokerConnection091)
        connection.lost()

    body = body_of(world)
    tasks = [
        Publisher091(
            kind,
            queue_name(kind, AMQP_0_9_1),
            body=body,
            properties=PERSISTENT,
            mandatory=True,
            endless=True,
        )
        for kind in KINDS
    ]
    client = Client091(world.clock, tasks, name="app-091", sharing=lock_of(world), on_open=opened)
    world.connect(client, CONNECTION_091, world.number("socket_octets"), peer="client-091")


def protocols_of(world: World) -> tuple[str, ...]:
    """The protocols of a run."""
    protocol = world.text("protocol")
    return (AMQP_1_0, AMQP_0_9_1) if protocol == BOTH else (protocol,)


@scenario(
    "The article's benchmark: two senders on one connection, as fast as they may",
    preset=MEANT_FOR,
    long=True,
    told=told,
)
def two_senders(
    world: World,
    run_ms: Annotated[
        int, Whole(1, LONGEST_MS, "ms"), "how long each client publishes, in virtual time"
    ] = 10_000,
    fsync_us: Fsync = PRESET,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
    protocol: Protocol = AMQP_1_0,
    socket_octets: Annotated[
        int,
        Whole(1_000, 100_000_000, "octets"),
        "what TCP takes of the 0-9-1 client before it is read",
    ] = TAKEN,
) -> None:
    """A client publishes to a classic and to a quorum queue over one session, or over one channel.

    It is as fast as credit lets it, over AMQP 1.0, over 0-9-1, or one client over each, for ten
    seconds of virtual time. With preset blog2024 more than a million messages: write it to a file.
    """
    protocols = protocols_of(world)
    if AMQP_1_0 in protocols and not (
        world.preset.session_us or world.preset.session_ns or latency_us
    ):
        told = {"preset": world.preset.name, "meant": MEANT_FOR}
        raise ParameterError(refusal("fast.session", **told))
    world.broker.make_cluster(1, fsync=SyncTime.constant(fsync_us))
    for one in protocols:
        world.broker.declare(queue_name(CLASSIC, one))
        arguments = QueueArguments(queue_type=QUORUM)
        world.broker.declare(queue_name(QUORUM, one), arguments, replicas=1)
    if AMQP_1_0 in protocols:
        _amqp_10(world)
    if AMQP_0_9_1 in protocols:
        _amqp_091(world)
