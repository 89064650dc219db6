"""Lesson 03: a queue with a single active consumer changes hands.

Consumers `a`, `b` and perhaps `c`, each on its own connection, attach to one queue in that order;
only the first gets messages. When it leaves, `b` takes over. How it leaves is the lesson:
gracefully (stop with echo, settle, detach), or outright (detach), and then what it held goes back
into the queue first. AMQP 0-9-1 has a third way, cancelling a consumer that keeps its messages,
after which order may be lost: `CANCEL`, which is refused in words that name `handover_091`.
Acts: leave, grant, stop, echo, drain, acknowledge (each of a consumer), publish, hold, release,
set_latency.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from workbench.amqp10.messaging import Header, decode_message
from workbench.peers.leaving import GRACEFUL, OUTRIGHT, WAYS, LeavingConsumer
from workbench.trace.schema import Row

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .credit import QUEUE, client_of
from .declare import PRESET, OneOf, Whole, act, scenario, unless
from .parameters import (
    MAX_MESSAGES,
    Count,
    Credit,
    Latency,
    Processing,
    Ready,
    SmallMessageBytes,
)
from .run import Run
from .world import World

BY_HAND = "by-hand"
CANCEL = "cancel"
OF_0_9_1 = {
    CANCEL: "that is basic.cancel of AMQP 0-9-1, after which the consumer keeps what it holds;"
    " scenario handover_091 has it"
}
NAMES = ("a", "b", "c")
MOST_READY = 10_000

Name = Annotated[str, OneOf(*NAMES), "which one"]


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


def arrived(came: Iterable[tuple[Row, int, bool]]) -> list[Seen]:
    """Messages as they arrived, each by its row, its number, and whether it was marked."""
    arrivals: list[Seen] = []
    before: set[int] = set()
    for row, number, marked in came:
        arrivals.append(
            Seen(
                seq=row.seq,
                t_us=row.t_us,
                consumer=row.vantage.removeprefix("client:"),
                message=number,
                again=number in before,
                marked=marked,
            )
        )
        before.add(number)
    return arrivals


def seen(played: Run) -> list[Seen]:
    """Every message that arrived, in order of arrival, at whichever consumer."""
    came = (
        (row, getattr(row.item, "payload", b""))
        for row in played.rows
        if (row.kind, row.event, row.from_peer) == ("transfer", "received", "broker")
    )
    return arrived(
        (row, number, _marked(payload))
        for row, payload in came
        if (number := World.number_of(payload)) is not None
    )


def _marked(payload: bytes) -> bool:
    header = decode_message(payload)[0]
    return isinstance(header, Header) and header.first_acquirer is False


# -- acts -----------------------------------------------------------------------------------


def _consumer(world: World, name: str) -> LeavingConsumer:
    consumer = world.peers.get(name)
    if not isinstance(consumer, LeavingConsumer):
        told = {"name": repr(name), "listed": ", ".join(world.peers)}
        raise ActionError(refusal("handover.no-consumer", **told))
    if not consumer.attached:
        still = ", ".join(one for one, there in world.peers.items() if there.attached)
        told = {"name": name, "listed": still or refusal("none")}
        raise ActionError(refusal("handover.not-attached", **told))
    return consumer


_one_attached = unless(
    "handover.none-attached",
    lambda world: any(consumer.attached for consumer in world.peers.values()),
)


@act(_one_attached)
def leave(
    world: World,
    consumer: Name = NAMES[0],
    way: Annotated[
        str,
        OneOf(*WAYS, absent=OF_0_9_1),
        "graceful waits for the echo and settles; outright detaches at once",
    ] = GRACEFUL,
) -> None:
    """The consumer leaves: gracefully (stop, echo, settle, detach) or outright (detach)."""
    _consumer(world, consumer).leave(way)


@act(_one_attached)
def grant(
    world: World,
    link_credit: Annotated[Credit, "how many more it wants"],
    consumer: Name = NAMES[0],
) -> None:
    """A consumer sets its link-credit."""
    _consumer(world, consumer).grant(link_credit)


@act(_one_attached)
def stop(world: World, consumer: Name = NAMES[0]) -> None:
    """A consumer sets its credit to 0 and asks for an echo."""
    _consumer(world, consumer).stop()


@act(_one_attached)
def echo(world: World, consumer: Name = NAMES[0]) -> None:
    """A consumer asks for the sender's state, `available` included."""
    _consumer(world, consumer).echo()


@act(_one_attached)
def drain(world: World, consumer: Name = NAMES[0]) -> None:
    """A consumer asks for its credit to be used up or given back."""
    _consumer(world, consumer).drain()


@act(_one_attached)
def acknowledge(
    world: World,
    consumer: Name = NAMES[0],
    count: Annotated[int, Whole(1, MAX_MESSAGES, "deliveries"), "how many; left out, all"]
    | None = None,
) -> None:
    """A consumer settles its oldest deliveries."""
    receiver = _consumer(world, consumer)
    if receiver.unsettled == 0 or (count or 0) > receiver.unsettled:
        told = {"name": consumer, "unsettled": receiver.unsettled}
        raise ActionError(refusal("handover.too-many", **told))
    receiver.acknowledge(count)


@act()
def publish(world: World, count: Annotated[Count, Whole(1, MOST_READY, "messages")] = 1) -> None:
    """Put messages into the queue."""
    world.put_messages(QUEUE, count)


@scenario(
    "Handing a queue to the next consumer",
    acts=(leave, grant, stop, echo, drain, acknowledge, publish, *WIRE_ACTS),
)
def handover(
    world: World,
    way: Annotated[
        str, OneOf(BY_HAND, GRACEFUL, OUTRIGHT, absent=OF_0_9_1), "how consumer a leaves"
    ] = BY_HAND,
    leave_after: Annotated[
        int, Whole(1, MAX_MESSAGES, "messages"), "consumer a leaves when so many have arrived"
    ] = 3,
    messages: Annotated[
        Ready, Whole(0, MOST_READY, "messages"), "ready in the queue when the first consumer comes"
    ] = PRESET,
    consumers: Annotated[
        int, Whole(1, len(NAMES), "consumers"), "how many attach, one after the other"
    ] = 2,
    link_credit: Annotated[
        Credit, "what each consumer grants when all are attached; 0: nothing"
    ] = 5,
    processing_us: Annotated[Processing, "how long a consumer works on one message"] = PRESET,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A queue with a single active consumer, and others that wait.

    How the active one leaves decides whether messages are delivered twice.
    """
    world.broker.declare(QUEUE, single_active_consumer=True)
    world.fill(QUEUE, messages)
    names = NAMES[:consumers]

    def connect(place: int) -> None:
        name = names[place]
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
            processing_us=processing_us,
            leave_after=leave_after if leaves else None,
            way=way,
        )
        world.peers[name] = consumer
        client = client_of(world, consumer, on_attached=attached)
        world.connect(client, f"c{place + 1}")

    def grant_all() -> None:
        for name in names:
            if link_credit and world.peers[name].attached:
                world.peers[name].grant(link_credit)

    connect(0)
