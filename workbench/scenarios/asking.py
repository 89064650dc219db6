"""Lesson 03: asking for messages and stopping them, as the specification's figures draw it.

One queue, one receiver. What it does by itself is chosen by `mode`: nothing (`by-hand`), a
synchronous get (`get`, figure 2.43), a get with a time-out by drain (`get-with-timeout`, 2.44),
asynchronous notification (`notify`, 2.45), or a stop with echo after some messages (`stop`, 2.46).
Acts: get, grant, drain, echo, stop, publish, take (another consumer takes messages), acknowledge,
note (a flow with properties), detach, hold, release, set_latency.
"""

from __future__ import annotations

from typing import Any

from workbench.amqp10.credit import CreditPolicy, Manual, TopUpAtHalf
from workbench.amqp10.events import Event
from workbench.peers import Consumer
from workbench.peers.getter import Ending, Get, Getter
from workbench.presets import UINT_MAX
from workbench.trace.schema import Row

from .acts import MAX_LATENCY_US, WIRE_ACTS
from .credit import (
    ACTS,
    MAX_MESSAGES,
    QUEUE,
    client_of,
)
from .declare import ActionSpec, Kind, Parameter, Scenario
from .parameters import INITIAL_DELIVERY_COUNT, LATENCY_US, MESSAGE_BYTES, PROCESSING_US
from .registry import register
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


def build(world: World) -> None:
    """A queue with messages, a receiver, and perhaps a message that is published later."""
    queue = world.broker.declare(QUEUE)
    size = world.number("message_bytes")
    ready = world.number("messages")
    world.clock.call_soon(queue.fill, world.messages(size, ready))
    latency = world.number("latency_us")
    mode = world.text("mode")

    def attached() -> None:
        world.mark_start()
        # What the receiver does first comes after the row that marks the start.
        world.clock.call_soon(begin)

    def begin() -> None:
        later = world.parameters["publish_at_us"]
        if isinstance(later, int):
            world.clock.call_later(later, _publish_one, world)
        if not consumer.attached:
            return  # an act came first
        if mode in (GET, GET_WITH_TIMEOUT) and consumer.may_get:
            consumer.get(world.number("timeout_us") if mode == GET_WITH_TIMEOUT else None)
        elif mode == STOP:
            consumer.grant(world.number("n"))

    policy: CreditPolicy = TopUpAtHalf(world.number("n")) if mode == NOTIFY else Manual()
    consumer = _Receiver(
        address=QUEUE,
        policy=policy,
        processing_us=world.number("processing_us"),
        auto_settle=world.text("acknowledge") == "auto",
        stop_after=world.number("stop_after") if mode == STOP else None,
    )
    world.peers["consumer"] = consumer
    client = client_of(world, consumer, on_attached=attached)
    world.connect(client, "c1", (latency, latency))


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


def _publish_one(world: World) -> None:
    world.put_message(QUEUE)


# -- reading a run --------------------------------------------------------------------------


def gets_of(played: Run) -> list[Get]:
    """Every get of a run, with how it ended."""
    consumer = played.world.peers["consumer"]
    assert isinstance(consumer, Getter)
    return consumer.gets


def expected_ending(
    *, timeout_us: int, latency_us: int, there_us: int | None, deliver_us: int
) -> Ending:
    """How a get with a time-out ends, worked out instead of played.

    The drain arrives at `timeout_us + latency_us`. A message that is in the queue by then is sent;
    if the queue is empty, the credit is given back.

    Args:
        timeout_us: from the grant to the drain.
        latency_us: of the wire, each way.
        there_us: when the first message is in the queue, counted from the grant; 0 or less if it
            was there before, None if none comes.
        deliver_us: how long the queue takes to hand it to the link.
    """
    if there_us is None or there_us > timeout_us + latency_us:
        return Ending.NOTHING
    arrives_us = max(there_us, latency_us) + deliver_us + latency_us
    return Ending.MESSAGE if arrives_us <= timeout_us else Ending.LATE_MESSAGE


def late_arrivals(played: Run) -> list[Row]:
    """Transfers that arrived after the receiver had stopped the link, before the answer."""
    rows = played.rows
    stops = [
        row.seq
        for row in rows
        if row.kind == "flow"
        and row.event == "sent"
        and row.from_peer == "client"
        and (row.frame or {}).get("echo")
        and (row.frame or {}).get("link_credit") == 0
    ]
    if not stops:
        return []
    return [
        row
        for row in rows
        if row.seq > stops[-1] and row.kind == "transfer" and row.event == "received"
    ]


# -- acts -----------------------------------------------------------------------------------


def _cannot_get(world: World) -> str | None:
    consumer = world.peers["consumer"]
    if not consumer.attached:
        return "the receiver's link is not attached now; legal now: hold, release, set_latency"
    if consumer.waiting is not None:
        return "a get is waiting for its message; legal now: publish, or release what is held"
    if consumer.link_credit:
        return (
            f"the link has link-credit {consumer.link_credit}, so messages come without asking;"
            " legal now: stop, drain"
        )
    return None


def _not_attached(world: World) -> str | None:
    if world.peers["consumer"].attached:
        return None
    return "the receiver's link is not attached now; legal now: hold, release, set_latency"


def note(world: World, *, text: str) -> None:
    """Say the credit again, with a property that no peer knows [2.7.4, properties]."""
    consumer = world.peers["consumer"]
    link = consumer.link
    link.grant(link.credit, properties={HYPOTHETICAL: text})


def _cannot_take(world: World) -> str | None:
    rival = world.peers.get(RIVAL)
    if rival is not None and (not rival.attached or rival.link_credit):
        return "the other consumer is busy taking; legal now: let its frames arrive"
    if not world.broker.declare(QUEUE).queue.ready:
        return "the queue is empty, so there is nothing to take; legal now: publish"
    return None


def take(world: World, *, count: int) -> None:
    """Another consumer, on a connection of its own, takes messages out of the queue for good.

    It drains, so that it is no rival any more when it has got what there was.
    """

    def ask() -> None:
        world.peers[RIVAL].grant(count, drain=True)

    if RIVAL in world.peers:
        ask()
        return
    rival = world.peers[RIVAL] = Consumer(RIVAL, QUEUE, auto_settle=True)
    latency = world.number("latency_us")
    world.connect(client_of(world, rival, on_attached=ask), "c2", (latency, latency))


GET_ACT = ActionSpec(
    name="get",
    doc="ask for one message; with a time-out, drain when it runs out",
    parameters=(
        Parameter(
            name="timeout_us",
            minimum=0,
            maximum=MAX_LATENCY_US,
            unit="us",
            doc="how long to wait before drain is set; left out, for ever",
        ),
    ),
    legal=_cannot_get,
    apply=lambda world, *, timeout_us: world.peers["consumer"].get(timeout_us),
)
NOTE_ACT = ActionSpec(
    name="note",
    doc="send a flow with a property that the sender does not know; it is ignored",
    parameters=(
        Parameter(name="text", kind=Kind.TEXT, default="nearby", doc="the property's value"),
    ),
    legal=_not_attached,
    apply=note,
)
TAKE_ACT = ActionSpec(
    name="take",
    doc="another consumer takes messages out of the queue; nobody tells the receiver",
    parameters=(
        Parameter(
            name="count",
            default=1,
            minimum=1,
            maximum=MAX_MESSAGES,
            unit="messages",
            doc="how many messages",
        ),
    ),
    legal=_cannot_take,
    apply=take,
)
DETACH_ACT = ActionSpec(
    name="detach",
    doc="close the link; what is unsettled goes back into the queue",
    legal=_not_attached,
    apply=lambda world: world.peers["consumer"].detach(),
)
_TAKEN = ("grant", "publish", "acknowledge", "drain", "echo", "stop")

ASKING = register(
    Scenario(
        name="asking",
        title="Asking for messages, and stopping them",
        doc=(
            "A receiver that gets one message, gives up after a time-out, is notified, or stops:"
            " the figures 2.43 to 2.46 of the specification."
        ),
        parameters=(
            Parameter(
                name="mode",
                kind=Kind.TEXT,
                default=BY_HAND,
                choices=MODES,
                doc="what the receiver does by itself once its link is attached",
            ),
            Parameter(
                name="messages",
                default=0,
                minimum=0,
                maximum=MAX_MESSAGES,
                unit="messages",
                doc="ready in the queue when the receiver comes",
            ),
            Parameter(
                name="publish_at_us",
                minimum=0,
                maximum=MAX_LATENCY_US,
                unit="us",
                doc="one message is published so long after the link is attached; left out, none",
            ),
            Parameter(
                name="timeout_us",
                default=5000,
                minimum=0,
                maximum=MAX_LATENCY_US,
                unit="us",
                doc="how long a get waits before drain is set",
            ),
            Parameter(
                name="n",
                preset_field="batch_credit",
                minimum=1,
                maximum=UINT_MAX,
                unit="messages",
                doc="credit of the modes notify and stop",
            ),
            Parameter(
                name="stop_after",
                default=3,
                minimum=0,
                maximum=MAX_MESSAGES,
                unit="messages",
                doc="in mode stop: the receiver stops when so many have come",
            ),
            PROCESSING_US,
            Parameter(
                name="acknowledge",
                kind=Kind.TEXT,
                default="manual",
                choices=("manual", "auto"),
                doc="who settles deliveries: a person, or the receiver after processing",
            ),
            INITIAL_DELIVERY_COUNT,
            MESSAGE_BYTES,
            LATENCY_US,
        ),
        actions=(
            GET_ACT,
            *(spec for spec in ACTS if spec.name in _TAKEN),
            TAKE_ACT,
            NOTE_ACT,
            DETACH_ACT,
            *WIRE_ACTS,
        ),
        build=build,
    )
)
