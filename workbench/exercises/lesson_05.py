"""What lesson 05 asks, checks and needs: the notebook imports it by name."""

from __future__ import annotations

from . import publish_check as check
from . import publish_predict as predict
from .publish_runs import (
    brake_table,
    rate_table,
    stall_table,
    stalled,
    told_table,
    waiting,
)

__all__ = [
    "brake_table",
    "check",
    "predict",
    "rate_table",
    "stall_table",
    "stalled",
    "told_table",
    "waiting",
]
