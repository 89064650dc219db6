"""Declared runs: parameters, acts, branches."""

from .action import Action, ActionError
from .asking import ASKING
from .branches import Branches
from .credit import CREDIT
from .declare import ActionSpec, Kind, Parameter, ParameterError, Scenario
from .handover import HANDOVER
from .publishers import PUBLISHERS
from .quorum import QUORUM
from .quorum_storm import QUORUM_CHAOS
from .race import RACE
from .registry import get, names, register
from .run import MAX_ROWS, Run, run
from .two_queues import TWO_QUEUES
from .two_senders import TWO_SENDERS
from .two_targets import TWO_TARGETS
from .windows import WINDOWS
from .world import World

__all__ = [
    "ASKING",
    "CREDIT",
    "HANDOVER",
    "MAX_ROWS",
    "PUBLISHERS",
    "QUORUM",
    "QUORUM_CHAOS",
    "RACE",
    "TWO_QUEUES",
    "TWO_SENDERS",
    "TWO_TARGETS",
    "WINDOWS",
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
