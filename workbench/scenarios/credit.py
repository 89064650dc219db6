"""Lesson 01: one link driven by hand. Nothing moves until the receiver speaks."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from workbench.amqp10.credit import (
    BatchThenWait,
    CreditPolicy,
    Manual,
    OneAtATime,
    TopUp,
    TopUpAtHalf,
)
from workbench.amqp10.settings import ConnectionSettings, SessionSettings
from workbench.peers import Client, ClientLink, Consumer, Publisher
from workbench.presets import UINT_MAX, Preset

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .declare import PRESET, OneOf, ParameterError, Whole, act, scenario, unless
from .parameters import (
    MAX_MESSAGES,
    Acknowledge,
    Count,
    InitialDeliveryCount,
    Latency,
    MessageBytes,
    Processing,
    Ready,
)
from .world import World, after_all

QUEUE = "q"
MANUAL = "manual"
ONE_AT_A_TIME = "one-at-a-time"
BATCH_THEN_WAIT = "batch-then-wait"
TOP_UP_AT_HALF = "top-up-at-half"
ARTICLE = "article-200-100"
POLICIES = (MANUAL, ONE_AT_A_TIME, BATCH_THEN_WAIT, TOP_UP_AT_HALF, ARTICLE)
MAX_OCTETS = 100_000_000  # of all bodies together: what a small machine can hold

SCRIPTED, PROTON = "scripted", "proton"
HIDDEN, VISIBLE = "hidden", "visible"
OUTCOMES = ("accepted", "rejected", "released", "modified")

Policy = Annotated[str, OneOf(*POLICIES), "rule that grants credit"]
N = Annotated[
    int, Whole(1, UINT_MAX, "messages"), "N of the rules batch-then-wait and top-up-at-half"
]


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


def _too_much(count: int, size: int) -> str | None:
    """Why so many messages of that size are too much for one run, or None."""
    if count * size <= MAX_OCTETS:
        return None
    return refusal(
        "credit.too-much",
        count=count,
        size=size,
        octets=count * size,
        most=MAX_OCTETS,
        messages=MAX_OCTETS // size,
    )


# -- acts -----------------------------------------------------------------------------------


def _is_proton(world: World) -> bool:
    return world.parameters.get("client") == PROTON


_attached = unless("credit.not-attached", lambda world: world.peers["consumer"].attached)
_echoes = unless("credit.no-echo", lambda world: not _is_proton(world))


def _nothing_unsettled(world: World) -> str | None:
    consumer = world.peers["consumer"]
    if consumer.unsettled == 0:
        told = {"received": consumer.received, "link_credit": consumer.link_credit}
        return refusal("credit.nothing-unsettled", **told)
    return None


def _not_publishing(world: World) -> str | None:
    publisher = world.peers.get("publisher")
    if publisher is not None and not publisher.attached:
        return refusal("publisher-not-attached")
    return None


@act(_attached)
def grant(
    world: World,
    link_credit: Annotated[
        int,
        Whole(0, UINT_MAX, "messages"),
        "how many more the sender may send, counted from the flow's delivery-count",
    ],
) -> None:
    """Send a flow that sets link-credit; it is absolute, not added."""
    world.peers["consumer"].grant(link_credit)


@act(_not_publishing)
def publish(world: World, count: Count = 1) -> None:
    """Put messages into the queue."""
    size = world.number("message_bytes")
    if too_much := _too_much(count, size):
        raise ActionError(too_much)
    publisher = world.peers.get("publisher")
    if publisher is None:
        world.put_messages(QUEUE, count)
    else:
        publisher.publish(world.payloads(count))


@act(_nothing_unsettled)
def acknowledge(
    world: World,
    count: Annotated[int, Whole(1, MAX_MESSAGES, "deliveries"), "how many; left out, all"]
    | None = None,
    outcome: Annotated[str, OneOf(*OUTCOMES), "what became of them"] = "accepted",
) -> None:
    """Settle the oldest unsettled deliveries; no credit comes of it."""
    consumer = world.peers["consumer"]
    if count is not None and count > consumer.unsettled:
        told = {"count": count, "unsettled": consumer.unsettled}
        raise ActionError(refusal("credit.too-many", **told))
    consumer.acknowledge(count, outcome)


@act(_attached)
def drain(world: World) -> None:
    """Ask the sender to use the credit up now or give it back."""
    world.peers["consumer"].drain()


@act(_echoes, _attached)
def echo(world: World) -> None:
    """Ask the sender for its present state."""
    world.peers["consumer"].echo()


@act(_echoes, _attached)
def stop(world: World) -> None:
    """Set link-credit to 0 and ask for an echo: after it nothing more comes."""
    world.peers["consumer"].stop()


@act(unless("credit.proton-only", _is_proton), _attached)
def flow(
    world: World, count: Annotated[int, Whole(-UINT_MAX, UINT_MAX, "messages"), "how much to add"]
) -> None:
    """Call Proton's receiver.flow(n), which adds n to the credit and sends the sum."""
    world.peers["consumer"].flow(count)


@act(unless("credit.by-hand", lambda world: not _is_proton(world)))
def set_policy(world: World, policy: Policy = MANUAL, n: N = PRESET.batch_credit) -> None:
    """Let a rule grant credit from now on."""
    world.peers["consumer"].set_policy(policy_named(policy, n, world.preset))


@scenario(
    "Credit: nothing moves until the receiver speaks",
    acts=(grant, publish, acknowledge, drain, echo, stop, flow, set_policy, *WIRE_ACTS),
)
def credit(
    world: World,
    messages: Annotated[Ready, "ready in the queue when the receiver comes"] = PRESET,
    message_bytes: MessageBytes = PRESET,
    policy: Policy = MANUAL,
    n: N = PRESET.batch_credit,
    latency_us: Latency = PRESET.wire_latency_us,
    processing_us: Processing = PRESET,
    initial_delivery_count: InitialDeliveryCount = PRESET,
    acknowledge: Acknowledge = "manual",
    client: Annotated[
        str, OneOf(SCRIPTED, PROTON), "the receiver: ours, or a real python-qpid-proton client"
    ] = SCRIPTED,
    publisher: Annotated[
        str,
        OneOf(HIDDEN, VISIBLE),
        "published messages appear in the queue, or come over connection c2",
    ] = HIDDEN,
) -> None:
    """A queue with ready messages and a receiver whose link is attached.

    Without credit nothing is sent; every transfer uses one.
    """
    if too_much := _too_much(messages, message_bytes):
        raise ParameterError(too_much)
    world.fill(QUEUE, messages)
    roles = ("consumer", "publisher") if publisher == VISIBLE else ("consumer",)
    attached = after_all(roles, world.mark_start)
    receiver: Any
    consumer: Any
    if client == PROTON:
        from workbench.peers.proton_peer import ProtonPeer

        if policy != MANUAL:
            raise ParameterError(refusal("credit.manual-only"))
        receiver = consumer = ProtonPeer(address=QUEUE, on_attached=partial(attached, "consumer"))
    else:
        consumer = Consumer(
            address=QUEUE,
            policy=policy_named(policy, n, world.preset),
            processing_us=processing_us,
            auto_settle=acknowledge == "auto",
        )
        receiver = client_of(world, consumer, on_attached=partial(attached, "consumer"))
    world.peers["consumer"] = consumer
    world.connect(receiver, "c1")
    if publisher == VISIBLE:
        sender = Publisher(address=QUEUE)
        world.peers["publisher"] = sender
        other = client_of(world, sender, on_attached=partial(attached, "publisher"))
        world.connect(other, "c2")
