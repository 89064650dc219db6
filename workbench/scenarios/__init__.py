"""Declared runs: parameters, acts, branches."""

from .branches import Branches
from .credit import CREDIT
from .declare import Action, ActionError, ActionSpec, Kind, Parameter, ParameterError, Scenario
from .race import RACE
from .registry import get, names, register
from .run import MAX_ROWS, Run, run
from .world import World

__all__ = [
    "CREDIT",
    "MAX_ROWS",
    "RACE",
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
    "register",
    "run",
]
