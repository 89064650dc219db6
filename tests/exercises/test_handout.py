"""What a room gets on paper, and what a trainer reads: from the lessons' data, and true of it."""

import base64
import gzip
import html
import importlib
import json
import re

import pytest

from workbench.lessons import instructors
from workbench.lessons.table import LESSONS, room, words_of
from workbench.scenarios import run
from workbench.scenarios.share import open_code
from workbench.views.stills import scene_still

HANDED_OUT = [name for name in room() if name != "plan"]
NUMBERS = {lesson.number for lesson in LESSONS}


@pytest.mark.parametrize("lesson", HANDED_OUT)
def test_a_handout_is_one_page_with_the_run_it_shows(lesson):
    """Three facts, a formula, and a code that opens the very run of the picture."""
    pytest.importorskip("segno", reason="needs segno, which draws the QR code")
    from workbench import handout

    page = handout(lesson)
    assert len(page.facts) == 3
    assert open_code(page.code).run.identity() == page.run.identity()
    text = page.page
    assert "<svg" in text
    assert html.escape(page.title) in text
    assert len(page.code) < 1_200  # what a telephone still reads from paper


@pytest.mark.parametrize(
    ("lesson", "seen"),
    [
        ("02", "raises its credit from 3 to 6"),
        ("03", "gives back its unused credit of 7"),
        ("05", "The receiver raises its credit from 85 to 170"),
        ("06", "every channel"),
        ("07", "knows that a majority has everything up to entry 2 safe"),
        ("08", "blocked: alarm"),
        ("09", "above its high watermark"),
        ("11", "1 transfer frame is still on the way"),
    ],
)
def test_a_handout_shows_what_its_lesson_is_about(lesson, seen):
    """On paper nobody steps on, or presses a button; the code opens that step."""
    pytest.importorskip("segno", reason="needs segno, which draws the QR code")
    from workbench import handout

    page = handout(lesson)
    stored = re.search(r'id="scene">([^<]*)<', page.page)[1]
    doc = json.loads(gzip.decompress(base64.b64decode(stored)))
    assert doc.keys().isdisjoint({"acts", "rules", "shares"})
    assert f"step: wanted || {page.step} " in page.page
    assert seen in scene_still(doc, page.step).partition("\n\n>")[0]
    assert open_code(page.code).cursor == page.step + 1


@pytest.mark.parametrize(
    ("lesson", "solution"),
    [
        pytest.param(
            name,
            one,
            id=f"{name}-{one['check']}",
            marks=[pytest.mark.slow] if name == "12" else [],
        )
        for name in HANDED_OUT
        for one in room()[name].get("solution", ())
        if "code" in one
    ],
)
def test_a_solution_behind_the_fold_is_one(lesson, solution):
    """The lesson's own check says right."""
    declared = importlib.import_module(f"workbench.lessons.lesson_{lesson}")
    names = {"run": run, "check": declared.check}
    exec(solution["code"], names)
    assert names["answer"].right


@pytest.mark.parametrize("lesson", HANDED_OUT)
def test_every_task_has_its_solution_behind_the_fold(lesson):
    """None without, and none of a task that there is not."""
    tasks = {name.replace("-", "_") for name in words_of(lesson).get("check", {})}
    assert {one["check"] for one in room()[lesson].get("solution", ())} == tasks


def test_a_plan_takes_the_time_that_it_says():
    """Two hours, and a day with its breaks; the lessons are there."""
    plans = room()["plan"]
    assert sum(minutes for _, minutes, _ in plans["hours"]["steps"]) == 120
    assert 6 * 60 <= sum(minutes for _, minutes, _ in plans["day"]["steps"]) <= 8 * 60
    for plan in plans.values():
        assert {number for number, _, _ in plan["steps"] if number} <= NUMBERS


def test_the_notes_have_plans_board_questions_and_tasks_behind_a_fold():
    """Every check of a lesson that has notes is there, with its hints."""
    text = instructors.text()
    assert instructors.FILE.read_text("utf-8") == text
    for lesson in LESSONS:
        if lesson.instructors:
            for name in words_of(lesson.number).get("check", {}):
                assert f"**{name}**" in text
    assert text.count("<details>") == text.count("</details>") > 5
    for title in ("## Two hours", "## One day"):
        assert title in text
