"""What a room gets on paper, and what a trainer reads: from the lessons' data, and true of it."""

import base64
import gzip
import html
import importlib
import json
import re

import pytest

from workbench.exercises.classroom import classroom
from workbench.exercises.codes import asked
from workbench.exercises.headings import is_live
from workbench.exercises.question import Question, Solution
from workbench.lessons import instructors
from workbench.lessons.instructors import AGAIN, HERE_ALONE, names_of, questions_of
from workbench.lessons.table import LESSONS, lesson_numbered, room, words_of
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
    shown = page._repr_html_()
    assert all(f"<li>{html.escape(fact)}</li>" in shown for fact in page.facts)
    assert ".save(" in shown


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
    solved = {one["check"] for one in room()[lesson].get("solution", ())}
    assert solved == tasks, f'languages/en/room.toml has a [["{lesson}".solution]] for each'


def test_a_plan_takes_the_time_that_it_says():
    """Two hours, and a day with its breaks; the lessons are there."""
    plans = room()["plan"]
    assert sum(minutes for _, minutes, _ in plans["hours"]["steps"]) == 120
    assert 6 * 60 <= sum(minutes for _, minutes, _ in plans["day"]["steps"]) <= 8 * 60
    for plan in plans.values():
        assert {number for number, _, _ in plan["steps"] if number} <= NUMBERS


@pytest.mark.parametrize("plan", room()["plan"].values(), ids=room()["plan"])
def test_what_a_plan_leaves_out_of_a_lessons_ground_it_says(plan):
    """A lesson comes after those that it builds on, or its line says how it goes without."""
    taken = set()
    for number, _, what in plan["steps"]:
        if number:
            missing = set(lesson_numbered(number).after) - taken
            assert {one for one in missing if one not in what} == set()
            taken.add(number)


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson.instructors])
def test_the_notes_do_not_say_how_often_a_wrong_answer_comes(lesson):
    """No source tells it."""
    assert (
        re.findall(
            r"\b(most|mostly|common wrong|everybody says|half the room)\b[^.;]*", lesson.instructors
        )
        == []
    )


def test_a_question_that_happens_live_works_where_it_was_asked(monkeypatch):
    """Elsewhere the text says so; in the lesson's own notebook its kernel has asked it."""
    with pytest.raises(ValueError, match="In a cell of it, below a question"):
        classroom("10/longest")
    with pytest.raises(ValueError, match="in a cell of the lesson's own notebook"):
        classroom("01/proton-again")
    question = Question(
        name="10/longest", text="Which?", solve=lambda: Solution(answer=1, reason="")
    )
    monkeypatch.setitem(asked, question.name, question)
    assert classroom("10/longest").question is question


def test_the_notes_have_plans_board_questions_and_tasks_behind_a_fold():
    """Every check of a lesson that has notes is there, with its hints."""
    text = instructors.text()
    for lesson in LESSONS:
        if lesson.instructors:
            for name in words_of(lesson.number).get("check", {}):
                assert f"**{name}**" in text
    assert text.count("<details>") == text.count("</details>") > 5
    for title in ("## Two hours", "## One day"):
        assert title in text


@pytest.mark.parametrize("lesson", [number for number in sorted(NUMBERS) if is_live(number)])
def test_of_a_lesson_that_happens_live_every_question_has_the_mark(lesson):
    """Their cells are not run anywhere else."""
    names = [one for asked in questions_of(lesson) for one in names_of(lesson, *asked)]
    assert names
    assert all(one.endswith((HERE_ALONE, AGAIN)) for one in names)
