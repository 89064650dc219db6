"""The start of everything: `wb.py` makes an environment, repairs it, or says what is missing.

No package is installed here: the two functions that would do so are replaced, and what is tested is
which of them runs when.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wb
from tests.patience import TIMEOUT_S

REPO = Path(__file__).resolve().parent.parent


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine whose installers only take notes; gives the notes."""
    notes: list[str] = []
    venv = tmp_path / "venv"
    monkeypatch.setattr(wb, "VENV", str(venv))
    monkeypatch.setattr(wb, "STAMP", str(venv / "workbench.json"))
    monkeypatch.setattr(wb, "version_of", lambda python: (3, 11) if venv.is_dir() else None)
    monkeypatch.setattr(wb, "compiler", lambda: "/usr/bin/cc Python.h")
    monkeypatch.setattr(wb, "connect", lambda: notes.append("connect"))

    def make_venv():
        notes.append("venv")
        venv.mkdir(exist_ok=True)

    def install(lock, log=None):
        notes.append(lock)
        return True

    monkeypatch.setattr(wb, "make_venv", make_venv)
    monkeypatch.setattr(wb, "install", install)
    return notes


def test_the_first_start_makes_everything_and_the_second_nothing(machine):
    """An environment in step with its lock is used as it is."""
    wb.setup(dev=False)
    assert machine == ["venv", "runtime.lock", "proton.lock", "connect"]
    machine.clear()
    wb.setup(dev=False)
    assert machine == []


def test_the_tests_add_their_tools_to_the_learners_environment(machine):
    """`test` after `lab` installs the larger lock; `lab` after that has nothing to do."""
    wb.setup(dev=False)
    machine.clear()
    wb.setup(dev=True)
    assert machine == ["dev.lock", "clients.lock"]
    machine.clear()
    wb.setup(dev=False)
    assert machine == []


def test_an_interrupted_installation_is_made_anew(machine, monkeypatch):
    """The stamp is written last: without it an environment counts for nothing."""

    def interrupted(lock, log=None):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(wb, "install", interrupted)
        with pytest.raises(KeyboardInterrupt):
            wb.setup(dev=False)
    machine.clear()
    wb.setup(dev=False)
    assert machine[:2] == ["venv", "runtime.lock"]


def test_an_update_that_is_interrupted_is_made_anew_too(machine, monkeypatch):
    """While packages are being exchanged, the old stamp does not vouch for them."""
    wb.setup(dev=False)

    def interrupted(lock, log=None):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(wb, "install", interrupted)
        with pytest.raises(KeyboardInterrupt):
            wb.setup(dev=True)
    machine.clear()
    wb.setup(dev=False)
    assert machine[:2] == ["venv", "runtime.lock"]


def test_an_update_that_fails_leaves_the_old_environment_in_use(machine, monkeypatch, capsys):
    """Without a network a learner goes on with the packages that are there."""
    wb.setup(dev=False)
    monkeypatch.setattr(wb, "digest", lambda name: "another lock")
    monkeypatch.setattr(wb, "install", lambda lock, log=None: False)
    machine.clear()
    wb.setup(dev=False)
    assert machine == []
    assert "going on with those that are there" in capsys.readouterr().err


def test_a_first_installation_that_fails_says_so(machine, monkeypatch):
    """There is nothing to go on with: one line, and exit 1."""
    monkeypatch.setattr(wb, "install", lambda lock, log=None: False)
    with pytest.raises(wb.StopError, match="could not be installed"):
        wb.setup(dev=False)


def test_a_checkout_that_was_moved_gets_a_new_environment(machine, monkeypatch):
    """An environment's programs name its place, so it cannot move."""
    wb.setup(dev=False)
    machine.clear()
    stamp = json.loads(Path(wb.STAMP).read_text(encoding="utf-8"))
    Path(wb.STAMP).write_text(json.dumps({**stamp, "repo": "/elsewhere"}), encoding="utf-8")
    wb.setup(dev=False)
    assert machine[:2] == ["venv", "runtime.lock"]


def test_proton_is_tried_again_once_a_compiler_has_come(machine, monkeypatch, capsys):
    """Without one there is one line of advice, at the first start only."""
    with monkeypatch.context() as patch:
        patch.setattr(wb, "compiler", lambda: "")
        wb.setup(dev=False)
        assert "proton.lock" not in machine
        assert capsys.readouterr().err.count("apt install build-essential python3-dev") == 1
        wb.setup(dev=False)
        assert capsys.readouterr().err == ""
    machine.clear()
    wb.setup(dev=False)
    assert machine == ["proton.lock"]


def test_the_clients_that_stand_on_proton_come_with_it_and_for_the_tests_only(machine, monkeypatch):
    """Without a compiler the tests run without them, and no start tries again in vain."""
    with monkeypatch.context() as patch:
        patch.setattr(wb, "compiler", lambda: "")
        wb.setup(dev=True)
        assert machine == ["venv", "dev.lock", "connect"]
    machine.clear()
    wb.setup(dev=False)
    assert machine == ["proton.lock"]
    machine.clear()
    wb.setup(dev=True)
    assert machine == ["clients.lock"]
    machine.clear()
    wb.setup(dev=True)
    assert machine == []


def test_proton_that_does_not_compile_is_not_tried_at_each_start(machine, monkeypatch):
    """The learner waits for it once; everything else works without it."""
    tried = []

    def install(lock, log=None):
        tried.append(lock)
        return lock != "proton.lock"

    monkeypatch.setattr(wb, "install", install)
    wb.setup(dev=False)
    wb.setup(dev=False)
    assert tried == ["runtime.lock", "proton.lock"]


@pytest.mark.parametrize(
    ("listing", "index"),
    [
        ("", None),
        ("global.index-url='https://mirror.example/simple'", "https://mirror.example/simple"),
        ("global.index-url='https://a.example'\n:env:.index-url='https://b.example'",
         "https://b.example"),
        (":env:.index-url='https://b.example'\nglobal.index-url='https://a.example'",
         "https://b.example"),
    ],
)  # fmt: skip
def test_uv_is_told_of_the_index_that_pip_uses(listing, index, monkeypatch, tmp_path):
    """A room with a mirror sets up pip; uv does not read pip's settings by itself."""
    stand_in = tmp_path / "python"
    stand_in.write_text(f"#!/bin/sh\ncat <<'END'\n{listing}\nEND\n", encoding="utf-8")
    stand_in.chmod(0o755)
    monkeypatch.setattr(wb, "VENV_PYTHON", str(stand_in))
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    assert wb.index_settings().get("UV_DEFAULT_INDEX") == index
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mine.example")
    assert "UV_DEFAULT_INDEX" not in wb.index_settings()


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ([], ["-n", "3", "-m", "not slow"]),
        (["--all"], ["-n", "3"]),
        (["--all", "-m", "slow"], ["-n", "3", "-m", "slow"]),
        (["tests/amqp10", "-k", "credit"], ["tests/amqp10", "-k", "credit"]),
        (["--", "--all-warnings"], ["--all-warnings"]),
    ],
)
def test_what_is_named_is_run_as_named_and_else_the_quick_tests_or_all(arguments, given):
    """Two processes for many tests; one, with its output at once, for what somebody works on."""
    assert wb.selection(arguments) == given


def test_what_tests_compile_is_kept(machine, monkeypatch):
    """They start hundreds of processes, and in some containers each would compile all again."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.chdir(REPO)

    def become(command):
        raise SystemExit(str(os.environ.get("PYTHONDONTWRITEBYTECODE")))

    monkeypatch.setattr(wb, "become", become)
    with pytest.raises(SystemExit, match="1"):
        wb.main(["lab"])
    with pytest.raises(SystemExit, match="None"):
        wb.main(["test"])


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.9"])
def test_wb_tells_an_old_python_what_to_do(version, tmp_path):
    """One clear line and exit 1, where no supported Python is to be found."""
    code = (REPO / "wb.py").read_text(encoding="utf-8")
    major, minor = map(int, version.split("."))
    script = tmp_path / "wb.py"
    script.write_text(
        code.replace(
            "import sys\n",
            f"import sys\nsys.version_info = ({major}, {minor}, 0, 'final', 0)\n",
            1,
        ),
        encoding="utf-8",
    )
    answer = subprocess.run(
        [sys.executable, str(script), "lab"],
        capture_output=True, text=True, timeout=TIMEOUT_S, env={"PATH": "", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr.startswith("wb: the workbench needs Python 3.11, 3.12 or 3.13; this is")
    assert answer.stderr.count("\n") == 1
    assert version in answer.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("arguments", [[], ["--help"], ["setup", "--nonsense"]])
def test_wb_explains_itself_without_making_an_environment(arguments, tmp_path):
    """Help and a wrong argument cost nothing."""
    venv = tmp_path / "venv"
    answer = subprocess.run(
        [sys.executable, str(REPO / "wb.py"), *arguments],
        capture_output=True, text=True, timeout=TIMEOUT_S,
        env={**os.environ, "WORKBENCH_VENV": str(venv)},
    )  # fmt: skip
    assert (answer.returncode == 0) == (arguments == ["--help"])
    assert not venv.exists()
