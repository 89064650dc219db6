"""Many captures become one trace, with the rows that each gives alone."""

import gzip
import platform
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest

from workbench.analysis.errors import AnalysisError
from workbench.analysis.ingest import captures, ingest
from workbench.analysis.parts import Order, write_part
from workbench.analysis.reading import open_trace
from workbench.capture.importer import Capture, CaptureError, import_capture
from workbench.trace import files
from workbench.trace.schema import SCHEMA_VERSION, version_in

from .runs import CAPTURES

NAMES = ("rmq40_c_drain.pcapng", "rmq43_b_consumer_credit.pcapng", "rmq43_c_drain.pcapng")
FRAME_LOG = """\
[0x55bc]: AMQP:FRAME:  -> AMQP
[0x55bc]: AMQP:FRAME:  <- AMQP
[0x55bc]: AMQP:FRAME:0 -> @open(16) [container-id="a"]
[0x55bc]: AMQP:FRAME:0 <- @open(16) [container-id="b"]
"""


@pytest.fixture(
    params=[pytest.param(one, marks=pytest.mark.slow) for one in ("processes", "tasks")]
)
def reader(request):
    """Who reads: processes of this machine, of whom `cli/test_import_many` asks too, or Spark's."""
    return None if request.param == "processes" else request.getfixturevalue("spark")


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


def test_a_relative_path_means_what_it_means_here(reader, folder, tmp_path, monkeypatch):
    """Spark was started elsewhere, and its tasks run where it was."""
    monkeypatch.chdir(folder)
    assert ingest(reader, NAMES[0], tmp_path / "trace").files == 1


def test_the_rows_are_those_of_the_single_importer(reader, folder, tmp_path):
    """Of pcapng, compressed, and a frame log; a bad one is named and skipped, no more is left."""
    (folder / "deeper").mkdir()
    (folder / "deeper" / "client.log").write_text(FRAME_LOG)
    with gzip.open(folder / "deeper" / "small.pcapng.gz", "wb") as file:
        file.write((CAPTURES / "rmq40_b_consumer_credit.pcapng").read_bytes())
    good = [*(folder / name for name in NAMES), *sorted((folder / "deeper").iterdir())]
    told_of = []
    target = tmp_path / "trace"
    result = ingest(reader, folder, target, progress=lambda *at: told_of.append(at))
    alone = import_capture(good).rows
    assert {row.run[:6] for row in alone} == {"rmq40_", "rmq43_", "client", "small-"}
    assert by_run(files.read(target)) == by_run(alone)
    assert (result.files, result.rows) == (5, len(alone))
    assert [text.split(":")[0] for text in result.failures] == ["broken.pcap"]
    assert told_of[-1] == (6, 6)
    assert sorted(path.name for path in target.iterdir()) == sorted(
        f"{run}.parquet" for run in {row.run for row in alone}
    )

    # What is there already is not decoded again, and what was lost comes back.
    lost = sorted(target.iterdir())[0]
    lost.unlink()
    again = ingest(reader, folder, target)
    assert (again.files, again.kept) == (1, 4)
    assert by_run(files.read(target)) == by_run(alone)


@pytest.mark.slow
def test_what_was_killed_goes_on_and_leaves_nothing(spark, folder, tmp_path):
    """The remains of an import that died are taken away; a name that Spark cannot read is mended.

    The same capture under another name of the same stem is told and not doubled.
    """
    target = tmp_path / "tra[c]e{s}"
    remains = target / f".import.{platform.node()}.999999999"
    remains.mkdir(parents=True)
    (remains / "half.parquet").write_bytes(b"PAR1")
    shutil.copy(folder / NAMES[0], folder / "21:00 [1].pcap1")
    (folder / "again").mkdir()
    shutil.copy(folder / NAMES[1], folder / "again" / NAMES[1])
    result = ingest(spark, folder, target)
    assert result.files == 4
    assert sorted(text.split(":")[1] for text in result.failures) == [
        " not a capture", " the same capture was given twice"
    ]  # fmt: skip
    trace = open_trace(spark, target)
    assert trace.rows == trace.frame.count() == result.rows
    names = {path.name for path in target.iterdir()}
    assert any(name.startswith("21_00 _1_-") for name in names)
    assert not any(name.startswith(".") for name in names)


def test_strict_keeps_nothing_where_one_is_bad(reader, folder, tmp_path):
    """Not one file, and no folder."""
    result = ingest(reader, folder, tmp_path / "trace", strict=True)
    assert (result.files, result.rows, len(result.failures)) == (0, 0, 1)
    assert not (tmp_path / "trace").exists()
    (folder / "broken.pcap").unlink()
    assert ingest(reader, folder, tmp_path / "trace", strict=True).files == 3


def test_what_is_there_is_read_again_to_take_secrets_out(reader, folder, tmp_path):
    """It may hold them."""
    target = tmp_path / "trace"
    ingest(reader, folder, target)
    assert ingest(reader, folder, target, redact=True).kept == 0
    alone = import_capture([folder / name for name in NAMES], redact=True).rows
    assert by_run(files.read(target)) == by_run(alone)


def test_of_a_capture_that_cannot_be_read_to_its_end_nothing_is_kept(tmp_path, monkeypatch):
    """What it gave until then is no trace of it; parts that were whole before stay."""
    whole, path = (Path(shutil.copy(CAPTURES / name, tmp_path)) for name in NAMES[:2])
    order = Order(place=str(tmp_path / "aside"), there="", port=None, redact=False)
    (tmp_path / "aside").mkdir()
    tables = Capture.tables

    def broken(self, progress=None):
        yield from tables(self, progress)
        if self.path == path:
            raise CaptureError(f"{path.name}: it went away")

    monkeypatch.setattr(Capture, "tables", broken)
    assert write_part(str(whole), 0, order).rows
    assert write_part(str(path), 1, order).problem == f"{path.name}: it went away"
    assert [part.name for part in (tmp_path / "aside").iterdir()] == ["0.parquet"]


SHARED = Path("/dev/shm")


@pytest.mark.skipif(not SHARED.is_dir(), reason="there is no other file system")
def test_all_or_nothing_needs_no_place_beside_the_folder(reader, folder, tmp_path):
    """Which may be where another file system begins."""
    with TemporaryDirectory(dir=SHARED) as inner:
        trace = tmp_path / "shared"
        trace.symlink_to(inner)  # as what is mounted there, it is another file system
        ingest(reader, folder / NAMES[0], trace, strict=True)
        assert len(list(trace.iterdir())) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["[prod] x.pcapng", "_x.pcapng", ".x.pcapng"])
def test_a_part_is_read_whatever_its_capture_is_called(tmp_path, name):
    """Names that begin so are those of files that nobody reads."""
    path = shutil.copy(CAPTURES / NAMES[0], tmp_path / name)
    ingest(None, path, tmp_path / "trace")
    assert files.read(tmp_path / "trace") == import_capture(path).rows


@pytest.mark.slow
def test_captures_and_traces_may_lie_at_a_url(spark, folder, tmp_path):
    """Nothing asks for a local path: the tasks fetch and send, and the names are put right."""
    target = f"{tmp_path.as_uri()}/trace"
    result = ingest(spark, f"{folder.as_uri()}/rmq*.pcapng", target)
    alone = import_capture([folder / name for name in NAMES]).rows
    assert by_run(files.read(tmp_path / "trace")) == by_run(alone)
    assert (result.files, open_trace(spark, target).rows) == (3, len(alone))
    again = ingest(spark, folder.as_uri(), target)
    assert (again.files, again.kept) == (0, 3)
    assert again.failures[0].startswith("broken.pcap: not a capture")
    shutil.copy(next((tmp_path / "trace").iterdir()), tmp_path / "trace" / "again.parquet")
    with pytest.raises(AnalysisError, match=r"trace: run rmq.*: column seq has a number twice"):
        open_trace(spark, target)
    part = tmp_path / "trace" / "again.parquet"
    thin = pq.read_table(part).drop_columns(["vantage"]).replace_schema_metadata(None)
    pq.write_table(thin, part)
    with pytest.raises(
        AnalysisError, match=r"trace/again\.parquet: not a trace: missing columns vantage"
    ):
        open_trace(spark, part.as_uri())
    with pytest.raises(AnalysisError, match=r"^nowhere://host/x\.pcap: Unrec"):
        ingest(spark, "nowhere://host/x.pcap", target)


@pytest.mark.parametrize("at_url", [False, True])
def test_a_full_disk_leaves_no_half_a_trace(reader, folder, tmp_path, at_url):
    """One line that names the folder, and nothing is left [the folder's disk has 64 kB]."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk):
        target = disk / "trace"
        (disk / "filler").write_bytes(bytes(60_000))
        with pytest.raises(AnalysisError, match=r"trace: .*(no space left|No space left)"):
            ingest(reader, folder, target.as_uri() if at_url else target)
        left = {path.name for path in disk.rglob("*")}
        assert left == ({"filler", "trace"} if at_url else {"filler"})


@contextmanager
def mounted(place):
    """A small disk in memory at a folder; who may not mount one skips the test."""
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("at_url", [False, True])
def test_the_trace_tells_its_version(reader, folder, tmp_path, at_url):
    """At a path and at a URL."""
    target = tmp_path / "trace"
    ingest(reader, folder / NAMES[0], target.as_uri() if at_url else target)
    (part,) = (tmp_path / "trace").iterdir()
    assert version_in(pq.read_schema(part).metadata) == SCHEMA_VERSION


def test_a_rotating_tcpdump_s_names_are_captures(folder):
    """And a note that lies beside them is none."""
    (folder / "note.txt").write_text("how it was made")
    (folder / "client.log").write_text('[0x55]:  -> @open(16) [container-id="a"]')
    (folder / "D.PCAP12").write_bytes(b"")
    (folder / "[x].pcap").write_bytes(b"")
    names = {Path(name).name for name in captures(folder)}
    assert names == {*NAMES, "broken.pcap", "client.log", "D.PCAP12", "[x].pcap"}
    assert captures(folder / "[x].pcap") == [str(folder / "[x].pcap")]


def test_no_good_capture_is_an_error(reader, tmp_path):
    """Nothing is written, and each file has its line."""
    (tmp_path / "a.pcap").write_bytes(b"nothing")
    with pytest.raises(AnalysisError, match=r"a\.pcap"):
        ingest(reader, tmp_path / "a.pcap", tmp_path / "trace")
    assert not (tmp_path / "trace").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(AnalysisError, match="no capture there"):
        captures(tmp_path / "empty")
