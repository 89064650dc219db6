"""What a learner may do in any scenario that has a wire: hold, release, change the latency."""

from __future__ import annotations

from workbench.sim import Direction, Wire

from .action import ActionError
from .declare import ActionSpec, Kind, Parameter
from .world import World

MAX_LATENCY_US = 60_000_000
DIRECTIONS = tuple(direction.value for direction in Direction)

_DIRECTION = Parameter(
    name="direction",
    kind=Kind.TEXT,
    choices=DIRECTIONS,
    doc="c2b is client to broker, b2c is broker to client",
)
_FRAME_ID = Parameter(
    name="frame_id", minimum=0, doc="one frame in flight, by the number that its rows carry"
)
_CONNECTION = Parameter(
    name="connection", kind=Kind.TEXT, default="c1", doc="which wire, where there are several"
)


def _wire(world: World, connection: str) -> Wire:
    try:
        return world.wires[connection]
    except KeyError:
        listed = ", ".join(world.wires)
        raise ActionError(f"no connection {connection!r}; there are: {listed}") from None


def _flying(world: World) -> str:
    numbers = [str(flight.frame_id) for wire in world.wires.values() for flight in wire.in_flight()]
    return f"a frame in flight ({', '.join(numbers)})" if numbers else "no frame is in flight"


def hold(world: World, *, frame_id: int | None, direction: str | None, connection: str) -> None:
    """Hold one frame, or everything in a direction."""
    if (frame_id is None) == (direction is None):
        raise ActionError(
            "hold needs either frame_id or direction; legal now:"
            f" {_flying(world)}, or direction c2b or b2c"
        )
    if frame_id is not None:
        wire = world.wire_of(frame_id)
        flight = wire.hold(frame_id)
        world.record_wire("hold", wire, direction=flight.direction, frame_id=frame_id)
    else:
        assert direction is not None
        wire = _wire(world, connection)
        wire.hold_direction(direction)
        world.record_wire("hold", wire, direction=direction)


def release(
    world: World,
    *,
    frame_id: int | None,
    direction: str | None,
    count: int | None,
    connection: str,
) -> None:
    """Let a held frame through, or the first frames of a direction, or all of it."""
    if (frame_id is None) == (direction is None):
        raise ActionError("release needs either frame_id or direction (c2b or b2c)")
    if frame_id is not None:
        wire = world.wire_of(frame_id)
        flight = wire.release(frame_id)
        world.record_wire("release", wire, direction=flight.direction, frame_id=frame_id)
    else:
        assert direction is not None
        wire = _wire(world, connection)
        freed = wire.release_direction(direction, count)
        world.record_wire("release", wire, direction=direction, extra={"count": freed})


def set_latency(world: World, *, latency_us: int, direction: str | None, connection: str) -> None:
    """Change how long frames sent from now on are under way."""
    wire = _wire(world, connection)
    for one in (direction,) if direction else DIRECTIONS:
        wire.set_latency(one, latency_us)
        world.record_wire("latency", wire, direction=one, extra={"latency_us": latency_us})


def _nothing_held(world: World) -> str | None:
    for wire in world.wires.values():
        if wire.held() or any(wire.gate_closed(direction) for direction in Direction):
            return None
    return f"nothing is held; legal now: hold ({_flying(world)}, or a direction: c2b, b2c)"


HOLD = ActionSpec(
    name="hold",
    doc="keep a frame, or a whole direction, on the wire; the clock goes on for everybody else",
    parameters=(_FRAME_ID, _DIRECTION, _CONNECTION),
    apply=hold,
)
RELEASE = ActionSpec(
    name="release",
    doc="let what is held arrive, in order",
    parameters=(
        _FRAME_ID,
        _DIRECTION,
        Parameter(
            name="count",
            minimum=1,
            maximum=100_000,
            unit="frames",
            doc="let so many through and hold the rest; left out, all and the gate opens",
        ),
        _CONNECTION,
    ),
    legal=_nothing_held,
    apply=release,
)
SET_LATENCY = ActionSpec(
    name="set_latency",
    doc="change the wire's latency for frames sent from now on",
    parameters=(
        Parameter(
            name="latency_us",
            required=True,
            minimum=0,
            maximum=MAX_LATENCY_US,
            unit="us",
            doc="how long a frame is under way",
        ),
        Parameter(
            name="direction",
            kind=Kind.TEXT,
            choices=DIRECTIONS,
            doc="c2b is client to broker, b2c is broker to client; left out, both",
        ),
        _CONNECTION,
    ),
    apply=set_latency,
)
WIRE_ACTS = (HOLD, RELEASE, SET_LATENCY)
