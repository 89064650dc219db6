"""The scenarios there are, by name: those that a module of this package declares."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from .action import refusal
from .declare import DECLARED, ParameterError, Scenario


def get(name: str) -> Scenario:
    """The scenario of that name.

    Raises:
        ParameterError: if there is none; the text lists the names.
    """
    _discover()
    if not isinstance(name, str) or name not in DECLARED:
        told = {"name": repr(name), "listed": ", ".join(names())}
        raise ParameterError(refusal("name.scenario", **told))
    return DECLARED[name]


def names() -> tuple[str, ...]:
    """Names of all scenarios, in order."""
    _discover()
    return tuple(sorted(DECLARED))


@cache
def _discover() -> None:
    """Import what may declare one: a new scenario is one new file, and nothing else."""
    assert __package__ is not None
    for found in pkgutil.iter_modules(importlib.import_module(__package__).__path__):
        importlib.import_module(f"{__package__}.{found.name}")
