"""A trace on disk as pieces that can be read alone: row groups, and what their footers tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .before import TEXTS
from .files import EMPTY, TraceFileError, batches, from_table, open_file
from .fold import ABOUT, Scope, drawn_lines
from .schema import COLUMN_NAMES, FRAME_EVENTS, LINK, SESSION, Row, fitted

__all__ = ["Pieces"]

BATCH_ROWS = 1 << 17
_GATE_COLUMNS = (
    "run", "seq", "t_us", "vantage", "event", "frame_id", "from_peer", "connection",
    "frame.extra_json", "details",
)  # fmt: skip
_FRAMES = pa.array(FRAME_EVENTS)


@dataclass(frozen=True, slots=True)
class _Piece:
    """One row group. None: the footer does not tell."""

    file: Path
    group: int
    rows: int
    runs: tuple[str, str] | None
    seqs: tuple[int, int] | None

    def may_have(self, run: str, first: int, end: int) -> bool:
        """Whether rows of that run from `first` to before `end` may be in it."""
        if self.runs is not None and not self.runs[0] <= run <= self.runs[1]:
            return False
        return self.seqs is None or (self.seqs[0] < end and self.seqs[1] >= first)

    def is_all(self, run: str) -> bool:
        """Whether it is sure to hold rows of that run only."""
        return self.runs == (run, run)


class Pieces:
    """The row groups of a trace's files, in order.

    Args:
        path: what the trace is called in errors.
        files: its files.

    Raises:
        TraceFileError: one is no trace, or there is no row in any.
    """

    def __init__(self, path: str, files: Sequence[str]) -> None:
        self.path = path
        self.pieces: list[_Piece] = []
        for file in map(Path, files):
            with open_file(file) as parquet:
                self.pieces += _pieces(file, parquet.metadata)
        if not self.pieces:
            raise TraceFileError(f"{path}: {EMPTY}")
        self._bounds: dict[str, tuple[int, int]] = {}
        self._lines: dict[str, tuple[int, dict[Scope, int]]] = {}
        self._there: dict[_Piece, frozenset[str | None]] = {}

    def bounds(self, run: str) -> tuple[int, int]:
        """`seq` of the run's first and last row; (0, -1) if there is none."""
        if run not in self._bounds:
            pieces = [piece for piece in self.pieces if piece.may_have(run, 0, 1 << 62)]
            ends = [seq for piece in pieces for seq in _ends(piece, run)]
            self._bounds[run] = (min(ends), max(ends)) if ends else (0, -1)
        return self._bounds[run]

    def runs(self) -> list[str]:
        """The names of all runs, in order of appearance."""
        found: dict[str, None] = {}
        for piece in self.pieces:
            if piece.runs is not None and piece.runs[0] == piece.runs[1]:
                found[piece.runs[0]] = None
            else:
                for batch in _read([piece], ["run"]):
                    found |= dict.fromkeys(pc.unique(batch.column(0)).to_pylist())
        return list(found)

    def lines(self, run: str, end: int) -> list[Scope]:
        """What has a line of its own (`drawn_lines`) before `end`, in order of appearance.

        Raises:
            TraceFileError: a file is damaged or gone, or the rows are not in order.
        """
        read, found = self._lines.get(run, (0, {}))
        for batch in self.chosen(run, read, end, ("run", "seq", *ABOUT)):
            told = (pc.is_valid(batch.column(name)) for name in ("session", "link"))
            rows = batch.filter(pc.or_(*told))
            texts = {name: _texts(rows.column(name)) for name in (*ABOUT, "seq")}
            first = pa.table(texts).group_by(list(ABOUT), use_threads=False)
            for row in first.aggregate([("seq", "min")]).sort_by("seq_min").to_pylist():
                seq = row.pop("seq_min")
                group = SESSION if row["link"] is None else LINK
                found.setdefault(Scope(group, **row), seq)
        self._lines[run] = max(read, end), found
        return drawn_lines(line for line, seq in found.items() if seq < end)

    def rows(self, run: str, first: int, end: int) -> list[Row]:
        """The run's rows from `first` to before `end`, whole."""
        return [
            row for batch in self.chosen(run, first, end, COLUMN_NAMES) for row in from_table(batch)
        ]

    def rows_at(self, run: str, seqs: Sequence[int]) -> list[Row]:
        """Those of the run's rows that have these numbers, whole; a row group is read once."""
        if not seqs:
            return []
        found = self.chosen(run, min(seqs), max(seqs) + 1, COLUMN_NAMES, only=seqs)
        return [row for batch in found for row in from_table(batch)]

    def narrow_rows(
        self, run: str, first: int, end: int, near: Set[str | None] | None = None
    ) -> Iterator[Row]:
        """Those of `chosen` with the few columns that tell of frames held and let go."""
        for batch in self.chosen(run, first, end, _GATE_COLUMNS, near):
            yield from from_table(fitted(batch))

    def first(self, run: str, about: Mapping[str, object], since_us: int) -> int | None:
        """`seq` of the run's first row with these values, not before a time; None if none."""
        for batch in self.chosen(run, 0, 1 << 62, ["run", "seq", "t_us", *about]):
            mask = batch.column("t_us").to_numpy() >= since_us
            for name, value in about.items():
                same = pc.fill_null(pc.equal(batch.column(name), value), False)
                mask &= same.to_numpy(zero_copy_only=False)
            places = np.flatnonzero(mask)
            if len(places):
                return int(batch.column("seq")[int(places[0])].as_py())
        return None

    def chosen(
        self,
        run: str,
        first: int,
        end: int,
        columns: Sequence[str],
        near: Set[str | None] | None = None,
        only: Sequence[int] | None = None,
    ) -> Iterator[Any]:
        """The run's rows from `first` to before `end` with these columns, in order.

        Args:
            run: the run.
            first: the first row.
            end: the row after the last.
            columns: with `connection` and `event`, if only some connections are `near`.
            near: frames of these connections only, and all that is no frame; None: all rows.
            only: rows with these numbers; None: all. Groups that have none of them are not read.

        Raises:
            TraceFileError: a file is damaged or gone, or the rows are not in order.
        """
        if first >= end:
            return
        last = first - 1
        chosen = [
            piece
            for piece in self.pieces
            if piece.may_have(run, first, end)
            and (only is None or any(piece.may_have(run, seq, seq + 1) for seq in only))
            and (near is None or not near.isdisjoint(self._connections(piece)))
        ]
        for batch in _read(chosen, columns):
            mask = _of_run(batch.column("run"), run)
            seqs = batch.column("seq").to_numpy()
            mask &= (seqs >= first) & (seqs < end)
            if only is not None:
                mask &= np.isin(seqs, only)
            places = np.flatnonzero(mask)
            if not len(places):
                if len(seqs) and seqs[0] >= end and chosen[-1].is_all(run):
                    return
                continue
            low, high = int(places[0]), int(places[-1]) + 1
            part = batch.slice(low, high - low)
            if high - low > len(places):
                part = part.filter(pa.array(mask[low:high]))
            seqs = part.column("seq").to_numpy()
            if int(seqs[0]) <= last or (len(seqs) > 1 and int(np.diff(seqs).min()) < 1):
                raise TraceFileError(f"{self.path}: run {run}: rows are out of order of seq")
            last = int(seqs[-1])
            yield part if near is None else part.filter(_are_near(part, near))

    def _connections(self, piece: _Piece) -> frozenset[str | None]:
        """Of which connections frames are in it; None among them: there is what is no frame."""
        if piece not in self._there:
            found: set[str | None] = set()
            for batch in _read([piece], ["connection", "event"]):
                frame = _are_frames(batch)
                names = batch.column("connection").filter(frame)
                found |= set(pc.unique(names).to_pylist())
                if pc.any(pc.invert(frame)).as_py():
                    found.add(None)
            self._there[piece] = frozenset(found)
        return self._there[piece]


def _ends(piece: _Piece, run: str) -> Sequence[int]:
    """Numbers of the run's rows in it, the first and the last among them."""
    if piece.seqs is not None and piece.is_all(run):
        return piece.seqs
    numbers = [
        batch.column(1).to_numpy()[_of_run(batch.column(0), run)].tolist()
        for batch in _read([piece], ["run", "seq"])
    ]
    return [seq for its in numbers for seq in its[:1] + its[-1:]]


def _pieces(file: Path, metadata: Any) -> Iterator[_Piece]:
    places = {metadata.schema.column(n).path: n for n in range(len(metadata.schema))}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if not group.num_rows:
            continue
        runs, seqs = (_range(group.column(places[name]).statistics) for name in ("run", "seq"))
        yield _Piece(file, number, group.num_rows, runs, seqs)


def _range(statistics: Any) -> Any:
    if statistics is None or not statistics.has_min_max:
        return None
    return statistics.min, statistics.max


def _are_frames(batch: Any) -> Any:
    return pc.is_in(_texts(batch.column("event")), _FRAMES)


def _are_near(batch: Any, near: Set[str | None]) -> Any:
    """Which rows are of these connections, or no frame."""
    names = pa.array(list(near), pa.string())
    there = pc.is_in(_texts(batch.column("connection")), names)
    return pc.or_(there, pc.invert(_are_frames(batch)))


def _texts(column: Any) -> Any:
    """A column of words as texts."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _of_run(column: Any, run: str) -> Any:
    """Which rows are of that run."""
    if pa.types.is_dictionary(column.type):
        return np.array([name == run for name in column.dictionary.to_pylist()] or [False], bool)[
            column.indices.to_numpy()
        ]
    return pc.equal(column, run).to_numpy(zero_copy_only=False)


def _read(pieces: Sequence[_Piece], columns: Sequence[str]) -> Iterator[Any]:
    """Record batches of the pieces, file by file."""
    by_file: dict[Path, list[int]] = {}
    for piece in pieces:
        by_file.setdefault(piece.file, []).append(piece.group)
    for file, groups in by_file.items():
        yield from batches(file, columns, size=BATCH_ROWS, groups=groups, words=("run", *TEXTS))
