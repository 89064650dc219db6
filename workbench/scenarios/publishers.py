"""Lesson 05: a client publishes to several queues over one connection, and may consume on it too.

One session has a sending link to each queue, and with `consumer` a receiving link from a queue that
has messages. Queues may be slow, or stall; the broker may raise an alarm; the wire may take only so
many octets. Whatever stops a link then is the mechanism's doing: credit, confirms, window, TCP.
Acts: publish, stall, resume, slow, alarm, clear, set_max_link_credit, open_session, grant, hold,
release, set_latency.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from workbench.amqp10.credit import Manual, TopUpAtHalf
from workbench.broker.queue_process import LocalQueueProcess
from workbench.peers import ClientLink, Consumer, Publisher
from workbench.presets import INT_MAX

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .alarms import ALARM_ACTS
from .credit import client_of
from .declare import PRESET, OneOf, ParameterError, Whole, act, scenario, unless
from .parameters import Latency, MessageBytes, Settled, SocketOctets
from .world import World

MAX_QUEUES = 4
MAX_SERVICE_US = 1_000_000
MAX_PUBLISH = 20_000
SOURCE = "source"
ALL = "all"
LATER = "later"
CONSUMER = "consumer"
QUEUES = tuple(f"q{number}" for number in range(1, MAX_QUEUES + 1))
US_PER_S = 1_000_000

QueueName = Annotated[str, OneOf(*QUEUES), "which queue"]
PublishCount = Annotated[
    int, Whole(1, MAX_PUBLISH, "messages"), "how many messages, over each link that is meant"
]
Rate = Annotated[int, Whole(0, US_PER_S, "messages per second")]


def service_times(text: str, queues: int) -> list[int]:
    """Service times in us, one a queue; one number stands for all of them.

    Raises:
        ParameterError: if the text is no such list.
    """
    legal = {"queues": queues, "most": MAX_SERVICE_US}
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (1, queues):
        raise ParameterError(refusal("publishers.service-times", count=len(parts), **legal))
    for part in parts:
        if not part.isdecimal() or len(part) > len(str(MAX_SERVICE_US)):
            raise ParameterError(refusal("publishers.service-time", part=repr(part[:20]), **legal))
        if int(part) > MAX_SERVICE_US:
            raise ParameterError(refusal("publishers.service-time", part=part, **legal))
    times = [int(part) for part in parts]
    return times if len(times) == queues else times * queues


def address(name: str) -> str:
    """The address of a queue."""
    return f"/queues/{name}"


def waiting_row(world: World, connection: str) -> Callable[[Publisher, int], None]:
    """What makes a row of messages that an application has handed over and that have to wait."""

    def waiting(handed: Publisher, count: int) -> None:
        link = handed.link
        assert link is not None
        world.record(
            "publish",
            handed.vantage,
            connection=connection,
            session=link.session.ordinal,
            link=link.name,
            link_sender="client",
            attach_no=link.attach_no,
            ledger={**link.ledger(), **link.session.ledger()},
            extra={"count": count},
        )

    return waiting


def publisher(world: World, name: str, queue: str) -> Publisher:
    """A publisher over `c1` to a queue; a row tells of messages that have to wait."""
    settled = bool(world.parameters["settled"])
    waiting = waiting_row(world, "c1")
    return Publisher(name, address(queue), settled=settled, on_waiting=waiting)


# -- acts -----------------------------------------------------------------------------------


_attached = unless("publishers.not-attached", lambda world: world.peers["client"].attached)
_has_consumer = unless("publishers.no-consumer", lambda world: world.parameters["consumer"])
_one_session = unless("publishers.opened", lambda world: "open_session" not in world.done)


def _queue(world: World, name: str) -> str:
    names = QUEUES[: world.number("queues")]
    if name not in names:
        listed = ", ".join(names)
        raise ActionError(refusal("publishers.no-queue", queue=name, listed=listed))
    return name


@act(_attached)
def publish(
    world: World,
    *,
    queue: Annotated[
        str,
        OneOf(ALL, *QUEUES, LATER),
        "over the link to which queue; later is the link of the second session",
    ] = ALL,
    count: PublishCount,
    rate: Annotated[
        Rate, "how fast the application hands them over, 0 all at once; left out, the run's"
    ]
    | None = None,
) -> None:
    """Let the application publish over one link, or over each."""
    client = world.peers["client"]
    names = list(client.publishers) if queue == ALL else [queue]
    per_second = world.number("rate") if rate is None else rate
    every_us = max(1, US_PER_S // per_second) if per_second else 0
    for name in names:
        client.publisher(name).publish(world.payloads(count), every_us)


@act()
def stall(world: World, queue: QueueName = QUEUES[0]) -> None:
    """Let a queue hang: it takes nothing in and confirms nothing."""
    world.broker.declare(_queue(world, queue)).stall()


@act()
def resume(world: World, queue: QueueName = QUEUES[0]) -> None:
    """Let a queue go on."""
    world.broker.declare(_queue(world, queue)).resume()


def slow_queue(world: World, queue: str, service_us: int) -> None:
    """Let a queue need so long for each message."""
    process = world.broker.declare(queue)
    assert isinstance(process, LocalQueueProcess)
    process.enqueue_us = service_us


@act()
def slow(
    world: World,
    *,
    queue: QueueName = QUEUES[0],
    service_us: Annotated[int, Whole(0, MAX_SERVICE_US, "us"), "time for taking one message in"],
) -> None:
    """Change how long a queue needs for each message."""
    slow_queue(world, _queue(world, queue), service_us)


@act(_has_consumer, _attached)
def grant(
    world: World,
    link_credit: Annotated[int, Whole(0, INT_MAX, "messages"), "how many more may come over it"],
) -> None:
    """Set the credit of the client's receiving link."""
    world.peers["client"].consumer(CONSUMER).grant(link_credit)


@act()
def set_max_link_credit(
    world: World,
    link_credit: Annotated[int, Whole(1, INT_MAX, "messages"), "RabbitMQ's max_link_credit"],
) -> None:
    """Change what the broker grants to publishers, as an operator changes the setting."""
    world.broker.configure(publisher_credit=link_credit)


@act(_one_session, _attached)
def open_session(world: World) -> None:
    """Begin a second session on the connection, with a link `later` to the first queue."""
    world.peers["client"].begin_session([publisher(world, LATER, QUEUES[0])])


@scenario(
    "Publishers: one slow target among fast ones",
    acts=(
        publish, stall, resume, slow, *ALARM_ACTS, grant, set_max_link_credit, open_session,
        *WIRE_ACTS,
    ),
)  # fmt: skip
def publishers(
    world: World,
    queues: Annotated[
        int, Whole(1, MAX_QUEUES, "queues"), "how many targets, each with a link of its own"
    ] = 1,
    service_us: Annotated[
        str, "what each queue needs for a message, in us: one number, or one for each"
    ] = "50",
    rate: Annotated[
        Rate, "how fast the application publishes over each link; 0: all at once"
    ] = 10_000,
    settled: Settled = False,
    max_link_credit: Annotated[
        int, Whole(1, INT_MAX, "messages"), "what the broker grants to a publisher"
    ] = PRESET.publisher_credit,
    message_bytes: MessageBytes = PRESET,
    consumer: Annotated[
        bool, "the client also consumes, from another queue, on the same session"
    ] = False,
    consumer_credit: Annotated[
        int,
        Whole(0, INT_MAX, "messages"),
        "link-credit that it keeps up for that, renewed at half; 0: a person grants",
    ] = 0,
    ready: Annotated[
        int, Whole(0, MAX_PUBLISH, "messages"), "ready in the queue that it consumes from"
    ] = 1_000,
    socket_octets: SocketOctets = 0,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A client publishes to several queues over one session.

    The broker grants credit to each link and grants again while the link's queue confirms.
    """
    names = QUEUES[:queues]
    for name, us in zip(names, service_times(service_us, len(names)), strict=True):
        slow_queue(world, name, us)
    if consumer:
        world.fill(SOURCE, ready)
    links: list[ClientLink] = [publisher(world, name, name) for name in names]
    if consumer:
        policy = TopUpAtHalf(consumer_credit) if consumer_credit else Manual()
        links.append(Consumer(CONSUMER, address(SOURCE), policy=policy, auto_settle=True))
    client = client_of(world, *links, name="app", on_attached=world.mark_start)
    world.connect(client, "c1", socket_octets, peer="client")
