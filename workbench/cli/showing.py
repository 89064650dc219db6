"""`workbench show`: a trace in words, or one step of it with both ends' counters."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from .console import WRONG_USAGE, CommandError
from .places import one_run, trace_runs

NAME = "show"
HELP = "print a trace in words"
TEXT = """\
Print a trace in words, one line a step: what happened, what it means, which counters it moved.
With --at, one step in full: both ends' counters, what is on the wire, the formula with its
numbers, the clause, and the frame's fields.

  workbench show credit.parquet
  workbench show credit.parquet --at 24
  workbench show rabbit.parquet | grep transfer
"""

# Rows of a trace that are worked through for one step; a longer trace is cut before it.
FIELD_WIDTH = 24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `show` takes."""
    parser.add_argument("trace", metavar="TRACE", help="a Parquet file, or a folder of them")
    parser.add_argument("--at", type=int, metavar="SEQ", help="one step in full, by its number")
    parser.add_argument("--run", metavar="NAME", help="which run, where the trace holds several")


def command(arguments: argparse.Namespace) -> int:
    """Print."""
    from workbench.trace.transcript import transcript

    if arguments.at is not None:
        rows = one_run(arguments.trace, arguments.run)
        last = rows[-1].seq
        if not rows[0].seq <= arguments.at <= last:
            raise CommandError(
                f"step {arguments.at} is not in this trace; legal: {rows[0].seq} to {last}",
                WRONG_USAGE,
            )
        for line in step(rows, arguments.at):
            print(line)
        return 0
    found = []
    for name, run in trace_runs(arguments.trace):
        found.append(name)
        if arguments.run not in (None, name):
            continue
        print(f"run {printable(name)}")
        for line in transcript(run):
            print(line)
    if arguments.run is not None and arguments.run not in found:
        raise CommandError(
            f"no run {arguments.run!r} in it; there are: {', '.join(found)}", WRONG_USAGE
        )
    return 0


def step(rows: list[Any], seq: int) -> Iterator[str]:
    """One step in full, line by line."""
    from workbench.trace.explain import explain
    from workbench.trace.fold import fold
    from workbench.trace.transcript import line

    upto = rows[: seq - rows[0].seq + 1]
    *_, explanation = explain(upto)
    row = upto[-1]
    yield line(row, explanation)
    for formula in explanation.formulas:
        yield f"  formula  {formula.symbolic}"
        yield f"           {formula.numbers}"
    if explanation.clause:
        yield f"  clause   {explanation.clause} {explanation.clause_title or ''}".rstrip()
    if explanation.reasons:
        yield f"  note     {', '.join(explanation.reasons)}"
    yield from fields(row)
    yield from ledgers(fold(upto))


def fields(row: Any) -> Iterator[str]:
    """The frame's fields as they were on the wire; what was absent is not listed."""
    from workbench.trace.redact import SECRETS
    from workbench.trace.words import spec_name, value_text

    values = {name: value for name, value in (row.frame or {}).items() if name != "extra_json"}
    values |= row.extra
    if values:
        yield "  fields on the wire"
        for name, value in values.items():
            shown = printable(value_text(value))
            if name in SECRETS and value is not None:
                shown = f"{len(value)} octets, not shown"
            yield f"    {spec_name(name):<{FIELD_WIDTH}} {shown}"
    if row.frame_bytes is not None:
        yield f"    {'frame':<{FIELD_WIDTH}} {row.frame_bytes} octets, body {row.body_bytes or 0}"


def ledgers(state: Any) -> Iterator[str]:
    """Every end's counters after the step, and what is in flight."""
    from workbench.trace.words import spec_name, value_text

    for (vantage, scope), counters in state.ledgers.items():
        about = {
            "link": f"link {scope.link}",
            "session": f"session {scope.session}"
            + (f", the {scope.link_sender}'s end" if scope.link_sender else ""),
            "actor": f"queue {scope.queue}",
        }[scope.group]
        where = f" of {scope.connection}" if scope.connection else ""
        yield f"  {printable(vantage)}: {printable(about)}{where}"
        for name, value in counters.items():
            yield f"    {spec_name(name):<{FIELD_WIDTH}} {value_text(value)}"
        brake = state.brakes.get((vantage, scope))
        if brake is not None:
            yield f"    {'held by':<{FIELD_WIDTH}} {brake}"
    if state.in_flight:
        yield "  on the wire"
        for flying in state.in_flight.values():
            yield f"    {flying.kind} from {flying.from_peer} (frame {flying.frame_id})"
    else:
        yield "  on the wire: nothing"


def printable(value: object) -> str:
    """A value from a capture, harmless on a terminal."""
    from workbench.trace.words import visible

    return visible(value)
