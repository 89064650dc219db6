"""How far Spark is: told while it works, from its own count of tasks."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Watched"]

TICK_S = 0.25


class Watched:
    """Tells how many tasks of how many are done, of all jobs that are started inside.

    How many there will be Spark does not know before it is there: the whole grows as it works.
    On a session that tells nothing (Spark Connect) it is silent.

    Args:
        spark: the session.
        tell: called a few times a second with tasks done and tasks known.
    """

    def __init__(self, spark: SparkSession, tell: Callable[[int, int], object] | None) -> None:
        self._spark = spark
        self._tell = tell
        self._group = f"workbench-{uuid.uuid4().hex}"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._tracker: Any = None

    def __enter__(self) -> Watched:
        if self._tell is not None:
            try:
                context = self._spark.sparkContext
                self._tracker = context.statusTracker()
                context.setJobGroup(self._group, "workbench")
            except Exception:  # whatever Connect raises here: the work goes on unwatched
                self._tracker = None
        if self._tracker is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._tracker is not None:
            self._thread.join()
            self._spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]

    def _run(self) -> None:
        assert self._tell is not None
        while not self._over.wait(TICK_S):
            try:
                done, known = self._tasks()
            except Exception:  # the session ended meanwhile, which the work will tell
                return
            if known:
                self._tell(done, known)

    def _tasks(self) -> tuple[int, int]:
        done = known = 0
        for job in self._tracker.getJobIdsForGroup(self._group):
            info = self._tracker.getJobInfo(job)
            for number in info.stageIds if info is not None else ():
                stage = self._tracker.getStageInfo(number)
                if stage is not None:
                    done += stage.numCompletedTasks
                    known += stage.numTasks
        return done, known
