"""What lesson 03 asks, checks and needs: the notebook imports it by name."""

from __future__ import annotations

from . import drain_check as check
from . import drain_predict as predict
from .drain_runs import (
    drain_cases,
    drained,
    outdated,
    rabbit_drain,
    rabbit_stop,
    stopped,
)
from .hand_runs import handovers
from .measure import arrival
from .timeout import timed_get

__all__ = [
    "arrival",
    "check",
    "drain_cases",
    "drained",
    "handovers",
    "outdated",
    "predict",
    "rabbit_drain",
    "rabbit_stop",
    "stopped",
    "timed_get",
]
