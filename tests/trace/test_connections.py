"""A trace on disk by connection: every row once, each connection whole."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.analysis.runs import CAPTURES, scenario_rows
from workbench.capture.importer import import_capture
from workbench.folds.story import Packets, story, story_in_parts
from workbench.trace import files
from workbench.trace.connections import Connections

NAMES = (
    "rmq43_f_memory_alarm", "amqp091/rmq43_b1_amqp091_memory_alarm",
    "amqp091/rmq43_e1_amqp091_errors", "overload", "two_queues", "chain", "qpid",
)  # fmt: skip


@pytest.fixture(scope="module", params=NAMES)
def rows(request):
    """Of captures with several connections, and of runs, which tell of alarms and of insides."""
    path = CAPTURES / f"{request.param}.pcapng"
    return import_capture(path).rows if path.exists() else scenario_rows()[request.param]


@pytest.fixture
def there(rows, tmp_path):
    """The same on disk, in two row groups."""
    with files.TraceWriter(tmp_path / "t.parquet", group_rows=len(rows) // 2 + 1) as writer:
        for row in rows:
            writer.write(row)
    return Connections(tmp_path / "t.parquet")


@pytest.mark.parametrize("most", [1, 40, 10_000])
def test_each_part_has_all_rows_of_its_connections_and_those_of_none(rows, there, most):
    """In their order, and no row of a connection twice."""
    parts = list(there.parts(most))
    assert {name for name, _ in there.sizes.items()} == {row.connection for row in rows}
    assert (there.runs, there.last_us) == ({rows[0].run}, rows[-1].t_us)
    seen = []
    for part in parts:
        names = {row.connection for row in part} - {None}
        assert part == [
            replace(row, raw=None, item=None) for row in rows
            if row.connection is None or row.connection in names
        ]  # fmt: skip
        assert len(names) <= 1 or sum(there.sizes[name] for name in names) <= most
        seen += names
    assert sorted(seen) == sorted(there.sizes.keys() - {None})


@pytest.mark.parametrize("most", [1, 40])
def test_a_trace_is_read_once_however_many_parts_it_has(there, most, monkeypatch):
    """Long connections side by side are in every row group: 30 of them are no 30 readings."""
    read = []

    def batches(file, columns, **more):
        for batch in files.batches(file, columns, **more):
            read.append(batch["seq"][0].as_py())
            yield batch

    monkeypatch.setattr("workbench.trace.connections.batches", batches)
    assert len(list(there.parts(most))) == len(there.sizes.keys() - {None}) or most > 1
    assert len(read) == len(set(read)) == 2


def test_where_rows_wait_there_may_be_no_room(there, monkeypatch):
    """It is told in a line that names the place."""

    def full(**_given):
        return Path("/dev/full").open("w+b")

    monkeypatch.setattr("workbench.trace.connections.HELD_OCTETS", 1)
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(files.TraceFileError, match="rows cannot wait there: No space left"):
        list(there.parts())


@pytest.mark.parametrize("most", [1, 40])
def test_a_story_in_parts_is_the_story(rows, there, most):
    """Connections have only alarms in common, and those are in every part; in whatever order."""
    parts, whole = list(there.parts(most)), story(rows)
    for its in (parts, parts[::-1]):
        assert story_in_parts(its, Packets(), there.last_us, whole.clock) == whole
