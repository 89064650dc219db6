"""Lesson 03: a queue with a single active consumer changes hands.

Consumers `a`, `b` and perhaps `c`, each on its own connection, attach to one queue in that order;
only the first gets messages. When it leaves, `b` takes over. How it leaves is the lesson:
gracefully (stop with echo, settle, detach), or outright (detach), and then what it held goes back
into the queue first. AMQP 0-9-1 has a third way, cancelling a consumer that keeps its messages,
after which order may be lost; its place is kept: `CANCEL`, which is refused in words as long as
0-9-1 channels cannot be run here.
Acts: leave, grant, stop, echo, drain, acknowledge (each of a consumer), publish, hold, release,
set_latency.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from workbench.amqp10.messaging import Header, decode_message
from workbench.peers.leaving import GRACEFUL, OUTRIGHT, WAYS, LeavingConsumer
from workbench.presets import UINT_MAX

from .action import ActionError
from .acts import MAX_LATENCY_US, WIRE_ACTS
from .credit import MAX_MESSAGES, QUEUE, client_of
from .declare import ActionSpec, Kind, Parameter, Scenario
from .parameters import LATENCY_US
from .registry import register
from .run import Run
from .world import World

BY_HAND = "by-hand"
CANCEL = "cancel"
NOT_YET = (
    (
        CANCEL,
        "that is basic.cancel of AMQP 0-9-1, after which the consumer keeps what it holds; 0-9-1"
        " cannot be run here",
    ),
)
NAMES = ("a", "b", "c")
MOST_READY = 10_000


def build(world: World) -> None:
    """A queue with messages, and consumers that attach one after the other."""
    queue = world.broker.declare(QUEUE, single_active_consumer=True)
    size, latency = world.number("message_bytes"), world.number("latency_us")
    ready = world.messages(size, world.number("messages"))
    world.clock.call_soon(queue.fill, ready)
    names = NAMES[: world.number("consumers")]

    def connect(place: int) -> None:
        name = names[place]
        way = world.text("way")
        leaves = place == 0 and way != BY_HAND

        def attached() -> None:
            if place + 1 < len(names):
                world.clock.call_soon(connect, place + 1)
            else:
                world.mark_start()
                world.clock.call_soon(grant_all)

        consumer = LeavingConsumer(
            name,
            QUEUE,
            processing_us=world.number("processing_us"),
            leave_after=world.number("leave_after") if leaves else None,
            way=way,
        )
        world.peers[name] = consumer
        client = client_of(world, consumer, on_attached=attached)
        world.connect(client, f"c{place + 1}", (latency, latency))

    def grant_all() -> None:
        credit = world.number("link_credit")
        for name in names:
            if credit and world.peers[name].attached:
                world.peers[name].grant(credit)

    connect(0)


# -- reading a run --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A message that arrived at a consumer.

    Attributes:
        seq: of the row.
        t_us: when.
        consumer: at whom.
        message: which, counted from 0 in the order of publishing.
        again: it had arrived somewhere before, if only at somebody who had left by then.
        marked: its header says that it was handed out before: first-acquirer is false [3.2.1].
    """

    seq: int
    t_us: int
    consumer: str
    message: int
    again: bool
    marked: bool


def seen(played: Run) -> list[Seen]:
    """Every message that arrived, in order of arrival, at whichever consumer."""
    arrivals: list[Seen] = []
    before: set[int] = set()
    for row in played.rows:
        if row.kind != "transfer" or row.event != "received" or row.from_peer != "broker":
            continue
        payload = getattr(row.item, "payload", b"")
        found = re.search(rb"message (\d+)", payload)
        if found is None:
            continue
        number = int(found[1])
        arrivals.append(
            Seen(
                seq=row.seq,
                t_us=row.t_us,
                consumer=row.vantage.removeprefix("client:"),
                message=number,
                again=number in before,
                marked=_marked(payload),
            )
        )
        before.add(number)
    return arrivals


def _marked(payload: bytes) -> bool:
    header = decode_message(payload)[0]
    return isinstance(header, Header) and header.first_acquirer is False


# -- acts -----------------------------------------------------------------------------------


def _consumer(world: World, name: str) -> LeavingConsumer:
    consumer = world.peers.get(name)
    if not isinstance(consumer, LeavingConsumer):
        raise ActionError(f"there is no consumer {name!r}; there are: {', '.join(world.peers)}")
    if not consumer.attached:
        still = ", ".join(one for one, there in world.peers.items() if there.attached) or "none"
        raise ActionError(f"consumer {name} is not attached now; attached: {still}")
    return consumer


def _none_attached(world: World) -> str | None:
    if any(consumer.attached for consumer in world.peers.values()):
        return None
    return "no consumer is attached now; legal now: publish, hold, release, set_latency"


def publish(world: World, *, count: int) -> None:
    """Messages come into the queue."""
    for _ in range(count):
        world.put_message(QUEUE)


def acknowledge(world: World, *, consumer: str, count: int | None) -> None:
    """Settle the oldest deliveries of a consumer."""
    receiver = _consumer(world, consumer)
    if receiver.unsettled == 0 or (count or 0) > receiver.unsettled:
        raise ActionError(
            f"consumer {consumer} has {receiver.unsettled} unsettled deliveries; legal now: up to"
            " that many"
        )
    receiver.acknowledge(count)


_CONSUMER = Parameter(
    name="consumer", kind=Kind.TEXT, default=NAMES[0], choices=NAMES, doc="which one"
)
_COUNT = Parameter(
    name="count",
    minimum=1,
    maximum=MAX_MESSAGES,
    unit="deliveries",
    doc="how many; left out, all",
)

ACTS = (
    ActionSpec(
        name="leave",
        doc="the consumer leaves: gracefully (stop, echo, settle, detach) or outright (detach)",
        parameters=(
            _CONSUMER,
            Parameter(
                name="way",
                kind=Kind.TEXT,
                default=GRACEFUL,
                choices=WAYS,
                absent=NOT_YET,
                doc="graceful waits for the echo and settles; outright detaches at once",
            ),
        ),
        legal=_none_attached,
        apply=lambda world, *, consumer, way: _consumer(world, consumer).leave(way),
    ),
    ActionSpec(
        name="grant",
        doc="a consumer sets its link-credit",
        parameters=(
            Parameter(
                name="link_credit",
                required=True,
                minimum=0,
                maximum=UINT_MAX,
                unit="messages",
                doc="how many more it wants",
            ),
            _CONSUMER,
        ),
        legal=_none_attached,
        apply=lambda world, *, link_credit, consumer: _consumer(world, consumer).grant(link_credit),
    ),
    ActionSpec(
        name="stop",
        doc="a consumer sets its credit to 0 and asks for an echo",
        parameters=(_CONSUMER,),
        legal=_none_attached,
        apply=lambda world, *, consumer: _consumer(world, consumer).stop(),
    ),
    ActionSpec(
        name="echo",
        doc="a consumer asks for the sender's state, `available` included",
        parameters=(_CONSUMER,),
        legal=_none_attached,
        apply=lambda world, *, consumer: _consumer(world, consumer).echo(),
    ),
    ActionSpec(
        name="drain",
        doc="a consumer asks for its credit to be used up or given back",
        parameters=(_CONSUMER,),
        legal=_none_attached,
        apply=lambda world, *, consumer: _consumer(world, consumer).drain(),
    ),
    ActionSpec(
        name="acknowledge",
        doc="a consumer settles its oldest deliveries",
        parameters=(_CONSUMER, _COUNT),
        legal=_none_attached,
        apply=acknowledge,
    ),
    ActionSpec(
        name="publish",
        doc="put messages into the queue",
        parameters=(
            Parameter(
                name="count",
                default=1,
                minimum=1,
                maximum=MOST_READY,
                unit="messages",
                doc="how many messages",
            ),
        ),
        apply=publish,
    ),
    *WIRE_ACTS,
)

HANDOVER = register(
    Scenario(
        name="handover",
        title="Handing a queue to the next consumer",
        doc=(
            "A queue with a single active consumer, and others that wait. How the active one"
            " leaves decides whether messages are delivered twice."
        ),
        parameters=(
            Parameter(
                name="way",
                kind=Kind.TEXT,
                default=BY_HAND,
                choices=(BY_HAND, GRACEFUL, OUTRIGHT),
                absent=NOT_YET,
                doc="how consumer a leaves",
            ),
            Parameter(
                name="leave_after",
                default=3,
                minimum=1,
                maximum=MAX_MESSAGES,
                unit="messages",
                doc="consumer a leaves when so many have arrived",
            ),
            Parameter(
                name="messages",
                preset_field="messages",
                minimum=0,
                maximum=MOST_READY,
                unit="messages",
                doc="ready in the queue when the first consumer comes",
            ),
            Parameter(
                name="consumers",
                default=2,
                minimum=1,
                maximum=len(NAMES),
                unit="consumers",
                doc="how many attach, one after the other",
            ),
            Parameter(
                name="link_credit",
                default=5,
                minimum=0,
                maximum=UINT_MAX,
                unit="messages",
                doc="what each consumer grants when all are attached; 0: nothing",
            ),
            Parameter(
                name="processing_us",
                preset_field="processing_us",
                minimum=0,
                maximum=MAX_LATENCY_US,
                unit="us",
                doc="how long a consumer works on one message",
            ),
            Parameter(
                name="message_bytes",
                preset_field="message_bytes",
                minimum=0,
                maximum=65_536,
                unit="octets",
                doc="size of each message's body",
            ),
            LATENCY_US,
        ),
        actions=ACTS,
        build=build,
    )
)
