"""Many captures become one trace, with the rows that each gives alone."""

import shutil

import pytest

from workbench.analysis.errors import AnalysisError
from workbench.analysis.ingest import captures, ingest, register
from workbench.trace import files
from workbench.trace.importer import import_capture

from .runs import CAPTURES

NAMES = ("rmq40_c_drain.pcapng", "rmq43_b_consumer_credit.pcapng", "rmq43_c_drain.pcapng")


@pytest.fixture
def folder(tmp_path):
    """Three good captures, and one file that is none."""
    place = tmp_path / "captures"
    place.mkdir()
    for name in NAMES:
        shutil.copy(CAPTURES / name, place)
    (place / "broken.pcap").write_bytes(b"no capture at all")
    return place


def by_run(rows):
    return sorted(rows, key=lambda row: (row.run, row.seq))


def test_the_rows_are_those_of_the_single_importer(spark, folder, tmp_path):
    """Bad files are named and skipped, the good ones are kept, nothing else is left."""
    told = []
    target = tmp_path / "trace"
    result = ingest(spark, folder, target, progress=lambda *at: told.append(at))
    alone = import_capture([folder / name for name in NAMES]).rows
    assert by_run(files.read(target)) == by_run(alone)
    assert (result.files, result.rows) == (3, len(alone))
    assert [text.split(":")[0] for text in result.failures] == ["broken.pcap"]
    assert told[-1] == (4, 4)
    assert sorted(path.name for path in target.iterdir()) == sorted(
        f"{run}.parquet" for run in {row.run for row in alone}
    )

    # What is there already is not decoded again, and what was lost comes back.
    lost = sorted(target.iterdir())[0]
    lost.unlink()
    again = ingest(spark, folder, target)
    assert (again.files, again.kept) == (1, 2)
    assert by_run(files.read(target)) == by_run(alone)


def test_spark_reads_captures_as_a_table(spark):
    """`spark.read.format("amqp")`: a pattern, one task for each file."""
    register(spark)
    frame = spark.read.format("amqp").load(str(CAPTURES / "rmq40_*drain*.pcapng"))
    rows = import_capture(CAPTURES / "rmq40_c_drain.pcapng").rows
    found = frame.select("seq", "kind", "frame.link_credit").orderBy("seq").collect()
    assert [tuple(row) for row in found] == [
        (row.seq, row.kind, (row.frame or {}).get("link_credit")) for row in rows
    ]


def test_no_good_capture_is_an_error(spark, tmp_path):
    """Nothing is written, and each file has its line."""
    (tmp_path / "a.pcap").write_bytes(b"nothing")
    with pytest.raises(AnalysisError, match=r"a\.pcap"):
        ingest(spark, tmp_path / "a.pcap", tmp_path / "trace")
    assert list((tmp_path / "trace").iterdir()) == []
    with pytest.raises(AnalysisError, match="no capture there"):
        captures(tmp_path / "trace")
