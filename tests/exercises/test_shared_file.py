"""Where a learner's files lie."""

from pathlib import Path

import pytest

from workbench.exercises import shared_file
from workbench.exercises.progress import Progress, standard_file
from workbench.exercises.progress_view import ProgressView
from workbench.exercises.shared_file import standard_folder


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """A user with a home of their own and no WORKBENCH_HOME."""
    monkeypatch.delenv("WORKBENCH_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def lessons(folder: Path) -> Path:
    """A checkout's notebooks."""
    notebooks = folder / "notebooks"
    notebooks.mkdir(parents=True)
    (notebooks / "00_index.ipynb").write_text("{}")
    return notebooks


def test_the_place_is_beside_the_notebooks(nobody, monkeypatch):
    """A lesson's kernel works in `notebooks/`; the answers lie in `my/` beside it, not in it."""
    notebooks = lessons(nobody / "checkout")
    monkeypatch.chdir(notebooks)
    assert standard_folder() == nobody / "checkout" / "my"
    assert not (nobody / "checkout" / "my").exists()


def test_an_environment_variable_names_another_place(nobody, monkeypatch):
    """Relative ones are where the kernel starts, wherever it goes later."""
    monkeypatch.chdir(nobody)
    monkeypatch.setenv("WORKBENCH_HOME", "mine")
    assert standard_folder() == nobody / "mine"


def test_a_checkout_that_cannot_be_written_to_gives_way_to_the_user_s_folder(nobody, monkeypatch):
    """A shared installation: everybody's answers lie in their own home."""
    notebooks = lessons(nobody / "checkout")
    monkeypatch.chdir(notebooks)
    writable = shared_file._writable
    monkeypatch.setattr(
        shared_file,
        "_writable",
        lambda folder: folder != notebooks.parent / "my" and writable(folder),
    )
    place = standard_folder()
    assert place is not None
    assert place.name == "amqp-flow-workbench"
    assert nobody in place.parents


def test_where_there_is_no_place_at_all_it_is_said(nobody, monkeypatch):
    """The log lives in memory, and whoever looks at it is told what to do."""
    monkeypatch.setattr(shared_file, "_writable", lambda folder: False)
    log = Progress(standard_file)
    log.record("01/a", 1, True)
    assert [one.question for one in log.records] == ["a"]
    assert log.where is None
    assert "in memory only" in log.problem
    assert "WORKBENCH_HOME" in ProgressView(log).line.value


def test_git_ignores_what_a_learner_keeps(repo):
    """Pulling new lessons never meets a learner's file."""
    assert "/my/" in (repo / ".gitignore").read_text().splitlines()
