"""`workbench show`: a trace in words, or one row of it with both ends' counters."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .console import UsageError, add_run, add_trace, tell
from .places import reading

if TYPE_CHECKING:
    from workbench.trace.cut import Cut
    from workbench.trace.fold import Scope

HELP = "print a trace in words"
TEXT = """\
Print a trace in words, one line a row: what happened, what it means, which
counters it moved. With --at, one row in full: both ends' counters, what is on
the wire, the formula with its numbers, the clause, and the frame's fields. It
is found at once in a trace of any size; what came before it is in the
counters. --around tells the rows before and after it too.

  workbench show credit.parquet
  workbench show credit.parquet --at 24
  workbench show credit.parquet --at 24 --around 10
  workbench show rabbit.parquet | grep transfer
"""

FIELD_WIDTH = 24
MANY_LEDGERS = 60
"""Of more than so many, only those of the step's connection are told."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `show` takes."""
    add_trace(parser)
    parser.add_argument("--at", type=int, metavar="SEQ", help="one row in full, by its seq")
    parser.add_argument(
        "--around", type=int, metavar="N", help="with --at: so many rows more each way"
    )
    add_run(parser)


def command(arguments: argparse.Namespace) -> int:
    """Print."""
    from workbench.trace.cut import run_of
    from workbench.trace.files import iter_rows
    from workbench.trace.transcript import transcript
    from workbench.trace.words import visible

    if arguments.around is not None and arguments.at is None:
        raise UsageError("--around is for --at")
    if (arguments.around or 0) < 0:
        raise UsageError(f"--around {arguments.around}: legal: 0 or more")
    if arguments.at is not None:
        tell(step(cut_at(arguments)))
        return 0
    with reading(arguments.trace):
        wanted = None if arguments.run is None else run_of(arguments.trace, arguments.run)
        for name, run in groupby(iter_rows(arguments.trace), key=lambda row: row.run):
            if wanted in (None, name):
                print(f"run {visible(name)}")
                tell(transcript(run))
    return 0


def cut_at(arguments: argparse.Namespace) -> Cut:
    """The rows round the step that is asked for.

    Raises:
        CommandError: it is no trace, or the run or the step is not in it.
    """
    from workbench.trace.cut import cut

    with reading(arguments.trace):
        return cut(arguments.trace, arguments.at, arguments.run, around=arguments.around or 0)


def step(cut: Cut, around: int | None = None) -> Iterator[str]:
    """One step in full, line by line, between those before and after it.

    Args:
        cut: the rows round it.
        around: tell only so many of them each way.
    """
    from workbench.trace.fold import Fold
    from workbench.trace.transcript import line

    folding = Fold(cut.start)
    for place, (row, explanation) in enumerate(zip(cut.rows, cut.explanations, strict=True)):
        folding.apply(row)
        if around is not None and abs(place - cut.place) > around:
            continue
        yield line(row, explanation)
        if row.seq != cut.seq:
            continue
        for formula in explanation.formulas:
            yield f"  formula  {formula.symbolic}"
            yield f"           {formula.numbers}"
        if explanation.clause:
            yield f"  clause   {explanation.clause} {explanation.clause_title or ''}".rstrip()
        if explanation.reasons:
            yield f"  note     {', '.join(explanation.reasons)}"
        yield from fields(row)
        yield from ledgers(folding.state(), row.connection)


def fields(row: Any) -> Iterator[str]:
    """The frame's fields as they were on the wire; what was absent is not listed."""
    from workbench.trace.secret_fields import is_secret
    from workbench.trace.words import field_text, spec_name, visible

    values = {name: value for name, value in row.fields.items() if name != "extra_json"}
    values |= row.extra
    if values:
        yield "  fields on the wire"
        for name, value in values.items():
            shown = visible(field_text(name, value)) + ", not shown" * is_secret(name, value)
            yield f"    {spec_name(name):<{FIELD_WIDTH}} {shown}"
    if row.frame_bytes is not None:
        yield f"    {'frame':<{FIELD_WIDTH}} {row.frame_bytes} octets, body {row.body_bytes or 0}"


def ledgers(state: Any, connection: str | None) -> Iterator[str]:
    """Every end's counters after the step, and what is in flight.

    Args:
        state: after the step.
        connection: the step's: of very many counters only those of it are told.
    """
    from workbench.trace.words import spec_name, value_text, visible

    told = state.ledgers.items()
    if len(told) > MANY_LEDGERS:
        here = [one for one in told if one[0][1].connection in (connection, None)]
        whose = connection or "queues"
        yield f"  counters of {whose}; {len(told) - len(here):,} of others are not shown"
        told = here
    for (vantage, scope), counters in told:
        where = f" of {scope.connection}" if scope.connection else ""
        yield f"  {visible(vantage)}: {visible(_about(scope))}{where}"
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


def _about(scope: Scope) -> str:
    """What counters are about, told from all others of their connection."""
    from workbench.trace.schema import ACTOR, CONFIRM, LINK, PREFETCH, SESSION

    if scope.group == LINK:
        return "a link without a name" if scope.link is None else f"link {scope.link}"
    if scope.group == SESSION:
        end = f", the {scope.link_sender}'s end" if scope.link_sender else ""
        return f"session {scope.session}{end}"
    if scope.group == ACTOR and scope.queue:
        return f"queue {scope.queue}"
    named = {
        "channel" if scope.group in (PREFETCH, CONFIRM) else "session": scope.session,
        "consumer": scope.consumer,
        "destination": scope.link,
        "queue": scope.queue,
    }
    told = [f"{name} {value}" for name, value in named.items() if value is not None]
    return ", ".join([scope.group, *told])
