"""Runs that are too long to be kept: their trace is handed on as it is made, or not made at all.

Such a run is played once, from beginning to end, without acts. It is the same function of scenario,
preset, parameters and seed as any other, and makes the same rows in the same order.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from workbench import presets
from workbench.presets import Preset
from workbench.sim import VirtualClock
from workbench.trace.schema import Row
from workbench.trace.taps import Recorder

from .declare import Scenario
from .run import name_of
from .world import World

EVENTS_AT_A_TIME = 20_000
YOUNG = 1
"""Generation of Python's collector: objects that it has looked at once at most."""
MOST_YOUNG = 100_000
"""So many more objects than when it looked last, of those that may stand in a cycle."""


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
    seed: int = 0,
) -> Streamed:
    """Play a scenario until it rests, and hand its trace on row by row.

    Args:
        scenario: a scenario or its name.
        preset: a preset or its name; None: the one that the scenario is meant for.
        parameters: values that differ from the scenario's defaults.
        take: called with each row as it is made, such as a `TraceWriter`'s `write`; what it raises
            ends the run, and is raised here. None: no row is made.
        told: called now and then with the virtual time in us.
        seed: for scenarios with chance in them.

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
    name = name_of(scenario, preset, values, (), seed)
    clock = VirtualClock()
    effective = scenario.effective(preset, values)
    recorder = None
    if take is not None:
        recorder = Recorder(name, now=lambda: clock.now_us, sink=take, keep=False)
    events = 0
    with _seldom_collected() as collect:
        world = World(preset=effective, parameters=values, seed=seed, tap=recorder, clock=clock)
        scenario.build(world)
        while clock.due:
            events += clock.run_until_rest(EVENTS_AT_A_TIME)
            collect()
            if told is not None:
                told(clock.now_us)
    if recorder is None:
        return Streamed(name=name, world=world, rows=0, events=events)
    problems = tuple(recorder.problems)
    return Streamed(name=name, world=world, rows=recorder.count, events=events, problems=problems)


@contextmanager
def _seldom_collected() -> Iterator[Callable[[], object]]:
    """Python looks for unreachable cycles when the function that this gives is called, not before.

    A run makes millions of objects that stay, and hardly a cycle: looking at each of them again and
    again is a tenth of its time. Called now and then, every object is looked at once, when young,
    and those that come and go not at all: nothing is done before enough of them have stayed.
    """
    if not gc.isenabled():
        yield lambda: None
        return
    gc.disable()
    try:
        yield lambda: gc.get_count()[0] >= MOST_YOUNG and gc.collect(YOUNG)
    finally:
        gc.enable()
