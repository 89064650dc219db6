"""The source is in one form, free of known mistakes, and its core is fully typed."""

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
CHECKED = ["workbench", "tests", "benchmarks", "requirements", "notebooks", "wb.py"]


def complaints(*command: str) -> str:
    """Run a tool on the checkout and give what it says when it is not content."""
    there = [name for name in CHECKED if (REPO / name).exists()] if command[0] == "ruff" else []
    answer = subprocess.run(
        [sys.executable, "-m", *command, *there],
        cwd=REPO, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return "" if answer.returncode == 0 else answer.stdout + answer.stderr


def test_ruff_finds_no_mistake():
    """The rules are in pyproject.toml, each exemption with its reason."""
    assert complaints("ruff", "check", "--no-cache", "--output-format=concise") == ""


def test_ruff_would_write_it_the_same_way():
    """`ruff format` changes nothing, so no diff is about form."""
    assert complaints("ruff", "format", "--check", "--no-cache") == ""


@pytest.mark.slow  # half a minute without mypy's cache
def test_the_core_is_typed(tmp_path):
    """mypy --strict is content with the packages that pyproject.toml names."""
    assert complaints("mypy", f"--cache-dir={tmp_path}") == ""
