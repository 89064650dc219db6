"""Which commands there are, and what happens to whatever goes wrong in one of them."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from workbench import __version__
from workbench.notebook import PlainError

from .console import BAD_INPUT, DONE, STOPPED, CommandError, UsageError, one_line

# In the order in which a person meets them, with the module of each, which is loaded when it is
# asked for and has HELP, TEXT, add_arguments and command.
MODULES = {
    "lab": "lab",
    "look": "looking",
    "scenarios": "scenarios",
    "run": "running",
    "show": "showing",
    "explore": "exploring",
    "export": "exporting",
    "import": "importing",
    "analyze": "analyzing",
    "serve": "serving",
    "snapshot": "snapshotting",
    "doctor": "doctor",
}

SHOW_TRACEBACK = "WORKBENCH_TRACEBACK"

TEXT = """\
Drive AMQP flow control by hand and see both ends, frame by frame.

  workbench lab                           the lessons, in JupyterLab
  workbench look a.pcapng                 who waited, how long, why, the remedy
  workbench scenarios                     what can be run, with its parameters
  workbench run credit -o t.parquet       play a scenario, keep its trace
  workbench show t.parquet                the trace in words
  workbench explore --rule set            every schedule, the shortest bad one
  workbench export t.parquet -o t.html    a page that steps through it
  workbench import a.pcapng -o t.parquet  make a trace of a broker's capture
  workbench analyze t.parquet stalls      who waited, how long, for which brake
  workbench serve --trace live            a broker for clients of your own
  workbench snapshot amqp://localhost     queues and links as they are now
"""

EPILOG = """\
A TRACE is a Parquet file of `run` or `import`, or a folder of such files.
Exit codes: 0 done; 1 a file is bad or cannot be used; 2 a wrong command line.
WORKBENCH_TRACEBACK=1 shows where in the program an unexpected error came from.
"""


class Parser(argparse.ArgumentParser):
    """argparse, with mistakes told in one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where to read on."""
        raise UsageError(f"{message} (see `{self.prog} --help`)")


def commands(*names: str) -> dict[str, ModuleType]:
    """The modules of these commands, or of all, by name."""
    return {name: import_module(f"{__package__}.{MODULES[name]}") for name in names or MODULES}


def parser(*names: str) -> argparse.ArgumentParser:
    """The command line with these commands, or with all."""
    whole = Parser(
        prog="workbench",
        description=TEXT,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"workbench {__version__}")
    listed = whole.add_subparsers(
        title="commands", metavar="COMMAND", dest="command_name", required=True
    )
    for name, module in commands(*names).items():
        one = listed.add_parser(
            name,
            help=module.HELP,
            description=module.TEXT,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(one)
        one.set_defaults(command=module.command)
    return whole


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read a command line.

    What follows `lab ... --` is JupyterLab's; argparse would look for arguments of ours in it.

    Raises:
        CommandError: if it is wrong.
        SystemExit: after `--help` and `--version`.
    """
    words = list(argv)
    known = words[:1] if words[:1] and words[0] in MODULES else []
    if known != ["lab"] or "--" not in words:
        return parser(*known).parse_args(words)
    cut = words.index("--")
    arguments = parser("lab").parse_args(words[:cut])
    arguments.jupyter = words[cut + 1 :]
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Do what a command line asks for.

    Args:
        argv: the arguments, without the program's name; those of this process if None.

    Returns:
        The exit code: 0, 1 or 2 as `EPILOG` says, 130 if it was interrupted.
    """
    if argv is None:
        argv = sys.argv[1:]
        for name in ("stdin", "stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by whoever started this process
                setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
            # A terminal of an old code page shows an arrow as \u2192; it does not end the command.
            with contextlib.suppress(AttributeError, ValueError):
                getattr(sys, name).reconfigure(errors="backslashreplace")
        if SHOW_TRACEBACK not in os.environ:  # which libraries log of a lost Java, too
            logging.getLogger().addHandler(logging.NullHandler())
    name = next((word for word in argv if not word.startswith("-")), "")
    prefix = f"workbench {name}: " if name in MODULES else "workbench: "
    try:
        arguments = parse(argv)
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse, after --help and --version
        return stop.code if isinstance(stop.code, int) else DONE
    except CommandError as error:
        return _fail(prefix + str(error), error.code)
    except PlainError as error:
        return _fail(prefix + str(error), BAD_INPUT)
    except BrokenPipeError:
        # Whoever read our output has had enough (`workbench show t.parquet | head`).
        _forget_stdout()
        return DONE
    except KeyboardInterrupt:
        return _fail(prefix + "stopped", STOPPED)
    except OSError as error:
        if error.filename is None and _interrupted(error):
            return _fail(prefix + "stopped", STOPPED)
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{prefix}{where}{error.strerror or error}", BAD_INPUT)
    except MemoryError:
        return _fail(prefix + "not enough memory for this", BAD_INPUT)
    except Exception as error:
        if os.environ.get(SHOW_TRACEBACK):
            raise
        if _interrupted(error):
            return _fail(prefix + "stopped", STOPPED)
        if isinstance(error, ModuleNotFoundError) and not f"{error.name}".startswith("workbench"):
            own = f"`python3 wb.py {name}` takes the workbench's own Python"
            return _fail(f"{prefix}{sys.executable} has no {error.name}; {own}", BAD_INPUT)
        kind = type(error).__name__
        ours = f"(a mistake of ours; {SHOW_TRACEBACK}=1 shows where)"
        return _fail(f"{prefix}unexpected {kind}: {error} {ours}", BAD_INPUT)
    return code


def _interrupted(error: BaseException | None) -> bool:
    """Whether it went wrong because of Ctrl-C: Py4J closes connections that are needed to stop."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _fail(text: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    print(one_line(text), file=sys.stderr)
    return code


def _forget_stdout() -> None:
    """Let the interpreter's last flush go nowhere instead of failing."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
