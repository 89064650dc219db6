"""A mirrored classic queue of RabbitMQ 3.x: what one slow mirror, or one that is cut off, holds up.

Acts: publish, stall, resume, cut_off, mend, synchronise, hold, release, set_latency.
"""

from __future__ import annotations

from typing import Annotated

from workbench.broker.mirrors import MASTER_NODE, Mirrors
from workbench.broker.queue_process import LocalQueueProcess
from workbench.peers import Client091, Publisher091
from workbench.presets import AMQP_0_9_1
from workbench.queues import QueueError
from workbench.queues.message import Message

from .action import refusal
from .acts import WIRE_ACTS
from .chain import HopCredit, HopGrant
from .declare import PRESET, OneOf, ParameterError, Whole, act, scenario, unless
from .parameters import MAX_LATENCY_US, MAX_MESSAGES, Count, Latency, SmallMessageBytes
from .world import World

QUEUE, PUBLISHER = "q", "publisher"
NODES = ("n2", "n3", "n4", "n5")
MAX_SEEN_US = 600_000_000
NodeName = Annotated[str, OneOf(*NODES), "which node: one that has a mirror"]


def mirrored(world: World) -> list[str]:
    """Where the queue had mirrors at the beginning, each as `queue@node`."""
    nodes = str(world.parameters.get("nodes", "")).split() if world.preset.mirrors else []
    return [f"{QUEUE}@{node}" for node in nodes]


_mirrored = unless("mirrors.none", mirrored)


def _mirrors(world: World) -> Mirrors:
    queue = world.broker.queues[QUEUE]
    assert isinstance(queue, LocalQueueProcess)
    assert queue.mirrors is not None
    return queue.mirrors


@act()
def publish(world: World, count: Count = 1) -> None:
    """Let the client publish messages."""
    world.peers["c1"].tasks[PUBLISHER].publish(count)


@act(_mirrored)
def stall(world: World, node: NodeName = "n3") -> None:
    """Let a mirror hang: it reads nothing."""
    mirror = _mirrors(world).on(node)
    mirror.stall()
    mirror.note("note", "stalled")


@act(_mirrored)
def resume(world: World, node: NodeName = "n3") -> None:
    """Let it go on."""
    mirror = _mirrors(world).on(node)
    if mirror.cut_off:
        raise QueueError(refusal("mirrors.cut-off", node=node))
    mirror.resume()
    mirror.note("note", "resumed")


@act(_mirrored)
def cut_off(world: World, node: NodeName = "n3") -> None:
    """Cut a mirror's node off from the others; they notice after a while."""
    _mirrors(world).cut_off(node, world.preset.mirror_death_us)


@act(_mirrored)
def mend(world: World, node: NodeName = "n3") -> None:
    """Let it be reached again, before anybody has noticed."""
    _mirrors(world).mend(node)


@act(_mirrored)
def synchronise(world: World) -> None:
    """Copy the queue's messages to the mirrors that lack some."""
    _mirrors(world).synchronise()


@scenario(
    "Mirrors: a channel spends credit at each of them",
    acts=(publish, stall, resume, cut_off, mend, synchronise, *WIRE_ACTS),
    preset="rmq3.5.5",
    protocol=AMQP_0_9_1,
)
def mirrors(
    world: World,
    nodes: Annotated[str, "where the queue has mirrors; it is on n1 itself"] = "n2 n3",
    messages: Annotated[
        int, Whole(0, MAX_MESSAGES, "messages"), "in the queue before its mirrors join"
    ] = 0,
    mirrors_spend_credit: Annotated[bool, "mirroring_flow_control"] = PRESET,
    mirror_death_us: Annotated[
        int, Whole(0, MAX_SEEN_US, "us"), "how long nobody notices that a node is cut off"
    ] = PRESET,
    node_latency_us: Annotated[
        int, Whole(0, MAX_LATENCY_US, "us"), "how long a message is under way between two nodes"
    ] = PRESET,
    credit: HopCredit = PRESET.process_credit,
    more_after: HopGrant = PRESET.process_regrant_after,
    confirms: Annotated[
        int, Whole(0, 65_535, "messages"), "unconfirmed at one time at most; 0: no confirms"
    ] = 0,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A client publishes to a queue that has mirrors on other nodes.

    Each message costs the channel one credit with the queue and two with each mirror, which gets it
    twice. A mirror that takes nothing blocks the channel, and that the reader; if its node is cut
    off, until somebody notices.
    """
    queue = world.broker.declare(QUEUE)
    before = [Message(payload=bytes(message_bytes), durable=False)] * messages
    queue.fill(before)
    for node in nodes.split():
        if node not in (MASTER_NODE, *NODES):
            told = {"node": f"{node!r:.20}", "listed": ", ".join(NODES)}
            raise ParameterError(refusal("mirrors.no-node", **told))
    if world.preset.mirrors:  # in others the queue stands alone, and the acts say why
        world.broker.mirror(QUEUE, nodes.split())
    publisher = Publisher091(
        PUBLISHER, QUEUE, body=bytes(message_bytes), most_unconfirmed=confirms or None
    )
    client = Client091(world.clock, [publisher], name="client", on_open=world.mark_start)
    world.connect(client, "c1", peer="c1")
