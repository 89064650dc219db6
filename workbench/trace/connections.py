"""A trace on disk, some of its connections at a time: each with all of its rows."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from .files import TraceFileError, batches, from_table, open_file, reason, trace_files
from .schema import COLUMN_NAMES, Row

__all__ = ["Connections"]

PART_ROWS = 50_000
"""Rows of a part: they take some 75 MB, and two or three seconds to follow."""
HELD_OCTETS = 16 << 20
"""What waits, compressed, is in memory up to so many octets; more of it on disk."""

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

        The trace is read once: what each part has of it waits, in a temporary file if it is much.

        Args:
            most: rows of a part. One connection may have more; rows of none are in every part.

        Raises:
            TraceFileError: it is damaged, or there is no room for that file.
        """
        dealt = list(self._dealt(most))
        try:
            with tempfile.SpooledTemporaryFile(HELD_OCTETS) as aside:
                for pieces in self._put_aside(dealt, aside):
                    rows: list[Row] = []
                    for place in pieces:
                        aside.seek(place)
                        rows += from_table(pa.ipc.open_stream(aside).read_all())
                    yield rows
        except OSError as error:
            where = tempfile.gettempdir()
            raise TraceFileError(f"{where}: rows cannot wait there: {reason(error)}") from error

    def _put_aside(self, parts: list[list[str | None]], aside: IO[bytes]) -> list[list[int]]:
        """Writes each part's rows into a file; gives the places where they begin, by part."""
        pieces: list[list[int]] = [[] for _ in parts]
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        for (file, group), there in self._groups.items():
            # In large pieces: to read or write one costs as much as a thousand rows.
            for batch in batches(file, _WITHOUT_OCTETS, groups=[group]):
                for names, its in zip(parts, pieces, strict=True):
                    if there.isdisjoint(names):
                        continue
                    wanted = pc.is_in(batch["connection"], pa.array(names, pa.string()))
                    piece = pa.BufferOutputStream()
                    with pa.ipc.new_stream(piece, batch.schema, options=options) as stream:
                        stream.write(batch.filter(wanted))
                    its.append(aside.tell())
                    aside.write(piece.getvalue())
        return pieces

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
