"""An AMQP 0-9-1 client floods a quorum queue that has no disk: who is held, and when.

Client, socket, reader, channel, quorum queue: the chain that article B draws. The channel grants
the reader nothing while the queue is slow; so the reader runs out of credit and stops reading, and
the socket fills until TCP holds the client.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.peers import Client091, Publisher091
from workbench.presets import get
from workbench.queues import QueueArguments
from workbench.queues.arguments import QUORUM

from .world import World

QUEUE = "q"
HANGS_US = 3_600_000_000  # an fsync that nobody waits for
UNTIL_US = 1_000_000
SOCKET_OCTETS = 65_536


@dataclass(frozen=True, slots=True)
class Flooded:
    """What came of it.

    Attributes:
        slow_with: with how many pending commands the queue first counted as slow; None: never.
        most_inside: the most messages that the broker ever held of this connection.
    """

    slow_with: int | None
    most_inside: int


def beside_a_hanging_disk(soft_limit: int, count: int) -> Flooded:
    """A client sends what it can of so many messages.

    Args:
        soft_limit: pending commands at which a quorum queue counts as slow.
        count: messages.
    """
    preset = replace(get("rmq4.3"), quorum_soft_limit=soft_limit, fsync_us=HANGS_US)
    world = World(preset=preset, parameters={"latency_us": 0})
    clock = world.clock
    queue = world.broker.declare(QUEUE, QueueArguments(queue_type=QUORUM), replicas=1)
    publisher = Publisher091("publisher", QUEUE)
    world.connect(Client091(clock, [publisher]), "c1", SOCKET_OCTETS)
    publisher.publish(count)
    slow_with, most_inside = None, 0
    while clock.next_us is not None and clock.next_us < UNTIL_US:
        clock.step()
        most_inside = max(most_inside, queue.mailbox)
        if slow_with is None and queue.overview()["slow"]:
            slow_with = queue.mailbox
    return Flooded(slow_with, most_inside)
