"""Something to send and a brake on: the same intervals by Spark and by a plain fold."""

import pytest

from workbench import folds
from workbench.analysis.chunks import Chunks
from workbench.analysis.stalls import stalls

from .runs import all_rows


@pytest.fixture(scope="module")
def rows():
    return all_rows()


@pytest.mark.parametrize("chunk", [11, 1 << 20])
def test_a_plain_fold_finds_the_same_stalls(as_trace, rows, chunk):
    """On every scenario and capture, however the trace is cut."""
    answer = stalls(chunks=Chunks(rows=chunk, tasks=3))(as_trace(rows)).collect()
    found = sorted(map(tuple, answer), key=lambda row: (row[0], row[6], str(row[:6])))
    assert found == list(map(tuple, folds.stalls(rows)))
    assert {row[-1] for row in found} >= {"internal", "later-frames"}
