"""A thread that looks whenever there may be something new to see, and not too often."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

NEWS_EVERY_S = 0.1
"""No more often than this, however fast frames move."""
LOOK_EVERY_S = 1.0
"""So often even if nothing was told: what moves freely tells nothing."""


class Watch:
    """Calls `look` in a thread of its own.

    Args:
        look: what to call. An exception of it ends the watch and stays in `failure`.

    Attributes:
        fresh: set by whoever has something new.
        failure: the exception that ended it, or None.
        over: it is closed.
    """

    def __init__(self, look: Callable[[], None]) -> None:
        self.failure: Exception | None = None
        self.fresh = threading.Event()
        self._look = look
        self._looking = threading.RLock()
        self.over = False
        self._thread = threading.Thread(target=self._run, name="wire-watch", daemon=True)
        self._thread.start()

    def now(self) -> None:
        """Look as soon as possible."""
        self.fresh.set()

    def look(self) -> None:
        """Look at once, in the caller's thread; nobody looks in another thread meanwhile."""
        with self._looking:
            self._look()

    def close(self) -> None:
        """Look once more, and end; closing twice is harmless."""
        self.over = True
        self.fresh.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(2.0)

    def _run(self) -> None:
        while not self.over:
            self.fresh.wait(LOOK_EVERY_S)
            self.fresh.clear()
            if self.over:
                break
            try:
                self.look()
            except Exception as error:  # whoever looks must not keep others from looking
                self.failure = error
                return
            time.sleep(NEWS_EVERY_S)
        with contextlib.suppress(Exception):
            self.look()
