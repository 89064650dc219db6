"""`workbench export`: a trace as a page or as a capture, and a run as a test."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.trace.words import counted

from .console import (
    CommandError,
    Progress,
    UsageError,
    add_many,
    add_output,
    add_run,
    add_trace,
    say,
)
from .places import output_file, reading
from .testing import EXPECTS, as_test

if TYPE_CHECKING:
    from workbench.trace.schema import Row

HELP = "write a trace as a self-contained page or as a capture, a run as a test"
TEXT = """\
Write a trace in a form for others; the ending of the name says which.

  .html     a page that plays the trace: open it from disk, no network needed
  .pcapng   a capture that Wireshark reads, frame by frame
  .py       a pytest file that plays a run again; of a run's share code, which
            a trace does not hold

  workbench export credit.parquet -o credit.html
  workbench export long.parquet --from 40000 --to 41000 -o there.html
  workbench export credit.parquet -o credit.pcapng
  workbench run credit --act grant:link_credit=3 --share | workbench export - \\
      -o test_credit.py --expect no-overrun --expect blocked=link-credit

A page holds at most 5,000 rows; choose them with --from and --to. The state
before the first of them is worked out, so that a slice from the middle shows
the right counters at once.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `export` takes."""
    add_trace(parser)
    about = "a name ending in .html or .pcapng; or, for a share code in place of TRACE, in .py"
    add_output(parser, "FILE", about, required=True)
    add_many(parser, "--expect", "WHAT", f"of a test: {EXPECTS}")
    add_run(parser)
    parser.add_argument("--from", type=int, metavar="SEQ", dest="first", help="the first row")
    parser.add_argument("--to", type=int, metavar="SEQ", dest="last", help="the last row")
    parser.add_argument("--title", default="", metavar="TEXT", help="title of the page")


def command(arguments: argparse.Namespace) -> int:
    """Read, choose, write."""
    from workbench.trace.cut import pieces_of, run_of

    target = output_file(arguments.output, (".html", ".pcapng", ".py"), [arguments.trace])
    if arguments.title and target.suffix != ".html":
        raise UsageError("--title is for a page: a name ending in .html")
    if target.suffix == ".py":
        return _test(target, arguments)
    if arguments.expect:
        raise UsageError("--expect is for a test: a name ending in .py")
    if _is_code(arguments.trace):
        raise UsageError(
            "of a share code only a test is made, a name ending in .py; the trace that a page or a"
            " capture is made of comes from `workbench run --code CODE -o run.parquet`"
        )
    with reading(arguments.trace):
        run, pieces = run_of(arguments.trace, arguments.run), pieces_of(arguments.trace)
        first, last = _slice(pieces.bounds(run), arguments.first, arguments.last)
        if target.suffix == ".html":
            _page(target, arguments, run, first, last)
        else:
            _capture(target, pieces.rows(run, first, last + 1))
    return 0


def _is_code(trace: str) -> bool:
    """Whether what is given for a trace is a share code, or stands for one."""
    from workbench.trace.share import BEGIN

    return trace == "-" or (trace.startswith(BEGIN) and not os.path.exists(trace))


def _test(target: Path, arguments: argparse.Namespace) -> int:
    """A run as a test."""
    from workbench.trace.whole import write_whole

    from .running import of_code

    if arguments.run is not None or arguments.first is not None or arguments.last is not None:
        raise UsageError("--run, --from and --to are for a trace; a test is of a whole run")
    if not target.name.startswith("test_"):
        raise UsageError(f"{target.name}: pytest looks for names that begin with test_")
    if os.path.exists(arguments.trace):  # a Path refuses the length of a share code
        raise CommandError(
            f"{arguments.trace}: a trace does not hold what its run was made of; give the share"
            " code of the run, or - to read it from stdin (`workbench run ... --share` prints it)"
        )
    run, _ = of_code(arguments.trace, strict=True)
    text = as_test(run, arguments.expect)
    write_whole(target, text)
    say(f"{target}: {counted(text.count('def test_'), 'test')}; to run: pytest {target}")
    return 0


def _slice(bounds: tuple[int, int], first: int | None, last: int | None) -> tuple[int, int]:
    """`seq` of the first and the last row that are wanted.

    Raises:
        CommandError: none is, or they are outside the run.
    """
    low, high = bounds
    first = low if first is None else first
    last = high if last is None else last
    if not low <= first <= last <= high:
        raise UsageError(f"no rows from {first} to {last}; legal: {low} to {high}")
    return first, last


def _page(target: Path, arguments: argparse.Namespace, run: str, first: int, last: int) -> None:
    from workbench.trace.cut import cut, pieces_of
    from workbench.views import scene
    from workbench.views.opening import told
    from workbench.views.stage_page import export

    parts = pieces_of(arguments.trace).chosen(run, first, last + 1, ("run", "seq"))
    count = sum(map(len, parts))  # rows may be lost: their numbers do not tell
    if count > scene.MOST_ROWS:
        raise UsageError(
            f"{count:,} rows are too many for a page (at most {scene.MOST_ROWS:,}):"
            f" choose some with --from and --to, from {first} to {last}"
        )
    with Progress("making the page"):
        part, note = told(cut(arguments.trace, first, run, upto=last))
        export(part, target, title=arguments.title, note=note)
    say(f"{target}: {counted(count, 'row')}, {target.stat().st_size:,} octets")


def _capture(target: Path, rows: list[Row]) -> None:
    from workbench.trace.pcapng_out import export

    with Progress("making the capture"):
        written = export(rows, target)
    say(f"{target}: {counted(written.frames, 'frame')}, {target.stat().st_size:,} octets")
    if written.rebuilt:
        frames = counted(written.rebuilt, "frame")
        say(f"{frames} had no octets in the trace: their payload is zeros")
