"""A trace on disk, some of its connections at a time: each with all of its rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from .files import BATCH_ROWS, TraceFileError, batches, from_table, open_file, trace_files
from .schema import COLUMN_NAMES, Row

__all__ = ["Connections"]

PART_ROWS = 50_000
"""Rows of a part: they take some 75 MB, and two or three seconds to follow."""

_WITHOUT_OCTETS = tuple(name for name in COLUMN_NAMES if name != "raw")
_Group = tuple[Path, int]


class Connections:
    """What a trace is made up of, and its rows by connection.

    Args:
        path: a Parquet file, or a folder of them.

    Attributes:
        runs: names of its runs.
        sizes: by connection how many rows it has; None: those of no connection.
        last_us: the time of its last row.

    Raises:
        TraceFileError: it is no trace, or has no row.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.runs: set[str] = set()
        self.sizes: Counter[str | None] = Counter()
        self.last_us = 0
        self._groups: dict[_Group, set[str | None]] = {}  # the connections in each row group
        for file in trace_files(path):
            with open_file(file) as parquet:
                count = parquet.metadata.num_row_groups
            for group in range(count):
                self._look_at(file, group)
        if not self.sizes:
            raise TraceFileError(f"{path}: holds no rows: an empty trace")

    def _look_at(self, file: Path, group: int) -> None:
        there = self._groups[file, group] = set()
        for batch in batches(file, ["run", "t_us", "connection"], groups=[group]):
            self.runs.update(pc.unique(batch["run"]).to_pylist())
            self.last_us = max(self.last_us, pc.max(batch["t_us"]).as_py() or 0)
            found = {pair["values"]: pair["counts"]
                     for pair in pc.value_counts(batch["connection"]).to_pylist()}  # fmt: skip
            self.sizes.update(found)
            there.update(found)

    def parts(self, most: int = PART_ROWS) -> Iterator[list[Row]]:
        """The rows in order, without their octets; in each part all of some connections.

        Args:
            most: rows of a part. One connection may have more; rows of none are in every part.
        """
        for names in self._dealt(most):
            wanted = pa.array(names, pa.string())
            rows: list[Row] = []
            for (file, group), there in self._groups.items():
                if there.isdisjoint(names):
                    continue
                for batch in batches(file, _WITHOUT_OCTETS, size=BATCH_ROWS, groups=[group]):
                    rows += from_table(batch.filter(pc.is_in(batch["connection"], wanted)))
            yield rows

    def _dealt(self, most: int) -> Iterator[list[str | None]]:
        names: list[str | None] = []
        rows = 0
        for name, size in self.sizes.items():
            if name is not None:
                if names and rows + size > most:
                    yield [None, *names]
                    names, rows = [], 0
                names.append(name)
                rows += size
        yield [None, *names]
