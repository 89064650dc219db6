"""What a lesson shows about itself: the map of all, a card for one, and a reset."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench.languages import count, words
from workbench.lessons.table import LESSONS, Lesson, is_ready, lesson_numbered
from workbench.views.stills import Still

from . import kept_branches
from .progress import Progress, ProgressError, Record, progress
from .working_copies import (
    FOLDER,
    INDEX,
    NOTEBOOKS,
    beside_notebooks,
    earlier_copies,
    has_changed,
    make_copies,
)

READY, PLANNED = "ready", "planned"
_CHANGED = (
    "{} has changed since your copy was made. When the lab is started again it opens the lesson as"
    " it is now; what you have written in yours is kept beside it."
)


class Shelf:
    """The notebooks that the links of a page lead to: the learner's copies, where there are any.

    Args:
        folder: where they are; found from the current folder if None.

    Attributes:
        folder: where they are.
        root: the folder of the learner's copies and of the lessons; None if these are no copies.
    """

    def __init__(self, folder: Path | None = None) -> None:
        here = Path.cwd() if folder is None else folder
        self.root = beside_notebooks(here) if folder is None else None
        if self.root is not None:
            with suppress(OSError, ValueError):
                make_copies(self.root)
            if not (self.root / FOLDER / INDEX).is_file():
                self.root = None
        self.folder = here if self.root is None else self.root / FOLDER
        self._way = Path(os.path.relpath(self.folder, here))

    def has(self, lesson: Lesson) -> bool:
        """Whether a lesson is there."""
        return is_ready(lesson, self.folder)

    def link(self, name: str, text: str) -> str:
        """A link to a notebook."""
        return f'<a href="{html.escape((self._way / name).as_posix())}">{text}</a>'

    def changed(self) -> Iterator[str]:
        """The lessons whose copies are not what the lessons are now."""
        for lesson in LESSONS if self.root is not None else ():
            copy, own = self.folder / lesson.file, self.root / NOTEBOOKS / lesson.file
            with suppress(OSError, ValueError, KeyError):
                if copy.is_file() and own.is_file() and has_changed(own, copy):
                    yield lesson.file

    def earlier(self) -> Iterator[str]:
        """The learner's copies of lessons as they were before."""
        for lesson in LESSONS if self.root is not None else ():
            yield from earlier_copies(self.root, lesson.file)


def _note() -> list[str]:
    """What is to be said of the learner's language, if it is not whole."""
    return [note] if (note := words("about")["note"]) else []


class LessonMap:
    """The table as a page: links to what is there, and plain words for what is not yet.

    Args:
        shelf: the notebooks.
        log: what the learner has answered so far.
    """

    def __init__(self, shelf: Shelf, log: Progress) -> None:
        self._shelf = shelf
        self._log = log

    def _cells(self, lesson: Lesson) -> tuple[str, ...]:
        return (
            lesson.number,
            lesson.title,
            lesson.idea,
            str(lesson.minutes),
            ", ".join(lesson.after) or "–",
            "Java" if lesson.java else "–",
            READY if self._shelf.has(lesson) else PLANNED,
            self._log.summary(lesson.number) or "–",
        )

    _HEAD = ("no.", "lesson", "you will know", "minutes", "after", "needs", "state", "yours")

    def __str__(self) -> str:
        lines = [self._HEAD, *(self._cells(lesson) for lesson in LESSONS)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self._HEAD))]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*_note(), *table, *map(_CHANGED.format, self._shelf.changed())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(
            f'<th scope="col" style="text-align:left">{cell}</th>' for cell in self._HEAD
        )
        return (
            "".join(f"<p>{html.escape(note)}</p>" for note in _note())
            + '<table aria-label="Lessons" style="font-size:100%">'
            f"<thead><tr>{head}</tr></thead><tbody>"
            + "".join(self._line(lesson) for lesson in LESSONS)
            + "</tbody></table>"
            + "".join(f"<p>{_CHANGED.format(name)}</p>" for name in self._shelf.changed())
            + "".join(
                f"<p>{self._shelf.link(name, name)}: your copy of the lesson as it was before.</p>"
                for name in self._shelf.earlier()
            )
        )

    def _line(self, lesson: Lesson) -> str:
        number, title, *rest = map(html.escape, self._cells(lesson))
        if self._shelf.has(lesson):
            title = self._shelf.link(lesson.file, f"<strong>{title}</strong>")
        cells = "".join(f'<td style="text-align:left">{cell}</td>' for cell in (title, *rest))
        return f'<tr><th scope="row" style="text-align:left">{number}</th>{cells}</tr>'


def lesson_map(folder: str | Path | None = None) -> LessonMap:
    """The map of the lessons, with what this learner has answered so far.

    Args:
        folder: where the notebooks are; the learner's copies, made if they are not there, if None.
    """
    progress.refresh()
    return LessonMap(Shelf(None if folder is None else Path(folder)), progress)


class LessonCard:
    """What a lesson takes and gives: minutes, what comes before, what you will be able to do.

    Args:
        lesson: whose card it is.
        shelf: the notebooks.
    """

    def __init__(self, lesson: Lesson, shelf: Shelf) -> None:
        self.lesson = lesson
        self._shelf = shelf

    def _before(self) -> list[Lesson]:
        return [lesson_numbered(number) for number in self.lesson.after]

    def __str__(self) -> str:
        lesson = self.lesson
        lines = [f"Lesson {lesson.number}: {lesson.title}. About {lesson.minutes} minutes."]
        before = [f"{one.number} {one.title}" for one in self._before()]
        lines.append(f"Before it: {'; '.join(before) or 'nothing'}.")
        if lesson.java:
            lines.append("It uses Spark, which needs Java.")
        lines += ["You will be able to", *(f"- {one}" for one in lesson.able or (lesson.idea,))]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lesson = self.lesson
        before = [
            self._shelf.link(one.file, f"{one.number} {html.escape(one.title)}")
            if self._shelf.has(one)
            else f"{one.number} {html.escape(one.title)}"
            for one in self._before()
        ]
        able = "".join(f"<li>{html.escape(one)}</li>" for one in lesson.able or (lesson.idea,))
        java = "<div>It uses Spark, which needs Java.</div>" if lesson.java else ""
        return (
            f'<div role="note" aria-label="Lesson {lesson.number}" style="line-height:1.5">'
            f"<div><strong>Lesson {lesson.number}</strong>, about {lesson.minutes} minutes. Before"
            f" it: {'; '.join(before) or 'nothing'}.</div>{java}"
            f"<div>You will be able to</div><ul style='margin-top:0'>{able}</ul></div>"
        )


def lesson_card(lesson: str) -> LessonCard:
    """Minutes, what comes before, and what you will be able to do.

    Args:
        lesson: its number, such as "02".

    Raises:
        ValueError: if there is no such lesson.
    """
    return LessonCard(lesson_numbered(lesson), Shelf())


class ResetView(Still, widgets.VBox):
    """A button that forgets what was answered in one lesson, and one that takes it back.

    Running the cell forgets nothing: pressing the button does.

    Args:
        lesson: whose answers.
        log: where they are kept.
    """

    still_is_prose = True

    def __init__(self, lesson: Lesson, log: Progress = progress) -> None:
        self._lesson = lesson
        self._log = log
        self._gone: tuple[Record, ...] = ()
        self._gone_branches: dict[str, Any] = {}
        self.forget = widgets.Button(
            description=f"Forget my answers of lesson {lesson.number}",
            tooltip="the answers of all other lessons stay; you can take it back below",
            layout={"width": "auto"},
        )
        self.undo = widgets.Button(
            description="Take it back", tooltip="the forgotten answers return", disabled=True
        )
        self.line = widgets.HTML(layout={"min_height": "28px"})
        row = widgets.HBox([self.forget, self.undo])
        super().__init__(children=[row, self.line])
        self.forget.on_click(lambda _button: self._forget())
        self.undo.on_click(lambda _button: self._undo())

    def _forget(self) -> None:
        gone = self._log.forget(self._lesson.number)
        self._gone = (*self._gone, *gone)
        try:
            branches = kept_branches.forget(self._lesson.number)
        except (OSError, ProgressError) as error:
            self._say(f"Your branches could not be forgotten: {error}.")
            return
        self._gone_branches.update(branches)
        self.undo.disabled = not (self._gone or self._gone_branches)
        if gone or branches:
            desks = f", and the branches of {count(len(branches), 'desk')}" if branches else ""
            self._say(
                f"{_answers(len(gone))} of lesson {self._lesson.number} forgotten{desks}. To begin"
                " with fresh questions, restart the kernel and run the cells again."
            )
        else:
            self._say(f"There are no answers of lesson {self._lesson.number}.")

    def _undo(self) -> None:
        back = self._log.put_back(self._gone)
        kept_branches.remember(self._gone_branches)
        self._gone, self._gone_branches = (), {}
        self.undo.disabled = True
        self._say(f"{_answers(back)} put back.")

    def _say(self, text: str) -> None:
        self.line.value = f'<div role="status">{html.escape(text)}</div>'

    def __repr__(self) -> str:
        return f"Reset of lesson {self._lesson.number}: {self.forget.description}; then undo."


def _answers(count: int) -> str:
    return "1 answer" if count == 1 else f"{count} answers"


def reset_lesson(lesson: str) -> ResetView:
    """A button that forgets your answers of one lesson; nothing is forgotten before you press it.

    Args:
        lesson: its number, such as "02".

    Raises:
        ValueError: if there is no such lesson.
    """
    return ResetView(lesson_numbered(lesson))
