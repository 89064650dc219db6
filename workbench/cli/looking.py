"""`workbench look`: one capture, one page, for whoever has a stalled consumer and a pcap."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.notebook import PlainError
from workbench.trace.collector import seldom_collected

from .asking import PLAIN_ROWS
from .console import CommandError, Progress, one_line, say, table_lines
from .places import output_file

if TYPE_CHECKING:
    from workbench.capture.report import CaptureReport
    from workbench.folds.story import Story
    from workbench.trace.cut import Cut
    from workbench.trace.schema import Row

__all__ = ["Look", "look"]

NAME = "look"
HELP = "one page about a capture: who waited, how long, why, and the worst frame"
TEXT = """\
Read a capture and say what happened on each of its links: who waited, how long, why and what to
change, the stalls by brake, what the capture cannot tell, and the worst frame in full.

  workbench look capture.pcapng                   as text
  workbench look capture.pcapng -o page.html      as a page that steps through the frames round it

A CAPTURE is a pcap or pcapng file or a frame log of Proton; a trace can be looked at too. Nothing
is kept but the page. What has more than 500,000 frames is imported and analyzed instead.
"""

AROUND = 200
"""Frames before and after the worst one that the page can step through."""
NEAR = 3
"""Frames before and after it that the text tells of."""
LINKS = 20
"""Links that the text tells of."""
LINES = 20
"""Errors and broken rules that it tells of."""


class LookError(PlainError):
    """A file that cannot be looked at; the text is one line for a person."""


@dataclass(frozen=True)
class Look:
    """What there is to see in one file.

    Attributes:
        name: of the file.
        about: what was read, a line each; the first says how much, and what is wrong with the file.
        rows: all of them.
        story: what happened on each link.
    """

    name: str
    about: tuple[str, ...]
    rows: Sequence[Row]
    story: Story

    @cached_property
    def unknown(self) -> list[str]:
        """What the file cannot tell, a line each."""
        from workbench.trace.unknowns import told_once, unknowns

        by_place = told_once(unknowns(self.rows)).items()
        return [f"{place}: {one.unknown}: {one.why}" for place, found in by_place for one in found]

    def opened(self, around: int = AROUND) -> Cut:
        """The rows round the worst one, for the stage; round the first if there is none."""
        from workbench.trace.cut import cut_rows

        seq = self.rows[0].seq if self.story.worst is None else self.story.worst[1].seq
        at = seq - self.rows[0].seq
        first, end = max(0, at - around), at + around + 1
        return cut_rows(self.rows, seq, first=first, end=end, name=self.name)

    def page(self) -> str:
        """All of it as HTML in one file."""
        from workbench.views.opening import scene_of
        from workbench.views.story_page import story_page

        doc, step = scene_of(self.opened(), title=self.name)
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
            yield f"  ... and {len(story.links) - LINKS:,} more, which waited less"
        if story.wrong:
            yield from ("", "Errors and broken rules", *_told("  ", *story.wrong[:LINES]))
        if len(story.wrong) > LINES:
            yield f"  ... and {len(story.wrong) - LINES:,} more"
        yield from ("", "Stalls by brake", *_brakes(story))
        if story.worst is not None:
            yield from ("", "The worst frame")
            yield from (f"  {line}" for line in step(self.opened(NEAR)))
        if self.unknown:
            yield from ("", "What it cannot tell", *_told("  ", *self.unknown))
        yield from ("", "What was read", *_told("  ", *self.about))

    def _repr_html_(self) -> str:
        from workbench.views.static_html import asset
        from workbench.views.story_page import report_html

        report = report_html(self.story, [self.name, *self.about], self.unknown)
        return f'<style>{asset("story.css")}</style><div class="story">{report}</div>'

    def __repr__(self) -> str:
        return f"{self.name}: {self.story.headline}"


@seldom_collected()
def look(path: str | Path, progress: Progress | None = None) -> Look:
    """What there is to see in a capture, or in a trace.

    Args:
        path: a pcap or pcapng file, a frame log of Proton, or a Parquet file or folder.
        progress: told how far the reading is.

    Raises:
        LookError: it cannot be read, or is too large.
    """
    from workbench.folds.story import story

    place = Path(path)
    more: dict[str, Any] = {}
    if place.is_dir() or place.suffix == ".parquet":
        rows, about = _trace(place)
    else:
        rows, about, report = _capture(place, progress)
        more = {"still_open": report.still_open, "until_us": report.lasted_us}
    if len(rows) > PLAIN_ROWS:
        raise LookError(
            f"{place.name}: has more rows than can be looked at ({PLAIN_ROWS:,});"
            f" workbench import {place} -o large.parquet, and workbench analyze large.parquet"
        )
    return Look(name=place.name, about=tuple(about), rows=rows, story=story(rows, **more))


def _trace(place: Path) -> tuple[list[Row], list[str]]:
    from workbench.trace import files

    try:
        rows = files.read(place)
    except files.TraceFileError as error:
        raise LookError(str(error)) from None
    runs = {row.run for row in rows}
    if len(runs) > 1:
        raise LookError(f"{place}: holds {len(runs)} runs; look at a file that holds one")
    return rows, [f"{len(rows):,} rows of the trace {place}"]


def _capture(place: Path, progress: Progress | None) -> tuple[list[Row], list[str], CaptureReport]:
    from workbench.capture.importer import Capture, CaptureError
    from workbench.trace.files import from_table

    rows: list[Row] = []
    try:
        capture = Capture(place)
        size = place.stat().st_size
        tell = None if progress is None else lambda octets: progress.at(octets, size)
        for table in capture.tables(tell):
            rows += from_table(table)
            if len(rows) > PLAIN_ROWS:
                break
    except (CaptureError, OSError) as error:
        raise LookError(str(error)) from None
    report = capture.report
    first, *others = report.lines()
    wrong = (*report.problems, *filter(None, [report.in_part]))
    told = (line.removeprefix(f"{place.name}: ") for line in (first, *wrong))
    told_of = ["; ".join(told), *(line for line in others if line != report.in_part)]
    return rows, told_of, report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `look` takes."""
    parser.add_argument("capture", metavar="CAPTURE", help="a pcap or pcapng file")
    parser.add_argument("-o", "--output", metavar="FILE", help="write a page: a name in .html")


def command(arguments: argparse.Namespace) -> int:
    """Look and tell."""
    target = None if arguments.output is None else output_file(arguments.output, (".html",))
    try:
        with Progress("reading", unit="octets") as progress:
            found = look(arguments.capture, progress)
    except LookError as error:
        raise CommandError(str(error)) from None
    if target is not None:
        from workbench.views.static_html import write_page

        write_page(found.page(), target)
        say(f"{target}: {target.stat().st_size:,} octets; {found.story.headline}")
        return 0
    for line in found.text():
        print(line)
    return 0


def _told(margin: str, *texts: str) -> Iterator[str]:
    """Texts of which parts may be a peer's, a line each; their own indentation stays."""
    for text in texts:
        yield f"{margin}{' ' * (len(text) - len(text.lstrip()))}{one_line(text)}"


def _brakes(story: Story) -> list[str]:
    from workbench.trace.words import duration

    if not story.brakes:
        return ["  None: nothing that is known to have waited was held."]
    names = ("blocked by", "stalls", "links", "together", "longest")
    rows = [
        (one.brake, one.stalls, len(one.links), duration(one.lost_us), duration(one.longest_us))
        for one in story.brakes
    ]
    return [f"  {line}" for line in table_lines(names, rows)]
