"""Captures into one trace, many at a time: `spark.read.format("amqp")`.

One task for each file; it decodes with the importer that `workbench import` uses for a single
capture, so the rows are the same, and hands them over as Arrow batches. A file that is no good is
told by name and skipped. A capture's run is named by its stem and its content, and its part of the
trace by its run: what is there already is not decoded again, so an import that was stopped goes on
where it was.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from workbench.trace.schema import arrow_schema

from .errors import AnalysisError
from .reading import told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql import types as T

__all__ = ["AmqpSource", "Ingested", "captures", "ingest", "register"]

BATCH_ROWS = 20_000
SUFFIXES = (".pcap", ".pcapng", ".cap", ".txt", ".log", ".gz")

Progress = Callable[[int, int], None]


def register(spark: SparkSession) -> None:
    """Makes `spark.read.format("amqp").load(PATH)` known to a session."""
    spark.dataSource.register(AmqpSource)


def captures(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """The capture files that paths stand for: files, folders of them, or patterns with `*`.

    Raises:
        AnalysisError: a path stands for none.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found: list[Path] = []
    for each in given:
        place = Path(each)
        if place.is_dir():
            some = sorted(
                file
                for file in place.rglob("*")
                if file.is_file() and file.suffix in SUFFIXES and not file.name.startswith(".")
            )
        elif any(sign in str(each) for sign in "*?["):
            some = sorted(Path(name) for name in glob.glob(str(each), recursive=True))
        else:
            some = [place]
        if not some:
            raise AnalysisError(f"{each}: no capture there ({', '.join(SUFFIXES)})")
        found += [file for file in some if file not in found]
    return found


class AmqpSource(DataSource):
    """Captures as a table of Spark's, with the columns of a trace.

    Options: `path` (file, folder, pattern, or a JSON list of them), `port`, `redact` (`true`),
    `problems` (a folder in which each bad file leaves a line; without it a bad file stops the job).
    """

    @classmethod
    def name(cls) -> str:
        """What stands in `format(...)`."""
        return "amqp"

    def schema(self) -> T.StructType:
        """That of a trace."""
        from .schemas import TRACE

        return TRACE

    def reader(self, schema: T.StructType) -> DataSourceReader:
        """Reads the files that `path` stands for."""
        return _Reader(dict(self.options))


class _File(InputPartition):
    """One capture for one task."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        lowered = {name.lower(): value for name, value in options.items()}
        path = lowered.get("path", "")
        if not path:
            raise AnalysisError("format amqp needs a path: a capture, a folder or a pattern")
        named = json.loads(path) if path.startswith("[") else path
        self.files = [str(file) for file in captures(named)]
        self.port = int(lowered["port"]) if lowered.get("port") else None
        self.redact = lowered.get("redact", "").lower() == "true"
        self.problems = lowered.get("problems")

    def partitions(self) -> Sequence[InputPartition]:
        return [_File(file) for file in self.files]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        from workbench.trace.files import to_table
        from workbench.trace.importer import CaptureError, import_capture

        assert isinstance(partition, _File)
        try:
            result = import_capture(partition.path, port=self.port, redact=self.redact)
        except CaptureError as error:
            if self.problems is None:
                raise
            _note(self.problems, partition.path, str(error))
            return
        rows = result.rows
        for start in range(0, len(rows), BATCH_ROWS):
            yield from to_table(rows[start : start + BATCH_ROWS]).to_batches()


def _note(folder: str, path: str, text: str) -> None:
    """Leave a line where the driver finds it; a task that is tried again writes the same."""
    name = f"{Path(path).name}.{abs(hash(path))}"
    (Path(folder) / name).write_text(text, encoding="utf-8")


@dataclass(slots=True, kw_only=True)
class Ingested:
    """What an import came to.

    Attributes:
        files: captures that are in the trace.
        rows: rows that were decoded now.
        kept: captures whose part was there already.
        failures: one line for each capture that was skipped.
    """

    files: int = 0
    rows: int = 0
    kept: int = 0
    failures: list[str] = field(default_factory=list)


def ingest(
    spark: SparkSession,
    paths: str | Path | Iterable[str | Path],
    folder: str | Path,
    *,
    port: int | None = None,
    redact: bool = False,
    progress: Progress | None = None,
) -> Ingested:
    """Imports captures into a folder of Parquet files, one or more for each capture, in parallel.

    Args:
        spark: the session.
        paths: captures, folders of them, patterns.
        folder: where the trace is to be; made if it is missing. Parts that are there stay.
        port: the broker's port, where it is not found by itself.
        redact: replace SASL responses and message bodies by zeros.
        progress: told how many captures of how many are done.

    Raises:
        AnalysisError: no capture was good, or the disk is full; parts that are whole stay.
    """
    from workbench.trace.importer import CaptureError, run_name

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    result, waiting, seen = Ingested(), [], set()
    for file in captures(paths):
        try:
            run = run_name(file)
        except CaptureError as error:
            result.failures.append(str(error))
            continue
        if run in seen:
            result.failures.append(f"{file.name}: the same capture was given twice")
        elif _part(target, run).exists():
            result.kept += 1
        else:
            waiting.append(file)
        seen.add(run)
    register(spark)
    done, total = 0, len(waiting)
    step = max(1, 4 * spark.sparkContext.defaultParallelism)
    for start in range(0, total, step):
        if progress is not None:
            progress(done, total)
        _some(spark, waiting[start : start + step], target, port, redact, result)
        done = min(total, start + step)
    if progress is not None:
        progress(total, total)
    if not result.files and not result.kept:
        raise AnalysisError("; ".join(result.failures) or "no capture was given")
    return result


def _part(folder: Path, run: str) -> Path:
    return folder / f"{run}.parquet"


def _some(
    spark: SparkSession,
    files: list[Path],
    target: Path,
    port: int | None,
    redact: bool,
    result: Ingested,
) -> None:
    """Import a few captures at once; each part appears whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    aside = target / f".import.{os.getpid()}"
    problems = aside / "problems"
    problems.mkdir(parents=True, exist_ok=True)
    options = {"problems": str(problems), "redact": str(redact).lower()}
    if port is not None:
        options["port"] = str(port)
    try:
        with told():
            frame = (
                spark.read.format("amqp")
                .options(**options)
                .load(json.dumps([str(file) for file in files]))
            )
            frame.write.mode("overwrite").option("maxRecordsPerFile", 0).parquet(
                str(aside / "rows")
            )
        for written in sorted((aside / "rows").glob("*.parquet")):
            with pq.ParquetFile(written) as parquet:
                if not parquet.metadata.num_rows:
                    continue
                head = next(parquet.iter_batches(batch_size=1, columns=["run"]))
                run = head.column(0)[0].as_py()
                whole = aside / f"{run}.parquet"
                # Spark does not keep what our schema says beside the columns: its version.
                with pq.ParquetWriter(whole, arrow_schema(), compression="zstd") as writer:
                    for batch in parquet.iter_batches(batch_size=BATCH_ROWS):
                        table = pa.Table.from_batches([batch]).cast(arrow_schema())
                        writer.write_table(table)
                        result.rows += batch.num_rows
            whole.rename(_part(target, run))
            result.files += 1
        result.failures += [note.read_text(encoding="utf-8") for note in sorted(problems.iterdir())]
    except OSError as error:
        raise AnalysisError(f"{target}: cannot write there: {error.strerror or error}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
