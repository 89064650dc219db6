"""Traces on disk: Parquet, written whole or not at all, read from one file or a folder of files.

Only this module and the importers know Arrow, and they load it when they are called.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache, lru_cache
from itertools import repeat
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

from workbench.aside import held
from workbench.notebook import PlainError

from .given import Place, takes
from .schema import COLUMN_NAMES, STRUCT_COLUMNS, Row, arrow_schema, fitted, misfit
from .whole import part_of

BATCH_ROWS = 20_000
EMPTY = "holds no rows: an empty trace"
_TUPLES = ("unknown", "brakes")


class TraceFileError(PlainError):
    """A file that is no trace, or could not be written; the text is one line for a person."""


# -- rows and Arrow -----------------------------------------------------------------------------


def to_table(rows: Sequence[Row], *, raw: bool = True) -> Any:
    """Rows as an Arrow table.

    Args:
        rows: any number of rows.
        raw: False to leave the octets out, which makes large traces several times smaller.
    """
    return table_of_columns({name: list(map(attrgetter(name), rows)) for name in _names(raw)})


def _names(raw: bool) -> list[str]:
    """The columns, with the octets or without."""
    return [name for name in COLUMN_NAMES if raw or name != "raw"]


def table_of_columns(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Values by column as an Arrow table; a column that is not among them is null.

    Args:
        columns: `seq` and any others, each with as many values, as those of a `Row`.
    """
    import pyarrow as pa

    count = len(columns["seq"])
    arrays = []
    for column in arrow_schema():
        values = columns.get(column.name)
        if values is None:
            array = nulls(column.type, count)
        elif column.name in STRUCT_COLUMNS:
            array = _struct_array(values, column.type)
        else:
            tuples = column.name in _TUPLES
            array = pa.array([each or None for each in values] if tuples else values, column.type)
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=arrow_schema())


def _struct_array(values: Sequence[dict[str, Any] | None], type_: Any) -> Any:
    """A column of structs. Each protocol has its own fields: only those in use are looked at."""
    import pyarrow as pa

    if all(value is None for value in values):
        return nulls(type_, len(values))
    count = len(values)
    found: defaultdict[str, list[Any]] = defaultdict(lambda: [None] * count)
    for place, value in enumerate(values):
        if value:
            for name, one in value.items():
                found[name][place] = one
    children = [
        pa.array(found[field.name], field.type) if field.name in found else nulls(field.type, count)
        for field in type_
    ]
    absent = pa.array([value is None for value in values])
    return pa.StructArray.from_arrays(children, fields=[*type_], mask=absent)


@lru_cache(maxsize=64)  # tables have as many rows as those before, but for the last
def nulls(type_: Any, count: int) -> Any:
    """A column of nulls: most fields belong to other protocols."""
    import pyarrow as pa

    return pa.nulls(count, type_)


def from_table(table: Any) -> list[Row]:
    """The rows of an Arrow table or record batch with a trace's columns, the octets or not."""
    there = table.schema.names
    columns = (
        _cells(table.column(name), name) if name in there else repeat(None)
        for name in Row.__match_args__
    )
    return list(map(Row, *columns))


def _cells(column: Any, name: str) -> list[Any]:
    """A column as the rows have it; a text that comes again is one object."""
    import pyarrow as pa

    if name in STRUCT_COLUMNS:
        return _structs(column)
    if name in _TUPLES:
        return [tuple(cell) if cell else () for cell in column.to_pylist()]
    if column.type == pa.string():
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        coded = whole.dictionary_encode()
        texts = [*coded.dictionary.to_pylist(), None]
        return [texts[place] for place in coded.indices.fill_null(-1).to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def _structs(column: Any) -> list[dict[str, Any] | None]:
    """A struct column as dicts of the fields that are present; field by field, for speed."""
    import pyarrow.compute as pc

    found: list[Any] = [{} if there else None for there in column.is_valid().to_pylist()]
    for field, inner in zip(column.type, column.flatten(), strict=True):
        if inner.null_count == len(found):
            continue
        name = field.name
        places = pc.indices_nonzero(inner.is_valid()).to_pylist()
        for place, value in zip(places, inner.drop_null().to_pylist(), strict=True):
            found[place][name] = value
    return found


# -- writing ------------------------------------------------------------------------------------


GROUP_ROWS = 131_072
"""Rows of a Parquet row group at most: a reader can cut the file there, and each of its tasks reads
the index of all groups."""
GROUP_OCTETS = 128 * 1024 * 1024
"""A group of fewer rows is written once it takes so much memory: frames may be large."""


class TraceWriter:
    """Writes a trace row by row; the file appears under its name when all is well, or not at all.

    Use it as a context manager: an exception inside takes the unfinished file away.

    Args:
        path: the file to write; one that exists is replaced at the end.
        raw: False to leave the octets out.
        group_rows: rows of a row group; as many are kept in memory before they are written, or
            fewer if they are large.

    Raises:
        TraceFileError: if the file cannot be written.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, raw: bool = True, group_rows: int = GROUP_ROWS
    ) -> None:
        self.path = Path(path)
        self.count = 0
        self._raw = raw
        self._group_rows = group_rows
        self._batch_rows = min(BATCH_ROWS, group_rows)
        self._waiting: list[Row] = []
        self._tables: list[Any] = []  # of the next group
        self._rows_in_tables = self._octets_in_tables = 0
        self._part = part_of(self.path)
        self._held = ExitStack()
        self._stream: Any = None
        self._writer: Any = None

    def __enter__(self) -> Self:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if os.path.isdir(self.path):
            raise TraceFileError(f"{self.path}: is a folder; give the name of a file in it")
        try:
            self._stream = pa.OSFile(os.fsencode(self._part), "wb")  # a name may be no text
            self._held.enter_context(held(self._part))
            self._writer = pq.ParquetWriter(
                self._stream, arrow_schema(), compression="zstd", use_dictionary=_words()
            )
        except OSError as error:
            self._discard()
            raise TraceFileError(f"{self.path}: cannot write there: {reason(error)}") from error
        return self

    def write(self, row: Row) -> None:
        """Add one row.

        Raises:
            TraceFileError: if it cannot be written.
        """
        self._waiting.append(row)
        self.count += 1
        if len(self._waiting) >= self._batch_rows:
            self._pack()

    def write_table(self, table: Any) -> None:
        """Add a table of rows that has the schema of a trace.

        Raises:
            TraceFileError: if it cannot be written.
        """
        self._pack()
        self.count += table.num_rows
        self._add(table)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._pack()
                self._flush()
                self._writer.close()
                self._stream.close()
                os.replace(self._part, self.path)
        except OSError as problem:
            raise TraceFileError(f"{self.path}: cannot write there: {reason(problem)}") from problem
        finally:
            self._discard()

    def _pack(self) -> None:
        """Rows become a table, which is smaller."""
        if self._waiting:
            table = to_table(self._waiting, raw=self._raw)
            self._waiting = []
            self._add(table)

    def _add(self, table: Any) -> None:
        if self._rows_in_tables + table.num_rows > self._group_rows:
            self._flush()  # no table is cut, which would leave a small group behind
        self._tables.append(table)
        self._rows_in_tables += table.num_rows
        self._octets_in_tables += table.get_total_buffer_size()
        if self._rows_in_tables >= self._group_rows or self._octets_in_tables >= GROUP_OCTETS:
            self._flush()

    def _flush(self) -> None:
        """Write what there is; where that fails it stays, so that no file lacks it."""
        import pyarrow as pa

        if not self._tables:
            return
        try:
            self._writer.write_table(
                pa.concat_tables(self._tables), row_group_size=self._group_rows
            )
        except OSError as problem:
            raise TraceFileError(f"{self.path}: cannot write there: {reason(problem)}") from problem
        self._tables = []
        self._rows_in_tables = self._octets_in_tables = 0

    def _discard(self) -> None:
        if self._writer is not None and self._writer.is_open:
            self._writer.close()
        if self._stream is not None:
            self._stream.close()
        self._held.close()
        with suppress(OSError):  # where nothing can be written it is not there
            self._part.unlink()


def prepare() -> None:
    """Load what writing needs: the first write would otherwise take a second longer."""
    import pyarrow.parquet  # noqa: F401  (so that it is there)

    arrow_schema()


def write(path: str | os.PathLike[str], rows: Iterable[Row], *, raw: bool = True) -> int:
    """Write a trace to one Parquet file; returns the number of rows.

    Raises:
        TraceFileError: if the file cannot be written; what was there before is still there.
    """
    with TraceWriter(path, raw=raw) as writer:
        for row in rows:
            writer.write(row)
    return writer.count


def write_tables(path: str | os.PathLike[str], tables: Iterable[Any]) -> int:
    """Write tables of rows, one behind the other, to one Parquet file; returns the number of rows.

    Raises:
        TraceFileError: if the file cannot be written; what was there before is still there.
    """
    with TraceWriter(path) as writer:
        for table in tables:
            writer.write_table(table)
    return writer.count


@cache
def _words() -> list[str]:
    """The columns in which the same texts come again and again; numbers hardly do."""
    schema = arrow_schema()
    inner = [
        (f"{field.name}.{leaf.name}", leaf.type)
        for field in schema
        if field.name in STRUCT_COLUMNS
        for leaf in field.type
    ]
    leaves = [(field.name, field.type) for field in schema] + inner
    return [name for name, type_ in leaves if str(type_) == "string"]


# -- reading ------------------------------------------------------------------------------------


@takes
def read(path: Place) -> list[Row]:
    """All rows of a trace: a Parquet file, or a folder of such files in order of their names.

    Raises:
        TraceFileError: if it is no trace, has another schema, or holds no row.
    """
    return list(iter_rows(path))


def iter_rows(path: str | os.PathLike[str], *, raw: bool = True) -> Iterator[Row]:
    """The rows one after the other, a batch at a time in memory.

    Every file is checked before the first row comes.

    Args:
        path: a Parquet file, or a folder of such files in order of their names.
        raw: False to leave the octets out, which may be most of a trace.

    Raises:
        TraceFileError: as `read`.
    """
    files = trace_files(path)
    count = 0
    for file in files:
        with open_file(file) as parquet:
            count += parquet.metadata.num_rows
    if not count:
        raise TraceFileError(f"{path}: {EMPTY}")
    return (
        row
        for file in files
        for batch in batches(file, _names(raw), size=BATCH_ROWS)
        for row in from_table(batch)
    )


def batches(
    file: Path,
    columns: Sequence[str],
    *,
    size: int = GROUP_ROWS,
    groups: Sequence[int] | None = None,
    words: Sequence[str] = (),
) -> Iterator[Any]:
    """Record batches of a checked file, with just these columns; none has rows of two groups.

    Args:
        file: a file that `open_file` has taken.
        columns: names of columns, or of a struct's fields (`frame.more`).
        size: rows of a batch at most.
        groups: of the file; all of them if None.
        words: columns in which few texts come again and again: read as numbers of texts.

    Raises:
        TraceFileError: it is damaged, or gone.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Opened once: a recorder replaces its latest file, and a footer says nothing of the next.
        with pa.OSFile(os.fsencode(file)) as stream:
            metadata = pq.read_metadata(stream)
            there = metadata.schema.to_arrow_schema().names
            again = [name for name in words if name in there]
            parquet = pq.ParquetFile(stream, metadata=metadata, read_dictionary=again)
            # A group is as large as memory may be, so a batch is no larger.
            for group in range(metadata.num_row_groups) if groups is None else groups:
                for batch in parquet.iter_batches(
                    batch_size=size, row_groups=[group], columns=list(columns)
                ):
                    yield fitted(batch, columns)
    except FileNotFoundError:
        raise TraceFileError(f"{file}: was deleted while it was read") from None
    except (pa.ArrowException, OSError) as error:
        raise TraceFileError(f"{file}: is damaged: {reason(error)}") from error


def trace_files(path: str | os.PathLike[str]) -> list[Path]:
    """The Parquet files that a path stands for, in order of their names.

    Raises:
        TraceFileError: if there is no such file, or none in the folder, or it may not be read.
    """
    place = Path(path)
    if os.path.isdir(place):
        try:
            found = sorted(
                file
                for file in files_in(place)
                if file.suffix == ".parquet" and not _is_aside(file.relative_to(place))
            )
        except OSError as error:
            raise TraceFileError(f"{error.filename}: {reason(error)}") from error
        if not found:
            raise TraceFileError(f"{place}: no Parquet file (*.parquet) in this folder")
        return found
    try:
        place.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise TraceFileError(f"{place}: no such file or folder") from None
    except OSError as error:
        raise TraceFileError(f"{place}: {reason(error)}") from error
    return [place]


def files_in(folder: Path) -> Iterator[Path]:
    """The files in a folder and in those in it.

    Raises:
        OSError: one of the folders may not be read, and none can tell what is in it.
    """

    def refused(error: OSError) -> None:
        if not _is_aside(Path(error.filename).relative_to(folder)):
            raise error

    for place, _, names in os.walk(folder, onerror=refused):
        yield from (file for name in names if (file := Path(place, name)).is_file())


def _is_aside(file: Path) -> bool:
    """Hidden files, and what Spark keeps beside its data (`_temporary`, `_SUCCESS`)."""
    return any(part.startswith((".", "_")) for part in file.parts)


def open_file(file: Path) -> Any:
    """The Parquet file behind a name, checked to be a trace.

    Raises:
        TraceFileError: it is none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if file.stat().st_size == 0:
            raise TraceFileError(f"{file}: is empty (0 octets)")
        parquet = pq.ParquetFile(pa.OSFile(os.fsencode(file)))
    except pa.ArrowInvalid as error:
        raise TraceFileError(f"{file}: is not a Parquet file, or only a part of one") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the latter of a name
        raise TraceFileError(f"{file}: cannot be read: {reason(error)}") from error
    try:
        words = misfit(parquet.schema_arrow)
    except pa.ArrowException as error:
        parquet.close()
        raise TraceFileError(f"{file}: is damaged: {reason(error)}") from error
    if words:
        parquet.close()
        raise TraceFileError(f"{file}: {words}")
    return parquet


def reason(error: BaseException) -> str:
    """What the system says, without what Arrow or asyncio tells around it; else its first line."""
    number = getattr(error, "errno", None)
    # The numbers of `ssl` and of names that are not found are no errors of the system.
    if number and type(error).__module__ == "builtins":
        return os.strerror(number)
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return text.splitlines()[0]
