"""Stalls and rates of a recorder that is running: Structured Streaming over its folder.

Spark says which rows are new, once each, and remembers in its checkpoint how far it is. What the
answers carry from batch to batch is one state (counters of links, holds that are on, the latest
window of each), written beside it under the number of the batch *before* Spark calls the batch
done. After a stop or a crash Spark may give the last batch again; its number shows that its state
is there, and it is passed over: nothing counts twice.

All of it lies in a folder of its own, never among the data: what a trace folder holds may come from
anybody. And it is JSON, of which numbers and words can come and nothing else.

The state is made by a fold that is handed in, so that a stream gives the answers of a whole trace.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .errors import AnalysisError
from .rolling import RollingSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Follower", "LiveState"]

VERSION = 2
TRIGGER = "300 milliseconds"
"""A batch without new rows costs a look at the folder; the recorder writes every 0.3 s."""
PARTS = 64
"""So many files of past answers are put together into one."""
STOP_S = 20
MOST_STARTS = 4
_SLOW = "failed to connect back"
"""Spark gives a Python process ten seconds to come up, which a very busy machine may not keep."""
_STATE = re.compile(r"state-(\d+)\.json")
_PART = re.compile(r"(\w+)-(\d+)-(\d+)\.json")

Answer = dict[str, list[dict[str, Any]]]


class LiveState(Protocol):
    """A fold that can be put away between two batches."""

    rows: int

    def take(self, rows: Any) -> Answer:
        """Take in rows; by question, what of its answer is over."""

    def now(self) -> Answer:
        """By question, what else would be the answer if there were no more rows."""

    def kept(self) -> dict[str, Any]:
        """All of it as JSON."""

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on from where another was when it said `kept`; ValueError if that is no such thing."""


class Follower:
    """Follows a recorder's folder until it is stopped; `answer` may be asked at any time.

    Args:
        spark: the session.
        folder: where the recorder writes.
        checkpoint: the folder in which it is remembered how far the stream is, outside `folder`;
            another begins from the start. None: a temporary one, gone with `stop`.
        begin: makes the state before the first row.
        rows_of: rows of an Arrow table, as the state takes them.
        told: called after each batch, in a thread of Spark's.

    Attributes:
        batches: batches worked through since the start.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: str | Path,
        checkpoint: str | os.PathLike[str] | None,
        *,
        begin: Callable[[], LiveState],
        rows_of: Callable[[Any], Sequence[Any]],
        told: Callable[[Follower], object] | None = None,
    ) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise AnalysisError(f"{folder}: no such folder")
        self._temporary = checkpoint is None
        if checkpoint is None:
            checkpoint = tempfile.mkdtemp(prefix="workbench-follow-")
        elif Path(checkpoint).resolve().is_relative_to(self.folder.resolve()):
            raise AnalysisError(
                f"{checkpoint}: lies in the folder that is followed, among data that others may"
                " have written; name a checkpoint elsewhere"
            )
        self.checkpoint = Path(checkpoint)
        self.batches = 0
        self._rows_of, self._told = rows_of, told
        self._lock = threading.Lock()
        self._failure: Exception | None = None
        self._spark, self._starts = spark, 1
        self._kept = self.checkpoint / "answers"
        try:
            self._kept.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AnalysisError(f"{checkpoint}: cannot write there: {error.strerror}") from None
        self._batch, self._state = self._restored(begin)
        spark.dataSource.register(RollingSource)
        self.query = self._start(spark)

    # -- what there is to ask -------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Rows taken in since the stream first began."""
        with self._lock:
            return self._state.rows

    def answer(self, question: str) -> list[dict[str, Any]]:
        """The whole answer so far, `stalls` or `rates`: as of a trace that ends here."""
        with self._lock:
            past = [row for _first, _last, file in self._parts(question) for row in _load(file)]
            return past + self._state.now()[question]

    def now(self) -> Answer:
        """What goes on: by question, what of its answer is not over."""
        with self._lock:
            return self._state.now()

    # -- its life -------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether the stream goes on."""
        return bool(self.query.isActive)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it ends; False if the time is over before.

        Raises:
            AnalysisError: it has failed.
        """
        try:
            return bool(self.query.awaitTermination(timeout_s) or not self.query.isActive)
        except Exception as error:
            self._again(error)
            return False

    def catch_up(self) -> None:
        """Return when all rows that are in the folder now have been taken in.

        Raises:
            AnalysisError: the stream has failed.
        """
        while True:
            try:
                self.query.processAllAvailable()
                return
            except Exception as error:
                self._again(error)

    def stop(self) -> None:
        """End it; started again with the same checkpoint it goes on from here."""
        with contextlib.suppress(Exception):  # it may have failed before, and be over
            self.query.stop()
            self.query.awaitTermination(STOP_S)
        if self._temporary:
            shutil.rmtree(self.checkpoint, ignore_errors=True)

    def _again(self, error: Exception) -> None:
        """Start the stream again if it failed only for want of time; nothing is lost by that.

        Raises:
            AnalysisError: it failed for another reason, or too often.
        """
        if _SLOW not in str(error) or self._starts >= MOST_STARTS:
            raise AnalysisError(self._reason(error)) from None
        self._starts += 1
        self.query = self._start(self._spark)

    def _reason(self, error: Exception) -> str:
        """What happened, in the one line of it that says so."""
        if self._failure is not None:
            return str(self._failure).splitlines()[0] or type(self._failure).__name__
        lines = [line.strip() for line in str(error).splitlines()]
        named = [line for line in lines if "AnalysisError: " in line]
        return named[0].split("AnalysisError: ", 1)[1] if named else lines[0]

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    # -- batches --------------------------------------------------------------------------------

    def _start(self, spark: SparkSession) -> StreamingQuery:
        stream = spark.readStream.format(RollingSource.name()).load(str(self.folder))
        return (
            stream.writeStream.foreachBatch(self._batch_of)
            .option("checkpointLocation", str(self.checkpoint / "spark"))
            .trigger(processingTime=TRIGGER)
            .start()
        )

    def _batch_of(self, batch: DataFrame, number: int) -> None:
        """One batch, in a thread of Spark's, which tells of an error at great length."""
        try:
            self._take(batch, number)
        except Exception as error:
            self._failure = error
            raise

    def _take(self, batch: DataFrame, number: int) -> None:
        if number > self._batch:
            rows = self._rows_of(batch.toArrow())
            with self._lock:
                over = self._state.take(rows)
                for question, its in over.items():
                    if its:
                        _keep(self._kept / f"{question}-{number}-{number}.json", its)
                state = {"version": VERSION, "state": self._state.kept()}
                _keep(self._kept / f"state-{number}.json", state)
                self._batch = number
                self._tidy(number, over)
        self.batches += 1
        if self._told is not None:
            self._told(self)

    def _restored(self, begin: Callable[[], LiveState]) -> tuple[int, LiveState]:
        """The latest state that was written, or a new one."""
        states = [
            (int(match[1]), file)
            for file in self._kept.iterdir()
            if (match := _STATE.fullmatch(file.name))
        ]
        state = begin()
        if not states:
            if any((self.checkpoint / "spark" / "commits").glob("[0-9]*")):
                raise AnalysisError(
                    f"{self.checkpoint}: no state (state-*.json) of what was followed; begin with"
                    " another checkpoint"
                )
            return -1, state
        number, file = max(states)
        try:
            kept = _load(file)
            version = kept["version"]
            if version == VERSION:
                state.restore(kept["state"])
        except (ValueError, TypeError, KeyError, OSError):
            raise AnalysisError(f"{file}: is damaged; begin with another checkpoint") from None
        if version != VERSION:
            raise AnalysisError(
                f"{self.checkpoint}: of version {version}, and this is version {VERSION}; begin"
                " with another checkpoint"
            )
        # What was written of a batch whose state was not comes again.
        for question_file in self._kept.iterdir():
            match = _PART.fullmatch(question_file.name)
            if match and int(match[3]) > number:
                question_file.unlink()
        return number, state

    def _parts(self, question: str) -> list[tuple[int, int, Path]]:
        """Files of past answers in order, without those that are put together in another."""
        found = []
        for file in self._kept.iterdir():
            match = _PART.fullmatch(file.name)
            if match and match[1] == question:
                found.append((int(match[2]), -int(match[3]), file))
        kept: list[tuple[int, int, Path]] = []
        for first, last, file in sorted(found):
            if not kept or first > kept[-1][1]:
                kept.append((first, -last, file))
        return kept

    def _tidy(self, number: int, questions: Answer) -> None:
        """Take old states away, and put many small files together."""
        for file in self._kept.iterdir():
            match = _STATE.fullmatch(file.name)
            if match and int(match[1]) < number:
                file.unlink()
        for question in questions:
            parts = self._parts(question)
            if len(parts) < PARTS:
                continue
            whole = [row for _first, _last, file in parts for row in _load(file)]
            _keep(self._kept / f"{question}-{parts[0][0]}-{parts[-1][1]}.json", whole)
            for _first, _last, file in parts:
                file.unlink()


def _keep(path: Path, value: object) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(json.dumps(value), encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
