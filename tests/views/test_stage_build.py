"""`stage.js` is what esbuild makes of the sources beside it, byte for byte; its types hold."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.npm import installed

VIEWS = REPO / "workbench" / "views"
SOURCES = VIEWS / "stage"


@pytest.fixture
def sources(tmp_path) -> Path:
    """A copy of the sources, with the tools that their lock file names."""
    tools = installed(SOURCES, "stage")
    folder = tmp_path / "views" / "stage"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("node_modules"))
    (folder / "node_modules").symlink_to(tools)
    return folder


def npm_run(folder: Path, script: str) -> None:
    env = {**os.environ, "npm_config_update_notifier": "false"}
    done = subprocess.run(
        ["npm", "run", "--silent", script], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_committed_module_is_built_from_the_sources(sources):
    """Whoever changes a source builds it (`npm ci && npm run build` in `workbench/views/stage`)."""
    npm_run(sources, "build")
    assert (sources.parent / "stage.js").read_bytes() == (VIEWS / "stage.js").read_bytes()


@pytest.mark.slow
def test_the_sources_types_hold(sources):
    """`tsc` in its strict mode finds nothing."""
    npm_run(sources, "check")


def test_the_lock_file_names_no_registry():
    """What is installed is fixed by its hash, from whichever registry it comes."""
    lock = (SOURCES / "package-lock.json").read_text("utf-8")
    assert "resolved" not in lock
    assert "http" not in lock.replace("https://opencollective.com", "").replace(
        "https://github.com", ""
    )
