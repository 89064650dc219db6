"""Traces on disk: what was written is read again, or nothing is there and one line says why."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.rows import any_row, race, state_after
from tests.trace.versions import KEPT, KEPT_DETAILS, lacking, less, more
from workbench.trace import Row, TraceFileError, TraceWriter, files, trace_hash
from workbench.trace.before import COLUMNS, Before
from workbench.trace.fields import FRAME_FIELDS
from workbench.trace.flatten import details_of
from workbench.trace.pieces import Pieces
from workbench.trace.schema import LEDGER_FIELDS, arrow_schema


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(any_row(), max_size=4))
def test_rows_survive_arrow(rows):
    """Any row that the schema allows comes back equal, absent fields absent."""
    assert files.from_table(files.to_table(rows)) == rows


def test_a_text_that_comes_again_is_in_memory_once():
    """Names and kinds come in every row; each for itself, they were a third of a trace's memory."""
    names = [one.vantage for one in files.from_table(files.to_table(race()))]
    assert len({id(name) for name in names}) == len(set(names)) < len(names)


def test_rows_survive_a_file_and_keep_their_hash(tmp_path):
    """A trace read from disk has the hash of the trace that was written."""
    rows = race()
    assert files.write(tmp_path / "t.parquet", rows) == len(rows)
    back = files.read(tmp_path / "t.parquet")
    assert back == rows
    assert trace_hash(back) == trace_hash(rows)


def test_a_folder_of_files_is_one_trace_in_order_of_names(tmp_path):
    """What Spark writes beside the data (`_SUCCESS`, hidden files) is no part of it."""
    rows = race()
    files.write(tmp_path / "part-1.parquet", rows[3:])
    files.write(tmp_path / "part-0.parquet", rows[:3])
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / ".hidden.parquet").write_bytes(b"x")
    assert files.read(tmp_path) == rows


def test_a_long_run_is_written_batch_by_batch(tmp_path, monkeypatch):
    """The writer keeps a batch in memory, not the run, and the reader as well."""
    rows = race() * 50
    with TraceWriter(tmp_path / "t.parquet", group_rows=7) as writer:
        for row in rows:
            writer.write(row)
            assert len(writer._waiting) < 7
    monkeypatch.setattr(files, "BATCH_ROWS", 11)
    assert list(files.iter_rows(tmp_path / "t.parquet")) == rows


def test_a_file_that_is_replaced_while_it_is_read_is_read_as_it_was(tmp_path, monkeypatch):
    """A recorder puts a longer file in its latest one's place: what was opened is whole."""
    rows, longer = race(), tmp_path / "longer.part"
    files.write(tmp_path / "t.parquet", rows[:5])
    files.write(longer, rows)
    footer = pq.read_metadata

    def replaced(source):
        found = footer(source)
        longer.replace(tmp_path / "t.parquet")
        return found

    monkeypatch.setattr(pq, "read_metadata", replaced)
    assert list(files.iter_rows(tmp_path / "t.parquet")) == rows[:5]


def test_octets_may_be_left_out(tmp_path):
    """Large traces are written without `raw`."""
    row = Row(
        run="r", seq=0, t_us=0, vantage="wire", event="observed", protocol="amqp-1.0", raw=b"octets"
    )
    files.write(tmp_path / "t.parquet", [row], raw=False)
    assert files.read(tmp_path / "t.parquet")[0].raw is None


def test_octets_need_not_be_read_and_a_batch_ends_with_its_group(tmp_path):
    """Frames may be large: nothing holds more of them than a group has."""
    path, octets = tmp_path / "t.parquet", bytes(1_000)
    rows = [replace(row, raw=octets) for row in race()]
    with TraceWriter(path, group_rows=4) as writer:
        for row in rows:
            writer.write(row)
    assert list(files.iter_rows(path)) == rows
    assert list(files.iter_rows(path, raw=False)) == [replace(row, raw=None) for row in rows]
    found = list(files.batches(path, ["seq", "raw"]))
    assert len(found) > 1
    assert {batch.num_rows for batch in found[:-1]} == {4}


def test_a_failure_leaves_what_was_there_and_nothing_half_written(tmp_path):
    """A write that is broken off keeps the old file and takes its own away."""
    path = tmp_path / "t.parquet"
    files.write(path, race())
    before = path.read_bytes()

    def broken():
        yield race()[0]
        raise RuntimeError("the run broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        files.write(path, broken())
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.parquet"]


def test_a_table_of_any_size_is_cut_into_groups(tmp_path):
    """A reader that takes a part of a file takes whole groups."""
    path = tmp_path / "t.parquet"
    table = files.to_table(race())
    with TraceWriter(path, group_rows=4) as writer:
        writer.write_table(table)
    groups = pq.read_metadata(path)
    assert max(groups.row_group(n).num_rows for n in range(groups.num_row_groups)) == 4
    assert groups.num_rows == table.num_rows > 4


def test_small_tables_share_a_group_and_none_is_cut(tmp_path):
    """What a cut would leave is a small group, and a reader's tasks read the index of all."""
    path, table = tmp_path / "t.parquet", files.to_table(race()[:3])
    with TraceWriter(path, group_rows=7) as writer:
        for _ in range(5):
            writer.write_table(table)
    groups = pq.read_metadata(path)
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [6, 6, 3]


def test_a_group_of_large_frames_is_written_sooner(tmp_path, monkeypatch):
    """As many octets as there may be in memory; small tables share a group."""
    path = tmp_path / "t.parquet"
    table = files.to_table(race())
    several = 3 * table.get_total_buffer_size()
    monkeypatch.setattr(files, "GROUP_OCTETS", several)
    files.write_tables(path, [table] * 7)
    groups = pq.read_metadata(path)
    found = [groups.row_group(n).num_rows for n in range(groups.num_row_groups)]
    assert found == [3 * table.num_rows, 3 * table.num_rows, table.num_rows]


def refuse(number):
    """A function that the system refuses."""

    def refused(*_arguments, **_more):
        raise OSError(number, os.strerror(number), ".t.parquet.0.part")

    return refused


def test_a_disk_that_fills_amid_many_rows_is_one_clear_line(tmp_path, monkeypatch):
    """As at the end."""
    monkeypatch.setattr(pq.ParquetWriter, "write_table", refuse(errno.ENOSPC))
    line = r"t\.parquet: cannot write there: No space left on device$"

    def written(writer):
        with writer, pytest.raises(TraceFileError, match=line):
            writer.write(race()[0])

    # Whoever goes on all the same gets no file that lacks a row.
    with pytest.raises(TraceFileError, match=line):
        written(TraceWriter(tmp_path / "t.parquet", group_rows=1))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_one_clear_line(tmp_path, monkeypatch):
    """No folder, or a folder in place of the file: said at once, nothing made."""
    line = r"t\.parquet: cannot write there: No such file or directory$"
    with pytest.raises(TraceFileError, match=line):
        files.write(tmp_path / "none" / "t.parquet", race())
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse(errno.EROFS))  # as a read-only file system does
        with pytest.raises(TraceFileError, match=line):
            files.write(tmp_path / "none" / "t.parquet", race())
    with pytest.raises(TraceFileError, match="is a folder"):
        files.write(tmp_path, race())
    assert list(tmp_path.iterdir()) == []


def refused(path) -> str:
    with pytest.raises(TraceFileError) as caught:
        files.read(path)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text or str(path.parent) in text
    return text


def test_bad_files_are_refused_with_one_line(tmp_path):
    """What is no trace is refused before the first row, and the line says what it is."""
    path = tmp_path / "t.parquet"
    assert "no such file" in refused(path)
    assert "File name too long" in refused(tmp_path / ("n" * 300))
    path.write_bytes(b"")
    assert "empty" in refused(path)
    path.write_bytes(b"PAR1 and then something else")
    assert "not a Parquet file" in refused(path)
    files.write(path, race())
    path.write_bytes(path.read_bytes()[:-20])
    assert "not a Parquet file" in refused(path)
    files.write(path, [])
    assert "no rows" in refused(path)
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "no Parquet file" in refused(folder)


def test_damage_in_the_middle_of_a_file_is_one_line(tmp_path):
    """A file whose end is whole and whose pages are not."""
    path = tmp_path / "t.parquet"
    files.write(path, race() * 100)
    octets = bytearray(path.read_bytes())
    octets[4:400] = b"\xff" * 396
    path.write_bytes(bytes(octets))
    with pytest.raises(TraceFileError, match="damaged") as caught:
        files.read(path)
    assert "\n" not in str(caught.value)


def test_a_column_whose_name_is_no_text_is_one_line(tmp_path):
    """Damage at a file's end, where Arrow looks first."""
    path = tmp_path / "t.parquet"
    files.write(path, race())
    path.write_bytes(path.read_bytes().replace(b"vantage", b"\xf7antage"))
    with pytest.raises(TraceFileError, match="cannot be read") as caught:
        files.read(path)
    assert "\n" not in str(caught.value)


def test_another_schema_is_refused_naming_what_is_missing_and_what_has_another_type(tmp_path):
    """The reader of the line knows what to look for."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"run": ["r"], "speed": [1]}), path)
    assert refused(path).endswith("missing columns seq, t_us, vantage, event, protocol")

    table = files.to_table(race())
    other = table.set_column(1, pa.field("seq", pa.string()), pa.array(["a"] * table.num_rows))
    pq.write_table(other.replace_schema_metadata(None), path)
    assert "another type in seq (string)" in refused(path)
    thin = pa.array([{"channel": 1}] * table.num_rows)
    place = table.schema.get_field_index("frame")
    pq.write_table(table.set_column(place, "frame", thin), path)
    assert refused(path).endswith("not a trace: another type in frame.channel (int64)")


@pytest.mark.parametrize("version", ["99", "2", "2.0", "0"])
def test_another_major_version_is_refused_by_its_number(tmp_path, version):
    """A trace of a later version is told from a file that is no trace."""
    path = tmp_path / "t.parquet"
    table = files.to_table(race()).replace_schema_metadata({"workbench.trace.version": version})
    pq.write_table(table, path)
    assert f"schema version {version}, and this is version 1" in refused(path)


def test_a_trace_of_the_first_version_reads_as_it_was_written():
    """A capture and a run, as they were kept before any field was added."""
    assert trace_hash(files.read(KEPT)) == (
        "666ed0cc5e56e0fdee649b40f02ecf22e3174e879fa99b878238bb06943e4f68"
    )


def test_details_of_the_first_version_are_found_where_it_wrote_them():
    """Version 1 had no column `details`; what rows say is the same in old files and in new ones."""
    rows = files.read(KEPT_DETAILS)
    assert all(row.details is None for row in rows)
    told = {row.event: dict(row.extra) for row in rows if not row.is_frame}
    assert told["gap"] == {
        "from_peer": "client", "offset": 347, "octets": 46,
        "text": "46 octets are not in the capture",
    }  # fmt: skip
    assert told["elect"] == {"term": 2, "leader": "n2"}
    assert told["crash"] == {"lost": 0, "syncing": 0, "waiting": 0}
    taken = [row.extra.get("messages") for row in rows]
    assert [[2, 1, 2]] in taken
    again = [replace(row, frame=None, details=details_of(row.extra)) for row in rows]
    assert [dict(row.extra) for row in again if not row.is_frame] == [
        dict(row.extra) for row in rows if not row.is_frame
    ]


def test_what_may_be_null_may_be_missing_and_what_is_not_known_is_passed_over(tmp_path):
    """Of columns and of fields in structs, by whoever reads a file: all of it, or a part."""
    rows, table = files.read(KEPT), pq.read_table(KEPT)
    later, earlier = tmp_path / "later.parquet", tmp_path / "earlier.parquet"
    pq.write_table(more(table), later)
    pq.write_table(less(table), earlier)
    assert files.read(later) == rows
    assert files.read(earlier) == [lacking(row) for row in rows]
    for path, wanted in ((later, rows), (earlier, [lacking(row) for row in rows])):
        pieces = Pieces(str(path), [str(path)])
        for run in pieces.runs():
            its = [row for row in wanted if row.run == run]
            first, last = pieces.bounds(run)
            assert pieces.rows(run, first, last + 1) == its
            assert [row.seq for row in pieces.narrow_rows(run, first, last + 1)] == [
                row.seq for row in its
            ]
            folding = Before()
            for batch in pieces.chosen(run, first, last + 1, COLUMNS):
                folding.take(batch)
            assert folding.state() == state_after(its)


def test_a_file_by_another_writer_with_the_same_columns_is_a_trace(tmp_path):
    """Nullability and metadata are not what makes a trace: Spark writes other ones."""
    path = tmp_path / "t.parquet"
    table = files.to_table(race())
    loose = pa.schema([pa.field(field.name, field.type) for field in table.schema])
    pq.write_table(table.cast(loose), path)
    assert files.read(path) == race()


def test_every_frame_and_ledger_field_has_an_arrow_type():
    """The structs in the file are those of the schema, field by field."""
    arrow = arrow_schema()
    for name, fields in (("frame", FRAME_FIELDS), ("ledger", LEDGER_FIELDS)):
        assert [arrow.field(name).type.field(i).name for i in range(len(fields))] == [
            field.name for field in fields
        ]
