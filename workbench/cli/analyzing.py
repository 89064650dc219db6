"""`workbench analyze`: questions about a trace, however large it is."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import importlib
import json
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from .console import DONE, WRONG_USAGE, CommandError, Progress, one_line, say
from .places import is_capture

NAME = "analyze"
HELP = "ask a trace a question: credit, stalls, windows, grants, latency, ..."
TEXT = """\
Ask a trace of any size a question. The answer goes to stdout.

  summary     per link: messages, time at zero credit, longest stall, advice
  stalls      when a sender had something to send and a brake was on, and which brake
  credit      both counters of every link at every frame, from the wire alone
  windows     per session and direction: how often and how long its window was closed
  grants      per link: how its receiver tops up, and what credit it needs
  latency     per link: settlement, grant, drain and echo, percentiles
  throughput  per second and link: rate, share, fairness, time behind a closed window
  violations  frames that break a rule, with the clause
  compare     two traces side by side, with effect sizes
  unknowns    what this trace cannot tell, per connection and link, and why

  workbench analyze rabbit.parquet summary
  workbench analyze rabbit.parquet stalls
  workbench analyze before.parquet compare after.parquet
  workbench analyze live stalls --follow
  workbench analyze week.parquet credit --format csv > credit.csv
  workbench analyze week.parquet throughput --window 0.1

Spark works the questions out, for which Java is needed (`workbench doctor` tells). A summary of up
to 200,000 rows needs none, and unknowns never does. WORKBENCH_SPARK_MEMORY=512m makes do with
little memory. With WORKBENCH_SPARK_MASTER=spark://HOST:7077 a cluster works them out, of hdfs://
and s3a:// too. What is configured for Spark itself (spark-submit, PYSPARK_SUBMIT_ARGS,
spark-defaults.conf, PYSPARK_PYTHON) is left as it is.
"""

QUESTIONS: tuple[str, ...] = (
    "summary", "stalls", "credit", "windows", "grants", "latency", "throughput", "violations",
    "compare", "unknowns",
)  # fmt: skip
FORMATS = ("table", "json", "csv")
WITHOUT_JAVA = 200_000
"""Rows up to which a summary is worked out without Spark."""
QUICK_ROWS = 1_000_000
"""Rows up to which Java's quick compiler answers sooner."""
BEYOND = QUICK_ROWS + 1
"""Rows of a trace that nobody has counted yet."""
SMALL_ROWS = 100_000
SMALL = {
    # Of a small trace the rows cost little, and compiling each step for them costs most.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "4",
}
ORDER = ("run", "seq", "window_start_us", "connection", "session", "link", "link_sender", "what")
RUNS = ("run", "left_run", "right_run")
"""Columns that a table leaves out where they say the same in every row."""
OPEN = "open it with"
TABLE_ROWS = 50
"""Rows of an answer that a table shows; json and csv give all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `analyze` takes."""
    parser.add_argument("trace", metavar="TRACE", help="a Parquet file, or a folder of them")
    parser.add_argument("question", choices=QUESTIONS, help="what to ask")
    parser.add_argument(
        "other", nargs="?", metavar="OTHER", help="compare only: the trace to compare with"
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="table", help="for people or for programs"
    )
    parser.add_argument(
        "--window", type=float, metavar="SECONDS", help="throughput only: length of a window"
    )
    parser.add_argument(
        "--rows", type=int, default=TABLE_ROWS, metavar="N", help="rows of a table, 0 for all"
    )
    parser.add_argument(
        "--follow", action="store_true", help="stalls, throughput: of a recorder that is running"
    )
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="with --follow: a folder elsewhere that keeps how far it is, to go on after a stop",
    )


def command(arguments: argparse.Namespace) -> int:
    """Ask and print."""
    if arguments.follow:
        from .following import follow_command

        return follow_command(arguments)
    from workbench.analysis.errors import AnalysisError

    _check_usage(arguments)
    try:
        if arguments.question == "unknowns":
            return _unknowns(arguments)
        count = sum(_rows_of(each) for each in (arguments.trace, arguments.other) if each)
        if arguments.question == "summary" and 0 < count <= WITHOUT_JAVA:
            names, rows = _summary_without_java(arguments.trace)
        else:
            names, rows = _asked(arguments, count)
        _print(names, rows, arguments)
    except AnalysisError as error:
        raise CommandError(str(error)) from None
    return DONE


def _check_usage(arguments: argparse.Namespace) -> None:
    question = arguments.question
    if question == "compare" and arguments.other is None:
        raise CommandError(
            "compare takes two traces: workbench analyze TRACE compare OTHER", WRONG_USAGE
        )
    if question != "compare" and arguments.other is not None:
        raise CommandError(
            f"{question} takes one trace, and there is {arguments.other} too", WRONG_USAGE
        )
    if arguments.window is not None and question != "throughput":
        raise CommandError(f"--window is for throughput, and not for {question}", WRONG_USAGE)
    if arguments.window is not None and not 1e-6 <= arguments.window < 1e12:
        raise CommandError(
            f"a window of {arguments.window} s; legal: 0.000001 or more", WRONG_USAGE
        )


def _rows_of(trace: str) -> int:
    """Rows of a trace, from its footers; of what lies at a URL Spark will tell them."""
    from workbench.analysis.places import is_url
    from workbench.analysis.reading import count_rows

    if is_url(trace):
        return BEYOND
    path = Path(trace)
    if is_capture(path):
        raise CommandError(
            f"{path}: is a capture, not a trace; first: workbench import {path} -o"
            f" {path.with_suffix('.parquet').name}"
        )
    return count_rows(path)


def _summary_without_java(trace: str) -> tuple[list[str], Iterator[dict[str, Any]]]:
    from workbench.analysis.reading import count_rows
    from workbench.folds.summary import LinkSummary, summarise
    from workbench.trace import files

    count_rows(trace, check=True)
    try:
        with Progress("reading") as progress:
            rows = list(progress.over(files.iter_rows(trace)))
    except files.TraceFileError as error:
        raise CommandError(str(error)) from None
    names = [one.name for one in dataclasses.fields(LinkSummary)]
    return names, (each.as_dict() for each in summarise(rows))


def _unknowns(arguments: argparse.Namespace) -> int:
    """Sentences, so the table is a page; the other formats have a row for each."""
    from workbench.trace import files
    from workbench.trace.unknowns import Unknown, unknowns_report

    try:
        with Progress("reading") as progress:
            report = unknowns_report(progress.over(files.iter_rows(arguments.trace)))
    except files.TraceFileError as error:
        raise CommandError(str(error)) from None
    if arguments.format == "table":
        print(report)
    else:
        names = [one.name for one in dataclasses.fields(Unknown)]
        _print(names, (one.as_dict() for one in report), arguments)
    return DONE


def _asked(arguments: argparse.Namespace, count: int) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The columns of an answer, and its rows in order, a partition at a time in memory."""
    from workbench.analysis.chunks import Chunks
    from workbench.analysis.reading import open_trace, told
    from workbench.analysis.session import get_spark

    suited = SMALL if count <= SMALL_ROWS else {}
    spark = get_spark(say=say, quick=count <= QUICK_ROWS, suited=suited)
    trace = open_trace(spark, arguments.trace)
    module = importlib.import_module(f"workbench.analysis.{arguments.question}")
    more: dict[str, Any] = {"chunks": trace.chunks}
    if arguments.other is not None:
        other = open_trace(spark, arguments.other)
        more = {"right": other.frame, "chunks": Chunks.of(max(trace.rows, other.rows))}
    if arguments.window is not None:
        more["window_us"] = round(arguments.window * 1_000_000)
    with told():
        answer = getattr(module, arguments.question)(**more)(trace.frame)
    names = list(answer.columns)
    if arguments.question == "summary":
        return [*names, "advice"], (_advised(row) for row in _rows(spark, answer))
    return names, _rows(spark, answer)


def _rows(spark: Any, answer: Any) -> Iterator[dict[str, Any]]:
    from workbench.analysis.jobs import watched
    from workbench.analysis.reading import told

    names = [name for name in ORDER if name in answer.columns]
    ordered = answer.orderBy(*names) if names else answer
    with told(), Progress("Spark works", unit="tasks") as progress:
        # What takes the time is over when the first row is there.
        with watched(spark, lambda now: progress.at(now.done, now.tasks)):
            rows = ordered.toLocalIterator()
            first = next(rows, None)
        progress.clear()
        if first is not None:
            yield first.asDict()
        for row in rows:
            yield row.asDict()


def _advised(row: dict[str, Any]) -> dict[str, Any]:
    from workbench.folds.summary import advice

    row["advice"] = advice(
        longest_us=row["longest_us"],
        brake=row["longest_brake"],
        at_zero_us=row["at_zero_us"],
        lasted_us=row["lasted_us"],
        violations=row["violations"],
    )
    return row


def _print(names: list[str], rows: Iterator[dict[str, Any]], arguments: argparse.Namespace) -> None:
    # Nothing is printed before the first row is there: an answer that fails leaves no half a one.
    first = next(rows, None)
    rows = chain([] if first is None else [first], rows)
    if arguments.format == "json":
        print("[", end="")
        for number, row in enumerate(rows):
            print(("," if number else "") + "\n " + json.dumps(row, ensure_ascii=False), end="")
        print("\n]")
    elif arguments.format == "csv":
        writer = csv.DictWriter(sys.stdout, fieldnames=names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        _table(rows, arguments)


def _table(rows: Iterable[dict[str, Any]], arguments: argparse.Namespace) -> None:
    shown: list[dict[str, Any]] = []
    more = 0
    for row in rows:
        if arguments.rows and len(shown) >= arguments.rows:
            more += 1
        else:
            shown.append(row)
    if not shown:
        print(f"no {arguments.question} in this trace")
        return
    told = {name: {row.get(name) for row in shown} - {None} for name in RUNS}
    hidden = {name for name, runs in told.items() if len(runs) <= 1}
    lines = [_cells(row, arguments, hidden) for row in shown]
    names = [name for name in lines[0] if name != OPEN]
    widths = {name: max(len(name), *(len(line[name]) for line in lines)) for name in names}
    for line in [{name: name for name in lines[0]}, *lines]:
        cells = [f"{line[name]:<{widths[name]}}" for name in names]
        print("  ".join([*cells, line.get(OPEN, "")]).rstrip())
    if more:
        print(f"... and {more:,} more; --rows 0 shows all")


def _cells(
    row: dict[str, Any], arguments: argparse.Namespace, hidden: Collection[str]
) -> dict[str, str]:
    """A row as text; one that names a row of a trace ends with the command that opens it."""
    cells = {
        name: one_line("-" if value is None else value)
        for name, value in row.items()
        if name not in hidden
    }
    if arguments.question == "stalls":
        cells[OPEN] = _show(arguments.trace, row["run"], row["seq"])
    elif arguments.question == "compare":
        side = _larger(row)
        trace = arguments.other if side == "right" else arguments.trace
        cells[OPEN] = _show(trace, row[f"{side}_run"], row[f"{side}_seq"]) if side else "-"
    return cells


def _show(trace: str, run: str, seq: int) -> str:
    return shlex.join(["workbench", "show", trace, "--run", run, "--at", str(seq)])


def _larger(row: dict[str, Any]) -> str | None:
    """Of `compare`, the side that opens; None if neither has anything to show."""
    from workbench.trace.naming import SIDES, side_of

    if all(row[f"{side}_seq"] is None for side in SIDES):
        return None
    return side_of(row)
