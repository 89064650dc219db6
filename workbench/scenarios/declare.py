"""Declaring a scenario once, by the signature of the function that builds its world.

    @scenario("Credit: nothing moves until the receiver speaks", acts=(GRANT, *WIRE_ACTS))
    def credit(world: World, messages: Ready = PRESET, latency_us: Latency = PRESET) -> None:
        "A queue with ready messages and a receiver whose link is attached."

An act is declared likewise, with `@act`. The name is the function's, the words are those of its
docstring. A parameter's type carries range, unit and meaning
(`parameters.py` has those that several share), its default may be a number of the preset. The same
declaration checks what a person asks for, fills in what they leave out, makes the marks on the
stage and prints the table of a lesson. A value that is not legal is refused with one line that
names what would be.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from workbench.amqp010 import errors as errors010
from workbench.amqp091 import errors as errors091
from workbench.amqp10 import errors as errors10
from workbench.broker.system_memory import SystemMemoryError
from workbench.languages import declared, phrase
from workbench.notebook import PlainError, WrongValueError
from workbench.presets import AMQP_1_0, Preset
from workbench.presets import names as preset_names
from workbench.queues import QueueArgumentError, QueueError
from workbench.sim import WireError
from workbench.trace.words import duration

from .action import ActionError, Value, refusal
from .world import World

# Credit that processes give each other at first, and after how many messages more of it.
_GRANTS = (
    ("process_credit", "process_regrant_after"),
    ("store_credit", "store_regrant_after"),
)
_WRITTEN = {"us": "µs"}  # units
# With which queues and memory refuse a number that a learner has chosen.
REFUSALS = (QueueError, QueueArgumentError, SystemMemoryError)
"""What a queue or the memory refuses; an act, or a run, is refused in the same words."""
_ENDPOINTS = tuple(one.LocalProtocolError for one in (errors10, errors091, errors010))
"""With which a client's end refuses what its state does not allow."""


class ParameterError(PlainError, ValueError):
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
        english: what it means.
        default: the value if nobody says one; None may mean `all` or `not given`, see `doc`.
        preset_field: the default is this field of the preset instead.
        required: an act's argument that has no default.
        minimum, maximum: legal range of a whole number, both included.
        unit: what a whole number counts.
        choices: the legal texts, if they are few.
        absent: texts that have a meaning and are not legal, each with the reason in words.
    """

    name: str
    english: str
    default: Value = None
    preset_field: str | None = None
    required: bool = False
    kind: Kind = Kind.WHOLE
    minimum: int | None = None
    maximum: int | None = None
    unit: str = ""
    choices: tuple[str, ...] = ()
    absent: tuple[tuple[str, str], ...] = ()

    @property
    def doc(self) -> str:
        """What it means, in the learner's language, as for the next two."""
        return declared(self.english)

    @property
    def label(self) -> str:
        """What it is called where it is not code."""
        return declared(self.english_label)

    @property
    def english_label(self) -> str:
        """What it is called, in English."""
        return self.name.removesuffix("_us").replace("_", " ")

    @property
    def counts(self) -> str:
        """Its unit as people write it."""
        return declared(_WRITTEN.get(self.unit, self.unit))

    def default_in(self, preset: Preset) -> Value:
        """The default under a preset."""
        if self.preset_field is not None:
            value: Value = getattr(preset, self.preset_field)
            return value
        return self.default

    @property
    def legal(self) -> str:
        """The legal values in words, such as `0 to 9 messages` or `0 to 5000000 µs (5.0 s)`."""
        if self.choices:
            return refusal("legal.choices", listed=", ".join(self.choices))
        if self.kind is not Kind.WHOLE:
            return refusal(f"legal.{self.kind.name.lower()}")
        unit = f" {self.counts}" if self.unit else ""
        low = 0 if self.minimum is None else self.minimum
        if self.maximum is None:
            return refusal("legal.from", low=low, unit=unit)
        if self.unit == "us" and self.maximum >= 1_000:
            unit += f" ({duration(self.maximum)})"
        return refusal("legal.range", low=low, high=self.maximum, unit=unit)

    def check(self, value: Any) -> Value:
        """The value, if it is legal.

        A whole number stands for its digits where a text is wanted: `{"replicas": 5}`.

        Raises:
            ParameterError: if it is not; the text names the legal range.
        """
        if value is None and self.default is None and not (self.required or self.preset_field):
            return None
        if value is None:
            raise self._refused("left-out", value)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and self.kind is Kind.TEXT:
            value = str(value)
        fits = {
            Kind.WHOLE: whole,
            Kind.YES_NO: isinstance(value, bool),
            Kind.TEXT: isinstance(value, str),
        }[self.kind]
        if not fits:
            raise self._refused(f"no-{self.kind.name.lower()}", value)
        for text, reason in self.absent:
            if value == text:
                raise self._refused("absent", value, reason=declared(reason))
        below = self.minimum is not None and whole and value < self.minimum
        above = self.maximum is not None and whole and value > self.maximum
        if below or above or (self.choices and value not in self.choices):
            raise self._refused("illegal", value)
        checked: Value = value
        return checked

    def _refused(self, why: str, value: Any, **more: str) -> ParameterError:
        told = {"name": self.name, "value": _shown(value), "legal": self.legal, **more}
        return ParameterError(refusal(f"value.{why}", **told))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _checked(
    parameters: tuple[Parameter, ...],
    given: Mapping[str, Any],
    preset: Preset,
    owner: str,
) -> dict[str, Value]:
    """Every parameter with its value: given and legal, or the default under a preset."""
    known = {parameter.name for parameter in parameters}
    for name in given:
        if name not in known:
            listed = ", ".join(parameter.name for parameter in parameters) or refusal("none")
            raise ParameterError(
                refusal("value.unknown", owner=owner, name=_shown(name), listed=listed)
            )
    values: dict[str, Value] = {}
    for parameter in parameters:
        if parameter.name in given:
            values[parameter.name] = parameter.check(given[parameter.name])
        elif parameter.required:
            told = {"name": parameter.name, "doc": parameter.doc, "legal": parameter.legal}
            raise ParameterError(refusal("value.needed", owner=owner, **told))
        else:
            values[parameter.name] = parameter.default_in(preset)
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSpec:
    """Something a learner may do during a run.

    Attributes:
        name: as in `Run.act(after_seq, name, ...)`.
        english: what it does.
        parameters: its arguments.
        legal: why the act is not possible in that world now, ending with what would be; None if
            it is possible. Arguments are not looked at.
        apply: does it. It may raise ActionError, and then must not have changed anything.
    """

    name: str
    english: str
    parameters: tuple[Parameter, ...]
    legal: Callable[[World], str | None]
    apply: Callable[..., None]

    @property
    def doc(self) -> str:
        """What it does, in the learner's language."""
        return declared(self.english)

    def arguments(self, given: Mapping[str, Any], preset: Preset) -> dict[str, Value]:
        """The arguments, checked and completed from their defaults under a preset.

        Raises:
            ActionError: if one of them is not legal.
        """
        try:
            return _checked(self.parameters, given, preset, self.name)
        except ParameterError as error:
            raise ActionError(str(error)) from None

    def do(self, world: World, arguments: Mapping[str, Value]) -> None:
        """Do it in a world.

        Raises:
            ActionError: if the wire, the protocol, the queue or the memory refuses it.
        """
        try:
            self.apply(world, **arguments)
        except (WireError, *_ENDPOINTS, *REFUSALS) as error:
            raise ActionError(str(error)) from error
        world.done.append(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A declared run: what can be set, what can be done, and how the world is built.

    Attributes:
        english_title: what a picture of a run is called.
        english: what it is about.
        preset: that it is meant for, and that a command takes if none is named.
        protocol: of its clients; a preset must be a model of it.
        build: makes the world. It raises ParameterError if numbers do not go together, or if a
            queue or the memory refuses one.
        long: too long to be kept; a command writes its trace as it is made.
        told: what came of it, a line each; for whoever is not shown its rows.
    """

    name: str
    english_title: str
    english: str
    parameters: tuple[Parameter, ...]
    actions: tuple[ActionSpec, ...]
    build: Callable[[World], None]
    preset: str
    protocol: str
    long: bool
    told: Callable[[World], list[str]]

    @property
    def title(self) -> str:
        """What a picture of a run is called, in the learner's language."""
        return declared(self.english_title)

    @property
    def doc(self) -> str:
        """What it is about, in the learner's language."""
        return declared(self.english)

    @property
    def presets(self) -> tuple[str, ...]:
        """Names of the presets that are models of its protocol."""
        return preset_names(self.protocol)

    def defaults(self, preset: Preset) -> dict[str, Value]:
        """Every parameter's default under a preset."""
        return {parameter.name: parameter.default_in(preset) for parameter in self.parameters}

    def values(self, preset: Preset, given: Mapping[str, Any]) -> dict[str, Value]:
        """Every parameter's value, checked and completed.

        Raises:
            ParameterError: if one is unknown or not legal, or the preset does not fit.
        """
        if self.protocol not in preset.protocols:
            raise ParameterError(
                refusal(
                    "preset.of-another-protocol",
                    preset=preset.name,
                    protocol=self.protocol,
                    scenario=self.name,
                    listed=", ".join(self.presets),
                )
            )
        owner = refusal("value.scenario", scenario=self.name)
        return _checked(self.parameters, given, preset, owner)

    def effective(self, preset: Preset, values: Mapping[str, Value]) -> Preset:
        """The preset with every number that a parameter of this scenario takes the place of.

        Raises:
            ParameterError: if processes are to grant credit after more messages than they gave.
        """
        names = {one.preset_field: one.name for one in self.parameters if one.preset_field}
        replaced: dict[str, Any] = {field: values[name] for field, name in names.items()}
        found = replace(preset, **replaced)
        for first, second in _GRANTS:
            most, least = getattr(found, first), getattr(found, second)
            if least > most and second in names:
                raise ParameterError(
                    refusal("preset.no-grant", name=names[second], value=least, most=most)
                )
        return found

    def action(self, name: str) -> ActionSpec:
        """The act of that name.

        Raises:
            ActionError: if there is none; the text lists the names.
        """
        for spec in self.actions:
            if spec.name == name:
                return spec
        listed = ", ".join(spec.name for spec in self.actions) or refusal("none")
        told = {"scenario": self.name, "name": _shown(name), "listed": listed}
        raise ActionError(refusal("act.unknown", **told))


# -- by signature -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Whole:
    """Range of a whole number, both ends included, and what it counts."""

    minimum: int | None = 0
    maximum: int | None = None
    unit: str = ""


class OneOf(tuple[str, ...]):
    """The legal texts.

    Attributes:
        absent: texts that have a meaning and are not legal, each with the reason in words.
    """

    absent: tuple[tuple[str, str], ...]

    def __new__(cls, *choices: str, absent: Mapping[str, str] | None = None) -> OneOf:
        """The texts in the order in which they are told."""
        made = super().__new__(cls, choices)
        made.absent = tuple((absent or {}).items())
        return made


@dataclass(frozen=True, slots=True)
class _OfPreset:
    """A default: the preset's number of this name; without one, of the parameter's."""

    field: str = ""

    def __getattr__(self, name: str) -> _OfPreset:
        return _OfPreset(name)


DECLARED: dict[str, Scenario] = {}
"""What was declared so far, by name; `registry` looks for the rest."""

PRESET: Any = _OfPreset()
"""Default of a parameter: the preset's field of the same name, or `PRESET.batch_credit`."""


def scenario(
    title: str,
    *,
    acts: tuple[ActionSpec, ...] = (),
    preset: str = "spec",
    protocol: str = AMQP_1_0,
    long: bool = False,
    told: Callable[[World], list[str]] = lambda world: [],
) -> Callable[[Callable[..., None]], Scenario]:
    """Makes a scenario of the function that builds its world.

    Args:
        title: what a picture of a run is called.
        acts: what a learner may do.
        preset: see `Scenario`, and so for the next three.
        protocol: of its clients.
        long: too long to be kept.
        told: what came of it.

    Raises:
        WrongValueError: when it is applied, if another one has that name.
    """

    def declare(build: Callable[..., None]) -> Scenario:
        name = build.__name__
        if name in DECLARED:
            raise WrongValueError(refusal("name.taken", name=repr(name)))

        def built(world: World) -> None:
            try:
                build(world, **world.parameters)
            except REFUSALS as error:
                raise ParameterError(str(error)) from None

        DECLARED[name] = Scenario(
            name=name,
            english_title=title,
            english=_words(build),
            parameters=_parameters(build),
            actions=acts,
            build=built,
            preset=preset,
            protocol=protocol,
            long=long,
            told=told,
        )
        return DECLARED[name]

    return declare


Legal = Callable[[World], str | None]
"""Why an act is not possible now, ending with what would be; None if it is possible."""


def unless(why: str, there: Callable[[World], object]) -> Legal:
    """What refuses an act, with the refusal of that name, unless something is there."""
    return lambda world: None if there(world) else phrase("refusals", why)


def act(*legal: Legal) -> Callable[[Callable[..., None]], ActionSpec]:
    """Makes an act of the function that does it.

    Args:
        *legal: what may refuse it; of several refusals the first is told.
    """

    def refused(world: World) -> str | None:
        for one in legal:  # asked of every act at every step
            why = one(world)
            if why is not None:
                return why
        return None

    def declare(apply: Callable[..., None]) -> ActionSpec:
        words = _words(apply)
        return ActionSpec(
            name=apply.__name__,
            english=(words[0].lower() + words[1:]).rstrip("."),
            parameters=_parameters(apply),
            legal=refused,
            apply=apply,
        )

    return declare


def _words(function: Callable[..., None]) -> str:
    """A docstring in one line."""
    return " ".join((inspect.getdoc(function) or "").split())


def _parameters(function: Callable[..., None]) -> tuple[Parameter, ...]:
    """What a function takes besides the world."""
    hints = get_type_hints(function, include_extras=True)
    _, *given = inspect.signature(function).parameters.values()
    return tuple(_parameter(one, hints[one.name]) for one in given)


def _parameter(one: inspect.Parameter, hint: Any) -> Parameter:
    if get_origin(hint) in (Union, UnionType):  # it may be left out
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    kind, *told = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    of_preset = one.default if isinstance(one.default, _OfPreset) else None
    required = one.default is inspect.Parameter.empty
    numbers = [each for each in told if isinstance(each, Whole)]
    texts = [each for each in told if isinstance(each, OneOf)]
    # Of a type made of another the outer words count, and come last.
    bounds = numbers[-1] if numbers else Whole(None)
    choices = texts[-1] if texts else OneOf()
    return Parameter(
        name=one.name,
        english=next(each for each in reversed(told) if isinstance(each, str)),
        default=None if required or of_preset else one.default,
        preset_field=None if of_preset is None else of_preset.field or one.name,
        required=required,
        kind={int: Kind.WHOLE, bool: Kind.YES_NO, str: Kind.TEXT}[kind],
        minimum=bounds.minimum,
        maximum=bounds.maximum,
        unit=bounds.unit,
        choices=tuple(choices),
        absent=choices.absent,
    )
