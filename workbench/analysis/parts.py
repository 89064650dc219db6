"""One capture into one file of a trace: what a process or a task of an import does.

The task writes the file itself. To hand its rows to Java, so that Spark writes them, takes four
times as long as to read them: a row has ninety fields, and Java takes each by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from workbench.aside import aside
from workbench.capture.importer import Capture, CaptureError, part_name
from workbench.trace.files import TraceFileError, write_tables

from .errors import UNSEEN, AnalysisError
from .places import exists, fetched, is_url, sent

__all__ = ["Order", "Part", "Progress", "Take", "write_part"]

Progress = Callable[[int, int], None]
"""Told how many captures of how many are done."""


class Order(NamedTuple):
    """How captures are to be read.

    Attributes:
        place: the folder to write into, a path or URL; it is there.
        there: the folder whose parts need not be read again; empty if all are to be.
        port: the broker's port, where it is not found by itself.
        redact: replace SASL responses and message bodies by zeros.
    """

    place: str
    there: str
    port: int | None
    redact: bool


class Part(NamedTuple):
    """What came of a capture.

    Attributes:
        run: name of its run; empty if it could not be read that far.
        rows: that were written.
        problem: why nothing was written; empty if all is well.
        kept: its part is there already, so it was not read.
        fatal: the problem is the place that is written to, not the capture.
        missing: there is no such capture where the task runs.
        remarks: what of it is not in the trace, or is damaged; a line each.
        report: all that was found in it, lines.
    """

    run: str
    rows: int = 0
    problem: str = ""
    kept: bool = False
    fatal: bool = False
    missing: bool = False
    remarks: str = ""
    report: str = ""


Take = Callable[[int, Part], None]
"""Told the number of a capture and what came of it."""


def write_part(capture: str, number: int, order: Order) -> Part:
    """Reads a capture and writes its rows to `NUMBER.parquet`; nothing is raised.

    Args:
        capture: a path or URL.
        number: of the capture.
        order: how it is to be read.
    """
    target = f"{order.place}/{number}.parquet"
    run = ""
    if not is_url(target) and not Path(order.place).is_dir():
        return Part(run, problem=UNSEEN, fatal=True)  # whoever asked for it has made it
    missing = not is_url(capture) and not Path(capture).exists()
    try:
        with fetched(capture) as file:
            given = Capture(file, port=order.port, redact=order.redact)
            run = given.run
            if order.there and exists(f"{order.there}/{part_name(run)}"):
                return Part(run, kept=True)
            rows = _written(target, given.tables())
    except TraceFileError as error:
        # It names the file aside, which nobody but the import knows.
        return Part(run, problem=str(error).removeprefix(f"{target}: "), fatal=True)
    except (AnalysisError, CaptureError) as error:
        return Part(run, problem=str(error), missing=missing)
    except OSError as error:
        problem = f"{Path(capture).name}: {error.strerror or error}"
        return Part(run, problem=problem, missing=missing)
    remarks, lines = given.report.remarks, given.report.lines()
    return Part(run, rows, remarks="\n".join(remarks), report="\n".join(lines))


def _written(target: str, tables: Iterable[Any]) -> int:
    """Writes the rows, and sends the file where it is to be."""
    if not is_url(target):
        return write_tables(target, tables)
    with aside() as folder:
        file = folder / "part.parquet"
        rows = write_tables(file, tables)
        try:
            sent(file, target)
        except AnalysisError as error:
            raise TraceFileError(str(error)) from None
    return rows
