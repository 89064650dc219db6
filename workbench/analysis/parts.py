"""One capture into one file of a trace: what a task of an import does, here or on a cluster.

The task writes the file itself. To hand its rows to Java, so that Spark writes them, takes four
times as long as to read them: a row has ninety fields, and Java takes each by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from workbench.aside import aside
from workbench.capture.importer import Capture, CaptureError, part_name
from workbench.trace.files import TraceFileError, write_tables

from .errors import UNSEEN, AnalysisError
from .places import fetched, is_url, sent

__all__ = ["Part", "write_part"]


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
    """

    run: str
    rows: int = 0
    problem: str = ""
    kept: bool = False
    fatal: bool = False
    missing: bool = False
    remarks: str = ""


def write_part(
    capture: str, target: str, known: frozenset[str], port: int | None, redact: bool
) -> Part:
    """Reads a capture and writes its rows; nothing is raised.

    Args:
        capture: a path or URL.
        target: the file to write, a path or URL; its folder is there.
        known: names of parts that are there already.
        port: the broker's port, where it is not found by itself.
        redact: replace SASL responses and message bodies by zeros.
    """
    run = ""
    if not is_url(target) and not Path(target).parent.is_dir():
        return Part(run, problem=UNSEEN, fatal=True)  # whoever asked for it has made it
    missing = not is_url(capture) and not Path(capture).exists()
    try:
        with fetched(capture) as file:
            given = Capture(file, port=port, redact=redact)
            run = given.run
            if part_name(run) in known:
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
    return Part(run, rows, remarks="\n".join(given.report.remarks))


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
