"""The rows that an import makes, numbered and timed, collected by column.

Rows whose structs have the same fields form a group, so that a batch becomes some arrays for each
group and no object is made for a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.capture.decoder import FrameRecord, Unreadable
from workbench.trace.schema import (
    FRAME_COLUMNS,
    INTERNAL,
    OBSERVED,
    STRUCT_COLUMNS,
    WIRE_VANTAGE,
    arrow_schema,
)

__all__ = ["RowColumns"]

_PLAIN = (
    "t_us", "t_raw_us", "event", "frame_id", "from_peer", "protocol", "connection", "session",
    "link", "link_sender", "attach_no", "consumer", "kind", "ledger_source", "unknown", "brake",
    "brakes", "body_bytes", "frame_bytes", "raw", "clause",
)  # fmt: skip
"""Columns that differ from row to row, in the order in which `RowColumns` keeps their values."""


class RowColumns:
    """Collects the rows of one run.

    Args:
        run: name of the run.
        timed: the times given are those of a packet clock; else they only keep rows apart.

    Attributes:
        waiting: rows that nobody has taken away.
    """

    def __init__(self, run: str, *, timed: bool = True) -> None:
        self.run = run
        self._timed = timed
        self.waiting = 0
        self._taken = 0
        self._start_us: int | None = None
        self._t_us = 0
        self._frames = 0
        self._plain: list[Any] = []
        self._structs = {name: _Structs() for name in STRUCT_COLUMNS}

    @property
    def count(self) -> int:
        """Rows made so far."""
        return self._taken + self.waiting

    def begin(self, t_us: int) -> None:
        """The run starts at this packet time, microseconds since the epoch."""
        self._start_us = t_us

    def frame(
        self, record: FrameRecord, protocol: str, t_raw_us: int, from_peer: str, connection: str
    ) -> None:
        """Adds the row of a frame.

        Args:
            record: what its decoder says of it.
            protocol: of the connection, as the schema names it.
            t_raw_us: when it could be read, microseconds.
            from_peer: who sent it.
            connection: its name.
        """
        ledger = record.ledger
        self._plain += (
            self._time(t_raw_us), t_raw_us if self._timed else None, OBSERVED, self._frames,
            from_peer, protocol, connection, record.session, record.link, record.link_sender,
            record.attach_no, record.consumer, record.kind, None if ledger is None else OBSERVED,
            record.unknown, record.brake, record.brakes, record.body_bytes, record.frame_bytes,
            record.raw, record.clause,
        )  # fmt: skip
        self._structs[FRAME_COLUMNS[protocol]].add(self.waiting, record.frame)
        if ledger is not None:
            self._structs["ledger"].add(self.waiting, ledger)
        self._frames += 1
        self.waiting += 1

    def unreadable(self, place: Unreadable, t_raw_us: int, from_peer: str, connection: str) -> None:
        """Adds the row of a place that gave no frame; arguments as those of `frame`."""
        about = {
            "from_peer": from_peer,
            "offset": place.offset,
            "octets": place.octets,
            "text": place.text,
        }
        self._plain += (
            self._time(t_raw_us), t_raw_us, "gap" if place.lost else "error", None, None, INTERNAL,
            connection, None, None, None, None, None, None, None, (), None, (), None, None, None,
            None,
        )  # fmt: skip
        self._structs["details"].add(self.waiting, about)
        self.waiting += 1

    def _time(self, t_raw_us: int) -> int:
        """Time in the run: the running maximum of the packet clock."""
        if self._start_us is None:
            self._start_us = t_raw_us
        t_us = t_raw_us - self._start_us
        if t_us > self._t_us:
            self._t_us = t_us
        return self._t_us

    def take(self) -> Any:
        """The rows so far as an Arrow table in order of `seq`; they are no longer kept here."""
        import pyarrow as pa

        count, first = self.waiting, self._taken
        plain = {name: self._plain[at :: len(_PLAIN)] for at, name in enumerate(_PLAIN)}
        arrays = []
        for column in arrow_schema():
            name, type_ = column.name, column.type
            if name in self._structs:
                array = self._structs[name].taken(column, count)
            elif name == "seq":
                array = pa.array(range(first, first + count), type_)
            elif name in ("run", "vantage"):
                word = self.run if name == "run" else WIRE_VANTAGE
                array = pa.repeat(pa.scalar(word, type_), count)
            elif name not in plain:
                array = pa.nulls(count, type_)
            elif pa.types.is_list(type_):
                array = _lists(plain[name], type_)
            else:
                array = pa.array(plain[name], type_)
            arrays.append(array)
        self._plain = []
        self._taken += count
        self.waiting = 0
        return pa.Table.from_arrays(arrays, schema=arrow_schema())


def _lists(values: list[tuple[str, ...]], type_: Any) -> Any:
    """A column of lists, of which there are few different ones; an empty one is null."""
    import pyarrow as pa

    number: dict[tuple[str, ...], int] = {}
    which = [number.setdefault(value, len(number)) for value in values]
    return pa.array([value or None for value in number], type_).take(pa.array(which, pa.int64()))


class _Structs:
    """A column of structs: rows with the same fields together, their values one after the other."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, ...], tuple[list[int], list[Any]]] = {}

    def add(self, row: int, fields: Mapping[str, Any]) -> None:
        """The struct of a row."""
        names = tuple(fields)
        group = self._groups.get(names)
        if group is None:
            group = self._groups[names] = ([], [])
        group[0].append(row)
        group[1].extend(fields.values())

    def taken(self, column: Any, count: int) -> Any:
        """The Arrow array of so many rows, null where no struct was added; nothing is kept."""
        import pyarrow as pa
        import pyarrow.compute as pc

        groups, self._groups = self._groups, {}
        rows = [row for places, _ in groups.values() for row in places]
        absent = count - len(rows)
        if absent == count:
            return pa.nulls(count, column.type)
        if absent:
            rows += sorted(set(range(count)).difference(rows))
        order = pc.sort_indices(pa.array(rows, pa.int64()))
        values: dict[str, list[Any]] = {field.name: [] for field in column.type}
        seen = dict.fromkeys(name for names in groups for name in names)
        for names, (places, flat) in groups.items():
            for field in column.type:
                name = field.name
                if name in names:
                    part = pa.array(flat[names.index(name) :: len(names)], field.type)
                elif name in seen:
                    part = pa.nulls(len(places), field.type)
                else:
                    continue
                values[name].append(part)
        children = []
        for field in column.type:
            if field.name in seen:
                parts = [*values[field.name], pa.nulls(absent, field.type)]
                children.append(pa.concat_arrays(parts).take(order))
            else:
                children.append(pa.nulls(count, field.type))
        mask = pa.array([False] * (count - absent) + [True] * absent).take(order)
        return pa.StructArray.from_arrays(children, fields=list(column.type), mask=mask)
