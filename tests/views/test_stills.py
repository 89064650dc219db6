"""Stills say in text what a view shows."""

from __future__ import annotations

import re

import pytest

from workbench.exercises.measure import arrival, step
from workbench.scenarios import run
from workbench.views.scene import scene
from workbench.views.stills import html_still, scene_still


def test_a_still_says_what_both_ends_have_and_what_is_on_the_wire(racing):
    """The sender has counted two transfers, the receiver one."""
    text = scene_still(scene(racing.rows), 5)
    assert "step 6 of 8" in text
    assert "Sender: delivery-count 2, link-credit 1" in text
    assert "Receiver: delivery-count 1, link-credit 6" in text
    assert "On the wire: 2 frames." in text


@pytest.mark.parametrize("latency_us", [1_000, 12_345])
def test_a_still_counts_time_as_its_stage_does(latency_us):
    """From the end of the set-up, and in tenths of a millisecond; in the set-up it stands at 0."""
    played = run("credit", parameters={"latency_us": latency_us})
    played = played.act(played.start_seq, "grant", link_credit=4)
    doc = scene(played)
    came = arrival(played, 1)
    since_ms = (played.rows[came].t_us - played.rows[played.start_seq].t_us) / 1000
    number = step(played.rows[came])
    assert f"step {number} of {step(played.rows[-1])} · t = {since_ms:.1f} ms" in scene_still(
        doc, came
    )
    for place in (0, played.start_seq):
        assert "t = 0.0 ms" in scene_still(doc, place)
    times = [re.search(r"t = (.*) ms", scene_still(doc, place))[1] for place in range(came)]
    assert all(re.fullmatch(r"\d+(\.\d)?", time) for time in times)


def test_markup_in_names_is_text_in_a_still(make_race):
    """The HTML of a still holds no element that came from the trace."""
    doc = scene(make_race("<img src=x onerror=alert(1)>").rows, title="<img src=y>")
    assert "<img" in scene_still(doc, 2)
    assert "<img" not in html_still(scene_still(doc, 2))


@pytest.mark.parametrize(
    ("t", "untimed", "told"),
    [(9.94, False, "9.9 ms"), (12.0, False, "12 ms"), (240_000, False, "240.0000 s"),
     (240_000, True, "?")],
)  # fmt: skip
def test_a_still_tells_the_time_as_the_picture_does(t, untimed, told):
    """In seconds where it is long, and not at all where nobody knows it."""
    doc = {**scene(run("race").rows), "untimed": untimed}
    doc["branches"][0]["steps"][5]["t"] = t
    assert f"t = {told}" in scene_still(doc, 5)
