"""A scene as a page: it needs nothing else, and opens on a step that shows something."""

from __future__ import annotations

import base64
import gzip
import json
import re

import pytest

from workbench.scenarios import run
from workbench.views.scene import scene
from workbench.views.stage_page import export_stage, stage_page, telling_step


@pytest.fixture(scope="module")
def granted():
    return run("credit").then("grant", link_credit=3)


def test_the_page_holds_its_scene_and_is_called_by_what_it_is(granted, tmp_path):
    """The scene is there gzipped, and the title is the scenario's."""
    text = export_stage(granted, tmp_path / "run.html").read_text("utf-8")
    assert f"<title>{granted.scenario.title}</title>" in text
    stored = re.search(r'id="scene">([^<]*)<', text)[1]
    assert json.loads(gzip.decompress(base64.b64decode(stored))) == scene(granted)
    assert "http-equiv" in text
    assert "src=" not in text.partition("<script")[0]


def test_it_opens_where_most_messages_are_on_the_way(granted):
    """Nobody begins with an empty wire."""
    doc = scene(granted)
    place = telling_step(doc)
    t = doc["branches"][0]["steps"][place]["t"]
    flying = [
        frame
        for frame in doc["branches"][0]["frames"]
        if frame["kind"] == "message" and frame["path"][0][0] <= t < frame["path"][-1][0]
    ]
    assert len(flying) == 3


def test_a_run_without_messages_opens_where_its_lesson_begins():
    """There is nothing better to show."""
    doc = scene(run("credit"))
    assert telling_step(doc) == doc["begin"]


def test_a_hostile_title_is_text():
    """What a peer or a person calls a run is no markup."""
    page = stage_page(scene(run("credit"), title="</title><script>alert(1)</script>"))
    assert "<script>alert" not in page
