"""A real disk under a node's write-ahead log: fdatasync on a temporary file.

The octets of a batch are written and forced to disk in a thread of their own, so that the broker
goes on meanwhile, as a node does. What is written has the batch's size and no meaning: a crash of
the simulated node loses what its log says, not what the file holds.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from workbench.broker.quorum_node import BatchOfEntries

REWIND_AT = 64 * 1024 * 1024  # octets after which the file is written from its beginning again


class RealDisk:
    """A file that is synced for each batch.

    Args:
        loop: on which the broker runs.
        folder: where the file is; None: where temporary files are.

    Attributes:
        syncs: how many fsyncs are done.
        last_us: how long the last one took.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, folder: str | None = None) -> None:
        self.syncs = 0
        self.last_us = 0
        self._loop = loop
        self._file = tempfile.TemporaryFile(dir=folder, prefix="workbench-wal-")  # noqa: SIM115  (closed by `close`)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wal")
        self._written = 0

    def sync(self, wal: BatchOfEntries, done: Callable[[], None]) -> Callable[[], None]:
        """Write so many octets and force them to disk; `done` is called on the loop."""
        wanted = True

        def forget() -> None:
            nonlocal wanted
            wanted = False

        def finished(took_us: int) -> None:
            self.syncs += 1
            self.last_us = took_us
            if wanted:
                done()

        octets, began = wal.octets, self._loop.time()

        def work() -> None:
            self._write(octets)
            took_us = int((self._loop.time() - began) * 1_000_000)
            self._loop.call_soon_threadsafe(finished, took_us)

        self._thread.submit(work)
        return forget

    def close(self) -> None:
        """Let go of thread and file."""
        self._thread.shutdown()
        self._file.close()

    def _write(self, octets: int) -> None:
        if self._written > REWIND_AT:
            self._file.seek(0)
            self._written = 0
        self._file.write(bytes(octets))
        self._file.flush()
        # macOS has no fdatasync, and its fsync does not reach the platters.
        getattr(os, "fdatasync", os.fsync)(self._file.fileno())
        self._written += octets
