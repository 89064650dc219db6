"""Spark in lesson 10: its start while one reads on, questions with a bar, answers with or without.

The desk starts Spark in the background and shows how long that takes here. A question shows how far
Spark is. Where there is no Java the desk says so once and answers from the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench.notebook import WrongValueError
from workbench.trace.given import takes
from workbench.views.stills import Still

from .progress import progress
from .shared_file import standard_folder
from .spark_answers import Answer, recorded, say
from .spark_progress import WorkBar, shown
from .spark_traces import LessonTrace

MEMORY = "1g"
"""Heap, where nobody names one."""
WINDOW_US = 500_000
SHOWN_STALLS = 200
"""Stalls that come out of Spark, the longest first; sums are made inside, over all of them."""

Query = Callable[[Any], Any]


def _overview(name: str, *arguments: int) -> Query:
    """A question about the table of stalls, from the library."""

    def ask(stalls: Any) -> Any:
        from workbench.analysis import overview

        return getattr(overview, name)(*arguments)(stalls)

    return ask


OF_STALLS: Mapping[str, Query] = {
    "stalls": _overview("worst", SHOWN_STALLS),
    "held": _overview("held", WINDOW_US),
    "brakes": _overview("by_brake"),
    "lost": _overview("lost"),
}
"""Questions that are asked of the table of stalls, and that is worked out once for each trace."""
QUESTIONS = ("rates", *OF_STALLS)
LONGEST = "stalls"
"""The question of which not all rows come out of Spark."""


class SparkDesk(Still, widgets.VBox):
    """Starts Spark, and asks it.

    Args:
        settings: fields of `analysis.session.Settings`.

    Attributes:
        why_not: why there is no Spark; empty while there may be.
    """

    still_is_prose = True

    def __init__(self, **settings: Any) -> None:
        from workbench.analysis.errors import AnalysisError
        from workbench.analysis.starting import Starting

        self.view = WorkBar(say("desk.starts"))
        self.meanwhile = widgets.HTML(
            f'<div style="max-width:60em;line-height:1.5">{say("desk.meanwhile")}</div>'
        )
        super().__init__(children=[self.view, self.meanwhile])
        self.why_not = ""
        self._frames: dict[Path, Any] = {}
        self._stalls: dict[Path, Any] = {}
        self._asked: Mapping[str, str] = settings.get("more", {})
        self._starting: Starting | None = None
        try:
            self._starting = Starting(
                memory_of=_memory(), tell=self._heard, **{**_defaults(), **settings}
            )
        except AnalysisError as error:
            self._without(str(error))
        else:
            self._heard(self._starting)

    # -- the start

    def _heard(self, start: Any) -> None:
        expected = start.expected_s
        if not start.over:
            self.view.bar.value = min(0.95, start.passed_s / (expected or 12.0))
            self.view.say(
                say(
                    "desk.waits-known" if expected else "desk.waits",
                    passed=start.passed_s,
                    expected=expected,
                )
            )
        elif start.problem:
            self._without(start.problem)
        else:
            self.view.done(
                say(
                    "desk.ready-known" if expected else "desk.ready",
                    took=start.seconds,
                    expected=expected,
                )
            )

    def _without(self, why: str) -> None:
        self.why_not = why
        self.view.note(say("desk.without", why=why))

    def session(self) -> Any:
        """The session, None if there is no Spark; waits for its start."""
        if self._starting is None or self.why_not:
            return None
        from workbench.analysis.errors import AnalysisError

        try:
            return self._starting.session()
        except AnalysisError as error:
            self._without(str(error))
            return None

    # -- questions

    @takes
    def ask(
        self, question: str | Query, trace: LessonTrace, *, without: Sequence[str] = ()
    ) -> Answer:
        """Ask a question of a trace.

        Args:
            question: one of `QUESTIONS`; or a query of your own, a function that gets the table of
                stalls as a DataFrame and gives another.
            trace: of which trace.
            without: columns that the table on the page leaves out.

        Raises:
            GivenError: an argument is of another kind.
            WrongValueError: there is no such question, or no such column.
            NotRecordedError: there is no Spark, and nothing is recorded.
        """
        if isinstance(question, str) and question not in QUESTIONS:
            listed = ", ".join(QUESTIONS)
            raise WrongValueError(say("desk.no-question", name=repr(question), listed=listed))
        name = question if isinstance(question, str) else question.__name__
        stalls = 0
        if self.session() is None:
            rows = recorded(trace.name, name)
            if name == LONGEST:
                stalls = sum(row["stalls"] for row in recorded(trace.name, "brakes"))
            with shown(WorkBar(say("desk.asked", name=name))) as view:
                view.note(say("desk.recorded", why=self.why_not.partition(":")[0]))
        else:
            with shown(WorkBar(say("desk.asked", name=name))) as view:
                rows = self.rows(question, trace.path, view.spark)
                if name == LONGEST:
                    stalls = self.stalls(trace.path).count()
                found = max(stalls, len(rows))
                view.done(say("desk.answered", told=view.text, n=found, frames=trace.frames))
        if rows and not set(without) <= rows[0].keys():
            listed = ", ".join(rows[0])
            raise WrongValueError(say("desk.no-column", given=repr(without), listed=listed))
        more = max(0, stalls - len(rows))
        return Answer(question=name, rows=rows, path=trace.path, hidden=tuple(without), more=more)

    def rows(
        self, question: str | Query, path: Path, tell: Callable[[Any], None] | None = None
    ) -> list[dict[str, Any]]:
        """The rows of an answer; the trace is a file. There must be a Spark.

        Args:
            question: as `ask` takes it.
            path: the trace.
            tell: told how far Spark is.
        """
        from workbench.analysis.jobs import watched
        from workbench.analysis.reading import told
        from workbench.analysis.session import SMALL, SMALL_ROWS, left_open

        spark = self.session()
        opened = self._opened(path)
        suited = left_open(SMALL, self._asked) if opened.rows <= SMALL_ROWS else {}
        with told(), watched(spark, tell or (lambda _: None)), _set(spark, suited):
            if question == "rates":
                from workbench.analysis.overview import rates

                answer = rates(WINDOW_US)(opened.frame)
            else:
                query = OF_STALLS[question] if isinstance(question, str) else question
                answer = query(self.stalls(path))
            return [row.asDict() for row in answer.collect()]

    def stalls(self, path: Path) -> Any:
        """The table of stalls of a trace, as a DataFrame that is worked out once and kept."""
        if path not in self._stalls:
            from workbench.analysis.stalls import stalls

            trace = self._opened(path)
            self._stalls[path] = stalls(chunks=trace.chunks)(trace.frame).cache()
        return self._stalls[path]

    def _opened(self, path: Path) -> Any:
        if path not in self._frames:
            from workbench.analysis.reading import open_trace

            self._frames[path] = open_trace(self.session(), path)
        return self._frames[path]

    def __repr__(self) -> str:
        return repr(self.view)


def start_spark(**settings: Any) -> SparkDesk:
    """A desk with a Spark that starts in the background.

    Args:
        **settings: fields of `analysis.session.Settings`, such as `memory="512m"`.
    """
    progress.refresh()
    return SparkDesk(**settings)


@contextmanager
def _set(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session while a question is asked."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _defaults() -> dict[str, Any]:
    """How the lesson's Spark is started: its traces are below a million rows."""
    from workbench.analysis.session import MEMORY_NAME

    return {"suited": {MEMORY_NAME: MEMORY}, "quick": True}


def _memory() -> Path | None:
    """Where the times of starts are kept: beside the learner's answers."""
    from workbench.analysis.starting import FILE_NAME

    folder = standard_folder()
    return None if folder is None else folder / FILE_NAME
