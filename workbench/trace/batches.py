"""A batch of rows by column, numbered by what they are about: where to find the last of each kind.

Nothing is made of a row but of the few that are asked for. Two numbers are given to each row: its
*place*, whose ledgers it may tell (`Place`), and its *manner*, what kind of row it is (`Manner`).
Of both there are few, so a question about them is asked once and not once per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .files import from_table
from .fold import Scope, link_scope, observed_end, scope_of, session_scope
from .schema import BROKER, CLIENT, COLUMN_NAMES, LEDGER_GROUPS, OBSERVED, STRUCT_COLUMNS, Row

__all__ = ["COLUMNS", "TEXTS", "Batch", "Manner", "Place", "dense", "firsts", "lasts"]

COLUMNS: tuple[str, ...] = (
    "run", "seq", "t_us", "vantage", "event", "frame_id", "from_peer", "connection", "session",
    "link", "link_sender", "attach_no", "consumer", "queue", "kind", "ledger", "ledger_source",
    "unknown", "brake", "frame.role", "frame.handle", "frame.echo", "frame.more", "frame.aborted",
    "frame.next_outgoing_id", "frame.initial_delivery_count", "frame.protocol_id",
)  # fmt: skip
"""The columns that a fold reads; the rest of a row is only shown."""

TEXTS: tuple[str, ...] = (
    "vantage", "event", "from_peer", "connection", "link", "link_sender", "consumer", "queue",
    "kind", "ledger_source", "brake",
)  # fmt: skip
"""Columns of few words: read as numbers of words they cost a tenth."""

_PLACE = (
    "vantage", "connection", "session", "link", "link_sender", "attach_no", "consumer", "queue",
    "ledger_source",
)  # fmt: skip
_MANNER = ("event", "kind", "from_peer", "role", "on_link", "echo", "more", "aborted")
_END = {None: 1, CLIENT: 2, BROKER: 3}  # whose session counters an observed row without link has
_WIDEST = 1 << 62


class Place(NamedTuple):
    """Whose ledgers a row may tell.

    Attributes:
        both_ends: its session, whoever's end of it.
        keys: by group of ledgers, vantage and scope.
    """

    vantage: str
    connection: str | None
    source: str | None
    link: Scope | None
    both_ends: Scope | None
    keys: dict[str, tuple[str, Scope]]


class Manner(NamedTuple):
    """What kind of row it is; `on_link` is true of a flow that names a link."""

    event: str
    kind: str | None
    from_peer: str | None
    role: str | None
    on_link: bool
    echo: bool
    more: bool
    aborted: bool


class Batch:
    """Rows of one run, by column.

    Args:
        rows: a record batch with `COLUMNS`.

    Attributes:
        count: how many rows.
    """

    def __init__(self, rows: Any) -> None:
        self.count: int = rows.num_rows
        self._rows = rows
        self._frame = {
            name: pc.struct_field(rows.column("frame"), name)
            for name in ("role", "handle", "echo", "more", "aborted")
        }
        self._lost = _lost(rows.column("unknown"))
        self._number_manners()
        self._number_places()

    def _number_manners(self) -> None:
        columns = {name: self._rows.column(name) for name in _MANNER[:3]}
        columns |= {"role": self._frame["role"], "on_link": pc.is_valid(self._frame["handle"])}
        columns |= {
            name: pc.fill_null(self._frame[name], False) for name in ("echo", "more", "aborted")
        }
        self._manner, size = numbered([columns[name] for name in _MANNER])
        places = pa.array(firsts(self._manner, np.ones(self.count, bool), size))
        cells = [columns[name].take(places).to_pylist() for name in _MANNER]
        self._manners: list[Manner] = [Manner(*each) for each in zip(*cells, strict=True)]

    def _number_places(self) -> None:
        ends = [_END[_end(manner)] if manner.event == OBSERVED else 0 for manner in self._manners]
        columns = [self._rows.column(name) for name in _PLACE]
        self._place, size = numbered([*columns, pa.array(np.array(ends)[self._manner])])
        at = firsts(self._place, np.ones(self.count, bool), size)
        self._places = [_place(row) for row in self._shapes(at)]

    def _shapes(self, at: Any) -> Iterator[Row]:
        """Rows at these places as far as a place goes."""
        cells = [self._rows.column(name).take(pa.array(at)).to_pylist() for name in _PLACE]
        for number, each in zip(at, zip(*cells, strict=True), strict=True):
            manner = self._manners[self._manner[number]]
            yield Row(
                run="", seq=0, t_us=0, protocol="", event=manner.event, kind=manner.kind,
                from_peer=manner.from_peer, frame={"role": manner.role},
                **dict(zip(_PLACE, each, strict=True)),
            )  # fmt: skip

    # -- questions ------------------------------------------------------------------------------

    def seq(self, at: int) -> int:
        """`seq` of the row at a place in the batch."""
        return int(self._rows.column("seq")[int(at)].as_py())

    def manner(self, chosen: Callable[[Manner], bool]) -> Any:
        """Which rows are of a manner that is chosen: an array of bool."""
        return np.array([chosen(one) for one in self._manners], bool)[self._manner]

    def manner_of(self, at: int) -> Manner:
        """The manner of one row."""
        return self._manners[int(self._manner[at])]

    def told(self, name: str) -> tuple[Any, Any]:
        """A column, and which rows have a value in it: None if none has."""
        column = self._rows.column(name)
        if column.null_count == self.count:
            return column, None
        return column, pc.is_valid(column).to_numpy(zero_copy_only=False)

    def counter(self, name: str) -> tuple[Any, Any, frozenset[int]]:
        """A counter's values, which rows tell it (None if none), and which say it is unknown."""
        values = pc.struct_field(self._rows.column("ledger"), name)
        lost = self._lost.get(name, frozenset())
        if values.null_count == self.count and not lost:
            return values, None, lost
        mask = pc.is_valid(values).to_numpy(zero_copy_only=False)
        if lost:
            mask = mask.copy()
            mask[list(lost)] = True
        return values, mask, lost

    def lasts(self, mask: Any) -> Iterator[tuple[Place, int, int]]:
        """For each place of rows in the mask: it, and where the first and the last of them is."""
        size = len(self._places)
        first, last = firsts(self._place, mask, size), lasts(self._place, mask, size)
        for number in np.flatnonzero(last >= 0).tolist():
            yield self._places[number], int(first[number]), int(last[number])

    def rows(self, at: Any) -> list[Row]:
        """The rows at these places in the batch, as far as the columns go."""
        if not len(at):
            return []
        return from_table(completed(self._rows.take(pa.array(at))))


def _place(row: Row) -> Place:
    keys = {group: (row.vantage, scope_of(row, group)) for group in LEDGER_GROUPS}
    link, session = link_scope(row), session_scope(row)
    both = session and session._replace(link_sender=None)
    return Place(row.vantage, row.connection, row.ledger_source, link, both, keys)


def _end(manner: Manner) -> str | None:
    """Whose session counters an observed row has if it is about no link."""
    return observed_end(
        Row(
            run="", seq=0, t_us=0, protocol="", vantage="", event=OBSERVED, kind=manner.kind,
            from_peer=manner.from_peer, frame={"role": manner.role},
        )
    )  # fmt: skip


def _lost(unknown: Any) -> dict[str, frozenset[int]]:
    """By counter: the rows that say it cannot be known."""
    if unknown.null_count == len(unknown):
        return {}
    rows = pc.list_parent_indices(unknown).to_numpy(zero_copy_only=False)
    names = pc.list_flatten(unknown)
    return {
        name: frozenset(rows[pc.equal(names, name).to_numpy(zero_copy_only=False)].tolist())
        for name in pc.unique(names).to_pylist()
    }


def completed(batch: Any) -> Any:
    """A batch of some columns with all columns of a trace, null where they were not read."""
    names = batch.schema.names
    arrays = []
    for name in COLUMN_NAMES:
        if name in names:
            column = batch.column(name)
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
        else:
            kind = pa.struct([]) if name in STRUCT_COLUMNS else pa.null()
            column = pa.nulls(batch.num_rows, kind)
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, names=list(COLUMN_NAMES))


# -- numbering ------------------------------------------------------------------------------------


def numbered(columns: Sequence[Any]) -> tuple[Any, int]:
    """A number for each row, equal where all columns are: numbers, and how many there are."""
    codes, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        if column.null_count == len(column):
            continue
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        width = len(column.dictionary) + 1
        if size * width >= _WIDEST:
            codes, size = dense(codes)
        codes *= width
        codes += pc.fill_null(column.indices, width - 1).to_numpy(zero_copy_only=False)
        size *= width
    return dense(codes)


def dense(numbers: Any) -> tuple[Any, int]:
    """The same numbers from 0 without gaps, in order of first appearance, and how many."""
    encoded = pa.array(numbers).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def lasts(codes: Any, mask: Any, size: int) -> Any:
    """For each code the last place where it is in the mask, -1 for none."""
    found = np.full(size, -1, np.int64)
    places = np.flatnonzero(mask)
    found[codes[places]] = places  # of several the last is kept
    return found


def firsts(codes: Any, mask: Any, size: int) -> Any:
    """For each code the first place where it is in the mask, -1 for none."""
    found = np.full(size, -1, np.int64)
    places = np.flatnonzero(mask)[::-1]
    found[codes[places]] = places
    return found
