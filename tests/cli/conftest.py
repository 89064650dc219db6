"""What the tests of several commands work with."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
