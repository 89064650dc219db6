"""`.ci/run`: what it asks of apt, and which Pythons it runs the tests on."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
TOOLS = (
    "bash", "cat", "dirname", "env", "grep", "id", "ls", "mktemp", "rm", "sort", "tail", "tee",
    "timeout",
)  # fmt: skip
PYTHON = """#!/bin/sh
case "$1" in
    -c) echo {version} ;;
    *) echo "{version} $WORKBENCH_VENV $*" >>{notes}; echo "== {passed} passed in 1.50s =="
       echo "something that comes later"; exit {code} ;;
esac
"""


@pytest.fixture
def machine(tmp_path):
    """A machine of stand-ins; runs CI and gives its outcome, and what programs noted."""
    programs, notes = tmp_path / "bin", tmp_path / "notes"
    programs.mkdir()
    notes.touch()
    for tool in TOOLS:
        (programs / tool).symlink_to(shutil.which(tool))
    (programs / "python3").symlink_to(sys.executable)
    (tmp_path / ".ci").mkdir()
    shutil.copy(REPO / ".ci" / "run", tmp_path / ".ci")

    def program(name, text="#!/bin/sh\n"):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
        return programs / name

    def run(pythons, there=(), uninstallable=(), failing=()):
        program("sudo", '#!/bin/sh\nshift\nexec "$@"\n')
        cases = "|".join(uninstallable) or "-"
        program(
            "apt-get", f'#!/bin/sh\necho "$*" >>{notes}\ncase "$*" in *{cases}) exit 1;; esac\n'
        )
        for name in there:
            program(name)
        found = [
            program(
                f"python{version}-{number}",
                PYTHON.format(version=version, notes=notes, passed=number + 10,
                              code=int(version in failing)),
            )
            for number, version in enumerate(pythons)
        ]  # fmt: skip
        (tmp_path / "wb.py").write_text(
            f"SUPPORTED = [True]\ncandidates = lambda: {[str(one) for one in found]!r}\n"
            "version_of = lambda program: 'python3.9' not in program\n",
            encoding="utf-8",
        )
        env = {
            "PATH": str(programs),
            "HOME": str(tmp_path),
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        }
        done = subprocess.run(
            ["bash", str(tmp_path / ".ci" / "run")], env=env, capture_output=True, text=True,
            timeout=120,
        )  # fmt: skip
        return done, notes.read_text(encoding="utf-8").splitlines()

    run.folder = tmp_path
    return run


def asked_of_apt(notes):
    """The packages that apt was asked for, each in a line of its own."""
    return {line.split()[-1] for line in notes if line.startswith("install ")}


def test_the_quick_run_is_made_on_the_oldest_and_the_newest_python_and_the_rest_once(machine):
    """Each is named with its closing line; the first program of a version stands for it."""
    done, notes = machine(["3.12.1", "3.11.10", "3.13.0", "3.11.2", "3.9.1", "3.11.2"])
    assert done.returncode == 0, done.stderr
    folder = machine.folder
    both, made = {"3.11.2", "3.13.0"}, [line for line in notes if "wb.py" in line]
    # At once, so in either order.
    assert set(made[:2]) == {f"{one} {folder}/.venv-{one} wb.py setup --dev" for one in both}
    assert made[2:] == [
        f"3.11.2 {folder}/.venv-3.11.2 wb.py test",
        f"3.13.0 {folder}/.venv-3.13.0 wb.py test",
        f"3.11.2 {folder}/.venv-3.11.2 wb.py test --all -m slow",
    ]
    assert done.stdout.splitlines()[-3:] == [
        "ci: the quick run on Python 3.11.2: == 13 passed in 1.50s ==",
        "ci: the quick run on Python 3.13.0: == 12 passed in 1.50s ==",
        "ci: the rest on Python 3.11.2: == 13 passed in 1.50s ==",
    ]


def test_one_python_is_the_oldest_and_the_newest(machine):
    """What it has run already is not run again."""
    _, notes = machine(["3.12.1"])
    runs = [line.partition("wb.py ")[2] for line in notes if "wb.py" in line]
    assert runs == ["setup --dev", "test", "test --all -m slow"]


def test_a_run_that_fails_keeps_no_other_from_being_made_and_is_the_outcome(machine):
    """Exit 1, and three closing lines."""
    done, notes = machine(["3.11.2", "3.13.0"], failing=["3.13.0"])
    assert done.returncode == 1
    assert len([line for line in notes if "wb.py test" in line]) == 3


def test_no_supported_python_is_an_error(machine):
    """One line says so."""
    done, _ = machine(["3.9.1"])
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("ci: no supported Python")


def test_apt_is_not_asked_for_a_package_whose_command_is_there(machine):
    """Another one's npm is as good, and Debian's may be at odds with what it came with."""
    _, notes = machine(["3.12.1"], there=["node", "npm", "google-chrome"])
    assert {"tshark", "openssl"} <= asked_of_apt(notes)
    assert not {"nodejs", "npm", "chromium"} & asked_of_apt(notes)


def test_a_package_that_cannot_be_installed_keeps_no_other_away(machine):
    """Each is asked for alone, nothing is removed for it, and the tests are run."""
    done, notes = machine(["3.12.1"], uninstallable=["npm"])
    assert {"npm", "nodejs", "tshark", "chromium", "openssl"} <= asked_of_apt(notes)
    assert "ci: npm could not be installed; what needs it will be skipped" in done.stdout
    assert done.stdout.count("could not be installed") == 1
    assert all("--no-remove" in line for line in notes if line.startswith("install "))
    assert done.returncode == 0
