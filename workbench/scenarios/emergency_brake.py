"""AMQP 0-9-1: what a release of RabbitMQ does when memory runs short, and who cooperates.

Acts: publish, open_channel, set_watermark, set_others, client_flow, hold, release, set_latency.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from workbench.amqp091.methods import ChannelFlow
from workbench.broker.memory import MEMORY
from workbench.broker.system_memory import SystemMemory, SystemMemoryError, checked_watermark
from workbench.languages import phrase
from workbench.peers import Client091, MulticastConsumer, MulticastProducer
from workbench.peers.multicast091 import HEAP_OCTETS
from workbench.presets import AMQP_0_9_1

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .declare import PRESET, OneOf, Whole, act, scenario
from .parameters import Count, Latency, Microseconds, SocketOctets
from .world import World, after_all

say = partial(phrase, "runs")

QUEUE = "q"
APP, WORKER = "c1", "c2"
PUBLISHER, CONSUMER = "publisher", "consumer"
COOPERATIVE, HEEDLESS, SILENT = "cooperative", "heedless", "silent"
MOST_OCTETS = 2**40
PROCESSING_US = 4_000_000

Octets = Annotated[int, Whole(0, MOST_OCTETS, "octets")]
Watermark = Annotated[str, "fraction of the memory, such as 0.05"]
Stamped = Annotated[int, Whole(8, 65_536, "octets"), "size of each message's body"]
Conduct = Annotated[
    str,
    OneOf(COOPERATIVE, HEEDLESS, SILENT),
    "the publisher when it is asked to stop: it does; it says so, and goes on; it does not answer",
]


def watermark_of(text: str) -> float:
    """The fraction that a text means.

    Raises:
        SystemMemoryError: it means none.
    """
    try:
        fraction = float(text)
    except ValueError:
        raise SystemMemoryError(refusal("memory.watermark", text=repr(text[:20]))) from None
    return checked_watermark(fraction)


def memory_of(world: World) -> SystemMemory:
    """The model of the broker's machine."""
    memory = world.broker.memory
    assert isinstance(memory, SystemMemory)
    return memory


def lose(world: World, name: str) -> None:
    """A connection is gone, without a word: so are its channels, and what was under way."""
    end = world.broker.connections.pop(name, None)
    if end is None:
        return
    world.record("disconnect", "broker", connection=name)
    world.peers[name].lost()
    end.lost()  # type: ignore[attr-defined]


def crash(world: World) -> None:
    """The machine has no octet left: the broker dies, and with it what was in memory alone."""
    world.record("crash", "broker", kind=MEMORY)
    for name in tuple(world.broker.connections):
        lose(world, name)
    for queue in tuple(world.broker.queues):
        world.broker.delete(queue)


# -- acts -----------------------------------------------------------------------------------


def _not_open(world: World) -> str | None:
    if memory_of(world).gone:
        return refusal("memory.died")
    if world.start_seq is None:
        return refusal("memory.not-open")
    return None


@act(_not_open)
def publish(world: World, count: Count = 1) -> None:
    """Let the publisher have messages more."""
    world.peers[APP].tasks[PUBLISHER].publish(count)


@act(_not_open)
def open_channel(
    world: World,
    count: Annotated[int, Whole(0, 100_000, "messages"), "how many it publishes"] = 1,
    connection: Annotated[str, OneOf(APP, WORKER), "of the publisher, or of the consumer"] = APP,
) -> None:
    """Open one channel more, and publish on that too."""
    client = _connected(world, connection)
    one = _producer(world, f"{PUBLISHER}-{len(client.tasks) + 1}")
    client.add(one)
    one.publish(count)


@act()
def set_watermark(world: World, fraction: Watermark = "0.05") -> None:
    """Change the watermark, as an operator at the broker's shell."""
    memory_of(world).set_watermark(watermark_of(fraction))


@act()
def set_others(world: World, octets: Annotated[Octets, "that others hold"]) -> None:
    """Let others on the machine hold so much memory."""
    memory_of(world).set_others(octets)


@act(_not_open)
def client_flow(
    world: World,
    active: Annotated[bool, "whether the consumer wants messages"] = False,
) -> None:
    """Let the consumer ask for no more messages, by channel.flow of its own."""
    _connected(world, WORKER).tasks[CONSUMER].open.send(ChannelFlow(active=active))


def _connected(world: World, name: str) -> Client091:
    client: Client091 = world.peers[name]
    if not client.amqp.opened:
        raise ActionError(refusal("memory.gone", who=name))
    return client


# -- the scenario ---------------------------------------------------------------------------


def join(
    world: World,
    producer: MulticastProducer,
    consumer: MulticastConsumer,
    *,
    socket_octets: int = 0,
    then: Callable[[], None] = lambda: None,
    **app: Any,
) -> None:
    """Connect publisher and consumer, and let the one publish when the other is there.

    Args:
        world: of the run.
        producer: it publishes the run's `messages`.
        consumer: it is there from the beginning.
        socket_octets: as of `World.connect`.
        then: what is done when the publisher begins.
        **app: as of `Client091`, for the publisher's client.
    """

    def begin() -> None:
        world.mark_start()
        producer.publish(world.number("messages"))
        then()

    opened = after_all({APP, WORKER}, begin)
    app_client = Client091(world.clock, [producer], name="app", on_open=partial(opened, APP), **app)
    worker = Client091(world.clock, [consumer], name="worker", on_open=partial(opened, WORKER))
    for name, client in ((APP, app_client), (WORKER, worker)):
        world.connect(client, name, socket_octets, peer=name)


def _producer(world: World, name: str) -> MulticastProducer:
    return MulticastProducer(
        name,
        QUEUE,
        body=bytes(world.number("message_bytes")),
        pause_us=world.number("pause_us"),
        heeds_flow=world.text("client") == COOPERATIVE,
        immediate=bool(world.parameters["immediate"]),
    )


def _consumer(world: World, name: str) -> MulticastConsumer:
    return MulticastConsumer(
        name,
        QUEUE,
        processing_us=world.number("processing_us"),
        transactional=bool(world.parameters["transactional"]),
        prefetch=world.number("prefetch"),
        heap_octets=world.number("heap_octets"),
        on_heap_full=lambda: lose(world, WORKER),
    )


def told(world: World) -> list[str]:
    """The broker's log, and what became of the messages."""
    memory, app, worker = memory_of(world), world.peers[APP], world.peers[WORKER]
    tasks = [*app.tasks.values(), *worker.tasks.values()]
    published = sum(task.published for task in tasks if isinstance(task, MulticastProducer))
    processed = sum(task.processed for task in tasks if isinstance(task, MulticastConsumer))
    lines = memory.log_lines()
    lines.append(say("memory.moved", published=published, consumed=processed))
    lines.append(say("memory.most", most=memory.most, total=memory.total))
    if memory.gone:
        lines.append(say("memory.died"))
    return lines


@scenario(
    "Emergency brakes: the broker's memory runs short",
    acts=(publish, open_channel, set_watermark, set_others, client_flow, *WIRE_ACTS),
    preset="rmq1.5",
    protocol=AMQP_0_9_1,
    told=told,
)
def emergency_brake(
    world: World,
    client: Conduct = COOPERATIVE,
    messages: Annotated[int, Whole(0, 100_000, "messages"), "that the publisher has"] = 60,
    pause_us: Annotated[Microseconds, "between two messages"] = 1_000_000,
    processing_us: Annotated[Microseconds, "how long the consumer works on one"] = PROCESSING_US,
    message_bytes: Stamped = 1_000,
    total_octets: Annotated[int, Whole(1, MOST_OCTETS, "octets"), "of the machine"] = 60_000,
    others_octets: Annotated[Octets, "that others on the machine hold"] = 12_000,
    watermark: Annotated[str, "fraction of the memory, such as 0.95; left out, the preset's"] = "",
    memory_alarms: Annotated[bool, "anybody looks; 1.5.0's application file says no"] = True,
    collected_us: Annotated[Microseconds, "until garbage is collected"] = 2_000_000,
    reclaimed_us: Annotated[Microseconds, "until the system has it back"] = 3_000_000,
    immediate: Annotated[bool, "messages come back if no consumer takes them at once"] = False,
    transactional: Annotated[bool, "each acknowledgement is a transaction"] = False,
    prefetch: Annotated[int, Whole(0, 65_535, "messages"), "asked for; 0: none"] = 0,
    heap_octets: Annotated[Octets, "what the consumer's buffer may hold"] = HEAP_OCTETS,
    more_consumers: Annotated[
        int, Whole(0, 16, "consumers"), "started by the client when the broker asks it to stop"
    ] = 0,
    socket_octets: SocketOctets = 2_048,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """One client publishes faster than another consumes, until the broker's memory runs short.

    What the broker does then is the release's own brake: it asks every channel to stop, and
    believes it or sees to it; or it stops reading. What the consumer has not come to waits in its
    own memory, and in the broker's until it is acknowledged.
    """
    memory = world.broker.watch_system(
        total=total_octets,
        others=others_octets,
        collected_us=collected_us,
        reclaimed_us=reclaimed_us,
        exhausted=lambda: crash(world),
        alarms=memory_alarms,
    )
    if watermark:
        memory.set_watermark(watermark_of(watermark))
    world.broker.declare(QUEUE)

    def asked(active: bool) -> None:
        worker = world.peers[WORKER]
        if not active and len(worker.tasks) == 1 and worker.amqp.opened:
            for number in range(more_consumers):
                worker.add(_consumer(world, f"{CONSUMER}-{number + 2}"))

    join(
        world,
        _producer(world, PUBLISHER),
        _consumer(world, CONSUMER),
        socket_octets=socket_octets,
        answers_flow=client != SILENT,
        on_flow=asked,
    )
