"""Work beside a run, in order, in a thread of its own: a long trace's way to the disk.

A run makes rows, and Arrow compresses and writes them without Python's lock: where there is a
second core, the run need not wait for it. Nothing here changes what is written, or its order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Queue
from types import TracebackType
from typing import Self

Job = Callable[[], None]
MAY_WAIT = 1
"""Jobs that may wait beside the one under way: each holds a table's rows in memory."""


class Aside:
    """Does jobs one after the other in a thread; leaving it waits for all of them.

    Use it as a context manager. An exception inside takes what waits away. What a job raises comes
    out of the next `do`, or of the end; later jobs are not done any more.
    """

    def __init__(self) -> None:
        self._line: Queue[Job | None] = Queue(MAY_WAIT)
        self._failure: BaseException | None = None
        self._given_up = False
        self._thread = threading.Thread(target=self._work, name="trace", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def do(self, job: Job) -> None:
        """Have a job done; waits while as many wait as may.

        Raises:
            BaseException: whatever an earlier job raised.
        """
        self._tell()
        self._line.put(job)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._given_up = kind is not None
        self._line.put(None)
        self._thread.join()
        if kind is None:
            self._tell()

    def _tell(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self._given_up = True
            raise failure

    def _work(self) -> None:
        while (job := self._line.get()) is not None:
            if self._given_up or self._failure is not None:
                continue  # it is taken out all the same: whoever puts one in must not wait forever
            try:
                job()
            except BaseException as failure:  # the run raises it
                self._failure = failure
