"""What a learner may do in any scenario that has a wire: hold, release, change the latency."""

from __future__ import annotations

from typing import Annotated

from workbench.sim import Direction, Wire

from .action import ActionError, refusal
from .declare import OneOf, Whole, act
from .parameters import Microseconds
from .world import World

DIRECTIONS = tuple(direction.value for direction in Direction)

WAYS = "c2b is client to broker, b2c is broker to client"
Way = Annotated[str, OneOf(*DIRECTIONS), WAYS]
FrameId = Annotated[int, Whole(), "one frame in flight, by the number that its rows carry"]
Connection = Annotated[str, "which wire, where there are several"]


def _wire(world: World, connection: str) -> Wire:
    try:
        return world.wires[connection]
    except KeyError:
        listed = ", ".join(world.wires)
        told = {"connection": repr(connection), "listed": listed}
        raise ActionError(refusal("wire.no-connection", **told)) from None


def _flying(world: World) -> str:
    numbers = [str(flight.frame_id) for wire in world.wires.values() for flight in wire.in_flight()]
    return refusal("wire.flying" if numbers else "wire.none-flies", frames=", ".join(numbers))


@act()
def hold(
    world: World,
    frame_id: FrameId | None = None,
    direction: Way | None = None,
    connection: Connection = "c1",
) -> None:
    """Keep a frame, or a whole direction, on the wire; the clock goes on for everybody else."""
    if (frame_id is None) == (direction is None):
        raise ActionError(refusal("wire.hold-what", flying=_flying(world)))
    if frame_id is not None:
        wire = world.wire_of(frame_id)
        flight = wire.hold(frame_id)
        world.record_wire("hold", wire, direction=flight.direction, frame_id=frame_id)
    else:
        assert direction is not None
        wire = _wire(world, connection)
        wire.hold_direction(direction)
        world.record_wire("hold", wire, direction=direction)


def _nothing_held(world: World) -> str | None:
    for wire in world.wires.values():
        if wire.held() or any(wire.gate_closed(direction) for direction in Direction):
            return None
    return refusal("wire.nothing-held", flying=_flying(world))


@act(_nothing_held)
def release(
    world: World,
    frame_id: FrameId | None = None,
    direction: Way | None = None,
    count: Annotated[
        int,
        Whole(1, 100_000, "frames"),
        "let so many through and hold the rest; left out, all and the gate opens",
    ]
    | None = None,
    connection: Connection = "c1",
) -> None:
    """Let what is held arrive, in order."""
    if (frame_id is None) == (direction is None):
        raise ActionError(refusal("wire.release-what"))
    if frame_id is not None:
        wire = world.wire_of(frame_id)
        flight = wire.release(frame_id)
        world.record_wire("release", wire, direction=flight.direction, frame_id=frame_id)
    else:
        assert direction is not None
        wire = _wire(world, connection)
        freed = wire.release_direction(direction, count)
        world.record_wire("release", wire, direction=direction, extra={"count": freed})


@act()
def set_latency(
    world: World,
    latency_us: Annotated[Microseconds, "how long a frame is under way"],
    direction: Annotated[Way, f"{WAYS}; left out, both"] | None = None,
    connection: Connection = "c1",
) -> None:
    """Change the wire's latency for frames sent from now on."""
    wire = _wire(world, connection)
    for one in (direction,) if direction else DIRECTIONS:
        wire.set_latency(one, latency_us)
        world.record_wire("latency", wire, direction=one, extra={"latency_us": latency_us})


WIRE_ACTS = (hold, release, set_latency)
