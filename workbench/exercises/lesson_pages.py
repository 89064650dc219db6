"""What a lesson shows about itself: the map of all, a card for one, and a reset."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from .lessons import LESSONS, Lesson, is_ready, lesson_numbered
from .progress import Progress, Record, progress

READY, PLANNED = "ready", "planned"


class LessonMap:
    """The table as a page: links to what is there, and plain words for what is not yet.

    Args:
        folder: where the notebooks are.
        log: what the learner has answered so far.
    """

    def __init__(self, folder: Path, log: Progress) -> None:
        self._folder = folder
        self._log = log

    def _cells(self, lesson: Lesson) -> tuple[str, ...]:
        return (
            lesson.number,
            lesson.title,
            lesson.idea,
            str(lesson.minutes),
            ", ".join(lesson.after) or "–",
            "Java" if lesson.java else "–",
            READY if is_ready(lesson, self._folder) else PLANNED,
            self._log.summary(lesson.number) or "–",
        )

    _HEAD = ("no.", "lesson", "you will know", "minutes", "after", "needs", "state", "yours")

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
        if is_ready(lesson, self._folder):
            title = f'<a href="{html.escape(lesson.file)}"><strong>{title}</strong></a>'
        cells = "".join(f'<td style="text-align:left">{cell}</td>' for cell in (title, *rest))
        return f'<tr><th scope="row" style="text-align:left">{number}</th>{cells}</tr>'


def lesson_map(folder: str | Path | None = None) -> LessonMap:
    """The map of the lessons, with what this learner has answered so far.

    Args:
        folder: where the notebooks are; the notebook's own folder if None.
    """
    progress.refresh()
    return LessonMap(Path.cwd() if folder is None else Path(folder), progress)


class LessonCard:
    """What a lesson takes and gives: minutes, what comes before, what you will be able to do.

    Args:
        lesson: whose card it is.
        folder: where the notebooks are.
    """

    def __init__(self, lesson: Lesson, folder: Path) -> None:
        self.lesson = lesson
        self._folder = folder

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
            f'<a href="{html.escape(one.file)}">{one.number} {html.escape(one.title)}</a>'
            if is_ready(one, self._folder)
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
    return LessonCard(lesson_numbered(lesson), Path.cwd())


class ResetView(widgets.VBox):
    """A button that forgets what was answered in one lesson, and one that takes it back.

    Running the cell forgets nothing: pressing the button does.

    Args:
        lesson: whose answers.
        log: where they are kept.
    """

    def __init__(self, lesson: Lesson, log: Progress = progress) -> None:
        self._lesson = lesson
        self._log = log
        self._gone: tuple[Record, ...] = ()
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
        self.undo.disabled = not self._gone
        if gone:
            self._say(
                f"{_answers(len(gone))} of lesson {self._lesson.number} forgotten. To begin with"
                " fresh questions, restart the kernel and run the cells again."
            )
        else:
            self._say(f"There are no answers of lesson {self._lesson.number}.")

    def _undo(self) -> None:
        count = self._log.put_back(self._gone)
        self._gone = ()
        self.undo.disabled = True
        self._say(f"{_answers(count)} put back.")

    def _say(self, text: str) -> None:
        self.line.value = f'<div role="status">{html.escape(text)}</div>'

    def __repr__(self) -> str:
        return f"Reset of lesson {self._lesson.number}: {self.forget.description}; then undo."

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/plain"] = repr(self)
            data["text/html"] = f"<p>{html.escape(repr(self))}</p>"
        return bundle


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
