"""Runs that are too long to be kept: their trace is handed on as it is made, or not made at all.

Such a run is played once, from beginning to end, without acts. It is the same function of scenario,
preset and parameters as any other, and makes the same rows in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench import presets
from workbench.presets import Preset
from workbench.sim import VirtualClock
from workbench.trace.collector import seldom_collected
from workbench.trace.schema import Row
from workbench.trace.taps import Recorder

from .declare import Scenario
from .run import name_of
from .world import World

EVENTS_AT_A_TIME = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """A run that was played to its end.

    Attributes:
        name: of the run.
        world: as it stands at the end; to be looked at only.
        rows: of its trace; 0 if none was made.
        events: of the clock.
        problems: what could not be recorded as it should be, in words.
    """

    name: str
    world: World
    rows: int
    events: int
    problems: tuple[str, ...] = ()


def stream(
    scenario: Scenario | str,
    preset: Preset | str | None = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    take: Callable[[Row], None] | None = None,
    told: Callable[[int], object] | None = None,
) -> Streamed:
    """Play a scenario until it rests, and hand its trace on row by row.

    Args:
        scenario: a scenario or its name.
        preset: a preset or its name; None: the one that the scenario is meant for.
        parameters: values that differ from the scenario's defaults.
        take: called with each row as it is made, such as a `TraceWriter`'s `write`; what it raises
            ends the run, and is raised here. None: no row is made.
        told: called now and then with the virtual time in us.

    Raises:
        ParameterError: if a parameter is unknown or out of its range, or they do not go together.
        ValueError: if there is no such scenario or preset.
    """
    from .registry import get as scenario_named

    if isinstance(scenario, str):
        scenario = scenario_named(scenario)
    if preset is None:
        preset = scenario.preset
    if isinstance(preset, str):
        preset = presets.get(preset)
    values = scenario.values(preset, parameters or {})
    name = name_of(scenario, preset, values, (), seed=0)
    clock = VirtualClock()
    effective = scenario.effective(preset, values)
    recorder = None
    if take is not None:
        recorder = Recorder(name, now=lambda: clock.now_us, sink=take, keep=False)
    events = 0
    with seldom_collected():
        world = World(preset=effective, parameters=values, tap=recorder, clock=clock)
        scenario.build(world)
        while clock.due:
            events += clock.run_until_rest(EVENTS_AT_A_TIME)
            if told is not None:
                told(clock.now_us)
    if recorder is None:
        return Streamed(name=name, world=world, rows=0, events=events)
    problems = tuple(recorder.problems)
    return Streamed(name=name, world=world, rows=recorder.count, events=events, problems=problems)
