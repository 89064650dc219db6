"""AMQP 0-9-1 and 0-10: the Spark queries and the plain folds, over all captures and runs."""

import dataclasses
import random

import pytest

from tests.folds.test_channels import (
    INSIDE,
    flooded,
    on_the_wire,
    renumbered,
    windowed,
)
from workbench import folds
from workbench.analysis.chunks import Chunks
from workbench.capture.importer import import_capture
from workbench.scenarios.run import run

from .made import again, begun_late, captured, holed, one_sided
from .runs import CAPTURES
from .test_questions import collected, question, same

CUT = Chunks(rows=60, tasks=3)


def given_anew(draw, rows):
    """Every number twice, and only what has it the second time is answered."""
    answers = ("basic.ack", "basic.nack", "session.completed")
    return [row for row in again(draw, rows)
            if row.seq > rows[-1].seq or row.kind not in answers]  # fmt: skip


def answered_ahead(draw, rows):
    """Answers that speak of all up to a message that was not sent yet, or never."""
    return [
        dataclasses.replace(row, frame_091={
            **row.frame_091, "multiple": True,
            "delivery_tag": row.frame_091["delivery_tag"] + draw.choice((0, 1, 3, 100)),
        }) if row.kind in ("basic.ack", "basic.nack") else row for row in rows
    ]  # fmt: skip


def not_all_told(draw, rows):
    """Half of the rows do not say how many messages are not acknowledged."""
    return [
        dataclasses.replace(row, ledger={**row.ledger, "unacknowledged": None})
        if row.ledger and draw.random() < 0.5 else row for row in rows
    ]  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    """Captures of AMQP 0-9-1, and runs of each protocol: whole, from one end, and spoiled."""
    real = import_capture(sorted(CAPTURES.glob("amqp091/*.pcapng"))).rows
    played = flooded()
    sent = [row for row in played if not row.is_frame or row.vantage == "broker"]
    found = [*real, *played]
    found += [dataclasses.replace(row, run="from one end") for row in sent]
    draw, window = random.Random(5), windowed()
    found += [*window, *on_the_wire(window), *renumbered(window, 2**32 - 3)]
    found += [dataclasses.replace(row, run="java") for row in windowed("broker-j", most=10)]
    of_wire = on_the_wire(window)
    answered = [row for row in real if row.run.startswith("rmq43_k1")]
    full = [row for row in real if row.run.startswith("rmq43_q1")]
    for number, (change, its) in enumerate(
        [(change, window) for change in (begun_late, holed, one_sided, captured, again)]
        + [(change, of_wire) for change in (begun_late, holed, holed, again)]
        + [(begun_late, played), (holed, played), (given_anew, answered)]
        + [(change, its) for change in (answered_ahead, not_all_told) for its in (answered, full)]
    ):
        name = f"{number} {change.__name__}"
        found += [dataclasses.replace(row, run=name) for row in change(draw, its)]
    for inside, acts in INSIDE.items():
        for number in range(30):
            its = inside(run=f"{number} {inside.__name__}")
            for act in draw.choices(acts, k=60):
                its.act(*act)
            found += its.rows
    found += [dataclasses.replace(row, run="overload") for row in run("overload").rows]
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
        told = {(row["brake"], row["evidence"]) for row in folded}
        assert told >= {
            ("prefetch", "later-frames"), ("prefetch", "internal"), ("alarm", "internal"),
            ("credit-flow", "internal"),
            ("qpid-window", "internal"), ("qpid-window", "later-frames"),
            ("link-credit", "internal"), ("link-credit", "later-frames"),
        }  # fmt: skip
    same(collected(question(name)(chunks=CUT)(trace)), folded)


@pytest.mark.slow
def test_prefetch_is_the_fold_s(trace, rows):
    """What each consumer has, frame by frame."""
    folded = folds.QUESTIONS["prefetch"].answer(rows)
    assert {row["full"] for row in folded} == {True, False, None}
    same(collected(question("prefetch")(chunks=CUT)(trace)), folded)


@pytest.mark.slow
def test_protocols_are_compared_as_the_fold_does(trace, rows):
    """All of 0-9-1 and 0-10 against a run of 1.0."""
    one, other = "run = '1.0'", "run != '1.0'"
    left, right = ([row for row in rows if (row.run == "1.0") is is_] for is_ in (True, False))
    answer = question("compare")(trace.where(other), chunks=CUT)(trace.where(one))
    same(collected(answer), folds.compare(left, right))
