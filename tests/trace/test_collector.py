"""Python's garbage collector looks less often while many rows are made, then as before."""

import gc
from pathlib import Path

import pytest

from workbench.capture import columns
from workbench.capture.importer import Capture
from workbench.scenarios.run import run
from workbench.trace.collector import seldom_collected

CAPTURE = Path(__file__).parents[2] / "data" / "captures" / "rmq43_b_consumer_credit.pcapng"


def test_the_collector_is_as_it_was_whatever_happens_within():
    """Its thresholds are the user's: a kernel may have others than Python's own."""
    before = gc.get_threshold()

    @seldom_collected()
    def divided():
        assert gc.get_threshold()[0] > before[0]
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        divided()
    assert gc.get_threshold() == before


def test_a_capture_that_is_not_read_to_its_end_gives_the_collector_back(monkeypatch):
    """Its tables come from a generator, which may be left before its end."""
    monkeypatch.setattr(columns, "BATCH_ROWS", 10)
    before = gc.get_threshold()
    tables = Capture(CAPTURE).tables()
    next(tables)
    assert gc.get_threshold() != before
    tables.close()
    assert gc.get_threshold() == before


def test_a_run_is_played_without_a_look_at_its_objects_again_and_again():
    """And looks as often as before when it is over."""
    played = run("credit", parameters={"messages": 200})
    before, looks = gc.get_threshold(), []

    def looked(phase, _info):
        looks.append(phase)

    gc.callbacks.append(looked)
    try:
        gc.set_threshold(100, *before[1:])
        looks.clear()
        played.then("grant", link_credit=200)
        assert len(looks) < 10
        assert gc.get_threshold() == (100, *before[1:])
    finally:
        gc.callbacks.remove(looked)
        gc.set_threshold(*before)
