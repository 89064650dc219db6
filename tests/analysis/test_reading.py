"""A trace that is none, or a faulty one, is refused with one line that names file and column."""

import dataclasses

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.trace.versions import KEPT, lacking, less, more
from workbench.analysis.errors import AnalysisError
from workbench.analysis.reading import open_trace, told
from workbench.scenarios.run import run
from workbench.trace import files
from workbench.trace.checks import checked
from workbench.trace.files import TraceFileError


@pytest.fixture(scope="module")
def rows():
    return run("credit").rows


@pytest.fixture
def written(tmp_path, rows):
    path = tmp_path / "t.parquet"

    def write(found=rows):
        files.write(path, found)
        return path

    return write


def refused(spark, path):
    with pytest.raises(AnalysisError) as caught:
        open_trace(spark, path)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text


def test_a_good_trace_opens_with_its_rows(spark, written, rows):
    """Rows and columns are those that were written."""
    trace = open_trace(spark, written())
    assert trace.rows == trace.frame.count() == len(rows)


def test_an_empty_trace_is_refused(spark, written):
    """No rows, no answer."""
    assert "empty trace" in refused(spark, written([]))


def test_another_version_is_refused(spark, written):
    """The version is in the metadata."""
    path = written()
    table = pq.read_table(path)
    metadata = {**table.schema.metadata, b"workbench.trace.version": b"99"}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    assert "version 99" in refused(spark, path)


def test_a_missing_column_is_named(spark, written):
    """A file without a column that is never null is no trace."""
    path = written()
    pq.write_table(pq.read_table(path).drop(["vantage"]), path)
    assert refused(spark, path).endswith("not a trace: missing columns vantage")


def test_what_may_be_null_may_be_missing_and_what_is_not_known_is_passed_over(spark, tmp_path):
    """Files of an earlier and of a later version in one folder, at a path or at a URL."""
    old, folder = files.read(KEPT), tmp_path / "versions"
    folder.mkdir()
    wanted = []
    for name, change, its in (
        ("earlier", less, [lacking(row) for row in old]), ("later", more, old),
    ):  # fmt: skip
        table = change(pq.read_table(KEPT))
        place = table.schema.get_field_index("run")
        runs = [f"{name} {run}" for run in table.column("run").to_pylist()]
        pq.write_table(table.set_column(place, "run", pa.array(runs)), folder / f"{name}.parquet")
        wanted += [dataclasses.replace(row, run=f"{name} {row.run}") for row in its]
    trace = open_trace(spark, folder)
    by_place = [(row.run, row.seq) for row in wanted]
    found = files.from_table(trace.frame.toArrow())
    assert sorted(found, key=lambda row: by_place.index((row.run, row.seq))) == wanted
    assert open_trace(spark, folder.as_uri()).rows == len(wanted)


NEEDED = pytest.mark.parametrize("name", ["from_peer", "frame_id", "connection"])
"""Its author, the number by which the two rows of a frame are known to be of one, and its wire."""


@NEEDED
def test_a_trace_that_names_no_author_at_all_is_refused(spark, written, name):
    """The column may be null, and so may be missing; a frame's row still needs it."""
    path = written()
    pq.write_table(pq.read_table(path).drop([name]), path)
    assert f"column {name} is null at seq" in refused(spark, path)


def test_rows_out_of_order_are_refused(spark, written, rows):
    """`seq` goes up within a run, in the file and from file to file."""
    assert "column seq 6 comes after 7" in refused(
        spark, written([*rows[:6], rows[7], rows[6], *rows[8:]])
    )


def test_time_that_goes_back_is_refused(spark, written, rows):
    """`t_us` never decreases within a run."""
    late = dataclasses.replace(rows[3], t_us=rows[-1].t_us + 1)
    assert "column t_us goes back at seq 4" in refused(spark, written([*rows[:3], late, *rows[4:]]))


def test_a_struct_whose_fields_have_other_types_is_refused(spark, written):
    """They could not be read as what they are."""
    path = written()
    table = pq.read_table(path)
    place = table.schema.get_field_index("frame")
    thin = pa.array([{"channel": 1}] * table.num_rows)
    pq.write_table(table.set_column(place, "frame", thin), path)
    assert refused(spark, path).endswith("not a trace: another type in frame.channel (int64)")


def test_a_name_with_signs_of_a_pattern_is_meant_literally(spark, tmp_path, rows):
    """And one that Spark cannot read is told."""
    path = tmp_path / "t[1] {a,b}*.parquet"
    files.write(path, rows)
    assert open_trace(spark, path).frame.count() == len(rows)
    path = path.rename(tmp_path / "at 21:00.parquet")
    with pytest.raises(AnalysisError, match="no file with ':' in its name"):
        open_trace(spark, path)


def test_a_row_that_is_there_twice_is_refused(spark, written, rows):
    """`(run, seq)` names one row."""
    assert "column seq has 3 twice" in refused(spark, written([*rows[:4], *rows[3:]]))


def test_a_run_that_goes_on_in_another_file_is_checked_too(spark, tmp_path, rows):
    """Two files with the same rows hold them twice."""
    for name in ("a", "b"):
        files.write(tmp_path / f"{name}.parquet", rows)
    with pytest.raises(
        AnalysisError, match=r"b\.parquet: run .*, and a\.parquet before it has rows"
    ):
        open_trace(spark, tmp_path)


@pytest.mark.parametrize("statistics", [True, False])
def test_a_null_where_none_may_be_is_named(spark, written, statistics):
    """The column and the number of rows."""
    path = written()
    table = pq.read_table(path)
    field = table.schema.field("vantage").with_nullable(True)
    values = [None, None, *table["vantage"].to_pylist()[2:]]
    place = table.schema.get_field_index("vantage")
    faulty = table.set_column(place, field, pa.array(values))
    pq.write_table(faulty, path, write_statistics=statistics)
    assert "column vantage is null in 2 rows" in refused(spark, path)


@pytest.fixture
def unsigned(written, rows):
    """Makes a trace in which frames lack a column; gives its path and the first one's `seq`."""

    def make(wanted, name, **options):
        frames = [n for n, row in enumerate(rows) if row.event == wanted]
        gone = frames[len(frames) // 2 :]
        faulty = list(rows)
        for n in gone:
            faulty[n] = dataclasses.replace(rows[n], **{name: None})
        path = written(faulty)
        pq.write_table(pq.read_table(path), path, **options)
        return path, rows[gone[0]].seq

    return make


@pytest.mark.parametrize(
    "options",
    [{}, {"write_statistics": False}, {"use_dictionary": False}, {"row_group_size": 7}],
    ids=lambda options: next(iter(options), "as written"),
)
@pytest.mark.parametrize("event", ["sent", "received"])
@NEEDED
def test_a_frame_without_an_author_is_refused(spark, unsigned, rows, event, name, options):
    """File, column and the first such row; without Java too."""
    path, seq = unsigned(event, name, **options)
    text = refused(spark, path)
    assert f"run {rows[0].run}: column {name} is null at seq {seq}," in text
    with pytest.raises(TraceFileError) as caught:
        checked(path)
    assert str(caught.value) == text


@NEEDED
def test_a_frame_without_an_author_is_refused_wherever_the_trace_lies(spark, unsigned, rows, name):
    """What Spark alone reads is told in the same words."""
    path, seq = unsigned("received", name)
    with pytest.raises(AnalysisError) as caught:
        open_trace(spark, path.as_uri())
    assert str(caught.value).startswith(f"{path.as_uri()}: run {rows[0].run}: column {name} is ")
    assert f"at seq {seq}," in str(caught.value)


def test_what_is_no_frame_needs_no_author(spark, written, rows):
    """Events inside a peer have none, and a trace of nothing else opens."""
    inside = [row for row in rows if not row.is_frame]
    assert inside
    assert all(row.from_peer is None and row.frame_id is None for row in inside)
    path = written(inside)
    assert open_trace(spark, path).rows == open_trace(spark, path.as_uri()).rows == len(inside)


def test_what_is_no_parquet_is_refused(spark, tmp_path):
    """Neither text nor nothing."""
    for content in (b"", b"PAR1 but not for long"):
        path = tmp_path / "t.parquet"
        path.write_bytes(content)
        refused(spark, path)
    with pytest.raises(AnalysisError, match="no such file"):
        open_trace(spark, tmp_path / "nowhere")
    with pytest.raises(AnalysisError, match="no Parquet file"):
        open_trace(spark, tmp_path.joinpath("empty").mkdir() or tmp_path / "empty")


def test_a_file_deleted_while_it_is_read_is_named(spark, written):
    """Not told as a page of Java."""
    path = written()
    trace = open_trace(spark, path)
    path.unlink()
    with pytest.raises(AnalysisError, match=r"t\.parquet: was deleted"), told():
        trace.frame.select("run").collect()


def test_a_full_disk_is_told_in_a_line():
    """Of Spark's own folder, or of one where an answer is written."""
    with pytest.raises(AnalysisError, match="no space left on the disk"), told():
        raise RuntimeError("java.io.IOException: No space left on device")


def test_what_nobody_expected_is_not_hidden():
    """A mistake of ours stays an exception of its own kind."""
    with pytest.raises(ZeroDivisionError), told():
        raise ZeroDivisionError


def test_a_question_names_the_column_that_it_misses(spark):
    """The schema is checked before any work."""
    from workbench.analysis.credit import credit

    with pytest.raises(AnalysisError, match="credit needs the columns run"):
        credit()(spark.range(1))


def test_the_spark_schema_is_the_schema_of_traces(spark, written):
    """What Spark reads by our schema is what Parquet says it holds."""
    from workbench.analysis.schemas import TRACE

    inferred = spark.read.parquet(str(written()))
    assert [(f.name, f.dataType) for f in inferred.schema] == [(f.name, f.dataType) for f in TRACE]
