"""`workbench run`: play a scenario on the virtual clock and keep its trace."""

from __future__ import annotations

import argparse
from typing import Any

from .choosing import preset_named, scenario_named, settings
from .console import WRONG_USAGE, CommandError, Progress, say, suggestion
from .places import output_file

NAME = "run"
HELP = "play a scenario and keep its trace"
TEXT = """\
Play a scenario on the virtual clock until it rests, and write its trace.

A run is a pure function of scenario, preset, parameters and acts: the same command gives the same
trace, on every machine. `workbench scenarios` lists parameters and acts.

  workbench run credit -o credit.parquet
  workbench run credit --set messages=25 --set policy=one-at-a-time -o credit.parquet
  workbench run credit --act grant:link_credit=3 -o credit.parquet
  workbench run credit --act grant:link_credit=50 --act 40:grant:link_credit=0 -o stop.parquet

An act happens when the row of that number has just happened, or, without a number, when the run
has come to rest. A file that exists is replaced, and only when the run is complete.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `run` takes."""
    parser.add_argument("scenario", metavar="SCENARIO", help="what to play, such as credit")
    parser.add_argument("--preset", default="spec", metavar="P", help="default numbers (spec)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="settings",
        help="a parameter; may be given several times",
    )
    parser.add_argument(
        "--act",
        action="append",
        default=[],
        metavar="[SEQ:]NAME[:ARG=VALUE,...]",
        dest="acts",
        help="a learner's act; may be given several times, in the order in which they happen",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="TRACE", help="the Parquet file to write"
    )


def command(arguments: argparse.Namespace) -> int:
    """Play and write."""
    from workbench.scenarios import ActionError, ParameterError, run
    from workbench.trace import files

    target = output_file(arguments.output, (".parquet",))
    scenario = scenario_named(arguments.scenario)
    preset = preset_named(arguments.preset)
    values = settings(arguments.settings, scenario.parameters, f"scenario {scenario.name}")
    with Progress(f"playing {scenario.name}"):
        try:
            played = run(scenario, preset, values)
            for text in arguments.acts:
                after_seq, name, given = read_act(text, scenario)
                last = len(played.rows) - 1
                played = played.act(last if after_seq is None else after_seq, name, **given)
        except (ParameterError, ActionError) as error:
            raise CommandError(str(error), WRONG_USAGE) from None
    with Progress("writing", len(played.rows)) as progress:
        try:
            count = files.write(target, progress.over(played.rows))
        except files.TraceFileError as error:
            raise CommandError(str(error)) from None
    say(f"{target}: {count:,} rows, {played.rows[-1].t_us if count else 0:,} us of virtual time")
    if played.note:
        say(f"note: {played.note}")
    return 0


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
        raise CommandError(f"{text!r}: write it as [SEQ:]NAME[:ARG=VALUE,...]", WRONG_USAGE)
    name = parts[0].replace("-", "_")
    known = {act.name: act for act in scenario.actions}
    if name not in known:
        raise CommandError(f"no act {name!r}{suggestion(name, known)}", WRONG_USAGE)
    given = parts[1].split(",") if len(parts) == 2 else []
    return after_seq, name, settings(given, known[name].parameters, f"act {name}")
