"""AMQP 0-9-1: a queue with a single active consumer changes hands, in order or not.

Consumers `a`, `b` and perhaps `c`, each on its own connection, consume from one queue in that
order; only the first gets messages. It cannot stop as over AMQP 1.0 (`handover`): it cancels, and
keeps what it has not acknowledged while the next one goes on with what comes after; or its channel
closes, and what it held goes back first. If a consumer that has cancelled is lost, what it held
comes late.
Acts: leave, acknowledge (each of a consumer), publish, hold, release, set_latency.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from workbench.amqp091.events import Event, MessageReceived
from workbench.amqp091.methods import BasicDeliver
from workbench.peers import Client091, Consumer091
from workbench.presets import AMQP_0_9_1
from workbench.queues import QueueArguments
from workbench.queues.arguments import CLASSIC, QUORUM
from workbench.trace.schema import Row

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .credit import QUEUE
from .declare import PRESET, OneOf, Whole, act, scenario
from .handover import BY_HAND, CANCEL, MOST_READY, NAMES, Name, Seen, arrived, publish
from .parameters import MAX_MESSAGES, Count, Latency, Processing, Ready, SmallMessageBytes
from .run import Run
from .world import World

CLOSE = "close"
WAYS = (CANCEL, CLOSE)


def seen(played: Run) -> list[Seen]:
    """Every message that arrived, in order of arrival, at whichever consumer."""
    came: list[tuple[Row, int, bool]] = []
    again: dict[str, bool] = {}  # by consumer, of the delivery whose body comes next
    for row in played.rows:
        if row.event != "received" or row.from_peer != "broker":
            continue
        payload = getattr(row.item, "payload", None)
        if isinstance(payload, BasicDeliver):
            again[row.vantage] = payload.redelivered
        number = World.number_of(payload) if type(payload) is bytes else None
        if number is not None:
            came.append((row, number, again[row.vantage]))
    return arrived(came)


class LeavingConsumer091(Consumer091):
    """A consumer that can leave.

    Args:
        name: of the task; its consumer-tag.
        queue: from which.
        prefetch: deliveries ahead of acknowledgement.
        processing_us: how long it works on one message; None: a hand acknowledges.
        leave_after: messages after whose arrival it leaves by itself; None: it does not.
        way: in which it leaves then.

    Attributes:
        cancelled: it gets nothing more.
        gone: its channel is closed.
    """

    def __init__(
        self,
        name: str,
        queue: str,
        *,
        prefetch: int,
        processing_us: int | None,
        leave_after: int | None,
        way: str,
    ) -> None:
        super().__init__(name, queue, prefetch=prefetch, processing_us=processing_us)
        self.cancelled = False
        self.gone = False
        self._leave_after = leave_after
        self._way = way

    def handle(self, event: Event) -> None:
        """Works on a delivery, and leaves after the last that it wants."""
        super().handle(event)
        if isinstance(event, MessageReceived) and self.received == self._leave_after:
            self.leave(self._way)

    def leave(self, way: str) -> None:
        """Cancels and keeps what it holds, or closes its channel."""
        self.cancelled = True
        if way == CANCEL:
            self.cancel()
        else:
            self.gone = True
            self.open.close()


def _consumer(world: World, name: str) -> LeavingConsumer091:
    consumer = world.peers[name].tasks[name] if name in world.peers else None
    if not isinstance(consumer, LeavingConsumer091) or consumer.amqp is None:
        told = {"name": repr(name), "listed": ", ".join(world.peers)}
        raise ActionError(refusal("handover.no-consumer", **told))
    if consumer.gone:
        raise ActionError(refusal("handover.closed", name=name))
    return consumer


@act()
def leave(
    world: World,
    consumer: Name = NAMES[0],
    way: Annotated[
        str,
        OneOf(*WAYS),
        "cancel keeps what was not acknowledged; close gives it back, also after a cancel",
    ] = CANCEL,
) -> None:
    """The consumer cancels, or closes its channel, as it does when its connection is lost."""
    leaving = _consumer(world, consumer)
    if way == CANCEL and leaving.cancelled:
        raise ActionError(refusal("handover.cancelled", name=consumer))
    leaving.leave(way)


@act()
def acknowledge(world: World, consumer: Name = NAMES[0], count: Count = 1) -> None:
    """The consumer acknowledges its oldest messages."""
    there = _consumer(world, consumer)
    if count > len(there.unacknowledged):
        told = {"name": consumer, "held": len(there.unacknowledged)}
        raise ActionError(refusal("handover.holds", **told))
    for _ in range(count):
        there.acknowledge()


@scenario(
    "AMQP 0-9-1: handing a queue to the next consumer",
    acts=(leave, acknowledge, publish, *WIRE_ACTS),
    preset="rmq4.3",
    protocol=AMQP_0_9_1,
)
def handover_091(
    world: World,
    way: Annotated[str, OneOf(BY_HAND, *WAYS), "how consumer a leaves"] = BY_HAND,
    leave_after: Annotated[
        int, Whole(1, MAX_MESSAGES, "messages"), "consumer a leaves when so many have arrived"
    ] = 5,
    messages: Annotated[
        Ready, Whole(0, MOST_READY, "messages"), "ready in the queue when the first consumer comes"
    ] = 11,
    consumers: Annotated[
        int, Whole(1, len(NAMES), "consumers"), "how many come, one after the other"
    ] = 2,
    prefetch: Annotated[
        int, Whole(1, 65_535, "messages"), "deliveries ahead of acknowledgement, of each consumer"
    ] = 5,
    acknowledging: Annotated[
        bool, "whoever comes after consumer a acknowledges each message when it is done with it"
    ] = True,
    queue_type: Annotated[
        str, OneOf(CLASSIC, QUORUM), "of the queue; a quorum queue has one replica"
    ] = CLASSIC,
    processing_us: Processing = PRESET,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A queue with a single active consumer, and others that wait; consumer a acknowledges by hand.

    If it cancels while it holds messages, and is lost then, they come behind later ones.
    """
    arguments = QueueArguments(queue_type=queue_type, single_active_consumer=True)
    world.broker.declare(QUEUE, arguments, replicas=1 if queue_type == QUORUM else None)
    world.fill(QUEUE, messages)

    def connect(place: int) -> None:
        name = NAMES[place]
        consumer = LeavingConsumer091(
            name,
            QUEUE,
            prefetch=prefetch,
            processing_us=processing_us if acknowledging and place else None,
            leave_after=leave_after if way != BY_HAND and not place else None,
            way=way,
        )
        client = Client091(world.clock, [consumer], name=name, on_open=partial(opened, place))
        world.connect(client, f"c{place + 1}", peer=name)

    def opened(place: int) -> None:
        if place + 1 < consumers:
            world.clock.call_soon(connect, place + 1)
        else:
            world.mark_start()

    connect(0)
