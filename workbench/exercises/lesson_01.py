"""What lesson 01 asks, checks and needs: the notebook imports it by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.scenarios.run import Run, run
from workbench.trace.schema import Row

from . import credit_check as check
from . import credit_predict as predict
from . import measure
from .compare import compare_rules
from .credit_predict import granted_again, same_flows

__all__ = [
    "arrival",
    "check",
    "compare_rules",
    "granted_again",
    "opening",
    "predict",
    "real_receiver",
    "same_flows",
]


def arrival(played: Run, number: int) -> int:
    """`seq` of the row at which the first, second, ... message arrives at the receiver.

    Raises:
        ValueError: if not so many arrive.
    """
    return measure.seq_of(played.rows, "transfer", number)


def opening(played: Run, duration_us: int) -> list[Row]:
    """The rows of a run up to so many microseconds after its set-up: for charts of equal length."""
    end_us = played.rows[played.start_seq].t_us + duration_us
    return [row for row in played.rows if row.t_us <= end_us]


def real_receiver(parameters: Mapping[str, Any] | None = None) -> Run | None:
    """The queue of this lesson with a python-qpid-proton receiver on it.

    Returns:
        None, after one line that says why, where that library is not installed.
    """
    from workbench.peers.proton_peer import ProtonMissingError

    try:
        return run("credit", parameters={**(parameters or {}), "client": "proton"})
    except ProtonMissingError as error:
        print(f"Skipped: {error}")  # noqa: T201  the lesson's own line, in its cell
        return None
