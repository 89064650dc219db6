"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from workbench.aside import held, sweep
from workbench.notebook import PlainError

__all__ = ["WriteError", "part_of", "write_whole", "written_whole"]


class WriteError(PlainError, OSError):
    """A file cannot be written; it names the file, and nothing is left of it."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def part_of(path: Path) -> Path:
    """A name beside a file for what is not all of it yet; nobody else has it.

    It is to be `held`: what killed processes have left of others goes when the first is made here.
    """
    _clear(path.parent)
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


@cache
def _clear(folder: Path) -> None:
    sweep(folder, ".*.????????.part")


@contextmanager
def written_whole(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of what was there when all is written.

    Args:
        path: where it is to be.
        private: nobody else may read it.

    Raises:
        WriteError: it cannot be written.
    """
    target = Path(path)
    part = part_of(target)
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with open(handle, "wb") as file, held(part):
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        raise WriteError(error.errno, error.strerror or str(error), str(target)) from None
    finally:
        with suppress(OSError):
            part.unlink()


def write_whole(path: str | os.PathLike[str], text: str, *, private: bool = False) -> Path:
    """Write a text; see `written_whole`.

    Raises:
        WriteError: it cannot be written.
    """
    with written_whole(path, private=private) as file:
        file.write(text.encode("utf-8"))
    return Path(path)
