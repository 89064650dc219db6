"""A classic queue of RabbitMQ 3.x whose messages leave the memory when they are too many.

Acts: stall, resume, wait, set_target, lift_target, publish, consume, acknowledge, alarm, clear.
"""

from __future__ import annotations

from typing import Annotated

from workbench.amqp091.methods import Properties
from workbench.broker import PlainConsumer
from workbench.broker.queue_process import LocalQueueProcess
from workbench.peers import Client091, Publisher091
from workbench.presets import AMQP_0_9_1
from workbench.queues import Deliver, Settle
from workbench.queues.message import Message

from .action import ActionError, refusal
from .alarms import ALARM_ACTS
from .declare import PRESET, OneOf, Whole, act, scenario, unless
from .parameters import MAX_MESSAGES, Count, Latency, MessageBytes, Ready
from .world import World

QUEUE, HOLDER, PUBLISHER = "q", "holder", "publisher"
PERSISTENT, TRANSIENT = "persistent", "transient"
MAX_RAM_OCTETS = 1_000_000_000
MAX_WAIT_MS = 600_000

Store = Annotated[str, OneOf(TRANSIENT, PERSISTENT), "which of the broker's message stores"]


class Holder(PlainConsumer):
    """A consumer that takes so many messages as it is told to, and acknowledges when it is told.

    Attributes:
        unsettled: numbers of the messages that it holds, the oldest first.
    """

    def __init__(self, queue: LocalQueueProcess) -> None:
        self.unsettled: list[int] = []
        self._queue = queue
        self._wanted = 0

    def want(self, count: int) -> None:
        """Take so many more."""
        self._wanted += count
        self._queue.kick()

    def acknowledge(self, count: int) -> None:
        """Acknowledge the oldest ones."""
        numbers = tuple(self.unsettled[:count])
        del self.unsettled[:count]
        self._queue.command(Settle(consumer=HOLDER, message_ids=numbers))

    def can_take(self) -> bool:
        """Whether it wants one more."""
        return self._wanted > 0

    def deliver(self, effect: Deliver) -> None:
        """Keep it."""
        self._wanted -= 1
        self.unsettled.append(effect.message.message_id)


def queue_of(world: World) -> LocalQueueProcess:
    """The run's queue."""
    queue = world.broker.queues[QUEUE]
    assert isinstance(queue, LocalQueueProcess)
    return queue


_pages = unless("paging.none", lambda world: queue_of(world).book is not None)


@act(_pages)
def set_target(
    world: World,
    target: Annotated[
        int, Whole(0, MAX_MESSAGES, "messages"), "how many may be in RAM, ready or handed out"
    ],
) -> None:
    """Let the memory monitor ask for room: no more than so many messages shall be in RAM."""
    queue_of(world).set_ram_target(target)


@act(_pages)
def lift_target(world: World) -> None:
    """Let there be room: any number of messages may be in RAM."""
    queue_of(world).set_ram_target(None)


@act()
def publish(world: World, count: Count = 1) -> None:
    """Let the client publish messages."""
    world.peers["client"].tasks[PUBLISHER].publish(count)


@act()
def consume(world: World, count: Count = 1) -> None:
    """Let the consumer take messages, and not acknowledge them."""
    world.peers[HOLDER].want(count)


@act(unless("paging.nothing-held", lambda world: world.peers[HOLDER].unsettled))
def acknowledge(world: World, count: Count = 1) -> None:
    """Let the consumer acknowledge the oldest messages that it holds."""
    holder = world.peers[HOLDER]
    if count > len(holder.unsettled):
        raise ActionError(refusal("paging.too-many", held=len(holder.unsettled)))
    holder.acknowledge(count)


@act()
def stall(world: World, store: Store = TRANSIENT) -> None:
    """Let a message store hang on its disk."""
    getattr(world.broker.stores, store).stall()


@act()
def resume(world: World, store: Store = TRANSIENT) -> None:
    """Let it go on."""
    getattr(world.broker.stores, store).resume()


@act()
def wait(
    world: World, milliseconds: Annotated[int, Whole(1, MAX_WAIT_MS, "ms"), "how long"] = 5_000
) -> None:
    """Let time pass: the memory monitor looks every 2.5 s, and queues report every 5 s."""
    world.clock.call_later(milliseconds * 1_000, lambda: None)


@scenario(
    "Paging: messages leave the memory, as far as credit with the message store goes",
    acts=(stall, resume, wait, set_target, lift_target, publish, consume, acknowledge, *ALARM_ACTS),
    preset="rmq3.5.5",
    protocol=AMQP_0_9_1,
)
def paging(
    world: World,
    messages: Ready = 20_000,
    held: Annotated[
        int, Whole(0, MAX_MESSAGES, "messages"), "of them handed out and not acknowledged"
    ] = 0,
    asks: Annotated[
        bool, "the memory monitor asks for room, a millisecond after the beginning"
    ] = True,
    target: Annotated[
        int, Whole(0, MAX_MESSAGES, "messages"), "how many it lets be in RAM then"
    ] = 8_000,
    persistent: Annotated[bool, "messages are persistent: written before, and in RAM"] = False,
    memory_octets: Annotated[
        int,
        Whole(0, MAX_RAM_OCTETS, "octets"),
        "limit of the memory alarm; queues page out from half of it on; 0: nobody looks",
    ] = 0,
    store_credit: Annotated[
        int, Whole(1, MAX_MESSAGES, "messages"), "first number of msg_store_credit_disc_bound"
    ] = PRESET,
    store_regrant_after: Annotated[
        int, Whole(1, MAX_MESSAGES, "messages"), "second number of msg_store_credit_disc_bound"
    ] = PRESET,
    store_io_batch: Annotated[
        int, Whole(0, MAX_MESSAGES, "messages"), "msg_store_io_batch_size"
    ] = PRESET,
    store_write_us: Annotated[
        int, Whole(0, 1_000_000, "us"), "how long a message store takes for one message"
    ] = 100,
    message_bytes: MessageBytes = 5_000,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A long queue of messages that are all in RAM, and one word of the memory monitor.

    What is too much is paged out: its contents go to the message store, for a credit each, until
    there is no credit left. With each grant it goes on.
    """
    queue = world.broker.declare(QUEUE)
    assert isinstance(queue, LocalQueueProcess)
    holder = Holder(queue)
    world.peers[HOLDER] = holder
    for store in (world.broker.stores.persistent, world.broker.stores.transient):
        store.process.service_us = store_write_us
    one = Message(payload=bytes(message_bytes), durable=persistent)
    if memory_octets:
        world.broker.watch_memory(memory_octets)
    properties = Properties(delivery_mode=2 if persistent else 1)
    publisher = Publisher091(PUBLISHER, QUEUE, body=bytes(message_bytes), properties=properties)

    def begin() -> None:
        queue.fill([one] * messages, min(held, messages), (HOLDER, holder))
        holder.unsettled.extend(range(min(held, messages)))

    def opened() -> None:
        world.mark_start()
        if asks and queue.book is not None:  # nobody asks a broker that pages none
            world.clock.call_later(1_000, queue.set_ram_target, target)

    world.clock.call_soon(begin)
    client = Client091(world.clock, [publisher], name="client", on_open=opened)
    world.connect(client, "c1", peer="client")
