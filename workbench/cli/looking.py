"""`workbench look`: one capture, one page, for whoever has a stalled consumer and a pcap."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.aside import aside
from workbench.notebook import PlainError
from workbench.trace.collector import seldom_collected
from workbench.trace.given import Place, takes

from .asking import PLAIN_ROWS
from .console import Progress, add_output, add_port, one_line, place, say, table_lines, tell
from .places import as_typed, output_file

if TYPE_CHECKING:
    from workbench.capture.report import CaptureReport
    from workbench.folds.story import Story
    from workbench.trace.cut import Cut

__all__ = ["Look", "look"]

HELP = "one page about a capture: who waited, how long, why, and the worst frame"
TEXT = """\
Read a capture and say what happened on each of its links: who waited, how
long, why and what to change, the stalls by brake, what the capture cannot
tell, and the worst frame in full.

  workbench look capture.pcapng                   as text
  workbench look capture.pcapng -o page.html      as a page to step through

A CAPTURE is a pcap or pcapng file or a frame log of Proton; a trace can be
looked at too. Nothing is kept but the page. A capture may be of any size;
where one connection has more than 500,000 frames, import and analyze it
instead.
"""

AROUND = 200
"""Frames before and after the worst one that the page can step through."""
NEAR = 3
"""Frames before and after it that the text tells of."""
LINKS = 20
"""Links that the text tells of."""
LINES = 20
"""Errors and broken rules that it tells of."""
GUESSED = 3
"""Connections of which the first line says that their client is a guess."""
READ = 100
"""Lines that it tells of connections and links."""


class LookError(PlainError):
    """A file that cannot be looked at; the text is one line for a person."""


@dataclass(frozen=True)
class Look:
    """What there is to see in one file.

    Attributes:
        name: of the file.
        about: what was read, a line each; the first says how much, and what is wrong with the file.
        story: what happened on each link.
        unknown: what the file cannot tell, a line each.
        opened: the rows round the worst one, for the stage; round the first if there is none.
    """

    name: str
    about: tuple[str, ...]
    story: Story
    unknown: tuple[str, ...]
    opened: Cut

    def page(self) -> str:
        """All of it as HTML in one file."""
        from workbench.views.opening import scene_of
        from workbench.views.story_page import story_page

        doc, step = scene_of(self.opened, title=self.name)
        return story_page(self.story, [self.name, *self.about], self.unknown, doc, step=step)

    def text(self) -> Iterator[str]:
        """All of it, line by line; of the frames round the worst one the nearest."""
        from workbench.views.story_page import sends

        from .showing import step

        story = self.story
        yield from _told("", f"{self.name}: {self.about[0]}", story.headline)
        yield from ("", "Links", *_told("  ", *filter(None, [story.without_links])))
        for link in story.links[:LINKS]:
            yield from _told("  ", f"{link.key.name}: {sends(link)}")
            yield from _told("    ", link.advice, *link.more)
        if len(story.links) > LINKS:
            yield f"  ... and {len(story.links) - LINKS:,} more"
        if story.wrong:
            yield from ("", "Errors and broken rules", *_told("  ", *story.wrong[:LINES]))
        if len(story.wrong) > LINES:
            yield f"  ... and {len(story.wrong) - LINES:,} more"
        yield from ("", "Stalls by brake", *_brakes(story))
        if story.opened is not None:
            yield from ("", one_line(f"The worst frame: {story.opened_as}"))
            yield from (f"  {line}" for line in step(self.opened, NEAR))
        if self.unknown:
            yield from ("", "What it cannot tell", *_told("  ", *self.unknown))
        read = self.about[1:]
        if read:
            yield from ("", "What was read", *_told("  ", *read[:READ]))
        if len(read) > READ:
            yield f"  ... and {len(read) - READ:,} more lines; workbench import tells all"

    def _repr_html_(self) -> str:
        from workbench.views.static_html import asset
        from workbench.views.story_page import report_html

        report = report_html(self.story, [self.name, *self.about], self.unknown)
        return f'<style>{asset("story.css")}</style><div class="story">{report}</div>'

    def __repr__(self) -> str:
        return f"{self.name}: {self.story.headline}"


@takes
@seldom_collected()
def look(path: Place, progress: Progress | None = None, *, port: int | None = None) -> Look:
    """What there is to see in a capture, or in a trace.

    A capture is made a trace first, in a folder that is gone at the end: so some of its connections
    are in memory at a time, and not all of it.

    Args:
        path: a pcap or pcapng file, a frame log of Proton, or a Parquet file or folder.
        progress: told how far the reading is.
        port: the broker's TCP port; see `Capture`.

    Raises:
        LookError: it cannot be read, or is too large.
    """
    from workbench.capture.importer import CaptureError
    from workbench.trace.files import TraceFileError, files_in, reason

    place, progress = Path(path), progress or Progress()
    try:
        if place.is_dir() and not any(file.suffix == ".parquet" for file in files_in(place)):
            raise LookError(
                f"{place}: no trace in this folder; look takes one capture: name a file in it"
            )
        if place.is_dir() or place.suffix == ".parquet":
            if port is not None:
                raise LookError(f"{place}: --port is for a capture, and this is a trace")
            return _seen(place, place, None, progress)
        with aside() as folder:
            trace = folder / "trace.parquet"
            return _seen(place, trace, _imported(place, trace, port, progress), progress)
    except (CaptureError, TraceFileError) as error:
        raise LookError(str(error)) from None
    except OSError as error:
        raise LookError(f"{error.filename or place}: {reason(error)}") from None


def _imported(place: Path, trace: Path, port: int | None, progress: Progress) -> CaptureReport:
    from workbench.capture.importer import Capture
    from workbench.trace.files import TraceFileError, write_tables

    capture = Capture(place, port=port)
    progress.turn("reading", place.stat().st_size, "octets")
    try:
        write_tables(trace, capture.tables(progress.at))
    except TraceFileError as error:
        why = str(error).removeprefix(f"{trace}: ")
        raise LookError(f"{place.name}: its rows wait in {trace.parent.parent}: {why}") from None
    return capture.report


def _seen(place: Path, trace: Path, report: CaptureReport | None, progress: Progress) -> Look:
    from workbench.folds.story import Packets, story_in_parts
    from workbench.trace.clock import Clock
    from workbench.trace.connections import Connections
    from workbench.trace.cut import cut
    from workbench.trace.files import iter_rows
    from workbench.trace.unknowns import told_once, unknowns
    from workbench.trace.words import counted, encodable

    there = Connections(trace)
    if len(there.runs) > 1:
        raise LookError(f"{place}: holds {len(there.runs)} runs; look at a file that holds one")
    name, most = max(there.sizes.items(), key=lambda pair: pair[1])
    if most > PLAIN_ROWS:
        what = "what concerns no connection" if name is None else f"connection {name}"
        typed, first = as_typed(str(place)), ""
        if report is not None:
            typed, first = "large.parquet", f" workbench import {typed} -o large.parquet, and"
        raise LookError(
            f"{place.name}: {what} has more rows than can be looked at ({PLAIN_ROWS:,});"
            f"{first} workbench analyze {typed} summary"
        )
    rows, clock = there.sizes.total(), Clock()
    progress.turn("what it cannot tell", rows, "rows")
    by_place = told_once(unknowns(clock.watch(progress.over(iter_rows(trace))))).items()
    progress.turn("following each link", rows, "rows")
    packets = Packets() if report is None else Packets(
        until_us=report.lasted_us, still_open=report.still_open, ended=report.ended,
        without_room=report.without_room, unheard=report.unheard,
    )  # fmt: skip
    told = story_in_parts(progress.past(there.parts()), packets, there.last_us, clock)
    seq = next(iter_rows(trace)).seq if told.opened is None else told.opened[1].seq
    about = [counted(rows, "row")] if report is None else _about(report)
    shown = encodable(place.name)
    return Look(
        name=shown, about=tuple(about), story=told,
        opened=replace(cut(trace, seq, around=AROUND), path=shown),
        unknown=tuple(
            f"{where}: {one.unknown}: {one.why}" for where, found in by_place for one in found
        ),
    )  # fmt: skip


def _about(report: CaptureReport) -> Iterator[str]:
    """What was read: in the first line how much, and all that makes the rest doubtful."""
    guessed = [one for one in report.connections if one.guessed][:GUESSED]
    doubts = report.in_part, report.put_together, report.untimed, report.seen_twice
    wrong = [*report.problems, *filter(None, doubts)]
    first, *others = report.lines([*wrong, *(one.guessed for one in guessed)])
    told = [line.removeprefix(f"{report.file}: ") for line in (first, *wrong)]
    yield "; ".join([*told, *(f"{one.name}: {one.guessed}" for one in guessed)])
    yield from others


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `look` takes."""
    parser.add_argument("capture", type=place, metavar="CAPTURE", help="a capture, or a trace")
    add_output(parser, "FILE", "write a page: a name in .html")
    add_port(parser, "the broker's TCP port, if it is not found by itself")


def command(arguments: argparse.Namespace) -> int:
    """Look and tell."""
    capture, target = arguments.capture, None
    if arguments.output is not None:
        target = output_file(arguments.output, (".html",), [capture])
    with Progress() as progress:
        found = look(capture, progress, port=arguments.port)
    if target is not None:
        from workbench.trace.whole import write_whole

        write_whole(target, found.page())
        say(f"{target}: {target.stat().st_size:,} octets; {found.story.headline}")
        return 0
    tell(found.text())
    return 0


def _told(margin: str, *texts: str) -> Iterator[str]:
    """Texts of which parts may be a peer's, a line each; their own indentation stays."""
    for text in texts:
        yield f"{margin}{' ' * (len(text) - len(text.lstrip()))}{one_line(text)}"


def _brakes(story: Story) -> list[str]:
    if not story.brakes:
        return ["  None: nothing that is known to have waited was held."]
    names = ("blocked by", "stalls", "not proved", "links", "together", "longest")
    rows = [
        (
            one.brake, one.stalls, one.late, len(one.links), *one.times(story.clock),
        )
        for one in story.brakes
    ]  # fmt: skip
    return [f"  {line}" for line in table_lines(names, rows)]
