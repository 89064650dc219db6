"""A long run out of a short one, and a large capture out of small ones, say what those say."""

import pytest

from benchmarks.grown import StretchError, stretch
from benchmarks.replayed import CAPTURES, Replay
from workbench.capture.importer import import_capture
from workbench.folds.credit import credit_rows
from workbench.scenarios.run import run
from workbench.trace import files

STEADY = {"policy": "top-up-at-half", "n": 10, "acknowledge": "auto"}


def played(messages, **more):
    """A consumer that tops up at half, from a queue with so many messages."""
    return run("credit", "rmq4.3", {"messages": messages, **STEADY, **more}).rows


def counters(rows, count):
    """What both ends of the link have, in the first so many rows; the runs' names differ."""
    return [row[1:] for row in credit_rows(rows) if row.seq < count]


@pytest.mark.parametrize("start", [pytest.param(0, marks=pytest.mark.slow), 2**32 - 100])
def test_a_stretched_run_has_the_counters_of_a_long_one(tmp_path, start):
    """Frame by frame, to the end of the long one, also where the count goes round."""
    long = played(400, initial_delivery_count=start)
    path = tmp_path / "stretched.parquet"
    count = stretch(path, played(100, initial_delivery_count=start), len(long))
    rows = list(files.iter_rows(path))
    assert len(rows) == count >= len(long)
    steady = len(long) - 100  # its queue runs empty at last, which that of a stretched run does not
    assert counters(rows, steady) == counters(long, steady)
    for row, wanted in zip(rows[:steady], long, strict=False):
        assert (row.seq, row.t_us, row.event, row.kind, row.frame_id) == (
            wanted.seq, wanted.t_us, wanted.event, wanted.kind, wanted.frame_id,
        )  # fmt: skip


def test_a_run_that_does_not_repeat_itself_is_refused(tmp_path):
    """One line that says where."""
    with pytest.raises(StretchError, match="do not repeat themselves"):
        stretch(tmp_path / "none.parquet", played(3), 1_000)
    assert not list(tmp_path.iterdir())


def test_a_replayed_capture_has_the_frames_of_each_copy(tmp_path):
    """Each copy on connections of its own, and nothing of it is missing."""
    path, replay = tmp_path / "replayed.pcapng", Replay(CAPTURES[:2])
    copies = replay.write(path, 3 * replay.frames)
    whole = [import_capture(each).rows for each in (*CAPTURES[:2], path)]
    assert copies == 3
    assert len(whole[2]) == 3 * (len(whole[0]) + len(whole[1]))
    assert len({row.connection for row in whole[2]}) == 3 * 2
