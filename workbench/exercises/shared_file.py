"""Files of a learner: where they lie, and how several kernels write to one without losing any.

The place is the first of these folders that can be written to:

1. the folder that `WORKBENCH_HOME` names;
2. `my/` beside the notebooks (the folder that holds `notebooks/`), which git ignores;
3. the user's own data folder.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from workbench.languages import phrase
from workbench.notebook import PlainError

HOME_VARIABLE = "WORKBENCH_HOME"
FOLDER = "my"
NOTEBOOKS, INDEX = "notebooks", "00_index.ipynb"
LOCK_WAIT_S = 3.0
LOCK_STEP_S = 0.02
MOST_ASIDE = 100

say = partial(phrase, "keeping")


class ProgressError(PlainError, ValueError):
    """A learner's file cannot be read or written now; the text is one line for a person."""


class SharedFile:
    """A file that several kernels read and write.

    Args:
        file: the file; its folder need not be there yet.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def aside(self) -> Path:
        """Move the file, which cannot be read, to another name; gives that.

        Raises:
            OSError: if it cannot be moved.
            ProgressError: if too many such files lie there.
        """
        stem = self.file.with_suffix("")
        for number in range(1, MOST_ASIDE):
            path = Path(f"{stem}.damaged{'' if number == 1 else f'-{number}'}.json")
            if not path.exists():
                os.replace(self.file, path)
                return path
        raise ProgressError(say("damaged", n=MOST_ASIDE))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other kernels out; where there is no folder yet, there is nobody to keep out.

        Raises:
            ProgressError: if another process has held the lock for too long.
        """
        if not self.file.parent.is_dir():
            yield
            return
        path = self.file.parent / f".{self.file.name}.lock"
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _wait_for_lock(handle)
            yield
        finally:
            os.close(handle)  # which gives the lock up, as the end of the process would


def _wait_for_lock(handle: int) -> None:
    deadline = time.monotonic() + LOCK_WAIT_S
    while not _try_lock(handle):
        if time.monotonic() >= deadline:
            raise ProgressError(say("locked"))
        time.sleep(LOCK_STEP_S)


def _try_lock(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True  # a file system without locks: the write in one step must do
    return True


def standard_folder() -> Path | None:
    """Where this kernel's learner keeps files; None if none of the folders can be written to."""
    return next(filter(_writable, folders()), None)


def folders() -> list[Path]:
    """The folders that are tried, in order."""
    named = os.environ.get(HOME_VARIABLE)
    found = [Path(named).expanduser().absolute()] if named else []
    beside = _beside_notebooks()
    if beside is not None:
        found.append(beside / FOLDER)
    with suppress(RuntimeError, KeyError):  # no home folder
        found.append(_user_folder())
    return found


def beside_notebooks(here: Path) -> Path | None:
    """The folder that holds `notebooks/` and `my/`, seen from one of them or from itself."""
    for folder in (here, here.parent):
        if (folder / NOTEBOOKS / INDEX).is_file():
            return folder
    return None


def _beside_notebooks() -> Path | None:
    """The folder that holds `notebooks/`: the notebook's own, else that of this checkout."""
    found = None
    with suppress(OSError):
        found = beside_notebooks(Path.cwd())
    return found or beside_notebooks(Path(__file__).resolve().parents[2])


def _user_folder() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "amqp-flow-workbench"


def _writable(folder: Path) -> bool:
    """Whether a file can be made in a folder, or in the nearest one above it that is there."""
    there = next((one for one in (folder, *folder.parents) if one.exists()), None)
    return there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK)
