"""AMQP 0-9-1: the Spark queries and the plain folds, over all its captures and a run."""

import dataclasses

import pytest

from tests.folds.test_channels import flooded
from workbench import folds
from workbench.analysis.chunks import Chunks
from workbench.capture.importer import import_capture
from workbench.scenarios.run import run

from .runs import CAPTURES
from .test_questions import collected, question, same

CUT = Chunks(rows=60, tasks=3)


@pytest.fixture(scope="module")
def rows():
    """Captures of AMQP 0-9-1, a run of a chain that is blocked, also from one end, and of 1.0."""
    captured = import_capture(sorted(CAPTURES.glob("amqp091/*.pcapng"))).rows
    played = flooded()
    sent = [row for row in played if not row.is_frame or row.vantage == "broker"]
    found = [*captured, *played]
    found += [dataclasses.replace(row, run="from one end") for row in sent]
    return found + [dataclasses.replace(row, run="1.0") for row in run("credit").rows]


@pytest.fixture(scope="module")
def trace(as_trace, rows):
    """The same rows in Spark; the questions share it."""
    return as_trace(rows).cache()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["latency", "throughput", "stalls"])
def test_a_question_is_the_fold_s(trace, rows, name):
    """Every column of every row."""
    folded = folds.QUESTIONS[name].answer(rows)
    assert len(folded) > 10
    assert {row["link_sender"] for row in folded if row["link"] is None} == {"client", "broker"}
    if name == "stalls":
        assert {row["brake"] for row in folded} >= {"prefetch", "alarm", "credit-flow"}
    same(collected(question(name)(chunks=CUT)(trace)), folded)


@pytest.mark.slow
def test_prefetch_is_the_fold_s(trace, rows):
    """What each consumer has, frame by frame."""
    folded = folds.QUESTIONS["prefetch"].answer(rows)
    assert {row["full"] for row in folded} == {True, False}
    same(collected(question("prefetch")(chunks=CUT)(trace)), folded)


@pytest.mark.slow
def test_both_protocols_are_compared_as_the_fold_does(trace, rows):
    """The chain, over 0-9-1, against a run of 1.0."""
    one, other = "run = '1.0'", "run != '1.0'"
    left, right = ([row for row in rows if (row.run == "1.0") is is_] for is_ in (True, False))
    answer = question("compare")(trace.where(other), chunks=CUT)(trace.where(one))
    same(collected(answer), folds.compare(left, right))
