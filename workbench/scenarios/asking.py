"""Lesson 03: asking for messages and stopping them, as the specification's figures draw it.

One queue, one receiver. What it does by itself is chosen by `mode`: nothing (`by-hand`), a
synchronous get (`get`, figure 2.43), a get with a time-out by drain (`get-with-timeout`, 2.44),
asynchronous notification (`notify`, 2.45), or a stop with echo after some messages (`stop`, 2.46).
Acts: get, grant, drain, echo, stop, publish, take (another consumer takes messages), acknowledge,
note (a flow with properties), detach, hold, release, set_latency.
"""

from __future__ import annotations

from typing import Annotated, Any

from workbench.amqp10.credit import CreditPolicy, Manual, TopUpAtHalf
from workbench.amqp10.events import Event
from workbench.peers import Consumer
from workbench.peers.getter import Get, Getter
from workbench.presets import UINT_MAX

from .action import refusal
from .acts import WIRE_ACTS
from .credit import QUEUE, acknowledge, client_of, drain, echo, grant, publish, stop
from .declare import PRESET, OneOf, Whole, act, scenario, unless
from .parameters import (
    MAX_MESSAGES,
    Acknowledge,
    Count,
    InitialDeliveryCount,
    Latency,
    MessageBytes,
    Microseconds,
    Processing,
    Ready,
)
from .run import Run
from .world import World

BY_HAND, GET, GET_WITH_TIMEOUT, NOTIFY, STOP = (
    "by-hand",
    "get",
    "get-with-timeout",
    "notify",
    "stop",
)
MODES = (BY_HAND, GET, GET_WITH_TIMEOUT, NOTIFY, STOP)
HYPOTHETICAL = "local"
RIVAL = "rival"


class _Receiver(Getter):
    """A getter that stops its link when so many messages have come."""

    def __init__(self, *, stop_after: int | None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._stop_after = stop_after

    def handle(self, event: Event) -> None:
        """Stops the link when it is time."""
        super().handle(event)
        if self._stop_after is not None and self.received >= self._stop_after:
            self._stop_after = None
            self.stop()


# -- reading a run --------------------------------------------------------------------------


def gets_of(played: Run) -> list[Get]:
    """Every get of a run, with how it ended."""
    consumer = played.world.peers["consumer"]
    assert isinstance(consumer, Getter)
    return consumer.gets


# -- acts -----------------------------------------------------------------------------------


_attached = unless("asking.not-attached", lambda world: world.peers["consumer"].attached)


def _cannot_get(world: World) -> str | None:
    consumer = world.peers["consumer"]
    if consumer.waiting is not None:
        return refusal("asking.waits")
    if consumer.link_credit:
        return refusal("asking.has-credit", link_credit=consumer.link_credit)
    return None


def _cannot_take(world: World) -> str | None:
    rival = world.peers.get(RIVAL)
    if rival is not None and (not rival.attached or rival.link_credit):
        return refusal("asking.rival-busy")
    if not world.broker.declare(QUEUE).queue.ready:
        return refusal("asking.empty")
    return None


@act(_attached, _cannot_get)
def get(
    world: World,
    timeout_us: Annotated[Microseconds, "how long to wait before drain is set; left out, for ever"]
    | None = None,
) -> None:
    """Ask for one message; with a time-out, drain when it runs out."""
    world.peers["consumer"].get(timeout_us)


@act(_cannot_take)
def take(world: World, count: Count = 1) -> None:
    """Another consumer takes messages out of the queue; nobody tells the receiver."""
    # On a connection of its own. It drains, so that it is no rival any more when it has got what
    # there was.

    def ask() -> None:
        world.peers[RIVAL].grant(count, drain=True)

    if RIVAL in world.peers:
        ask()
        return
    rival = world.peers[RIVAL] = Consumer(RIVAL, QUEUE, auto_settle=True)
    world.connect(client_of(world, rival, on_attached=ask), "c2")


@act(_attached)
def note(world: World, text: Annotated[str, "the property's value"] = "nearby") -> None:
    """Send a flow with a property that the sender does not know; it is ignored."""
    consumer = world.peers["consumer"]
    link = consumer.link
    link.grant(link.credit, properties={HYPOTHETICAL: text})


@act(_attached)
def detach(world: World) -> None:
    """Close the link; what is unsettled goes back into the queue."""
    world.peers["consumer"].detach()


@scenario(
    "Asking for messages, and stopping them",
    acts=(
        get, grant, publish, acknowledge, drain, echo, stop, take, note, detach, *WIRE_ACTS,
    ),
)  # fmt: skip
def asking(
    world: World,
    mode: Annotated[
        str, OneOf(*MODES), "what the receiver does by itself once its link is attached"
    ] = BY_HAND,
    messages: Annotated[Ready, "ready in the queue when the receiver comes"] = 0,
    publish_at_us: Annotated[
        Microseconds, "one message is published so long after the link is attached; left out, none"
    ]
    | None = None,
    timeout_us: Annotated[Microseconds, "how long a get waits before drain is set"] = 5000,
    n: Annotated[
        int, Whole(1, UINT_MAX, "messages"), "credit of the modes notify and stop"
    ] = PRESET.batch_credit,
    stop_after: Annotated[
        int,
        Whole(0, MAX_MESSAGES, "messages"),
        "in mode stop: the receiver stops when so many have come",
    ] = 3,
    processing_us: Processing = PRESET,
    acknowledge: Acknowledge = "manual",
    initial_delivery_count: InitialDeliveryCount = PRESET,
    message_bytes: MessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A receiver that gets one message, gives up after a time-out, is notified, or stops.

    These are the figures 2.43 to 2.46 of the specification.
    """
    world.fill(QUEUE, messages)

    def attached() -> None:
        world.mark_start()
        # What the receiver does first comes after the row that marks the start.
        world.clock.call_soon(begin)

    def begin() -> None:
        if publish_at_us is not None:
            world.clock.call_later(publish_at_us, world.put_messages, QUEUE)
        if not consumer.attached:
            return  # an act came first
        if mode in (GET, GET_WITH_TIMEOUT) and consumer.may_get:
            consumer.get(timeout_us if mode == GET_WITH_TIMEOUT else None)
        elif mode == STOP:
            consumer.grant(n)

    policy: CreditPolicy = TopUpAtHalf(n) if mode == NOTIFY else Manual()
    consumer = _Receiver(
        address=QUEUE,
        policy=policy,
        processing_us=processing_us,
        auto_settle=acknowledge == "auto",
        stop_after=stop_after if mode == STOP else None,
    )
    world.peers["consumer"] = consumer
    client = client_of(world, consumer, on_attached=attached)
    world.connect(client, "c1")
