"""Each question twice: the Spark query and the plain fold, both written from `data/README.md`."""

import importlib
import math

import pytest

from workbench import folds
from workbench.analysis.chunks import Chunks
from workbench.analysis.errors import AnalysisError
from workbench.analysis.throughput import throughput

from .made import made_rows
from .runs import all_rows

CUT = Chunks(rows=60, tasks=3)
WHOLE = Chunks(whole=True)


@pytest.fixture(scope="module")
def rows():
    """Every scenario, every capture, and 34 runs that are cut, shifted and spoiled."""
    return [*all_rows(), *made_rows(seed=6, runs=30)]


@pytest.fixture(scope="module")
def trace(as_trace, rows):
    """The same rows in Spark; the questions share it."""
    return as_trace(rows).cache()


def question(name):
    """The query of that name."""
    return getattr(importlib.import_module(f"workbench.analysis.{name}"), name)


def same(answer, folded):
    """Both tables hold the same rows, in whatever order."""
    asked = [row.asDict() for row in answer.collect()]
    names = list(folded[0])
    assert set(answer.columns) == set(names)
    # What is a number on one side and null on the other must not change the order.
    keys = [name for name in names if not any(isinstance(row[name], float) for row in folded)]

    def by_key(row):
        return tuple(str(row[name]) for name in keys)

    asked.sort(key=by_key)
    for found, wanted in zip(asked, sorted(folded, key=by_key), strict=True):
        for name in names:
            if isinstance(wanted[name], float) and found[name] is not None:
                assert math.isclose(found[name], wanted[name], rel_tol=1e-9), (name, found, wanted)
            else:
                assert found[name] == wanted[name], (name, found, wanted)


@pytest.mark.parametrize("name", ["windows", "latency", "throughput", "grants", "violations"])
def test_a_question_of_a_trace_cut_into_chunks_is_the_fold_s(trace, rows, name):
    """Links, sessions and messages go on from chunk to chunk."""
    same(question(name)(chunks=CUT)(trace), getattr(folds, name)(rows))


@pytest.mark.parametrize("name", ["violations", "windows"])
def test_a_question_of_a_small_trace_is_the_fold_s(trace, rows, name):
    """The same without chunks, for which a sum and a peak are worked out in one go."""
    same(question(name)(chunks=WHOLE)(trace), getattr(folds, name)(rows))


def test_two_traces_are_compared_as_the_fold_does(trace, rows):
    """Totals and samples of all runs against those of the captures."""
    right = [row for row in rows if row.run.startswith("rmq")]
    answer = question("compare")(trace.where("run like 'rmq%'"), chunks=WHOLE)(trace)
    same(answer, folds.compare(rows, right))


def test_the_spoiled_runs_hold_what_they_are_for(rows):
    """Each kind of violation is there, and what is not certain, and what was never known."""
    found = folds.violations(rows)
    assert {row["what"] for row in found} >= {
        "beyond-credit", "beyond-window", "delivery-id-order", "id-never-sent", "handle-unknown",
        "no-answer", "handle-in-use", "handle-too-high", "delivery-id-changed",
    }  # fmt: skip
    assert {row["certain"] for row in found} == {True, False}
    assert {row["known"] for row in folds.grants(rows)} == {True, False}
    assert {row["measure"] for row in folds.latency(rows)} == {
        "settlement", "grant", "drain", "echo",
    }  # fmt: skip


def test_a_window_without_length_is_refused():
    """One line that says what is legal."""
    with pytest.raises(AnalysisError, match="a window of 0 µs has no length; legal: 1 or more"):
        throughput(window_us=0)
