"""Which row of a trace the row of an answer means.

An answer's row comes as Spark, pandas or plain Python hand it out. Most name a row by `run` and
`seq`; one that speaks of a link, a session or a stretch of time means the row where the worst
began that it tells of, else the first row of it. A row of `compare` names one in each of its two
traces.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .cut import AROUND, Cut, StepError, cut, pieces_of, run_of
from .files import TraceFileError
from .fold import ABOUT

__all__ = ["SIDES", "cut_row", "plain", "side_of"]

SIDES = ("left", "right")
"""Of `compare`, in the order in which its traces are given."""

_SEQS = ("seq", "longest_seq", "worst_seq")
_BY_TRANSFERS = ("messages", "frames", "gap_us", "settlement_us")
"""Measures of `compare` of which a transfer is the place."""
_TEXTS = ("run", "connection", "link", "link_sender")
_NUMBERS = (*_SEQS, "session", "attach_no", "window_start_us")
_Path = str | os.PathLike[str]


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


def side_of(row: Any, side: str | None = None) -> str | None:
    """Which side a row of `compare` opens; None if the row is of another answer.

    Args:
        row: of any answer; see `plain`.
        side: the one that is wanted, else that with the larger value (the left one of equals, the
            other one if it has nothing to show).

    Raises:
        TraceFileError: there is no such side, or it has nothing to show.
    """
    values = plain(row)
    seqs = {one: values.get(f"{one}_seq") for one in SIDES}
    if any(f"{one}_seq" not in values for one in SIDES):
        if side is not None:
            raise StepError(f"side {side!r}: only a row of compare has sides")
        return None
    if side not in (None, *SIDES):
        raise StepError(f"no side {side!r}; legal: {', '.join(SIDES)}")
    there = [one for one in SIDES if seqs[one] is not None and side in (None, one)]
    if not there:
        which = f"the {side} trace has nothing" if side else "neither trace has anything"
        raise StepError(f"{which} to show for {values.get('measure')}")
    return max(there, key=lambda one: values.get(one) or 0)


def cut_row(
    row: Any, path: _Path | Sequence[_Path], *, around: int = AROUND, side: str | None = None
) -> Cut:
    """The rows round the one that a row of an answer means.

    Args:
        row: of any answer; see `plain`.
        path: the trace that was asked; of a row of `compare` both of them, the left one first.
        around: so many rows before and after it.
        side: of `compare`, which of both; see `side_of`.

    Raises:
        TraceFileError: it is no row of an answer, or of another trace.
    """
    values, chosen = plain(row), side_of(row, side)
    if isinstance(path, str | os.PathLike):
        if chosen is not None:
            raise StepError(
                "a row of compare names a row of each of two traces; give both: (left, right)"
            )
        return _cut_row(values, path, around)
    if chosen is None or len(path) != len(SIDES):
        takes = "two traces: (left, right)" if chosen else "one trace"
        raise StepError(f"this row is of an answer about {takes}; given: {len(path)}")
    return _cut_side(values, path[SIDES.index(chosen)], around, chosen)


def _cut_side(values: Mapping[str, Any], path: _Path, around: int, side: str) -> Cut:
    """The place of a measure of `compare`, which must be one in that trace."""
    measure = values.get("measure")
    try:
        place = {name: values.get(f"{side}_{name}") for name in ("run", "seq")}
        found = _cut_row(place, path, around)
        if measure == "duration_us":
            fits = found.seq == found.last_seq
        else:
            fits = found.row.kind == "transfer" if measure in _BY_TRANSFERS else found.row.is_frame
        if not fits:
            raise StepError(
                f"{path}: the row is of another trace: row {found.seq} of run {found.run} is no"
                f" place of {measure}"
            )
    except StepError as error:
        raise StepError(f"{error} (given as the {side} trace)") from None
    return found


def _cut_row(values: Mapping[str, Any], path: _Path, around: int) -> Cut:
    """Where the row of an answer about this trace means."""
    for kind, words, names in ((str, "a text", _TEXTS), (int, "a whole number", _NUMBERS)):
        for name in names:
            value = values.get(name)
            if value is not None and not isinstance(value, kind):
                raise TraceFileError(
                    f"the row's {name} is {value!r}, where a row is named by {words}"
                )
    run = run_of(path, values.get("run"))
    seq = next((values[name] for name in _SEQS if values.get(name) is not None), None)
    if seq is None:
        return cut(path, _first(values, path, run), run, around=around)
    found = cut(path, seq, run, around=around, about=values)
    _compare(values, found)
    return found


def _first(values: Mapping[str, Any], path: _Path, run: str) -> int:
    """The first row of the link, session or connection, from `window_start_us` on."""
    about = {name: values[name] for name in ABOUT if values.get(name) is not None}
    if not about and values.get("window_start_us") is None:
        raise TraceFileError(
            "the row names no row of a trace: it has neither seq nor a connection, a session or a"
            " link"
        )
    seq = pieces_of(path).first(run, about, values.get("window_start_us") or 0)
    if seq is None:
        words = ", ".join(f"{name} {value}" for name, value in about.items())
        raise StepError(f"{path}: run {run} has no row of {words}: the row is of another trace")
    return seq


def _compare(values: Mapping[str, Any], found: Cut) -> None:
    """An answer of another trace may have the same run and seq; its frame and link tell."""
    # A queue is on no connection: what it tells may be about whoever waits for it.
    of_queue = found.row.queue is not None and found.row.connection is None
    for name in ("frame_id",) if of_queue else ("frame_id", "connection"):
        told, there = values.get(name), getattr(found.row, name)
        if told not in (None, there):
            raise StepError(
                f"{found.path}: the row is of another trace: it tells of {name} {told}, and step"
                f" {found.seq} of run {found.run} has {'none' if there is None else there}"
            )
