"""Large traces out of small ones: a run under many names, or one run that goes on and on.

`tile` makes many runs. What a busy link asks of a question is one run with one link of millions of
rows, and `stretch` makes that: a steady run repeats itself but for its counters, which go on by the
same each time; so a stretch that is written once more, with its counters moved on, is what the run
would have become. Numbers of 32 bits go round as on the wire.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench import serial
from workbench.trace.copies import Part, write_copies
from workbench.trace.files import to_table
from workbench.trace.schema import Row, arrow_schema

GROUP_ROWS = 50_000
_PLAIN = ("seq", "t_us", "frame_id")
_MOVING = (
    "delivery_count", "delivery_id", "first", "last", "next_outgoing_id", "next_incoming_id",
)  # fmt: skip
"""Fields of frames and ledgers that count through a run; all others stay as they are."""
_NESTED = ("frame", "ledger")


class StretchError(ValueError):
    """The rows hold no stretch that repeats; the text is one line."""


def tile(path: str | os.PathLike[str], runs: Sequence[Sequence[Row]], rows: int) -> int:
    """Writes copies of runs to one Parquet file until there are so many rows; returns how many.

    Copy 3 of run `a` is run `a#3`; nothing else is changed, so that every copy is a whole trace.

    Args:
        path: the file.
        runs: rows of one run each.
        rows: as many at least; every run is written as often as the others.
    """
    copies = range(-(-rows // sum(map(len, runs))))
    return write_copies(
        path,
        [Part(rows=run, runs=tuple(f"{run[0].run}#{copy}" for copy in copies)) for run in runs],
    )


def stretch(path: str | os.PathLike[str], run: Sequence[Row], rows: int, at: int = 0) -> int:
    """Writes a run with a stretch of it repeated until there are so many rows; returns how many.

    What comes after the stretch in the run is left out: the run is cut in the middle of its work.

    Args:
        path: the file.
        run: a run that has become steady before row `at` and goes on so for two stretches.
        rows: as many at least.
        at: where to look for the stretch; default: the middle of the run.

    Raises:
        StretchError: the run does not repeat itself there.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    start = at or len(run) // 2
    length = _period(run, start)
    once = to_table(run[start : start + length], raw=False)
    again = to_table(run[start + length : start + 2 * length], raw=False)
    # A block of several repeats: Parquet likes long groups, and Arrow long columns.
    repeats = max(1, GROUP_ROWS // length)
    block = pa.concat_tables([once] * repeats).combine_chunks()
    turns = pa.concat_arrays([pa.repeat(number, length) for number in range(repeats)])
    steps = {name: pa.concat_arrays([step] * repeats) for name, step in _steps(once, again).items()}
    head = to_table(run[:start], raw=False)
    written, number = start, 0
    part = Path(path).with_name(f".{Path(path).name}.part")
    try:
        with pq.ParquetWriter(part, arrow_schema(), compression="zstd") as writer:
            writer.write_table(head, row_group_size=GROUP_ROWS)
            while written < rows:
                moved = _moved(block, steps, pc.add(turns, number))
                writer.write_table(moved, row_group_size=GROUP_ROWS)
                written += block.num_rows
                number += repeats
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return written


def _period(run: Sequence[Row], start: int) -> int:
    """After how many rows the same happens again."""
    shapes = [
        (row.vantage, row.event, row.kind, row.link, tuple(row.frame or ()), row.brakes)
        for row in run[start:]
    ]
    for length in range(1, len(shapes) // 2 + 1):
        if shapes[0] == shapes[length] and shapes[:length] == shapes[length : 2 * length]:
            first, then = run[start : start + length], run[start + length : start + 2 * length]
            if len({_place(b) - _place(a) for a, b in zip(first, then, strict=True)}) == 1:
                return length
    raise StretchError(f"rows from {start} on do not repeat themselves in this run")


def _place(row: Row) -> int:
    return row.t_us


def _steps(once: Any, again: Any) -> dict[str, Any]:
    """By how much each counter of each row has gone on from one stretch to the next."""
    import pyarrow.compute as pc

    steps = {name: pc.subtract(_column(again, name), _column(once, name)) for name in _PLAIN}
    for column in _NESTED:
        there, then = _column(once, column), _column(again, column)
        for field in _MOVING:
            if there.type.get_field_index(field) >= 0:
                gone = _round(pc.subtract(then.field(field), there.field(field)))
                steps[f"{column}.{field}"] = pc.fill_null(gone, 0)
    return {name: pc.fill_null(step, 0) for name, step in steps.items()}


def _moved(table: Any, steps: dict[str, Any], times: Any) -> Any:
    """The rows so many stretches later."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def replaced(table: Any, name: str, values: Any) -> Any:
        place = table.schema.get_field_index(name)
        return table.set_column(place, table.schema.field(place), values)

    for name in _PLAIN:
        gone = pc.multiply(steps[name], times)
        table = replaced(table, name, pc.add(_column(table, name), gone))
    for column in _NESTED:
        whole = _column(table, column)
        fields = []
        for number, inner in enumerate(whole.type):
            values, step = whole.field(number), steps.get(f"{column}.{inner.name}")
            if step is not None:
                values = _round(pc.add(values, _round(pc.multiply(step, times))))
            fields.append(values)
        array = pa.StructArray.from_arrays(fields, fields=list(whole.type), mask=pc.is_null(whole))
        table = replaced(table, column, array)
    return table


def _column(table: Any, name: str) -> Any:
    """A column in one piece."""
    return table[name].combine_chunks()


def _round(values: Any) -> Any:
    """Modulo 2^32, negative ones too."""
    import pyarrow.compute as pc

    return pc.bit_wise_and(values, serial.HALF * 2 - 1)
