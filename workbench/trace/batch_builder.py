"""Rows of few shapes as Arrow columns: a pattern for each shape, and numbers where rows differ."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .files import to_table
from .schema import Row, arrow_schema


class Shape:
    """Rows that are alike but for some whole numbers, and perhaps one text or octets.

    Args:
        pattern: one of them.
        names: of the columns that differ, in the order in which their numbers are kept; a field of
            a struct as `ledger.link_credit`. The first is `seq`.
        text: the column with the text or octets; None if there is none.

    Attributes:
        numbers: of all rows, one row after the other.
        texts: one of each row.
        sizes: octets of such frames without payload, as far as they are known; by whatever makes
            them differ.
    """

    __slots__ = ("names", "numbers", "pattern", "sizes", "text", "texts")

    def __init__(self, pattern: Row, names: tuple[str, ...], text: str | None) -> None:
        self.pattern = pattern
        self.names = names
        self.text = text
        self.sizes: dict[int, int] = {}
        self.numbers = array("q")
        self.texts: list[Any] = []

    @property
    def rows(self) -> int:
        """How many are kept."""
        return len(self.numbers) // len(self.names)

    def taken(self) -> Taken:
        """What is kept; nothing is kept here any more."""
        taken = Taken(self.pattern, self.names, self.text, self.numbers, self.texts)
        self.numbers, self.texts = array("q"), []
        return taken


class Taken(NamedTuple):
    """Rows of one shape that will not change any more."""

    pattern: Row
    names: tuple[str, ...]
    text: str | None
    numbers: array[int]
    texts: list[Any]

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.numbers) // len(self.names)

    def column(self, name: str) -> array[int] | list[Any] | None:
        """What differs in a column, row by row; None if nothing does."""
        if name in self.names:
            return self.numbers[self.names.index(name) :: len(self.names)]
        if name == self.text:
            return self.texts
        return None


def table_of(others: Sequence[Row], shapes: Sequence[Taken]) -> Any:
    """One table of all these rows in order of `seq`, without octets.

    Arrow is called few times, each time for much. It works without Python's lock, and to get that
    back while a run goes on takes longer than most of what there is to do.
    """
    import pyarrow as pa

    schema = arrow_schema()
    types = {field.name: field.type for field in schema}
    types |= {
        f"{field.name}.{inner.name}": inner.type
        for field in schema
        if pa.types.is_struct(field.type)
        for inner in field.type
    }
    names = dict.fromkeys(("seq", "t_us"))
    for shape in shapes:
        names |= dict.fromkeys(shape.names)
        if shape.text is not None:
            names[shape.text] = None
    order, which = _places(others, shapes)
    differing = pa.RecordBatch.from_arrays(
        [_column(name, types[name], others, shapes) for name in names], list(names)
    ).take(order)
    found = {name: differing.column(name) for name in names}
    found = {
        name: column if column.type == types[name] else column.cast(types[name])
        for name, column in found.items()
    }
    rows = [*(shape.pattern for shape in shapes), *others]
    alike = to_table(rows, raw=False).combine_chunks().to_batches()[0].take(which)
    columns = []
    for field in schema:
        column = found.get(field.name)
        if column is None:
            column = alike.column(field.name)
            if pa.types.is_struct(field.type):
                column = _with_fields(field, column, found)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


def _places(others: Sequence[Row], shapes: Sequence[Taken]) -> tuple[Any, Any]:
    """Row by row its place among all rows one shape after the other; and its shape.

    Behind the shapes come the others, each a shape of its own.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    which, seq = array("i"), array("q")
    for place, shape in enumerate(shapes):
        which.extend(array("i", [place]) * shape.rows)
        seq.extend(shape.column("seq") or ())
    which.extend(range(len(shapes), len(shapes) + len(others)))
    seq.extend(row.seq for row in others)
    numbers = pa.Array.from_buffers(pa.int64(), len(seq), [None, pa.py_buffer(seq)])
    placed = pa.Array.from_buffers(pa.int32(), len(which), [None, pa.py_buffer(which)])
    order = pc.sort_indices(numbers)
    return order, placed.take(order)


def _column(name: str, type_: Any, others: Sequence[Row], shapes: Sequence[Taken]) -> Any:
    """A column in which rows of one shape differ: one shape after the other, then the others."""
    import pyarrow as pa

    values = _values([*(shape.pattern for shape in shapes), *others], name)
    rest = values[len(shapes) :]
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        texts: list[Any] = []
        for shape, value in zip(shapes, values, strict=False):
            texts += shape.column(name) or [value] * shape.rows
        return pa.array(texts + rest, type_)
    numbers, present, at = array("q"), 0, 0
    for shape, value in zip(shapes, values, strict=False):
        size, column = shape.rows, shape.column(name)
        numbers.extend(array("q", [value or 0]) * size if column is None else column)
        if column is not None or value is not None:
            present |= ((1 << size) - 1) << at
        at += size
    numbers.extend(array("q", [value or 0 for value in rest]))
    bits = "".join(["0" if value is None else "1" for value in reversed(rest)])
    present |= int(bits or "0", 2) << at
    count = len(numbers)
    valid = pa.py_buffer(present.to_bytes(count // 8 + 1, "little"))
    return pa.Array.from_buffers(pa.int64(), count, [valid, pa.py_buffer(numbers)])


def _values(rows: Sequence[Row], name: str) -> list[Any]:
    """What rows have in a column; a field of a struct as `ledger.link_credit`."""
    outer, _, inner = name.partition(".")
    wholes = [getattr(row, outer) for row in rows]
    if not inner:
        return wholes
    return [None if whole is None else whole.get(inner) for whole in wholes]


def _with_fields(field: Any, structs: Any, found: Mapping[str, Any]) -> Any:
    """A column of structs with some fields in place of its own."""
    import pyarrow as pa

    if not any(f"{field.name}.{inner.name}" in found for inner in field.type):
        return structs
    children = [
        found.get(f"{field.name}.{inner.name}", structs.field(place))
        for place, inner in enumerate(field.type)
    ]
    absent = structs.is_null() if structs.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(field.type), mask=absent)
