"""A learner's copies of the lessons: made once, never lost, the lessons' own files untouched."""

import json
import os
import shutil

import nbformat
import pytest

from workbench.cli.lab_server import RUN_IT, keep_stills, keep_text
from workbench.exercises.lesson_pages import lesson_card, lesson_map
from workbench.exercises.shared_file import standard_folder
from workbench.exercises.working_copies import earlier_copies, make_copies

LESSON = "01_credit.ipynb"


@pytest.fixture
def root(tmp_path, repo):
    """A checkout with two lessons."""
    (tmp_path / "notebooks").mkdir()
    for name in ("00_index.ipynb", LESSON):
        shutil.copy(repo / "notebooks" / name, tmp_path / "notebooks")
    return tmp_path


def changed(path, cell: int, source: str) -> None:
    """Write something else into a cell of a notebook."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[cell].source = source
    nbformat.write(notebook, path)


def cells(path) -> list[str]:
    """What a notebook's cells say."""
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


def test_a_copy_says_what_its_lesson_says(root):
    """It is a notebook as nbformat writes it, and the lesson's own file stays as it is."""
    own = root / "notebooks" / LESSON
    before = own.read_bytes()
    assert make_copies(root) == []
    copy = root / "my" / LESSON
    assert cells(copy) == cells(own)
    notebook = nbformat.read(copy, as_version=4)
    nbformat.validate(notebook)
    assert copy.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"
    assert own.read_bytes() == before


def test_a_copy_that_was_written_in_is_kept_under_another_name(root):
    """Once for every change of the lesson; what is told names both files."""
    make_copies(root)
    copy, own = root / "my" / LESSON, root / "notebooks" / LESSON
    for number, name in enumerate(("01_credit_earlier.ipynb", "01_credit_earlier_2.ipynb")):
        changed(copy, 2, f"mine = {number}")
        written = copy.read_bytes()
        assert make_copies(root, renew=True) == []  # the lesson is as it was
        changed(own, 0, f"# Another text {number}")
        assert make_copies(root) == []  # nothing is taken from under an open notebook
        assert copy.read_bytes() == written
        (told,) = make_copies(root, renew=True)
        assert f"my/{LESSON}" in told
        assert f"my/{name}" in told
        assert (root / "my" / name).read_bytes() == written
        assert cells(copy) == cells(own)
        assert make_copies(root, renew=True) == []
    assert len(earlier_copies(root, LESSON)) == 2


def test_a_copy_that_was_only_run_follows_its_lesson(root):
    """Outputs are not something that a learner has written."""
    make_copies(root)
    copy, own = root / "my" / LESSON, root / "notebooks" / LESSON
    notebook = nbformat.read(copy, as_version=4)
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="seen")]
    nbformat.write(notebook, copy)
    changed(own, 0, "# Another text")
    assert make_copies(root, renew=True) == []
    assert cells(copy) == cells(own)
    assert earlier_copies(root, LESSON) == []


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"metadata": {}, "cells": 3}'])
def test_a_copy_that_cannot_be_read_is_not_destroyed(root, text):
    """It is kept as it is, beside a new one."""
    (root / "my").mkdir()
    (root / "my" / LESSON).write_text(text, encoding="utf-8")
    assert len(make_copies(root, renew=True)) == 1
    assert (root / "my" / "01_credit_earlier.ipynb").read_text(encoding="utf-8") == text
    assert cells(root / "my" / LESSON) == cells(root / "notebooks" / LESSON)


@pytest.mark.parametrize("here", ["notebooks", "my"])
def test_the_map_and_a_card_lead_to_the_copies(root, monkeypatch, here):
    """From the lessons' own folder too; the map makes the copies that are not there."""
    (root / "my").mkdir()
    monkeypatch.chdir(root / here)
    for page in (lesson_map(), lesson_card("02")):
        (way,) = page._repr_html_().split('<a href="')[1:]
        linked = way.split('"')[0]
        assert os.path.normpath(root / here / linked) == str(root / "my" / LESSON)
        assert (root / here / linked).is_file()


def test_the_map_tells_of_a_lesson_that_has_changed(root, monkeypatch):
    """What becomes of the learner's copy is said before it happens and afterwards."""
    monkeypatch.chdir(root / "notebooks")
    lesson_map()
    copy = root / "my" / LESSON
    changed(copy, 2, "mine = 1")
    changed(root / "notebooks" / LESSON, 0, "# Another text")
    page = lesson_map()
    assert "01_credit.ipynb has changed since your copy was made" in str(page)
    assert "01_credit.ipynb has changed since your copy was made" in page._repr_html_()
    make_copies(root, renew=True)
    page = lesson_map()
    assert "has changed" not in page._repr_html_()
    assert '<a href="../my/01_credit_earlier.ipynb">' in page._repr_html_()


def test_answers_that_lie_in_my_are_found_from_a_copy(root, monkeypatch):
    """A progress file from before there were copies is the copies' progress file."""
    monkeypatch.delenv("WORKBENCH_HOME", raising=False)
    make_copies(root)
    for here in ("notebooks", "my"):
        monkeypatch.chdir(root / here)
        assert standard_folder() == root / "my"


def test_a_lesson_s_own_file_is_saved_without_what_running_it_left(root):
    """Octet by octet what it was, after outputs, counts, folds and a kernel's name are in it."""
    own = root / "notebooks" / LESSON
    notebook = nbformat.read(own, as_version=4)
    notebook.metadata.kernelspec.display_name = "Python 3 (ipykernel)"
    notebook.metadata.language_info = {"name": "python", "version": "3.11.2"}
    for number, cell in enumerate(notebook.cells):
        cell.metadata["trusted"] = cell.metadata["scrolled"] = True
        if cell.cell_type == "code":
            cell.execution_count = number
            cell.outputs = [nbformat.v4.new_output("stream", text="seen")]
    keep_text(notebook, own)
    assert nbformat.writes(notebook) + "\n" == own.read_text(encoding="utf-8")


def test_a_saved_notebook_holds_no_widget():
    """What stands beside a widget stays; BokehJS goes; all else is left alone."""
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}}
    script, load = "application/javascript", "application/vnd.bokehjs_load.v0+json"
    before = [
        {"data": {**view, "text/html": "<p>", "text/plain": "-"}},
        {"data": dict(view)},
        {"data": {script: "js", load: "js"}},
        {"data": {script: "js"}},
        {"text": "printed"},
    ]
    notebook = {"cells": [{"source": "-"}, {"outputs": json.loads(json.dumps(before))}]}
    keep_stills(notebook)
    assert notebook["cells"][1]["outputs"] == [
        {"data": {"text/html": "<p>", "text/plain": "-"}},
        {"data": {"text/plain": RUN_IT}},
        {"data": {script: "js"}},
        {"text": "printed"},
    ]
