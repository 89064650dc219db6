"""Memory fills because a queue grows: an alarm, and what becomes of every connection.

Over AMQP 0-9-1 one client publishes (`c1`), one only consumes (`c2`), and one does both on one
connection (`c3`); a fourth may connect while the alarm is on (`c4`). What the broker holds is added
up, and compared with a limit. Consumers begin when a hand says so.
Acts: publish, consume, connect, wait, alarm, clear, hold, release, set_latency.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from workbench.amqp091.methods import BasicConsume, BasicQos
from workbench.peers import Client091, Consumer091, Publisher091, Task091
from workbench.presets import AMQP_0_9_1

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .alarms import ALARM_ACTS
from .declare import PRESET, OneOf, Whole, act, scenario, unless
from .parameters import Count, Latency, Processing, Ready, SmallMessageBytes, SocketOctets
from .world import World

PUBLISHER, CONSUMER, BOTH, LATER = "c1", "c2", "c3", "c4"
PUBLISHERS = (PUBLISHER, BOTH, LATER)
CONSUMERS = (CONSUMER, BOTH)
GROWING, OTHER = "growing", "other"
MOST_READY = 10_000
MOST_OCTETS = 100_000_000


class _LaterConsumer(Consumer091):
    """A consumer that begins when a hand says so.

    Attributes:
        consuming: it has begun.
    """

    consuming = False

    def begin(self) -> None:
        """Waits for the hand, unless it was quicker."""
        if self.consuming:
            self.consume()

    def consume(self) -> None:
        """Begins, as soon as its channel is open."""
        self.consuming = True
        if self.amqp is None:
            return
        self.open.send(BasicQos(prefetch_count=self._prefetch))
        self.open.send(BasicConsume(queue=self.queue, consumer_tag=self.name))


def _task(world: World, connection: str, name: str) -> Task091:
    client = world.peers.get(connection)
    if client is None:
        listed = ", ".join(world.peers)
        raise ActionError(refusal("memory.not-connected", who=connection, listed=listed))
    task: Task091 = client.tasks[name]
    return task


@act()
def publish(
    world: World,
    connection: Annotated[str, OneOf(*PUBLISHERS), "whose client"] = PUBLISHER,
    count: Count = 1,
) -> None:
    """Let a client publish messages to the queue that grows."""
    task = _task(world, connection, "publisher")
    assert isinstance(task, Publisher091)
    task.publish(count)


@act()
def consume(
    world: World, connection: Annotated[str, OneOf(*CONSUMERS), "whose client"] = CONSUMER
) -> None:
    """Let a consumer begin: c2 empties the queue that grows, c3 another one."""
    task = _task(world, connection, "consumer")
    assert isinstance(task, _LaterConsumer)
    if task.consuming:
        raise ActionError(refusal("memory.consumes", who=connection))
    task.consume()


@act(unless("memory.connected", lambda world: LATER not in world.peers))
def connect(world: World) -> None:
    """A fourth client opens a connection and a channel."""
    _join(world, LATER, [_publisher(world)])


@act()
def wait(
    world: World,
    ms: Annotated[int, Whole(1, 60_000, "ms"), "how long, in virtual time"] = 1_000,
) -> None:
    """Let time pass: the memory is looked at once a second while the alarm is on."""
    world.clock.call_later(1_000 * ms, lambda: None)


def _publisher(world: World) -> Publisher091:
    return Publisher091("publisher", GROWING, body=bytes(world.number("message_bytes")))


def _consumer(world: World, queue: str, channel: int = 1) -> _LaterConsumer:
    return _LaterConsumer(
        "consumer",
        queue,
        channel=channel,
        prefetch=world.number("prefetch"),
        processing_us=world.number("processing_us"),
    )


def _join(
    world: World, name: str, tasks: Sequence[Task091], opened: Callable[[], None] = lambda: None
) -> None:
    client = Client091(world.clock, tasks, name=name, on_open=opened)
    world.connect(client, name, world.number("socket_octets"), peer=name)


@scenario(
    "Memory fills: an alarm, and what becomes of every connection",
    acts=(publish, consume, connect, wait, *ALARM_ACTS, *WIRE_ACTS),
    preset="rmq4.3",
    protocol=AMQP_0_9_1,
)
def memory(
    world: World,
    limit_octets: Annotated[
        int, Whole(1, MOST_OCTETS, "octets"), "that queues and connections may hold"
    ] = 40_000,
    message_bytes: SmallMessageBytes = 400,
    prefetch: Annotated[
        int, Whole(1, 65_535, "messages"), "of each consumer, ahead of acknowledgement"
    ] = 5,
    ready: Annotated[
        Ready, Whole(0, MOST_READY, "messages"), "small ones, in the queue from which c3 consumes"
    ] = 20,
    processing_us: Processing = 50_000,
    socket_octets: SocketOctets = 16_384,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """Three clients and a broker with a limit: whoever publishes under an alarm is blocked."""
    world.broker.watch_memory(limit_octets)
    world.broker.declare(GROWING)
    world.fill(OTHER, ready, size=1)
    _join(world, PUBLISHER, [_publisher(world)])
    _join(world, CONSUMER, [_consumer(world, GROWING)])
    both = [_publisher(world), _consumer(world, OTHER, channel=2)]
    _join(world, BOTH, both, world.mark_start)
