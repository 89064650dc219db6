"""What is checked of a trace on disk before anybody asks it something.

That there is one, the schema's version and columns, that no column that may not be null is, that
every frame has an author and a number, and that the rows are in order of `(run, seq)` without
doubles. The footers tell most of it; for the rest a few short columns are read. Each fault gives
one line that names file and column.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .files import TraceFileError, batches, open_file, trace_files
from .schema import COLUMNS, FRAME_EVENTS

__all__ = ["OF_FRAMES", "REQUIRED", "Checked", "checked", "refuse_frame", "refuse_nulls"]

REQUIRED: tuple[str, ...] = tuple(column.name for column in COLUMNS if not column.nullable)
OF_FRAMES = {
    "from_peer": "a frame's row says who sent it",
    "frame_id": "a frame's row has the number by which all rows of the frame are known; in a"
    " capture its seq will do",
    "connection": "a frame's row says on which connection it was sent",
}
"""Columns that other rows need not have, and frames' rows must: why."""
_ORDER = ("run", "seq", "t_us", "connection")

Connections = Counter[tuple[str, str | None]]
"""By run and connection how many rows it has; None is the name of those that concern none."""
_Last = dict[str, tuple[int, int, Path]]
"""By run, `seq` and time of its last row, and the file that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A trace that was checked.

    Attributes:
        files: its files, in order of their names.
        count: how many rows.
        connections: how many rows each has; none if only the footers were read.
        last_us: by run the time of its last row, likewise.
    """

    files: list[Path]
    count: int
    connections: Connections
    last_us: dict[str, int]


def checked(path: str | os.PathLike[str], *, rows: bool = True) -> Checked:
    """The trace in a Parquet file or a folder of them; it may have no rows.

    Args:
        path: the file or folder.
        rows: read a few columns of every row too, to be sure of their order, and that a frame has
            an author and a number.

    Raises:
        TraceFileError: it is no trace, or a faulty one.
    """
    files = trace_files(path)
    count = 0
    for file in files:
        with open_file(file) as parquet:
            _check_nulls(file, parquet)
            count += parquet.metadata.num_rows
    last, connections = _check_rows(files) if rows else ({}, Connections())
    times = {run: t_us for run, (_, t_us, _) in last.items()}
    return Checked(files=files, count=count, connections=connections, last_us=times)


def refuse_nulls(where: Path | str, name: str, count: int) -> None:
    """Raises a `TraceFileError`: nulls in a column that may have none."""
    raise TraceFileError(f"{where}: column {name} is null in {count} rows, and may never be")


def refuse_frame(where: Path | str, name: str, run: str, seq: int) -> None:
    """Raises a `TraceFileError`: a frame without what `OF_FRAMES` asks for."""
    raise TraceFileError(
        f"{where}: run {run}: column {name} is null at seq {seq}, and {OF_FRAMES[name]}"
    )


def _check_nulls(file: Path, parquet: Any) -> None:
    """No null where the schema forbids them, from the statistics where the writer kept them."""
    for number in range(parquet.metadata.num_row_groups):
        for name in REQUIRED:
            nulls = _nulls_told(parquet.metadata, number, name)
            if nulls is None:
                column = parquet.read_row_group(number, columns=[name]).column(0)
                nulls = column.null_count
            if nulls:
                refuse_nulls(file, name, nulls)


def _nulls_told(metadata: Any, number: int, name: str) -> int | None:
    """Nulls of a column in a row group; None if there are no statistics, or no such column."""
    group = metadata.row_group(number)
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == name:
            statistics = column.statistics
            told = statistics is not None and statistics.has_null_count
            return int(statistics.null_count) if told else None
    return None


def _check_rows(files: list[Path]) -> tuple[_Last, Connections]:
    """What the footers do not tell: what frames lack, the order of rows, and whose they are."""
    last: _Last = {}
    connections = Connections()
    for file in files:
        for name in OF_FRAMES:
            _check_frames(file, name)
        for batch in batches(file, _ORDER, size=1 << 20, words=("connection",)):
            _check_order(file, batch, last, connections)
    return last, connections


def _check_frames(file: Path, name: str) -> None:
    """No frame without what is in this column, which other rows need not have.

    Only row groups with a null in it are looked at, and in columns of a few words each.
    """
    with open_file(file) as parquet:
        metadata = parquet.metadata
    groups = [
        number
        for number in range(metadata.num_row_groups)
        if _nulls_told(metadata, number, name) != 0
    ]
    columns = ("run", "seq", "event", name)
    for batch in batches(file, columns, groups=groups, words=("event", "from_peer")):
        runs, seqs, event, found = batch.columns
        frames = pc.is_in(event, pa.array(FRAME_EVENTS))
        at = pc.index(pc.and_(frames, pc.is_null(found)), True).as_py()
        if at >= 0:
            refuse_frame(file, name, runs[at].as_py(), seqs[at].as_py())


def _check_order(file: Path, batch: Any, last: _Last, connections: Connections) -> None:
    """Rows in order of `(run, seq)`, no pair twice, and no time that goes back.

    Runs may follow each other in any order, and go on in the next file: `last` tells where each is.
    """
    runs, seqs, times, names = batch.columns
    start = 0
    for stop in pc.run_end_encode(runs).run_ends.to_pylist() if len(runs) else ():
        length = stop - start
        run = runs[start].as_py()
        _check_span(file, run, seqs.slice(start, length), times.slice(start, length), last)
        for each in names.slice(start, length).value_counts().to_pylist():
            connections[run, each["values"]] += each["counts"]
        start = stop


def _check_span(file: Path, run: str, seqs: Any, times: Any, last: _Last) -> None:
    """Rows of one run that follow each other in a file; `last` has what came before them."""
    before, then, there = last.get(run, (-1, times[0].as_py(), file))
    first = seqs[0].as_py()
    if first <= before:
        _refuse(file, run, first, before, there)
    ahead = pc.subtract(seqs.slice(1), seqs.slice(0, len(seqs) - 1))
    if len(ahead) and pc.min(ahead).as_py() <= 0:
        at = pc.index(pc.less_equal(ahead, 0), True).as_py()
        _refuse(file, run, seqs[at + 1].as_py(), seqs[at].as_py(), file)
    back = pc.less(times.slice(1), times.slice(0, len(times) - 1))
    if times[0].as_py() < then or pc.any(back).as_py():
        at = 0 if times[0].as_py() < then else pc.index(back, True).as_py() + 1
        raise TraceFileError(
            f"{file}: run {run}: column t_us goes back at seq {seqs[at].as_py()}: a run's time "
            "never decreases"
        )
    last[run] = seqs[-1].as_py(), times[-1].as_py(), file


def _refuse(file: Path, run: str, seq: int, before: int, there: Path) -> None:
    """Raises a `TraceFileError`: a row is not behind the one before it, which is there."""
    if there != file:
        raise TraceFileError(
            f"{file}: run {run}: begins at seq {seq}, and {there.name} before it has rows up to"
            f" seq {before}: remove one if both have the same rows, else name them in order"
        )
    if seq == before:
        raise TraceFileError(f"{file}: run {run}: column seq has {seq} twice")
    raise TraceFileError(
        f"{file}: run {run}: rows are out of order: in column seq {seq} comes after {before}"
    )
