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
        CommandError: no capture is there, or none is good, or the folder cannot be written.
    """
    from workbench.analysis.errors import AnalysisError
    from workbench.analysis.places import is_url

    if Path(arguments.output).is_file():
        raise CommandError(
            f"{arguments.output}: is a file; several captures become a folder of traces"
        )
    try:
        result = _imported(arguments)
    except AnalysisError as error:
        raise CommandError(str(error)) from None
    for failure in result.failures:
        say(f"workbench import: skipped: {failure}")
    if result.failures and arguments.strict:
        say("workbench import: nothing written, because --strict was said")
        return BAD_INPUT
    if arguments.output.endswith(".parquet") and not is_url(arguments.output):
        say(f"{arguments.output}: is a folder, with one Parquet file for each capture")
    there = f", {result.kept:,} there already" if result.kept else ""
    say(f"{arguments.output}: {result.files:,} captures, {result.rows:,} rows{there}")
    return DONE


def _imported(arguments: argparse.Namespace) -> Ingested:
    from workbench.analysis.errors import AnalysisError
    from workbench.analysis.java import find_java
    from workbench.analysis.places import captures, is_url

    files = captures(arguments.captures)  # what is not there is told before Spark starts
    try:
        find_java()
    except AnalysisError as error:
        if is_url(arguments.output):
            raise AnalysisError(f"{arguments.output}: only Spark writes there; {error}") from None
        say("no Java here: the captures are read one after the other")
        return _one_by_one(arguments, files, Path(arguments.output))
    from workbench.analysis.ingest import ingest
    from workbench.analysis.session import get_spark

    spark = get_spark(say=say, quick=True)
    with Progress("importing", len(files), unit="captures") as progress:
        return ingest(
            spark, files, arguments.output, port=arguments.port, redact=arguments.redact,
            strict=arguments.strict, progress=progress.at,
        )  # fmt: skip


def _one_by_one(arguments: argparse.Namespace, given: list[str], folder: Path) -> Ingested:
    """The same without Spark: the same names, rows, and lines for what is bad.

    With --strict nothing may be left if one is bad: the parts wait beside the folder.
    """
    from workbench.analysis.errors import AnalysisError

    aside = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        aside.mkdir()
        result = _read_each(arguments, given, folder, aside)
        if not (arguments.strict and result.failures):
            for part in sorted(aside.iterdir()):
                part.replace(folder / part.name)
    except OSError as error:
        raise AnalysisError(f"{folder}: cannot write there: {error.strerror or error}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if made and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    if not result.files and not result.kept:
        raise AnalysisError("; ".join(result.failures) or "no capture was given")
    return result


def _read_each(
    arguments: argparse.Namespace, given: list[str], folder: Path, aside: Path
) -> Ingested:
    from workbench.analysis.errors import AnalysisError
    from workbench.analysis.ingest import Ingested
    from workbench.analysis.places import fetched, part_name
    from workbench.capture.importer import CaptureError, read_tables, run_name
    from workbench.trace import files

    result, seen = Ingested(), set()
    with Progress("importing", len(given), unit="captures") as progress:
        for number, name in enumerate(given):
            progress.at(number, len(given))
            try:
                with fetched(name) as file:
                    run = run_name(file)
                    part = part_name(run)
                    if part in seen:
                        result.failures.append(f"{run}: the same capture was given twice")
                        continue
                    seen.add(part)
                    if (folder / part).exists():
                        result.kept += 1
                        continue
                    tables = read_tables(file, run, port=arguments.port, redact=arguments.redact)
                    place = (aside if arguments.strict else folder) / part
                    result.rows += files.write_tables(place, tables)
                    result.files += 1
            except (AnalysisError, CaptureError) as error:
                result.failures += str(error).splitlines()
            except files.TraceFileError as error:
                raise AnalysisError(str(error)) from None
    return result
