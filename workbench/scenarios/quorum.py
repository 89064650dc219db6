"""Lesson 07: one publisher of a quorum queue, and what befalls its replicas.

A publisher sends over AMQP 1.0 into a queue with 1, 3, 5 or 7 replicas; a person publishes, slows a
disk, cuts a way, crashes a node and brings it back. Rows tell of every batch that is written and
synced, of every entry that is replicated, committed and applied, and of the confirm.
Acts: publish, slow_disk, slow_way, cut, heal, crash, restart, hold, release, set_latency.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from workbench.broker.quorum_cluster import FRONT, REPLICAS, QuorumCluster
from workbench.broker.quorum_node import SyncTime
from workbench.peers import Consumer, Publisher
from workbench.queues import QueueArguments

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .credit import QUEUE, client_of
from .declare import PRESET, OneOf, Whole, act, scenario, unless
from .parameters import MAX_MESSAGES, Count, Latency, Microseconds, Ready, SmallMessageBytes
from .world import World, after_all

MAX_FSYNC_US = 1_000_000
NODES = tuple(f"n{number}" for number in range(1, REPLICAS[-1] + 1))

Fsync = Annotated[int, Whole(0, MAX_FSYNC_US, "us"), "how long an fsync takes"]
Replicas = Annotated[str, OneOf(*map(str, REPLICAS)), "how many nodes have a copy of the queue"]
Node = Annotated[str, OneOf(*NODES)]
End = Annotated[str, OneOf(*NODES, FRONT)]


def cluster_of(world: World) -> QuorumCluster:
    """The world's cluster."""
    cluster = world.broker.cluster
    assert cluster is not None
    return cluster


# -- acts -----------------------------------------------------------------------------------


@act(unless("publisher-not-attached", lambda world: world.peers["publisher"].attached))
def publish(world: World, count: Annotated[Count, "how many"] = 1) -> None:
    """The publisher sends messages, as far as its credit goes."""
    world.peers["publisher"].publish(world.payloads(count))


@act()
def slow_disk(
    world: World,
    node: Annotated[str, OneOf(*NODES, "all"), "whose disk; all for every node's"],
    fsync_us: Annotated[Fsync, "how long one fsync takes from the next one on"],
) -> None:
    """Change how long an fsync takes."""
    cluster = cluster_of(world)
    for name in cluster.nodes if node == "all" else (node,):
        cluster.set_fsync(name, SyncTime.constant(fsync_us))


@act()
def slow_way(
    world: World,
    a: Annotated[End, "one end"],
    b: Annotated[End, "the other end"],
    latency_us: Annotated[Microseconds, "each direction"],
) -> None:
    """Change how long a message is under way between two nodes."""
    cluster_of(world).set_latency(a, b, latency_us)


@act()
def cut(
    world: World,
    a: Annotated[Node, "one end"],
    b: Annotated[End, "the other end; left out, all of them"] | None = None,
) -> None:
    """Cut the way between two nodes, or every way of one."""
    if b is None:
        cluster_of(world).isolate(a)
    else:
        cluster_of(world).cut(a, b)


@act()
def heal(
    world: World,
    a: Annotated[End, "one end; left out, all ways"] | None = None,
    b: Annotated[End, "the other end; left out, every way of the first"] | None = None,
) -> None:
    """Mend the way between two nodes, every way of one, or all."""
    cluster = cluster_of(world)
    if a is not None and b is not None:
        cluster.heal(a, b)
        return
    end = b if a is None else a
    cuts = [ends for ends in cluster.network.cuts() if end is None or end in ends]
    if not cuts:
        raise ActionError(refusal("quorum.not-cut"))
    for one, other in cuts:
        cluster.heal(one, other)


@act()
def crash(
    world: World,
    node: Annotated[str, OneOf(*NODES, "leader"), "which; leader for whoever leads"],
    saved: Annotated[
        int,
        Whole(0, MAX_MESSAGES, "entries"),
        "of the batch being synced, so many are on disk all the same",
    ] = 0,
) -> None:
    """Power off a node; what its log has not synced is lost."""
    cluster = cluster_of(world)
    if node == "leader":
        leader = cluster.groups[QUEUE].leader
        if leader is None:
            alive = [name for name, each in cluster.nodes.items() if each.alive]
            nodes = refusal("quorum.or").join(alive)
            raise ActionError(
                refusal("quorum.no-leader" if alive else "quorum.nobody-left", nodes=nodes)
            )
        node = leader
    cluster.crash(node, saved=saved)


@act()
def restart(world: World, node: Annotated[Node, "which"]) -> None:
    """Power a node on again; it knows what its disk knows."""
    cluster_of(world).restart(node)


@scenario(
    "A quorum queue, its disks and its replicas",
    acts=(publish, slow_disk, slow_way, cut, heal, crash, restart, *WIRE_ACTS),
)
def quorum(
    world: World,
    replicas: Replicas = "5",
    messages: Annotated[Ready, "that the publisher sends as soon as it may"] = 0,
    link_credit: Annotated[
        int,
        Whole(0, MAX_MESSAGES, "messages"),
        "of a consumer on a connection of its own; 0: there is none",
    ] = 0,
    fsync_us: Annotated[Fsync, "how long an fsync takes on every node"] = PRESET,
    node_latency_us: Annotated[
        Microseconds, "how long a message is under way between two nodes"
    ] = PRESET,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Annotated[
        Latency, "how long a frame is under way between client and broker"
    ] = PRESET.wire_latency_us,
) -> None:
    """A publisher sends into a quorum queue.

    A message is confirmed when a majority of the replicas has it on disk and the leader has applied
    it.
    """
    world.broker.make_cluster(
        int(replicas),
        fsync=SyncTime.constant(fsync_us),
        latency_us=node_latency_us,
    )
    world.broker.declare(QUEUE, QueueArguments(queue_type="quorum"), replicas=int(replicas))

    def begin() -> None:
        world.mark_start()
        if messages:
            world.clock.call_soon(publisher.publish, world.payloads(messages))
        if link_credit:
            world.clock.call_soon(world.peers["consumer"].grant, link_credit)

    publisher = Publisher(address=QUEUE)
    world.peers["publisher"] = publisher
    if link_credit:
        world.peers["consumer"] = Consumer(address=QUEUE)
    attached = after_all(world.peers, begin)
    for number, (role, link) in enumerate(world.peers.items(), start=1):
        client = client_of(world, link, on_attached=partial(attached, role))
        world.connect(client, f"c{number}")
