"""Lesson 07: one AMQP 1.0 session publishes to a classic and to a quorum queue.

The two links share connection, session and window, and nothing else: the disk that a quorum queue
waits for holds its own publisher alone. Acts: publish, slow_disk, hold, release, set_latency.
"""

from __future__ import annotations

from workbench.broker.quorum_cluster import REPLICAS
from workbench.broker.quorum_node import SyncTime
from workbench.queues import QueueArguments

from .acts import MAX_LATENCY_US, WIRE_ACTS
from .credit import client_of
from .declare import ActionSpec, Kind, Parameter, Scenario
from .publishers import MAX_PUBLISH, US_PER_S, publisher
from .quorum import MAX_FSYNC_US, cluster_of
from .registry import register
from .world import World

CLASSIC, QUORUM = "classic", "quorum"
TARGETS = (CLASSIC, QUORUM)
ALL = "all"


def build(world: World) -> None:
    """Both queues, and one client with a link to each."""
    replicas = int(world.text("replicas"))
    world.broker.make_cluster(replicas, fsync=SyncTime.constant(world.number("fsync_us")))
    world.broker.declare(CLASSIC)
    world.broker.declare(QUORUM, QueueArguments(queue_type="quorum"), replicas=replicas)

    links = [publisher(world, name, name) for name in TARGETS]
    client = client_of(world, *links, name="app", on_attached=world.mark_start)
    world.peers["client"] = client
    latency = world.number("latency_us")
    world.connect(client, "c1", (latency, latency))


def _not_attached(world: World) -> str | None:
    if world.peers["client"].attached:
        return None
    return "the links are not attached yet; legal now: slow_disk, hold, release, set_latency"


def publish(world: World, *, queue: str, count: int, rate: int) -> None:
    """Messages for one link, or for both."""
    every_us = max(1, US_PER_S // rate) if rate else 0
    for name in TARGETS if queue == ALL else (queue,):
        payloads = [world.message(world.number("message_bytes")) for _ in range(count)]
        world.peers["client"].publisher(name).publish(payloads, every_us)


def slow_disk(world: World, *, fsync_us: int) -> None:
    """Another fsync time for every node."""
    cluster = cluster_of(world)
    for name in cluster.nodes:
        cluster.set_fsync(name, SyncTime.constant(fsync_us))


ACTS = (
    ActionSpec(
        name="publish",
        doc="let the application publish over one link, or over both",
        parameters=(
            Parameter(
                name="queue",
                kind=Kind.TEXT,
                default=ALL,
                choices=(ALL, *TARGETS),
                doc="over the link to which queue",
            ),
            Parameter(
                name="count",
                required=True,
                minimum=1,
                maximum=MAX_PUBLISH,
                unit="messages",
                doc="how many messages, over each link that is meant",
            ),
            Parameter(
                name="rate",
                default=20_000,
                minimum=0,
                maximum=US_PER_S,
                unit="messages per second",
                doc="how fast the application hands them over, on each link; 0: all at once",
            ),
        ),
        legal=_not_attached,
        apply=publish,
    ),
    ActionSpec(
        name="slow_disk",
        doc="change how long an fsync takes",
        parameters=(
            Parameter(
                name="fsync_us",
                required=True,
                minimum=0,
                maximum=MAX_FSYNC_US,
                unit="us",
                doc="on every node, from the next one on",
            ),
        ),
        apply=slow_disk,
    ),
    *WIRE_ACTS,
)

TWO_TARGETS = register(
    Scenario(
        name="two_targets",
        title="A classic and a quorum queue on one session",
        doc=(
            "A client publishes to a classic and to a quorum queue over one AMQP 1.0 session. Each"
            " link has credit of its own, and the broker withholds it from the link whose queue"
            " does not confirm."
        ),
        parameters=(
            Parameter(
                name="replicas",
                kind=Kind.TEXT,
                default="1",
                choices=tuple(map(str, REPLICAS)),
                doc="of the quorum queue",
            ),
            Parameter(
                name="fsync_us",
                preset_field="fsync_us",
                minimum=0,
                maximum=MAX_FSYNC_US,
                unit="us",
                doc="how long an fsync takes",
            ),
            Parameter(
                name="settled",
                kind=Kind.YES_NO,
                default=False,
                doc="messages are sent settled: no disposition tells the client of them",
            ),
            Parameter(
                name="message_bytes",
                preset_field="message_bytes",
                minimum=0,
                maximum=65_536,
                unit="octets",
                doc="size of each message's body",
            ),
            Parameter(
                name="latency_us",
                preset_field="wire_latency_us",
                minimum=0,
                maximum=MAX_LATENCY_US,
                unit="us",
                doc="how long a frame is under way, each direction",
            ),
        ),
        actions=ACTS,
        build=build,
    )
)
