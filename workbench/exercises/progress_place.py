"""Where a learner's progress lies, and how several kernels write to it without losing anything.

The place is the first of these that can be written to:

1. the folder that `WORKBENCH_HOME` names;
2. `my/` beside the notebooks (the folder that holds `notebooks/`), which git ignores;
3. the user's own data folder.

A record is written at once. Each write takes a lock, reads the file again, adds what this kernel
has to it, and puts the whole file in place in one step: two notebooks at once lose nothing. A file
that cannot be read is moved aside, never written over.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .progress_file import Found, as_text, read_bytes, read_text
from .progress_record import FILE_NAME, ProgressError, Record, numbered, with_taken

HOME_VARIABLE = "WORKBENCH_HOME"
FOLDER = "my"
NOTEBOOKS, INDEX = "notebooks", "00_index.ipynb"
LOCK_WAIT_S = 3.0
LOCK_STEP_S = 0.02
MOST_ASIDE = 100

Answer = tuple[Sequence[Record] | None, bool, str]


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
        raise ProgressError(f"{MOST_ASIDE} damaged files lie there already; look at them")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other kernels out; where there is no folder yet, there is nobody to keep out."""
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


class Place:
    """One file that several kernels may share.

    Args:
        file: where the progress is kept; None keeps it nowhere.
        older: a file of version 1 that is taken up once, as long as there is no newer one.
        problem: why there is no place, in one line.
    """

    def __init__(self, file: Path | None, *, older: Path | None = None, problem: str = "") -> None:
        self.file = file
        self._older = older
        self._problem = problem

    def read(self) -> Answer:
        """What the file holds: (records, False, a problem or nothing)."""
        if self.file is None:
            return None, False, self._problem
        try:
            with SharedFile(self.file).locked():
                records, problem = self._records(self.file, self._older)
        except (OSError, ProgressError) as error:
            return None, False, _cannot("read", self.file, error)
        return records, False, problem

    def merge(
        self,
        kept: Sequence[Record],
        new: Sequence[Record],
        *,
        without: frozenset[str] = frozenset(),
        taken: Sequence[Record] = (),
    ) -> Answer:
        """Add records to what the file holds by now.

        Args:
            kept: what this kernel knows to be in the file; used if the file is gone.
            new: what is to be added.
            without: lessons; what was answered in them is to be taken out.
            taken: records of another log, to be added as far as they are not there.

        Returns:
            (the records of the file, whether the new ones are in it, a problem or nothing).
        """
        if self.file is None:
            return None, False, self._problem
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with SharedFile(self.file).locked():
                there, problem = self._records(self.file, None)
                base = kept if there is None else there
                left = [one for one in base if one.asked_in not in without]
                merged = with_taken(numbered([*left, *new]), taken)
                write_whole(self.file, as_text(merged))
        except (OSError, ProgressError) as error:
            return None, False, _cannot("keep", self.file, error)
        return merged, True, problem

    # -- inside -----------------------------------------------------------------------------

    def _records(self, file: Path, older: Path | None) -> tuple[Sequence[Record] | None, str]:
        """The file's records (None if there is no file) and what was wrong with it."""
        source = file
        if not source.exists():
            if older is None or not older.is_file():
                return None, ""
            source = older
        try:
            found = read_text(read_bytes(source))
        except ProgressError as error:
            found = Found(problems=(str(error),), failed=True)
        if not found.problems:
            return found.records, ""
        told = "; ".join(found.problems)
        if source != file:
            return found.records, f"{source.name}: {told}"
        aside = SharedFile(file).aside()
        kept = f"{len(found.records)} records could be read"
        if found.records:
            write_whole(file, as_text(found.records))
        return found.records, f"{source}: {told}. {kept}; the file is kept as {aside.name}"


def _wait_for_lock(handle: int) -> None:
    """Lock an open file.

    Raises:
        ProgressError: if another process has held it for too long.
    """
    deadline = time.monotonic() + LOCK_WAIT_S
    while not _try_lock(handle):
        if time.monotonic() >= deadline:
            raise ProgressError("another notebook is writing to it; the next answer tries again")
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


def write_whole(target: Path, text: str) -> None:
    """Write a file, whole or not at all.

    Raises:
        OSError: if it cannot be written there.
    """
    handle, part = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def standard_place() -> Place:
    """The place of this kernel's learner."""
    named = os.environ.get(HOME_VARIABLE)
    folders = [Path(named).expanduser().absolute()] if named else []
    beside = _beside_notebooks()
    if beside is not None:
        folders.append(beside / FOLDER)
    with suppress(RuntimeError, KeyError):  # no home folder
        folders.append(_user_folder())
    older = None if beside is None or named else beside / NOTEBOOKS / FILE_NAME
    for folder in folders:
        if _writable(folder):
            return Place(folder / FILE_NAME, older=older)
    listed = ", ".join(map(str, folders)) or "none"
    return Place(
        None,
        problem=(
            f"your answers are in memory only: no folder to keep them in (tried: {listed});"
            f" set {HOME_VARIABLE}, or download them"
        ),
    )


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


def _cannot(what: str, file: Path, error: Any) -> str:
    reason = getattr(error, "strerror", None) or str(error)
    return f"{file}: cannot {what} your answers there: {reason}"
