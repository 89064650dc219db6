"""AMQP 0-9-1: one queue, a publisher beside it, and two consumers on one channel.

Acts: publish, consume, cancel, give_back, alarm, clear, hold, release, set_latency.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from workbench.amqp091.events import Event, MessageReceived
from workbench.amqp091.methods import BasicConsume, BasicDeliver, BasicNack, BasicQos
from workbench.peers import Client091, Consumer091, Publisher091
from workbench.presets import AMQP_0_9_1

from .acts import WIRE_ACTS
from .alarms import ALARM_ACTS
from .declare import PRESET, Whole, act, scenario, unless
from .parameters import Count, Latency, Ready, SmallMessageBytes
from .world import World, after_all

QUEUE = "q"
FIRST, SECOND = "first", "second"
PUBLISHER = "publisher"


class NumberedConsumer(Consumer091):
    """A consumer that knows which of the scenario's messages came, and in which order.

    Args:
        shared: the prefetch is for the whole channel, not for each consumer.
        waits: consumes only when it is told to.
        more: as of `Consumer091`.

    Attributes:
        order: numbers of the messages, as they came.
        waits: it has not asked for messages yet.
    """

    def __init__(self, *args: Any, shared: bool = False, waits: bool = False, **more: Any) -> None:
        super().__init__(*args, **more)
        self.order: list[int] = []
        self.waits = waits
        self._shared = shared

    def begin(self) -> None:
        """Says how much may be ahead, and consumes, unless it waits."""
        self.open.send(BasicQos(prefetch_count=self._prefetch, global_=self._shared))
        if not self.waits:
            self.consume()

    def consume(self) -> None:
        """Asks for messages."""
        self.waits = False
        self.open.send(BasicConsume(queue=self.queue, consumer_tag=self.name))

    def handle(self, event: Event) -> None:
        """Notes which message it is."""
        if isinstance(event, MessageReceived) and isinstance(event.method, BasicDeliver):
            number = World.number_of(event.body)
            if number is not None and event.method.consumer_tag == self.name:
                self.order.append(number)
        super().handle(event)

    def give_back(self) -> None:
        """Gives every delivery that it holds back to the queue."""
        while self.unacknowledged:
            self.open.send(BasicNack(delivery_tag=self.unacknowledged.pop(0), requeue=True))


def _consumer(world: World, name: str) -> NumberedConsumer:
    found = world.peers["c2"].tasks[name]
    assert isinstance(found, NumberedConsumer)
    return found


_open = unless("sharing.not-open", lambda world: _consumer(world, SECOND).amqp is not None)
_waits = unless("sharing.consumes", lambda world: _consumer(world, SECOND).waits)
_holds = unless("sharing.holds-nothing", lambda world: _consumer(world, FIRST).unacknowledged)


@act(_open)
def publish(world: World, count: Count = 1) -> None:
    """Let the publisher publish messages."""
    publisher = world.peers["c1"].tasks[PUBLISHER]
    publisher.publish(count)
    if publisher.left:
        world.record("publish", "client:c1", connection="c1", extra={"count": publisher.left})


@act(_open, _waits)
def consume(world: World) -> None:
    """The second consumer begins to consume."""
    _consumer(world, SECOND).consume()


@act(_open)
def cancel(world: World) -> None:
    """The first consumer wants no more; what it holds it keeps."""
    _consumer(world, FIRST).cancel()


@act(_open, _holds)
def give_back(world: World) -> None:
    """The first consumer gives back what it holds: basic.nack with requeue."""
    _consumer(world, FIRST).give_back()


@scenario(
    "AMQP 0-9-1: two consumers of one channel, and a publisher",
    acts=(publish, consume, cancel, give_back, *ALARM_ACTS, *WIRE_ACTS),
    preset="rmq4.3",
    protocol=AMQP_0_9_1,
)
def sharing(
    world: World,
    messages: Ready = 0,
    prefetch: Annotated[
        int, Whole(0, 65_535, "messages"), "deliveries ahead of acknowledgement; 0: no limit"
    ] = 2,
    shared: Annotated[
        bool, "the prefetch is for the channel (global), not for each consumer"
    ] = False,
    later: Annotated[bool, "the second consumer begins when it is told to"] = False,
    works: Annotated[
        bool, "the second consumer acknowledges by itself; the first is stalled in any case"
    ] = False,
    heeds_blocked: Annotated[bool, "the publisher stops when it hears connection.blocked"] = True,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A consumer that acknowledges nothing, another beside it, and a publisher.

    How far the first can hold the others up is up to the prefetch.
    """
    world.fill(QUEUE, messages)
    consumers = [
        NumberedConsumer(
            name,
            QUEUE,
            prefetch=prefetch,
            shared=shared,
            waits=later and name == SECOND,
            processing_us=0 if works and name == SECOND else None,
        )
        for name in (FIRST, SECOND)
    ]

    opened = after_all({"c1", "c2"}, world.mark_start)
    publisher = Publisher091(
        PUBLISHER, QUEUE, body=bytes(message_bytes), heeds_blocked=heeds_blocked
    )
    for name, tasks in (("c1", [publisher]), ("c2", consumers)):
        client = Client091(
            world.clock,
            tasks,
            name=name,
            on_open=partial(opened, name),
        )
        world.connect(client, name, peer=name)
