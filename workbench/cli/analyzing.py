"""`workbench analyze`: questions about a trace, however large it is."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import os
import sys
import textwrap
from collections.abc import Iterable
from itertools import chain
from typing import Any

from workbench.folds.questions import QUESTIONS as FOLDED
from workbench.trace.words import counted

from .asking import ENGINES, PLAIN, SPARK, Answer, answered
from .console import (
    DONE,
    FORMATS,
    Progress,
    UsageError,
    add_format,
    add_trace,
    as_json,
    one_line,
    place,
    say,
    table,
    tell,
)
from .places import refuse_capture, show_command

HELP = "ask a trace a question: credit, stalls, windows, grants, latency, ..."
QUESTIONS = {name: question.about for name, question in FOLDED.items()} | {
    "unknowns": "what this trace cannot tell, per connection and link, and why"
}
_LISTED = "\n".join(
    textwrap.fill(about, 79, initial_indent=f"  {name:<12}", subsequent_indent=" " * 14)
    for name, about in QUESTIONS.items()
)
TEXT = f"""\
Ask a trace of any size a question. The answer goes to stdout.

{_LISTED}

  workbench analyze rabbit.parquet summary
  workbench analyze rabbit.parquet stalls
  workbench analyze before.parquet compare after.parquet
  workbench analyze live stalls --follow           in `serve --trace live`
  workbench analyze live latency --follow          confirms that wait
  workbench analyze growing.pcap stalls --follow   tcpdump -U -w is writing it
  workbench analyze week.parquet credit --format csv > credit.csv
  workbench analyze week.parquet throughput --window 0.1

With --follow a terminal shows what goes on now, and how long it has lasted; a
file gets lines when that changes. A stall that lasts counts up to now, and
gets a line of its own when it is over. In a capture it may be known only then,
from the frames that come after it.

Up to half a million rows are answered at once and without Java, more by Spark,
which needs it (`workbench doctor` tells); every answer says which of the two
gave it. --engine chooses; where a master is named, Spark is asked.
WORKBENCH_SPARK_MEMORY=512m makes do with little memory. With
WORKBENCH_SPARK_MASTER=spark://HOST:7077 a cluster works the questions out, of
hdfs:// and s3a:// too; with sc://HOST:15002 a Spark Connect server does, and
needs no Java here. What is configured for Spark itself (spark-submit,
PYSPARK_SUBMIT_ARGS, spark-defaults.conf, PYSPARK_PYTHON, SPARK_REMOTE) is left
as it is.
"""

RUNS = ("run", "left_run", "right_run")
"""Columns that a table leaves out where they say the same in every row."""
OPENED = ("stalls", "violations", "windows", "grants", "latency", "prefetch", "compare")
"""Questions whose rows name a row of the trace, and end with the command that opens it."""
TABLE_ROWS = 50
"""Rows of an answer that a table shows; json and csv give all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `analyze` takes."""
    add_trace(parser, _no_question)
    parser.add_argument("question", choices=QUESTIONS, metavar="QUESTION", help="what to ask")
    parser.add_argument(
        "other", nargs="?", type=place, metavar="OTHER",
        help="compare only: the trace to compare with",
    )  # fmt: skip
    add_format(parser, FORMATS)
    parser.add_argument(
        "--engine", choices=ENGINES, help="plain: without Java; spark; else the size decides"
    )
    parser.add_argument(
        "--numbers", action="store_true", help="summary only: a table with counts and microseconds"
    )
    parser.add_argument(
        "--window", type=float, metavar="SECONDS", help="throughput only: length of a window"
    )
    parser.add_argument(
        "--rows", type=int, default=TABLE_ROWS, metavar="N", help="rows of a table, 0 for all"
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="stalls and throughput, and of channels latency and prefetch, of a trace that is"
        " still being written",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="with --follow: a folder elsewhere that keeps how far it is, to go on after a stop",
    )


def _no_question(trace: str) -> str:
    """The trace, unless it is the question that stands first."""
    if trace in QUESTIONS and not os.path.exists(trace):
        raise argparse.ArgumentTypeError(
            f"the trace comes before the question: workbench analyze TRACE {trace}"
        )
    return place(trace)


def command(arguments: argparse.Namespace) -> int:
    """Ask and print."""
    _check_usage(arguments)
    if arguments.follow:
        from .following import follow_command

        return follow_command(arguments)
    traces = [one for one in (arguments.trace, arguments.other) if one is not None]
    for trace in traces:
        refuse_capture(trace)
    if arguments.question == "unknowns":
        return _unknowns(arguments)
    window_us = None if arguments.window is None else round(arguments.window * 1_000_000)
    with Progress("working", unit="rows") as progress:
        answer = answered(
            arguments.question, traces, progress,
            asked=arguments.engine, window_us=window_us, say=say,
        )  # fmt: skip
    _print(answer, arguments)
    return DONE


def _check_usage(arguments: argparse.Namespace) -> None:
    question = arguments.question
    if question == "compare" and arguments.other is None:
        raise UsageError("compare takes two traces: workbench analyze TRACE compare OTHER")
    if question != "compare" and arguments.other is not None:
        raise UsageError(f"{question} takes one trace, and there is {arguments.other} too")
    if arguments.numbers and question != "summary":
        raise UsageError(f"--numbers is for summary, and not for {question}")
    if arguments.rows < 0:
        raise UsageError(f"--rows {arguments.rows}; legal: 0 or more, 0 for all")
    if arguments.checkpoint is not None and not arguments.follow:
        raise UsageError("--checkpoint is for --follow")
    if arguments.follow and arguments.format == "csv":
        raise UsageError("--follow with --format csv; legal: table, json")
    if arguments.engine == SPARK and question == "unknowns":
        raise UsageError("unknowns is never answered by Spark")
    if arguments.window is not None and question != "throughput":
        raise UsageError(f"--window is for throughput, and not for {question}")
    if arguments.window is not None and not 1e-6 <= arguments.window < 1e12:
        raise UsageError(
            f"a window of {arguments.window} s; legal: 0.000001 or more, and less than 10^12"
        )


def _unknowns(arguments: argparse.Namespace) -> int:
    """Sentences, so the table is a page; the other formats have a row for each."""
    from workbench.trace import files
    from workbench.trace.unknowns import Unknown, unknowns

    with Progress("reading") as progress:
        report = unknowns(progress.over(files.iter_rows(arguments.trace)))
    if arguments.format == "table":
        tell(str(report).splitlines())
    else:
        names = tuple(one.name for one in dataclasses.fields(Unknown))
        rows = map(dataclasses.asdict, report)
        _print(Answer(question="unknowns", engine=PLAIN, columns=names, rows=rows), arguments)
    return DONE


def _print(answer: Answer, arguments: argparse.Namespace) -> None:
    rows = iter(answer)
    # Nothing is printed before the first row is there: an answer that fails leaves no half a one.
    first = next(rows, None)
    rows = chain([] if first is None else [first], rows)
    if arguments.format != "table":
        say(f"{arguments.question}: {answer.by}")
    if arguments.format == "json":
        print("[", end="")
        for number, row in enumerate(rows):
            text = as_json({**row, "engine": answer.engine})
            print(("," if number else "") + "\n " + text, end="")
        print("\n]")
    elif arguments.format == "csv":
        writer = csv.DictWriter(sys.stdout, fieldnames=answer.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    elif first is None:
        print(f"no {arguments.question} in this trace; {answer.by}")
    elif arguments.question == "summary" and not arguments.numbers:
        _advice(rows, answer, arguments)
    else:
        _table(rows, answer, arguments)


def _advice(rows: Iterable[dict[str, Any]], answer: Answer, arguments: argparse.Namespace) -> None:
    """For each link who waited, how long, why, and what to change; the longest wait first."""
    from workbench.folds.vantage import LinkKey

    links = sorted(rows, key=lambda row: (-row["violations"], -row["longest_us"]))
    shown = links[: arguments.rows or None]
    runs = len({row["run"] for row in shown}) > 1
    for row in shown:
        run = f"{row['run']} " if runs else ""
        key = LinkKey.of(row)
        print(one_line(f"{run}{key.name}"))
        tell([f"    {row['advice']}"])
        if row["longest_seq"] is not None:
            print(f"    {show_command(arguments.trace, row['run'], row['longest_seq'])}")
    if len(links) > len(shown):
        more = counted(len(links) - len(shown), "more link")
        print(f"... and {more}; --rows 0 shows all")
    print(f"summary: {answer.by}; --numbers shows counts and microseconds")


def _table(rows: Iterable[dict[str, Any]], answer: Answer, arguments: argparse.Namespace) -> None:
    shown: list[dict[str, Any]] = []
    more = 0
    for row in rows:
        if arguments.rows and len(shown) >= arguments.rows:
            more += 1
        else:
            shown.append(row)
    told = {name: {row.get(name) for row in shown} - {None} for name in RUNS}
    hidden = {name for name, runs in told.items() if len(runs) <= 1}
    if arguments.question == "summary":
        hidden.add("advice")  # a sentence each, which is what is shown without --numbers
    names = [name for name in answer.columns if name not in hidden]
    if arguments.question == "compare":
        names.append("opens")
        shown = [{**row, "opens": _larger(row)} for row in shown]
    opened = [_opened(row, arguments) for row in shown]
    caption = f"{arguments.question}: {counted(len(shown) + more, 'row')}; {answer.by}"
    if more:
        caption = f"... and {more:,} more; --rows 0 shows all\n{caption}"
    table(
        names, [[row[name] for name in names] for row in shown],
        caption=caption, opened=opened if arguments.question in OPENED else (),
    )  # fmt: skip


def _opened(row: dict[str, Any], arguments: argparse.Namespace) -> str | None:
    """The command that opens the row of the trace that a row names."""
    if arguments.question == "compare":
        side = _larger(row)
        trace = arguments.other if side == "right" else arguments.trace
        return show_command(trace, row[f"{side}_run"], row[f"{side}_seq"]) if side else None
    seq = row.get("seq", row.get("worst_seq"))
    return None if seq is None else show_command(arguments.trace, row["run"], seq)


def _larger(row: dict[str, Any]) -> str | None:
    """Of `compare`, the side that opens; None if neither has anything to show."""
    from workbench.trace.naming import SIDES, side_of

    if all(row[f"{side}_seq"] is None for side in SIDES):
        return None
    return side_of(row)
