"""A run is a pure function of (scenario, preset, parameters, actions, seed).

Nothing of a run is changed afterwards. To go back is to move a cursor over its rows; to act in the
past is to make another run that shares the rows up to the act. A run goes on until it rests:
nothing is due but frames that a hand holds and idle timers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from workbench import presets
from workbench.presets import Preset
from workbench.sim import VirtualClock
from workbench.trace.collector import seldom_collected
from workbench.trace.given import not_wanted
from workbench.trace.schema import Row
from workbench.trace.taps import Recorder

from .action import Action, ActionError, Value, refusal
from .declare import ActionSpec, ParameterError, Scenario
from .world import World

MAX_ROWS = 100_000
SPEC = "spec"
# A run that makes no rows must end too: no step of ours takes this many events per row.
EVENTS_PER_ROW = 50


class _Played(NamedTuple):
    """What came of playing from the beginning; `placed` are the acts that were made at rest."""

    world: World
    rows: list[Row]
    rested: bool
    note: str
    placed: tuple[Action, ...]


BEGINS: dict[str, int] = {}
"""The last row of the set-up of each run that was played here, by its name, which decides it."""


class Run:
    """One run: its rows, and what it is a function of.

    Attributes:
        scenario: what was declared.
        preset: every default number.
        parameters: every parameter with its value.
        actions: the learner's acts, in the order in which they were applied.
        seed: part of the run's identity and of nothing else: a scenario with chance has a parameter
            `seed` of its own.
        code: functions of a learner that the run uses, by name. They are no part of its identity:
            a share code or a name cannot hold them.
        rows: the trace, one row per event.
        rested: True if nothing is left to do but to release what is held.
        note: one line if the run ended otherwise, else empty.
        start_seq: the row at which a lesson sets its cursor: the last one of the set-up.
        parent: the run in whose past, or at whose end, the last acts were made.
        world: the world as it stood at the end; to be looked at only.
    """

    def __init__(
        self,
        scenario: Scenario,
        preset: Preset,
        parameters: Mapping[str, Value],
        actions: tuple[Action, ...],
        seed: int,
        max_rows: int,
        parent: Run | None,
        code: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.scenario = scenario
        self.preset = preset
        self.parameters = dict(parameters)
        self.actions = actions
        self.seed = seed
        self.max_rows = max_rows
        self.parent = parent
        self.code = dict(code or {})
        self.name = name_of(scenario, preset, self.parameters, actions, seed)
        self.world, self.rows, self.rested, self.note, _ = self._execute(stop_after=None)
        marked = self.world.start_seq
        self.start_seq = len(self.rows) - 1 if marked is None else marked
        if marked is not None or self.rested:  # the name does not say where a run was cut
            BEGINS[self.name] = self.start_seq

    @classmethod
    def shown_by(cls, desk: Any) -> Run:
        """The run that a stage shows, or the run itself.

        Raises:
            GivenError: if it is neither.
        """
        found = getattr(desk, "run", desk)
        if not hasattr(found, "rows") or not hasattr(found, "actions"):
            raise not_wanted(cls, desk)
        run: Run = found
        return run

    def act(self, after_seq: int, name: str, **arguments: Any) -> Run:
        """Act when row `after_seq` has just happened; gives the branch that comes of it.

        Acts at or before that row are kept, later ones are dropped. This run is not changed.

        Raises:
            ActionError: if the row does not exist or the act is not legal then; the text says
                what would be legal.
        """
        spec = self.scenario.action(name)
        checked = spec.arguments(arguments, self.preset)
        self._check_row(after_seq)
        kept = tuple(action for action in self.actions if action.after_seq <= after_seq)
        return self._with((*kept, Action(after_seq=after_seq, name=name, arguments=checked)))

    def until(self, seq: int) -> Run:
        """This run without the acts whose own rows come after a row; itself if there are none.

        Raises:
            ActionError: if the row does not exist.
        """
        self._check_row(seq)
        rows = (row.seq for row in self.rows if row.event == "action")
        told = zip(self.actions, rows, strict=True)
        kept = tuple(action for action, row in told if row <= seq)
        return self if kept == self.actions else self._with(kept)

    def act_each(self, names: Iterable[str | tuple[str, Mapping[str, Any]]]) -> Run:
        """Act at the end, again and again: each act when the one before has come to rest.

        The same run as by `act` after the last row each time, but played twice in all instead of
        once for every act.

        Args:
            names: acts, each by its name, or by its name and its arguments.

        Raises:
            ActionError: an act is not legal when its turn comes; the text says which and why.
        """
        acts = [
            Action(after_seq=-1, name=name, arguments=spec.arguments(given, self.preset))
            for name, given in ((one, {}) if isinstance(one, str) else one for one in names)
            for spec in [self.scenario.action(name)]
        ]
        if not acts:
            return self
        tried = self._execute(stop_after=None, at_rest=acts)
        found = self._with((*self.actions, *tried.placed))
        if [_shape(row) for row in found.rows] == [_shape(row) for row in tried.rows]:
            return found
        # An act comes right after a row, and some time may pass between that and rest. Where this
        # makes a difference, what happens after each act has to be seen first.
        played = self
        for act in acts:
            played = played.act(len(played.rows) - 1, act.name, **act.arguments)
        return played

    @property
    def start_us(self) -> int:
        """From when stages and charts count time: the end of the set-up, if it has come to one."""
        return self.world.start_us

    @property
    def last(self) -> int:
        """`seq` of the last row."""
        return self.rows[-1].seq

    def then(self, name: str, **arguments: Any) -> Run:
        """Act at the end of this run, as `act` does after its last row."""
        return self.act(self.last, name, **arguments)

    def legal(self, after_seq: int) -> dict[str, str | None]:
        """For every act: None if it is possible `until` that row and after it, else why not."""
        return self._refusals(self.until(after_seq).world_at(after_seq))

    def legal_each(self, most: int | None = None) -> list[dict[str, str | None]]:
        """What `legal` says after each row in order, at the least after so many; played once."""
        found: list[dict[str, str | None]] = []

        def note(world: World, rows: int) -> None:
            if rows > len(found):
                found.extend([self._refusals(world)] * (rows - len(found)))

        self._execute(stop_after=most, watch=note)
        return found

    def world_at(self, after_seq: int) -> World:
        """The world as it stood when row `after_seq` had just happened (played again)."""
        self._check_row(after_seq)
        return self._execute(stop_after=after_seq).world

    # -- inside -----------------------------------------------------------------------------

    def _refusals(self, world: World) -> dict[str, str | None]:
        return {spec.name: _refusal(world, spec) for spec in self.scenario.actions}

    def _with(self, actions: tuple[Action, ...]) -> Run:
        """The branch with these acts."""
        return Run(
            self.scenario,
            self.preset,
            self.parameters,
            actions,
            self.seed,
            self.max_rows,
            parent=self,
            code=self.code,
        )

    def _check_row(self, after_seq: int) -> None:
        last = len(self.rows) - 1
        if not isinstance(after_seq, int) or isinstance(after_seq, bool):
            raise ActionError(refusal("row.no-number", row=repr(after_seq), last=last))
        if not -1 <= after_seq <= last:
            raise ActionError(refusal("row.none", row=after_seq, last=last))

    @seldom_collected()
    def _execute(
        self,
        stop_after: int | None,
        at_rest: Iterable[Action] = (),
        watch: Callable[[World, int], None] | None = None,
    ) -> _Played:
        """Play from the beginning; `stop_after` ends the play when that row has happened.

        Acts `at_rest` come after all others, each when nothing else is left to do. `watch` is given
        the world as it stands after so many rows, before the next act.
        """
        clock = VirtualClock()
        recorder = Recorder(self.name, now=lambda: clock.now_us)
        rows = recorder.rows
        world = World(
            preset=self.scenario.effective(self.preset, self.parameters),
            parameters=self.parameters,
            tap=recorder,
            clock=clock,
            code=self.code,
        )
        pending = list(self.actions)
        if stop_after is not None:
            pending = [action for action in pending if action.after_seq <= stop_after]
        pending.reverse()
        following = list(at_rest)[::-1]
        placed: list[Action] = []
        self.scenario.build(world)
        events = 0
        while True:
            while pending and pending[-1].after_seq < len(rows):
                if watch is not None:
                    watch(world, len(rows))
                self._apply(world, pending.pop())
            if watch is not None:
                watch(world, len(rows))
            while following and not pending and not clock.due and len(rows) < self.max_rows:
                placed.append(replace(following.pop(), after_seq=len(rows) - 1))
                self._apply_numbered(world, placed, len(following))
            if stop_after is not None and len(rows) > stop_after and not pending:
                break
            if not clock.due or len(rows) >= self.max_rows:
                break
            if events >= self.max_rows * EVENTS_PER_ROW or world.fault:
                break
            clock.step()
            events += 1
        rested = clock.due == 0 and not world.fault
        note = world.fault
        if not rested and not note and stop_after is None:
            note = self._stopped(len(rows), events)
        if following or (pending and world.fault):
            name = (following or pending)[-1].name
            why = note or self._stopped(len(rows), events)
            raise ActionError(refusal("run.act-ended", act=name, why=why))
        if pending:
            raise ActionError(refusal("row.none", row=pending[-1].after_seq, last=len(rows) - 1))
        return _Played(world, rows, rested, note, tuple(placed))

    def _stopped(self, rows: int, events: int) -> str:
        if rows >= self.max_rows:
            return refusal("run.rows", rows=rows)
        return refusal("run.events", rows=rows, events=events)

    def _apply(self, world: World, action: Action) -> None:
        spec = self.scenario.action(action.name)
        arguments = spec.arguments(action.arguments, self.preset)
        refusal = _refusal(world, spec)
        if refusal is not None:
            raise ActionError(refusal)
        world.record_action(action)
        spec.do(world, arguments)

    def _apply_numbered(self, world: World, acts: list[Action], left: int) -> None:
        """Apply the last of several acts; if it is refused, the text says which it was."""
        try:
            self._apply(world, acts[-1])
        except ActionError as error:
            if len(acts) + left == 1:
                raise
            told = {"number": len(acts), "act": acts[-1].name, "why": error}
            raise ActionError(refusal("run.numbered", **told)) from None

    def identity(self) -> dict[str, Any]:
        """The tuple that this run is a function of, as plain JSON values."""
        return identity_of(self.scenario, self.preset, self.parameters, self.actions, self.seed)


def identity_of(
    scenario: Scenario,
    preset: Preset,
    parameters: Mapping[str, Value],
    actions: Iterable[Action],
    seed: int,
) -> dict[str, Any]:
    """The tuple that a run is a function of, as plain JSON values."""
    standard = presets.get(preset.name)
    changed = {
        number.name: number.value
        for number in (presets.describe(preset) if preset != standard else ())
        if number.value != getattr(standard, number.name)
    }
    return {
        "scenario": scenario.name,
        "preset": preset.name,
        "preset_changes": changed,
        "parameters": dict(parameters),
        "actions": [[action.after_seq, action.name, dict(action.arguments)] for action in actions],
        "seed": seed,
    }


def step_of(row: Row) -> int:
    """The number of a row's step, as the stage shows it and a lesson's words speak of it.

    Step 1 is where the lesson begins: the last row of the set-up, whose steps have numbers below 1.
    What was recorded has no set-up, and counts from its first row.
    """
    return row.seq - BEGINS.get(row.run, 0) + 1


def name_of(
    scenario: Scenario,
    preset: Preset,
    parameters: Mapping[str, Value],
    actions: Iterable[Action],
    seed: int,
) -> str:
    """A run's name: its scenario, and eight hexadecimal digits for what it is a function of."""
    identity = identity_of(scenario, preset, parameters, actions, seed)
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return f"{scenario.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _refusal(world: World, spec: ActionSpec) -> str | None:
    """Why the act is not possible now; None if it is."""
    if world.fault:
        return refusal("run.ended", why=world.fault)
    return spec.legal(world)


def _shape(row: Row) -> tuple[object, ...]:
    """What happened in a row, whenever it was."""
    return (row.event, row.vantage, row.kind, row.frame_id)


def anew(
    old: Run, values: Mapping[str, Any], preset: Preset | str
) -> tuple[Preset, dict[str, Value]]:
    """A preset and the parameters with which a run begins anew: the old one's, but for some values.

    What the old run has by default is the new preset's default; what was chosen stays.

    Args:
        old: the run.
        values: of the scenario's parameters.
        preset: or its name.

    Raises:
        ValueError: if there is no such preset, or a value is not legal under it.
    """
    preset = preset_of(preset)
    usual = old.scenario.defaults(old.preset) if preset != old.preset else {}
    kept = {
        name: value
        for name, value in old.parameters.items()
        if name not in usual or value != usual[name]
    }
    return preset, old.scenario.values(preset, {**kept, **values})


def preset_of(preset: Preset | str) -> Preset:
    """The preset, which may be told by its name.

    Raises:
        ParameterError: if there is none of that name; the text lists the names.
    """
    if isinstance(preset, Preset):
        return preset
    try:
        return presets.get(preset)
    except ValueError as error:
        raise ParameterError(str(error)) from None


def run(
    scenario: Scenario | str,
    preset: Preset | str | None = None,
    parameters: Mapping[str, Any] | None = None,
    actions: Iterable[Action] = (),
    seed: int = 0,
    max_rows: int = MAX_ROWS,
    code: Mapping[str, Callable[..., Any]] | None = None,
) -> Run:
    """Play a scenario until it rests.

    Args:
        scenario: a scenario or its name.
        preset: a preset or its name; None: `spec`, or the scenario's where that does not speak its
            protocol.
        parameters: values that differ from the scenario's defaults.
        actions: acts in the order of their `after_seq`.
        seed: see `Run`.
        max_rows: the run stops with a note when it has made this many rows.
        code: functions of a learner, by the name under which the scenario looks for them.

    Raises:
        ParameterError: if there is no such scenario or preset, or a parameter is unknown or out of
            its range.
        ActionError: if an act is not legal when its turn comes.
    """
    from .registry import get as scenario_named

    if not isinstance(scenario, Scenario):
        scenario = scenario_named(scenario)
    if preset is None:
        preset = SPEC if scenario.protocol in presets.get(SPEC).protocols else scenario.preset
    preset = preset_of(preset)
    if not isinstance(seed, int) or seed < 0:
        raise ParameterError(refusal("run.seed", seed=repr(seed)))
    if not isinstance(parameters, Mapping | None):
        raise ParameterError(refusal("run.parameters", kind=type(parameters).__name__))
    if isinstance(actions, str | Mapping) or not isinstance(actions, Iterable):
        raise ParameterError(refusal("run.actions", kind=type(actions).__name__))
    acts = list(actions)
    for act in acts:
        if not isinstance(act, Action):
            raise ParameterError(refusal("run.actions", kind=type(act).__name__))
    # Arguments that are left out are filled in, as `Run.act` does: an act is written in one way.
    full = [
        replace(
            action,
            arguments=scenario.action(action.name).arguments(action.arguments, preset),
        )
        for action in acts
    ]
    ordered = tuple(sorted(full, key=lambda action: action.after_seq))
    values = scenario.values(preset, parameters or {})
    return Run(scenario, preset, values, ordered, seed, max_rows, parent=None, code=code)
