"""Lesson 02: flows and transfers that cross. Every frame waits on the wire for a hand.

The real broker and a scripted receiver, with both directions of the wire gated. The acts are the
moves of `link_model`, so that a schedule of the model can be played here (see `schedules`). The
queue is empty: `send_transfer` puts one message in, and the broker's link sends it at once.

The sender's rule for working out its credit can be replaced by a wrong one, or by a learner's own
(parameter `rule=yours`, function given as `code={"rule": ...}`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Annotated

from workbench.amqp10.sender import SenderLink
from workbench.amqp10.settings import CreditOverrun
from workbench.frontends import BrokerConnection, CreditRule
from workbench.languages import phrase
from workbench.peers import Consumer
from workbench.presets import UINT_MAX
from workbench.sim import Direction, Flight

from .action import refusal
from .credit import client_of
from .declare import PRESET, OneOf, ParameterError, Whole, act, scenario
from .link_model import (
    FLOW_ARRIVES,
    MOVES,
    OTHER_TRANSFER,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
)
from .parameters import InitialDeliveryCount, Latency, MessageBytes
from .rules import RULES, rule_named
from .sandbox import LearnerCodeError
from .world import World

on_stage = partial(phrase, "scenes")

QUEUE = "q"
LINK = "receiver"
OTHER = "other"
OTHER_CREDIT = 1
YOURS = "yours"
RULE = "rule"
MAX_MESSAGES = 1000
MAX_GRANTS = 100
C2B, B2C = Direction.CLIENT_TO_BROKER, Direction.BROKER_TO_CLIENT
OVERRUN = {"take": CreditOverrun.TAKE, "detach": CreditOverrun.DETACH}

ACT_OF_MOVE = {move: move.replace("-", "_") for move in (*MOVES, OTHER_TRANSFER)}
"""The act by which a move of the model is made."""


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """What the receiver's next flow says; written `6`, `6 drain` or `6 echo`."""

    link_credit: int
    drain: bool = False
    echo: bool = False

    def __str__(self) -> str:
        return f"{self.link_credit}{' drain' if self.drain else ''}{' echo' if self.echo else ''}"


_PLAN = re.compile(r"\s*([0-9]{1,10})((?:\s+(?:drain|echo))*)\s*", re.ASCII)


def plans_of(text: str) -> tuple[FlowPlan, ...]:
    """The flows of `3, 6 drain`.

    Raises:
        ParameterError: if it is no such list.
    """
    parts = text.split(",") if text.strip() else []
    legal = {"grants": MAX_GRANTS, "most": UINT_MAX}
    if len(parts) > MAX_GRANTS:
        raise ParameterError(refusal("race.too-many-grants", count=len(parts), **legal))
    plans = []
    for part in parts:
        found = _PLAN.fullmatch(part)
        if found is None or int(found[1]) > UINT_MAX:
            raise ParameterError(refusal("race.no-grant", part=repr(part.strip()[:20]), **legal))
        words = found[2].split()
        plans.append(FlowPlan(int(found[1]), drain="drain" in words, echo="echo" in words))
    return tuple(plans)


def _rule(world: World) -> CreditRule | None:
    """The sender's rule; None is the specification's, which is built in."""
    name = world.text("rule")
    if name == "spec":
        return None
    if name != YOURS:
        return rule_named(name).rule
    code = world.code.get(RULE)
    if code is None:
        raise ParameterError(refusal("race.no-function", listed=", ".join(RULES)))

    def watched(flow_count: int, flow_credit: int, own_count: int, own_credit: int) -> int:
        try:
            return _whole_credit(code(flow_count, flow_credit, own_count, own_credit))
        except LearnerCodeError as error:  # a learner's mistake ends the run with its words
            world.fault = str(error)
        except Exception as error:
            world.fault = refusal("race.raises", error=type(error).__name__, why=error)
        return own_credit

    return watched


def _whole_credit(answer: object) -> int:
    """What a learner's rule has given, if it is a link-credit.

    Raises:
        LearnerCodeError: it is none.
    """
    if isinstance(answer, bool) or not isinstance(answer, Integral):
        raise LearnerCodeError(refusal("race.no-number", answer=f"{answer!r:.60}"))
    credit = int(answer)
    if not 0 <= credit <= UINT_MAX:
        raise LearnerCodeError(refusal("race.no-credit", credit=f"{credit!r:.60}", most=UINT_MAX))
    return credit


# -- acts -----------------------------------------------------------------------------------


def _issued(world: World) -> int:
    return sum(1 for act in world.done if act == ACT_OF_MOVE[SEND_FLOW])


def _left(world: World) -> int:
    sent = sum(1 for act in world.done if act == ACT_OF_MOVE[SEND_TRANSFER])
    return world.number("messages") - sent


def _refusal(wanted: str, world: World) -> str | None:
    """Why a move is not possible now, and which are; None if it is."""
    why = {move: _obstacle(world, move) for move in (*MOVES, OTHER_TRANSFER)}
    if why[wanted] is None:
        return None
    # On a stage an act has words of its own, in code its name.
    possible = [
        f"{on_stage(f'act.{name}')} ({name})"
        for name in (ACT_OF_MOVE[move] for move, reason in why.items() if reason is None)
    ]
    listed = ", ".join(possible) or refusal("race.nothing-left")
    return refusal("race.now", why=why[wanted], listed=listed)


def _obstacle(world: World, move: str) -> str | None:
    if not world.wires["c1"].gate_closed(C2B):
        return refusal("race.not-attached")
    if move == SEND_FLOW:
        flows = len(plans_of(world.text("grants")))
        return None if _issued(world) < flows else refusal("move.no-flow-left", flows=flows)
    if move == SEND_TRANSFER:
        if _left(world) <= 0:
            return refusal("move.no-message-left")
        return _no_transfer(_sender_link(world, LINK))
    if move == OTHER_TRANSFER:
        if not world.number("other_credit"):
            return refusal("race.no-other-link")
        return _no_transfer(_sender_link(world, OTHER))
    direction, kind = (B2C, "transfer") if move == TRANSFER_ARRIVES else (C2B, "flow")
    flights = world.wires["c1"].in_flight(direction)
    if not flights:
        return refusal("move.none-flies", kind=kind)
    if _waiting(world, direction) is None:
        ms = (flights[-1].arrives_us - world.start_us) / 1000
        return refusal("race.let-go", kind=kind, ms=ms)
    return None


def _no_transfer(link: SenderLink | None) -> str | None:
    """Why the link cannot send; None if it can."""
    if link is None:
        return refusal("race.link-gone")
    if link.can_send:
        return None
    # What is legal now is told once, at the end, in words of this scenario.
    return refusal("race.obstacle", why=str(link.obstacle).partition("; legal now")[0])


def _sender_link(world: World, name: str) -> SenderLink | None:
    connection = world.broker.connections["c1"]
    assert isinstance(connection, BrokerConnection)
    for session in connection.amqp.sessions:
        for link in session.links:
            if isinstance(link, SenderLink) and link.name == name:
                return link
    return None


def _waiting(world: World, direction: Direction) -> Flight | None:
    """The first frame of a direction that waits for a hand."""
    wire = world.wires["c1"]
    return next((flight for flight in wire.in_flight(direction) if wire.is_held(flight)), None)


def _let_through(world: World, direction: Direction) -> None:
    """The first frame that waits in a direction arrives."""
    wire, flight = world.wires["c1"], _waiting(world, direction)
    assert flight is not None, "the act was not legal"
    wire.release(flight.frame_id)
    world.record_wire("release", wire, direction=direction, frame_id=flight.frame_id)


@act(partial(_refusal, SEND_FLOW))
def send_flow(world: World) -> None:
    """The receiver sends its next flow."""
    plan = plans_of(world.text("grants"))[_issued(world)]
    world.peers["consumer"].consumer(LINK).grant(plan.link_credit, drain=plan.drain, echo=plan.echo)


@act(partial(_refusal, SEND_TRANSFER))
def send_transfer(world: World) -> None:
    """The sender sends one message, if it has credit."""
    world.put_messages(QUEUE)


@act(partial(_refusal, TRANSFER_ARRIVES))
def transfer_arrives(world: World) -> None:
    """The oldest transfer on the wire arrives."""
    _let_through(world, B2C)


@act(partial(_refusal, FLOW_ARRIVES))
def flow_arrives(world: World) -> None:
    """The oldest flow on the wire arrives."""
    _let_through(world, C2B)


@act(partial(_refusal, OTHER_TRANSFER))
def send_other(world: World) -> None:
    """The sender sends one message over the other link."""
    world.put_messages(OTHER)


@scenario(
    "The race: a flow and a transfer cross",
    acts=(send_flow, send_transfer, transfer_arrives, flow_arrives, send_other),
)
def race(
    world: World,
    messages: Annotated[
        int, Whole(0, MAX_MESSAGES, "messages"), "how many the sender may send"
    ] = 10,
    grants: Annotated[
        str,
        f"link-credit of the receiver's flows, in order: up to {MAX_GRANTS} numbers, 0"
        f" to {UINT_MAX}, with commas between; drain or echo may follow a number",
    ] = "3,6",
    first_credit: Annotated[
        int,
        Whole(0, UINT_MAX, "messages"),
        "credit that both ends have agreed on before the first act",
    ] = 0,
    other_credit: Annotated[
        int,
        Whole(0, UINT_MAX, "messages"),
        "credit of a second link on the session; 0: there is none",
    ] = 0,
    rule: Annotated[
        str,
        OneOf(*RULES, YOURS),
        "how the sender works out its credit from a flow; spec is right [2.6.7]",
    ] = "spec",
    initial_delivery_count: InitialDeliveryCount = PRESET,
    overrun: Annotated[
        str, OneOf(*OVERRUN), "what the receiver does with a message beyond its credit"
    ] = "take",
    message_bytes: MessageBytes = PRESET,
    latency_us: Annotated[
        Latency, "how long a frame is under way at least, each direction"
    ] = PRESET.wire_latency_us,
) -> None:
    """A link whose frames wait on the wire for a hand.

    The receiver sends its grants, the sender its messages; who lands first is up to you.
    """
    world.broker.declare(QUEUE)
    plans_of(grants)
    world.credit_rule = _rule(world)

    def attached() -> None:
        if first_credit:
            client.consumer(LINK).grant(first_credit)
        if other_credit:
            client.consumer(OTHER).grant(other_credit)
        # Both ends have the credit when the flows have arrived.
        world.clock.call_later(latency_us + 1, close_gates)

    def close_gates() -> None:
        # With rows of their own, so that the first act comes after them.
        wire = world.wires["c1"]
        for direction in Direction:
            wire.hold_direction(direction)
            world.record_wire("hold", wire, direction=direction)
        world.mark_start()

    addresses = {LINK: QUEUE}
    if other_credit:
        addresses[OTHER] = OTHER
        world.broker.declare(OTHER)
    terms = {"credit_overrun": OVERRUN[overrun]}
    links = [Consumer(name, address, terms=terms) for name, address in addresses.items()]
    client = client_of(world, *links, on_attached=attached)
    world.connect(client, "c1", peer="consumer")
