"""Traces for Spark: plain Parquet, checked before the first question.

What is checked: that there are rows, the schema's version and columns, that no column that may not
be null is, and that the rows are in order of `(run, seq)` without doubles. The footers tell most of
it; order is read from two columns. Each fault gives one line that names file and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.trace.schema import COLUMNS, SCHEMA_VERSION, arrow_schema, version_in

from .chunks import Chunks
from .errors import AnalysisError
from .places import is_url, spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Trace", "count_rows", "open_trace", "told", "trace_files"]

_REQUIRED = tuple(column.name for column in COLUMNS if not column.nullable)
_CAPTURE = re.compile(r"workbench\.[\w.]+\.(?:CaptureError|AnalysisError): (.*)")
_FILE = re.compile(r"(?:file:/*)?(/[^\s'\"]+?\.parquet)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A trace that was checked.

    Attributes:
        frame: its rows.
        rows: how many.
        chunks: how questions are to cut it.
    """

    frame: DataFrame
    rows: int
    chunks: Chunks


def open_trace(spark: SparkSession, path: str | Path, *, check: bool = True) -> Trace:
    """The trace in a Parquet file or a folder of them.

    Args:
        spark: the session.
        path: a file, a folder, or what else Spark can read (`s3a://...`): that is not checked here.
        check: read `run` and `seq` of every row to be sure of their order.

    Raises:
        AnalysisError: it is no trace, or a faulty one; the text names file and column.
    """
    from .schemas import TRACE

    if is_url(path):
        with told():
            frame = spark.read.schema(TRACE).parquet(str(path))
            rows = frame.count()
        if not rows:
            raise AnalysisError(f"{path}: holds no rows: an empty trace")
        return Trace(frame=frame, rows=rows, chunks=Chunks.of(rows))
    files = trace_files(path)
    rows = sum(_checked(file) for file in files)
    if not rows:
        raise AnalysisError(f"{path}: holds no rows: an empty trace")
    if check:
        _check_order(files)
    frame = spark.read.schema(TRACE).parquet(*(spark_path(file) for file in files))
    return Trace(frame=frame, rows=rows, chunks=Chunks.of(rows))


def count_rows(path: str | Path) -> int:
    """How many rows a trace has, from the footers alone.

    Raises:
        AnalysisError: it is no trace.
    """
    return sum(_checked(file) for file in trace_files(path))


def trace_files(path: str | Path) -> list[Path]:
    """The Parquet files that a path stands for, in order of their names.

    Raises:
        AnalysisError: there are none.
    """
    place = Path(path)
    if not place.exists():
        raise AnalysisError(f"{place}: no such file or folder")
    if place.is_file():
        return [place]
    found = sorted(
        file
        for file in place.rglob("*.parquet")
        if file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(place).parts)
    )
    if not found:
        raise AnalysisError(f"{place}: no Parquet file (*.parquet) in this folder")
    return found


@contextmanager
def told() -> Iterator[None]:
    """What goes wrong while Spark reads becomes one line that names the file."""
    try:
        yield
    except AnalysisError:
        raise
    except Exception as error:
        text = str(error)
        bad = _CAPTURE.search(text)
        if bad is not None:
            raise AnalysisError(bad[1].strip()) from None
        file = _FILE.search(text)
        where = file[1] if file else "the trace"
        if "FileNotFound" in text or "FILE_NOT_EXIST" in text or "does not exist" in text:
            raise AnalysisError(f"{where}: was deleted or moved while it was read") from None
        if "FAILED_READ_FILE" in text or "is not a Parquet file" in text:
            raise AnalysisError(f"{where}: is damaged or was changed while it was read") from None
        if "No space left" in text:
            raise AnalysisError("no space left on the disk; nothing was kept") from None
        if "OutOfMemory" in text or "Java heap space" in text:
            raise AnalysisError(
                "Spark's heap is too small for this; WORKBENCH_SPARK_MEMORY=2g gives it more"
            ) from None
        raise


def _checked(file: Path) -> int:
    """Rows of a file whose footer is that of a trace."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if file.stat().st_size == 0:
            raise AnalysisError(f"{file}: is empty (0 octets)")
        with pq.ParquetFile(file) as parquet:
            _check_schema(file, parquet.schema_arrow)
            _check_nulls(file, parquet)
            return int(parquet.metadata.num_rows)
    except FileNotFoundError:
        raise AnalysisError(f"{file}: was deleted or moved while it was read") from None
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise AnalysisError(f"{file}: is not a Parquet file, or damaged: {reason}") from None


def _check_schema(file: Path, schema: Any) -> None:
    version = version_in(schema.metadata)
    if version is not None and version != SCHEMA_VERSION:
        raise AnalysisError(
            f"{file}: a trace of schema version {version}, and this is version {SCHEMA_VERSION}"
        )
    wanted = arrow_schema()
    for column in wanted:
        if column.name not in schema.names:
            raise AnalysisError(f"{file}: not a trace: column {column.name} is missing")
        found = schema.field(column.name).type
        if str(found) != str(column.type) and not _nested(column.type):
            raise AnalysisError(
                f"{file}: not a trace: column {column.name} is {found}, not {column.type}"
            )


def _nested(kind: Any) -> bool:
    """Lists and structs differ by writer in the names of their inside; Spark checks them."""
    import pyarrow as pa

    return bool(pa.types.is_nested(kind))


def _check_nulls(file: Path, parquet: Any) -> None:
    """No null where the schema forbids them, from the statistics where the writer kept them."""
    import pyarrow.compute as pc

    places = {parquet.schema.column(n).path: n for n in range(len(parquet.schema))}
    for number in range(parquet.metadata.num_row_groups):
        group = parquet.metadata.row_group(number)
        for name in _REQUIRED:
            statistics = group.column(places[name]).statistics
            if statistics is not None and statistics.has_null_count:
                nulls = statistics.null_count
            else:
                column = parquet.read_row_group(number, columns=[name]).column(0)
                nulls = pc.sum(pc.is_null(column)).as_py() or 0
            if nulls:
                raise AnalysisError(
                    f"{file}: column {name} is null in {nulls} rows, and may never be"
                )


def _check_order(files: list[Path]) -> None:
    """Rows in order of `(run, seq)`, no pair twice; runs may follow each other in any order."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    last: dict[str, int] = {}
    for file in files:
        try:
            with pq.ParquetFile(file) as parquet:
                for batch in parquet.iter_batches(batch_size=1 << 20, columns=["run", "seq"]):
                    runs, seqs = batch.column(0), batch.column(1)
                    for start, stop in _spans(runs, pa, pc):
                        _check_span(file, runs[start].as_py(), seqs.slice(start, stop - start),
                                    last, pc)  # fmt: skip
        except (pa.ArrowException, OSError) as error:
            raise AnalysisError(
                f"{file}: was deleted, moved or changed while it was read: "
                f"{str(error).splitlines()[0]}"
            ) from None


def _spans(runs: Any, pa: Any, pc: Any) -> Iterator[tuple[int, int]]:
    """Where one run follows another in a batch."""
    if not len(runs):
        return
    encoded = pc.run_end_encode(runs)
    start = 0
    for stop in encoded.run_ends.to_pylist():
        yield start, stop
        start = stop


def _check_span(file: Path, run: str, seqs: Any, last: dict[str, int], pc: Any) -> None:
    first = seqs[0].as_py()
    if run in last and first <= last[run]:
        _refuse(file, run, first, last[run])
    ahead = pc.subtract(seqs.slice(1), seqs.slice(0, len(seqs) - 1))
    if len(ahead) and pc.min(ahead).as_py() <= 0:
        at = pc.index(pc.less_equal(ahead, 0), True).as_py()
        _refuse(file, run, seqs[at + 1].as_py(), seqs[at].as_py())
    last[run] = seqs[-1].as_py()


def _refuse(file: Path, run: str, seq: int, before: int) -> None:
    if seq == before:
        raise AnalysisError(f"{file}: run {run}: column seq has {seq} twice")
    raise AnalysisError(
        f"{file}: run {run}: rows are out of order: in column seq {seq} comes after {before}"
    )
