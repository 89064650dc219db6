"""Rows of one shape as Arrow columns: one row as a pattern, and numbers where they differ."""

from __future__ import annotations

from array import array
from typing import Any

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
    """

    __slots__ = ("names", "numbers", "pattern", "text", "texts")

    def __init__(self, pattern: Row, names: tuple[str, ...], text: str | None) -> None:
        self.pattern = pattern
        self.names = names
        self.text = text
        self.numbers = array("q")
        self.texts: list[Any] = []

    @property
    def rows(self) -> int:
        """How many are kept."""
        return len(self.numbers) // len(self.names)

    def taken(self) -> Any:
        """Their table, without octets of frames; nothing is kept any more."""
        import pyarrow as pa

        count, step = self.rows, len(self.names)
        found: dict[str, Any] = {}
        for place, name in enumerate(self.names):
            column = self.numbers[place::step]
            found[name] = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(column)])
        if self.text is not None:
            found[self.text] = self.texts
        self.numbers, self.texts = array("q"), []
        arrays = [self._column(column, found, count) for column in arrow_schema()]
        return pa.Table.from_arrays(arrays, schema=arrow_schema())

    def _column(self, column: Any, found: dict[str, Any], count: int) -> Any:
        import pyarrow as pa

        name = column.name
        value = None if name == "raw" else getattr(self.pattern, name)
        if not pa.types.is_struct(column.type):
            return _filled(found.get(name), value or None if value == () else value, column, count)
        if value is None:
            return pa.nulls(count, column.type)
        children = [
            _filled(found.get(f"{name}.{inner.name}"), value.get(inner.name), inner, count)
            for inner in column.type
        ]
        return pa.StructArray.from_arrays(children, fields=list(column.type))


def _filled(found: Any, value: Any, column: Any, count: int) -> Any:
    """A column: what was kept for it, or the pattern's value in every row."""
    import pyarrow as pa

    if found is not None:
        if isinstance(found, list):
            return pa.array(found, type=column.type)
        return found if column.type == pa.int64() else found.cast(column.type)
    if value is None:
        return pa.nulls(count, column.type)
    if isinstance(value, tuple):
        return pa.array([value] * count, type=column.type)
    return pa.repeat(pa.scalar(value, type=column.type), count)


def table_of(others: list[Row], shapes: list[Shape]) -> Any:
    """One table of all these rows in order of `seq`; the shapes are empty then."""
    import pyarrow as pa
    import pyarrow.compute as pc

    tables = [shape.taken() for shape in shapes if shape.rows]
    if others:
        tables.append(to_table(others, raw=False))
    table = pa.concat_tables(tables)
    return table.take(pc.sort_indices(table.column("seq")))
