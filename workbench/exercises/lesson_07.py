"""What lesson 07 asks, checks and needs: the notebook imports it by name."""

from __future__ import annotations

from . import quorum_check as check
from . import quorum_predict as predict
from .quorum_desk import sync_desk
from .quorum_real import real_chart, real_table, senders_table
from .quorum_runs import (
    confirm_table,
    crash_table,
    crashed,
    disks,
    race,
    race_table,
    slowed,
    soft_limit_run,
    soft_limit_table,
    targets_table,
)
from .table import tables

__all__ = [
    "check",
    "confirm_table",
    "crash_table",
    "crashed",
    "disks",
    "predict",
    "race",
    "race_table",
    "real_chart",
    "real_table",
    "senders_table",
    "slowed",
    "soft_limit_run",
    "soft_limit_table",
    "sync_desk",
    "tables",
    "targets_table",
]
