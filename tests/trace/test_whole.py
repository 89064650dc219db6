"""Files that are written whole or not at all."""

import os
import stat
import subprocess
import sys
import time

import pytest

from workbench.trace import whole
from workbench.trace.whole import write_whole, written_whole


def wrote(target, problem=None):
    """Write something there, or half of it."""
    with written_whole(target) as file:
        file.write(b"half")
        if problem is not None:
            raise problem


@pytest.mark.parametrize("fails", ["open", "write", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch, fails):
    """Whole or not at all: no half file, no leftover; the error names what was to be written."""
    target = tmp_path / "progress.jsonl"
    target.write_text("old")
    full = OSError(28, "No space left on device", "somewhere else")

    def fail(*_: object) -> None:
        raise full

    if fails != "write":
        monkeypatch.setattr(os, fails, fail)
    with pytest.raises(OSError, match="No space") as told:
        wrote(target, full if fails == "write" else None)
    assert told.value.filename == str(target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_what_a_person_interrupts_leaves_nothing(tmp_path):
    """Whatever it is that ends the writing."""
    with pytest.raises(KeyboardInterrupt):
        wrote(tmp_path / "new", KeyboardInterrupt())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
@pytest.mark.parametrize("private", [False, True])
def test_others_may_read_what_is_not_private(tmp_path, private):
    """As with any file that a program writes: a page is for others, a learner's answers are not."""
    path = write_whole(tmp_path / "new", "text", private=private)
    before = tmp_path / "other"
    before.touch()
    rights = stat.S_IMODE(path.stat().st_mode)
    assert rights == (0o600 if private else stat.S_IMODE(before.stat().st_mode))
    assert path.read_text(encoding="utf-8") == "text"


PROGRAM = """
import sys
from pathlib import Path
from workbench.trace.files import TraceWriter
from workbench.trace.whole import written_whole

place = Path(sys.argv[1])
with TraceWriter(place / "trace.parquet"), written_whole(place / "page.html") as file:
    file.write(b"half")
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(os.name == "nt", reason="no locks of files that others may remove")
def test_what_a_killed_program_has_left_goes_with_the_next_file(tmp_path, repo):
    """And what a living one is still writing stays, however long it has been at it."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(repo)},
    ) as another:  # fmt: skip
        assert another.stdout.readline() == "written\n"
        parts = {*tmp_path.iterdir()}
        for part in parts:
            os.utime(part, (0, time.time() - 2))  # a moment ago
        mine = write_whole(tmp_path / "mine", "text")
        assert {*tmp_path.iterdir()} == {*parts, mine}
        another.kill()
        another.wait()
    assert {*tmp_path.iterdir()} == {*parts, mine}
    whole._clear.cache_clear()
    write_whole(mine, "text")
    assert [*tmp_path.iterdir()] == [mine]
