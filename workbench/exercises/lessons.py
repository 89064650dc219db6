"""The map of the lessons: one table, from which the index and its progress are made."""

from __future__ import annotations

import contextlib
import html
from dataclasses import dataclass
from pathlib import Path

from .progress import FILE_NAME, Progress, ProgressError, progress

READY, PLANNED = "ready", "planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One notebook.

    Attributes:
        number: two digits, in the order in which they are meant to be taken.
        name: of the file, after the number.
        title: what a learner does in it.
        idea: what they know afterwards.
        minutes: how long it takes with stepping and predicting.
        java: it uses Spark, which needs Java.
    """

    number: str
    name: str
    title: str
    idea: str
    minutes: int
    java: bool = False

    @property
    def file(self) -> str:
        """Name of the notebook."""
        return f"{self.number}_{self.name}.ipynb"


def _lesson(number: str, name: str, title: str, idea: str, minutes: int, **more: bool) -> Lesson:
    return Lesson(number=number, name=name, title=title, idea=idea, minutes=minutes, **more)


LESSONS: tuple[Lesson, ...] = (
    _lesson(
        "01",
        "credit",
        "Grant credit by hand",
        "nothing moves until the receiver speaks; credit is set, not added; when to top up",
        25,
    ),
    _lesson(
        "02",
        "race",
        "Let a flow and a transfer cross",
        "why delivery-count exists; numbers that wrap around; all schedules at once",
        25,
    ),
    _lesson(
        "03",
        "drain",
        "Drain, stop and hand over",
        "drain, time-out, echo, available; handing a queue to the next consumer",
        25,
    ),
    _lesson(
        "04",
        "windows",
        "Close a session's window",
        "windows count frames, not messages; a huge credit behind a tiny window",
        25,
    ),
    _lesson(
        "05",
        "publishers",
        "Slow one target among fast ones",
        "how a broker grants to publishers; one connection for both ways",
        25,
    ),
    _lesson(
        "06",
        "amqp091",
        "Block a whole connection",
        "AMQP 0-9-1: prefetch, credit between processes, blocked readers",
        30,
    ),
    _lesson(
        "07",
        "quorum",
        "Wait for a majority",
        "quorum queues: log, disk, soft limit; three ways to confirm",
        30,
    ),
    _lesson(
        "08",
        "alarms",
        "Pull the emergency brake",
        "memory alarms, channel.flow, connection.blocked, paging",
        25,
    ),
    _lesson(
        "09",
        "qpid",
        "Fill a Qpid broker",
        "AMQP 0-10: windows of completion and watermarks",
        25,
    ),
    _lesson(
        "10",
        "million",
        "Find the stall in a million frames",
        "questions to large captures with Spark; the answer opens in the stepper",
        30,
        java=True,
    ),
    _lesson(
        "11",
        "client",
        "Freeze the wire under your own client",
        "your client against a wire that waits for your hand; a museum of real bugs",
        30,
    ),
    _lesson(
        "12",
        "capstone",
        "Name the brake",
        "a trace nobody explains: find what holds it, tune it, prove it",
        30,
        java=True,
    ),
)


class LessonMap:
    """The table as a page: links to what is there, and plain words for what is not yet.

    Args:
        folder: where the notebooks are.
        log: what the learner has answered so far.
    """

    def __init__(self, folder: Path, log: Progress) -> None:
        self._folder = folder
        self._log = log

    def is_ready(self, lesson: Lesson) -> bool:
        """Whether its notebook is there."""
        return (self._folder / lesson.file).is_file()

    def _cells(self, lesson: Lesson) -> tuple[str, ...]:
        return (
            lesson.number,
            lesson.title,
            lesson.idea,
            str(lesson.minutes),
            "Java" if lesson.java else "–",
            READY if self.is_ready(lesson) else PLANNED,
            self._log.summary(lesson.number) or "–",
        )

    _HEAD = ("no.", "lesson", "you will know", "minutes", "needs", "state", "yours")

    def __str__(self) -> str:
        lines = [self._HEAD, *(self._cells(lesson) for lesson in LESSONS)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self._HEAD))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(
            f'<th scope="col" style="text-align:left">{cell}</th>' for cell in self._HEAD
        )
        return (
            '<table aria-label="Lessons" style="font-size:100%">'
            f"<thead><tr>{head}</tr></thead><tbody>"
            + "".join(self._line(lesson) for lesson in LESSONS)
            + "</tbody></table>"
        )

    def _line(self, lesson: Lesson) -> str:
        number, title, *rest = map(html.escape, self._cells(lesson))
        if self.is_ready(lesson):
            title = f'<a href="{html.escape(lesson.file)}"><strong>{title}</strong></a>'
        cells = "".join(f'<td style="text-align:left">{cell}</td>' for cell in (title, *rest))
        return f'<tr><th scope="row" style="text-align:left">{number}</th>{cells}</tr>'


def lesson_map(folder: str | Path | None = None) -> LessonMap:
    """The map of the lessons, with what this learner has answered so far.

    Args:
        folder: where the notebooks are; the notebook's own folder if None. A progress that was
            kept there is read.
    """
    place = Path.cwd() if folder is None else Path(folder)
    log = Progress()
    log.entries.update(progress.entries)
    # The progress cell says what is wrong with the file; the map needs none.
    with contextlib.suppress(ProgressError):
        log.load(place / FILE_NAME)
    return LessonMap(place, log)
