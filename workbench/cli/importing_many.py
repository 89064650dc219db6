"""Folders and patterns of captures: as a Spark job, or file by file where there is no Java."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from .console import BAD_INPUT, DONE, CommandError, Progress, say

if TYPE_CHECKING:
    from workbench.analysis.ingest import Ingested

__all__ = ["import_many", "is_many"]


def is_many(path: str) -> bool:
    """Whether a path stands for several captures: a folder, or a pattern no shell has filled in."""
    place = Path(path)
    return place.is_dir() or (not place.exists() and any(sign in path for sign in "*?["))


def import_many(arguments: argparse.Namespace) -> int:
    """Make a folder of traces, one for each capture; those that are there already stay.

    Raises:
        CommandError: no capture is there, or none is good, or the folder cannot be written.
    """
    from workbench.analysis.errors import AnalysisError

    target = Path(arguments.output)
    if target.is_file():
        raise CommandError(f"{target}: is a file; several captures become a folder of traces")
    # With --strict nothing may be left if one is bad: the parts wait beside the folder.
    aside = target.with_name(f".{target.name}.{os.getpid()}.part")
    folder = aside if arguments.strict else target
    try:
        result = _imported(arguments, folder)
        for failure in result.failures:
            say(f"workbench import: skipped: {failure}")
        if result.failures and arguments.strict:
            say("workbench import: nothing written, because --strict was said")
            return BAD_INPUT
        if arguments.strict:
            target.mkdir(parents=True, exist_ok=True)
            for part in sorted(aside.glob("*.parquet")):
                part.replace(target / part.name)
    except AnalysisError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"{target}: cannot write there: {error.strerror or error}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    there = f", {result.kept:,} there already" if result.kept else ""
    say(f"{target}: {result.files:,} captures, {result.rows:,} rows{there}")
    return DONE


def _imported(arguments: argparse.Namespace, folder: Path) -> Ingested:
    from workbench.analysis.errors import AnalysisError
    from workbench.analysis.ingest import captures, ingest
    from workbench.analysis.java import find_java
    from workbench.analysis.session import get_spark

    files = captures(arguments.captures)  # what is not there is told before Spark starts
    try:
        find_java()
    except AnalysisError:
        say("no Java here: the captures are read one after the other")
        return _one_by_one(arguments, files, folder)
    spark = get_spark(say=say, quick=True)
    with Progress("importing", len(files), unit="captures") as progress:
        return ingest(
            spark, files, folder, port=arguments.port, redact=arguments.redact,
            progress=progress.at,
        )  # fmt: skip


def _one_by_one(arguments: argparse.Namespace, given: list[Path], folder: Path) -> Ingested:
    """The same without Spark: the same names, rows, and lines for what is bad."""
    from workbench.analysis.errors import AnalysisError
    from workbench.analysis.ingest import Ingested
    from workbench.trace import files
    from workbench.trace.importer import CaptureError, import_capture, run_name

    folder.mkdir(parents=True, exist_ok=True)
    result, seen = Ingested(), set()
    with Progress("importing", len(given), unit="captures") as progress:
        for number, file in enumerate(given):
            progress.at(number, len(given))
            try:
                run = run_name(file)
                part = folder / f"{run}.parquet"
                if run in seen:
                    result.failures.append(f"{file.name}: the same capture was given twice")
                elif part.exists():
                    result.kept += 1
                else:
                    rows = import_capture(file, port=arguments.port, redact=arguments.redact).rows
                    result.rows += files.write(part, rows)
                    result.files += 1
                seen.add(run)
            except CaptureError as error:
                result.failures += str(error).splitlines()
            except files.TraceFileError as error:
                raise AnalysisError(str(error)) from None
    if not result.files and not result.kept:
        raise AnalysisError("; ".join(result.failures) or "no capture was given")
    return result
