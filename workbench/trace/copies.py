"""Large traces out of a few real runs: each run under several names, in one Parquet file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.trace.files import to_table
from workbench.trace.schema import Row, arrow_schema

__all__ = ["Part", "write_copies"]

GROUP_ROWS = 50_000
"""Rows of a Parquet row group: a reader can cut the file there, and pass over what it need not."""


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
        OSError: it cannot be written; nothing is left of it then.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema()
    written = 0
    part = Path(path).with_name(f".{Path(path).name}.{os.getpid()}.part")
    try:
        with pq.ParquetWriter(part, schema, compression="zstd") as writer:
            for each in parts:
                table: Any = to_table(each.rows, raw=False)
                for name in each.runs:
                    names = pa.array([name] * table.num_rows, type=pa.string())
                    copy = table.set_column(0, schema.field(0), names)
                    writer.write_table(copy, row_group_size=GROUP_ROWS)
                    written += table.num_rows
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return written
