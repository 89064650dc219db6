"""Captures into one trace, many at a time.

One task for each file, with the importer that `workbench import` uses for a single capture, so that
the rows are the same; never more of a capture is in memory than some batches of rows. A task writes
its part of the trace itself, and only names pass through the driver.

A capture's run is named by its stem and its content, and its part of the trace by its run: what is
there already is not decoded again, so an import that was stopped goes on where it was.
"""

from __future__ import annotations

import os
import sysconfig
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.aside import aside_until_exit
from workbench.capture.importer import part_name

from .errors import UNSEEN, AnalysisError
from .jobs import watched
from .parts import Part
from .places import Target, captures, is_url, target_at
from .reading import told
from .session import in_one_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Ingested", "captures", "ingest"]

STEPS = 20
"""An import is done in so many steps at most: what a step has done is safe from a stop."""
STEP_FILES = 16
"""The least captures in a step."""

PART = (
    "number long, run string, rows long, problem string, kept boolean, fatal boolean,"
    " missing boolean, remarks string"
)
"""Of `Part`, and of which capture it came."""

_SHIPPED = "spark.workbench.shipped"

Progress = Callable[[int, int], None]


def _give_to_workers(spark: SparkSession) -> None:
    """The machines of a cluster get this package; what it imports they must have themselves."""
    from pyspark.sql import is_remote

    if is_remote() or not in_one_process(spark.conf) or not _found_by_workers():
        _ship(spark)


def _found_by_workers() -> bool:
    """Whether another Python of this machine finds this package: installed, or named to it."""
    home = Path(__file__).parent.parent.parent
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    known = [*(name for name in named if name), os.getcwd(), sysconfig.get_path("purelib")]
    return any(Path(name).resolve() == home.resolve() for name in known) or _is_editable()


def _is_editable() -> bool:
    try:
        return bool(metadata.distribution("amqp-flow-workbench").read_text("direct_url.json"))
    except metadata.PackageNotFoundError:
        return False


def _ship(spark: SparkSession) -> None:
    """Give this package to every machine of a cluster, once for each session."""
    if spark.conf.get(_SHIPPED, ""):
        return
    package = Path(__file__).parent.parent
    # Executors fetch it when they begin, and one may begin late: it stays until this process ends.
    whole = f"{aside_until_exit()}/workbench.zip"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(package.rglob("*.py")):
            packed.write(file, file.relative_to(package.parent))
    spark.addArtifacts(whole, pyfile=True)
    spark.conf.set(_SHIPPED, "true")


@dataclass(slots=True, kw_only=True)
class Ingested:
    """What an import came to.

    Attributes:
        files: captures that are in the trace.
        rows: rows that were decoded now.
        kept: captures whose part was there already.
        failures: one line for each capture that was skipped.
        remarks: what of the captures is not in the trace, or is damaged; a line each.
    """

    files: int = 0
    rows: int = 0
    kept: int = 0
    failures: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def ingest(
    spark: SparkSession,
    paths: str | Path | Iterable[str | Path],
    folder: str | Path,
    *,
    port: int | None = None,
    redact: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> Ingested:
    """Imports captures into a folder of Parquet files, one for each capture, in parallel.

    Args:
        spark: the session.
        paths: captures, folders of them, patterns; local ones or URLs.
        folder: where the trace is to be; made if it is missing. Parts that are there stay.
        port: the broker's port, where it is not found by itself.
        redact: replace SASL responses and message bodies by zeros.
        strict: if one capture is not good, keep none of those read now.
        progress: told how many captures of how many are done.

    Raises:
        AnalysisError: no capture was good, or the disk is full; parts that are whole stay.
    """
    files = captures(paths)
    target = target_at(folder)
    try:
        _give_to_workers(spark)
        # What is there already may hold the secrets that are to be taken out.
        there = set() if redact else target.names()
        job = _Job(spark=spark, target=target, port=port, redact=redact, there=there)
        total = len(files)
        step = max(STEP_FILES, -(-total // STEPS))
        for start in range(0, total, step):
            some = files[start : start + step]
            with _told_of(spark, progress, start, len(some), total):
                job.decode(some)
            if not strict:
                job.keep()
            if progress is not None:
                progress(min(total, start + step), total)
        if strict and job.result.failures:
            job.result.files = job.result.rows = 0
            return job.result
        job.keep()
    except AnalysisError as error:
        raise AnalysisError(f"{folder}: {error}") from None
    except OSError as error:
        raise AnalysisError(f"{folder}: cannot write there: {error.strerror or error}") from None
    finally:
        target.clear()
    if not job.result.files and not job.result.kept:
        raise AnalysisError("; ".join(job.result.failures) or "no capture was given")
    return job.result


def _told_of(
    spark: SparkSession, progress: Progress | None, start: int, most: int, total: int
) -> AbstractContextManager[object]:
    """Tells a step's tasks as captures; its last one is done when all is in its place."""
    if progress is None:
        return nullcontext()
    told_of = progress
    return watched(spark, lambda now: told_of(start + min(now.done, most - 1), total))


@dataclass(slots=True, kw_only=True)
class _Job:
    """An import on its way.

    Attributes:
        there: names of the parts that were there before.
        waiting: what is decoded and not in its place yet: where it lies aside, and its name.
    """

    spark: SparkSession
    target: Target
    port: int | None
    redact: bool
    there: set[str]
    steps: int = 0
    waiting: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    result: Ingested = field(default_factory=Ingested)

    def decode(self, files: Sequence[str]) -> None:
        """Decode some captures at once, aside."""
        for name, part in self._written(files):
            if part.fatal:
                raise AnalysisError(part.problem)
            goal = part_name(part.run)
            if part.kept:
                self.result.kept += 1
            elif part.problem:
                self.result.failures.append(part.problem)
            elif goal in self.seen:
                self.result.failures.append(f"{part.run}: the same capture was given twice")
            else:
                self.seen.add(goal)
                self.waiting[f"{self.steps}/{name}"] = goal
                self.result.files += 1
                self.result.rows += part.rows
                self.result.remarks += part.remarks.splitlines()
        self.steps += 1

    def _written(self, files: Sequence[str]) -> list[tuple[str, Part]]:
        """Each capture is read and written by a task of its own."""
        place = self.target.make(str(self.steps))
        # Where Spark runs is another folder, at the least if this program has left its own since.
        given = tuple(file if is_url(file) else os.path.abspath(file) for file in files)
        work = _task(given, place, frozenset(self.there), self.port, self.redact)
        with told():
            each = self.spark.range(0, len(files), numPartitions=len(files))
            done = each.mapInArrow(work, PART).collect()
        parts = {row["number"]: Part(*row[1:]) for row in done}
        return [
            (f"{number}.parquet", _seen(capture, parts[number]))
            for number, capture in enumerate(files)
        ]

    def keep(self) -> None:
        """Put what is decoded into its place."""
        while self.waiting:
            written, name = next(iter(self.waiting.items()))
            self.target.keep(written, name)
            del self.waiting[written]


def _task(
    files: Sequence[str], place: str, known: frozenset[str], port: int | None, redact: bool
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a task does with the numbers of the captures it is given."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from workbench.analysis.parts import write_part

        for batch in batches:
            for number in batch["id"].to_pylist():
                target = f"{place}/{number}.parquet"
                part = write_part(files[number], target, known, port, redact)
                yield pa.RecordBatch.from_pylist([{"number": number} | part._asdict()])

    return work


def _seen(capture: str, part: Part) -> Part:
    """A capture that is there for this program and not for the task is not said to be missing."""
    if part.missing and Path(capture).exists():
        return part._replace(problem=f"{Path(capture).name}: {UNSEEN}")
    return part
