"""Stills say in text what a view shows."""

from __future__ import annotations

from workbench.views.scene import scene
from workbench.views.stills import html_still, scene_still


def test_a_still_says_what_both_ends_have_and_what_is_on_the_wire(racing):
    """The sender has counted two transfers, the receiver one."""
    text = scene_still(scene(racing.rows), 5)
    assert "step 6 of 8" in text
    assert "Sender: delivery-count 2, link-credit 1" in text
    assert "Receiver: delivery-count 1, link-credit 6" in text
    assert "On the wire: 2 frames." in text


def test_markup_in_names_is_text_in_a_still(make_race):
    """The HTML of a still holds no element that came from the trace."""
    doc = scene(make_race("<img src=x onerror=alert(1)>").rows, title="<img src=y>")
    assert "<img" in scene_still(doc, 2)
    assert "<img" not in html_still(scene_still(doc, 2))
