"""Captures into one trace, many at a time.

Each is read with the importer that `workbench import` uses for a single capture, so that the rows
are the same; never more of a capture is in memory than some batches of rows. Processes of this
machine do it, or tasks of Spark (`ingest_tasks`). Whoever reads a capture writes its part of the
trace itself, and only names come back.

A capture's run is named by its stem and its content, and its part of the trace by its run: what is
there already is not decoded again, so an import that was stopped goes on where it was.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.capture.importer import part_name
from workbench.machine import total_memory

from .errors import AnalysisError
from .parts import Order, Part, Progress, Take, write_part
from .places import Target, captures, is_url, target_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Ingested", "captures", "ingest"]

ROOM = 512 << 20
"""Octets of memory for each process that reads: of a large capture it takes 300 MB."""


@dataclass(slots=True, kw_only=True)
class Ingested:
    """What an import came to.

    Attributes:
        files: captures that are in the trace.
        rows: rows that were decoded now.
        kept: captures whose part was there already.
        failures: one line for each capture that was skipped.
        remarks: what of the captures is not in the trace, or is damaged; a line each.
        reports: what was found in each, as `workbench import` tells it of one capture.
    """

    files: int = 0
    rows: int = 0
    kept: int = 0
    failures: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)


def ingest(
    spark: SparkSession | None,
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
        spark: the session whose tasks read them; None: processes of this machine do.
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
        job = _Job(files=files, target=target, strict=strict, progress=progress)
        # Where Spark runs is another folder, at the least if this program has left its own since.
        given = [file if is_url(file) else os.path.abspath(file) for file in files]
        # What is there already may hold the secrets that are to be taken out.
        there = "" if redact else target.there
        order = Order(place=target.make(), there=there, port=port, redact=redact)
        if spark is None:
            _by_processes(given, order, job.take)
        else:
            from .ingest_tasks import by_tasks

            by_tasks(spark, given, order, job.take, progress)
        result = job.ended()
    except AnalysisError as error:
        raise AnalysisError(f"{folder}: {error}") from None
    except OSError as error:
        raise AnalysisError(f"{folder}: cannot write there: {error.strerror or error}") from None
    finally:
        target.clear()
    if not (result.files or result.kept or (strict and result.failures)):
        raise AnalysisError("; ".join(result.failures) or "no capture was given")
    return result


@dataclass(slots=True, kw_only=True)
class _Job:
    """An import on its way.

    Attributes:
        parts: what came of each capture so far, by its number.
        seen: runs that are there.
        waiting: what is written and not in its place yet: the name it has aside, and its own.
    """

    files: Sequence[str]
    target: Target
    strict: bool
    progress: Progress | None
    parts: dict[int, Part] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    waiting: dict[str, str] = field(default_factory=dict)

    def take(self, number: int, part: Part) -> None:
        """What came of a capture; its part goes into its place."""
        if part.fatal:
            raise AnalysisError(part.problem)
        if part.run in self.seen:
            part = Part(part.run, problem=f"{part.run}: the same capture was given twice")
        elif not part.problem:
            self.seen.add(part.run)
        self.parts[number] = part
        if not part.problem and not part.kept:
            self.waiting[f"{number}.parquet"] = part_name(part.run)
        if not self.strict:
            self._keep()
        if self.progress is not None:
            self.progress(len(self.parts), len(self.files))

    def ended(self) -> Ingested:
        """What all of it came to."""
        parts = [self.parts[number] for number in sorted(self.parts, key=self.files.__getitem__)]
        failures = [part.problem for part in parts if part.problem]
        if self.strict and failures:
            return Ingested(failures=failures)
        self._keep()
        read = [part for part in parts if not part.problem and not part.kept]
        return Ingested(
            files=len(read), rows=sum(part.rows for part in read),
            kept=sum(part.kept for part in parts), failures=failures,
            remarks=[line for part in read for line in part.remarks.splitlines()],
            reports=[part.report for part in read],
        )  # fmt: skip

    def _keep(self) -> None:
        while self.waiting:
            written, name = next(iter(self.waiting.items()))
            self.target.keep(written, name)
            del self.waiting[written]


def _by_processes(files: Sequence[str], order: Order, take: Take) -> None:
    """Processes of this machine, one for each processor, read one capture after the other."""
    before = set(multiprocessing.active_children())
    memory = total_memory()
    room = len(files) if memory is None else max(1, memory // ROOM)
    # Forked from a program with threads, as a notebook is one, a process may wait for ever.
    processes = ProcessPoolExecutor(
        min(len(files), os.cpu_count() or 1, room), multiprocessing.get_context("spawn"), _begin
    )
    try:
        with processes:
            try:
                numbers = {
                    processes.submit(write_part, file, number, order): number
                    for number, file in enumerate(files)
                }
                for done in as_completed(numbers):
                    take(numbers[done], done.result())
            except BaseException:
                processes.shutdown(wait=False, cancel_futures=True)
                for one in set(multiprocessing.active_children()) - before:
                    one.terminate()
                raise
    except BrokenProcessPool:
        raise AnalysisError(
            "a process that read a capture was ended, perhaps for want of memory"
        ) from None


def _begin() -> None:
    """A process ends with the one that started it, however that one ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that is interrupted ends this one
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
