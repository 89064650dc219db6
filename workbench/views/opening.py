"""From a row of an answer to the stepper: the rows round it, with the state they begin with."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlparse

from workbench.trace.cut import AROUND, Cut
from workbench.trace.files import TraceFileError
from workbench.trace.naming import cut_row

from .stepper_doc import build
from .stepper_widget import StepperWidget, link_of

__all__ = ["open_row", "stepper_of"]


def open_row(row: Any, trace: Any, *, around: int = AROUND, title: str = "") -> StepperWidget:
    """Open a row of an answer in the stepper, one line in a notebook: `open_row(worst, trace)`.

    Args:
        row: of any answer: a Spark Row, a pandas Series, a dict.
        trace: the trace that was asked: its path, or what `open_trace` gave, or its DataFrame.
        around: so many rows before and after it are shown.
        title: what to call it; the run's name if empty.

    Raises:
        TraceFileError: the row is none of an answer, or of another trace.
    """
    return stepper_of(cut_row(row, path_of(trace), around=around), title=title)


def stepper_of(cut: Cut, *, title: str = "") -> StepperWidget:
    """The stepper over a cut, at the row that the cut surrounds."""
    note = ""
    if not cut.whole:
        first, last = cut.rows[0].seq, cut.rows[-1].seq
        note = f"opened at row {cut.seq:,}: rows {first:,} to {last:,} of {cut.last_seq + 1:,}"
        if first > cut.first_seq:
            note += "; what came before is in the counters"
    doc = build(
        cut.rows,
        start=cut.start,
        earlier=cut.earlier,
        explanations=cut.explanations,
        title=title or cut.run,
        note=note,
    )
    return StepperWidget(doc, cursor=cut.place + 1, link=link_of(doc, cut.row))


def path_of(trace: Any) -> str | os.PathLike[str]:
    """Where a trace lies.

    Raises:
        TraceFileError: it is no trace, or one that is not on this machine.
    """
    if isinstance(trace, str | os.PathLike):
        return trace
    frame = getattr(trace, "frame", trace)
    if not hasattr(frame, "inputFiles"):
        raise TraceFileError(
            f"{type(trace).__name__} is no trace; legal: a path, what open_trace gave, a DataFrame"
        )
    files = [urlparse(name) for name in frame.inputFiles()]
    elsewhere = [file.geturl() for file in files if file.scheme not in ("", "file")]
    if elsewhere or not files:
        where = f"lies in {elsewhere[0]}" if elsewhere else "has no file"
        raise TraceFileError(f"the trace {where}, and the stepper reads files of this machine")
    paths = [unquote(file.path) for file in files]
    return paths[0] if len(paths) == 1 else os.path.commonpath(paths)
