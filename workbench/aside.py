"""Files and folders for a while, gone when they are not needed any more.

A process that is killed cannot clear up. So it holds a lock on them for as long as it lives, and
whoever makes the next one takes away those that nobody holds.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

__all__ = ["aside", "aside_until_exit", "held", "sweep"]

_PREFIX = "workbench-aside-"
_YOUNG_S = 1.0
"""What is younger may have been made and not be held yet; whoever is killed is soon begun again."""


@contextmanager
def aside() -> Iterator[Path]:
    """A folder within the block."""
    sweep(Path(tempfile.gettempdir()), f"{_PREFIX}*")
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name, held(Path(name)):
        yield Path(name)


def aside_until_exit() -> Path:
    """A folder that is there until this process ends."""
    until = ExitStack()
    atexit.register(until.close)
    return until.enter_context(aside())


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Within the block nobody sweeps a file or folder away."""
    with ExitStack() as lock:
        with suppress(OSError):  # where there are no locks, nobody sweeps
            lock.callback(os.close, _locked(path))
        yield


def sweep(folder: Path, names: str) -> None:
    """Takes away what killed processes have left in a folder.

    Args:
        folder: where.
        names: a pattern of names that nobody gives but who holds what he makes.
    """
    for left in folder.glob(names):
        with suppress(OSError):  # somebody holds it, or it is somebody else's
            if time.time() - left.stat().st_mtime > _YOUNG_S:
                os.close(_locked(left))
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def _locked(path: Path) -> int:
    """A handle that holds a file or folder until it is closed.

    Raises:
        OSError: another process holds it, or there are no such locks here.
    """
    if sys.platform == "win32":
        raise OSError("folders have no locks")
    import fcntl

    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle
