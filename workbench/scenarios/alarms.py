"""What a learner may do to the resources of a broker: let one run short, and give it back."""

from __future__ import annotations

from typing import Annotated

from .action import refusal
from .declare import OneOf, act
from .world import World

MEMORY, DISK = "memory", "disk"
Resource = Annotated[str, OneOf(MEMORY, DISK), "what runs short"]


@act()
def alarm(world: World, resource: Resource = MEMORY) -> None:
    """Let a resource of the broker run short: every session's window closes."""
    world.broker.set_alarm(resource)


def _no_alarm(world: World) -> str | None:
    return None if world.broker.alarms else refusal("no-alarm")


@act(_no_alarm)
def clear(world: World, resource: Resource = MEMORY) -> None:
    """The resource is there again."""
    world.broker.clear_alarm(resource)


ALARM_ACTS = (alarm, clear)
