"""A recorder's folder as a stream: all of it, once, however often the stream is stopped."""

import os
import pickle
import random

import pytest

from workbench import folds
from workbench.analysis.chunks import Chunks
from workbench.analysis.errors import AnalysisError
from workbench.analysis.live import Follower
from workbench.analysis.rolling import _Reader
from workbench.analysis.schemas import TRACE
from workbench.analysis.stalls import stalls as stalls_question
from workbench.folds.live import LiveFold
from workbench.folds.stalls import stalls
from workbench.following import follow
from workbench.trace import files

from .runs import acted

RATES = (
    "run", "connection", "session", "link", "link_sender", "attach_no", "window_start_us",
    "messages", "frames", "body_bytes", "rate",
)  # fmt: skip
WINDOW_US = 20_000


@pytest.fixture(scope="module")
def rows():
    """A receiver that grants now and then: stalls that end, and one that goes on."""
    acts = [("grant", {"link_credit": 3 * n + 1}) for n in range(8)]
    return acted("credit", "rmq4.3", {"messages": 300}, *acts)


def begin():
    """A state with windows so short that many are past."""
    return LiveFold(WINDOW_US)


def beside(folder):
    """A checkpoint for it: another folder."""
    return folder.with_name(f"{folder.name}-followed")


def follower(spark, folder, **more):
    """A stream over the folder, with a checkpoint beside it."""
    return Follower(spark, folder, beside(folder), begin=begin, rows_of=files.from_table, **more)


def in_order(rows):
    """Rows of an answer in an order of their own."""
    return sorted(rows, key=lambda row: tuple(str(row[name]) for name in sorted(row)))


def whole(rows):
    """The answers over all rows, from the folds."""
    return {
        "stalls": in_order(stall._asdict() for stall in stalls(rows)),
        "rates": in_order(
            {name: row[name] for name in RATES}
            for row in folds.throughput(rows, window_us=WINDOW_US)
        ),
    }


def answers(stream):
    """What the stream says."""
    return {name: in_order(stream.answer(name)) for name in ("stalls", "rates")}


@pytest.mark.slow
def test_a_stream_that_is_stopped_and_started_counts_everything_once(spark, rows, tmp_path):
    """A file that grows, a next file, names that are not whole; then the batch answer."""
    folder = tmp_path / "live"
    folder.mkdir()
    cuts = sorted(random.Random(5).sample(range(1, len(rows)), 4))
    (folder / ".live-00002.parquet.1234.part").write_bytes(b"half a file")
    (folder / "_live-00003.parquet").write_bytes(b"no file of a recorder")
    files.write(folder / "live-00001.parquet", rows[: cuts[0]])
    with follower(spark, folder) as stream:
        stream.catch_up()
        assert answers(stream) == whole(rows[: cuts[0]])
        files.write(folder / "live-00001.parquet", rows[: cuts[1]])
        stream.catch_up()
        assert answers(stream) == whole(rows[: cuts[1]])
    assert not stream.running
    files.write(folder / "live-00001.parquet", rows[: cuts[2]])
    files.write(folder / "live-00002.parquet", rows[cuts[2] : cuts[3]])
    with follower(spark, folder) as stream:
        stream.catch_up()
        assert answers(stream) == whole(rows[: cuts[3]])
        files.write(folder / "live-00002.parquet", rows[cuts[2] :])
        stream.catch_up()
        assert stream.rows == len(rows)
        streamed = answers(stream)
    assert streamed == whole(rows)
    trace = spark.read.schema(TRACE).parquet(
        *(str(folder / f"live-0000{n}.parquet") for n in (1, 2))
    )
    asked = stalls_question(chunks=Chunks(whole=True))(trace)
    assert in_order(row.asDict() for row in asked.collect()) == streamed["stalls"]
    assert len(streamed["stalls"]) > 5


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_that_comes_again_after_a_crash_counts_once(
    spark, rows, tmp_path, monkeypatch, when
):
    """The crash comes before the state of the batch is written, or after, and before its commit."""
    files.write(tmp_path / "live-00001.parquet", rows[:150])
    plain = Follower._take
    with follower(spark, tmp_path) as stream:
        stream.catch_up()

    def crashing(self, batch, number):
        if when == "after":
            plain(self, batch, number)
        raise RuntimeError("the machine is gone")

    files.write(tmp_path / "live-00001.parquet", rows[:400])
    monkeypatch.setattr(Follower, "_take", crashing)
    with follower(spark, tmp_path) as stream, pytest.raises(AnalysisError, match="machine is gone"):
        stream.catch_up()
    monkeypatch.setattr(Follower, "_take", plain)
    files.write(tmp_path / "live-00002.parquet", rows[400:])
    with follower(spark, tmp_path) as stream:
        stream.catch_up()
        assert stream.rows == len(rows)
        assert answers(stream) == whole(rows)


@pytest.mark.slow
def test_small_files_of_past_answers_are_put_together(spark, rows, tmp_path, monkeypatch):
    """A stream of days does not fill a folder; the answer stays the same."""
    monkeypatch.setattr("workbench.analysis.live.PARTS", 2)
    with follower(spark, tmp_path) as stream:
        for count, at in enumerate(range(0, len(rows), len(rows) // 4), 1):
            part = rows[at : at + len(rows) // 4]
            files.write(tmp_path / f"live-{count:05d}.parquet", part)
            stream.catch_up()
        assert answers(stream) == whole(rows)
    kept = [file.name for file in (beside(tmp_path) / "answers").iterdir()]
    assert len([name for name in kept if name.startswith("state")]) == 1
    assert len([name for name in kept if name.startswith("stalls")]) <= 2


# -- the offsets, without a stream -----------------------------------------------------------------


def read(reader, start, end):
    """(run, seq) of the rows between two offsets."""
    return [
        (run, seq)
        for stretch in reader.partitions(start, end)
        for batch in reader.read(stretch)
        for run, seq in zip(
            batch.column("run").to_pylist(), batch.column("seq").to_pylist(), strict=True
        )
    ]


def test_offsets_deal_each_row_to_one_batch(rows, tmp_path):
    """Batches of at most so many rows, over files that grow meanwhile; the same when read again."""
    from pyspark.sql.streaming.datasource import ReadMaxRows

    reader = _Reader({"path": str(tmp_path), "maxRows": "60"})
    found, start, written = [], reader.initialOffset(), 0
    while len(found) < len(rows):
        written = min(len(rows), written + 45)
        for number, first in enumerate(range(0, written, 200), 1):
            part = rows[first : min(written, first + 200)]
            files.write(tmp_path / f"live-{number:05d}.parquet", part)
        end = reader.latestOffset(start, ReadMaxRows(60))
        batch = read(reader, start, end)
        assert len(batch) <= 60
        assert read(reader, start, end) == batch
        found += batch
        start = end
    assert found == [(row.run, row.seq) for row in rows]
    assert reader.latestOffset(start, ReadMaxRows(60)) == start


def test_two_recorders_in_one_folder_are_both_read(rows, tmp_path):
    """Their files are numbered apart; a file without a number is read too."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    reader = _Reader({"path": str(tmp_path)})
    files.write(tmp_path / "live-00001.parquet", rows[:10])
    files.write(tmp_path / "proxy-00001.parquet", rows[10:30])
    first = reader.latestOffset({}, ReadAllAvailable())
    files.write(tmp_path / "live-00002.parquet", rows[30:60])
    files.write(tmp_path / "other.parquet", rows[60:65])
    second = reader.latestOffset(first, ReadAllAvailable())
    seqs = sorted(seq for _run, seq in read(reader, {}, first) + read(reader, first, second))
    assert seqs == [row.seq for row in rows[:65]]


def test_a_recorder_that_began_anew_is_told(rows, tmp_path):
    """Its rows are not those that were read: no answer could be right."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    reader = _Reader({"path": str(tmp_path)})
    files.write(tmp_path / "live-00001.parquet", rows[:50])
    end = reader.latestOffset({}, ReadAllAvailable())
    files.write(tmp_path / "live-00001.parquet", rows[:20])
    with pytest.raises(AnalysisError, match="has 20 rows, and 50 were read"):
        reader.latestOffset(end, ReadAllAvailable())


def test_a_folder_or_a_checkpoint_that_is_none_is_told(tmp_path):
    """One line, before a stream is begun."""
    with pytest.raises(AnalysisError, match="no such folder"):
        follower(None, tmp_path / "absent")
    kept = beside(tmp_path) / "answers"
    kept.mkdir(parents=True)
    for text in ("nothing", "{}", '{"version": 2, "state": {}}'):
        (kept / "state-3.json").write_text(text, encoding="utf-8")
        with pytest.raises(AnalysisError, match=r"state-3.json: is damaged"):
            follower(None, tmp_path)
    (kept / "state-3.json").write_text('{"version": 1}', encoding="utf-8")
    with pytest.raises(AnalysisError, match="of version 1, and this is version 2"):
        follower(None, tmp_path)
    (kept / "state-3.json").unlink()
    commits = beside(tmp_path) / "spark" / "commits"
    commits.mkdir(parents=True)
    (commits / "3").touch()
    with pytest.raises(AnalysisError, match=r"no state .* begin with another checkpoint"):
        follower(None, tmp_path)


class Planted:
    """Runs a command when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


def test_nothing_in_a_trace_folder_is_run(spark, rows, tmp_path):
    """What lies beside the rows may come from anybody; a folder is data, and stays as it was."""
    folder, mark = tmp_path / "live", tmp_path / "was-run"
    files.write(folder_made(folder) / "live-00001.parquet", rows)
    planted = folder_made(folder / ".follow" / "answers")
    for name in ("state-7.pickle", "state-7.json", "stalls-0-0.pickle"):
        (planted / name).write_bytes(pickle.dumps((1, Planted(mark))))
    there = sorted(folder.rglob("*"))
    with follow(folder, spark=spark) as stream:
        stream.catch_up()
        assert stream.rows == len(rows)
        assert in_order(stream.answer("stalls")) == whole(rows)["stalls"]
        kept = stream.checkpoint
        assert kept.is_dir()
    assert not mark.exists()
    assert sorted(folder.rglob("*")) == there
    assert not kept.exists()
    with pytest.raises(AnalysisError, match="lies in the folder that is followed"):
        follow(folder, spark=spark, checkpoint=folder / ".follow")


def folder_made(folder):
    """A folder, with those above it."""
    folder.mkdir(parents=True)
    return folder
