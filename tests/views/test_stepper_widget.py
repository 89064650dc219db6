"""The widget without a browser: traits, stills and slices."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from workbench.capture.importer import import_capture
from workbench.scenarios import run
from workbench.trace import fold
from workbench.views.panel_widget import panel
from workbench.views.reader import Reader
from workbench.views.stepper_doc import schema
from workbench.views.stepper_widget import StepperWidget, stepper, window

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data/captures"


def test_a_stepper_over_rows_begins_at_the_start(racing):
    """Step 0 is the state before the first row; its row number is one less."""
    widget = stepper(racing.rows)
    assert widget.cursor == 0
    assert widget.seq == -1
    widget.cursor = 3
    assert widget.seq == 2


def test_a_stepper_over_a_run_begins_where_its_setup_ends(racing):
    """A run says itself where a lesson begins, and what it is called."""

    class Scenario:
        title = "The race"

    class Run:
        rows = racing.rows
        start_seq = 1
        note = "stopped"
        scenario = Scenario

    widget = stepper(Run)
    assert widget.cursor == 2
    assert widget.doc["title"] == "The race"
    assert widget.doc["note"] == "stopped"


def test_a_widget_leaves_a_still_behind(racing):
    """A page without a kernel shows text where the stepper would be."""
    bundle = stepper(racing.rows, at=5)._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "step 6 of 8" in data["text/plain"]
    assert "step 6 of 8" in data["text/html"]


def test_showing_another_document_sends_one_state(racing, make_race):
    """Document, cursor and link change together, so no half-changed stepper is drawn."""
    widget = stepper(racing.rows)
    seen = []
    widget.observe(lambda change: seen.append((change["name"], widget.cursor)), names="doc")
    other = stepper(make_race("other").rows).doc
    widget.show(other, 4)
    assert seen == [("doc", 4)]
    assert widget.doc is other or widget.doc == other


@pytest.mark.parametrize("around", [0, 3, 7])
def test_a_long_trace_is_shown_as_a_slice_round_the_row(racing, around):
    """The slice holds the row, begins with the fold before it, and says what is left out."""
    part, start, words = window(racing.rows, around, 4)
    assert len(part) == 4
    assert around in [row.seq for row in part]
    assert words == f"rows {part[0].seq} to {part[-1].seq} of 8"
    if part[0].seq:
        assert start.digest() == fold(racing.rows[: part[0].seq]).digest()
    widget = stepper(racing.rows, at=around, most=4)
    assert widget.seq == around
    assert words in widget.doc["note"]


def test_a_repr_is_short(racing):
    """A document of megabytes is not printed."""
    assert repr(stepper(racing.rows)) == "StepperWidget('story', step 0 of 8)"
    assert isinstance(stepper(racing.rows), StepperWidget)
    assert len(Reader(stepper(racing.rows).doc)) == 8


def test_it_shows_the_link_that_the_first_row_is_about():
    """A capture of several links, opened at a row of one: its ledgers, not the busiest link's."""
    rows = import_capture(CAPTURES / "rmq43_c_drain.pcapng").rows
    for connection in ("c1", "c3"):
        row = next(
            row for row in rows if row.connection == connection and (row.frame or {}).get("drain")
        )
        widget = stepper(rows, at=row.seq)
        shown = widget.doc["links"][widget.selected_link]
        assert (shown["name"], shown["connection"]) == (row.link, connection)


def test_a_run_tells_where_its_set_up_ends():
    """Play at the end goes back there: in a stepper, in a panel's branches, in a cut part."""
    played = run("credit")
    begin = played.start_seq + 1
    granted = played.act(played.start_seq, "grant", link_credit=3)
    assert stepper(granted, at=played.start_seq + 4).doc["begin"] == begin
    assert stepper(granted, most=5, at=begin).doc["begin"] <= 5
    desk = panel(played)
    desk.model.act("grant", link_credit=3)
    assert desk.view.stepper.doc["begin"] == begin
    assert stepper(granted.rows, at=7).doc["begin"] == 8
    assert "begin" not in stepper(granted.rows).doc
    jsonschema.validate(desk.view.stepper.doc, schema())
