"""Asking a trace a question: which engine answers, and the answer of either in one form.

The folds answer up to half a million rows at once and without Java; Spark answers any size. Their
answers are equal, so the engine is a matter of size alone: `engine_for` says which, for the command
line and for notebooks.
"""

from __future__ import annotations

import html
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from workbench.folds.questions import QUESTIONS
from workbench.notebook import WrongValueError
from workbench.trace.given import Place, takes

if TYPE_CHECKING:
    from .console import Progress

__all__ = [
    "ENGINES", "PLAIN", "PLAIN_ROWS", "SPARK", "Answer", "ask_trace", "engine_for",
    "master_is_named",
]  # fmt: skip

PLAIN, SPARK = ENGINES = ("plain", "spark")
PLAIN_ROWS = 500_000
"""Rows up to which the folds answer: there they take 7 to 20 s of one processor and 1.2 GB at
most."""
SHOWN = 50
"""Rows of an answer that a notebook shows."""

Say = Callable[[str], None]


def engine_for(count: int | None, asked: str | None = None) -> str:
    """The engine that answers questions: `plain` or `spark`.

    Args:
        count: rows of the traces, by the files' footers; None where only Spark can tell.
        asked: an engine that was asked for; None: Spark where a master is named, else by size.
    """
    if asked is not None:
        return asked
    return SPARK if count is None or count > PLAIN_ROWS or master_is_named() else PLAIN


def _rows(traces: Sequence[Place], *, check: bool = False) -> int | None:
    """How many rows traces have together; None where only Spark can tell."""
    from workbench.analysis.places import is_url
    from workbench.trace.checks import checked

    if any(is_url(str(trace)) for trace in traces):
        return None
    return sum(checked(Path(trace), rows=check).count for trace in traces)


def master_is_named() -> bool:
    """Whether a user has said where Spark runs, in the environment or in its configuration."""
    from workbench.analysis.configured import configured
    from workbench.analysis.session import MASTER_NAME, Settings

    return bool(Settings.found().master) or MASTER_NAME in configured()


@dataclass(slots=True, kw_only=True)
class Answer(Sequence[dict[str, Any]]):
    """An answer as a sequence of rows, each a dict; `open_row(answer[0], trace)` opens one.

    Attributes:
        question: its name.
        engine: which engine worked it out, `plain` or `spark`.
        columns: names in their order.
        rows: from Spark an iterator, until `collected`.
    """

    question: str
    engine: str
    columns: tuple[str, ...]
    rows: Any

    def collected(self) -> Answer:
        """The same answer, all of it in memory."""
        self.rows = list(self.rows)
        return self

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    @property
    def by(self) -> str:
        """Which engine answered, in words."""
        return "answered by Spark" if self.engine == SPARK else "answered without Spark"

    @property
    def caption(self) -> str:
        """What a table says under itself."""
        from workbench.trace.words import counted

        shown = f", the first {SHOWN} shown" if len(self) > SHOWN else ""
        return f"{self.question}: {counted(len(self), 'row')}{shown}; {self.by}"

    def __repr__(self) -> str:
        return self.caption

    def _repr_html_(self) -> str:
        from .console import cell

        def cells(tag: str, values: Sequence[Any]) -> str:
            return "".join(f"<{tag}>{html.escape(cell(value))}</{tag}>" for value in values)

        body = "".join(f"<tr>{cells('td', list(row.values()))}</tr>" for row in self[:SHOWN])
        head = f"<tr>{cells('th', self.columns)}</tr>"
        caption = f'<caption style="caption-side:bottom">{html.escape(self.caption)}</caption>'
        return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>"


@takes
def ask_trace(
    trace: Place,
    question: str,
    other: Place | None = None,
    *,
    engine: str | None = None,
    window_us: int | None = None,
) -> Answer:
    """Ask a trace a question in a notebook: `ask_trace("t.parquet", "stalls")`.

    The whole answer comes back; of very many frames ask Spark for a DataFrame
    (`workbench.analysis`) instead.

    Args:
        trace: a Parquet file, a folder of them, or a URL.
        question: its name: `summary`, `stalls`, `credit`, ...
        other: of `compare`, the trace to compare with.
        engine: `plain` or `spark`; None leaves it to the number of rows.
        window_us: of `throughput`, the length of a window in microseconds.

    Raises:
        TraceFileError: it is no trace.
        AnalysisError: Spark cannot work, or its trace is none.
        WrongValueError: there is no such question or engine.
    """
    from .console import Progress

    if question not in QUESTIONS or (question == "compare") != (other is not None):
        known = ", ".join(name for name in QUESTIONS if name != "compare")
        raise WrongValueError(
            f"{question!r} of {2 if other else 1} trace(s): legal: {known}; compare takes two"
        )
    if engine not in (None, *ENGINES):
        raise WrongValueError(f"engine {engine!r}; legal: {', '.join(ENGINES)}")
    traces = [one for one in (trace, other) if one is not None]
    with Progress("asking") as progress:
        return answered(question, traces, progress, asked=engine, window_us=window_us).collected()


def answered(
    question: str,
    traces: Sequence[Place],
    progress: Progress,
    *,
    asked: str | None = None,
    window_us: int | None = None,
    say: Say | None = None,
) -> Answer:
    """The answer to a question, by the engine that fits.

    Args:
        question: its name.
        traces: one, of `compare` two.
        progress: told how far the work is.
        asked: an engine, or None.
        window_us: of `throughput` alone.
        say: told how long the start of Spark takes.

    Raises:
        TraceFileError: one is no trace.
        AnalysisError: Spark cannot work, or its trace is none.
    """
    arguments = {} if window_us is None else {"window_us": window_us}
    count = _rows(traces)
    engine = engine_for(count, asked)
    columns = QUESTIONS[question].columns
    rows: Any
    if engine == PLAIN:
        rows = _folded(question, traces, progress, arguments)
    else:
        rows = _from_spark(question, traces, count, progress, arguments, say)
    return Answer(question=question, engine=engine, columns=columns, rows=rows)


def _folded(
    question: str, traces: Sequence[Place], progress: Progress, arguments: dict[str, int]
) -> list[dict[str, Any]]:
    from workbench.trace import files
    from workbench.trace.collector import seldom_collected

    if _rows(traces, check=True) is None:
        raise files.TraceFileError("a trace at a URL is Spark's: leave --engine plain out")
    with seldom_collected():
        rows = [list(progress.over(files.iter_rows(trace, raw=False))) for trace in traces]
        return QUESTIONS[question].answer(*rows, **arguments)


def _from_spark(
    question: str,
    traces: Sequence[Place],
    count: int | None,
    progress: Progress,
    arguments: dict[str, int],
    say: Say | None,
) -> Iterator[dict[str, Any]]:
    """The rows in order: on return all of them are there, as Arrow, which takes little memory."""
    from workbench.analysis.jobs import watched
    from workbench.analysis.reading import open_trace, told
    from workbench.analysis.segmented_scan import released
    from workbench.analysis.session import QUICK_ROWS, SMALL, SMALL_ROWS, get_spark

    rows = QUICK_ROWS + 1 if count is None else count
    suited = SMALL if rows <= SMALL_ROWS else {}
    spark = get_spark(say=say, quick=rows <= QUICK_ROWS, suited=suited)
    first, *others = (open_trace(spark, str(trace)) for trace in traces)
    more: dict[str, Any] = {"chunks": first.chunks, **arguments}
    for other in others:
        more = {"right": other.frame, "chunks": first.chunks.beside(other.chunks)}
    module = importlib.import_module(f"workbench.analysis.{question}")
    # A large trace's question does work as it is put together already.
    with told(), released(), watched(spark, lambda now: progress.at(now.done, now.tasks)):
        answer = getattr(module, question)(**more)(first.frame)
        names = QUESTIONS[question].order
        found = (answer.orderBy(*names) if names else answer).toArrow()
    rows = (values for batch in found.to_batches() for values in batch.to_pylist())
    if question == "summary":
        links = list(rows)
        waits = {} if count is None else _waits(links, traces[0], progress)
        rows = _advised(links, waits)
    progress.clear()
    return rows


def _advised(
    links: list[dict[str, Any]], waits: Mapping[tuple[str, int], str]
) -> Iterator[dict[str, Any]]:
    """The rows of `summary` with what Spark leaves to the folds: the advice, in words."""
    from workbench.folds.summary import advice, holding

    whole = holding(link for link in links if link["session"] is None)
    for link in links:
        wait = waits.get((link["run"], link["longest_seq"]), "")
        yield link | {"advice": advice(link, wait, whole=whole)}


def _waits(
    links: Iterable[Mapping[str, Any]], trace: Place, progress: Progress
) -> dict[tuple[str, int], str]:
    """The longest waits, as `waits_in_words` tells them."""
    from workbench.trace.clock import COLUMNS, waits_in_words
    from workbench.trace.files import batches, trace_files

    waits = {(link["run"], link["longest_seq"]): link["longest_us"] for link in links}
    progress.turn("reading the clock", _rows([trace]), "rows")
    parts = (part for file in trace_files(trace) for part in batches(file, COLUMNS))
    return waits_in_words(waits, progress.past(parts))
