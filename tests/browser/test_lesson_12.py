"""Lesson 12 as a learner meets it: a mystery of AMQP 0-10 is named, cured, and proved."""

import json

import pytest

from .test_lesson_01 import picture, said
from .test_lesson_03 import run_cell
from .test_lesson_07 import chosen

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "12_capstone.ipynb"
WORKED = "12_capstone_worked.ipynb"
TYPED = {
    "first": ("mystery(1, level=1)", "mystery(2, level=2)"),
    "name": (
        "who=..., brake=..., lost_ms=...",
        'who="parcels", brake="qpid-window", lost_ms=sum('
        'row["end_us"] - row["start_us"] for row in stalls.rows) / 1000',
    ),
    "try": ("after = case", "after = case.change(parcels_window=50)"),
}
"""What a learner types, by cell: another mystery, and its solution."""


@pytest.fixture
def worked(lab_root):
    """The lesson with what was typed."""
    path = lab_root / "notebooks" / LESSON
    lesson = json.loads(path.read_text(encoding="utf-8"))
    for cell in lesson["cells"]:
        old, new = TYPED.get(cell["id"], ("", ""))
        text = "".join(cell["source"])
        assert old in text
        cell["source"] = text.replace(old, new, 1)
    (path.parent / WORKED).write_text(json.dumps(lesson), encoding="utf-8")
    return WORKED


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-12")


def test_a_full_window_is_seen_named_cured_and_proved(lab_page, worked, pictures):
    """The stage says what blocks; the checks judge the name and the second run."""
    lesson = lab_page
    lesson.open(worked)
    lesson.run_all()
    lesson.show_cell("chart").screenshot(path=pictures / "chart.png")
    assert "Right" in chosen(lesson, "who", "parcels")
    root = picture(lesson, "open")
    assert "the window of incomplete transfers is full" in said(root)
    root.screenshot(path=pictures / "open.png")
    assert "Right" in run_cell(lesson, "name")
    assert "Right" in run_cell(lesson, "proof")
    lesson.show_cell("settings").screenshot(path=pictures / "settings.png")
    lesson.set_theme("JupyterLab Dark")
    lesson.page.locator(".wst[data-theme=dark]").first.wait_for(state="attached")
    picture(lesson, "third-open").screenshot(path=pictures / "dark.png")
    lesson.assert_quiet()
