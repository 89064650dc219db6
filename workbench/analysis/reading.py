"""Traces for Spark: plain Parquet, checked before the first question (`trace/checks.py`).

What only Spark can reach is checked by Spark, for the same faults and in the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from workbench.trace.checks import OF_FRAMES, REQUIRED, checked, refuse_frame, refuse_nulls
from workbench.trace.files import EMPTY, TraceFileError
from workbench.trace.schema import (
    COLUMN_NAMES,
    FRAME_EVENTS,
    SCHEMA_VERSION,
    VERSION_KEY,
    misfit,
)

from .chunks import Chunks
from .errors import ENDED, UNSEEN, AnalysisError
from .places import is_url, spark_path
from .session import room_mb

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Trace", "open_trace", "told"]

_CAPTURE = re.compile(r"workbench\.[\w.]+\.(?:CaptureError|AnalysisError): (.*)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_FULL = ("No space left", "Disk quota exceeded", "File too large")
_FILE = re.compile(r"(?:file:/*)?(/[^\s'\"]+?\.parquet)|file:/*(/[^\s'\"]+?)\.?(?=\s|$)")


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


def open_trace(spark: SparkSession, path: str | Path) -> Trace:
    """The trace in a Parquet file or a folder of them.

    Args:
        spark: the session.
        path: a file, a folder, or what else Spark can read (`s3a://...`).

    Raises:
        AnalysisError: it is no trace, or a faulty one; the text names file and column.
    """
    from .schemas import TRACE

    if is_url(path):
        with told():
            return _open_url(spark, str(path))
    with told():
        found = checked(path)
        if not found.count:
            raise AnalysisError(f"{path}: {EMPTY}")
        frame = spark.read.schema(TRACE).parquet(*(spark_path(file) for file in found.files))
    return Trace(frame=frame, rows=found.count, chunks=_cut(spark, found.count, found.connections))


def _cut(
    spark: SparkSession, rows: int, connections: Mapping[tuple[str, str | None], int] | None = None
) -> Chunks:
    """How to cut such a trace in the memory that this session has; see `Chunks.of`."""
    return Chunks.of(rows, connections, room_mb=room_mb(spark.conf))


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
    words = misfit(arrow.with_metadata({VERSION_KEY: (versions or [SCHEMA_VERSION])[0]}))
    if words:
        raise AnalysisError(f"{url}: {words}")
    frame = spark.read.schema(TRACE).parquet(url)
    nulls = [F.count(F.when(F.col(name).isNull(), 1)).alias(f"no_{name}") for name in REQUIRED]
    span = F.max("seq") - F.min("seq") + 1
    framed = F.col("event").isin(*FRAME_EVENTS)
    lacks = {f"lacks_{name}": F.col(name).isNull() & framed for name in OF_FRAMES}
    runs = frame.groupBy("run").agg(
        F.count("*").alias("rows"),
        span.alias("span"),
        *(F.min(F.when(those, F.col("seq"))).alias(name) for name, those in lacks.items()),
        *nulls,
    )
    told_of = runs.agg(
        *(
            F.min(F.when(F.col(name).isNotNull(), F.struct("run", name))).alias(name)
            for name in lacks
        ),
        F.sum("rows").alias("rows"),
        F.min(F.when(F.col("rows") > F.col("span"), F.col("run"))).alias("twice"),
        *(F.sum(f"no_{name}").alias(f"no_{name}") for name in REQUIRED),
    ).first()
    assert told_of is not None
    if not told_of["rows"]:
        raise AnalysisError(f"{url}: {EMPTY}")
    for name in REQUIRED:
        if told_of[f"no_{name}"]:
            refuse_nulls(url, name, told_of[f"no_{name}"])
    for name in OF_FRAMES:
        if told_of[f"lacks_{name}"] is not None:
            refuse_frame(url, name, *told_of[f"lacks_{name}"])
    if told_of["twice"] is not None:
        raise AnalysisError(f"{url}: run {told_of['twice']}: column seq has a number twice")
    return Trace(frame=frame, rows=told_of["rows"], chunks=_cut(spark, told_of["rows"]))


@contextmanager
def told() -> Iterator[None]:
    """What goes wrong while Spark reads becomes one line that names the file."""
    try:
        yield
    except AnalysisError:
        raise
    except TraceFileError as error:
        raise AnalysisError(str(error)) from None
    except ConnectionRefusedError:
        raise AnalysisError(ENDED) from None
    except Exception as error:
        text = str(error)
        bad = _CAPTURE.search(text)
        if bad is not None:
            raise AnalysisError(bad[1].strip()) from None
        if any(words in text for words in _FULL):
            raise AnalysisError("no space left on the disk; nothing was kept") from None
        file = _FILE.search(text)
        where = _local(file[1] or file[2]) if file else "the trace"
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
                "Spark's heap is too small for this; WORKBENCH_SPARK_MEMORY=4g gives it more"
            ) from None
        raise


def _local(path: str) -> str:
    """A file's name as this machine has it; Spark tells it as in a URL."""
    return path if Path(path).exists() else unquote(path)
