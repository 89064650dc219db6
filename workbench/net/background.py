"""A function in a thread of its own: a client that blocks, beside a notebook that does not.

A blocking client in a cell would hold the whole notebook until somebody lets its frames go, and
nobody could. Here it waits by itself; the cell is over at once.
"""

from __future__ import annotations

import atexit
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

from workbench.trace.given import takes

from .server import stop_all

END_S = 1.0
"""So long a program that ends waits for a job whose server is stopped."""

NO_PROTON = (
    "python-qpid-proton is not installed here (it needs a C compiler), so this client is skipped."
    " Any other AMQP 1.0 client on the printed address will do; `python3 wb.py doctor` tells more."
)

NOTHING_RUN = (
    "nothing in {name} has run: it is async, or has a yield in it. Give a function that runs it to"
    " its end, such as lambda: asyncio.run({name}(url))"
)


class Job:
    """A function that runs, or has run, in the background.

    Args:
        work: what to run; what it returns is the result.
        arguments: for it.

    Attributes:
        result: what it has returned; None before.
        error: the exception that ended it; None if none did.
        skipped: why it did not run at all; empty if it did.
    """

    def __init__(self, work: Callable[..., Any], arguments: tuple[Any, ...] = ()) -> None:
        self.name = getattr(work, "__name__", "work")
        self.result: Any = None
        self.error: BaseException | None = None
        self.skipped = ""
        self._work = work
        self._arguments = arguments
        # What is registered last is called first, and Proton registers something, too, when it is
        # imported: it lets go of what its threads still use, and one that uses it aborts Python.
        _proton_is_missing()
        atexit.register(self._see_out)
        self._thread = threading.Thread(target=self._run, name=f"client-{self.name}", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return not self._thread.is_alive()

    def wait(self, timeout_s: float | None = None) -> Any:
        """Wait until it has ended, and give its result.

        Raises:
            TimeoutError: if it has not ended in time.
            Exception: the one that ended it.
        """
        self._thread.join(timeout_s)
        if not self.done:
            raise TimeoutError(f"{self.name} still runs after {timeout_s:g} s")
        if self.error is not None:
            raise self.error
        return self.result

    def _run(self) -> None:
        try:
            result = self._work(*self._arguments)
            if inspect.iscoroutine(result) or inspect.isgenerator(result):
                result.close()
                raise TypeError(NOTHING_RUN.format(name=self.name))
            self.result = result
        except ImportError as error:
            if _proton_is_missing():
                self.skipped = NO_PROTON
            else:
                self.error = error
        except BaseException as error:  # it is told by whoever looks at the job; sys.exit() too
            self.error = error
        finally:
            atexit.unregister(self._see_out)

    def _see_out(self) -> None:
        """The program ends: the servers stop, so that the work has nothing to wait for."""
        stop_all()
        self._thread.join(END_S)

    def __str__(self) -> str:
        """How it stands, in a line."""
        if self.skipped:
            return f"{self.name}: {self.skipped}"
        if not self.done:
            return f"{self.name} runs in the background"
        if self.error is not None:
            return f"{self.name} has ended with {type(self.error).__name__}: {self.error}"
        told = "" if self.result is None else f"; result: {self.result!r}"
        return f"{self.name} has ended{told}"

    __repr__ = __str__


def _proton_is_missing() -> bool:
    try:
        import proton  # noqa: F401  (whether it can be)
    except ImportError:
        return True
    return False


@takes
def background(work: Callable[..., Any], *arguments: Any, settle_s: float = 0.0) -> Job:
    """Run a function in a thread of its own; the caller goes on at once.

    Args:
        work: the function, such as a client that connects, sends and receives.
        arguments: for it, such as the address.
        settle_s: wait up to so long for it to end, so that a short one is told with its result.
    """
    job = Job(work, arguments)
    until = time.monotonic() + settle_s
    while not job.done and time.monotonic() < until:
        time.sleep(0.01)
    return job
