"""What a learner gives to a question, a chart or another function: whether it is what is wanted.

What that is the function itself says, with the annotations of its arguments. So no function tests
what it gets, and a number in the place of a run is answered with a sentence:

    link_credit: a whole number is wanted here, not str
"""

from __future__ import annotations

import functools
import inspect
import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, ParamSpec, TypeAlias, TypeVar, Union, get_args, get_origin

from workbench.languages import phrase
from workbench.notebook import GivenError

from .schema import Row

P = ParamSpec("P")
R = TypeVar("R")
Place: TypeAlias = os.PathLike[str] | str
"""Where a file or folder is."""

say = partial(phrase, "asking")

ANYTHING = (Any, object, inspect.Parameter.empty)


def rows_of(trace: Any, kind: Any = Sequence[Row]) -> Any:
    """The rows of a run, of a stage or of a capture, or the rows themselves.

    Args:
        trace: what has them.
        kind: what the rows are to be: a sequence, or anything that gives each of them once.

    Raises:
        GivenError: if it has none.
    """
    holder = holder_of(trace)
    found = getattr(holder, "rows", holder)
    if not _fits(found, kind):
        raise not_wanted(kind, trace)
    return found


def holder_of(trace: Any) -> Any:
    """What has the rows: of a stage its run, else what was given."""
    return trace if hasattr(trace, "rows") else getattr(trace, "run", trace)


def given(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> inspect.BoundArguments:
    """The arguments of a function by name; of a stage its run, and of a run its rows.

    What else may stand for a kind, the kind says itself, in `shown_by`.

    Raises:
        GivenError: if one is missing, or not what its annotation says.
    """
    signature = _signature(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:  # in Python's words: missing a required argument: 'run'
        raise GivenError(str(error)) from None
    for name, value in bound.arguments.items():
        bound.arguments[name] = _taken(signature.parameters[name], value)
    bound.apply_defaults()
    return bound


def takes(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function say what it wants to whoever gives it something else. A decorator."""

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = given(function, args, kwargs)
        return function(*bound.args, **bound.kwargs)

    return checked


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function, eval_str=True)


def _taken(parameter: inspect.Parameter, value: Any) -> Any:
    kind = parameter.annotation
    try:
        if parameter.kind is parameter.VAR_POSITIONAL:
            return tuple(_converted(kind, one) for one in value)
        if parameter.kind is parameter.VAR_KEYWORD:
            return {name: _converted(kind, one) for name, one in value.items()}
        return _converted(kind, value)
    except GivenError as error:
        raise GivenError(f"{parameter.name}: {error}") from None


def _converted(kind: Any, value: Any) -> Any:
    if hasattr(kind, "shown_by"):
        return kind.shown_by(value)
    if kind in (Sequence[Row], Iterable[Row]):
        return rows_of(value, kind)
    if not _fits(value, kind):
        raise not_wanted(kind, value)
    return value


def _fits(value: Any, kind: Any) -> bool:
    if kind in ANYTHING:
        return True
    if kind in _NUMBERS:
        return isinstance(value, _NUMBERS[kind]) and not isinstance(value, bool)
    outer, inner = get_origin(kind), get_args(kind)
    if outer in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if outer is tuple:  # a point may be written as a list
        return isinstance(value, tuple | list) and len(value) == len(inner)
    if not isinstance(value, outer or kind) or (outer in _LISTS and isinstance(value, str | bytes)):
        return False
    if outer in _LISTS:  # what gives each thing once is left for the function
        return isinstance(value, Iterator) or all(_fits(one, inner[0]) for one in value)
    if outer is Mapping:
        return all(_fits(one, inner[0]) and _fits(value[one], inner[1]) for one in value)
    return True


_LISTS = (Sequence, Iterable)
_NUMBERS: Mapping[Any, type] = {int: int, float: Real}


def not_wanted(kind: Any, value: Any) -> GivenError:
    """The error that says what is wanted, and what was given."""
    return GivenError(say(f"wanted.{name_of(kind)}", kind=_kind_of(value)))


def _kind_of(value: Any) -> str:
    """What a value is, as an annotation would say it: `int`, `list[str]`, `dict[str, int]`."""
    held: list[Iterable[Any]] = []
    if isinstance(value, dict):
        held = [value, value.values()]
    elif isinstance(value, list | tuple):
        held = [value]
    kinds = [" | ".join(dict.fromkeys(type(one).__name__ for one in some)) for some in held]
    name = type(value).__name__
    return f"{name}[{', '.join(kinds)}]" if any(kinds) else name


def name_of(kind: Any) -> str:
    """Under which name the table says what is wanted: `int`, `int-list`, `Run-by-name`."""
    outer, inner = get_origin(kind), get_args(kind)
    if outer in (Union, types.UnionType):
        return name_of(inner[0])  # the others are what a name stands for, or nothing
    if outer in _LISTS:
        return f"{name_of(inner[0])}-list"
    if outer is Mapping:
        return f"{name_of(inner[1])}-by-name"
    return str(getattr(outer or kind, "__name__", kind))
