"""Stills say in text what the stepper shows."""

from __future__ import annotations

from workbench.views.stepper_doc import build
from workbench.views.stills import html_still, still, text_still


def test_a_still_shows_both_ledgers_and_marks_where_they_differ(racing):
    """The sender has counted two transfers, the receiver one: ≠."""
    text = still(racing.rows, 6)
    assert "step 6 of 8" in text
    line = next(line for line in text.splitlines() if "link-credit" in line and "≠" in line)
    assert line.split() == ["link-credit", "1", "6", "≠"]


def test_a_still_lists_what_is_on_the_wire(racing):
    """Frames in flight stand with their direction and their numbers."""
    lines = still(racing.rows, 6).splitlines()
    wire = lines[lines.index("On the wire:") + 1 :][:2]
    assert [line.split()[0] for line in wire] == ["transfer", "flow"]
    assert "client:r → broker" in wire[1]


def test_a_still_of_the_end_is_the_default(racing):
    """Without a step the last one is shown."""
    assert still(racing.rows) == still(racing.rows, len(racing.rows))


def test_markup_in_names_is_text_in_a_still(make_race):
    """The HTML of a still holds no element that came from the trace."""
    doc = build(make_race("<img src=x onerror=alert(1)>").rows)
    assert "<img" in text_still(doc, 2)
    assert "<img" not in html_still(text_still(doc, 2))
