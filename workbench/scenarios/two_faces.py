"""Qpid's Java broker: one overload over AMQP 0-10, and over 1.0.

A producer sends to two queues with a maximum; a receiver of AMQP 0-10 takes from both. Acts:
publish, accept, hold, release, set_latency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from workbench.frontends.amqp010 import declare_queue, thresholds_of
from workbench.peers import Client, Client010, Publisher, Receiver010, Sender010
from workbench.presets import AMQP_0_10, AMQP_1_0, BROKER_J
from workbench.trace.fold import held_in
from workbench.trace.schema import BROKER, RECEIVED, Row

from .action import refusal
from .acts import WIRE_ACTS
from .credit import client_of
from .declare import PRESET, OneOf, ParameterError, Whole, act, scenario
from .parameters import MAX_MESSAGES, Count, Latency, Microseconds, SmallMessageBytes
from .publishers import address, waiting_row
from .qpid import CONNECTIONS, PRODUCERS, QUEUES, RECEIVER, QueueName, accept, blocked_row
from .run import run
from .world import World, after_all

PRODUCER = PRODUCERS[0]
FIRST, SECOND = QUEUES
FACES = (AMQP_0_10, AMQP_1_0)
SCENARIO = "two_faces"
QUEUE_FLOW = "queue-flow"
SAYS = ("flow", "message.set-flow-mode", "message.stop", "message.flow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """What an overload is like over one protocol.

    Attributes:
        protocol: which.
        beforehand: what the broker says of credit before anything is amiss.
        stops: what it says when the queue has become too full.
        top: the most that this queue holds.
        other: messages that reach the other queue while it is too full.
        goes_on_at: what it holds when the broker lets the producer go on.
        resumes: what it says then.
    """

    protocol: str
    beforehand: tuple[str, ...]
    stops: tuple[str, ...]
    top: int
    other: int
    goes_on_at: int
    resumes: tuple[str, ...]


def faces(publish: int, other: int, **parameters: int) -> tuple[Face, ...]:
    """The same overload over both protocols.

    Args:
        publish: messages for the queue that becomes too full.
        other: messages for the other one, after them.
        **parameters: of the scenario, but the protocol.
    """
    return tuple(_face(name, publish, other, parameters) for name in FACES)


def _face(protocol: str, messages: int, other: int, parameters: Mapping[str, int]) -> Face:
    full = run(SCENARIO, BROKER_J, {**parameters, "speaks": protocol}).act_each(
        [
            ("publish", {"queue": FIRST, "count": messages}),
            ("publish", {"queue": SECOND, "count": other}),
        ]
    )
    freed = full.then("accept", queue=FIRST, count=messages)
    (stops,) = _turns(full.rows, "block")
    goes_on, *_ = _turns(freed.rows, "unblock")
    held = [held_in(row) for row in full.rows if row.queue == FIRST and row.ledger]
    return Face(
        protocol=protocol,
        beforehand=_said(full.rows[: stops.seq]),
        stops=_said(full.rows[stops.seq :]),
        top=max(held),
        other=sum((row.queue, row.event) == (SECOND, "enqueue") for row in full.rows),
        goes_on_at=held_in(goes_on),
        resumes=_said(freed.rows[goes_on.seq :])[:1],
    )


def _turns(rows: Sequence[Row], event: str) -> list[Row]:
    """Where the first queue stops, or goes on."""
    turn = (event, QUEUE_FLOW, FIRST)
    return [row for row in rows if (row.event, row.kind, row.queue) == turn]


def _said(rows: Sequence[Row]) -> tuple[str, ...]:
    """What the broker tells the producer of credit in these rows, in words."""
    return tuple(
        _told(row)
        for row in rows
        if (row.connection, row.event, row.from_peer) == (CONNECTIONS[PRODUCER], RECEIVED, BROKER)
        and row.kind in SAYS
    )


def _told(row: Row) -> str:
    fields = row.fields
    if row.kind == "flow":
        return f"flow: link-credit {fields['link_credit']:,}" + (
            ", drain" if fields.get("drain") else ""
        )
    if row.kind == "message.flow":
        return f"{row.kind}: {fields['value']:,} messages"
    return str(row.kind)


@act()
def publish(world: World, queue: QueueName = FIRST, count: Count = 1) -> None:
    """Let the producer send messages to a queue."""
    producer = world.peers[PRODUCER]
    if isinstance(producer, Client010):
        task = producer.tasks[PRODUCER]
        assert isinstance(task, Sender010)
        task.send([queue] * count)
    else:
        producer.publisher(queue).publish(world.payloads(count), world.number("pause_us"))


@scenario(
    "Qpid's Java broker: one overload, two protocols",
    acts=(publish, accept, *WIRE_ACTS),
    preset=BROKER_J,
    protocol=AMQP_0_10,
)
def two_faces(
    world: World,
    speaks: Annotated[str, OneOf(*FACES), "what the producer speaks"] = AMQP_1_0,
    most: Annotated[
        int, Whole(1, MAX_MESSAGES, "messages"), "above so many a queue stops who publishes to it"
    ] = 10,
    pause_us: Annotated[Microseconds, "between two messages for a queue"] = 100,
    message_bytes: SmallMessageBytes = 12,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A producer has a session of AMQP 0-10, or a session of 1.0 with a link to each of two queues.

    Above its maximum a queue stops the session, or the links that lead to it, by credit.
    """
    if world.preset.conduct != BROKER_J:
        raise ParameterError(
            refusal("two-faces.stops-nobody", preset=world.preset.name, legal=BROKER_J)
        )
    thresholds = thresholds_of(world.preset, {"qpid.max_count": most})
    for name in QUEUES:
        declare_queue(world.broker, name, thresholds)
    opened = after_all((PRODUCER, RECEIVER), world.mark_start)
    attached = partial(opened, PRODUCER)
    producer: Client | Client010
    connection = CONNECTIONS[PRODUCER]
    if speaks == AMQP_1_0:
        waiting = waiting_row(world, connection)
        links = [Publisher(name, address(name), on_waiting=waiting) for name in QUEUES]
        producer = client_of(world, *links, name=PRODUCER, on_attached=attached)
    else:
        sender = Sender010(
            PRODUCER,
            capacity=None,  # the window is the client's; here the broker's word is looked at
            body=bytes(message_bytes),
            pause_us=pause_us,
            on_blocked=blocked_row(world, connection),
        )
        producer = Client010(world.clock, [sender], name=PRODUCER, on_open=attached)
    tasks = [Receiver010(name, name, capacity=1, processing_us=None) for name in QUEUES]
    receiver = Client010(world.clock, tasks, name=RECEIVER, on_open=partial(opened, RECEIVER))
    for name, client in ((PRODUCER, producer), (RECEIVER, receiver)):
        world.connect(client, CONNECTIONS[name], peer=name)
