"""Large traces out of small ones: copies of real runs, each a run of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from workbench.trace.files import GROUP_ROWS, TraceWriter, to_table
from workbench.trace.schema import Row, arrow_schema

__all__ = ["tile"]


def tile(path: str | os.PathLike[str], runs: Sequence[Sequence[Row]], rows: int) -> int:
    """Writes copies of runs to one Parquet file until there are so many rows; returns how many.

    Copy 3 of run `a` is run `a#3`; nothing else is changed, so that every copy is a whole trace
    and the same call writes the same file.

    Args:
        path: the file.
        runs: rows of one run each.
        rows: as many at least; the last round of copies is written whole.
    """
    import pyarrow as pa

    tables = [to_table(run, raw=False) for run in runs]
    written = copy = 0
    waiting: list[Any] = []
    with TraceWriter(path, raw=False) as writer:
        while written < rows:
            for run, table in zip(runs, tables, strict=True):
                name = pa.array([f"{run[0].run}#{copy}"] * len(run))
                waiting.append(table.set_column(0, arrow_schema().field(0), name))
                written += len(run)
            copy += 1
            if written >= rows or sum(table.num_rows for table in waiting) >= GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
    return written
