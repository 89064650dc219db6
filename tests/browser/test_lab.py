"""The way every lesson is opened: JupyterLab, a kernel, all cells run, no error anywhere."""

import json

import pytest

pytestmark = pytest.mark.browser


def notebook(*cells: str) -> str:
    """A small notebook with the given code cells."""
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
            "cells": [
                {
                    "cell_type": "code",
                    "id": f"cell-{number}",
                    "metadata": {},
                    "execution_count": None,
                    "outputs": [],
                    "source": source,
                }
                for number, source in enumerate(cells)
            ],
        }
    )


@pytest.mark.slow
def test_a_widget_appears_and_answers_a_click(lab_page):
    """A cell's widget is drawn, a click reaches the kernel, and nothing is reported or fetched."""
    source = (
        "import ipywidgets, workbench\n"
        "b = ipywidgets.Button(description='grant')\n"
        "b.on_click(lambda _: setattr(b, 'description', 'granted'))\nb"
    )
    (lab_page.root / "notebooks" / "probe.ipynb").write_text(notebook(source), encoding="utf-8")
    lab_page.open("probe.ipynb")
    lab_page.run_all()
    lab_page.show_cell("cell-0").get_by_role("button", name="grant").click()
    lab_page.page.get_by_role("button", name="granted").wait_for()
    lab_page.assert_quiet()


@pytest.mark.slow
def test_an_error_in_a_cell_is_seen(lab_page):
    """The helper that runs all cells does not overlook one that fails."""
    (lab_page.root / "notebooks" / "broken.ipynb").write_text(notebook("1 / 0"), encoding="utf-8")
    lab_page.open("broken.ipynb")
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        lab_page.run_all()


@pytest.mark.slow
def test_no_news_or_updates_are_asked_for(lab_page):
    """The settings that come with the workbench keep JupyterLab's pop-up away."""
    (lab_page.root / "notebooks" / "probe.ipynb").write_text(notebook("1"), encoding="utf-8")
    lab_page.open("probe.ipynb")
    assert lab_page.page.locator(".Toastify__toast").count() == 0
    lab_page.assert_quiet()


@pytest.mark.slow
def test_whatever_widgets_tell_is_heard_by_one_thread(lab_page):
    """Of two, one might hear a press before the other has heard the choice that it is about."""
    source = (
        "import threading, ipywidgets\n"
        "heard = []\n"
        "hear = lambda *_: heard.append(threading.current_thread().name)\n"
        "tick, line = ipywidgets.Checkbox(), ipywidgets.Label()\n"
        "press = ipywidgets.Button(description='press')\n"
        "tick.observe(hear, 'value')\n"
        "press.on_click(hear)\n"
        "press.on_click(lambda _: setattr(line, 'value', ' '.join(heard)))\n"
        "ipywidgets.VBox([tick, press, line])"
    )
    (lab_page.root / "notebooks" / "order.ipynb").write_text(notebook(source), encoding="utf-8")
    lab_page.open("order.ipynb")
    lab_page.run_all()
    cell = lab_page.show_cell("cell-0")
    for rounds in range(1, 5):
        cell.get_by_role("checkbox").click()
        cell.get_by_role("button", name="press").click()
        cell.get_by_text(" ".join(["MainThread", "MainThread"] * rounds), exact=True).wait_for()
    lab_page.assert_quiet()


@pytest.mark.slow
def test_the_columns_of_a_widget_s_table_stand_apart(lab_page):
    """Otherwise `link-credit=3) 3` reads as one."""
    source = "from workbench.exercises.museum import PieceView; PieceView('from-zero')"
    (lab_page.root / "notebooks" / "table.ipynb").write_text(notebook(source), encoding="utf-8")
    lab_page.open("table.ipynb")
    lab_page.run_all()
    row = lab_page.show_cell("cell-0").locator("tr", has_text="link-credit=3)")
    gaps = row.evaluate(
        """(row) => {
            const text = document.createRange();
            const boxes = [...row.cells].map((cell) => {
                text.selectNodeContents(cell);
                return text.getBoundingClientRect();
            });
            return boxes.slice(1).map((box, at) => box.left - boxes[at].right);
        }"""
    )
    assert len(gaps) == 3
    assert min(gaps) >= 8
    lab_page.assert_quiet()


@pytest.mark.slow
@pytest.mark.parametrize(
    "lesson",
    [
        "02_race.ipynb", "03_drain.ipynb", "06_amqp091.ipynb", "08_alarms.ipynb", "09_qpid.ipynb",
        "12_capstone.ipynb",
    ],
)  # fmt: skip
def test_nothing_is_cut_in_a_narrow_window(lab_page, lesson):
    """Beside the file browser, too, code, lists, tables and charts go on in a second line."""
    lab_page.page.set_viewport_size({"width": 900, "height": 800})
    lab_page.open(lesson)
    lab_page.run_all()
    cut = lab_page.page.evaluate(
        """async () => {
            const content = window.jupyterapp.shell.currentWidget.content;
            const parts = '.cm-scroller, .widget-box, .widget-select select, .jp-RenderedHTML';
            const found = [];
            for (const [index, cell] of content.widgets.entries()) {
                if (cell.model.type !== 'code') continue;
                await content.scrollToItem(index);
                await cell.ready;
                await new Promise((drawn) =>
                    requestAnimationFrame(() => requestAnimationFrame(drawn)));
                const boxes = cell.node.querySelectorAll(parts);
                for (const { className, clientWidth, scrollWidth } of boxes)
                    if (scrollWidth > clientWidth + 2)
                        found.push([cell.model.id, className, scrollWidth, clientWidth]);
            }
            return found;
        }"""
    )
    assert cut == []
