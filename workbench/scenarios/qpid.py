"""AMQP 0-10: producers with windows of completion, and queues with watermarks.

One or two producers send to two queues, or to both by one message; a receiver takes from each, and
a message counts until it is accepted. Acts: publish, accept, set_watermarks, delete, stall,
resume, hold, release, set_latency. In `qpid_credit` a hand gives credit to a subscriber. Acts:
flow, set_flow_mode, flush, stop, complete, hold, release, set_latency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated

from workbench.amqp010.commands import CreditUnit, FlowMode
from workbench.broker.queue_process import QueueProcess
from workbench.broker.routing import Binding
from workbench.frontends.amqp010 import declare_queue, thresholds_of
from workbench.frontends.amqp010 import set_watermarks as change_watermarks
from workbench.peers import Client010, Receiver010, Sender010, Task010
from workbench.presets import AMQP_0_10, UINT_MAX
from workbench.queues import FlowThresholds

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .declare import PRESET, OneOf, Whole, act, scenario, unless
from .parameters import MAX_MESSAGES, Count, Latency, Microseconds, Ready, SmallMessageBytes
from .world import World, after_all

QUEUES = ("q1", "q2")
BOTH = "both"
PRODUCERS = ("p1", "p2")
RECEIVER = "receiver"
SUBSCRIBER = "subscriber"
CONNECTIONS = {"p1": "c1", "p2": "c2", RECEIVER: "c3", SUBSCRIBER: "c1"}
EXCHANGE = "amq.direct"  # each queue is bound by its name, and both by `both`
UNITS = {"messages": CreditUnit.MESSAGE, "octets": CreditUnit.BYTE}
MODES = {"credit": FlowMode.CREDIT, "window": FlowMode.WINDOW}

QueueName = Annotated[str, OneOf(*QUEUES), "which queue"]
Mark = Annotated[int, Whole(0, MAX_MESSAGES, "messages")]
Stop = Annotated[Mark, "high watermark: above so many a queue holds completions; 0: none"]
Resume = Annotated[Mark, "low watermark: below so many all completes; 0: as the high one"]
Window = Annotated[
    int, Whole(0, MAX_MESSAGES, "transfers"), "incomplete transfers that it allows itself; 0: any"
]


def _receiver(world: World, queue: str) -> Receiver010:
    task = world.peers[RECEIVER].tasks[queue]
    assert isinstance(task, Receiver010)
    return task


def _thresholds(world: World, stop: int, resume: int, most: int) -> FlowThresholds:
    """The limits of a queue, as if it were declared with these arguments.

    Raises:
        QueueArgumentError: Qpid C++ would refuse the declaration.
    """
    arguments = {"qpid.flow_stop_count": stop, "qpid.flow_resume_count": resume}
    if most:
        arguments["qpid.max_count"] = most
    return thresholds_of(world.preset, arguments)


def blocked_row(world: World, connection: str) -> Callable[[Sender010, bool, str], None]:
    """What makes a row of a producer that must wait, or may go on."""

    def blocked(sender: Sender010, on: bool, by: str) -> None:
        session = sender.open
        world.record(
            "block" if on else "unblock",
            sender.client.vantage,
            kind=by,
            connection=connection,
            session=session.ordinal,
            ledger=session.ledger() | sender.ledger(),
        )

    return blocked


@act()
def publish(
    world: World,
    queue: Annotated[
        str, OneOf(*QUEUES, BOTH), "to which; both: one message goes to the two queues"
    ] = QUEUES[0],
    count: Count = 1,
    producer: Annotated[str, OneOf(*PRODUCERS), "who"] = PRODUCERS[0],
) -> None:
    """Let a producer send messages."""
    if producer not in world.peers:
        raise ActionError(refusal("qpid.no-producer", producer=producer, legal=PRODUCERS[0]))
    task = world.peers[producer].tasks[producer]
    assert isinstance(task, Sender010)
    task.send([queue] * count)


@act()
def accept(
    world: World,
    queue: QueueName = QUEUES[0],
    count: Count = 1,
    processing_us: Annotated[Microseconds, "how long the receiver works on each"] = 0,
) -> None:
    """Let the receiver accept so many messages, the oldest first: they leave the queue."""
    _receiver(world, queue).work(count, processing_us)


@act()
def set_watermarks(
    world: World, queue: QueueName = QUEUES[0], *, stop: Stop, resume: Resume = 0
) -> None:
    """Change a queue's watermarks: what the proposal wanted, and Qpid C++ does not offer."""
    _queue(world, queue)
    thresholds = _thresholds(world, stop, resume, world.number("most"))
    change_watermarks(world.broker, queue, thresholds)


@act()
def delete(world: World, queue: QueueName = QUEUES[0]) -> None:
    """Delete a queue: what it held is complete."""
    world.broker.delete(_queue(world, queue).name)


def _queue(world: World, queue: str) -> QueueProcess:
    """A queue that is there.

    Raises:
        ActionError: it is deleted.
    """
    if queue not in world.broker.queues:
        raise ActionError(refusal("qpid.deleted", queue=queue))
    return world.broker.queues[queue]


@act()
def stall(world: World, queue: QueueName = QUEUES[0]) -> None:
    """Let a queue's process hang: it takes nothing in and hands nothing out."""
    _queue(world, queue).stall()


@act()
def resume(world: World, queue: QueueName = QUEUES[0]) -> None:
    """Let it go on."""
    _queue(world, queue).resume()


@scenario(
    "AMQP 0-10: watermarks of queues, and windows of producers",
    acts=(publish, accept, set_watermarks, delete, stall, resume, *WIRE_ACTS),
    preset="qpid-cpp",
    protocol=AMQP_0_10,
)
def qpid(
    world: World,
    stop: Stop = 7,
    resume: Resume = 5,
    most: Annotated[Mark, "what a queue may hold; 0: as many as its octets allow"] = 0,
    window: Annotated[Window, "of p1"] = 4,
    second_window: Annotated[Window, "of p2; left out, there is no p2"] | None = None,
    pause_us: Annotated[Microseconds, "between two messages of a producer"] = 100,
    message_bytes: SmallMessageBytes = 12,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """Producers send to queues that hold completions back above a watermark.

    A producer with a window stops by itself when so many transfers are not complete; one without
    goes on until the queue takes no more, and loses its session.
    """
    thresholds = _thresholds(world, stop, resume, most)
    for name in QUEUES:
        declare_queue(world.broker, name, thresholds)
        for key in (name, BOTH):
            world.broker.vhost.routing.bind(Binding(EXCHANGE, name, key=key))

    windows = {PRODUCERS[0]: window} | (
        {} if second_window is None else {PRODUCERS[1]: second_window}
    )
    tasks: dict[str, list[Task010]] = {
        name: [
            Sender010(
                name,
                exchange=EXCHANGE,
                capacity=size or None,
                body=bytes(message_bytes),
                pause_us=pause_us,
                on_blocked=blocked_row(world, CONNECTIONS[name]),
            )
        ]
        for name, size in windows.items()
    }
    tasks[RECEIVER] = [Receiver010(name, name, capacity=1, processing_us=None) for name in QUEUES]
    _connect(world, tasks)


def _connect(world: World, tasks: Mapping[str, Sequence[Task010]]) -> None:
    """A client for each list of tasks; the set-up ends when all are attached."""
    opened = after_all(tasks, world.mark_start)
    for name, own in tasks.items():
        client = Client010(world.clock, own, name=name, on_open=partial(opened, name))
        world.connect(client, CONNECTIONS[name], peer=name)


# -- credit of a subscriber -----------------------------------------------------------------------


def _subscriber(world: World) -> Receiver010:
    task = world.peers[SUBSCRIBER].tasks[SUBSCRIBER]
    assert isinstance(task, Receiver010)
    return task


_subscribed = unless("qpid.not-subscribed", lambda world: _subscriber(world).attached)


@act(_subscribed)
def flow(
    world: World,
    value: Annotated[int, Whole(0, UINT_MAX), "how much more; 4294967295: no limit"],
    unit: Annotated[str, OneOf(*UNITS), "what it counts"] = "messages",
) -> None:
    """Let the subscriber add credit."""
    _subscriber(world).flow(UNITS[unit], value)


@act(_subscribed)
def set_flow_mode(
    world: World,
    mode: Annotated[str, OneOf(*MODES), "used up, or given back on completion; each has its sums"],
) -> None:
    """Let the subscriber choose how its credit is used."""
    _subscriber(world).set_mode(MODES[mode])


@act(_subscribed)
def flush(world: World) -> None:
    """Let the subscriber ask for what is there; then its credit is 0."""
    _subscriber(world).flush()


@act(_subscribed)
def stop(world: World) -> None:
    """Let the subscriber take all its credit back."""
    _subscriber(world).stop()


@act(_subscribed)
def complete(world: World, count: Count = 1) -> None:
    """Let the subscriber accept and complete messages, the oldest first."""
    _subscriber(world).work(count)


@scenario(
    "AMQP 0-10: credit of a subscriber",
    acts=(flow, set_flow_mode, flush, stop, complete, *WIRE_ACTS),
    preset="qpid-cpp",
    protocol=AMQP_0_10,
)
def qpid_credit(
    world: World,
    messages: Ready = 10,
    message_bytes: SmallMessageBytes = 12,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A queue with messages, and a subscriber that has no credit yet.

    Credit counts messages and octets, and both must suffice. A flow adds. In credit mode what is
    used is gone; in window mode it comes back when the subscriber completes the message.
    """
    declare_queue(world.broker, QUEUES[0], FlowThresholds())
    world.fill(QUEUES[0], messages)
    subscriber = Receiver010(SUBSCRIBER, QUEUES[0], capacity=None, processing_us=None)
    _connect(world, {SUBSCRIBER: [subscriber]})
