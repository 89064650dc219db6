"""`workbench lab`: JupyterLab on the map of the lessons."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path, PurePath

from workbench.exercises.working_copies import FOLDER, lessons_of

from .console import CommandError, UsageError, add_port

HELP = "open the lessons in JupyterLab"
TEXT = """\
Open JupyterLab on the map of the lessons.

You work on copies of your own, in my/: the lessons in notebooks/ stay as they
are.

The lessons are looked for in the current folder, in the folders above it, and
in the checkout that this command belongs to. Everything stays on this machine:
the server listens on loopback only.

  workbench lab
  workbench lab --no-browser --port 9000
  workbench lab 01_credit                 open a lesson itself
  workbench lab -- --ServerApp.token=x    what follows -- goes to JupyterLab
"""

INDEX = "00_index"
CONFIG_PATH = "JUPYTER_CONFIG_PATH"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `lab` takes."""
    parser.add_argument(
        "lesson", nargs="?", default=INDEX, help="name of a notebook (default: the index)"
    )
    add_port(parser, "TCP port, 1 to 65535")
    parser.add_argument("--no-browser", action="store_true", help="only say the address")
    parser.set_defaults(jupyter=[])  # what follows `--`; see `main.parse`


def command(arguments: argparse.Namespace) -> int:
    """Become JupyterLab."""
    line = command_line(arguments)
    check_runtime_folder()
    # The settings of the checkout, wherever the environment comes from.
    settings = [str(notebooks().parent / "binder" / "jupyter"), os.environ.get(CONFIG_PATH, "")]
    os.environ[CONFIG_PATH] = os.pathsep.join(filter(None, settings))
    sys.stdout.flush()
    if os.name == "nt":
        return subprocess.call(line)
    os.execv(line[0], line)
    return 0


def check_runtime_folder() -> None:
    """Make the folder without which JupyterLab does not start.

    Raises:
        CommandError: it cannot be made, or nothing can be written there.
    """
    from jupyter_core.paths import jupyter_runtime_dir

    folder = jupyter_runtime_dir()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CommandError(
            f"{folder}: JupyterLab must write there: {error.strerror}; set HOME (or"
            " JUPYTER_RUNTIME_DIR) to a folder of your own"
        ) from None


def command_line(arguments: argparse.Namespace) -> list[str]:
    """The command that starts JupyterLab.

    Raises:
        CommandError: if there is no JupyterLab, no such lesson, or the port is none.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise CommandError("JupyterLab is not installed; `python3 wb.py lab` installs all it takes")
    folder = notebooks()
    name = PurePath(arguments.lesson).name.removesuffix(".ipynb")
    known = [path.stem for path in lessons_of(folder.parent)]
    if name not in known:
        raise UsageError(f"no lesson {name!r}; there are: {', '.join(known)}")
    line = [sys.executable, "-m", "jupyterlab"]
    line.append(f"--ServerApp.root_dir={folder.parent}")
    line.append(f"--LabApp.default_url=/lab/tree/{FOLDER}/{name}.ipynb")
    if arguments.port is not None:
        line.append(f"--ServerApp.port={arguments.port}")
    if arguments.no_browser:
        line.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        line.append("--allow-root")
    return line + arguments.jupyter


def notebooks() -> Path:
    """The folder of the lessons.

    Raises:
        CommandError: if it is neither here, nor above, nor beside the package.
    """
    here = Path.cwd()
    checkout = Path(__file__).resolve().parents[2]
    for folder in (here, *here.parents, checkout):
        if (folder / "notebooks" / f"{INDEX}.ipynb").is_file():
            return folder / "notebooks"
    raise CommandError(
        f"no notebooks/{INDEX}.ipynb in {here} or above: go to the project's checkout first"
    )
