"""`workbench lab`: it finds the lessons, and hands JupyterLab what it needs."""

import sys
from pathlib import Path

import pytest

from workbench.cli import lab, main
from workbench.cli.main import parse


def line(*argv: str) -> list[str]:
    """The command that `workbench lab ...` becomes."""
    return lab.command_line(parse(["lab", *argv]))


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """A folder that looks like the project's, with us somewhere inside."""
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    for name in ("00_index", "01_credit"):
        (notebooks / f"{name}.ipynb").write_text("{}")
    below = tmp_path / "data" / "captures"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    return tmp_path


def test_jupyterlab_opens_on_the_index(checkout):
    """From anywhere inside the checkout, with this Python."""
    given = line()
    assert given[:3] == [sys.executable, "-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={checkout}" in given
    assert "--LabApp.default_url=/lab/tree/my/00_index.ipynb" in given
    assert "--no-browser" not in given


@pytest.mark.parametrize("name", ["01_credit", "01_credit.ipynb", "notebooks/01_credit.ipynb"])
def test_a_lesson_can_be_opened_by_name(checkout, name):
    """However it is written."""
    assert "--LabApp.default_url=/lab/tree/my/01_credit.ipynb" in line(name)


def test_what_follows_two_dashes_goes_to_jupyterlab(checkout):
    """Port and browser have options of their own; everything else is Jupyter's."""
    for lesson in ("00_index", "01_credit"):
        given = line(lesson, "--no-browser", "--", "--ServerApp.token=x")
        assert given[-1] == "--ServerApp.token=x"
        assert f"--LabApp.default_url=/lab/tree/my/{lesson}.ipynb" in given
    given = line("--port", "9000", "--no-browser", "--", "--ServerApp.token=x")
    assert "--ServerApp.port=9000" in given
    assert "--no-browser" in given
    assert given[-1] == "--ServerApp.token=x"
    assert "--LabApp.default_url=/lab/tree/my/00_index.ipynb" in given


@pytest.mark.parametrize(
    ("argv", "telling"),
    [
        (["02_race"], "no lesson '02_race'; there are: 00_index, 01_credit"),
        (["--port", "0"], "legal: 1 to 65535"),
        (["--port", "99999"], "legal: 1 to 65535"),
    ],
)
def test_what_cannot_be_opened_is_told(checkout, capsys, argv, telling):
    """One line, and JupyterLab is not started."""
    assert main(["lab", *argv]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert telling in told


def test_without_jupyterlab_the_way_to_it_is_told(checkout, capsys, monkeypatch):
    """An installation of the core alone has no lab."""
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: None)
    assert main(["lab"]) == 1
    assert "python3 wb.py lab" in capsys.readouterr().err


@pytest.mark.parametrize("variable", ["HOME", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"])
def test_where_jupyterlab_cannot_write_it_is_not_started(checkout, monkeypatch, capsys, variable):
    """It would end with sixty lines of its own; a user without a home is one, too."""
    blocked = checkout / "a file"
    blocked.touch()
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(blocked / "home"))
    monkeypatch.setattr(lab.os, "execv", lambda *_: pytest.fail("JupyterLab was started"))
    assert main(["lab"]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"workbench lab: {blocked / 'home'}")
    assert "Not a directory; set HOME (or JUPYTER_RUNTIME_DIR) to" in told
    assert told.count("\n") == 1


def test_without_lessons_the_checkout_is_asked_for(tmp_path, monkeypatch, capsys):
    """An installed package outside the checkout finds no notebooks, and says where to go."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lab, "__file__", str(tmp_path / "site" / "workbench" / "cli" / "lab.py"))
    assert main(["lab"]) == 1
    assert "go to the project's checkout first" in capsys.readouterr().err
