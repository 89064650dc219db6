"""Captures into a folder of traces, several at a time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.trace.words import counted

from .asking import master_is_named
from .console import BAD_INPUT, DONE, CommandError, Progress, say

if TYPE_CHECKING:
    from workbench.analysis.ingest import Ingested

__all__ = ["import_many", "is_many"]

FEW = 16
"""The full report is printed for so many captures at most; of more, only what is wrong."""


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
    if len(result.reports) <= FEW:
        for report in result.reports:
            print(report)
    else:
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
    from workbench.analysis.ingest import captures, ingest

    files = captures(arguments.captures)  # what is not there is told before Spark starts
    spark = None
    if master_is_named():
        from workbench.analysis.session import get_spark

        spark = get_spark(say=say, quick=True)
    with Progress("importing", len(files), unit="captures") as progress:
        return ingest(
            spark, files, arguments.output, port=arguments.port, redact=arguments.redact,
            strict=arguments.strict, progress=progress.at,
        )  # fmt: skip
