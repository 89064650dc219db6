"""The write-ahead log: one batch at a time, and what a crash leaves of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.queues.raft import Entry
from workbench.queues.wal import Done, WriteAheadLog


def entries(first, count, term=1):
    """So many entries from an index on."""
    return tuple(Entry(index, term, None) for index in range(first, first + count))


def test_what_comes_during_a_sync_is_the_next_batch():
    """The first write goes alone; the twenty that come meanwhile share the second fsync."""
    wal = WriteAheadLog()
    wal.write("q", entries(1, 1), 0)
    assert wal.begin() == 1
    for index in range(2, 22):
        wal.write("q", entries(index, 1), 0)
    assert wal.begin() == 0
    assert wal.finish() == [Done("q", 1, 0)]
    assert wal.begin() == 20
    assert wal.finish() == [Done("q", 21, 0)]
    assert (wal.batches, wal.entries) == (2, 21)


def test_all_queues_of_a_node_share_the_batch():
    """One fsync serves every queue, and each hears how far it has got."""
    wal = WriteAheadLog()
    wal.write("a", entries(1, 2), 0)
    wal.write("b", entries(1, 1), 3)
    wal.write("a", entries(3, 1), 0)
    assert wal.begin() == 4
    assert wal.finish() == [Done("a", 3, 0), Done("b", 1, 3)]


def test_a_batch_has_at_most_8192_entries():
    """What is beyond waits for the next fsync."""
    wal = WriteAheadLog()
    for index in range(1, 10_001):
        wal.write("q", entries(index, 1), 0)
    assert wal.begin() == 8192
    assert wal.waiting == 10_000 - 8192


@pytest.mark.parametrize(("saved", "left"), [(0, 2), (1, 3), (2, 4), (3, 5), (9, 5)])
def test_a_crash_between_write_and_fsync_leaves_a_beginning_of_the_batch(saved, left):
    """What waits is lost; of the batch under way the first entries may have reached the disk."""
    wal = WriteAheadLog()
    wal.write("q", entries(1, 2), 0)
    wal.begin()
    wal.finish()
    wal.write("q", entries(3, 3), 0)
    wal.begin()
    wal.write("q", entries(6, 4), 0)
    assert wal.crash(saved) == 7 - (left - 2)
    assert wal.restore("q").last_index == left
    assert (wal.busy, wal.waiting, wal.syncing) == (False, 0, 0)


def test_a_later_write_at_the_same_index_takes_the_place_of_all_behind():
    """A new leader's entry overwrites; the disk holds what was written last."""
    wal = WriteAheadLog()
    wal.write("q", entries(1, 5, term=1), 0)
    wal.write("q", entries(3, 1, term=2), 1)
    wal.begin()
    wal.finish()
    assert [entry.term for entry in wal.restore("q").entries()] == [1, 1, 2]


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["write", "begin", "finish", "crash"]), max_size=40))
def test_only_what_was_synced_is_on_disk(acts):
    """Whatever is done in whatever order, the disk holds the finished batches and no more."""
    wal = WriteAheadLog()
    written, syncing, safe = 0, 0, 0
    for act in acts:
        if act == "write":
            wal.write("q", entries(written + 1, 1), 0)
            written += 1
        elif act == "begin":
            if wal.begin():
                syncing = written
        elif act == "finish":
            wal.finish()
            safe = max(safe, syncing)
        else:
            wal.crash()
            written = syncing = safe
        assert wal.restore("q").last_index == safe
        assert wal.waiting + wal.syncing == written - safe


def test_a_writer_that_is_forgotten_leaves_nothing_even_of_a_batch_under_way():
    """The fsync goes on and serves the others; the log stays busy until it is done."""
    wal = WriteAheadLog()
    wal.write("q", entries(1, 2), 0)
    wal.begin()
    wal.finish()
    wal.write("q", entries(3, 1), 0)
    wal.write("other", entries(1, 1), 0)
    wal.begin()
    wal.write("q", entries(4, 1), 0)
    wal.forget("q")
    assert wal.busy
    assert wal.waiting == 0
    assert wal.finish() == [Done("other", 1, 0)]
    assert "q" not in wal.disk
