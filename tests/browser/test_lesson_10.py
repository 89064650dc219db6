"""Lesson 10 as a learner meets it: dips, stalls, the worst one opened, and a query of their own."""

import re

import pytest

from .conftest import RUN_MS
from .test_lesson_01 import picture, said, where
from .test_lesson_03 import run_cell
from .test_lesson_07 import chosen

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "10_million.ipynb"
WITHOUT_JAVA = """import os

os.environ["WORKBENCH_JAVA"] = "none"
spark = start_spark()
spark"""
QUERY = """from pyspark.sql import functions as F


def time_lost(stalls):
    lasted = F.col("end_us") - F.col("start_us")
    return stalls.groupBy("run", "link", "brake").agg(F.{how}(lasted).alias("lost_us"))


check.query(time_lost, spark)
"""


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-10")


def put(lesson, cell_id: str, source: str) -> None:
    """Type over a cell, as a person who pastes."""
    lesson.page.evaluate(
        """([id, source]) => {
            const cells = window.jupyterapp.shell.currentWidget.content.widgets;
            const cell = cells.find((cell) => cell.model.id === id);
            cell.model.sharedModel.setSource(source);
        }""",
        [cell_id, source],
    )


def test_from_the_throughput_to_the_frame_and_the_brake(lab_page, pictures):
    """The whole lesson with recorded answers: dips, stalls, the worst one opened, its brake."""
    lesson = lab_page
    lesson.open(LESSON)
    put(lesson, "start", WITHOUT_JAVA)
    lesson.run_all()
    start = lesson.show_cell("start").get_by_role("status")
    assert "goes on with recorded answers" in start.inner_text()

    # The chart has three dips; the votes are compared with what was found.
    lesson.show_cell("rate-chart").get_by_role("rowheader", name="C", exact=True).wait_for()
    lesson.show_cell("rate-chart").screenshot(path=pictures / "rates.png")
    told = chosen(lesson, "longest", "in B, at 22 s")
    assert "the deepest dip is the worst" in told
    lesson.show_cell("longest").get_by_role("tab", name="Question 2").click()
    assert "Right" in chosen(lesson, "longest", "in A, at 8 s")

    # The table names no brake; the row opens where the stall begins, with the state before it.
    table = lesson.show_cell("ask").locator("table")
    assert "brake" not in table.get_by_role("columnheader").all_inner_texts()
    root = picture(lesson, "open-worst")
    at = where(root)
    assert "opened at row" in root.locator(".wst-strip").inner_text().lower()
    assert "What blocks the sender" in said(root)
    root.get_by_text("blocked: too many unconfirmed").first.wait_for()
    lesson.page.keyboard.press("ArrowRight")
    assert where(root) == at + 1
    lesson.show_cell("open-worst").screenshot(path=pictures / "worst.png")
    put(lesson, "name", 'check.brake("link-credit", asked["stalls"])')
    assert "credit is used up" in run_cell(lesson, "name")
    put(lesson, "name", 'check.brake("unconfirmed", asked["stalls"])')
    assert "Right" in run_cell(lesson, "name")

    # All of it is aggregated: so many points for so many rows.
    drawn = lesson.show_cell("held-chart").inner_text()
    assert re.search(r"\b\d{2,3} points drawn, of \d{3},\d{3} frames in \d{3},\d{3} rows", drawn)
    assert "archive" in chosen(lesson, "most", "a link that is not among the ten longest stalls")

    # What a capture cannot tell, from the start and from the middle.
    assert "its attach is not in the trace" in lesson.show_cell("late").inner_text()
    lesson.set_theme("JupyterLab Dark")
    lesson.show_cell("late").screenshot(path=pictures / "late.png")
    assert "Right" in chosen(
        lesson, "claim", "no: they were sent settled, and nothing in the capture answers that"
    )
    lesson.assert_quiet()


def test_spark_starts_shows_its_tasks_and_runs_a_query(lab_page, pictures):
    """The start is timed, a question counts tasks, a wrong query is told what it computes."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_cells("imports", "start", "captured")
    start = lesson.show_cell("start").get_by_role("status")
    assert re.search(r"ready after [\d.]+ s", start.inner_text())
    asked = lesson.show_cell("captured")
    assert re.search(r"done in [\d.]+ s: \d+ jobs?, \d+ tasks, \d+ rows out of [\d,]+ frames",
                     asked.get_by_role("status").inner_text())  # fmt: skip
    assert "link-credit" in asked.get_by_role("table", name="Answer: stalls").inner_text()
    asked.screenshot(path=pictures / "captured.png")

    for how, words in (
        (None, "in place of the"), ("max", "longest stalls"), ("sum", "just what was planted"),
    ):  # fmt: skip
        if how:
            put(lesson, "query", QUERY.format(how=how))
        run_cell(lesson, "query")
        lesson.show_cell("query").get_by_text(words).wait_for(timeout=RUN_MS)
    lesson.assert_quiet()
