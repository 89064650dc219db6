"""The stepper in a notebook: an anywidget that hosts stepper.js."""

from __future__ import annotations

import os
from typing import Any

import anywidget
import traitlets

from workbench.trace.fold import State, fold
from workbench.trace.schema import Row
from workbench.trace.words import visible

from .looked import looked
from .static_html import asset
from .stepper_doc import build
from .stills import Still, text_still

# More rows than this are shown as a slice round the place of interest.
MOST_ROWS = 20_000


class StepperWidget(Still, anywidget.AnyWidget):
    """Steps through a StepperDoc in the browser; the kernel is not asked for a step.

    Attributes:
        doc: the StepperDoc; setting another shows another run.
        cursor: the step shown, 0 to the number of rows. Follows the browser, and moves it.
        selected_link: number of the link whose ledgers are shown.
    """

    _esm = asset("stepper.js")
    _css = asset("stepper.css")

    doc = traitlets.Dict().tag(sync=True)
    cursor = traitlets.Int(0, help="step shown, 0 is the start").tag(sync=True)
    selected_link = traitlets.Int(0, help="place of the link in doc['links']").tag(sync=True)

    def __init__(self, doc: dict[str, Any], *, cursor: int = 0, link: int | None = None) -> None:
        super().__init__(
            doc=doc, cursor=cursor, selected_link=doc["link"] if link is None else link
        )
        self._changing = False  # to another document
        self.observe(self._moved, names="cursor")

    def _moved(self, change: Any) -> None:
        if not self._changing:
            self._note(change["old"], change["new"])

    def _note(self, *steps: int) -> None:
        for step in steps:
            looked.add(self.doc["run"], int(self.doc["first_seq"]) + step - 1)

    @property
    def seq(self) -> int:
        """`seq` of the row at the cursor; one less than the first row's at the start."""
        return int(self.doc["first_seq"]) + self.cursor - 1

    def show(self, doc: dict[str, Any], cursor: int) -> None:
        """Show another document at a step, in one message to the browser."""
        link = self.selected_link if self.selected_link < len(doc["links"]) else doc["link"]
        self._note(self.cursor)
        self._changing = True
        with self.hold_sync():
            self.selected_link = link
            self.cursor = cursor
            self.doc = doc
        self._changing = False

    def still(self) -> str:
        """What is shown now, as text."""
        return text_still(self.doc, self.cursor, self.selected_link)

    def _still(self) -> str:
        return self.still()

    def __repr__(self) -> str:
        return (
            f"StepperWidget({self.doc['title']!r}, step {self.cursor} of {len(self.doc['rows'])})"
        )


def stepper(
    trace: Any,
    *,
    at: int | None = None,
    title: str = "",
    note: str = "",
    most: int = MOST_ROWS,
    windows: bool = False,
) -> StepperWidget:
    """A stepper over a run, over rows, or over a trace file.

    Args:
        trace: a run (anything with `rows`), rows in order of `seq`, or the path of a trace file.
        at: `seq` of the row to begin at; a run begins where its set-up ends, rows at the start.
            The link that this row is about is the one whose ledgers are shown.
        title: what to call it; a run is called by its scenario's title.
        note: one sentence under the title.
        most: at most so many rows are shown, round the row to begin at; the note says so.
        windows: show session windows and further counters from the beginning.
    """
    rows, set_up, own_title, own_note = _opened(trace)
    begin = at if at is not None else set_up
    part, start, cut = window(rows, begin, most)
    notes = [text for text in (note or own_note, cut) if text]
    doc = build(
        part,
        start=start,
        title=title or own_title,
        note="; ".join(notes),
        begin=begin if set_up is None else set_up,
    )
    if windows:
        doc["more_open"] = True
    cursor = 0
    if part and begin is not None:
        cursor = max(0, min(len(part), begin - part[0].seq + 1))
    link = None if at is None or not cursor else link_of(doc, part[cursor - 1])
    return StepperWidget(doc, cursor=cursor, link=link)


def link_of(doc: dict[str, Any], row: Row) -> int | None:
    """Number of the link that a row is about; None if it is about none, or two have its name."""
    if row.link is None:
        return None
    place = (visible(row.link), row.connection)
    found = [
        number
        for number, link in enumerate(doc["links"])
        if (link["name"], link["connection"]) == place
    ]
    return found[0] if len(found) == 1 else None


def _opened(trace: Any) -> tuple[list[Row], int | None, str, str]:
    """(rows, row to begin at, title, note) of whatever holds a trace."""
    if isinstance(trace, str | os.PathLike):
        from workbench.trace.files import read

        return list(read(trace)), None, os.path.basename(os.fspath(trace)), ""
    if hasattr(trace, "rows"):
        scenario = getattr(trace, "scenario", None)
        title = getattr(scenario, "title", "") or getattr(trace, "name", "")
        return (
            list(trace.rows),
            getattr(trace, "start_seq", None),
            title,
            getattr(trace, "note", ""),
        )
    return list(trace), None, "", ""


def window(rows: list[Row], around: int | None, most: int) -> tuple[list[Row], State | None, str]:
    """At most `most` rows round a row, the state before them, and a sentence if some are left out.

    Args:
        rows: all rows.
        around: `seq` of the row that must be among them; the first if None.
        most: how many rows.
    """
    if len(rows) <= most:
        return rows, None, ""
    place = max(0, min(len(rows) - 1, (around or rows[0].seq) - rows[0].seq))
    first = max(0, min(place - most // 2, len(rows) - most))
    part = rows[first : first + most]
    start = fold(rows[:first]) if first else None
    return part, start, f"rows {part[0].seq:,} to {part[-1].seq:,} of {len(rows):,}"
