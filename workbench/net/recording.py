"""What a live broker keeps of its trace: the latest rows in memory, and all of them in a folder.

The rows are made by somebody else's tap; here they are only kept, handed out and passed on to a
writer in the background, so that a slow disk never holds a frame.

A folder is written so that a killed process loses at most `PERIOD_S` and never leaves a broken
file behind: the writer replaces the current file as a whole, by a rename, and begins another when
it has grown.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  (it cannot be imported any more once a program ends)
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from workbench.sim import Tap

PERIOD_S = 0.3
"""So often rows go to disk; with the time that a write takes it stays below the second promised,
on a busy machine too."""
LEAST_PAUSE_S = 0.05
FILE_ROWS = 4_000
"""A file that has so many rows, or more, is left alone, and the next is begun: what is written
again and again stays small."""
WAITING_ROWS = 400_000
"""Rows that wait for a disk that takes none; what comes then is counted and dropped."""
KEPT_ROWS = 200_000
"""Rows in memory; older ones are only in the folder."""
JOIN_S = 30.0

Pack = Callable[[Sequence[Any]], Any]
Write = Callable[[Path, Sequence[Any]], Any]
MakeTap = Callable[[Callable[[], int], Callable[[Any], None]], Tap]


class Spool:
    """Writes rows to `<name>-00001.parquet`, `<name>-00002.parquet`, ... in a thread of its own.

    Args:
        folder: where; made if it is missing.
        name: with which the files' names begin; with their numbers they sort in order.
        pack: makes of rows what `write` takes. It does so once for each row that can be written,
            and that is most of the work, though a file is written anew each time it has got more
            rows.
        write: writes what was packed to a file, whole or not at all.
        prepare: what the first write would else have to load; done at once, in the thread.
        period_s: seconds between two writes.
        file_rows: a file that has so many rows after a write gets no more.

    Attributes:
        written: rows on disk.
        dropped: rows lost because the disk took none for too long.
        problem: what went wrong last while writing; None when all is well.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        pack: Pack,
        write: Write,
        *,
        prepare: Callable[[], object] | None = None,
        period_s: float = PERIOD_S,
        file_rows: int = FILE_ROWS,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.name = name
        self.written = 0
        self.dropped = 0
        self.problem: Exception | None = None
        self._told = False  # of the problem
        self._pack = pack
        self._write = write
        self._prepare = prepare
        self._period_s = period_s
        self._file_rows = file_rows
        self._lock = threading.Lock()
        self._new: list[Any] = []
        self._file: list[Any] = []  # the current file's rows, packed
        self._in_file = 0  # how many they are
        self._number = 1
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trace-spool", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def put(self, row: Any) -> None:
        """Take a row; it is on disk within the period. From any thread."""
        with self._lock:
            if len(self._new) >= WAITING_ROWS:
                self.dropped += 1
            else:
                self._new.append(row)

    def news(self) -> list[str]:
        """That rows cannot be written, or can again, if that is new since the last call."""
        problem = self.problem
        if self._told == (problem is not None):
            return []
        self._told = problem is not None
        return [
            f"rows wait in memory: {problem}"
            if self._told
            else f"{self.folder}: rows are written again"
        ]

    def close(self) -> None:
        """Write what waits and end the thread; closing twice is harmless."""
        atexit.unregister(self.close)
        self._over.set()
        self._thread.join(JOIN_S)

    # -- in the thread ----------------------------------------------------------------------

    def _run(self) -> None:
        if self._prepare is not None:
            self._prepare()
        pause_s = self._period_s
        while not self._over.wait(pause_s):
            began = time.monotonic()
            self._turn()
            took_s = time.monotonic() - began
            # From beginning to beginning: a slow write must not put off the next one. While the
            # disk takes nothing all that waits is packed anew each time: seldom, then.
            least_s = LEAST_PAUSE_S if self.problem is None else 9 * took_s
            pause_s = max(least_s, self._period_s - took_s)
        self._turn()

    def _turn(self) -> None:
        with self._lock:
            rows, self._new = self._new, []
        if not rows:
            return
        path = self.folder / f"{self.name}-{self._number:05d}.parquet"
        try:
            packed = [*self._file, self._pack(rows)]
            self._write(path, packed)
        except Exception as error:  # the disk is full: the broker goes on, and it is told
            self.problem = error
            with self._lock:
                self._new[:0] = rows
            return
        self.problem = None
        self.written += len(rows)
        self._file = packed
        self._in_file += len(rows)
        if self._in_file >= self._file_rows:
            self._file = []
            self._in_file = 0
            self._number += 1


class Recording:
    """The trace of a live broker while it runs.

    Args:
        make_tap: given the clock and a place for rows, makes the tap that writes them there.
        spool: where all rows go as well.
    """

    def __init__(self, make_tap: MakeTap, *, spool: Spool | None = None) -> None:
        self.spool = spool
        self._make_tap = make_tap
        self._lock = threading.Lock()
        self._rows: deque[Any] = deque(maxlen=KEPT_ROWS)
        self._count = 0

    def tap(self, now: Callable[[], int]) -> Tap:
        """The observer for a broker with that clock."""
        return self._make_tap(now, self._take)

    def rows(self, after: int = -1) -> list[Any]:
        """The rows in memory after a `seq`, in order, as they are now. From any thread."""
        with self._lock:
            fresh = list(itertools.takewhile(lambda row: row.seq > after, reversed(self._rows)))
        return fresh[::-1]

    def close(self) -> None:
        """Nothing more will come: bring the rest to disk."""
        if self.spool is not None:
            self.spool.close()

    def overview(self) -> dict[str, Any]:
        """Flat picture: rows recorded and in memory, and the spool's."""
        with self._lock:
            picture: dict[str, Any] = {"rows": self._count, "rows_kept": len(self._rows)}
        if self.spool is not None:
            picture |= {
                "rows_written": self.spool.written,
                "rows_dropped": self.spool.dropped,
                "problem": "" if self.spool.problem is None else str(self.spool.problem),
            }
        return picture

    def _take(self, row: Any) -> None:
        with self._lock:
            self._rows.append(row)
            self._count += 1
        if self.spool is not None:
            self.spool.put(row)
