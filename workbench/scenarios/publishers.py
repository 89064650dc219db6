"""Lesson 05: a client publishes to several queues over one connection, and may consume on it too.

One session has a sending link to each queue, and with `consumer` a receiving link from a queue that
has messages. Queues may be slow, or stall; the broker may raise an alarm; the wire may take only so
many octets. Whatever stops a link then is the mechanism's doing: credit, confirms, window, TCP.
Acts: publish, stall, resume, slow, alarm, clear, set_max_link_credit, open_session, grant, hold,
release, set_latency.
"""

from __future__ import annotations

from workbench.amqp10.credit import Manual, TopUpAtHalf
from workbench.broker.queue_process import LocalQueueProcess
from workbench.peers import ClientLink, Consumer, Publisher
from workbench.presets import INT_MAX

from .action import ActionError
from .acts import WIRE_ACTS
from .alarms import ALARM_ACTS
from .credit import client_of
from .declare import ActionSpec, Kind, Parameter, ParameterError, Scenario
from .parameters import LATENCY_US, MESSAGE_BYTES, SOCKET_OCTETS
from .registry import register
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


def service_times(text: str, queues: int) -> list[int]:
    """Service times in us, one a queue; one number stands for all of them.

    Raises:
        ParameterError: if the text is no such list.
    """
    legal = (
        f"legal: one number for all, or {queues} separated by commas, each 0 to {MAX_SERVICE_US} us"
    )
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (1, queues):
        raise ParameterError(f"service_us has {len(parts)} numbers for {queues} queues; {legal}")
    for part in parts:
        if not part.isdecimal() or len(part) > len(str(MAX_SERVICE_US)):
            raise ParameterError(f"service_us has {part[:20]!r} in it; {legal}")
        if int(part) > MAX_SERVICE_US:
            raise ParameterError(f"service_us has {part} in it; {legal}")
    times = [int(part) for part in parts]
    return times if len(times) == queues else times * queues


def address(name: str) -> str:
    """The address of a queue."""
    return f"/queues/{name}"


def publisher(world: World, name: str, queue: str) -> Publisher:
    """A publisher over `c1` to a queue; a row tells of messages that have to wait."""

    def waiting(handed: Publisher, count: int) -> None:
        link = handed.link
        assert link is not None
        world.tap.internal(
            t_us=world.clock.now_us,
            event="publish",
            vantage=handed.vantage,
            connection="c1",
            session=link.session.ordinal,
            link=link.name,
            link_sender="client",
            attach_no=link.attach_no,
            ledger={**link.ledger(), **link.session.ledger()},
            extra={"count": count},
        )

    settled = bool(world.parameters["settled"])
    return Publisher(name, address(queue), settled=settled, on_waiting=waiting)


def build(world: World) -> None:
    """Queues, one client with a link to each, and perhaps a queue that it consumes from."""
    names = QUEUES[: world.number("queues")]
    size, latency = world.number("message_bytes"), world.number("latency_us")
    for name, service_us in zip(
        names, service_times(world.text("service_us"), len(names)), strict=True
    ):
        slow(world, queue=name, service_us=service_us)
    consumes = bool(world.parameters["consumer"])
    if consumes:
        source = world.broker.declare(SOURCE)
        ready = world.messages(size, world.number("ready"))
        world.clock.call_soon(source.fill, ready)

    def attached() -> None:
        if world.start_seq is None:
            world.mark_start()

    links: list[ClientLink] = [publisher(world, name, name) for name in names]
    if consumes:
        credit = world.number("consumer_credit")
        policy = TopUpAtHalf(credit) if credit else Manual()
        links.append(Consumer(CONSUMER, address(SOURCE), policy=policy, auto_settle=True))
    client = client_of(world, *links, name="app", on_attached=attached)
    world.peers["client"] = client
    capacity = world.number("socket_octets") or None
    world.connect(client, "c1", (latency, latency), capacity)


# -- acts -----------------------------------------------------------------------------------


def _not_attached(world: World) -> str | None:
    if world.peers["client"].attached:
        return None
    return (
        "the links are not attached yet; legal now: stall, slow, alarm, set_max_link_credit, hold,"
        " release, set_latency"
    )


def _no_consumer(world: World) -> str | None:
    if not world.parameters["consumer"]:
        return "this client consumes nothing; legal in a run with consumer=True"
    return _not_attached(world)


def _opened(world: World) -> str | None:
    if LATER in world.peers["client"].publishers or "open_session" in world.done:
        return "the second session is there already; legal now: publish(queue=later)"
    return _not_attached(world)


def _queue(world: World, name: str) -> str:
    names = QUEUES[: world.number("queues")]
    if name not in names:
        raise ActionError(f"there is no queue {name} in this run; legal: {', '.join(names)}")
    return name


def publish(world: World, *, queue: str, count: int, rate: int | None) -> None:
    """Messages for one link, or for each of them."""
    client = world.peers["client"]
    names = list(client.publishers) if queue == ALL else [queue]
    per_second = world.number("rate") if rate is None else rate
    every_us = max(1, US_PER_S // per_second) if per_second else 0
    for name in names:
        payloads = [world.message(world.number("message_bytes")) for _ in range(count)]
        client.publisher(name).publish(payloads, every_us)


def slow(world: World, *, queue: str, service_us: int) -> None:
    """From now on this queue needs so long for a message."""
    process = world.broker.declare(_queue(world, queue))
    assert isinstance(process, LocalQueueProcess)
    process.enqueue_us = service_us


def set_max_link_credit(world: World, *, link_credit: int) -> None:
    """Change the setting, as an operator does."""
    world.broker.configure(publisher_credit=link_credit)


_QUEUE = Parameter(
    name="queue", kind=Kind.TEXT, default=QUEUES[0], choices=QUEUES, doc="which queue"
)
ACTS = (
    ActionSpec(
        name="publish",
        doc="let the application publish over one link, or over each",
        parameters=(
            Parameter(
                name="queue",
                kind=Kind.TEXT,
                default=ALL,
                choices=(ALL, *QUEUES, LATER),
                doc="over the link to which queue; later is the link of the second session",
            ),
            Parameter(
                name="count",
                required=True,
                minimum=1,
                maximum=MAX_PUBLISH,
                unit="messages",
                doc="how many messages, over each link that is meant",
            ),
            Parameter(
                name="rate",
                minimum=0,
                maximum=US_PER_S,
                unit="messages per second",
                doc="how fast the application hands them over, 0 all at once; left out, the run's",
            ),
        ),
        legal=_not_attached,
        apply=publish,
    ),
    ActionSpec(
        name="stall",
        doc="let a queue hang: it takes nothing in and confirms nothing",
        parameters=(_QUEUE,),
        apply=lambda world, *, queue: world.broker.declare(_queue(world, queue)).stall(),
    ),
    ActionSpec(
        name="resume",
        doc="let a queue go on",
        parameters=(_QUEUE,),
        apply=lambda world, *, queue: world.broker.declare(_queue(world, queue)).resume(),
    ),
    ActionSpec(
        name="slow",
        doc="change how long a queue needs for each message",
        parameters=(
            _QUEUE,
            Parameter(
                name="service_us",
                required=True,
                minimum=0,
                maximum=MAX_SERVICE_US,
                unit="us",
                doc="time for taking one message in",
            ),
        ),
        apply=slow,
    ),
    *ALARM_ACTS,
    ActionSpec(
        name="grant",
        doc="set the credit of the client's receiving link",
        parameters=(
            Parameter(
                name="link_credit",
                required=True,
                minimum=0,
                maximum=INT_MAX,
                unit="messages",
                doc="how many more may come over it",
            ),
        ),
        legal=_no_consumer,
        apply=lambda world, *, link_credit: (
            world.peers["client"].consumer(CONSUMER).grant(link_credit)
        ),
    ),
    ActionSpec(
        name="set_max_link_credit",
        doc="change what the broker grants to publishers, as an operator changes the setting",
        parameters=(
            Parameter(
                name="link_credit",
                required=True,
                minimum=1,
                maximum=INT_MAX,
                unit="messages",
                doc="RabbitMQ's max_link_credit",
            ),
        ),
        apply=set_max_link_credit,
    ),
    ActionSpec(
        name="open_session",
        doc="begin a second session on the connection, with a link `later` to the first queue",
        legal=_opened,
        apply=lambda world: world.peers["client"].begin_session(
            [publisher(world, LATER, QUEUES[0])]
        ),
    ),
    *WIRE_ACTS,
)

PUBLISHERS = register(
    Scenario(
        name="publishers",
        title="Publishers: one slow target among fast ones",
        doc=(
            "A client publishes to several queues over one session. The broker grants credit to"
            " each link and grants again while the link's queue confirms."
        ),
        parameters=(
            Parameter(
                name="queues",
                default=1,
                minimum=1,
                maximum=MAX_QUEUES,
                unit="queues",
                doc="how many targets, each with a link of its own",
            ),
            Parameter(
                name="service_us",
                kind=Kind.TEXT,
                default="50",
                doc="what each queue needs for a message, in us: one number, or one for each",
            ),
            Parameter(
                name="rate",
                default=10_000,
                minimum=0,
                maximum=US_PER_S,
                unit="messages per second",
                doc="how fast the application publishes over each link; 0: all at once",
            ),
            Parameter(
                name="settled",
                kind=Kind.YES_NO,
                default=False,
                doc="messages are sent settled: no disposition tells the client of them",
            ),
            Parameter(
                name="max_link_credit",
                preset_field="publisher_credit",
                minimum=1,
                maximum=INT_MAX,
                unit="messages",
                doc="what the broker grants to a publisher",
            ),
            MESSAGE_BYTES,
            Parameter(
                name="consumer",
                kind=Kind.YES_NO,
                default=False,
                doc="the client also consumes, from another queue, on the same session",
            ),
            Parameter(
                name="consumer_credit",
                default=0,
                minimum=0,
                maximum=INT_MAX,
                unit="messages",
                doc="link-credit that it keeps up for that, renewed at half; 0: a person grants",
            ),
            Parameter(
                name="ready",
                default=1_000,
                minimum=0,
                maximum=MAX_PUBLISH,
                unit="messages",
                doc="ready in the queue that it consumes from",
            ),
            SOCKET_OCTETS,
            LATENCY_US,
        ),
        actions=ACTS,
        build=build,
    )
)
