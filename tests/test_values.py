"""Values: what they may hold, and that nothing becomes of another class than it was made."""

from __future__ import annotations

import ast
import enum
import importlib
import pkgutil
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

import workbench
from workbench.amqp10.values import Array, Described, MapPairs

PACKAGE = Path(workbench.__file__).parent
PACKAGES = (
    "amqp10", "amqp010", "amqp091", "queues", "broker", "frontends", "peers", "net", "sim",
    "capture",
)  # fmt: skip

SCALARS = (int, float, str, bytes, bool, UUID, enum.Enum, type(None), frozenset)
TREES = (Described, Array, MapPairs)
"""What the decoder makes of octets, and the encoder takes: such values hold values, no objects."""

TREE_HINTS = {
    dict[object, object], list[object], Mapping[typing.Any, typing.Any], Mapping[str, typing.Any],
    object,
}  # fmt: skip
"""The same where it is not named: maps, field tables and lists of AMQP values."""


def structs() -> list[type[msgspec.Struct]]:
    for package in PACKAGES:
        folder = importlib.import_module(f"workbench.{package}").__path__
        for module in pkgutil.iter_modules(folder):
            importlib.import_module(f"workbench.{package}.{module.name}")
    return sorted(set(_below(msgspec.Struct)), key=lambda kind: (kind.__module__, kind.__name__))


def _below(kind: type) -> Iterator[type]:
    for one in type.__subclasses__(kind):
        yield from _below(one)
        if one.__module__.startswith("workbench."):
            yield one


STRUCTS = structs()
UNSEEN = [kind for kind in STRUCTS if not kind.__struct_config__.gc]
"""Kinds that the garbage collector does not look at."""


def _hints(kind: type) -> dict[str, object]:
    """Types of the fields; names that a module imports for them alone are looked up everywhere."""
    names = {one.__name__: one for one in STRUCTS}
    return typing.get_type_hints(kind, localns=names)


def _looped(hint: object, asked: frozenset[object]) -> bool:
    """Whether a value of this type could, in the end, hold what holds it."""
    if hint in TREE_HINTS:
        return False
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType, tuple, frozenset, typing.Annotated):
        return any(_looped(one, asked) for one in typing.get_args(hint) if one is not ...)
    if not isinstance(hint, type):
        return True
    if issubclass(hint, msgspec.Struct):
        # A value of the type or of any kind of it; frozen, so that it holds only what was before.
        kinds = {hint, *_below(hint)} - asked
        return any(
            not kind.__struct_config__.frozen
            or any(
                _looped(field, asked | kinds)
                for name, field in _hints(kind).items()
                if name in kind.__struct_fields__
            )
            for kind in kinds
        )
    return not issubclass(hint, SCALARS + TREES)


@pytest.mark.parametrize("kind", UNSEEN, ids=lambda kind: kind.__name__)
def test_what_the_collector_does_not_see_is_part_of_no_cycle(kind):
    """By the types of its fields it leads to values alone: a cycle through it would never go."""
    assert not _looped(kind, frozenset())


def test_the_collector_sees_what_holds_an_endpoint_or_a_callback():
    """The test above tells the one from the other."""
    seen = {kind.__name__ for kind in STRUCTS if kind.__struct_config__.gc}
    assert {"DeliveryReceived", "FlowReceived", "Publish", "Enqueue", "Selection"} <= seen
    assert {"Frame", "Transfer", "Stored", "Deliver"} <= {kind.__name__ for kind in UNSEEN}


def test_no_object_changes_its_class():
    """`x.__class__ = ...` stands nowhere in the package: a value is made as what it is."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr == "__class__"
        and isinstance(node.ctx, ast.Store)
    ]
    assert found == []
