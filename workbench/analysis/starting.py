"""Spark's start in the background, and how long it took on this machine the last time.

The start takes seconds in which nothing of Spark's can be asked; a lesson has better things to show
meanwhile. How long it took is kept in a small file, so that the next start can say what to expect.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import AnalysisError
from .session import Settings, get_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FILE_NAME", "Starting", "last_start"]

FILE_NAME = "spark_start.json"
TICK_S = 0.5
_KEPT = 5

Tell = Callable[["Starting"], None]


class Starting:
    """A start that goes on by itself.

    Args:
        memory_of: where the times of earlier starts are kept; None keeps none.
        tell: told twice a second while it goes on, and when it is over; from another thread.
        **settings: fields of `session.Settings`.

    Attributes:
        expected_s: how long it took the last times here, seconds; None if nobody knows yet.
        seconds: how long it took; None while it goes on.
        problem: why there is no Spark; empty if there is.

    Raises:
        AnalysisError: there is no Java to start.
    """

    def __init__(
        self, *, memory_of: Path | None = None, tell: Tell | None = None, **settings: Any
    ) -> None:
        Settings.found(**settings).java()
        self.expected_s = last_start(memory_of)
        self.seconds: float | None = None
        self.problem = ""
        self._memory_of = memory_of
        self._tell = tell
        self._settings = settings
        self._spark: SparkSession | None = None
        self._began = time.monotonic()
        self._over = threading.Event()
        for work in (self._start, self._report):
            threading.Thread(target=work, daemon=True, name=f"spark{work.__name__}").start()

    @property
    def passed_s(self) -> float:
        """Seconds since it began, up to its end."""
        return self.seconds if self.seconds is not None else time.monotonic() - self._began

    @property
    def over(self) -> bool:
        """It is done, well or not."""
        return self._over.is_set()

    def session(self) -> SparkSession:
        """The session; waits until it is there.

        Raises:
            AnalysisError: Spark did not start.
        """
        self._over.wait()
        if self._spark is None:
            raise AnalysisError(self.problem)
        return self._spark

    def _start(self) -> None:
        try:
            spark = get_spark(say=lambda _: None, **self._settings)
            spark.range(1).count()  # a first job: what it loads, the first question need not
            self._spark = spark
        except AnalysisError as error:
            self.problem = str(error)
        except Exception as error:
            self.problem = f"Spark did not start: {error}"
        self.seconds = time.monotonic() - self._began
        if not self.problem:
            _keep(self._memory_of, self.seconds)
        self._over.set()

    def _report(self) -> None:
        while not self._over.wait(TICK_S):
            self._said()
        self._said()

    def _said(self) -> None:
        if self._tell is not None:
            with suppress(Exception):  # a page that was closed hears nothing
                self._tell(self)


def last_start(file: Path | None) -> float | None:
    """How long a start takes here, in seconds: the middle one of the last few; None if unknown."""
    times = _times(file)
    return sorted(times)[len(times) // 2] if times else None


def _times(file: Path | None) -> list[float]:
    if file is None:
        return []
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))["seconds"]
        return [float(one) for one in kept if float(one) > 0][-_KEPT:]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def _keep(file: Path | None, seconds: float) -> None:
    """Adds a time; a folder that cannot be written to keeps none."""
    if file is None:
        return
    text = json.dumps({"seconds": [*_times(file), round(seconds, 1)][-_KEPT:]})
    part = file.with_name(f".{file.name}.{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(file)
