"""A scene as a page: it needs nothing else, and opens on a step that shows something."""

from __future__ import annotations

import base64
import errno
import gzip
import json
import os
import re

import pytest

from workbench import stack, stage
from workbench.scenarios import run
from workbench.views.chart_box import ChartedStage
from workbench.views.scene import scene
from workbench.views.stage_page import export, stage_page, telling_step
from workbench.views.static_html import asset


@pytest.fixture(scope="module")
def granted():
    return run("credit").then("grant", link_credit=3)


def test_the_page_holds_its_scene_and_is_called_by_what_it_is(granted, tmp_path):
    """The scene is there gzipped, and the title is the scenario's."""
    text = export(granted, tmp_path / "run.html").read_text("utf-8")
    assert f"<title>{granted.scenario.title}</title>" in text
    stored = re.search(r'id="scene">([^<]*)<', text)[1]
    assert json.loads(gzip.decompress(base64.b64decode(stored))) == scene(granted)
    assert "src=" not in text.partition("<script")[0]
    assert set(re.findall(r'https?://[^"\s)]+', text)) <= {"http://www.w3.org/2000/svg"}
    assert "import " not in re.sub(r"//.*|/\*.*?\*/", "", asset("stage.js"))


def test_a_stage_is_written_with_its_branches(granted, tmp_path):
    """What somebody has made on it is on the page, with a chart above it or without."""
    desk = stage(granted)
    desk.branches.act(granted.start_seq, "publish", count=1)
    for shown in (desk, ChartedStage(desk), stack(desk).children[0]):
        text = export(shown, tmp_path / "desk.html").read_text("utf-8")
        stored = re.search(r'id="scene">([^<]*)<', text)[1]
        found = json.loads(gzip.decompress(base64.b64decode(stored)))
        assert len(found["branches"]) == len(desk.branches.runs) == 2


def test_a_page_runs_only_the_script_it_came_with(granted):
    """The policy names the digests of our script and style, and allows nothing else."""
    text = stage_page(scene(granted))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "</script" not in asset("stage.js")
    assert "<!--" not in asset("stage.js")
    assert "</style" not in asset("stage.css")
    assert "innerHTML" not in asset("stage.js")


def test_a_failed_export_leaves_what_was_there(granted, tmp_path, monkeypatch):
    """The file appears whole or not at all, and no other file is left behind."""
    path = tmp_path / "run.html"
    path.write_text("earlier")

    def fail(*_names):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        export(granted, path)
    assert path.read_text() == "earlier"
    assert [item.name for item in tmp_path.iterdir()] == ["run.html"]


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


def test_a_title_may_be_octets_that_are_no_text():
    """As a shell gives them; the page is UTF-8."""
    assert "<title>a\ufffd</title>" in stage_page(scene(run("credit"), title="a\udcff"))


def test_a_hostile_title_is_text():
    """What a peer or a person calls a run is no markup."""
    page = stage_page(scene(run("credit"), title="</title><script>alert(1)</script>"))
    assert "<script>alert" not in page
