"""Share codes on the command line: made by `run --share`, played by `run --code`."""

import io
import sys
from pathlib import Path

from tests.cli.test_commands import lines
from workbench.trace import files

ACT = ["--act", "grant:link_credit=3"]


def made(capsys, *argv: str) -> str:
    """The share code of a run."""
    (code,), err = lines(capsys, "run", "credit", *argv, "--share")
    assert err == []
    return code


def test_a_shared_run_is_the_same_trace(capsys, folder):
    """What one person ran is what the other gets, and the code of that is the same code."""
    lines(capsys, "run", "credit", "--set", "messages=7", *ACT, "-o", "mine.parquet")
    code = made(capsys, "--set", "messages=7", *ACT)
    out, err = lines(capsys, "run", "--code", code, "--share", "--strict", "-o", "theirs.parquet")
    assert out == [code]
    assert err[0].startswith("theirs.parquet: ")
    assert files.read("mine.parquet") == files.read("theirs.parquet")


def test_a_code_may_come_from_a_pipe(capsys, folder, monkeypatch):
    """A mail's line breaks do not matter."""
    code = made(capsys, *ACT)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{code[:80]}\r\n  {code[80:]}\n"))
    out, _ = lines(capsys, "run", "--code", "-", "--share")
    assert out == [code]


def test_what_is_not_as_it_was_is_told_and_the_rest_is_played(capsys, folder):
    """One line each on stderr, and a trace; with --strict neither."""
    code = made(capsys, *ACT)
    cut = code[: code.index(".C") + 1]
    _, err = lines(capsys, "run", "--code", cut, "-o", "t.parquet")
    assert any(line.startswith("cursor: this part is missing") for line in err)
    assert len(files.read("t.parquet")) > 0
    Path("t.parquet").unlink()
    out, err = lines(capsys, "run", "--code", cut, "--strict", "-o", "t.parquet", code=1)
    assert out == []
    assert len(err) == 1
    assert not Path("t.parquet").exists()


def test_a_run_too_long_for_a_code_is_told_before_anything_is_written(capsys, folder, monkeypatch):
    """The trace file is the way to share it."""
    monkeypatch.setattr("workbench.trace.share.LONGEST_CODE", 300)
    _, err = lines(capsys, "run", "credit", *ACT, "--share", "-o", "t.parquet", code=1)
    assert "more than 300" in err[0]
    assert "trace file (workbench run ... -o)" in err[0]
    assert list(folder.iterdir()) == []
