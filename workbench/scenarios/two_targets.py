"""Lesson 07: one AMQP 1.0 session publishes to a classic and to a quorum queue.

The two links share connection, session and window, and nothing else: the disk that a quorum queue
waits for holds its own publisher alone. Acts: publish, slow_disk, hold, release, set_latency.
"""

from __future__ import annotations

from typing import Annotated

from workbench.broker.quorum_node import SyncTime
from workbench.queues import QueueArguments

from .acts import WIRE_ACTS
from .credit import client_of
from .declare import PRESET, OneOf, act, scenario, unless
from .parameters import Latency, Settled, SmallMessageBytes
from .publishers import US_PER_S, PublishCount, Rate, publisher
from .quorum import Fsync, Replicas, cluster_of
from .world import World

CLASSIC, QUORUM = "classic", "quorum"
TARGETS = (CLASSIC, QUORUM)
ALL = "all"


@act(unless("two-targets.not-attached", lambda world: world.peers["client"].attached))
def publish(
    world: World,
    *,
    queue: Annotated[str, OneOf(ALL, *TARGETS), "over the link to which queue"] = ALL,
    count: PublishCount,
    rate: Annotated[
        Rate, "how fast the application hands them over, on each link; 0: all at once"
    ] = 20_000,
) -> None:
    """Let the application publish over one link, or over both."""
    every_us = max(1, US_PER_S // rate) if rate else 0
    for name in TARGETS if queue == ALL else (queue,):
        world.peers["client"].publisher(name).publish(world.payloads(count), every_us)


@act()
def slow_disk(
    world: World, fsync_us: Annotated[Fsync, "on every node, from the next one on"]
) -> None:
    """Change how long an fsync takes."""
    cluster = cluster_of(world)
    for name in cluster.nodes:
        cluster.set_fsync(name, SyncTime.constant(fsync_us))


@scenario("A classic and a quorum queue on one session", acts=(publish, slow_disk, *WIRE_ACTS))
def two_targets(
    world: World,
    replicas: Annotated[Replicas, "of the quorum queue"] = "1",
    fsync_us: Fsync = PRESET,
    settled: Settled = False,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A client publishes to a classic and to a quorum queue over one AMQP 1.0 session.

    Each link has credit of its own, and the broker withholds it from the link whose queue does not
    confirm.
    """
    world.broker.make_cluster(int(replicas), fsync=SyncTime.constant(fsync_us))
    world.broker.declare(CLASSIC)
    world.broker.declare(QUORUM, QueueArguments(queue_type="quorum"), replicas=int(replicas))

    links = [publisher(world, name, name) for name in TARGETS]
    client = client_of(world, *links, name="app", on_attached=world.mark_start)
    world.connect(client, "c1", peer="client")
