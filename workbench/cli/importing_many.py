"""Folders and patterns of captures: as a Spark job, or file by file where there is no Java."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.trace.words import counted

from .console import BAD_INPUT, DONE, CommandError, Progress, say

if TYPE_CHECKING:
    from workbench.analysis.ingest import Ingested

__all__ = ["import_many", "is_many"]


def is_many(path: str) -> bool:
    """Whether a path stands for several captures, or for some that are not on this machine.

    A folder, a pattern that no shell has filled in, or a URL.
    """
    from workbench.analysis.places import is_url

    place = Path(path)
    return (
        is_url(path)
        or place.is_dir()
        or (not place.exists() and any(sign in path for sign in "*?["))
    )


def import_many(arguments: argparse.Namespace) -> int:
    """Make a folder of traces, one for each capture; those that are there already stay.

    Raises:
        CommandError: the output is a file.
        AnalysisError: no capture is there, or none is good, or the folder cannot be written.
    """
    from workbench.analysis.places import is_url

    if Path(arguments.output).is_file():
        raise CommandError(
            f"{arguments.output}: is a file; several captures become a folder of traces"
        )
    result = _imported(arguments)
    for failure in result.failures:
        say(f"workbench import: skipped: {failure}")
    for remark in result.remarks:
        say(f"workbench import: {remark}")
    if result.failures and arguments.strict:
        say("workbench import: nothing written, because --strict was said")
        return BAD_INPUT
    if arguments.output.endswith(".parquet") and not is_url(arguments.output):
        say(f"{arguments.output}: is a folder, with one Parquet file for each capture")
    there = f", {result.kept:,} there already" if result.kept else ""
    made = f"{counted(result.files, 'capture')}, {counted(result.rows, 'row')}"
    say(f"{arguments.output}: {made}{there}")
    return DONE


def _imported(arguments: argparse.Namespace) -> Ingested:
    from workbench.analysis.errors import AnalysisError
    from workbench.analysis.places import captures, is_url
    from workbench.analysis.session import Settings, get_spark

    files = captures(arguments.captures)  # what is not there is told before Spark starts
    try:
        Settings.found().java()
    except AnalysisError as error:
        if is_url(arguments.output):
            raise AnalysisError(f"{arguments.output}: only Spark writes there; {error}") from None
        say("no Java here: the captures are read one after the other")
        return _one_by_one(arguments, files, Path(arguments.output))
    from workbench.analysis.ingest import ingest

    spark = get_spark(say=say, quick=True)
    with Progress("importing", len(files), unit="captures") as progress:
        return ingest(
            spark, files, arguments.output, port=arguments.port, redact=arguments.redact,
            strict=arguments.strict, progress=progress.at,
        )  # fmt: skip


def _one_by_one(arguments: argparse.Namespace, given: list[str], folder: Path) -> Ingested:
    """The same without Spark: the same names, rows, and lines for what is bad."""
    from workbench.analysis.errors import AnalysisError
    from workbench.analysis.ingest import Ingested
    from workbench.analysis.places import fetched
    from workbench.capture.importer import CaptureError, import_files

    @contextmanager
    def fetch(path: str) -> Iterator[Path]:
        try:
            with fetched(path) as file:
                yield file
        except AnalysisError as error:
            raise CaptureError(str(error)) from None

    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with Progress("importing", unit="octets") as progress:
            report = import_files(
                given, folder, port=arguments.port, redact=arguments.redact,
                strict=arguments.strict, progress=progress.at, fetch=fetch,
            )  # fmt: skip
    except CaptureError as error:
        raise AnalysisError("; ".join(str(error).splitlines())) from None
    except OSError as error:
        raise AnalysisError(f"{folder}: cannot write there: {error.strerror or error}") from None
    finally:
        if made and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return Ingested(
        files=len(report.captures), rows=report.rows, kept=report.kept, failures=report.failures,
        remarks=[remark for capture in report.captures for remark in capture.remarks],
    )  # fmt: skip
