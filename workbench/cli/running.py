"""`workbench run`: play a scenario, or a share code, on the virtual clock and keep its trace."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from workbench.trace.words import counted

from .choosing import add_config, preset_configured, scenario_named, settings
from .console import CommandError, Progress, UsageError, add_many, add_output, say, suggestion
from .places import output_file

HELP = "play a scenario and keep its trace"
TEXT = """\
Play a scenario on the virtual clock until it rests, and write its trace.

A run is a pure function of scenario, preset, parameters and acts: the same
command gives the same trace, on every machine. `workbench scenarios` lists
parameters and acts.

  workbench run credit -o credit.parquet
  workbench run credit --set messages=9 --set policy=one-at-a-time -o t.parquet
  workbench run credit --act grant:link_credit=3 -o credit.parquet
  workbench run two_senders --set run_ms=100 -o two_senders.parquet
  workbench run credit --act grant:link_credit=50 \\
      --act 40:grant:link_credit=0 -o stop.parquet

An act happens right after the row of that number, or, without a number, when
the run has come to rest. Before the first row it is row -1: --act=-1:NAME,
with an equals sign. A file that exists is replaced, and only when the run is
complete.

A share code is a run as one short text. `--share` prints it; `--code` plays
it, here or elsewhere:

  workbench run credit --act grant:link_credit=3 --share
  ... | workbench run --code - -o shared.parquet

Whatever of a code is altered, unknown or not legal any more is told, a line
each, and left out.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `run` takes."""
    parser.add_argument(
        "scenario", metavar="SCENARIO", nargs="?", help="what to play, such as credit"
    )
    parser.add_argument("--preset", metavar="P", help="default numbers (the scenario's own)")
    add_config(parser)
    add_many(parser, "--set", "NAME=VALUE", "a parameter", "settings")
    about = "a learner's action, in the order in which they happen"
    add_many(parser, "--act", "[SEQ:]NAME[:ARG=VALUE,...]", about, "acts")
    parser.add_argument(
        "--code", metavar="CODE", help="play the run of a share code; - reads it from stdin"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="write nothing and end with 1 if the run of a code is not the one that was shared",
    )
    parser.add_argument("--share", action="store_true", help="print the share code of the run")
    add_output(parser, "TRACE", "the Parquet file to write")


def command(arguments: argparse.Namespace) -> int:
    """Play, write, print the code."""
    if arguments.output is None and not arguments.share:
        raise UsageError(
            "say where to write the trace with -o, or ask for --share (see `workbench run --help`)"
        )
    from workbench.scenarios.share import share_code

    target = None if arguments.output is None else output_file(arguments.output, (".parquet",))
    if arguments.code is not None:
        said = (arguments.scenario, arguments.preset, arguments.settings, arguments.acts)
        if any(said) or arguments.config:
            raise UsageError(
                "a share code says scenario, preset, parameters and actions itself: leave them out"
            )
        played, cursor = of_code(arguments.code, strict=arguments.strict)
    elif arguments.scenario is None:
        raise UsageError("name a scenario, or give a share code with --code")
    else:
        scenario = scenario_named(arguments.scenario)
        if scenario.long:
            return streamed(arguments, scenario, target)
        played, cursor = as_said(arguments, scenario), None
    code = share_code(played, cursor) if arguments.share else None
    if target is not None:
        written(played, target)
    if played.note:
        say(f"note: {played.note}")
    if code is not None:
        print(code)
    return 0


def as_said(arguments: argparse.Namespace, scenario: Any) -> Any:
    """The run of a scenario that the command line describes.

    Raises:
        CommandError: if it describes none.
    """
    from workbench.scenarios import ActionError, ParameterError, run

    if arguments.strict:
        raise UsageError("--strict is for --code")
    preset, values = chosen(arguments, scenario)
    with Progress(f"playing {scenario.name}"):
        try:
            played = run(scenario, preset, values)
            for text in arguments.acts:
                after_seq, name, given = read_act(text, scenario)
                last = len(played.rows) - 1
                played = played.act(last if after_seq is None else after_seq, name, **given)
        except (ParameterError, ActionError) as error:
            raise UsageError(str(error)) from None
    return played


def chosen(arguments: argparse.Namespace, scenario: Any) -> tuple[Any, dict[str, Any]]:
    """The preset and the parameters that the command line names for a scenario.

    Raises:
        CommandError: if there is none such.
    """
    preset = preset_configured(arguments.preset or scenario.preset, arguments.config)
    return preset, settings(arguments.settings, scenario.parameters, f"scenario {scenario.name}")


def streamed(arguments: argparse.Namespace, scenario: Any, target: Path | None) -> int:
    """Play a long run and write its trace as it is made; says what came of it.

    Raises:
        CommandError: if it is not legal, or the trace cannot be written.
    """
    from workbench.scenarios import ParameterError
    from workbench.scenarios.streaming import stream
    from workbench.trace.files import TraceWriter

    if arguments.acts or arguments.share or arguments.strict or target is None:
        raise UsageError(
            f"{scenario.name} is a long run, written as it is made: give -o, and neither --act nor"
            " --share nor --strict"
        )
    preset, values = chosen(arguments, scenario)
    try:
        with (
            TraceWriter(target, raw=False) as writer,
            Progress(f"playing {scenario.name}", unit="µs of virtual time") as progress,
        ):
            done = stream(scenario, preset, values, take=writer.write, told=progress.at)
    except ParameterError as error:
        raise UsageError(str(error)) from None
    now_us = done.world.clock.now_us
    say(f"{target}: {counted(done.rows, 'row')} without octets, {now_us:,} µs of virtual time")
    for line in (*done.problems, *scenario.told(done.world)):
        say(line)
    return 0


def of_code(code: str, *, strict: bool) -> tuple[Any, int]:
    """The run of a share code and its cursor; what is not as it was shared is told.

    Args:
        code: the code; `-`: it is read from stdin.
        strict: all of it must be as it was.

    Raises:
        CommandError: if nothing can be restored, or not all that must be.
    """
    from workbench.scenarios.share import open_code
    from workbench.trace.share import LONGEST_READ

    if code == "-":
        code = sys.stdin.read(LONGEST_READ + 1)
    if not code.strip():
        raise CommandError("the share code is empty; `workbench run ... --share` prints one")
    with Progress("playing the shared run"):
        restored = open_code(code)
    if restored.run is None or (strict and not restored.same):
        raise CommandError(" ".join(restored.problems))
    for problem in restored.problems:
        say(problem)
    return restored.run, restored.cursor


def written(played: Any, target: Path) -> None:
    """Write the trace of a run.

    Raises:
        TraceFileError: if it cannot be written.
    """
    from workbench.trace import files

    with Progress("writing", len(played.rows)) as progress:
        count = files.write(target, progress.over(played.rows))
    lasted = f"{played.rows[-1].t_us if count else 0:,} µs of virtual time"
    say(f"{target}: {counted(count, 'row')}, {lasted}")


def read_act(text: str, scenario: Any) -> tuple[int | None, str, dict[str, Any]]:
    """`[SEQ:]NAME[:ARG=VALUE,...]` as row, name and arguments.

    Raises:
        CommandError: if it cannot be read so, or there is no such act or argument.
    """
    parts = text.split(":")
    after_seq = None
    if parts[0].removeprefix("-").isdecimal():
        after_seq = int(parts.pop(0)[:20])
    if len(parts) not in (1, 2) or not parts[0]:
        raise UsageError(f"{text!r}: write it as [SEQ:]NAME[:ARG=VALUE,...]")
    name = parts[0].replace("-", "_")
    known = {act.name: act for act in scenario.actions}
    if name not in known:
        raise UsageError(f"no action {name!r}{suggestion(name, known)}")
    given = parts[1].split(",") if len(parts) == 2 else []
    return after_seq, name, settings(given, known[name].parameters, f"action {name}")
