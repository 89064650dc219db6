"""Traces for Spark: plain Parquet, checked before the first question.

What is checked: that there are rows, the schema's version and columns, that no column that may not
be null is, that every frame has an author, and that the rows are in order of `(run, seq)` without
doubles. The footers tell most of it; for the rest a few short columns are read. Each fault gives
one line that names file and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.trace.schema import (
    AMQP_1_0,
    COLUMN_NAMES,
    COLUMNS,
    FRAME_EVENTS,
    SCHEMA_VERSION,
    VERSION_KEY,
    fitted,
    misfit,
    words_of,
)

from .chunks import Chunks
from .errors import UNSEEN, AnalysisError
from .places import is_url, spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Trace", "count_rows", "open_trace", "told", "trace_files"]

_ORDER = ["run", "seq", "t_us"]
_AUTHOR = ["event", "protocol", "from_peer"]
_REQUIRED = tuple(column.name for column in COLUMNS if not column.nullable)
_CAPTURE = re.compile(r"workbench\.[\w.]+\.(?:CaptureError|AnalysisError): (.*)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_FULL = ("No space left", "Disk quota exceeded", "File too large")
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
        path: a file, a folder, or what else Spark can read (`s3a://...`).
        check: read a few columns of every row too, to be sure of their order, and that a frame has
            an author.

    Raises:
        AnalysisError: it is no trace, or a faulty one; the text names file and column.
    """
    from .schemas import TRACE

    if is_url(path):
        with told():
            return _open_url(spark, str(path))
    files = trace_files(path)
    rows = sum(_checked(file) for file in files)
    if not rows:
        raise AnalysisError(f"{path}: holds no rows: an empty trace")
    runs = _check_rows(files) if check else None
    frame = spark.read.schema(TRACE).parquet(*(spark_path(file) for file in files))
    return Trace(frame=frame, rows=rows, chunks=Chunks.of(rows, runs))


def _open_url(spark: SparkSession, url: str) -> Trace:
    """A trace that only Spark can reach, checked by Spark.

    The order of its rows makes no difference to Spark; that none is there twice is told from each
    run's count and its first and last `seq`.
    """
    from pyspark.sql import functions as F

    from .schemas import TRACE

    there = spark.read.parquet(url)
    known = [column for column in there.schema if column.name in COLUMN_NAMES]
    versions = [column.metadata[VERSION_KEY] for column in known if VERSION_KEY in column.metadata]
    arrow = there.select(*(column.name for column in known)).limit(0).toArrow().schema
    _check_schema(url, arrow.with_metadata({VERSION_KEY: (versions or [SCHEMA_VERSION])[0]}))
    frame = spark.read.schema(TRACE).parquet(url)
    nulls = [F.count(F.when(F.col(name).isNull(), 1)).alias(f"no_{name}") for name in _REQUIRED]
    span = F.max("seq") - F.min("seq") + 1
    unsigned = (
        F.col("from_peer").isNull()
        & (F.col("protocol") == AMQP_1_0)
        & F.col("event").isin(*FRAME_EVENTS)
    )
    runs = frame.groupBy("run").agg(
        F.count("*").alias("rows"),
        span.alias("span"),
        F.min(F.when(unsigned, F.col("seq"))).alias("unsigned"),
        *nulls,
    )
    told_of = runs.agg(
        F.min(F.when(F.col("unsigned").isNotNull(), F.struct("run", "unsigned"))).alias("unsigned"),
        F.sum("rows").alias("rows"),
        F.min(F.when(F.col("rows") > F.col("span"), F.col("run"))).alias("twice"),
        *(F.sum(f"no_{name}").alias(f"no_{name}") for name in _REQUIRED),
    ).first()
    assert told_of is not None
    if not told_of["rows"]:
        raise AnalysisError(f"{url}: holds no rows: an empty trace")
    for name in _REQUIRED:
        nulls_there = told_of[f"no_{name}"]
        if nulls_there:
            raise AnalysisError(
                f"{url}: column {name} is null in {nulls_there} rows, and may never be"
            )
    if told_of["unsigned"] is not None:
        _refuse_unsigned(url, *told_of["unsigned"])
    if told_of["twice"] is not None:
        raise AnalysisError(f"{url}: run {told_of['twice']}: column seq has a number twice")
    return Trace(frame=frame, rows=told_of["rows"], chunks=Chunks.of(told_of["rows"]))


def count_rows(path: str | Path, *, check: bool = False) -> int:
    """How many rows a trace has, from the footers alone.

    Args:
        path: a file or a folder.
        check: as in `open_trace`.

    Raises:
        AnalysisError: it is no trace, or a faulty one.
    """
    files = trace_files(path)
    rows = sum(_checked(file) for file in files)
    if check:
        _check_rows(files)
    return rows


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
        if any(words in text for words in _FULL):
            raise AnalysisError("no space left on the disk; nothing was kept") from None
        file = _FILE.search(text)
        where = file[1] if file else "the trace"
        if "FileNotFound" in text or "FILE_NOT_EXIST" in text or "does not exist" in text:
            if file is not None and Path(where).exists():
                raise AnalysisError(f"{where}: {UNSEEN}") from None
            raise AnalysisError(f"{where}: was deleted or moved while it was read") from None
        program = _NO_PROGRAM.search(text)
        if program is not None:
            raise AnalysisError(
                f"Spark's executors have no {program[1]}; PYSPARK_PYTHON names the Python they have"
            ) from None
        if "FAILED_READ_FILE" in text or "is not a Parquet file" in text:
            raise AnalysisError(f"{where}: is damaged or was changed while it was read") from None
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


def _check_schema(where: Path | str, schema: Any) -> None:
    words = misfit(schema)
    if words:
        raise AnalysisError(f"{where}: {words}")


def _check_nulls(file: Path, parquet: Any) -> None:
    """No null where the schema forbids them, from the statistics where the writer kept them."""
    import pyarrow.compute as pc

    places = {parquet.schema.column(n).path: n for n in range(len(parquet.schema))}
    for number in range(parquet.metadata.num_row_groups):
        for name in _REQUIRED:
            nulls = _nulls_told(parquet, number, places[name])
            if nulls is None:
                column = parquet.read_row_group(number, columns=[name]).column(0)
                nulls = pc.sum(pc.is_null(column)).as_py() or 0
            if nulls:
                raise AnalysisError(
                    f"{file}: column {name} is null in {nulls} rows, and may never be"
                )


def _nulls_told(parquet: Any, number: int, place: int) -> int | None:
    """Nulls of a column in a row group; None if the writer kept no statistics."""
    statistics = parquet.metadata.row_group(number).column(place).statistics
    if statistics is None or not statistics.has_null_count:
        return None
    return int(statistics.null_count)


def _check_rows(files: list[Path]) -> dict[str, int]:
    """What the footers do not tell: authors of frames, and the order of rows.

    Returns:
        By run how many rows it has, if none of its rows is missing.
    """
    import pyarrow as pa

    last: dict[str, tuple[int, int]] = {}
    for file in files:
        try:
            with words_of(file, _AUTHOR) as parquet:
                _check_authors(file, parquet)
                _check_order(file, parquet, last)
        except (pa.ArrowException, OSError) as error:
            raise AnalysisError(
                f"{file}: was deleted, moved or changed while it was read: "
                f"{str(error).splitlines()[0]}"
            ) from None
    return {run: seq + 1 for run, (seq, _) in last.items()}


def _check_authors(file: Path, parquet: Any) -> None:
    """No frame without `from_peer`, which other rows need not have.

    Only row groups with a null in it are looked at, and in columns of a few words each.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    def among(column: Any, words: Sequence[str]) -> Any:
        return pc.take(pc.is_in(column.dictionary, pa.array(words)), column.indices)

    places = [n for n, column in enumerate(parquet.schema) if column.path == "from_peer"]
    for number in range(parquet.metadata.num_row_groups):
        if places and _nulls_told(parquet, number, places[0]) == 0:
            continue
        before = 0
        for batch in parquet.read_row_group(number, columns=_AUTHOR).to_batches():
            event, protocol, author = fitted(batch, _AUTHOR).columns
            frame = pc.and_(among(event, FRAME_EVENTS), among(protocol, [AMQP_1_0]))
            at = pc.index(pc.and_(frame, pc.is_null(author)), True).as_py()
            if at >= 0:
                named = parquet.read_row_group(number, columns=["run", "seq"])
                run, seq = (column[before + at].as_py() for column in named.columns)
                _refuse_unsigned(file, run, seq)
            before += batch.num_rows


def _refuse_unsigned(where: Path | str, run: str, seq: int) -> None:
    raise AnalysisError(
        f"{where}: run {run}: column from_peer is null at seq {seq}, and a frame's row says who "
        "sent it"
    )


def _check_order(file: Path, parquet: Any, last: dict[str, tuple[int, int]]) -> None:
    """Rows in order of `(run, seq)`, no pair twice, and no time that goes back.

    Runs may follow each other in any order, and go on in the next file: `last` tells where each is.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in parquet.iter_batches(batch_size=1 << 20, columns=_ORDER):
        runs, *numbers = (batch.column(name) for name in _ORDER)
        for start, stop in _spans(runs, pa, pc):
            seqs, times = (each.slice(start, stop - start) for each in numbers)
            _check_span(file, runs[start].as_py(), seqs, times, last, pc)


def _spans(runs: Any, pa: Any, pc: Any) -> Iterator[tuple[int, int]]:
    """Where one run follows another in a batch."""
    if not len(runs):
        return
    encoded = pc.run_end_encode(runs)
    start = 0
    for stop in encoded.run_ends.to_pylist():
        yield start, stop
        start = stop


def _check_span(
    file: Path, run: str, seqs: Any, times: Any, last: dict[str, tuple[int, int]], pc: Any
) -> None:
    """Rows of one run that follow each other in a file; `last` has what came before them."""
    before, then = last.get(run, (-1, times[0].as_py()))
    first = seqs[0].as_py()
    if first <= before:
        _refuse(file, run, first, before)
    ahead = pc.subtract(seqs.slice(1), seqs.slice(0, len(seqs) - 1))
    if len(ahead) and pc.min(ahead).as_py() <= 0:
        at = pc.index(pc.less_equal(ahead, 0), True).as_py()
        _refuse(file, run, seqs[at + 1].as_py(), seqs[at].as_py())
    back = pc.less(times.slice(1), times.slice(0, len(times) - 1))
    if times[0].as_py() < then or pc.any(back).as_py():
        at = 0 if times[0].as_py() < then else pc.index(back, True).as_py() + 1
        raise AnalysisError(
            f"{file}: run {run}: column t_us goes back at seq {seqs[at].as_py()}: a run's time "
            "never decreases"
        )
    last[run] = seqs[-1].as_py(), times[-1].as_py()


def _refuse(file: Path, run: str, seq: int, before: int) -> None:
    if seq == before:
        raise AnalysisError(f"{file}: run {run}: column seq has {seq} twice")
    raise AnalysisError(
        f"{file}: run {run}: rows are out of order: in column seq {seq} comes after {before}"
    )
