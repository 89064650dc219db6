"""Each question twice: the Spark query and the plain fold, both written from `data/README.md`."""

import math

import pytest

from workbench import folds
from workbench.analysis.chunks import Chunks
from workbench.analysis.windows import windows

from .runs import all_rows


@pytest.fixture(scope="module")
def rows():
    return all_rows()


@pytest.fixture(scope="module")
def trace(as_trace, rows):
    return as_trace(rows).cache()


def same(answer, folded):
    """Both tables hold the same rows, in whatever order."""
    asked = [row.asDict() for row in answer.collect()]
    names = list(folded[0])
    assert set(answer.columns) == set(names)

    def order(row):
        return tuple(str(row[name]) for name in names if not isinstance(row[name], float))

    asked.sort(key=order)
    for found, wanted in zip(asked, sorted(folded, key=order), strict=True):
        for name in names:
            if isinstance(wanted[name], float) and found[name] is not None:
                assert math.isclose(found[name], wanted[name], rel_tol=1e-9), (name, found, wanted)
            else:
                assert found[name] == wanted[name], (name, found, wanted)


@pytest.mark.parametrize("chunk", [7, 1 << 20])
def test_windows_are_the_fold_s(trace, rows, chunk):
    """Every session, both ways."""
    same(windows(Chunks(rows=chunk, tasks=3))(trace), folds.windows(rows))
