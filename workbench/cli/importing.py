"""`workbench import`: captures of real brokers become traces."""

from __future__ import annotations

import argparse
from pathlib import Path

from .console import BAD_INPUT, DONE, Progress, add_output, add_port, place, say
from .importing_many import import_many, is_many
from .places import output_file

HELP = "make a trace of captures (pcap, pcapng) or of Proton's frame log"
TEXT = """\
Make a trace of captures: pcap or pcapng files, or the text that Proton prints
with PN_TRACE_FRM=1.

AMQP 1.0, 0-9-1 and 0-10 are found on any port, by their protocol headers or,
where the capture begins in the middle, by frames that follow each other. What
cannot be known is left open and listed, never guessed. The report of
connections, links and losses goes to stdout.

  workbench import rabbit.pcapng -o rabbit.parquet
  workbench import monday.pcap tuesday.pcap -o week.parquet
  workbench import rabbit.pcapng --redact -o to-share.parquet
  workbench import a.pcap b.pcap -o traces
  workbench import captures/ -o traces
      a folder with a file for each capture; what is there stays. Captures, or
      those of a folder or a pattern ('*.pcapng'), are read several at a time:
      by all processors, or by Spark where a master is named

Of several captures the good ones are kept and each skipped one gets a line;
the exit code is 0 all the same. With --strict it is 1, and nothing is written.
A capture is good if frames of it can be read: of one that is cut, all before
that place is kept, and the report has a line "problem", with --strict too.
--redact drops SASL responses and message bodies, so that the trace can be
given away; what is there already is then written anew.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `import` takes."""
    parser.add_argument(
        "captures", nargs="+", type=place, metavar="CAPTURE",
        help="files to read, or folders of them",
    )  # fmt: skip
    add_output(parser, "TRACE", "Parquet file to write, or a folder", required=True)
    add_port(parser, "the broker's TCP port, if it is not found by itself")
    parser.add_argument(
        "--redact", action="store_true", help="drop SASL responses and message bodies"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="write nothing unless every capture is good, if only up to where it is cut",
    )


def command(arguments: argparse.Namespace) -> int:
    """Read, report, write."""
    from workbench.capture.importer import CaptureError, import_files
    from workbench.trace.words import counted

    target = Path(arguments.output)
    several = any(is_many(capture) for capture in arguments.captures)
    if several or target.is_dir() or (len(arguments.captures) > 1 and not target.suffix):
        return import_many(arguments)
    target = output_file(arguments.output, (".parquet",), arguments.captures)
    try:
        with Progress("reading", unit="octets") as progress:
            report = import_files(
                arguments.captures,
                target,
                port=arguments.port,
                redact=arguments.redact,
                strict=arguments.strict,
                progress=progress.at,
            )
        failures, nothing = list(report.failures), arguments.strict and bool(report.failures)
    except CaptureError as error:
        failures, nothing = str(error).splitlines(), True
    skipped = "skipped: " if len(arguments.captures) > 1 else ""
    for failure in failures:
        say(f"workbench import: {skipped}{failure}")
    if nothing:
        if arguments.strict and len(failures) < len(arguments.captures):
            say("workbench import: nothing written, because --strict was said")
        return BAD_INPUT
    report.failures.clear()  # they were told on stderr
    print(report.text(), end="")
    say(f"{target}: {counted(report.rows, 'row')}")
    return DONE
