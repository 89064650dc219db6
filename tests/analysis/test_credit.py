"""Both counters of every link, from the wire alone."""

from dataclasses import replace
from random import Random

import pytest

from tests.folds.conversations import CONVERSATIONS, rows_of
from workbench.analysis.chunks import Chunks
from workbench.analysis.credit import credit
from workbench.folds import credit_rows
from workbench.scenarios.run import run

from .made import TWO_LINKS, behind_attaches
from .runs import all_rows, capture_rows


@pytest.fixture(scope="module")
def rows():
    return all_rows()


@pytest.fixture(scope="module")
def trace(as_trace, rows):
    return as_trace(rows).cache()


def ledgers(rows):
    """The counters that each row of a link was recorded with."""
    return {
        (row.run, row.seq): ((row.ledger or {}).get("delivery_count"), row.ledger["link_credit"])
        for row in rows
        if row.is_frame and row.link and row.ledger and "link_credit" in row.ledger
    }


CUT, WHOLE = Chunks(rows=5, tasks=3), Chunks(whole=True)


LONG = pytest.mark.slow


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(CUT, id="cut", marks=LONG),
        pytest.param(replace(CUT, rows=64), id="cut little", marks=LONG),
        pytest.param(replace(CUT, rows=1 << 20), id="one chunk", marks=LONG),
        pytest.param(WHOLE, id="whole", marks=LONG),
    ],
)
def test_the_wire_alone_gives_the_recorded_ledgers(trace, rows, chunks):
    """Own, shadow and observed counters follow from the frames, however the trace is cut."""
    answer = credit(chunks)(trace).collect()
    found = {(row.run, row.seq): (row.delivery_count, row.link_credit) for row in answer}
    recorded = ledgers(rows)
    assert len(answer) == len(found)
    assert {key: found[key] for key in recorded} == recorded


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(replace(CUT, rows=9), id="cut", marks=LONG),
        pytest.param(WHOLE, id="whole", marks=LONG),
    ],
)
def test_a_plain_fold_gives_the_same_rows(trace, rows, chunks):
    """The Spark question and a fold written from the definitions agree in every column."""
    answer = credit(chunks)(trace).collect()
    assert sorted(map(tuple, answer), key=_place) == sorted(
        map(tuple, credit_rows(rows)), key=_place
    )


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [replace(CUT, rows=9), WHOLE], ids=["cut", "whole"])
def test_a_count_that_the_importer_has_found_out_is_taken(as_trace, chunks):
    """Of links that were attached before the capture, for no frame tells it."""
    captured = [row for row in capture_rows() if row.run.startswith(TWO_LINKS)]
    rows = behind_attaches(Random(1), captured)
    answer = credit(chunks)(as_trace(rows)).collect()
    assert sorted(map(tuple, answer), key=_place) == sorted(
        map(tuple, credit_rows(rows)), key=_place
    )
    assert 0 < sum(row.known for row in answer) < len(answer)


@LONG
def test_every_gap_leaves_open_what_follows_it(as_trace):
    """However many there are, and whose frames are missing: what both say is the fold's."""
    busy = {"messages": 40, "policy": "one-at-a-time", "acknowledge": "auto"}
    rows = list(run("credit", "rmq4.3", busy).rows)
    frames = [at for at, row in enumerate(rows) if row.is_frame]
    for number, at in enumerate(frames[20::9]):
        peer = {"from_peer": ("client", "broker")[number % 2]}
        rows[at] = replace(rows[at], event="gap", protocol="internal", frame=None, details=peer)
    assert sum(row.event == "gap" for row in rows) > 10
    answer = credit(WHOLE)(as_trace(rows)).collect()
    folded = credit_rows(rows)
    assert {row.known for row in folded} == {True, False}
    assert sorted(map(tuple, answer), key=_place) == sorted(map(tuple, folded), key=_place)


def test_each_rule_of_the_counters_is_the_fold_s(as_trace):
    """By the shortest conversations that tell them, cut in the middle."""
    rows = [row for name in CONVERSATIONS for row in rows_of(name)]
    answer = credit(replace(CUT, rows=3))(as_trace(rows)).collect()
    folded = credit_rows(rows)
    assert sorted(map(tuple, answer), key=_place) == sorted(map(tuple, folded), key=_place)


def _place(row):
    return row[0], row[6]
