"""A fold put away between two batches: JSON that can hold its objects and can do nothing else.

A state is a few kinds of objects that know each other: a link stands in the counters of an end and
among the links that may be held. So each object is written once, under a number. What is read is
data: the classes are those that the caller names, and none of their code is called.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["from_json", "to_json"]

_PLAIN = (str, int, float, bool, type(None))
_MANY = {"list": list, "tuple": tuple, "set": set, "deque": deque}


def to_json(state: object, classes: Iterable[type]) -> dict[str, Any]:
    """An object and all that it holds, as plain JSON.

    Raises:
        TypeError: it holds something of a class that is not among `classes`.
    """
    names = {kind: name for name, kind in _named(classes).items()}
    places: dict[int, int] = {}
    objects: list[Any] = []

    def plain(value: Any) -> Any:
        if isinstance(value, _PLAIN):
            return value
        kind = type(value)
        if kind in names:
            if hasattr(kind, "_fields"):  # a tuple with names: without an identity
                return {names[kind]: [plain(item) for item in value]}
            return {"object": number(value)}
        if kind is bytes:
            return {"bytes": value.hex()}
        if kind is dict:
            return {"dict": [[plain(name), plain(item)] for name, item in value.items()]}
        for name, many in _MANY.items():
            if kind is many:
                return {name: [plain(item) for item in value]}
        raise TypeError(f"{kind.__qualname__} is not kept")

    def number(value: Any) -> int:
        if id(value) not in places:
            places[id(value)] = len(objects)
            objects.append(None)
            inner = {name: plain(getattr(value, name)) for name in _attributes(value)}
            objects[places[id(value)]] = [names[type(value)], inner]
        return places[id(value)]

    return {"state": plain(state), "objects": objects}


def from_json(kept: Mapping[str, Any], classes: Iterable[type]) -> Any:
    """What `to_json` was given.

    Raises:
        ValueError: it is not of that form.
    """
    named = _named(classes)

    def value(plain: Any) -> Any:
        if isinstance(plain, _PLAIN):
            return plain
        ((name, inner),) = plain.items()
        if name == "object":
            return objects[inner]
        if name == "bytes":
            return bytes.fromhex(inner)
        if name == "dict":
            return {value(key): value(item) for key, item in inner}
        if name in _MANY:
            return _MANY[name](value(item) for item in inner)
        return named[name]._make(value(item) for item in inner)  # type: ignore[attr-defined]

    try:
        objects = [_empty(named[name]) for name, _inner in kept["objects"]]
        for made, (_name, inner) in zip(objects, kept["objects"], strict=True):
            for name, plain in inner.items():
                object.__setattr__(made, name, value(plain))
        return value(kept["state"])
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not what a fold has kept: {error}") from None


def _named(classes: Iterable[type]) -> dict[str, type]:
    """Classes by name; two private ones of two modules may have the same."""
    return {f"{kind.__module__}.{kind.__qualname__}": kind for kind in classes}


def _attributes(value: object) -> Iterable[str]:
    """What makes an object; a field that is not compared is not kept."""
    if is_dataclass(value):
        return [field.name for field in fields(value) if field.compare]
    return vars(value)


def _empty(kind: type) -> Any:
    """An object of which only what is not kept is there."""
    made: Any = object.__new__(kind)
    if is_dataclass(kind):
        for field in fields(kind):
            if not field.compare:
                object.__setattr__(made, field.name, field.default)
    return made
