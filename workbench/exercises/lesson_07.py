"""What lesson 07 asks, checks and needs: the notebook imports it by name."""

from __future__ import annotations

from . import quorum_check as check
from . import quorum_predict as predict
from .quorum_desk import sync_desk
from .quorum_real import real_chart, real_table
from .quorum_runs import (
    confirm_table,
    crash_table,
    crashed,
    disks,
    last,
    published,
    race,
    race_table,
    slowed,
    soft_limit_run,
    soft_limit_table,
    targets_table,
    then,
)

__all__ = [
    "check",
    "confirm_table",
    "crash_table",
    "crashed",
    "disks",
    "last",
    "predict",
    "published",
    "race",
    "race_table",
    "real_chart",
    "real_table",
    "slowed",
    "soft_limit_run",
    "soft_limit_table",
    "sync_desk",
    "targets_table",
    "then",
]
