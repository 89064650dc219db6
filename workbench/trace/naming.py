"""Which row of a trace the row of an answer means.

An answer's row comes as Spark, pandas or plain Python hand it out. Most name a row by `run` and
`seq`; one that speaks of a link, a session or a stretch of time means the row where the worst
began that it tells of, else the first row of it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from .cut import ABOUT, AROUND, Cut, StepError, cut, place_of, run_of
from .files import TraceFileError

__all__ = ["cut_row", "plain"]

_SEQS = ("seq", "longest_seq")


def plain(row: Any) -> dict[str, Any]:
    """A row of an answer as a dict of plain values; what is missing is None.

    Args:
        row: a Spark Row, a pandas Series or a frame of one row, a named tuple, or a mapping.

    Raises:
        TraceFileError: it is none of these, or more than one row.
    """
    if isinstance(row, Mapping):
        found = dict(row)
    elif hasattr(row, "asDict"):
        found = row.asDict()
    elif hasattr(row, "_asdict"):
        found = row._asdict()
    elif hasattr(row, "to_dict") and hasattr(row, "iloc"):
        if hasattr(row, "columns"):
            if len(row) != 1:
                raise TraceFileError(f"these are {len(row)} rows; open one of them: rows.iloc[0]")
            row = row.iloc[0]
        found = row.to_dict()
    else:
        raise TraceFileError(
            f"{type(row).__name__} is no row of an answer; legal: a row of Spark or pandas, a dict"
        )
    return {str(name): _value(value) for name, value in found.items()}


def _value(value: Any) -> Any:
    """What pandas makes of a number in a column that has gaps, made a number again."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer():
            return int(value)
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def cut_row(row: Any, path: str | os.PathLike[str], *, around: int = AROUND) -> Cut:
    """The rows round the one that a row of an answer means.

    Args:
        row: of any answer; see `plain`.
        path: the trace that was asked.
        around: so many rows before and after it.

    Raises:
        TraceFileError: it is no row of an answer, or of another trace.
    """
    values = plain(row)
    run = values.get("run")
    if run is not None and not isinstance(run, str):
        raise TraceFileError(f"the row's run is {run!r}, and a run is named by a text")
    run = run_of(path, run)
    seq = next((values[name] for name in _SEQS if values.get(name) is not None), None)
    if seq is None:
        return cut(path, _first(values, path, run), run, around=around)
    if not isinstance(seq, int):
        raise TraceFileError(f"the row's seq is {seq!r}, and a row is named by a whole number")
    found = cut(path, seq, run, around=around)
    _compare(values, found)
    return found


def _first(values: Mapping[str, Any], path: str | os.PathLike[str], run: str) -> int:
    """The row where the worst began that the answer tells of, or the first it is about."""
    about = {name: values[name] for name in ABOUT if values.get(name) is not None}
    if not about and values.get("window_start_us") is None:
        raise TraceFileError(
            "the row names no row of a trace: it has neither seq nor a connection, a session or a"
            " link"
        )
    seq = place_of(path, run, values)
    if seq is None:
        words = ", ".join(f"{name} {value}" for name, value in about.items())
        raise StepError(f"{path}: run {run} has no row of {words}: the row is of another trace")
    return seq


def _compare(values: Mapping[str, Any], found: Cut) -> None:
    """An answer of another trace may have the same run and seq; its frame and link tell."""
    for name in ("frame_id", "connection"):
        told, there = values.get(name), getattr(found.row, name)
        if told not in (None, there):
            raise StepError(
                f"{found.path}: the row is of another trace: it tells of {name} {told}, and step"
                f" {found.seq} of run {found.run} has {'none' if there is None else there}"
            )
