"""Rows of few shapes as Arrow columns: a pattern for each shape, and numbers where rows differ."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .fields import EXTRA_JSON
from .schema import Row, arrow_schema

DETAIL = "extra."
"""Before the name of a detail that is kept as a number, and told in the text of all details."""


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

    def columns(self) -> dict[str, Any]:
        """What differs, by column."""
        import pyarrow as pa

        count, step = self.rows, len(self.names)
        found: dict[str, Any] = {}
        for place, name in enumerate(self.names):
            column = self.numbers[place::step]
            found[name] = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(column)])
        if self.text is not None:
            found[self.text] = self.texts
        details = {name: found.pop(name) for name in self.names if name.startswith(DETAIL)}
        if details:
            found[f"frame.{EXTRA_JSON}"] = _json(details)
        return found


def _json(details: Mapping[str, Any]) -> Any:
    """Columns of numbers as one of JSON texts, as `json_text` makes them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[Any] = []
    for place, (name, numbers) in enumerate(details.items()):
        before = "," if place else "{"
        parts += [f'{before}"{name.removeprefix(DETAIL)}":', numbers.cast(pa.string())]
    return pc.binary_join_element_wise(*parts, "}", "")


class _Batch:
    """Rows of some shapes, and others that are made already, in order of `seq`.

    Attributes:
        count: how many in all.
    """

    def __init__(self, shapes: Sequence[Taken], others: Sequence[Row]) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self._sizes = [shape.rows for shape in shapes]
        self._patterns = [shape.pattern for shape in shapes]
        self._others = others
        self._differ = [shape.columns() for shape in shapes]
        self.count = sum(self._sizes) + len(others)
        # Row by row its shape, or behind the shapes its place among the others.
        which = array("i")
        for place, size in enumerate(self._sizes):
            which.extend(array("i", [place]) * size)
        which.extend(range(len(shapes), len(shapes) + len(others)))
        placed = pa.Array.from_buffers(pa.int32(), self.count, [None, pa.py_buffer(which)])
        numbers = [found["seq"] for found in self._differ]
        numbers.append(pa.array([row.seq for row in others], pa.int64()))
        self._order = pc.sort_indices(pa.concat_arrays(numbers))
        self._which = placed.take(self._order)

    def column(self, field: Any) -> Any:
        """One column of the schema."""
        import pyarrow as pa

        name = field.name
        if name == "raw":
            return pa.nulls(self.count, field.type)
        wholes = [getattr(row, name) for row in (*self._patterns, *self._others)]
        if not pa.types.is_struct(field.type):
            return self._leaf(name, [None if one == () else one for one in wholes], field.type)
        there = [whole is not None for whole in wholes]
        if not any(there):
            return pa.nulls(self.count, field.type)
        children = [
            self._leaf(
                f"{name}.{inner.name}",
                [None if whole is None else whole.get(inner.name) for whole in wholes],
                inner.type,
            )
            for inner in field.type
        ]
        absent = None if all(there) else pa.array([not one for one in there]).take(self._which)
        return pa.StructArray.from_arrays(children, fields=list(field.type), mask=absent)

    def _leaf(self, name: str, values: list[Any], type_: Any) -> Any:
        """A column from what differs in a shape's rows, and else the pattern's value."""
        import pyarrow as pa

        if not any(name in found for found in self._differ):
            first = values[0]
            if all(value == first for value in values):
                if first is None:
                    return pa.nulls(self.count, type_)
                return pa.repeat(pa.scalar(first, type_), self.count)
            return pa.array(values, type_).take(self._which)
        parts = []
        for found, size, value in zip(self._differ, self._sizes, values, strict=False):
            part = found.get(name)
            if part is None:
                part = pa.repeat(pa.scalar(value, type_), size)
            elif isinstance(part, list):
                part = pa.array(part, type_)
            elif type_ != pa.int64():
                part = part.cast(type_)
            parts.append(part)
        parts.append(pa.array(values[len(self._sizes) :], type_))
        return pa.concat_arrays(parts).take(self._order)


def table_of(others: Sequence[Row], shapes: Sequence[Taken]) -> Any:
    """One table of all these rows in order of `seq`, without octets."""
    import pyarrow as pa

    schema = arrow_schema()
    batch = _Batch(shapes, others)
    return pa.Table.from_arrays([batch.column(field) for field in schema], schema=schema)
