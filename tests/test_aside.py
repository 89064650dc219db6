"""Folders for a while: nothing is left of them, however their process ends."""

import os
import subprocess
import sys
import tempfile
import time

import pytest

from workbench.aside import aside

PROGRAM = """
import sys
from workbench.aside import aside, aside_until_exit

with aside() as folder:
    for one in (folder, aside_until_exit()):
        (one / "rows").write_text("rows")
    print("made", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where folders aside are made; nothing else is there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def another(place, repo):
    """A program that has two of them, made a moment ago, and ends when it is told to."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(place), "PYTHONPATH": str(repo)},
    )  # fmt: skip
    with process:
        assert process.stdout.readline() == "made\n"
        for folder in place.iterdir():
            os.utime(folder, (0, time.time() - 2))
        yield process
        process.kill()


def test_a_program_that_ends_takes_its_folders_with_it(place, another):
    """The one of a block, and the one that was there to the end."""
    assert len([*place.iterdir()]) == 2
    another.stdin.close()
    assert another.wait() == 0
    assert [*place.iterdir()] == []


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no locks there")
def test_what_a_killed_program_has_left_goes_with_the_next_folder(place, another):
    """And what a living one is at work with stays, however long it has had it."""
    theirs = {*place.iterdir()}
    with aside() as ours:
        assert {*place.iterdir()} == {*theirs, ours}
    another.kill()
    another.wait()
    assert {*place.iterdir()} == theirs
    with aside() as ours:
        assert [*place.iterdir()] == [ours]


def test_only_what_was_made_here_is_taken_away(place):
    """Folders of others have other names."""
    mine = place / "workbench-notes"
    mine.mkdir()
    os.utime(mine, (0, 0))
    with aside():
        pass
    assert [*place.iterdir()] == [mine]
