"""Make the locks and the conda environments from `pyproject.toml`.

    python requirements/lock.py            resolve anew and write everything (needs the network)
    python requirements/lock.py --envs     write only the two environment files, from the locks
    python requirements/lock.py --check    write nothing; exit 1 where a file is out of step

What is made, and from what:

    runtime.lock               [project.dependencies]             what a learner runs
    dev.lock                   the same and the `dev` extra       what `wb.py test` runs
    proton.lock                the `proton` extra                 only where there is a compiler
    clients.lock               the `clients` extra                with `wb.py test`, where proton is
    build.lock                 BUILD_REQUIRES below               builds what comes as source
    uv.txt                     UV_REQUIRES below                  the installer itself
    ../environment.yml         runtime.lock and proton.lock       direct dependencies, pinned
    ../binder/environment.yml  the same                           everything, pinned

One lock serves every supported Python: where versions differ by Python, the line says so in its
marker. A lock carries a hash of each file and names no index, so it can be installed from any
mirror. The locks of the smaller sets are made first and bind the larger ones.

conda supplies no more than Python and pip: everything else comes from the same locks everywhere.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parent

# Binder and the development machines use the floor: what works there works above.
PYTHON = "3.11"
UV_REQUIRES = ["uv>=0.9"]
BUILD_REQUIRES = ["setuptools>=77,<90", "wheel", "cffi>=1.17"]
# What conda's environment leaves out: the tests' tools.
ENV_LOCKS = ("runtime.lock", "proton.lock")
# The machine that Binder builds for; picks the lines of a lock whose markers are true there.
BINDER_MARKERS = {
    "python_version": PYTHON,
    "python_full_version": f"{PYTHON}.99",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
    "os_name": "posix",
    "extra": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One `name==version ; marker` line of a lock, with its hashes."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def canonical(name: str) -> str:
    """Give the one spelling of a package name that all others are compared by (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path) -> list[Pin]:
    """Read a hashed lock.

    Raises:
        ValueError: a line is neither a pin nor a hash of one.
    """
    pins: list[Pin] = []
    for logical in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        line = logical.strip()
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(
            r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)"
            r"(?:\s*;\s*(?P<marker>.*?))?(?P<hashes>(?:\s+--hash=\S+)*)",
            line,
        )
        if match is None:
            raise ValueError(f"{path.name}: not a pinned line: {line[:80]}")
        pins.append(
            Pin(
                name=canonical(match["name"]),
                version=match["version"],
                marker=(match["marker"] or "").strip(),
                hashes=tuple(re.findall(r"--hash=(\S+)", match["hashes"])),
            )
        )
    return pins


def project() -> dict[str, list[str]]:
    """Give the declared requirements: `runtime`, and each extra by its name."""
    declared = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {"runtime": declared["dependencies"], **declared["optional-dependencies"]}


def for_binder(pins: list[Pin]) -> list[Pin]:
    """Keep the pins that hold on Binder's machine.

    The markers that a universal lock holds are comparisons joined by `and` / `or`; they are
    evaluated with the `packaging` library, which every environment of the project has.
    """
    from packaging.markers import Marker

    return [
        pin for pin in pins if not pin.marker or Marker(pin.marker).evaluate(dict(BINDER_MARKERS))
    ]


def environment_text(name: str, heading: str, pins: list[Pin]) -> str:
    """Write a conda environment file whose packages all come through pip."""
    lines = [
        f"# {heading}",
        "# Made by requirements/lock.py from the locks; do not edit by hand.",
        f"name: {name}",
        "channels:",
        "  - conda-forge",
        "dependencies:",
        f"  - python={PYTHON}",
        "  - pip",
        "  - pip:",
        *(f"      - {pin.name}=={pin.version}" for pin in pins),
    ]
    return "\n".join(lines) + "\n"


def environment_files() -> dict[Path, str]:
    """Compute both environment files from the locks as they are."""
    pins = {pin.name: pin for lock in ENV_LOCKS for pin in for_binder(read_lock(HERE / lock))}
    every = [pins[name] for name in sorted(pins)]
    declared = project()
    direct_names = {
        canonical(re.split(r"[^A-Za-z0-9._-]", requirement)[0])
        for requirement in declared["runtime"] + declared["proton"]
    }
    direct = [pin for pin in every if pin.name in direct_names]
    return {
        REPO / "environment.yml": environment_text(
            "amqp-flow-workbench",
            "The conda way to the workbench; then: pip install --no-deps -e .",
            direct,
        ),
        REPO / "binder" / "environment.yml": environment_text(
            "amqp-flow-workbench-binder",
            "Binder's environment, every package pinned; binder/postBuild adds the workbench.",
            every,
        ),
    }


def compile_lock(output: str, requirements: list[str], *, constraints: list[str]) -> None:
    """Resolve `requirements` into `requirements/<output>`, bound by other locks."""
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "-",
        "--universal", "--python-version", PYTHON, "--generate-hashes",
        "--no-emit-index-url", "--no-annotate", "--no-header", "--quiet",
        "--output-file", str(HERE / output),
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        for constraint in constraints:
            # uv takes no hashes in a constraint file: give it the pins alone.
            plain = Path(scratch) / constraint
            plain.write_text(
                "".join(
                    f"{pin.name}=={pin.version}" + (f" ; {pin.marker}" if pin.marker else "") + "\n"
                    for pin in read_lock(HERE / constraint)
                ),
                encoding="utf-8",
            )
            command += ["--constraints", str(plain)]
        (HERE / output).unlink(missing_ok=True)
        subprocess.run(
            command,
            input="\n".join(requirements) + "\n",
            text=True,
            check=True,
            env={**os.environ, "UV_SYSTEM_CERTS": "1"},
        )
    print(f"wrote requirements/{output}: {len(read_lock(HERE / output))} packages")


def resolve() -> None:
    """Resolve every lock anew, the smaller sets first."""
    declared = project()
    compile_lock("uv.txt", UV_REQUIRES, constraints=[])
    compile_lock("runtime.lock", declared["runtime"], constraints=[])
    compile_lock("proton.lock", declared["proton"], constraints=["runtime.lock"])
    compile_lock("build.lock", BUILD_REQUIRES, constraints=["runtime.lock"])
    compile_lock("dev.lock", declared["runtime"] + declared["dev"], constraints=["runtime.lock"])
    compile_lock("clients.lock", declared["clients"], constraints=["dev.lock", "proton.lock"])


def main() -> int:
    """Run the command line described at the top of this file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="write nothing, compare")
    mode.add_argument("--envs", action="store_true", help="write only the environment files")
    options = parser.parse_args()
    if not (options.check or options.envs):
        resolve()
    stale = [
        path
        for path, text in environment_files().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        name = path.relative_to(REPO)
        if options.check:
            print(f"{name} does not agree with the locks: run python requirements/lock.py --envs")
        else:
            path.write_text(environment_files()[path], encoding="utf-8")
            print(f"wrote {name}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
