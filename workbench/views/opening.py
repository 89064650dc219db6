"""From a row of an answer to the stage: the rows round it, with the state they begin with."""

from __future__ import annotations

import os
from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlparse

from workbench.languages import capital
from workbench.trace.cut import AROUND, MANY_LINES, Cut
from workbench.trace.files import TraceFileError
from workbench.trace.fold import Scope, State, line_scope, link_scope
from workbench.trace.given import takes
from workbench.trace.naming import SIDES, cut_row, plain, side_of
from workbench.trace.schema import LINK

from .scene import scene
from .stage_widget import StageWidget
from .stills import say

__all__ = ["open_row", "scene_of", "stage_of"]

Doc = dict[str, Any]


@takes
def open_row(
    row: Any, trace: Any, *, side: str | None = None, around: int = AROUND, title: str = ""
) -> StageWidget:
    """Open a row of an answer on the stage, one line in a notebook: `open_row(worst, trace)`.

    A row of `compare` is opened with both traces: `open_row(row, (left, right))`.

    Args:
        row: of any answer: a Spark Row, a pandas Series, a dict.
        trace: the trace that was asked: its path, or what `open_trace` gave, or its DataFrame; of
            `compare` a pair of such, the left one first.
        side: of `compare`, `left` or `right`; if None the one where the measure is larger.
        around: so many rows before and after it are shown.
        title: what to call it; the run's name if empty.

    Raises:
        TraceFileError: the row is none of an answer, or of another trace.
    """
    both = isinstance(trace, tuple | list)
    path = [path_of(one) for one in trace] if both else path_of(trace)
    cut = cut_row(row, path, around=around, side=side)
    return stage_of(cut, title=title, note=_other_side(row, side))


def _other_side(row: Any, side: str | None) -> str:
    """What is shown of a row of `compare`, and how the other side opens, if it has a place."""
    shown = side_of(row, side)
    if shown is None:
        return ""
    values = plain(row)
    other = next(one for one in SIDES if one != shown)
    note = say(f"opened.in-{shown}", measure=values["measure"])
    if values[f"{other}_seq"] is None:
        return note
    return say("opened.other", shown=note, code=f'side="{other}"')


def stage_of(cut: Cut, *, title: str = "", note: str = "") -> StageWidget:
    """The stage over a cut, at the row that the cut surrounds.

    Args:
        cut: the rows and what came before them.
        title: what to call it; the run's name if empty.
        note: what to say of it beside where it is from.
    """
    cut, words = told(cut, note)
    return StageWidget(cut, title=title or cut.run, note=words, link=_link(cut))


def told(cut: Cut, note: str = "") -> tuple[Cut, str]:
    """The cut as it is shown, and a sentence on what it is a part of."""
    whole, cut = cut, _spoken(cut)
    alone = cut is not whole
    cut, left_out = _near(cut)
    links = sum(line.group == LINK for line in left_out)
    notes = [note]
    if not whole.whole:
        first, last = whole.rows[0].seq, whole.rows[-1].seq
        rows = {"row": cut.seq, "first": first, "last": last, "all": cut.last_seq + 1}
        notes += [say("opened.at", **rows)]
        if first > cut.first_seq:
            notes += [say("opened.before")]
    if alone:
        notes += [say("opened.alone", connection=cut.row.connection)]
    if links:
        notes += [say("opened.left-out", n=links)]
    if links < len(left_out):
        notes += [say("opened.left-out-sessions", n=len(left_out) - links)]
    words = "; ".join(filter(None, notes))
    return cut, f"{capital(words)}." if words else ""


def scene_of(cut: Cut, *, title: str = "") -> tuple[Doc, int]:
    """The scene of a cut, and the place of the row that the cut surrounds; see `stage_of`."""
    cut, words = told(cut)
    return scene(cut, title=title or cut.run, note=words, link=_link(cut)), cut.place


def _link(cut: Cut) -> Scope | None:
    """The link whose line comes first."""
    return cut.link or (link_scope(cut.row) if cut.row.link_sender else None)


def _spoken(cut: Cut) -> Cut:
    """Without the other connections, if there are several protocols: a picture draws one."""
    about = cut.row.connection
    if about is None or len({row.protocol for row in cut.rows if row.is_frame}) <= 1:
        return cut
    mine = {about, None}
    kept = [place for place, row in enumerate(cut.rows) if row.connection in mine]
    lines = [line for line in cut.earlier.lines if line.connection == about]
    return replace(
        cut,
        rows=[cut.rows[place] for place in kept],
        explanations=[cut.explanations[place] for place in kept],
        start=_part(cut.start, lambda scope: scope.connection in mine, mine),
        earlier=replace(
            cut.earlier,
            lines=lines,
            ends={end: name for end, name in cut.earlier.ends.items() if end[0] == about},
            flying=[row for row in cut.earlier.flying if row.connection == about],
        ),
    )


def _part(start: State, near: Callable[[Scope], bool], connections: Set[str | None]) -> State:
    """What everybody knew of what is near, and what is on its way on these connections."""
    return replace(
        start,
        ledgers={key: told for key, told in start.ledgers.items() if near(key[1])},
        brakes={key: brake for key, brake in start.brakes.items() if near(key[1])},
        in_flight={
            number: frame
            for number, frame in start.in_flight.items()
            if frame.connection in connections
        },
    )


def _near(cut: Cut) -> tuple[Cut, list[Scope]]:
    """Without the lines that no row here is about, if they are very many; and those lines.

    A page that lists thousands of them is slow and of no use.
    """
    if len(cut.earlier.lines) <= MANY_LINES:
        return cut, []
    here = {*map(line_scope, cut.rows), cut.link}
    connections = {row.connection for row in cut.rows} | {cut.link and cut.link.connection, None}

    def near(scope: Scope) -> bool:
        return scope in here if scope.group == LINK else scope.connection in connections

    lines = tuple(line for line in cut.earlier.lines if line in here)
    ends = {end: name for end, name in cut.earlier.ends.items() if end[0] in connections}
    earlier = replace(cut.earlier, lines=lines, ends=ends)
    left_out = [line for line in cut.earlier.lines if line not in here]
    return replace(cut, start=_part(cut.start, near, connections), earlier=earlier), left_out


def path_of(trace: Any) -> str | os.PathLike[str]:
    """Where a trace lies.

    Raises:
        TraceFileError: it is no trace, or one that is not on this machine.
    """
    if isinstance(trace, str | os.PathLike):
        return trace
    frame = getattr(trace, "frame", trace)
    if not hasattr(frame, "inputFiles"):
        raise TraceFileError(say("opened.no-trace", kind=type(trace).__name__))
    files = [urlparse(name) for name in frame.inputFiles()]
    elsewhere = [file.geturl() for file in files if file.scheme not in ("", "file")]
    if elsewhere:
        raise TraceFileError(say("opened.elsewhere", where=elsewhere[0]))
    if not files:
        raise TraceFileError(say("opened.no-file"))
    paths = [unquote(file.path) for file in files]
    return paths[0] if len(paths) == 1 else os.path.commonpath(paths)
