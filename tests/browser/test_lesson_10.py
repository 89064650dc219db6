"""Lesson 10 as a learner meets it: dips, stalls, the worst one opened, and a query of their own."""

import re

import pytest

from .test_lesson_03 import run_cell, step_on, stepper, where
from .test_lesson_07 import chosen

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "10_million.ipynb"
QUERY = """from pyspark.sql import functions as F


def time_lost(stalls):
    lasted = F.col("end_us") - F.col("start_us")
    return stalls.groupBy("run", "link", "brake").agg(F.{how}(lasted).alias("lost_us"))
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


def define(lesson, cell_id: str, source: str) -> None:
    """Type over a cell that only defines something, and run it."""
    put(lesson, cell_id, source)
    lesson.show_cell(cell_id)
    lesson.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
    lesson.wait_idle()


def test_the_whole_lesson(lab_page, pictures):
    """From the throughput to the frame, the brake and the query; nothing is said on stderr."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()

    start = lesson.show_cell("start").get_by_role("status")
    assert re.search(r"ready after [\d.]+ s", start.inner_text())
    assert "tasks" in lesson.show_cell("ask").get_by_role("status").inner_text()

    # The chart has three dips; the votes are compared with what Spark found.
    lesson.show_cell("rate-chart").get_by_role("rowheader", name="C", exact=True).wait_for()
    lesson.show_cell("rate-chart").screenshot(path=pictures / "rates.png")
    told = chosen(lesson, "longest", "in B, at 22 s")
    assert "the deepest dip is the worst" in told
    assert "Right" in chosen(lesson, "nobody", "in A, at 8 s")

    # The table names no brake; the row opens where the stall begins, with the state before it.
    table = lesson.show_cell("ask").locator("table")
    heads = table.get_by_role("columnheader").all_inner_texts()
    assert "brake" not in heads
    row = int(table.get_by_role("row").nth(1).locator("td").last.inner_text())
    root = stepper(lesson, "open-worst")
    at = where(root)
    assert 0 < at < 402
    step_on(root)
    assert where(root) == at + 1
    lesson.show_cell("open-worst").screenshot(path=pictures / "worst.png")
    assert row > 400
    put(lesson, "name", 'check.brake("link-credit", asked["stalls"])')
    assert "credit is used up" in run_cell(lesson, "name")
    put(lesson, "name", 'check.brake("unconfirmed", asked["stalls"])')
    assert "Right" in run_cell(lesson, "name")

    # All of it is aggregated: so many points for so many rows.
    assert re.search(r"\b\d{2,3} points drawn, of \d{3},\d{3} rows",
                     lesson.show_cell("held-chart").inner_text())  # fmt: skip

    # The query: a wrong one is told what it computes, a right one is right.
    assert "in place of the" in run_cell(lesson, "check-query")
    define(lesson, "query", QUERY.format(how="max"))
    assert "longest stalls" in run_cell(lesson, "check-query")
    define(lesson, "query", QUERY.format(how="sum"))
    assert "just what was planted" in run_cell(lesson, "check-query")
    assert "archive" in chosen(lesson, "most", "a link that is not among the ten longest stalls")

    # What a capture cannot tell, from the start and from the middle.
    assert "its attach is not in the trace" in lesson.show_cell("late").inner_text()
    lesson.set_theme("JupyterLab Dark")
    lesson.show_cell("late").screenshot(path=pictures / "late.png")
    assert "Right" in chosen(
        lesson, "claim", "no: they were sent settled, and nothing in the capture answers that"
    )
    lesson.assert_quiet()
