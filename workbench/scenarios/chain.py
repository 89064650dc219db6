"""AMQP 0-9-1: three queues on one connection, and what one slow one does to the others.

The same may run over AMQP 1.0 beside it, with a link to each of three further queues: one workload,
one clock, and every act is done to both halves.
Acts: publish, stall, resume, slow, alarm, clear, hold, release, set_latency.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from workbench.amqp091.methods import Properties
from workbench.amqp10.credit import TopUpAtHalf
from workbench.broker.queue_process import LocalQueueProcess
from workbench.peers import (
    Client,
    Client091,
    ClientLink,
    Consumer,
    Consumer091,
    Publisher,
    Publisher091,
    Task091,
)
from workbench.presets import AMQP_0_9_1, AMQP_1_0, INT_MAX
from workbench.queues import QueueArguments
from workbench.queues.arguments import CLASSIC, QUORUM

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .alarms import ALARM_ACTS
from .credit import client_of
from .declare import PRESET, OneOf, ParameterError, Whole, act, scenario, unless
from .parameters import (
    Count,
    Latency,
    Microseconds,
    Processing,
    Ready,
    SmallMessageBytes,
    SocketOctets,
)
from .publishers import address, waiting_row
from .world import World, after_all

QUEUES = ("slow", "second", "third")
STORE = "store"
CONSUMER = "consumer"
QueueName = Annotated[str, OneOf(*QUEUES), "which queue"]
Process = Annotated[str, OneOf(*QUEUES, STORE), "which queue, or the message store"]
MOST_CREDIT = 100_000
MOST_READY = 10_000
ProcessCredit = Annotated[int, Whole(1, MOST_CREDIT, "messages")]
HopCredit = Annotated[ProcessCredit, "that each process gives to the one before it, at first"]
HopGrant = Annotated[ProcessCredit, "handled by a process, which then grants as many again"]


def twin(queue: str) -> str:
    """The queue to which the AMQP 1.0 half publishes what goes to this one."""
    return f"{queue}-1.0"


def _queues(world: World, name: str) -> list[str]:
    """A queue, and its twin if there is one."""
    return [one for one in (name, twin(name)) if one in world.broker.queues]


def _attached(world: World) -> bool:
    return all(one.attached for one in world.peers.values() if isinstance(one, Client))


@act(unless("chain.not-attached", _attached))
def publish(world: World, queue: QueueName = QUEUES[0], count: Count = 1) -> None:
    """Let a client publish messages to a queue; beside it, another as many to its twin."""
    for client in world.peers.values():
        if isinstance(client, Client091) and queue in client.tasks:
            task = client.tasks[queue]
            assert isinstance(task, Publisher091)
            task.publish(count)
        elif isinstance(client, Client):
            client.publisher(queue).publish(world.payloads(count), world.number("pause_us"))


@act()
def stall(world: World, queue: Process = QUEUES[0]) -> None:
    """Let a queue's process hang, or the message store: it takes nothing in, hands nothing out."""
    if queue == STORE:
        world.broker.stores.persistent.stall()
    for name in _queues(world, queue):
        world.broker.queues[name].stall()


@act()
def resume(world: World, queue: Process = QUEUES[0]) -> None:
    """Let it go on."""
    if queue == STORE:
        world.broker.stores.persistent.resume()
    for name in _queues(world, queue):
        world.broker.queues[name].resume()


@act()
def slow(
    world: World,
    *,
    queue: QueueName = QUEUES[0],
    service_us: Annotated[Microseconds, "time for taking one message in"],
) -> None:
    """Change how long a classic queue needs for each message."""
    for name in _queues(world, queue):
        process = world.broker.queues[name]
        if not isinstance(process, LocalQueueProcess):
            raise ActionError(refusal("chain.quorum"))
        process.enqueue_us = service_us


def _beside(
    world: World, name: str, *, prefetch: int, processing_us: int, attached: Callable[[], None]
) -> Client:
    """The client of the AMQP 1.0 half."""
    waiting = waiting_row(world, name)
    links: list[ClientLink] = [
        Publisher(one, address(twin(one)), on_waiting=waiting) for one in QUEUES
    ]
    if world.parameters["consume"]:
        links.append(
            Consumer(
                CONSUMER,
                address(twin(QUEUES[1])),
                policy=TopUpAtHalf(prefetch or INT_MAX),
                processing_us=processing_us,
                auto_settle=True,
            )
        )
    return client_of(world, *links, name=name, on_attached=attached)


@scenario(
    "One slow queue, and everything else on its connection",
    acts=(publish, stall, resume, slow, *ALARM_ACTS, *WIRE_ACTS),
    preset="rmq4.3",
    protocol=AMQP_0_9_1,
)
def chain(
    world: World,
    queue_type: Annotated[
        str, OneOf(CLASSIC, QUORUM), "of the queues; a quorum queue has one replica"
    ] = CLASSIC,
    beside: Annotated[bool, "the same over AMQP 1.0, to three further queues"] = False,
    separate: Annotated[bool, "each queue's publisher has a connection of its own"] = False,
    consume: Annotated[bool, "the first connection consumes from the second queue, too"] = False,
    consumer_apart: Annotated[bool, "that consumer has a connection of its own instead"] = False,
    prefetch: Annotated[
        int,
        Whole(0, 65_535, "messages"),
        "deliveries ahead of acknowledgement; 0: no limit. Over AMQP 1.0, the link-credit",
    ] = 10,
    ready: Annotated[
        Ready, Whole(0, MOST_READY, "messages"), "ready in the second queue when all begins"
    ] = 0,
    persistent: Annotated[bool, "the messages over AMQP 0-9-1 are persistent"] = False,
    pause_us: Annotated[Microseconds, "between two messages of a publisher"] = 0,
    service_us: Annotated[
        Microseconds, "what a classic queue needs for a message"
    ] = PRESET.queue_enqueue_us,
    credit: HopCredit = PRESET.process_credit,
    more_after: HopGrant = PRESET.process_regrant_after,
    store_credit: Annotated[ProcessCredit, "the same, of the message store"] = PRESET.store_credit,
    store_more_after: Annotated[
        ProcessCredit, "the same, of the message store"
    ] = PRESET.store_regrant_after,
    max_link_credit: Annotated[
        int, Whole(1, INT_MAX, "messages"), "what the broker grants to an AMQP 1.0 publisher"
    ] = PRESET.publisher_credit,
    socket_octets: SocketOctets = 65_536,
    processing_us: Processing = PRESET,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """Clients publish to three queues, on a channel each, over one connection or over three.

    When a queue hangs, its channel grants the reader nothing more; the reader runs out of credit
    and stops reading, and what the other channels send waits in the socket too. A consumer's
    acknowledgements wait there as well. Over AMQP 1.0 beside it, one link runs out of credit.
    """
    if beside and AMQP_1_0 not in world.preset.protocols:
        told = {"preset": world.preset.name, "protocol": AMQP_1_0}
        raise ParameterError(refusal("chain.no-model", **told))
    for queue in QUEUES:
        arguments = QueueArguments(queue_type=queue_type)
        replicas = 1 if queue_type == QUORUM else None
        for name in (queue, twin(queue)) if beside else (queue,):
            world.broker.declare(name, arguments, replicas=replicas)
    for name in _queues(world, QUEUES[1]):
        world.fill(name, ready)
    together: list[list[Task091]] = [
        [
            Publisher091(
                name,
                name,
                channel=channel,
                body=bytes(message_bytes),
                properties=Properties(delivery_mode=2 if persistent else None),
                pause_us=pause_us,
            )
            for channel, name in enumerate(names, start=1)
        ]
        for names in ([[name] for name in QUEUES] if separate else [QUEUES])
    ]
    if consume:
        if consumer_apart:
            together.append([])
        tasks = together[-1 if consumer_apart else 0]
        tasks.append(
            Consumer091(
                CONSUMER,
                QUEUES[1],
                channel=len(tasks) + 1,
                prefetch=prefetch,
                processing_us=processing_us,
            )
        )
    opened = after_all(range(len(together) + beside), world.mark_start)

    def connect(number: int, client: Client091 | Client) -> None:
        name = f"c{number + 1}"
        world.connect(client, name, socket_octets, peer=name)

    for number, tasks in enumerate(together):
        done = partial(opened, number)
        connect(number, Client091(world.clock, tasks, name=f"c{number + 1}", on_open=done))
    if beside:
        number = len(together)
        done = partial(opened, number)
        pace = {"prefetch": prefetch, "processing_us": processing_us}
        connect(number, _beside(world, f"c{number + 1}", attached=done, **pace))
