"""What a learner may do to the resources of a broker: let one run short, and give it back."""

from __future__ import annotations

from .declare import ActionSpec, Kind, Parameter
from .world import World

RESOURCES = ("memory", "disk")
_RESOURCE = Parameter(
    name="resource",
    kind=Kind.TEXT,
    default=RESOURCES[0],
    choices=RESOURCES,
    doc="what runs short",
)


def _no_alarm(world: World) -> str | None:
    return None if world.broker.alarms else "no alarm is on; legal now: alarm"


ALARM_ACTS = (
    ActionSpec(
        name="alarm",
        doc="let a resource of the broker run short: every session's window closes",
        parameters=(_RESOURCE,),
        apply=lambda world, *, resource: world.broker.set_alarm(resource),
    ),
    ActionSpec(
        name="clear",
        doc="the resource is there again",
        parameters=(_RESOURCE,),
        legal=_no_alarm,
        apply=lambda world, *, resource: world.broker.clear_alarm(resource),
    ),
)
