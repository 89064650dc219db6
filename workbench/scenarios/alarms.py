"""What a learner may do to the resources of a broker: let one run short, and give it back."""

from __future__ import annotations

from typing import Annotated

from .declare import OneOf, act, unless
from .world import World

MEMORY, DISK = "memory", "disk"
Resource = Annotated[str, OneOf(MEMORY, DISK), "what runs short"]


@act()
def alarm(world: World, resource: Resource = MEMORY) -> None:
    """Let a resource of the broker run short: every session's window closes."""
    world.broker.set_alarm(resource)


@act(unless("no-alarm", lambda world: world.broker.alarms))
def clear(world: World, resource: Resource = MEMORY) -> None:
    """The resource is there again."""
    world.broker.clear_alarm(resource)


ALARM_ACTS = (alarm, clear)
