"""Files that are written whole or not at all."""

import os
import stat

import pytest

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
