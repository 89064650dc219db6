"""Rows of few shapes as Arrow columns: a pattern for each shape, and numbers where rows differ."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from .files import nulls
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

    What the rows of a shape share is stored once, and a field that no row has is not looked at:
    most fields belong to other protocols. Arrow is called few times, each time for much, because it
    works without Python's lock, and to get that back while a run goes on takes longer than most of
    what there is to do.
    """
    import pyarrow as pa

    schema = arrow_schema()
    rows = [*(shape.pattern for shape in shapes), *others]
    texts = [shape.text for shape in shapes if shape.text is not None]
    differ = {"seq", "t_us", *texts, *(name for shape in shapes for name in shape.names)}
    by_row: dict[str, Any] = {}  # arrays of the columns and fields that differ
    by_shape: dict[str, Any] = {}  # and of those that do not; for a struct, where it is absent

    def put(name: str, type_: Any, values: list[Any]) -> None:
        if name in differ:
            by_row[name] = _column(name, type_, values, shapes)
        elif any(value is not None for value in values):
            by_shape[name] = pa.array(values, type_)

    for field in schema:
        if field.name == "raw":
            continue
        values = [getattr(row, field.name) for row in rows]
        if not pa.types.is_struct(field.type):
            lists = pa.types.is_list(field.type)
            put(field.name, field.type, [each or None for each in values] if lists else values)
            continue
        absent = [value is None for value in values]
        if all(absent):
            continue
        by_shape[field.name] = pa.array(absent)
        used = set().union(*(value for value in values if value is not None))
        for inner in field.type:
            if inner.name in used:
                told = [None if value is None else value.get(inner.name) for value in values]
                put(f"{field.name}.{inner.name}", inner.type, told)

    order, which = _places(others, shapes)
    found: dict[str, Any] = {}
    for arrays, places in ((by_row, order), (by_shape, which)):
        batch = pa.RecordBatch.from_arrays([*arrays.values()], [*arrays]).take(places)
        found |= zip(arrays, batch.columns, strict=True)
    columns = []
    for field in schema:
        column = found.get(field.name)
        if column is None:
            column = nulls(field.type, len(order))
        elif pa.types.is_struct(field.type):
            children = [found.get(f"{field.name}.{inner.name}") for inner in field.type]
            children = [
                nulls(inner.type, len(order)) if child is None else child
                for inner, child in zip(field.type, children, strict=True)
            ]
            column = pa.StructArray.from_arrays(children, fields=[*field.type], mask=column)
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


def _column(name: str, type_: Any, values: list[Any], shapes: Sequence[Taken]) -> Any:
    """A column in which rows of one shape differ: one shape after the other, then the others.

    Args:
        name: of the column; a field of a struct as `ledger.link_credit`.
        type_: a text, octets or a whole number.
        values: of each shape's pattern, and of the others.
        shapes: the shapes.
    """
    import pyarrow as pa

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
    found = pa.Array.from_buffers(pa.int64(), count, [valid, pa.py_buffer(numbers)])
    return found if type_ == found.type else found.cast(type_)
