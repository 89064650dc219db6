"""A trace on disk, some of its connections at a time: each with all of its rows."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from .checks import checked
from .files import EMPTY, TraceFileError, batches, from_table, reason
from .schema import COLUMN_NAMES, Row

__all__ = ["Connections"]

PART_ROWS = 50_000
"""Rows of a part: they take some 75 MB, and two or three seconds to follow."""
HELD_OCTETS = 16 << 20
"""What waits, compressed, is in memory up to so many octets; more of it on disk."""

_WITHOUT_OCTETS = tuple(name for name in COLUMN_NAMES if name != "raw")


class Connections:
    """What a trace is made up of, and its rows by connection.

    Args:
        path: a Parquet file, or a folder of them.

    Attributes:
        runs: names of its runs.
        sizes: by connection how many rows it has; None: those of no connection.
        last_us: the time of its last row.

    Raises:
        TraceFileError: it is no trace, a faulty one, or has no row.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        found = checked(path)  # it may come from anybody
        if not found.count:
            raise TraceFileError(f"{path}: {EMPTY}")
        self.runs = set(found.last_us)
        self.last_us = max(found.last_us.values())
        self.sizes: Counter[str | None] = Counter()
        for (_, name), size in found.connections.items():
            self.sizes[name] += size
        self._files = found.files

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
        for file in self._files:
            # In large pieces: to read or write one costs as much as a thousand rows.
            for batch in batches(file, _WITHOUT_OCTETS):
                there = set(pc.unique(batch["connection"]).to_pylist())
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
