"""Declaring a scenario once: parameters and acts with range, unit and meaning.

The same declaration validates what a person asks for, fills in what they leave out, builds the
sliders of a panel and prints the table of a lesson. A value that is not legal is refused with one
line that names what would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from workbench.amqp10.errors import LocalProtocolError
from workbench.presets import Preset
from workbench.queues import QueueError
from workbench.sim import WireError

from .action import ActionError, Value
from .world import World


class ParameterError(ValueError):
    """A parameter's value is not legal; the text names the legal range."""


class Kind(Enum):
    """Type of a parameter's or argument's value."""

    WHOLE = "whole number"
    YES_NO = "yes or no"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a scenario, or one argument of an act.

    Attributes:
        name: as in Python.
        default: the value if nobody says one; None may mean `all` or `not given`, see `doc`.
        preset_field: the default is this field of the preset instead.
        required: an act's argument that has no default.
        minimum, maximum: legal range of a whole number, both included.
        unit: what a whole number counts.
        choices: the legal texts, if they are few.
        absent: texts that have a meaning and are not legal, each with the reason in words.
    """

    name: str
    doc: str
    default: Value = None
    preset_field: str | None = None
    required: bool = False
    kind: Kind = Kind.WHOLE
    minimum: int | None = None
    maximum: int | None = None
    unit: str = ""
    choices: tuple[str, ...] = ()
    absent: tuple[tuple[str, str], ...] = ()

    def default_in(self, preset: Preset) -> Value:
        """The default under a preset."""
        if self.preset_field is not None:
            value: Value = getattr(preset, self.preset_field)
            return value
        return self.default

    @property
    def legal(self) -> str:
        """The legal values in words, such as `0 to 100000 messages`."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.kind is Kind.YES_NO:
            return "True or False"
        if self.kind is Kind.TEXT:
            return "a text"
        unit = f" {self.unit}" if self.unit else ""
        low = 0 if self.minimum is None else self.minimum
        if self.maximum is None:
            return f"{low} or more{unit}"
        return f"{low} to {self.maximum}{unit}"

    def check(self, value: Any) -> Value:
        """The value, if it is legal.

        A whole number stands for its digits where a text is wanted: `{"replicas": 5}`.

        Raises:
            ParameterError: if it is not; the text names the legal range.
        """
        if value is None and self.default is None and not (self.required or self.preset_field):
            return None
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and self.kind is Kind.TEXT:
            value = str(value)
        fits = {
            Kind.WHOLE: whole,
            Kind.YES_NO: isinstance(value, bool),
            Kind.TEXT: isinstance(value, str),
        }[self.kind]
        if not fits:
            raise ParameterError(
                f"{self.name} is {_shown(value)}, which is no {self.kind.value};"
                f" legal: {self.legal}"
            )
        for text, reason in self.absent:
            if value == text:
                raise ParameterError(
                    f"{self.name} is {_shown(value)}: {reason}; legal: {self.legal}"
                )
        if self.choices and value not in self.choices:
            raise ParameterError(f"{self.name} is {_shown(value)}; legal: {self.legal}")
        if self.kind is Kind.WHOLE:
            below = self.minimum is not None and value < self.minimum
            above = self.maximum is not None and value > self.maximum
            if below or above:
                raise ParameterError(f"{self.name} is {_shown(value)}; legal: {self.legal}")
        checked: Value = value
        return checked


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _checked(
    parameters: tuple[Parameter, ...],
    given: Mapping[str, Any],
    defaults: Mapping[str, Value],
    owner: str,
) -> dict[str, Value]:
    """Every parameter with its value: given and legal, or the default."""
    known = {parameter.name for parameter in parameters}
    for name in given:
        if name not in known:
            listed = ", ".join(parameter.name for parameter in parameters) or "none"
            raise ParameterError(f"{owner} has no parameter {_shown(name)}; it has: {listed}")
    values: dict[str, Value] = {}
    for parameter in parameters:
        if parameter.name in given:
            values[parameter.name] = parameter.check(given[parameter.name])
        elif parameter.required:
            raise ParameterError(
                f"{owner} needs {parameter.name} ({parameter.doc}); legal: {parameter.legal}"
            )
        else:
            values[parameter.name] = defaults[parameter.name]
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSpec:
    """Something a learner may do during a run.

    Attributes:
        name: as in `Run.act(after_seq, name, ...)`.
        parameters: its arguments.
        legal: why the act is not possible in that world now, ending with what would be; None if
            it is possible. Arguments are not looked at.
        apply: does it. It may raise ActionError, and then must not have changed anything.
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...] = ()
    legal: Callable[[World], str | None] = field(default=lambda world: None)
    apply: Callable[..., None]

    def arguments(self, given: Mapping[str, Any], preset: Preset) -> dict[str, Value]:
        """The arguments, checked and completed from their defaults under a preset.

        Raises:
            ActionError: if one of them is not legal.
        """
        defaults = {parameter.name: parameter.default_in(preset) for parameter in self.parameters}
        try:
            return _checked(self.parameters, given, defaults, self.name)
        except ParameterError as error:
            raise ActionError(str(error)) from None

    def do(self, world: World, arguments: Mapping[str, Value]) -> None:
        """Do it in a world.

        Raises:
            ActionError: if the wire, the protocol or the queue refuses it.
        """
        try:
            self.apply(world, **arguments)
        except (WireError, LocalProtocolError, QueueError) as error:
            raise ActionError(str(error)) from error
        world.done.append(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A declared run: what can be set, what can be done, and how the world is built.

    Attributes:
        preset: that it is meant for, and that a command takes if none is named.
        long: too long to be kept; a command writes its trace as it is made.
        told: what came of it, a line each; for whoever is not shown its rows.
    """

    name: str
    title: str
    doc: str
    parameters: tuple[Parameter, ...]
    actions: tuple[ActionSpec, ...]
    build: Callable[[World], None]
    preset: str = "spec"
    long: bool = False
    told: Callable[[World], list[str]] = field(default=lambda world: [])

    def defaults(self, preset: Preset) -> dict[str, Value]:
        """Every parameter's default under a preset."""
        return {parameter.name: parameter.default_in(preset) for parameter in self.parameters}

    def values(self, preset: Preset, given: Mapping[str, Any]) -> dict[str, Value]:
        """Every parameter's value, checked and completed.

        Raises:
            ParameterError: if one is unknown or not legal.
        """
        return _checked(self.parameters, given, self.defaults(preset), f"scenario {self.name}")

    def effective(self, preset: Preset, values: Mapping[str, Value]) -> Preset:
        """The preset with every number that a parameter of this scenario takes the place of."""
        replaced: dict[str, Any] = {
            parameter.preset_field: values[parameter.name]
            for parameter in self.parameters
            if parameter.preset_field is not None
        }
        return replace(preset, **replaced)

    def action(self, name: str) -> ActionSpec:
        """The act of that name.

        Raises:
            ActionError: if there is none; the text lists the names.
        """
        for spec in self.actions:
            if spec.name == name:
                return spec
        listed = ", ".join(spec.name for spec in self.actions) or "none"
        raise ActionError(f"{self.name} has no act {_shown(name)}; there are: {listed}")
