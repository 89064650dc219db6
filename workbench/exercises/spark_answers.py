"""Answers of lesson 10: a table on the page, whose rows open on the stage.

An answer comes from Spark, or from `data/answers/lesson_10.json` where there is no Java. What is in
that file was answered by Spark of the same traces (`python -m workbench.exercises.spark_record`
writes it), and a test compares it with fresh answers.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from workbench.languages import phrase
from workbench.notebook import PlainError
from workbench.trace.given import takes

from .measure import milliseconds
from .table import Table, table_of

RECORDED = Path(__file__).resolve().parents[2] / "data" / "answers" / "lesson_10.json"
ROWS_SHOWN = 10

say = partial(phrase, "spark")

Rows = Sequence[Mapping[str, Any]]


class NoRowError(PlainError, ValueError):
    """An answer has no such row, or one that cannot be opened; the text says which it has."""


class NotRecordedError(PlainError, LookupError):
    """There is no Spark and no recorded answer; the text says which question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a question.

    Attributes:
        question: its name.
        rows: what came out of Spark; of stalls the longest.
        path: the trace; a row of a stall opens in it.
        hidden: columns that the table leaves out.
        more: rows that the question has beyond these.
    """

    question: str
    rows: Rows
    path: Path = field(repr=False)
    hidden: tuple[str, ...] = ()
    more: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def table(self) -> Table:
        """The first rows in words."""
        shown = self.rows[:ROWS_SHOWN]
        make = _MAKERS.get(self.question)
        if make is not None:
            lines = [{"number": str(n), **make(row)} for n, row in enumerate(shown, start=1)]
        else:
            lines = [{name: _text(value) for name, value in row.items()} for row in shown]
        names = [name for name in (lines[0] if lines else {}) if name not in self.hidden]
        head = [say(f"column.{name}") for name in names] if make is not None else names
        cells = [tuple(line[name] for name in names) for line in lines]
        return table_of("answer", cells, head, question=self.question)

    @property
    def tail(self) -> str:
        """What the table leaves out."""
        more = len(self.rows) + self.more - ROWS_SHOWN
        return say("more-rows", n=more) if more > 0 else ""

    def open(self, number: int = 1, *, around: int = 200) -> Any:
        """The stage at a row of the answer, with what everybody knew just before the first row.

        Args:
            number: as the table counts, from 1.
            around: so many rows of the trace before and after it.

        Raises:
            NoRowError: there is no such row, or it is not about a row of the trace.
        """
        row = self.row(number)
        if "seq" not in row:
            raise NoRowError(say("sums", question=self.question))
        return opened(self.path, row, around=around)

    @takes
    def row(self, number: int) -> Mapping[str, Any]:
        """A row, by its number in the table.

        Raises:
            NoRowError: there is no such row.
        """
        if not self.rows:
            raise NoRowError(say("no-rows"))
        if not 1 <= number <= len(self.rows):
            last = len(self.rows)
            told = say("no-row-here", all=last + self.more, last=last, number=number)
            raise NoRowError(told if self.more else say("no-row", last=last, number=number))
        return self.rows[number - 1]

    def __str__(self) -> str:
        body = str(self.table) if self.rows else say("nothing", question=self.question)
        return "\n".join(filter(None, [body, self.tail]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{html.escape(say('nothing', question=self.question))}</p>"
        tail = f"<p>{html.escape(self.tail)}</p>" if self.tail else ""
        # Words of one cell stay on one line: there are ten rows, and they are compared.
        table = self.table._repr_html_().replace(
            'style="text-align:left"', 'style="text-align:left;white-space:nowrap"'
        )
        return f'<div style="overflow-x:auto">{table}</div>{tail}'


def opened(path: Path, row: Mapping[str, Any], *, around: int = 200) -> Any:
    """The stage round a row of a trace.

    Args:
        path: the trace.
        row: has `run` and `seq`.
        around: so many rows before and after it.
    """
    from workbench.views.opening import open_row

    return open_row(row, path, around=around, title=_short(row["run"]))


# -- rows in words


def _stall(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "run": _short(row["run"]),
        "link": str(row["link"] or row["connection"]),
        "since": f"{row['start_us'] / 1_000_000:.3f}",
        "for": f"{milliseconds(row['end_us'] - row['start_us']):,.1f}",
        "waiting": f"{row['messages_waiting']:,}",
        "evidence": str(row["evidence"]),
        "brake": str(row["brake"]),
        "row": str(row["seq"]),
    }


def _brake(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "brake": str(row["brake"]),
        "stalls": f"{row['stalls']:,}",
        "links": f"{row['links']:,}",
        "in-all": f"{row['lost_us'] / 1_000_000:,.2f}",
        "longest": f"{milliseconds(row['longest_us']):,.1f}",
    }


def _lost(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "run": _short(row["run"]),
        "link": str(row["link"]),
        "brake": str(row["brake"]),
        "lost": f"{row['lost_us'] / 1_000_000:,.3f}",
    }


_MAKERS = {"stalls": _stall, "brakes": _brake, "lost": _lost}


def _short(run: object) -> str:
    """A capture's run is its name and a hash of what is in it."""
    name, _, digest = str(run).rpartition("-")
    is_hash = len(digest) == 8 and all(each in "0123456789abcdef" for each in digest)
    return name if name and is_hash else str(run)


def _text(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


# -- recorded answers


@cache
def _recorded() -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotRecordedError(say("unreadable", file=RECORDED.name, why=error)) from None
    return found


def recorded(trace: str, question: str) -> Rows:
    """The recorded answer of a question about a trace.

    Raises:
        NotRecordedError: there is none.
    """
    found: dict[str, Rows] = _recorded()["answers"].get(trace, {})
    if question not in found:
        raise NotRecordedError(say("not-recorded", question=question, trace=trace))
    return found[question]
