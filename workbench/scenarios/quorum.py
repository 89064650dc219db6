"""Lesson 07: one publisher of a quorum queue, and what befalls its replicas.

A publisher sends over AMQP 1.0 into a queue with 1, 3, 5 or 7 replicas; a person publishes, slows a
disk, cuts a way, crashes a node and brings it back. Rows tell of every batch that is written and
synced, of every entry that is replicated, committed and applied, and of the confirm.
Acts: publish, slow_disk, slow_way, cut, heal, crash, restart, hold, release, set_latency.
"""

from __future__ import annotations

from functools import partial

from workbench.broker.quorum_cluster import FRONT, REPLICAS, QuorumCluster
from workbench.broker.quorum_node import SyncTime
from workbench.peers import Consumer, Publisher
from workbench.queues import QueueArguments

from .action import ActionError
from .acts import MAX_LATENCY_US, WIRE_ACTS
from .credit import MAX_MESSAGES, QUEUE, client_of
from .declare import ActionSpec, Kind, Parameter, Scenario
from .registry import register
from .world import World

MAX_FSYNC_US = 1_000_000
NODES = tuple(f"n{number}" for number in range(1, REPLICAS[-1] + 1))


def build(world: World) -> None:
    """The cluster, the queue, and a publisher that attaches; perhaps a consumer."""
    replicas = int(world.text("replicas"))
    world.broker.make_cluster(
        replicas,
        fsync=SyncTime.constant(world.number("fsync_us")),
        latency_us=world.number("node_latency_us"),
    )
    world.broker.declare(QUEUE, QueueArguments(queue_type="quorum"), replicas=replicas)
    size, latency = world.number("message_bytes"), world.number("latency_us")
    waiting = {"publisher", "consumer"} if world.number("link_credit") else {"publisher"}

    def attached(role: str) -> None:
        waiting.discard(role)
        if waiting:
            return
        world.mark_start()
        first = [world.message(size) for _ in range(world.number("messages"))]
        if first:
            world.clock.call_soon(publisher.publish, first)
        if "consumer" in world.peers:
            world.clock.call_soon(world.peers["consumer"].grant, world.number("link_credit"))

    publisher = Publisher(address=QUEUE)
    world.peers["publisher"] = publisher
    if world.number("link_credit"):
        world.peers["consumer"] = Consumer(address=QUEUE)
    for number, (role, link) in enumerate(world.peers.items(), start=1):
        client = client_of(world, link, on_attached=partial(attached, role))
        world.connect(client, f"c{number}", (latency, latency))


def cluster_of(world: World) -> QuorumCluster:
    """The world's cluster."""
    cluster = world.broker.cluster
    assert cluster is not None
    return cluster


# -- acts -----------------------------------------------------------------------------------


def _not_attached(world: World) -> str | None:
    if world.peers["publisher"].attached:
        return None
    return "the publisher's link is not attached yet; legal now: hold, release, set_latency"


def publish(world: World, *, count: int) -> None:
    """The publisher sends messages, as far as its credit goes."""
    size = world.number("message_bytes")
    world.peers["publisher"].publish([world.message(size) for _ in range(count)])


def slow_disk(world: World, *, node: str, fsync_us: int) -> None:
    """Another fsync time for one node, or for all."""
    cluster = cluster_of(world)
    for name in cluster.nodes if node == "all" else (node,):
        cluster.set_fsync(name, SyncTime.constant(fsync_us))


def slow_way(world: World, *, a: str, b: str, latency_us: int) -> None:
    """Another latency between two nodes."""
    cluster_of(world).set_latency(a, b, latency_us)


def crash(world: World, *, node: str, saved: int) -> None:
    """Power off one node; `leader` is whoever leads now."""
    cluster = cluster_of(world)
    if node == "leader":
        leader = cluster.groups[QUEUE].leader
        if leader is None:
            alive = [name for name, each in cluster.nodes.items() if each.alive]
            raise ActionError(
                f"nobody leads now; legal now: crash {' or '.join(alive) or 'nobody'}"
            )
        node = leader
    cluster.crash(node, saved=saved)


def restart(world: World, *, node: str) -> None:
    """Power a node on again."""
    cluster_of(world).restart(node)


def cut(world: World, *, a: str, b: str | None) -> None:
    """Cut one way, or every way of a node."""
    if b is None:
        cluster_of(world).isolate(a)
    else:
        cluster_of(world).cut(a, b)


def heal(world: World, *, a: str | None, b: str | None) -> None:
    """Mend one way, or all."""
    cluster = cluster_of(world)
    if a is not None and b is not None:
        cluster.heal(a, b)
        return
    cuts = [ends for ends in cluster.network.cuts() if a is None or a in ends]
    if not cuts:
        raise ActionError("no such way is cut; legal now: cut")
    for one, other in cuts:
        cluster.heal(one, other)


def _node(name: str, doc: str, *more: str, required: bool = True) -> Parameter:
    return Parameter(name=name, kind=Kind.TEXT, required=required, choices=(*NODES, *more), doc=doc)


_FSYNC = Parameter(
    name="fsync_us",
    required=True,
    minimum=0,
    maximum=MAX_FSYNC_US,
    unit="us",
    doc="how long one fsync takes from the next one on",
)

ACTS = (
    ActionSpec(
        name="publish",
        doc="the publisher sends messages, as far as its credit goes",
        parameters=(
            Parameter(
                name="count",
                default=1,
                minimum=1,
                maximum=MAX_MESSAGES,
                unit="messages",
                doc="how many",
            ),
        ),
        legal=_not_attached,
        apply=publish,
    ),
    ActionSpec(
        name="slow_disk",
        doc="change how long an fsync takes",
        parameters=(_node("node", "whose disk; all for every node's", "all"), _FSYNC),
        apply=slow_disk,
    ),
    ActionSpec(
        name="slow_way",
        doc="change how long a message is under way between two nodes",
        parameters=(
            _node("a", "one end", FRONT),
            _node("b", "the other end", FRONT),
            Parameter(
                name="latency_us",
                required=True,
                minimum=0,
                maximum=MAX_LATENCY_US,
                unit="us",
                doc="each direction",
            ),
        ),
        apply=slow_way,
    ),
    ActionSpec(
        name="cut",
        doc="cut the way between two nodes, or every way of one",
        parameters=(
            _node("a", "one end"),
            _node("b", "the other end; left out, all of them", FRONT, required=False),
        ),
        apply=cut,
    ),
    ActionSpec(
        name="heal",
        doc="mend the way between two nodes, every way of one, or all",
        parameters=(
            _node("a", "one end; left out, all ways", FRONT, required=False),
            _node("b", "the other end; left out, every way of the first", FRONT, required=False),
        ),
        apply=heal,
    ),
    ActionSpec(
        name="crash",
        doc="power off a node; what its log has not synced is lost",
        parameters=(
            _node("node", "which; leader for whoever leads", "leader"),
            Parameter(
                name="saved",
                default=0,
                minimum=0,
                maximum=MAX_MESSAGES,
                unit="entries",
                doc="of the batch being synced, so many are on disk all the same",
            ),
        ),
        apply=crash,
    ),
    ActionSpec(
        name="restart",
        doc="power a node on again; it knows what its disk knows",
        parameters=(_node("node", "which"),),
        apply=restart,
    ),
    *WIRE_ACTS,
)


def _us(name: str, field: str, doc: str, most: int) -> Parameter:
    return Parameter(name=name, preset_field=field, minimum=0, maximum=most, unit="us", doc=doc)


QUORUM = register(
    Scenario(
        name="quorum",
        title="A quorum queue, its disks and its replicas",
        doc=(
            "A publisher sends into a quorum queue. A message is confirmed when a majority of the"
            " replicas has it on disk and the leader has applied it."
        ),
        parameters=(
            Parameter(
                name="replicas",
                kind=Kind.TEXT,
                default="5",
                choices=tuple(map(str, REPLICAS)),
                doc="how many nodes have a copy of the queue",
            ),
            Parameter(
                name="messages",
                default=0,
                minimum=0,
                maximum=MAX_MESSAGES,
                unit="messages",
                doc="that the publisher sends as soon as it may",
            ),
            Parameter(
                name="link_credit",
                default=0,
                minimum=0,
                maximum=MAX_MESSAGES,
                unit="messages",
                doc="of a consumer on a connection of its own; 0: there is none",
            ),
            _us("fsync_us", "fsync_us", "how long an fsync takes on every node", MAX_FSYNC_US),
            _us(
                "node_latency_us",
                "node_latency_us",
                "how long a message is under way between two nodes",
                MAX_LATENCY_US,
            ),
            Parameter(
                name="message_bytes",
                preset_field="message_bytes",
                minimum=0,
                maximum=65_536,
                unit="octets",
                doc="size of each message's body",
            ),
            _us(
                "latency_us",
                "wire_latency_us",
                "how long a frame is under way between client and broker",
                MAX_LATENCY_US,
            ),
        ),
        actions=ACTS,
        build=build,
    )
)
