"""AMQP 0-9-1: three queues on one connection, and what one slow one does to the others.

Acts: publish, stall, resume, alarm, clear, hold, release, set_latency.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from workbench.peers import Client091, Consumer091, Publisher091, Task091
from workbench.presets import AMQP_0_9_1
from workbench.queues import QueueArguments
from workbench.queues.arguments import CLASSIC, QUORUM

from .acts import WIRE_ACTS
from .alarms import ALARM_ACTS
from .declare import PRESET, OneOf, Whole, act, scenario
from .parameters import Count, Latency, Processing, SmallMessageBytes, SocketOctets
from .world import World

QUEUES = ("slow", "second", "third")
CONSUMER = "consumer"
QueueName = Annotated[str, OneOf(*QUEUES), "which queue"]


def _publisher(world: World, queue: str) -> Publisher091:
    tasks = [client.tasks[queue] for client in world.peers.values() if queue in client.tasks]
    assert isinstance(tasks[0], Publisher091)
    return tasks[0]


@act()
def publish(world: World, queue: QueueName = QUEUES[0], count: Count = 1) -> None:
    """Let a client publish messages to a queue."""
    _publisher(world, queue).publish(count)


@act()
def stall(world: World, queue: QueueName = QUEUES[0]) -> None:
    """Let a queue's process hang: it takes nothing in and hands nothing out."""
    world.broker.queues[queue].stall()


@act()
def resume(world: World, queue: QueueName = QUEUES[0]) -> None:
    """Let it go on."""
    world.broker.queues[queue].resume()


@scenario(
    "AMQP 0-9-1: one slow queue, and everything else on its connection",
    acts=(publish, stall, resume, *ALARM_ACTS, *WIRE_ACTS),
    preset="rmq4.3",
    protocol=AMQP_0_9_1,
)
def chain(
    world: World,
    queue_type: Annotated[
        str, OneOf(CLASSIC, QUORUM), "of the queues; a quorum queue has one replica"
    ] = CLASSIC,
    separate: Annotated[bool, "each queue's publisher has a connection of its own"] = False,
    consume: Annotated[bool, "the first connection consumes from the second queue, too"] = False,
    prefetch: Annotated[
        int, Whole(0, 65_535, "messages"), "deliveries ahead of acknowledgement; 0: no limit"
    ] = 10,
    socket_octets: SocketOctets = 65_536,
    processing_us: Processing = PRESET,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """Clients publish to three queues, on a channel each, over one connection or over three.

    When a queue hangs, its channel grants the reader nothing more; the reader runs out of credit
    and stops reading, and what the other channels send waits in the socket too. A consumer's
    acknowledgements wait there as well.
    """
    for name in QUEUES:
        arguments = QueueArguments(queue_type=queue_type)
        world.broker.declare(name, arguments, replicas=1 if queue_type == QUORUM else None)
    together: list[list[Task091]] = [[]]
    for name in QUEUES:
        if separate and together[-1]:
            together.append([])
        tasks = together[-1]
        tasks.append(Publisher091(name, name, channel=len(tasks) + 1, body=bytes(message_bytes)))
    if consume:
        consumer = Consumer091(
            CONSUMER,
            QUEUES[1],
            channel=len(together[0]) + 1,
            prefetch=prefetch,
            processing_us=processing_us,
        )
        together[0].append(consumer)
    opening = set(range(len(together)))

    def opened(number: int) -> None:
        opening.discard(number)
        if not opening:
            world.mark_start()

    for number, tasks in enumerate(together):
        name = f"c{number + 1}"
        client = Client091(world.clock, tasks, name=name, on_open=partial(opened, number))
        world.peers[name] = client
        world.connect(client, name, (latency_us, latency_us), socket_octets or None)
