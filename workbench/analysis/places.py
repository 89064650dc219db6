"""Where captures lie and traces go: folders here, or URLs that the cluster's Spark knows.

A path is a local one unless it has a scheme (`hdfs://...`, `s3a://...`). What is at a URL is
reached through Arrow's file systems, by the tasks as by the driver, and not through Spark.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import platform
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from workbench.aside import aside
from workbench.trace.files import files_in

from .errors import AnalysisError

__all__ = ["Target", "captures", "exists", "fetched", "is_url", "sent", "spark_path", "target_at"]

_CAPTURE = re.compile(r"\.((pcap|pcapng|cap|txt|log)\d*|gz)$", re.IGNORECASE)
"""Names of captures in a folder; a rotating tcpdump leaves `x.pcap1`, `x.pcap2`, ..."""
_SUFFIXES = ".pcap, .pcapng, .cap, .txt, .log, .gz"
_TEXT = re.compile(r"\.(txt|log)\d*$", re.IGNORECASE)
_FRAME_LOG = re.compile(rb"\[[^\]\s]+\]\s*:.*(<-|->)\s+(@|AMQP|SASL|EOS)")
_SNIFFED = 1 << 16
_GLOB = "*?["
_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}
"""Spark's names of schemes, and Arrow's."""


def is_url(path: str | Path) -> bool:
    """Whether a path has a scheme."""
    return "://" in str(path)


def spark_path(path: str | Path) -> str:
    """A local path as Spark takes it: what would be a pattern is meant literally.

    Raises:
        AnalysisError: Spark cannot read such a name.
    """
    if ":" in Path(path).name:
        raise AnalysisError(f"{path}: Spark reads no file with ':' in its name; rename it")
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path))


def captures(paths: str | Path | Iterable[str | Path]) -> list[str]:
    """The capture files that paths stand for: files, folders of them, or patterns with `*`.

    The largest come first, so that no large one is left for the end.

    Raises:
        AnalysisError: a path stands for none, or may not be read.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found: dict[str, int] = {}
    for each in given:
        some = dict(_remote(str(each)) if is_url(each) else _local(str(each)))
        if not some:
            raise AnalysisError(f"{each}: no capture there ({_SUFFIXES})")
        found |= some
    return sorted(found, key=lambda name: -found[name])


def _local(text: str) -> Iterator[tuple[str, int]]:
    place = Path(text)
    if place.is_dir():
        try:
            some = [file for file in sorted(files_in(place)) if _is_capture(file.name)]
        except OSError as error:
            raise AnalysisError(f"{error.filename}: {error.strerror}") from None
        some = [file for file in some if not _TEXT.search(file.name) or _has_frames(file)]
    elif not place.exists() and any(sign in text for sign in _GLOB):
        some = [Path(name) for name in sorted(glob.glob(text, recursive=True))]
    else:
        yield text, place.stat().st_size if place.exists() else 0
        return
    for file in some:
        if file.is_file():
            yield str(file), file.stat().st_size


def _is_capture(name: str) -> bool:
    return not name.startswith((".", "_")) and _CAPTURE.search(name) is not None


def _has_frames(file: Path) -> bool:
    """Whether a text in a folder is a frame log; notes beside captures are no bad captures."""
    try:
        with file.open("rb") as stream:
            return _FRAME_LOG.search(stream.read(_SNIFFED)) is not None
    except OSError:
        return True  # told by name when it is read


def _remote(url: str) -> Iterator[tuple[str, int]]:
    import pyarrow.fs as pafs

    system, path = _arrow(url)
    head = url[: len(url) - len(path)] if url.endswith(path) else url.split("://")[0] + "://"
    pattern = any(sign in path for sign in _GLOB)
    with _clear(url):
        info = system.get_file_info(path)
        if info.type == pafs.FileType.File or not (pattern or info.type == pafs.FileType.Directory):
            yield url, info.size or 0
            return
        top = path
        while any(sign in top for sign in _GLOB):
            top = top.rsplit("/", 1)[0]
        listed = system.get_file_info(pafs.FileSelector(top or "/", recursive=True))
    for one in listed:
        wanted = fnmatch.fnmatch(one.path, path) if pattern else _is_capture(one.base_name)
        if one.type == pafs.FileType.File and wanted:
            yield head + one.path, one.size or 0


def _arrow(url: str) -> tuple[Any, str]:
    """Arrow's file system of a URL, and the path in it."""
    import pyarrow.fs as pafs

    scheme, rest = url.split("://", 1)
    with _clear(url):
        system, path = pafs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}://{rest}")
    return system, path


@contextmanager
def _clear(url: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise AnalysisError(f"{url}: {str(error).splitlines()[0]}") from None


@contextmanager
def fetched(path: str) -> Iterator[Path]:
    """A capture as a local file: itself, or a copy of what is at its URL, gone at the end.

    Raises:
        AnalysisError: it cannot be fetched.
    """
    if not is_url(path):
        yield Path(path)
        return
    import pyarrow.fs as pafs

    with aside() as folder:
        copy = folder / path.rsplit("/", 1)[-1]
        system, inside = _arrow(path)
        with _clear(path):
            pafs.copy_files(inside, str(copy), system, pafs.LocalFileSystem())
        yield copy


def exists(path: str) -> bool:
    """Whether there is a file.

    Raises:
        AnalysisError: its place cannot be reached.
    """
    if not is_url(path):
        return Path(path).exists()
    import pyarrow.fs as pafs

    system, inside = _arrow(path)
    with _clear(path):
        return bool(system.get_file_info(inside).type != pafs.FileType.NotFound)


def sent(file: Path, url: str) -> None:
    """A local file, copied to a URL.

    Raises:
        AnalysisError: it cannot be written there.
    """
    import pyarrow.fs as pafs

    system, inside = _arrow(url)
    with _clear(url):
        pafs.copy_files(str(file), inside, pafs.LocalFileSystem(), system)


def target_at(folder: str | Path) -> Target:
    """The folder at a path or URL; made if it is missing.

    Raises:
        AnalysisError: nothing can be written there.
    """
    return _Url(str(folder)) if is_url(folder) else _Folder(Path(folder))


class _Folder:
    """A local folder, or one that all machines of a cluster have mounted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        if self.folder.exists() and not self.folder.is_dir():
            raise AnalysisError(f"{folder}: is a file; several captures become a folder of traces")
        self._made = not self.folder.exists()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AnalysisError(f"{folder}: cannot write there: {error.strerror}") from None
        self._here = f".import.{platform.node()}."
        self._forget_the_dead()
        self._aside = self.folder / f"{self._here}{os.getpid()}"
        self.there = str(self.folder)

    def make(self) -> str:
        """The folder aside."""
        self._aside.mkdir(exist_ok=True)
        return str(self._aside)

    def keep(self, written: str, name: str) -> None:
        """Put a file that was written aside under its name."""
        (self._aside / written).replace(self.folder / name)

    def clear(self) -> None:
        """Take away what is aside, and the folder if nothing came of it."""
        shutil.rmtree(self._aside, ignore_errors=True)
        if self._made:
            with suppress(OSError):  # there is something in it
                self.folder.rmdir()

    def _forget_the_dead(self) -> None:
        """What an import left that was killed on this machine."""
        for left in self.folder.glob(f"{glob.escape(self._here)}*"):
            number = left.name.removeprefix(self._here)
            if number.isdigit() and not _lives(int(number)):
                shutil.rmtree(left, ignore_errors=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


class _Url:
    """A folder of a file system that Arrow knows."""

    def __init__(self, url: str) -> None:
        self.there = url.rstrip("/")
        self._system, self._path = _arrow(self.there)
        self._aside = f".import.{uuid.uuid4().hex}"
        with _clear(self.there):
            self._system.create_dir(self._path)

    def make(self) -> str:
        with _clear(self.there):
            self._system.create_dir(f"{self._path}/{self._aside}")
        return f"{self.there}/{self._aside}"

    def keep(self, written: str, name: str) -> None:
        with _clear(self.there):
            self._system.move(f"{self._path}/{self._aside}/{written}", f"{self._path}/{name}")

    def clear(self) -> None:
        import pyarrow.fs as pafs

        aside = f"{self._path}/{self._aside}"
        with _clear(self.there):
            if self._system.get_file_info(aside).type != pafs.FileType.NotFound:
                self._system.delete_dir(aside)


Target = _Folder | _Url
"""A folder that a trace is written into: first aside, then under its name."""
