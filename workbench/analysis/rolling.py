"""A folder that a running recorder fills, as a stream of rows: `spark.readStream`.

The recorder replaces its latest file as a whole, with more rows, until it begins another; Spark's
own file source would read such a file once and never again. Here the offset is how many rows of
which file were read. A file's rows never change, they only become more, so the rows between two
offsets are the same whenever they are read: that is what a restart needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from .errors import AnalysisError

if TYPE_CHECKING:
    from pyspark.sql import types as T

__all__ = ["RollingSource"]

BATCH_ROWS = 20_000
MAX_ROWS = 50_000
"""Rows of one batch: an answer over a backlog comes in steps."""
_NUMBERED = re.compile(r"(.*?)-(\d+)")
_Offset = dict[str, dict[str, int]]


class RollingSource(DataSource):
    """The files of a recorder's folder as a stream, with the columns of a trace; `raw` is null.

    Options: `path`, the folder; `maxRows`, of one batch.
    """

    @classmethod
    def name(cls) -> str:
        """What stands in `format(...)`."""
        return "workbench-rolling"

    def schema(self) -> T.StructType:
        """That of a trace."""
        from .schemas import TRACE

        return TRACE

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:  # noqa: N802
        """Reads what has come to the folder."""
        return _Reader(dict(self.options))


class _Stretch(InputPartition):
    """Some rows of one file, for one task."""

    def __init__(self, path: str, first: int, end: int) -> None:
        super().__init__(path)
        self.path, self.first, self.end = path, first, end


class _Reader(DataSourceStreamReader):
    """Offset: by recorder (a file's name without its number) the latest file and its rows read."""

    def __init__(self, options: dict[str, str]) -> None:
        lowered = {name.lower(): value for name, value in options.items()}
        self.folder = lowered.get("path", "")
        self.max_rows = int(lowered.get("maxrows") or MAX_ROWS)

    def initialOffset(self) -> _Offset:  # noqa: N802
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.max_rows)

    def latestOffset(self, start: _Offset, limit: ReadLimit) -> _Offset:  # noqa: N802
        room = self.max_rows if isinstance(limit, ReadMaxRows) else None
        if isinstance(limit, ReadAllAvailable):
            room = None
        end = {name: dict(place) for name, place in (start or {}).items()}
        for recorder, number, path in _files(self.folder):
            place = end.get(recorder, {"file": -1, "rows": 0})
            if number < place["file"]:
                continue
            done = place["rows"] if number == place["file"] else 0
            rows = _count(path)
            if rows < done:
                raise AnalysisError(
                    f"{path}: has {rows} rows, and {done} were read: a recorder was started anew in"
                    " this folder; follow it again, with another checkpoint if one was named"
                )
            new = rows - done
            if room is not None:
                new = min(new, room)
                room -= new
            if new or number > place["file"]:
                end[recorder] = {"file": number, "rows": done + new}
            if room == 0:
                break
        return end

    def partitions(self, start: _Offset, end: _Offset) -> Sequence[InputPartition]:
        found = []
        for recorder, number, path in _files(self.folder):
            upto = end.get(recorder)
            since = start.get(recorder, {"file": -1, "rows": 0})
            if upto is None or not since["file"] <= number <= upto["file"]:
                continue
            first = since["rows"] if number == since["file"] else 0
            last = upto["rows"] if number == upto["file"] else _count(path)
            if first < last:
                found.append(_Stretch(str(path), first, last))
        return found

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from workbench.trace.schema import arrow_schema, fitted

        assert isinstance(partition, _Stretch)
        at = 0
        with pq.ParquetFile(partition.path) as parquet:
            names = [name for name in arrow_schema().names if name != "raw"]
            for batch in parquet.iter_batches(batch_size=BATCH_ROWS, columns=names):
                first, end = max(0, partition.first - at), min(batch.num_rows, partition.end - at)
                at += batch.num_rows
                if first < end:
                    part = pa.Table.from_batches([fitted(batch.slice(first, end - first))])
                    yield from part.cast(arrow_schema()).to_batches()
                if at >= partition.end:
                    return


def _files(folder: str) -> list[tuple[str, int, Path]]:
    """(recorder, number, path) of the whole files in order; what has a temporary name is none."""
    found = []
    for path in Path(folder).glob("*.parquet"):
        if path.name.startswith((".", "_")):
            continue
        match = _NUMBERED.fullmatch(path.stem)
        recorder, number = (match[1], int(match[2])) if match else (path.stem, 0)
        found.append((recorder, number, path))
    return sorted(found)


def _count(path: Path) -> int:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as parquet:
        return int(parquet.metadata.num_rows)
