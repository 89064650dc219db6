"""The static page: one file, no network, nothing half-written, small."""

from __future__ import annotations

import json
import re

import pytest

from workbench.views import static_html
from workbench.views.static_html import asset, export_html, page, safe_json
from workbench.views.stepper_doc import build

HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)> \u2028 & ]]>"


def embedded(text: str) -> dict:
    """The document inside a page."""
    found = re.search(r'<script type="application/json" id="doc">(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1))


def test_the_page_holds_the_document_and_nothing_from_elsewhere(racing, tmp_path):
    """No address of another host, no import: it opens from a stick."""
    path = export_html(racing.rows, tmp_path / "run.html", title="Race")
    text = path.read_text("utf-8")
    assert embedded(text) == build(racing.rows, title="Race")
    found = set(re.findall(r'https?://[^"\s)]+', text))
    assert found <= {"http://www.w3.org/2000/svg"}
    assert "import " not in re.sub(r"//.*|/\*.*?\*/", "", asset("stepper.js"))


def test_hostile_names_cannot_leave_the_data_block(make_race):
    """Whatever a link is called, the page has the two script elements we wrote."""
    text = page(build(make_race(HOSTILE).rows, title=HOSTILE, note=HOSTILE))
    assert text.count("<script") == 2
    assert text.count("</script") == 2
    assert "<img" not in text
    assert "\u2028" not in text
    assert embedded(text)["note"] == HOSTILE


def test_the_page_runs_only_the_script_it_came_with(racing):
    """The policy names the digests of our script and style, and allows nothing else."""
    text = page(build(racing.rows))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_the_module_can_stand_in_a_script_element():
    """The text of the module and of the style must not end their element."""
    assert "</script" not in asset("stepper.js")
    assert "<!--" not in asset("stepper.js")
    assert "</style" not in asset("stepper.css")
    assert "innerHTML" not in asset("stepper.js")


def test_safe_json_comes_back_as_it_was():
    """Escapes are JSON's own, so a parser undoes them."""
    value = {"a": HOSTILE, "b": [None, True, 1.5]}
    text = safe_json(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_a_failed_export_leaves_what_was_there(racing, tmp_path, monkeypatch):
    """The file appears whole or not at all, and no other file is left behind."""
    path = tmp_path / "run.html"
    path.write_text("earlier")

    def fail(*_names):
        raise OSError("disk full")

    monkeypatch.setattr(static_html.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        export_html(racing.rows, path)
    assert path.read_text() == "earlier"
    assert [item.name for item in tmp_path.iterdir()] == ["run.html"]
