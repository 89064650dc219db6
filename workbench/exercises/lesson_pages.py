"""What a lesson shows about itself: the map of all, a card for one, and a reset."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench.languages import phrase
from workbench.lessons.table import LESSONS, Lesson, is_ready, lesson_numbered
from workbench.trace.given import Place, takes
from workbench.views.controls import status
from workbench.views.stills import Still

from . import kept_branches
from .progress import Progress, ProgressError, Record, progress
from .table import Table, table_of
from .working_copies import (
    FOLDER,
    INDEX,
    NOTEBOOKS,
    beside_notebooks,
    earlier_copies,
    has_changed,
    make_copies,
)

say = partial(phrase, "cards")


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
    return [note] if (note := say("map.language")) else []


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
            say("map.ready" if self._shelf.has(lesson) else "map.planned"),
            self._log.summary(lesson.number) or "–",
        )

    @property
    def table(self) -> Table:
        """A line a lesson, in plain words."""
        return table_of("lessons", [self._cells(lesson) for lesson in LESSONS])

    def _changed(self) -> list[str]:
        return [say("map.changed", name=name) for name in self._shelf.changed()]

    def __str__(self) -> str:
        return "\n".join([*_note(), str(self.table), *self._changed()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = self.table
        head = "".join(
            f'<th scope="col" style="text-align:left">{html.escape(cell)}</th>'
            for cell in table.head
        )
        return (
            "".join(f"<p>{html.escape(note)}</p>" for note in _note())
            + f'<table aria-label="{html.escape(table.name)}" style="font-size:100%">'
            f"<thead><tr>{head}</tr></thead><tbody>"
            + "".join(self._line(lesson) for lesson in LESSONS)
            + "</tbody></table>"
            + "".join(f"<p>{changed}</p>" for changed in self._changed())
            + "".join(
                f"<p>{say('map.earlier', copy=self._shelf.link(name, name))}</p>"
                for name in self._shelf.earlier()
            )
        )

    def _line(self, lesson: Lesson) -> str:
        number, title, *rest = map(html.escape, self._cells(lesson))
        if self._shelf.has(lesson):
            title = self._shelf.link(lesson.file, f"<strong>{title}</strong>")
        cells = "".join(f'<td style="text-align:left">{cell}</td>' for cell in (title, *rest))
        return f'<tr><th scope="row" style="text-align:left">{number}</th>{cells}</tr>'


@takes
def lesson_map(folder: Place | None = None) -> LessonMap:
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
        told = {"number": lesson.number, "title": lesson.title, "minutes": lesson.minutes}
        before = [f"{one.number} {one.title}" for one in self._before()]
        lines = [say("card.head", **told), _after(before)]
        if lesson.java:
            lines.append(say("card.java"))
        lines += [say("card.able"), *(f"- {one}" for one in lesson.able or (lesson.idea,))]
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
        java = f"<div>{say('card.java')}</div>" if lesson.java else ""
        name = say("card.name", number=lesson.number)
        about = say("card.about", name=f"<strong>{name}</strong>", minutes=lesson.minutes)
        return (
            f'<div role="note" aria-label="{name}" style="line-height:1.5">'
            f"<div>{about} {_after(before)}</div>{java}"
            f"<div>{say('card.able')}</div><ul style='margin-top:0'>{able}</ul></div>"
        )


def _after(before: list[str]) -> str:
    """What a lesson comes after, in words."""
    return say("card.before", lessons="; ".join(before)) if before else say("card.first")


def lesson_card(lesson: str) -> LessonCard:
    """Minutes, what comes before, and what you will be able to do.

    Args:
        lesson: its number, such as "02".

    Raises:
        ValueError: if there is no such lesson.
    """
    return LessonCard(lesson_numbered(lesson), Shelf())


class Forgetting(Still, widgets.VBox):
    """A button that forgets answers and branches, and one that takes it back.

    Running the cell forgets nothing: pressing the button does.

    Args:
        log: where the answers are kept.
        forget, tip: what the first button is called, and what it says of itself.
    """

    still_is_prose = True

    def __init__(self, log: Progress, *, forget: str, tip: str) -> None:
        self._log = log
        self._gone: list[Record] = []
        self._gone_branches: dict[str, Any] = {}
        self.forget = widgets.Button(description=forget, tooltip=tip, layout={"width": "auto"})
        self.undo = widgets.Button(
            description=say("reset.undo"), tooltip=say("reset.undo-tip"), disabled=True
        )
        self.line = widgets.HTML(layout={"min_height": "28px"})
        super().__init__(children=[widgets.HBox([self.forget, self.undo]), self.line])
        self.forget.on_click(lambda _button: self._forget())
        self.undo.on_click(lambda _button: self._undo())

    def _forget(self) -> None:
        """Forget, and say what."""
        raise NotImplementedError

    def _undo(self) -> None:
        """Put back, and say what."""
        raise NotImplementedError

    def _forget_lesson(self, lesson: str) -> tuple[int, int]:
        """Forget a lesson; gives how many answers, and the branches of how many pictures.

        Raises:
            OSError, ProgressError: if the branches cannot be forgotten now.
        """
        gone = self._log.forget(lesson)
        self._gone += gone
        branches = kept_branches.forget(lesson)
        self._gone_branches.update(branches)
        return len(gone), len(branches)

    def _put_back(self) -> int:
        """Put back what was forgotten; gives how many answers."""
        back = self._log.put_back(self._gone)
        kept_branches.remember(self._gone_branches)
        self._gone, self._gone_branches = [], {}
        self.undo.disabled = True
        return back

    def _say(self, text: str) -> None:
        self.line.value = status(text)


class ResetView(Forgetting):
    """Forgets what was answered in one lesson.

    Args:
        lesson: whose answers.
        log: where they are kept.
    """

    def __init__(self, lesson: Lesson, log: Progress = progress) -> None:
        self._lesson = lesson.number
        super().__init__(
            log,
            forget=say("reset.forget", lesson=lesson.number),
            tip=say("reset.forget-tip"),
        )

    def _forget(self) -> None:
        try:
            answers, branches = self._forget_lesson(self._lesson)
        except (OSError, ProgressError) as error:
            self._say(say("reset.failed", why=error))
            return
        self.undo.disabled = not (self._gone or self._gone_branches)
        if answers or branches:
            told = {"n": answers, "lesson": self._lesson, "desks": branches}
            self._say(say("reset.done-branches" if branches else "reset.done", **told))
        else:
            self._say(say("reset.none", lesson=self._lesson))

    def _undo(self) -> None:
        self._say(say("reset.undone", n=self._put_back()))

    def __repr__(self) -> str:
        return say("reset.still", lesson=self._lesson, button=self.forget.description)


def reset_lesson(lesson: str) -> ResetView:
    """A button that forgets your answers of one lesson; nothing is forgotten before you press it.

    Args:
        lesson: its number, such as "02".

    Raises:
        ValueError: if there is no such lesson.
    """
    return ResetView(lesson_numbered(lesson))
