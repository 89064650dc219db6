"""Lesson 01: one link driven by hand. Nothing moves until the receiver speaks."""

from __future__ import annotations

from typing import Any

from workbench.amqp10.credit import (
    BatchThenWait,
    CreditPolicy,
    Manual,
    OneAtATime,
    TopUp,
    TopUpAtHalf,
)
from workbench.amqp10.settings import ConnectionSettings, SessionSettings
from workbench.frontends import message_of
from workbench.peers import Client, ClientLink, Consumer, Publisher
from workbench.presets import UINT_MAX, Preset

from .action import ActionError
from .acts import WIRE_ACTS
from .declare import ActionSpec, Kind, Parameter, ParameterError, Scenario
from .parameters import INITIAL_DELIVERY_COUNT, LATENCY_US, MESSAGE_BYTES, PROCESSING_US
from .registry import register
from .world import World

QUEUE = "q"
MANUAL = "manual"
ONE_AT_A_TIME = "one-at-a-time"
BATCH_THEN_WAIT = "batch-then-wait"
TOP_UP_AT_HALF = "top-up-at-half"
ARTICLE = "article-200-100"
POLICIES = (MANUAL, ONE_AT_A_TIME, BATCH_THEN_WAIT, TOP_UP_AT_HALF, ARTICLE)
MAX_MESSAGES = 100_000
MAX_OCTETS = 100_000_000  # of all bodies together: what a small machine can hold

SCRIPTED, PROTON = "scripted", "proton"
HIDDEN, VISIBLE = "hidden", "visible"
OUTCOMES = ("accepted", "rejected", "released", "modified")


def policy_named(name: str, n: int, preset: Preset) -> CreditPolicy:
    """The top-up rule of that name; the article's takes both of its numbers from the preset."""
    match name:
        case "one-at-a-time":
            return OneAtATime()
        case "batch-then-wait":
            return BatchThenWait(n)
        case "top-up-at-half":
            return TopUpAtHalf(n)
        case "article-200-100":
            return TopUp(preset.top_up_credit, preset.top_up_at)
        case _:
            return Manual()


def connection_settings(preset: Preset) -> ConnectionSettings:
    """A scripted client's half of the connection."""
    return ConnectionSettings(
        hostname="broker",
        max_frame_size=preset.client_max_frame_size,
        channel_max=preset.channel_max,
    )


def session_settings(preset: Preset) -> SessionSettings:
    """A scripted client's half of the session."""
    return SessionSettings(
        next_outgoing_id=preset.client_initial_next_outgoing_id,
        incoming_window=preset.client_incoming_window,
        outgoing_window=preset.outgoing_window,
        regrant_at=preset.client_incoming_window_regrant_at,
        handle_max=preset.handle_max,
    )


def client_of(world: World, *links: ClientLink, **more: Any) -> Client:
    """A client of ours with the preset's settings, named as its first link if it is not named."""
    given = {
        "name": links[0].name,
        "settings": connection_settings(world.preset),
        "session_settings": session_settings(world.preset),
    }
    return Client(world.clock, links, **{**given, **more})


def build(world: World) -> None:
    """A queue with messages, a receiver that attaches, and perhaps a publisher."""
    queue = world.broker.declare(QUEUE)
    count, size = world.number("messages"), world.number("message_bytes")
    if too_much := _too_much(count, size):
        raise ParameterError(too_much)
    world.clock.call_soon(queue.fill, world.messages(size, count))
    latency = world.number("latency_us")
    waiting = {"consumer", "publisher"} if world.text("publisher") == VISIBLE else {"consumer"}

    def attached(role: str) -> None:
        waiting.discard(role)
        if not waiting and world.start_seq is None:
            world.mark_start()

    client: Any
    consumer: Any
    if world.text("client") == PROTON:
        from workbench.peers.proton_peer import ProtonPeer

        if world.text("policy") != MANUAL:
            raise ParameterError("Proton's receiver is driven by hand here; legal: policy manual")
        client = consumer = ProtonPeer(address=QUEUE, on_attached=lambda: attached("consumer"))
    else:
        consumer = Consumer(
            address=QUEUE,
            policy=policy_named(world.text("policy"), world.number("n"), world.preset),
            processing_us=world.number("processing_us"),
            auto_settle=world.text("acknowledge") == "auto",
        )
        client = client_of(world, consumer, on_attached=lambda: attached("consumer"))
    world.peers["consumer"] = consumer
    world.connect(client, "c1", (latency, latency))
    if world.text("publisher") == VISIBLE:
        publisher = Publisher(address=QUEUE)
        world.peers["publisher"] = publisher
        other = client_of(world, publisher, on_attached=lambda: attached("publisher"))
        world.connect(other, "c2", (latency, latency))


def _too_much(count: int, size: int) -> str | None:
    """Why so many messages of that size are too much for one run, or None."""
    if count * size <= MAX_OCTETS:
        return None
    return (
        f"{count} messages of {size} octets are {count * size} octets; legal together: up to"
        f" {MAX_OCTETS}, so up to {MAX_OCTETS // size} messages of this size"
    )


# -- acts -----------------------------------------------------------------------------------


def _not_attached(world: World) -> str | None:
    if not world.peers["consumer"].attached:
        return (
            "the receiver's link is not attached yet, so there is no credit to speak of; legal now:"
            " hold, release, set_latency, and grant after the attach has come back"
        )
    return None


def _nothing_unsettled(world: World) -> str | None:
    consumer = world.peers["consumer"]
    if consumer.unsettled == 0:
        return (
            f"nothing is unsettled: {consumer.received} messages have arrived and none waits to be"
            f" acknowledged; legal now: grant (link-credit is {consumer.link_credit}) or publish"
        )
    return None


def _no_echo(world: World) -> str | None:
    if world.parameters.get("client") == PROTON:
        return "Proton never sends echo; legal with this client: grant, flow, drain, acknowledge"
    return _not_attached(world)


def _proton_only(world: World) -> str | None:
    if world.text("client") != PROTON:
        return "flow(n) adds credit as Proton does; this client sets it, legal now: grant"
    return _not_attached(world)


def _no_policy(world: World) -> str | None:
    if world.text("client") == PROTON:
        return "Proton's receiver is driven by hand here; legal now: grant, flow"
    return None


def _not_publishing(world: World) -> str | None:
    publisher = world.peers.get("publisher")
    if publisher is not None and not publisher.attached:
        return "the publisher's link is not attached yet; legal now: hold, release, set_latency"
    return None


def publish(world: World, *, count: int) -> None:
    """Messages come into the queue: from the visible publisher, or from nowhere."""
    size = world.number("message_bytes")
    if too_much := _too_much(count, size):
        raise ActionError(too_much)
    payloads = [world.message(size) for _ in range(count)]
    publisher = world.peers.get("publisher")
    if publisher is not None:
        publisher.publish(payloads)
        return
    queue = world.broker.declare(QUEUE)
    for payload in payloads:
        queue.publish(message_of(payload))


def acknowledge(world: World, *, count: int | None, outcome: str) -> None:
    """Settle the oldest deliveries; this says nothing about credit."""
    consumer = world.peers["consumer"]
    if count is not None and count > consumer.unsettled:
        raise ActionError(
            f"cannot acknowledge {count}: {consumer.unsettled} deliveries are unsettled; legal now:"
            f" 1 to {consumer.unsettled}, or all"
        )
    consumer.acknowledge(count, outcome)


def set_policy(world: World, *, policy: str, n: int) -> None:
    """From now on credit is topped up by this rule."""
    world.peers["consumer"].set_policy(policy_named(policy, n, world.preset))


_LINK_CREDIT = Parameter(
    name="link_credit",
    required=True,
    minimum=0,
    maximum=UINT_MAX,
    unit="messages",
    doc="how many more the sender may send, counted from the flow's delivery-count",
)
_N = Parameter(
    name="n",
    preset_field="batch_credit",
    minimum=1,
    maximum=UINT_MAX,
    unit="messages",
    doc="N of the rules batch-then-wait and top-up-at-half",
)
_POLICY = Parameter(
    name="policy", kind=Kind.TEXT, default=MANUAL, choices=POLICIES, doc="rule that grants credit"
)

ACTS = (
    ActionSpec(
        name="grant",
        doc="send a flow that sets link-credit; it is absolute, not added",
        parameters=(_LINK_CREDIT,),
        legal=_not_attached,
        apply=lambda world, *, link_credit: world.peers["consumer"].grant(link_credit),
    ),
    ActionSpec(
        name="publish",
        doc="put messages into the queue",
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
        legal=_not_publishing,
        apply=publish,
    ),
    ActionSpec(
        name="acknowledge",
        doc="settle the oldest unsettled deliveries; no credit comes of it",
        parameters=(
            Parameter(
                name="count",
                minimum=1,
                maximum=MAX_MESSAGES,
                unit="deliveries",
                doc="how many; left out, all",
            ),
            Parameter(
                name="outcome",
                kind=Kind.TEXT,
                default="accepted",
                choices=OUTCOMES,
                doc="what became of them",
            ),
        ),
        legal=_nothing_unsettled,
        apply=acknowledge,
    ),
    ActionSpec(
        name="drain",
        doc="ask the sender to use the credit up now or give it back",
        legal=_not_attached,
        apply=lambda world: world.peers["consumer"].drain(),
    ),
    ActionSpec(
        name="echo",
        doc="ask the sender for its present state",
        legal=_no_echo,
        apply=lambda world: world.peers["consumer"].echo(),
    ),
    ActionSpec(
        name="stop",
        doc="set link-credit to 0 and ask for an echo: after it nothing more comes",
        legal=_no_echo,
        apply=lambda world: world.peers["consumer"].stop(),
    ),
    ActionSpec(
        name="flow",
        doc="Proton's receiver.flow(n): adds n to the credit and sends the sum",
        parameters=(
            Parameter(
                name="count",
                required=True,
                minimum=-UINT_MAX,
                maximum=UINT_MAX,
                unit="messages",
                doc="how much to add",
            ),
        ),
        legal=_proton_only,
        apply=lambda world, *, count: world.peers["consumer"].flow(count),
    ),
    ActionSpec(
        name="set_policy",
        doc="let a rule grant credit from now on",
        parameters=(_POLICY, _N),
        legal=_no_policy,
        apply=set_policy,
    ),
    *WIRE_ACTS,
)

CREDIT = register(
    Scenario(
        name="credit",
        title="Credit: nothing moves until the receiver speaks",
        doc=(
            "A queue with ready messages and a receiver whose link is attached. Without credit"
            " nothing is sent; every transfer uses one."
        ),
        parameters=(
            Parameter(
                name="messages",
                preset_field="messages",
                minimum=0,
                maximum=MAX_MESSAGES,
                unit="messages",
                doc="ready in the queue when the receiver comes",
            ),
            MESSAGE_BYTES,
            _POLICY,
            _N,
            LATENCY_US,
            PROCESSING_US,
            INITIAL_DELIVERY_COUNT,
            Parameter(
                name="acknowledge",
                kind=Kind.TEXT,
                default="manual",
                choices=("manual", "auto"),
                doc="who settles deliveries: a person, or the receiver after processing",
            ),
            Parameter(
                name="client",
                kind=Kind.TEXT,
                default=SCRIPTED,
                choices=(SCRIPTED, PROTON),
                doc="the receiver: ours, or a real python-qpid-proton client",
            ),
            Parameter(
                name="publisher",
                kind=Kind.TEXT,
                default=HIDDEN,
                choices=(HIDDEN, VISIBLE),
                doc="published messages appear in the queue, or come over connection c2",
            ),
        ),
        actions=ACTS,
        build=build,
    )
)
