"""Large traces out of a few real runs: each run under several names, in one Parquet file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.trace.files import to_table, write_tables
from workbench.trace.schema import Row

__all__ = ["Part", "write_copies"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A run and the names under which it is written.

    Attributes:
        rows: the run's rows, in order.
        runs: names of its copies; nothing but the name differs.
    """

    rows: Sequence[Row]
    runs: tuple[str, ...]


def write_copies(path: str | os.PathLike[str], parts: Sequence[Part]) -> int:
    """Writes all copies of all parts to one file, without octets; gives the number of rows.

    Args:
        path: the file; what was there is replaced when all is written.
        parts: the runs.

    Raises:
        TraceFileError: it cannot be written; nothing is left of it then.
    """
    return write_tables(path, _copies(parts))


def _copies(parts: Sequence[Part]) -> Iterator[Any]:
    import pyarrow as pa

    for part in parts:
        table: Any = to_table(part.rows, raw=False)
        field = table.schema.field("run")
        for name in part.runs:
            names = pa.repeat(pa.scalar(name, field.type), table.num_rows)
            yield table.set_column(0, field, names)
