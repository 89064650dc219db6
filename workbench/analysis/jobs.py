"""How far Spark is with what it was asked, told while the answer is awaited.

A notebook's cell stands still until its action is done, so somebody else must look: a thread that
tells a few times a second what is known. Spark Connect reports its progress by itself; elsewhere
the thread asks the status tracker. Both see the jobs of this session, whoever started them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

__all__ = ["Progress", "watched"]

TICK_S = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What Spark has done since it was watched.

    Attributes:
        jobs: how many it has begun; of Spark Connect, operations.
        done: tasks that are done.
        tasks: tasks that are planned so far; with each job there may be more.
        seconds: since the watch began.
        over: the work is done, well or not.
    """

    jobs: int = 0
    done: int = 0
    tasks: int = 0
    seconds: float = 0.0
    over: bool = False

    def __str__(self) -> str:
        if self.over:
            return f"done in {self.seconds:.1f} s: {_count(self.jobs, 'job')}, {self.done} tasks"
        if not self.tasks:
            return f"{self.seconds:.0f} s: Spark plans"
        return (
            f"{self.seconds:.0f} s: {self.done} of {self.tasks} tasks done,"
            f" {_count(self.jobs, 'job')} so far"
        )


Tell = Callable[[Progress], None]


class watched:  # noqa: N801 (it reads as a verb: with watched(spark, tell): ...)
    """Tells how far Spark is, from another thread, until the block ends.

    Args:
        spark: the session that works.
        tell: told whenever something has changed, and once more at the end. What it raises is
            the end of the telling and of nothing else.
        tick_s: how often to look.
    """

    def __init__(self, spark: SparkSession, tell: Tell, tick_s: float = TICK_S) -> None:
        self._spark = spark
        self._tracker: StatusTracker | None = None
        self._tell = tell
        self._tick_s = tick_s
        self._over = threading.Event()
        self._began = time.monotonic()
        self._jobs: dict[int | str | None, list[int]] = {}
        self._stages: dict[int, tuple[int, int]] = {}
        self._before: set[int] = set()
        self._thread = threading.Thread(target=self._run, daemon=True, name="spark-progress")

    def __enter__(self) -> Self:
        try:
            self._spark.registerProgressHandler(self._heard)
        except PySparkException:  # this session is not one of Spark Connect
            self._tracker = self._spark.sparkContext.statusTracker()
            self._before = set(self._tracker.getJobIdsForGroup(None))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._tracker is None:
            self._spark.removeProgressHandler(self._heard)
        self._tell(self._look(over=True))

    def _run(self) -> None:
        while not self._over.wait(self._tick_s):
            self._tell(self._look())

    def _heard(
        self,
        stages: Iterable[Any] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,
    ) -> None:
        """What Spark Connect reports of an operation; it does not say how many jobs that is."""
        self._jobs.setdefault(operation_id, [])
        for stage in stages or ():
            self._stages[stage.stage_id] = stage.num_completed_tasks, stage.num_tasks

    def _ask(self, tracker: StatusTracker) -> None:
        active = {*tracker.getActiveJobsIds(), *tracker.getJobIdsForGroup(None)}
        for number in active - self._before - self._jobs.keys():
            info = tracker.getJobInfo(number)
            if info is not None:
                self._jobs[number] = list(info.stageIds)
        for stage in {one for stages in self._jobs.values() for one in stages}:
            done, tasks = self._stages.get(stage, (0, -1))
            if done == tasks:
                continue
            found = tracker.getStageInfo(stage)
            if found is not None:
                self._stages[stage] = (found.numCompletedTasks, found.numTasks)

    def _look(self, *, over: bool = False) -> Progress:
        if self._tracker is not None:
            self._ask(self._tracker)
        begun = [one for one in list(self._stages.values()) if one[0] or not over]
        return Progress(
            jobs=len(self._jobs),
            done=sum(done for done, _ in begun),
            tasks=sum(tasks for _, tasks in begun),
            seconds=time.monotonic() - self._began,
            over=over,
        )


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
