"""Declared runs: parameters, acts, branches."""

from .action import Action, ActionError
from .branches import Branches
from .declare import ActionSpec, Kind, Parameter, ParameterError, Scenario
from .registry import get, names
from .run import MAX_ROWS, Run, run
from .world import World

__all__ = [
    "MAX_ROWS",
    "Action",
    "ActionError",
    "ActionSpec",
    "Branches",
    "Kind",
    "Parameter",
    "ParameterError",
    "Run",
    "Scenario",
    "World",
    "get",
    "names",
    "run",
]
