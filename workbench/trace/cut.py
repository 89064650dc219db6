"""A few rows out of a trace of any size, with what everybody knew just before the first of them.

Row groups that cannot hold the rows are not read: their statistics of `run` and `seq` tell. The
state before the rows is found by column (`before`), from a kept copy of an earlier one where
there is one; a short stretch right before the rows is told row by row, so that the words about
frames that were then in flight are whole. Of very many links or channels only the connections of
the rows are followed: a picture has no room for the others.
"""

from __future__ import annotations

import copy
import os
from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .explain import Explainer, Explanation
from .files import TraceFileError, trace_files
from .fold import ABOUT, Fold, Scope, State, drawn_lines, line_scope, link_scope
from .gates import GATE_EVENTS, Gates
from .schema import LINK, RECEIVED, SENT, Row, few

if TYPE_CHECKING:
    from .before import Before
    from .pieces import Pieces

__all__ = [
    "AROUND", "MANY_LINES", "Cut", "Earlier", "Following", "StepError", "cut", "cut_rows",
    "pieces_of", "run_of",
]  # fmt: skip

AROUND = 200
"""Rows before and after the one that is opened."""
WARM_ROWS = 1_000
"""Rows before those that are told row by row. What had been in flight for longer than so many rows
is told without knowing whether it was an answer."""
FLYING_ROWS = 200
"""Frames in flight of which the row that sent them is looked up, to show what is in them."""
KEEP_EVERY = 1_000_000
"""A copy of the fold is kept every so many rows: 10 million rows take some seconds to fold, and a
person opens one row of a trace after the other."""
TRACES_KEPT = 4
MANY_LINES = 60
"""Of a run with more links, or channels and sessions without any, than these only the connections
are followed that the rows are of: to fold what thousands of others knew takes seconds, and is not
shown."""


class StepError(TraceFileError):
    """The trace is good, and has no such run or row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What a slice shows of the rows before it, beside what everybody knew.

    Attributes:
        ends: by connection and peer, the vantage that logs there.
        lines: links seen before the slice, and sessions without any (`drawn_lines`), in order of
            appearance.
        sources: by vantage and scope, where the counters come from (`ledger_source`).
        flying: the rows with which frames in flight were sent, as far as they are at hand.
        blocking: the rows that began what blocks a sender still and no counter tells: an alarm,
            credit that is withheld for want of confirms, a full transport.
        gates: which of those frames a hand holds; None if none.
    """

    ends: Mapping[tuple[str | None, str], str] = field(default_factory=dict)
    lines: Sequence[Scope] = ()
    sources: Mapping[tuple[str, Scope], str] = field(default_factory=dict)
    flying: Sequence[Row] = ()
    blocking: Sequence[Row] = ()
    gates: Gates | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Rows round one row of a run, ready to be shown.

    Attributes:
        path: the trace.
        run: the run.
        seq: the row they surround.
        rows: in order; that row is among them.
        start: the state just before the first of them, as a replay from the beginning gives it; of
            more than `MANY_LINES`, without the connections that no row here is of.
        earlier: what else is shown of the rows before.
        explanations: one for each row, as a replay gives them.
        first_seq: of the run's first row.
        last_seq: of the run's last row.
        link: the link that they are shown for; that of the row if None.
    """

    path: str
    run: str
    seq: int
    rows: list[Row]
    start: State
    earlier: Earlier
    explanations: list[Explanation]
    first_seq: int
    last_seq: int
    link: Scope | None = None

    @property
    def row(self) -> Row:
        """The row they surround."""
        return self.rows[self.place]

    @property
    def place(self) -> int:
        """Where that row is among the rows."""
        return next(place for place, row in enumerate(self.rows) if row.seq == self.seq)

    @property
    def whole(self) -> bool:
        """Whether the rows are all of the run."""
        return self.rows[0].seq == self.first_seq and self.rows[-1].seq == self.last_seq


def cut(
    path: str | os.PathLike[str],
    seq: int,
    run: str | None = None,
    *,
    around: int = AROUND,
    upto: int | None = None,
    about: Mapping[str, Any] | None = None,
) -> Cut:
    """The rows round one row of a trace, or from one to another.

    Args:
        path: a Parquet file, or a folder of them.
        seq: the row.
        run: which run; may be left out where there is one.
        around: so many rows before and after it, where there are.
        upto: the last of the rows from `seq` on that are wanted instead; either may be lost.
        about: what names the link that they are shown for, by `ABOUT`; the row may be another's.

    Raises:
        TraceFileError: it is no trace.
        StepError: the run is not in it, or not said where there are several; it has no such row.
    """
    pieces, kept = _opened(path)
    name = run_of(path, run)
    first_seq, last_seq = pieces.bounds(name)
    if not first_seq <= seq <= last_seq:
        raise StepError(
            f"{path}: row {seq} is not in this trace; legal: {first_seq} to {last_seq} (run {name})"
        )
    around = max(0, around)
    first = max(first_seq, seq - around) if upto is None else seq
    last = min(last_seq, seq + around) if upto is None else upto
    warm = max(first_seq, first - WARM_ROWS)
    rows = pieces.rows(name, warm, last + 1)
    if upto is not None:
        seq = next((row.seq for row in rows if row.seq >= first), seq)
    if all(row.seq != seq for row in rows):
        raise StepError(f"{path}: row {seq} is missing in run {name}: rows were lost there")
    lines = pieces.lines(name, first)
    links = [line for line in lines if line.group == LINK]
    link = _named(about or {}, [*links, *filter(None, map(link_scope, rows))])
    near = None
    if len(lines) > MANY_LINES:
        near = frozenset({row.connection for row in rows} | {link and link.connection, None})
    folding = _folded(pieces, kept.setdefault((name, near), []), name, warm, near)
    explainer = Explainer(folding.state(), folding.memory(links))
    before = [row for row in rows if row.seq < first]
    for row in before:
        explainer.explain(row)
        folding.note(row)
    start = explainer.state()
    shown = rows[len(before) :]
    earlier = _earlier(
        folding, lines, _flying(pieces, name, start, before),
        _gates(pieces, folding, name, first, near),
    )  # fmt: skip
    return Cut(
        path=os.fspath(path), run=name, seq=seq, rows=shown, start=start, earlier=earlier,
        explanations=[explainer.explain(row) for row in shown],
        first_seq=first_seq, last_seq=last_seq, link=link,
    )  # fmt: skip


def cut_rows(rows: Sequence[Row], seq: int, *, first: int = 0, end: int | None = None) -> Cut:
    """Some of the rows of a run that is at hand, with what came before them.

    Args:
        rows: of one run, in order of `seq`.
        seq: the row that they are shown for.
        first: place of the first of them.
        end: place after the last of them; all that follow if None.

    Raises:
        StepError: that row is not among them.
    """
    following = Following()
    for place, row in enumerate(rows[:end]):
        following.take(row)
        if place < first:
            following.drop()
    return replace(following.cut(seq), last_seq=rows[-1].seq)


class Following:
    """Takes the rows of a run that goes on; a cut holds those that were not dropped."""

    def __init__(self) -> None:
        from .before import Before

        self._explainer = Explainer()
        self._rows: deque[tuple[Row, Explanation]] = deque()
        self._run, self._first_seq = "", 0
        # What is so before the first row that is kept.
        self._folding, self._before = Fold(), Before()
        self._lines: dict[Scope, None] = {}
        self._gates: Gates | None = None
        self._sent: dict[int | None, Row] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, row: Row) -> None:
        """Take in the next row."""
        if not self._run:
            self._run, self._first_seq = row.run, row.seq
        self._rows.append((row, self._explainer.explain(row)))

    def drop(self) -> None:
        """Let the oldest row go: from now on it stands in the state before the others."""
        row, _ = self._rows.popleft()
        self._folding.apply(row)
        self._before.note(row)
        line = line_scope(row)
        if line is not None:
            self._lines.setdefault(line)
        if row.event == SENT:
            self._sent[row.frame_id] = row
        elif row.event == RECEIVED:
            self._sent.pop(row.frame_id, None)
        if self._gates is None and row.event in GATE_EVENTS:
            self._gates = Gates(self._folding.in_flight.values())
        if self._gates is not None:
            self._gates.apply(row)

    def cut(self, seq: int | None = None, *, name: str = "") -> Cut:
        """The rows that are kept.

        Args:
            seq: the row that they are shown for; the last one if None.
            name: what holds the run; its own name if empty.

        Raises:
            StepError: that row is not among them.
        """
        rows = [row for row, _ in self._rows]
        last = rows[-1].seq if rows else -1
        if seq is not None and all(row.seq != seq for row in rows):
            legal = f"{rows[0].seq} to {last}" if rows else "none, there are no rows"
            raise StepError(f"row {seq} is not among these rows; legal: {legal}")
        start = self._folding.state()
        flying = [self._sent[number] for number in start.in_flight]
        earlier = _earlier(
            self._before, drawn_lines(self._lines), flying, copy.deepcopy(self._gates)
        )
        return Cut(
            path=name, run=self._run, seq=last if seq is None else seq, rows=rows, start=start,
            earlier=earlier, explanations=[told for _, told in self._rows],
            first_seq=self._first_seq, last_seq=last,
        )  # fmt: skip


def pieces_of(path: str | os.PathLike[str]) -> Pieces:
    """The trace as pieces that can be read alone.

    Raises:
        TraceFileError: it is no trace.
    """
    return _opened(path)[0]


def run_of(path: str | os.PathLike[str], run: str | None) -> str:
    """The run that is meant: the one that is named, or the only one.

    Raises:
        StepError: there is no such run, or there are several and none is named.
    """
    pieces = pieces_of(path)
    if run is not None and pieces.bounds(run) != (0, -1):
        return run
    names = pieces.runs()
    if run is not None:
        raise StepError(f"{path}: no run {run!r} in it; there are: {few(names)}")
    if len(names) > 1:
        raise StepError(f"{path}: holds {len(names):,} runs; choose one with --run: {few(names)}")
    return names[0]


# -- what is before -------------------------------------------------------------------------------


def _named(about: Mapping[str, Any], links: Sequence[Scope]) -> Scope | None:
    """The link with these values, if they name one."""
    if about.get("link") is None:
        return None
    named = [
        one
        for one in dict.fromkeys(links)
        if all(about.get(name) in (None, getattr(one, name)) for name in ABOUT)
    ]
    return named[0] if len(named) == 1 else None


def _folded(
    pieces: Pieces, kept: _Kept, run: str, upto: int, near: Set[str | None] | None
) -> Before:
    """The fold of the rows before `upto`; of long ones copies are kept on the way."""
    from .before import COLUMNS, Before

    folding = Before()
    for seq, there in kept:
        if folding.seq < seq < upto:
            folding = copy.deepcopy(there)
    last_kept = folding.seq
    for batch in pieces.chosen(run, folding.seq + 1, upto, COLUMNS, near):
        folding.take(batch)
        if folding.seq - last_kept >= KEEP_EVERY:
            last_kept = folding.seq
            kept.append((last_kept, copy.deepcopy(folding)))
    return folding


def _earlier(
    before: Before, lines: Sequence[Scope], flying: Sequence[Row], gates: Gates | None
) -> Earlier:
    return Earlier(
        ends=dict(before.ends), lines=tuple(lines), sources=dict(before.sources),
        flying=flying, blocking=tuple(before.blocking.values()), gates=gates,
    )  # fmt: skip


def _flying(pieces: Pieces, run: str, start: State, before: Sequence[Row]) -> list[Row]:
    """The rows with which frames in flight were sent: the latest ones, and those at hand."""
    at_hand = {row.seq: row for row in before}
    seqs = [flying.seq for flying in start.in_flight.values()][-FLYING_ROWS:]
    missing = [seq for seq in seqs if seq not in at_hand]
    at_hand |= {row.seq: row for row in pieces.rows_at(run, missing)}
    return [at_hand[seq] for seq in seqs if seq in at_hand]


def _gates(
    pieces: Pieces, folding: Before, run: str, first: int, near: Set[str | None] | None
) -> Gates | None:
    """What hands have held and not let go, from the first act of that kind on."""
    if folding.gate_seq is None or folding.gate_seq >= first:
        return None
    before = _folded(pieces, [], run, folding.gate_seq, near)
    gates = Gates(before.state().in_flight.values())
    for row in pieces.narrow_rows(run, folding.gate_seq, first, near):
        gates.apply(row)
    return gates


# -- what is kept ---------------------------------------------------------------------------------

_Signature = tuple[tuple[str, int, int], ...]
_Kept = list[tuple[int, "Before"]]
_KeptOf = dict[tuple[str, frozenset[str | None] | None], _Kept]


def _signature(path: str | os.PathLike[str]) -> _Signature:
    """What changes when a file of the trace does."""
    found = []
    for file in trace_files(path):
        try:
            stat = file.stat()
        except FileNotFoundError:
            raise TraceFileError(f"{file}: was deleted while it was read") from None
        found.append((str(file), stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def _opened(path: str | os.PathLike[str]) -> tuple[Pieces, _KeptOf]:
    return _kept(os.fspath(path), _signature(path))


@lru_cache(maxsize=TRACES_KEPT)
def _kept(path: str, signature: _Signature) -> tuple[Pieces, _KeptOf]:
    from .pieces import Pieces

    return Pieces(path, [file for file, _size, _time in signature]), {}
