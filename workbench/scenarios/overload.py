"""AMQP 0-9-1: one overload, and the five answers to it that RabbitMQ's article of 2008 names.

Throttle the producer; let messages overflow to disk; tell an operator; cut the producer off;
discard messages. The same producer, consumer and machine each time: what differs is what is done
about memory, and what that costs. Only the first is in RabbitMQ 1.5; overflow to disk came with
2.0.0, a greatest length with 3.1. Acts: publish, hold, release, set_latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from workbench.amqp091.errors import ReplyCode
from workbench.broker.memory import MEMORY
from workbench.broker.system_memory import SystemMemory
from workbench.peers import MulticastConsumer, MulticastProducer
from workbench.presets import AMQP_0_9_1
from workbench.queues import QueueArguments
from workbench.sim import Clock

from .action import refusal
from .acts import WIRE_ACTS
from .declare import PRESET, OneOf, ParameterError, Whole, scenario
from .emergency_brake import (
    APP,
    CONSUMER,
    MOST_OCTETS,
    PROCESSING_US,
    PUBLISHER,
    QUEUE,
    WORKER,
    Octets,
    Stamped,
    crash,
    join,
    memory_of,
    publish,
    say,
)
from .parameters import Latency, Microseconds
from .run import Run, run
from .world import World

THROTTLE, DISK, OPERATOR, CUT_OFF, DISCARD = "throttle", "disk", "operator", "cut off", "discard"
OPTIONS = (THROTTLE, DISK, OPERATOR, CUT_OFF, DISCARD)
SCENARIO = "overload"
RELEASES = {
    THROTTLE: "rmq1.8",
    DISK: "rmq2.0",
    OPERATOR: "rmq1.8",
    CUT_OFF: "rmq1.8",
    DISCARD: "rmq3.5.5",
}
"""For each answer a release that has it; all have the same watermark, and count the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one answer to the overload costs.

    Attributes:
        option: which one.
        consumed: messages that the consumer is done with.
        kept: those that the producer still has, and nobody takes.
        discarded: those that the queue has thrown away.
        died: those that died with the broker, or with a connection that was cut.
        stood_us: how long the producer stood still.
        written: messages that were written to disk for want of memory.
        latency_us: the largest, from publishing to the consumer's program.
        most_octets: in use at most.
        gone: the machine had no octet left.
    """

    option: str
    consumed: int
    kept: int
    discarded: int
    died: int
    stood_us: int
    written: int
    latency_us: int
    most_octets: int
    gone: bool

    @property
    def lost(self) -> int:
        """Messages that were published, and that nobody will ever consume."""
        return self.discarded + self.died


def outcomes(**parameters: int | str) -> tuple[Outcome, ...]:
    """The five answers side by side.

    Args:
        **parameters: of the scenario, but which answer.
    """
    return tuple(
        outcome(run(SCENARIO, preset, {**parameters, "option": option}))
        for option, preset in RELEASES.items()
    )


def outcome(played: Run) -> Outcome:
    """What has come of a run that rests."""
    world, memory = played.world, memory_of(played.world)
    producer, consumer = world.peers[APP].tasks[PUBLISHER], world.peers[WORKER].tasks
    consumed = sum(task.processed for task in consumer.values())
    discarded = sum(row.event == "drop" for row in played.rows)
    return Outcome(
        option=world.text("option"),
        consumed=consumed,
        kept=producer.left,
        discarded=discarded,
        died=producer.published - consumed - discarded,
        stood_us=_stood_us(played),
        written=world.broker.stores.transient.written,
        latency_us=max(task.most_latency_us for task in consumer.values()),
        most_octets=memory.most,
        gone=memory.gone,
    )


def _stood_us(played: Run) -> int:
    """How long the producer's end was stopped by channel.flow."""
    stood, since = 0, None
    for row in played.rows:
        if row.connection == APP and row.kind == "alarm":
            if row.event == "block":
                since = row.t_us
            elif since is not None:
                stood, since = stood + row.t_us - since, None
    return stood


class Answer:
    """What is done when memory is above the watermark; it stands where the broker's alarm would.

    Attributes:
        alarms: `memory` while it is above.
    """

    def __init__(self, world: World) -> None:
        self.alarms: list[str] = []
        self.clock: Clock = world.clock
        self._world = world
        self._option = world.text("option")

    def set_alarm(self, resource: str = MEMORY) -> None:
        """Memory is above the watermark."""
        self.alarms.append(resource)
        world = self._world
        if self._option == THROTTLE:
            world.broker.set_alarm(resource)
        elif self._option == CUT_OFF:
            producer = world.broker.connections.get(APP)
            if producer is not None:  # not gone since the last time
                producer.cut_off(  # type: ignore[attr-defined]
                    ReplyCode.RESOURCE_ERROR, "memory is short: the producer is cut off"
                )
        elif self._option == OPERATOR:
            world.record("note", "broker", kind="operator")
            self.clock.call_later(world.number("operator_us"), self._operate)

    def clear_alarm(self, resource: str = MEMORY) -> None:
        """It is not any more."""
        self.alarms.remove(resource)
        if self._option == THROTTLE:
            self._world.broker.clear_alarm(resource)

    def _operate(self) -> None:
        """The operator has come, and starts consumers."""
        worker = self._world.peers[WORKER]
        if worker.amqp.opened and len(worker.tasks) == 1:
            for number in range(self._world.number("more_consumers")):
                worker.add(_consumer(self._world, f"{CONSUMER}-{number + 2}"))


def _consumer(world: World, name: str) -> MulticastConsumer:
    return MulticastConsumer(name, QUEUE, processing_us=world.number("processing_us"), prefetch=1)


def told(world: World) -> list[str]:
    """What the answer has cost."""
    producer, consumer = world.peers[APP].tasks[PUBLISHER], world.peers[WORKER].tasks
    memory = memory_of(world)
    consumed = sum(task.processed for task in consumer.values())
    used = {"most": memory.most, "total": memory.total}
    return [
        say("overload.moved", published=producer.published, left=producer.left, consumed=consumed),
        say("overload.died" if memory.gone else "overload.most", **used),
    ]


@scenario(
    "One overload, five answers",
    acts=(publish, *WIRE_ACTS),
    preset="rmq1.8",
    protocol=AMQP_0_9_1,
    told=told,
)
def overload(
    world: World,
    option: Annotated[str, OneOf(*OPTIONS), "what is done above the watermark"] = THROTTLE,
    messages: Annotated[int, Whole(0, 100_000, "messages"), "that the producer has"] = 60,
    pause_us: Annotated[Microseconds, "between two messages"] = 1_000_000,
    processing_us: Annotated[Microseconds, "how long the consumer works on one"] = PROCESSING_US,
    message_bytes: Stamped = 1_000,
    total_octets: Annotated[int, Whole(1, MOST_OCTETS, "octets"), "of the machine"] = 60_000,
    others_octets: Annotated[Octets, "that others on the machine hold"] = 12_000,
    collected_us: Annotated[Microseconds, "until garbage is collected"] = 2_000_000,
    reclaimed_us: Annotated[Microseconds, "until the system has it back"] = 3_000_000,
    operator_us: Annotated[Microseconds, "until the operator has come"] = 60_000_000,
    more_consumers: Annotated[int, Whole(0, 16, "consumers"), "that the operator starts"] = 4,
    max_length_bytes: Annotated[
        int, Whole(1, MOST_OCTETS, "octets"), "of bodies, beyond which the queue discards"
    ] = 12_000,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A producer is four times as fast as the consumer, and the machine cannot hold the difference.

    Something is done when memory is above the watermark; on the way to the disk from half of it on.
    """
    discards, preset = option == DISCARD, world.preset
    if (option == DISK and not preset.paging_ratio) or (discards and not preset.queue_limits):
        told = {"option": repr(option), "broker": preset.title, "preset": RELEASES[option]}
        raise ParameterError(refusal("overload.no-option", **told))
    world.broker.declare(
        QUEUE, QueueArguments(max_length_bytes=max_length_bytes) if discards else None
    )
    world.broker.memory = memory = SystemMemory(
        Answer(world),
        lambda: world.broker.held_octets,
        total=total_octets,
        others=others_octets,
        watermark=preset.memory_high_watermark,
        counts=preset.memory_counts,
        collected_us=collected_us,
        reclaimed_us=reclaimed_us,
        tap=world.tap,
        exhausted=lambda: crash(world),
    )
    if option == DISK:
        world.broker.watch_paging(lambda: memory.compared, int(memory.limit))
    producer = MulticastProducer(PUBLISHER, QUEUE, body=bytes(message_bytes), pause_us=pause_us)
    join(world, producer, _consumer(world, CONSUMER))
