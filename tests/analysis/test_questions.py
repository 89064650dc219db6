"""Each question twice: the Spark query and the plain fold, both written from `data/README.md`."""

import importlib
import math

import pytest

from workbench import folds
from workbench.analysis.chunks import Chunks
from workbench.analysis.errors import AnalysisError
from workbench.analysis.throughput import throughput

from .made import told_apart

CUT = Chunks(rows=60, tasks=3)
CONNECTED = ("violations", "throughput", "latency", "credit", "prefetch")
"""Asked through Spark Connect, cut into chunks (`test_connect`)."""
WHOLE = Chunks(whole=True)


@pytest.fixture(scope="module")
def trace(as_trace, rows):
    """The same rows in Spark; the questions share it."""
    return as_trace(rows).cache()


def question(name):
    """The query of that name."""
    return getattr(importlib.import_module(f"workbench.analysis.{name}"), name)


def same(answer, folded):
    """Both tables hold the same rows, in whatever order."""
    columns, asked = answer
    names = list(folded[0])
    assert set(columns) == set(names)
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


ASKED = [
    ("grants", CUT),
    ("windows", CUT),
    ("violations", WHOLE),
    ("windows", WHOLE),
    ("throughput", WHOLE),
]


# In modules of their own, with traces of theirs, with two of them, or through Spark Connect.
ELSEWHERE = {"summary", "stalls", "credit", "prefetch", "compare", *CONNECTED}


def test_every_question_is_asked_of_both_engines():
    """Each has a fold and a Spark query, which must agree."""
    asked = {name for name, _ in ASKED}
    assert asked | ELSEWHERE == folds.QUESTIONS.keys(), "ask it here, cut into chunks and whole"


def collected(answer):
    """Its columns and its rows."""
    return answer.columns, [row.asDict() for row in answer.collect()]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "chunks"), ASKED)
def test_a_question_is_the_fold_s(trace, rows, name, chunks):
    """In one go, or cut into chunks, where links, sessions and messages go on in the next."""
    same(collected(question(name)(chunks=chunks)(trace)), folds.QUESTIONS[name].fold(rows))


@pytest.mark.slow
def test_two_traces_are_compared_as_the_fold_does(trace, rows):
    """Totals and samples of all runs against those of the captures."""
    right = [row for row in rows if row.run.startswith("rmq")]
    captures = trace.where("run like 'rmq%'")
    answer = question("compare")(captures, chunks=WHOLE)(trace)
    same(collected(answer), folds.compare(rows, right))


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
        "settlement", "grant", "drain", "echo", "confirm", "ack", "completion",
    }  # fmt: skip


def test_an_answer_to_one_link_is_none_to_another_and_half_an_attach_no_proof():
    """What is passed over is said of the link that asked; D is known with the sender's attach."""
    found = {
        (row["run"], row["link"], row["what"], row["certain"])
        for row in folds.violations(told_apart())
    }
    assert found >= {
        ("asked of two", "b", "no-answer", True),
        ("one attach", "a", "beyond-credit", False),
    }
    assert ("asked of two", "a", "no-answer", True) not in found


def test_a_window_without_length_is_refused():
    """One line that says what is legal."""
    with pytest.raises(AnalysisError, match="a window of 0 µs has no length; legal: 1 or more"):
        throughput(window_us=0)
