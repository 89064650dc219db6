"""AMQP 0-9-1: the prefetch of a channel's consumers, in both meanings, and changed too late.

Consumers `a`, `b` and `c` share one channel and one queue. A limit that is set holds for consumers
that begin later, or for the channel as a whole, by what is asked for and by the broker's version.
Acts: set_prefetch, consume, acknowledge, publish, hold, release, set_latency.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from workbench.amqp091.events import Event, MethodReceived
from workbench.amqp091.methods import BasicAck, BasicConsume, BasicQos, BasicQosOk
from workbench.peers import Client091, Consumer091
from workbench.presets import AMQP_0_9_1

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .credit import QUEUE
from .declare import PRESET, OneOf, Whole, act, scenario, unless
from .handover import MOST_READY, NAMES, publish
from .parameters import Count, Latency, Ready, SmallMessageBytes
from .world import World

Name = Annotated[str, OneOf(*NAMES), "which consumer"]
Prefetch = Annotated[int, Whole(0, 65_535, "messages"), "the limit; 0: none"]


class _LaterConsumer(Consumer091):
    """A consumer that begins when a hand says so, and whose messages a hand acknowledges.

    Args:
        name: of the task; its consumer-tag.
        limited: called when a limit is answered.
    """

    def __init__(self, name: str, limited: Callable[[], None]) -> None:
        super().__init__(name, QUEUE, processing_us=None)
        self.consuming = False
        self._limited = limited

    def begin(self) -> None:
        """Says once that there is no limit, and waits for the hand."""
        if self.name == NAMES[0]:
            self.open.send(BasicQos(prefetch_count=0))

    def consume(self) -> None:
        """Begins."""
        self.consuming = True
        self.open.send(BasicConsume(queue=self.queue, consumer_tag=self.name))

    def handle(self, event: Event) -> None:
        """Keeps what comes for it."""
        if isinstance(event, MethodReceived) and isinstance(event.method, BasicQosOk):
            self._limited()
        if self.consuming:
            super().handle(event)


def _consumers(world: World) -> dict[str, _LaterConsumer]:
    tasks = world.peers["app"].tasks
    return {name: tasks[name] for name in NAMES}


_open = unless("prefetch.not-open", lambda world: _consumers(world)[NAMES[0]].amqp is not None)


@act(_open)
def set_prefetch(
    world: World,
    count: Prefetch,
    shared: Annotated[bool, "basic.qos with global=true"] = False,
) -> None:
    """The client sends basic.qos on the channel."""
    channel = _consumers(world)[NAMES[0]].open
    channel.send(BasicQos(prefetch_count=count, global_=shared))


@act(_open)
def consume(world: World, consumer: Name = NAMES[0]) -> None:
    """A consumer begins on the channel, under the limit that was set last."""
    found = _consumers(world)[consumer]
    if found.consuming:
        raise ActionError(refusal("prefetch.begun", name=consumer))
    found.consume()


@act(_open)
def acknowledge(world: World, consumer: Name = NAMES[0], count: Count = 1) -> None:
    """A consumer acknowledges its oldest deliveries, each by itself."""
    found = _consumers(world)[consumer]
    # By what the channel has counted: the task may not have seen the last one.
    there = [tag for tag, name in found.open.counters.unacked.items() if name == consumer]
    if count > len(there):
        raise ActionError(refusal("prefetch.too-many", name=consumer, held=len(there)))
    for tag in there[:count]:
        found.open.send(BasicAck(delivery_tag=tag))


@scenario(
    "Prefetch: a limit for consumers that begin later",
    acts=(set_prefetch, consume, acknowledge, publish, *WIRE_ACTS),
    preset="rmq4.3",
    protocol=AMQP_0_9_1,
)
def prefetch(
    world: World,
    messages: Annotated[Ready, Whole(0, MOST_READY, "messages"), "ready in the queue"] = 40,
    message_bytes: SmallMessageBytes = 20,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """One connection, one channel, one queue with messages, and consumers that begin one by one."""
    world.fill(QUEUE, messages)
    tasks = [_LaterConsumer(name, world.mark_start) for name in NAMES]
    client = Client091(world.clock, tasks, name="app")
    world.connect(client, "c1", peer="app")
