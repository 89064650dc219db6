"""Sharing a run: its share code, and a run again from a share code.

`trace.share` has the coding. Here a run becomes what is coded, and what was read becomes a run, as
far as it goes: whatever is unknown, altered or not legal any more is named, left out, and the rest
is restored. At the end the trace hash tells whether the run is the one that was shared.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from workbench import presets
from workbench.languages import phrase
from workbench.notebook import WrongValueError
from workbench.presets import Preset
from workbench.trace.hash import trace_hash
from workbench.trace.share import ShareCodeError, Shared, Value, decode, encode
from workbench.trace.words import visible

from . import registry
from .action import Action, ActionError
from .declare import ParameterError, Scenario
from .run import MAX_ROWS, Run
from .run import run as play

say = partial(phrase, "share")

# What each version of the model changed in the rows of runs; a new line raises the version, and an
# older code then says why its run is not the same any more.
CHANGED = {
    2: "confirms wait in a session's mailbox among the frames (presets with a service time)",
    3: "the rest of a message that was begun counts as something to send (column brake)",
    4: "a session's mailbox is noted with each frame (two_senders)",
    5: "what a row says that is no frame stands in a column of its own (details)",
}
MODEL_VERSION = max(CHANGED)

# So many acts that are refused are left out one by one; after that the others are left out at once.
MOST_REFUSED = 10
STANDARD_PRESET = "spec"
LARGEST_NUMBER = 2**53
SHOWN_HASH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What came of a share code.

    Attributes:
        run: the run; None if the code does not tell enough for one.
        cursor: how many rows have passed at the step that was looked at.
        problems: one line for everything that is not as it was shared; none if all is.
        same: whether the trace hash is the same; None if there is none to compare with.
    """

    run: Run | None
    cursor: int = 0
    problems: tuple[str, ...] = ()
    same: bool | None = None

    @property
    def summary(self) -> str:
        """What was restored, in one or two sentences."""
        if self.run is None:
            return say("restored.nothing")
        text = say(
            "restored.run",
            title=self.run.scenario.title,
            acts=len(self.run.actions),
            where=_where(self.run, self.cursor),
        )
        return f"{text} {say('restored.same')}" if self.same else text

    def __str__(self) -> str:
        return "\n".join([self.summary, *(f"- {problem}" for problem in self.problems)])


def share_code(run: Run, cursor: int | None = None) -> str:
    """The code with which somebody else gets this run: about 2,000 characters at most.

    A function of the learner's own that the run used is not in it; the code only says that there
    was one.

    Args:
        run: a run of a scenario, with whatever was done in it.
        cursor: how many rows have passed at the step to open it at; where its set-up ends if None.

    Raises:
        ShareCodeError: if it has too many acts for a short code; the text says what to do.
        WrongValueError: if there is no such step.
    """
    if cursor is None:
        cursor = run.start_seq + 1
    if not 0 <= cursor <= len(run.rows):
        raise WrongValueError(say("no-step", step=cursor, last=len(run.rows)))
    identity = run.identity()
    return encode(
        Shared(
            scenario=identity["scenario"],
            seed=identity["seed"],
            max_rows=None if run.max_rows == MAX_ROWS else run.max_rows,
            own_code=tuple(sorted(run.code)),
            preset=identity["preset"],
            preset_changes=identity["preset_changes"],
            parameters=identity["parameters"],
            acts=[
                (after, name, {key: value for key, value in given.items() if value is not None})
                for after, name, given in identity["actions"]
            ],
            cursor=cursor,
            trace_hash=trace_hash(run.rows),
            model=MODEL_VERSION,
        )
    )


def open_code(text: str, *, code: Mapping[str, Callable[..., Any]] | None = None) -> Restored:
    """The run of a share code, as far as it can be restored; never raises for what the text holds.

    Args:
        text: the code, as it was copied.
        code: functions of the learner's own, by name, where the run needs them.
    """
    text = "" if text is None else str(text)  # a number, where quotation marks were forgotten
    if not text.strip():
        return Restored(run=None, problems=(say("restored.no-code"),))
    try:
        shared = decode(text)
    except ShareCodeError as error:
        return Restored(run=None, problems=(_sentence(str(error)),))
    return _Restoring(shared, code or {}).restored()


class _Restoring:
    """One restoring; collects what is not as it was."""

    def __init__(self, shared: Shared, code: Mapping[str, Callable[..., Any]]) -> None:
        self.shared = shared
        self.code = code
        self.problems = [_sentence(problem) for problem in shared.problems]

    def note(self, text: str) -> None:
        self.problems.append(_sentence(text))

    def restored(self) -> Restored:
        scenario = self.scenario()
        if scenario is None:
            return Restored(run=None, problems=(*self.problems, *self.rest()))
        preset = self.preset()
        values = self.values(scenario, preset)
        run = self.run(scenario, preset, values)
        if run is None:
            return Restored(run=None, problems=tuple(self.problems))
        cursor = self.cursor(run)
        same = self.compare(run)
        return Restored(run=run, cursor=cursor, problems=tuple(self.problems), same=same)

    # -- the parts --------------------------------------------------------------------------

    def scenario(self) -> Scenario | None:
        """The scenario by its name, or, if that is lost, the only one with these parameters."""
        name = self.shared.scenario
        if name in registry.names():
            return registry.get(name)
        if name is not None:
            self.note(say("scenario.unknown", name=_cut(name), listed=_listed(registry.names())))
            return None
        given = set(self.shared.parameters or ())
        fitting = [
            one
            for one in map(registry.get, registry.names())
            if given == {parameter.name for parameter in one.parameters}
        ]
        if len(fitting) != 1:
            return None
        self.note(say("scenario.taken", name=fitting[0].name))
        return fitting[0]

    def rest(self) -> list[str]:
        """What a code without a scenario still says, so that a person can make the run by hand."""
        shared = self.shared
        found = []
        if shared.parameters:
            found.append(say("rest.parameters", listed=_pairs(shared.parameters)))
        if shared.acts:
            acts = [say("rest.act", act=visible(name), row=after) for after, name, _ in shared.acts]
            found.append(say("rest.acts", listed=", ".join(acts)))
        return [_sentence(say("rest.says", listed="; ".join(found)))] if found else []

    def preset(self) -> Preset:
        name = self.shared.preset
        if name is None:
            return presets.get(STANDARD_PRESET)
        if name not in presets.names():
            told = {"taken": STANDARD_PRESET, "listed": _listed(presets.names())}
            self.note(say("preset.unknown", name=_cut(name), **told))
            return presets.get(STANDARD_PRESET)
        preset = presets.get(name)
        for key, value in self.shared.preset_changes.items():
            known = {number.name: number.value for number in presets.describe(preset)}
            if key not in known:
                self.note(say("preset.no-number", name=_cut(key)))
            elif type(value) is not type(known[key]) or not 0 <= _size(value) <= LARGEST_NUMBER:
                stays = known[key]
                self.note(say("preset.illegal", name=key, value=_cut(value), stays=stays))
            else:
                changes: dict[str, Any] = {key: value}
                preset = replace(preset, **changes)
        return preset

    def values(self, scenario: Scenario, preset: Preset) -> dict[str, Value]:
        """The parameters that exist and are legal; the others are named and get their defaults."""
        known = {parameter.name: parameter for parameter in scenario.parameters}
        values: dict[str, Value] = {}
        for name, value in (self.shared.parameters or {}).items():
            if name not in known:
                self.note(say("parameters.unknown", scenario=scenario.name, name=_cut(name)))
                continue
            try:
                values[name] = known[name].check(value)
            except ParameterError as error:
                default = known[name].default_in(preset)
                self.note(say("parameters.refused", why=visible(error, 200), taken=default))
        return values

    # -- the run ----------------------------------------------------------------------------

    def run(self, scenario: Scenario, preset: Preset, values: dict[str, Value]) -> Run | None:
        if (self.shared.seed or 0) < 0:
            self.note(say("scenario.seed", seed=self.shared.seed))
        start = self.playable(scenario, preset, values)
        if start is None:
            return None
        acts = [
            Action(after_seq=after, name=name, arguments=arguments)
            for after, name, arguments in self.shared.acts or ()
        ]
        return self.acted(start, acts)

    def play(
        self,
        scenario: Scenario,
        preset: Preset,
        values: Mapping[str, Value],
        actions: Sequence[Action] = (),
    ) -> Run:
        max_rows = self.shared.max_rows
        rows = MAX_ROWS if max_rows is None or not 0 < max_rows <= MAX_ROWS else max_rows
        seed = max(self.shared.seed or 0, 0)
        return play(scenario, preset, values, actions, seed, rows, code=self.code)

    def playable(self, scenario: Scenario, preset: Preset, values: dict[str, Value]) -> Run | None:
        """The run before any act.

        What makes it impossible is left out: a parameter gets its default, or the preset its own
        numbers.
        """
        try:
            return self.tried(scenario, preset, values)
        except Exception as error:
            reason = visible(error, 300)
        defaults = scenario.defaults(preset)
        for name in values:
            if values[name] == defaults[name]:
                continue
            try:
                run = self.tried(scenario, preset, {**values, name: defaults[name]})
            except Exception:
                continue
            told = {"name": name, "value": values[name], "why": reason}
            self.note(say("parameters.impossible", **told))
            self.note(say("parameters.instead", name=name, value=defaults[name]))
            return run
        standard = presets.get(preset.name)
        if preset != standard:
            with contextlib.suppress(Exception):
                run = self.tried(scenario, standard, values)
                self.note(say("preset.impossible", why=reason))
                self.note(say("preset.without", name=preset.name))
                return run
        self.note(say("restored.impossible", why=reason))
        return None

    def tried(self, scenario: Scenario, preset: Preset, values: Mapping[str, Value]) -> Run:
        """The run before any act, once every number in it is known to be legal.

        A default that comes from the preset is checked like a value that is given.
        """
        return self.play(scenario, preset, scenario.values(preset, values))

    def acted(self, start: Run, acts: list[Action]) -> Run:
        """The run with every act that is legal in its turn."""
        number = list(range(1, len(acts) + 1))
        for _ in range(MOST_REFUSED):
            found = self.with_acts(start, acts)
            if isinstance(found, Run):
                return found
            # Acts up to the first refused one are fine, however far beyond it one looks.
            first = bisect_right(
                range(1, len(acts) + 1),
                0,
                key=lambda many: 0 if isinstance(self.with_acts(start, acts[:many]), Run) else 1,
            )
            reason = self.with_acts(start, acts[: first + 1])
            refused = acts.pop(first)
            self.note(
                say(
                    "acts.refused",
                    number=number.pop(first),
                    act=visible(refused, 200),
                    row=refused.after_seq,
                    why=visible(found if isinstance(reason, Run) else reason, 300),
                )
            )
        found = self.with_acts(start, acts)
        if isinstance(found, Run):
            return found
        self.note(say("acts.more", more=len(acts)))
        return start

    def with_acts(self, start: Run, acts: Sequence[Action]) -> Run | str:
        """The run with these acts, or why there is none."""
        try:
            return self.play(start.scenario, start.preset, start.parameters, acts)
        except ActionError as error:
            return str(error)
        except Exception as error:
            return say("acts.fails", why=repr(error))

    # -- what came of it --------------------------------------------------------------------

    def cursor(self, run: Run) -> int:
        cursor, last = self.shared.cursor, len(run.rows)
        if cursor is None:
            return run.start_seq + 1
        if 0 <= cursor <= last:
            return cursor
        nearest = max(0, min(cursor, last))
        self.note(say("cursor", step=_step(run, cursor), taken=_where(run, nearest)))
        return nearest

    def compare(self, run: Run) -> bool | None:
        """Whether it is the run that was shared; if not, say what may have made the difference."""
        shared = self.shared
        if shared.own_code and set(shared.own_code) - set(self.code):
            self.note(say("compared.own-code", listed=_listed(shared.own_code)))
        if shared.trace_hash is None:
            self.note(say("compared.no-hash"))
            return None
        now = trace_hash(run.rows)
        if now == shared.trace_hash:
            return True
        because = say("because.see-others" if self.problems else "because.unknown")
        if shared.model is not None and shared.model != MODEL_VERSION:
            since = [what for version, what in CHANGED.items() if version > shared.model]
            because = say(
                "because.model",
                model=shared.model,
                now=MODEL_VERSION,
                since="; ".join(since) or say("because.newer"),
            )
        hashes = {"now": now[:SHOWN_HASH], "then": shared.trace_hash[:SHOWN_HASH]}
        self.note(say("compared.another", because=because, **hashes))
        return False


def _step(run: Run, passed: int) -> int:
    """The number that the stage shows where so many rows have passed."""
    return passed - run.start_seq


def _where(run: Run, passed: int) -> str:
    """That step in words; those of the set-up have no number on the stage."""
    step = _step(run, passed)
    if step < 1:
        return say("restored.set-up")
    return say("restored.step", step=step, steps=_step(run, len(run.rows)))


def _size(value: Value) -> int:
    return value if isinstance(value, int) else -1


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _cut(value: object) -> str:
    return visible(value, 60)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_cut, names))


def _pairs(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{visible(name)}={visible(value)}" for name, value in values.items())


__all__ = ["MODEL_VERSION", "Restored", "ShareCodeError", "open_code", "share_code"]
